/* Zarr stores as datasets of the engine. */
#ifndef SQ_ENGINE_ZARR_ARRAY_H
#define SQ_ENGINE_ZARR_ARRAY_H

#include "engine/array.h"

/* *ret: squall_dataset_close. The context must outlive it. */
int sq_zarr_dataset_open(const struct squall_context *ctx, const char *path, struct squall_dataset **ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
