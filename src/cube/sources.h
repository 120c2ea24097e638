/*
 * Which files to read: what the user named, and what lies in the folders named. In folders, what is known to be no GRIB is
 * passed over: hidden names, Zarr stores, side files.
 */
#ifndef SQ_CUBE_SOURCES_H
#define SQ_CUBE_SOURCES_H

#include "squall/error.h"
#include <stddef.h>

struct sq_source_list {
    char **paths; /* sorted by bytes; no file twice, whatever it is called. Folders that cannot be listed, too: opening them tells why */
    size_t count;
    size_t passed_over; /* files and folders in folders that were not taken */
};

/*
 * Collect. `destination` (NULL: none) is never taken, should it lie within a source. *ret: sq_source_list_done.
 * Errors: SQUALL_ENOTFOUND (a source that is not there; a folder without a file to read), SQUALL_EUNSUPPORTED (a device or pipe). A Zarr store that
 * is named is taken as a file is.
 */
int sq_source_list_make(const char *const *sources, size_t source_count, const char *destination, struct sq_source_list *ret,
                        struct squall_error *err) SQUALL_CHECK;
void sq_source_list_done(struct sq_source_list *list);

#endif
