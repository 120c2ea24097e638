/* HDF5 files, and NetCDF-4 files among them, as datasets of the engine. */
#ifndef SQ_ENGINE_HDF5_ARRAY_H
#define SQ_ENGINE_HDF5_ARRAY_H

#include "engine/array.h"

/* *ret: squall_dataset_close. The context must outlive it. */
int sq_hdf5_dataset_open(const struct squall_context *ctx, const char *path, struct squall_dataset **ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
