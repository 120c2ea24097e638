/*
 * GRIB fields in an order that the caller chooses: which field lies at which place of which array. So xarray's engine gives the hypercubes that
 * cfgrib's users know, which are others than the cube's (cube.h).
 */
#ifndef SQ_CUBE_GRIB_FIELDS_H
#define SQ_CUBE_GRIB_FIELDS_H

#include "engine/array.h"
#include "format/grib/index.h"

/* An array to be: of the places before the grid's own dimensions, which come last. */
struct sq_grib_arrangement {
    const char *name;
    unsigned rank; /* without the grid's dimensions */
    uint64_t shape[SQUALL_RANK_MAX];
    const char *dims[SQUALL_RANK_MAX]; /* names of all dimensions */
    const int32_t *fields;             /* a row of the index for each place, C order; -1: no field, reads as NaN */
    size_t place_count;                /* of `fields` */
    uint32_t grid;                     /* row of the index's grids, on which all of them lie */
    enum squall_type type;             /* SQUALL_FLOAT32 or SQUALL_FLOAT64 */
};

/* index: becomes the dataset's, also where this fails; it is empty then. What arrangements point at is copied. *ret: squall_dataset_close. */
int sq_grib_fields_dataset(const struct squall_context *ctx, const char *path, struct sq_grib_index *index,
                           const struct sq_grib_arrangement *arrays, size_t array_count, struct squall_dataset **ret,
                           struct squall_error *err) SQUALL_CHECK;

#endif
