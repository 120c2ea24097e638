/*
 * Arrays of HDF5, NetCDF and Zarr → the same cube that GRIB fields make. One dimension is that along which the store grows; what a variable has at one
 * index of it is a "field", and all that cube.h says of init times holds for its indices. Variables without it, and coordinates along it, are the
 * cube's coordinates.
 */
#ifndef SQ_CUBE_ARRAY_CUBE_H
#define SQ_CUBE_ARRAY_CUBE_H

#include "cube/cube.h"
#include "engine/array.h"

/* The indices along the append dimension that one source file has. */
struct sq_array_span {
    uint32_t file;
    uint64_t begin, count;
};

struct sq_array_cube_options {
    const struct squall_dataset *sources;
    const char *const *paths;          /* of the source files */
    const struct sq_array_span *spans; /* in the dataset's order, one behind the other from 0 on */
    size_t span_count;
    uint32_t first_file;       /* from which comes what is taken from one file: arrays without the append dimension, attributes */
    bool strict;               /* what is written whole and cannot be read is an error */
    const char *append_dim;    /* NULL: an unlimited one, or else the first of the largest variable */
    const char *group;         /* that the sources are of; NULL: the root */
    const char *const *select; /* each "name=t2m|d2m": variables along the append dimension that are taken; none: all */
    size_t select_count;
    const char *const *rename; /* "old=new" */
    size_t rename_count;
    const struct squall_dataset *stored; /* the store that is there; NULL: a new one */
    const struct sq_json *schema;        /* of it */
    uint64_t stored_count, stored_chunk; /* of it: init times, and those of a unit */
};

/*
 * The sources (and the store) must live as long as the cube. *ret: sq_cube_done. Errors: SQUALL_EINVAL (a selection or renaming that makes no sense, no such
 * dimension), SQUALL_EREFUSED (the store has another append dimension, other coordinates, other units, or counts otherwise), SQUALL_ENOTFOUND (no
 * variable is left).
 */
int sq_array_cube_build(const struct sq_array_cube_options *options, struct sq_cube *ret, struct squall_error *err) SQUALL_CHECK;

#endif
