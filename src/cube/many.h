/* What opens one path; many files: squall/many.h. */
#ifndef SQ_CUBE_MANY_H
#define SQ_CUBE_MANY_H

#include "engine/array.h"

/* Whatever is at the path, without trailing slashes; no pattern. *ret: squall_dataset_close. */
int sq_open_path(const struct squall_context *ctx, const char *path, struct squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;

/*
 * As squall_dataset_open_many, of paths that are no patterns, for one that keeps elements as they are stored: those that mean something else from file to
 * file (scale_factor, add_offset, missing values) are SQUALL_EREFUSED, whatever becomes of other drift.
 */
struct squall_many_options;
int sq_open_many_to_store(const struct squall_context *ctx, const char *const *paths, size_t count,
                          const struct squall_many_options *options, struct squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;

/* Is a Zarr store, an HDF5 or a NetCDF file at the path? */
bool sq_holds_arrays(const char *path);
/* Along what the files of a dataset follow each other; NULL: it is not made of many files. */
const char *sq_many_dimension(const struct squall_dataset *ds);
/* Which of the paths given is the i-th along that dimension, and how many places it has there. */
size_t sq_many_file_at(const struct squall_dataset *ds, size_t i, uint64_t *ret_length);

#endif
