/*
 * Find the messages of a file, whatever surrounds them: bulletin headers, padding, junk, damage. Reads heads only, not data.
 */
#ifndef SQ_FORMAT_GRIB_SCAN_H
#define SQ_FORMAT_GRIB_SCAN_H

#include "format/grib/frame.h"
#include "io/source.h"

/* One field as found. The section pointers are valid during the call only; NULL: not there. */
struct sq_grib_found {
    uint64_t offset;     /* of the message in the source */
    uint64_t size_bytes; /* of the message */
    struct sq_grib_frame frame;
    const uint8_t *section
        [SQ_GRIB_SECTION_COUNT]; /* 1, 2, 3, 4 whole (sizes in frame); 5: whole; 6, 7: their first bytes, at least 16 where the section has them */
};

struct sq_grib_scan_events {
    int (*field)(void *user, const struct sq_grib_found *field, struct squall_error *err);
    /* Something is wrong at this offset; `what` is a whole line without the file's name. The scan goes on behind it. */
    int (*problem)(void *user, uint64_t offset, const char *what, struct squall_error *err);
    void *user;
};

/* Errors: only I/O, memory, and what the events return: damage in the file is a problem event. */
int sq_grib_scan(struct sq_source *source, const struct sq_grib_scan_events *events, struct squall_error *err) SQUALL_CHECK;

#endif
