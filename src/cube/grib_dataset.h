/* GRIB files as a dataset of the engine: the variables of their cube, a chunk a field, and its coordinates. */
#ifndef SQ_CUBE_GRIB_DATASET_H
#define SQ_CUBE_GRIB_DATASET_H

#include "engine/array.h"

/*
 * path: what the user named, for messages. *ret: squall_dataset_close. Damage in the files, and fields that are no part of
 * the cube, are problems of the dataset. SQUALL_ENOTFOUND where there is no field at all in any of the files, and what is there instead.
 */
int sq_grib_dataset_open(const struct squall_context *ctx, const char *path, const char *const *files, size_t file_count,
                         struct squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;

#endif
