/* Zarr stores as datasets of the engine. */
#ifndef SQ_ENGINE_ZARR_ARRAY_H
#define SQ_ENGINE_ZARR_ARRAY_H

#include "engine/array.h"
#include "format/zarr/zarr.h"

/* *ret: squall_dataset_close. The context must outlive it. */
int sq_zarr_dataset_open(const struct squall_context *ctx, const char *path, struct squall_dataset **ret,
                         struct squall_error *err) SQUALL_CHECK;

/* One array in a folder, described by its document (zarr.json or .zarray as text) wherever that came from. */
int sq_zarr_dataset_from_document(const struct squall_context *ctx, const char *folder, int version, const char *document, size_t length,
                                  struct squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;
/* The description behind an array of such a dataset; NULL: of another format. The dataset's. */
const struct sq_zarr_array *sq_zarr_array_description(const struct squall_array *a);
/* Shape, chunks and codecs are from now on what this document of the same array says; nobody else uses it meanwhile. */
int sq_zarr_array_renew(struct squall_array *a, const struct sq_json *document, struct squall_error *err) SQUALL_CHECK;

#endif
