/* Many files as one dataset: along a dimension that they share, or along a new one. */
#ifndef SQUALL_MANY_H
#define SQUALL_MANY_H

#include "squall/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What becomes of files that do not agree: a variable is missing or is one too many, units, scale_factor, add_offset, _FillValue and other attributes
 * that say what numbers mean differ, coordinates differ, files overlap. Types and shapes must always agree.
 */
enum squall_drift {
    SQUALL_DRIFT_ERROR, /* SQUALL_EREFUSED, naming file and difference */
    SQUALL_DRIFT_WARN, /* each difference is a problem of the dataset, which is as the first file says; missing variables read as fill values */
    SQUALL_DRIFT_FIRST, /* the same in silence */
};

enum squall_order {
    SQUALL_ORDER_COORDINATES, /* by the values of the dimension's coordinate, where it has one */
    SQUALL_ORDER_GIVEN,
};

struct squall_many_options {
    const char *concat_dim; /* NULL: the dimension whose length or coordinate differs between the first two files */
    enum squall_order order;
    enum squall_drift drift;
    const char *group; /* only this group of each file, and the coordinates above it ("forecast/surface"); NULL: all of it */
};

/*
 * Variables that have the dimension follow each other along it; others, and all attributes, are the first file's. Where no file has it, it is a new first
 * dimension of every variable that is no coordinate. A coordinate of times ("hours since …") is counted as the first file counts, or in a finer
 * unit where that is not exact. Files are opened in parallel, each once; their headers are read, and the coordinates.
 *
 * paths    count ≥ 1 paths of whatever squall_dataset_open opens; those of GRIB files make one hypercube, as a folder of them does. A pattern
 *          ("era5/?.nc", where nothing is called so) stands for the files that match, sorted
 * options  may be NULL: the defaults, all 0
 */
int squall_dataset_open_many(squall_context *ctx, const char *const *paths, size_t count, const struct squall_many_options *options,
                             squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
