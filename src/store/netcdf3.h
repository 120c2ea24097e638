/* The write side of NetCDF-3: headers made, regions of variables put in place. */
#ifndef SQ_STORE_NETCDF3_H
#define SQ_STORE_NETCDF3_H

#include "base/text.h"
#include "engine/netcdf3_array.h"
#include "squall/netcdf.h"

/* The header of a CDF-5 file, and how long the file is with all its elements. SQUALL_EINVAL names what cannot be. */
int sq_netcdf3_header_make(const struct squall_netcdf_spec *spec, struct sq_text *header, uint64_t *ret_file_bytes,
                           struct squall_error *err) SQUALL_CHECK;

/* squall_array_write of an array in a NetCDF-3 file. */
int sq_netcdf3_region_write(struct squall_array *a, const struct squall_selection *selection, const void *src, const int64_t *strides,
                            struct squall_error *err) SQUALL_CHECK;

/* squall_array_resize of an array in a NetCDF-3 file: records are added, to all variables that have them. */
int sq_netcdf3_grow(struct squall_array *a, const uint64_t *shape, struct squall_error *err) SQUALL_CHECK;

#endif
