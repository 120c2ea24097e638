/* HDF5 files, and NetCDF-4 files among them, as datasets of the engine. */
#ifndef SQ_ENGINE_HDF5_ARRAY_H
#define SQ_ENGINE_HDF5_ARRAY_H

#include "engine/array.h"

/* source: taken over, also on failure. *ret: squall_dataset_close. The context must outlive it. */
int sq_hdf5_dataset_open(const struct squall_context *ctx, struct sq_source *source, struct squall_dataset **ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
