/* A dataset: arrays with their attributes, whatever the format: a Zarr store in a folder or zip file, an HDF5, NetCDF or GRIB file, or many GRIB files as one. */
#ifndef SQUALL_DATASET_H
#define SQUALL_DATASET_H

#include "squall/array.h"
#include "squall/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct squall_dataset squall_dataset;

struct squall_dataset_info {
    const char *format;          /* "zarr v3", "zarr v2", "hdf5", "netcdf3 (CDF-1)" (or 2, 5), "grib" */
    const char *attributes;      /* a JSON object */
    const char *attribute_types; /* as of squall_array_info */
    int is_array;                /* the path is one array, not a group of them */
    size_t file_count;           /* that it is made of; 1 of a store */
    size_t array_count;
    size_t group_count;   /* below the root: squall_dataset_group */
    size_t problem_count; /* what could not be read, or was left out: squall_dataset_problem */
};

/* Find out what path is and read its structure (no data). *ret: squall_dataset_close, after its arrays' last use. */
int squall_dataset_open(squall_context *ctx, const char *path, squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;
void squall_dataset_close(squall_dataset *ds);
struct squall_dataset_info squall_dataset_info(const squall_dataset *ds);

squall_array *squall_dataset_array_at(const squall_dataset *ds, size_t index); /* index < array_count, in the dataset's order */

/* A group that says something of itself; "a/b" may lie in an "a" that does not. Pointers live as long as the dataset. */
struct squall_group_info {
    const char *name;            /* path within the dataset */
    const char *attributes;      /* a JSON object */
    const char *attribute_types; /* as of squall_array_info */
};
struct squall_group_info squall_dataset_group(const squall_dataset *ds, size_t index); /* index < group_count */

/* SQUALL_ENOTFOUND names what there is. The array belongs to the dataset. */
int squall_dataset_array(const squall_dataset *ds, const char *name, squall_array **ret, struct squall_error *err) SQUALL_CHECK;
const char *squall_dataset_problem(const squall_dataset *ds, size_t index); /* one line each */

#ifdef __cplusplus
}
#endif
#endif
