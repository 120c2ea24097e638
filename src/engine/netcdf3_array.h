/* NetCDF-3 files as datasets of the engine. */
#ifndef SQ_ENGINE_NETCDF3_ARRAY_H
#define SQ_ENGINE_NETCDF3_ARRAY_H

#include "engine/array.h"
#include "format/netcdf3/netcdf3.h"

/* source: taken over, also on failure. *ret: squall_dataset_close. The context must outlive it. */
int sq_netcdf3_dataset_open(const struct squall_context *ctx, struct sq_source *source, struct squall_dataset **ret,
                            struct squall_error *err) SQUALL_CHECK;

/* The file behind a dataset, the variable behind an array of it; NULL: of another format. The dataset's. */
const struct sq_netcdf3 *sq_netcdf3_of_dataset(const struct squall_dataset *ds);
const struct sq_netcdf3_variable *sq_netcdf3_of_array(const struct squall_array *a);
/* The file has another number of records and another size. Not while another call uses the dataset. */
void sq_netcdf3_dataset_set_records(struct squall_dataset *ds, uint64_t count, uint64_t file_bytes);
/* Where an element lies: index, one a dimension, within the shape. */
uint64_t sq_netcdf3_stride(const struct squall_array *a, unsigned d); /* bytes to the next element along d */
uint64_t sq_netcdf3_element_offset(const struct squall_array *a, const uint64_t *index);

#endif
