/*
 * NetCDF-4's conventions over what is in an HDF5 file (NetCDF's file format specification, appendix C; HDF5's dimension scales): which datasets
 * are dimensions, on which dimensions variables lie, and what is bookkeeping that nobody wants to see.
 */
#ifndef SQ_FORMAT_HDF5_NETCDF4_H
#define SQ_FORMAT_HDF5_NETCDF4_H

#include "format/hdf5/tree.h"

struct sq_netcdf4_variable {
    const struct sq_hdf5_dataset *dataset;
    const char *name;  /* path, "group/t2m" */
    const char **dims; /* as many names as the dataset has dimensions */
    const uint64_t
        *shape; /* of the variable: along an unlimited dimension it may be longer than its dataset. What is beyond is fill value */
};

struct sq_netcdf4 {
    struct sq_netcdf4_variable *variables; /* in the tree's order */
    size_t variable_count;
};

/*
 * Dimensions that have no name are called phony_dim_N, as netCDF-C does it. Attributes that tell of dimensions, and NetCDF's own, are taken out of
 * the tree. *ret, and the shapes in it, live until the walk over the tree is done; names and dims as long as the tree.
 */
int sq_netcdf4_read(struct sq_hdf5_tree *tree, struct sq_netcdf4 *ret, struct squall_error *err) SQUALL_CHECK;

#endif
