/*
 * NetCDF-3 files, version CDF-5, made for writing from many sides at once: where every element lies is known when the file is made, so any
 * number of threads and processes put their regions into it (squall_store_open, squall_array_write) without waiting for each other.
 */
#ifndef SQUALL_NETCDF_H
#define SQUALL_NETCDF_H

#include "squall/error.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct squall_netcdf_dimension {
    const char *name;
    uint64_t length; /* ≥ 1; of the record dimension as many records as there will be */
    int is_record;   /* "unlimited"; at most one is */
};

struct squall_netcdf_variable {
    const char *name;
    const char *type; /* "float32", "int16", …, or numpy's spelling; "|S1": char. Of the types that CDF-5 has */
    unsigned rank;
    const char *const *dims;     /* names; the record dimension is the first, or is not there */
    const char *attributes;      /* a JSON object of texts, numbers and lists of numbers; NULL: none */
    const char *attribute_types; /* {"valid_range": "<i2"}: of numbers that are to have another type than int32 or float64; NULL: none is */
};

struct squall_netcdf_spec {
    const struct squall_netcdf_dimension *dimensions;
    size_t dimension_count;
    const struct squall_netcdf_variable *variables;
    size_t variable_count;
    const char *attributes, *attribute_types; /* as of variables */
};

/*
 * Make the file: the header, and room for all elements, which read as 0 until they are written; none of it is written twice. Who leaves some out
 * writes the fill value there, with strides of 0. Variables without the record dimension begin at multiples of 4096 bytes.
 *
 * Errors: SQUALL_EREFUSED (something is there already), SQUALL_EINVAL (what makes no sense, or has no place in such a file), SQUALL_EIO.
 */
int squall_netcdf_create(const char *path, const struct squall_netcdf_spec *spec, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
