/*
 * The horizontal grids of a dataset that was made of GRIB: their type by the attribute GRIB_gridType, their lines by the coordinates of the last
 * dimensions, their projection by the grid mapping. Only coordinates are read.
 */
#ifndef SQ_CLI_GRID_H
#define SQ_CLI_GRID_H

#include "squall/squall.h"
#include <stdbool.h>

enum { GRID_TEXT_BYTES = 64 };

struct axis {
    const char *name;
    char units[GRID_TEXT_BYTES];
    double first, last, spacing; /* spacing: NaN where it is not even */
};

/* Texts belong to the dataset. */
struct grid {
    char type[GRID_TEXT_BYTES];
    unsigned rank; /* 2, or 1: points */
    const char *dims[2];
    uint64_t shape[2];
    char crs[GRID_TEXT_BYTES]; /* "EPSG:27700", or the grid mapping's name; "": latitudes and longitudes, or not known */
    struct axis axes[2];
    unsigned axis_count; /* that have coordinates */
};

struct grid_list {
    struct grid *grids;
    size_t count;
    struct squall_error problem; /* of the first coordinate that cannot be read and is left out; its message is "" where all can be */
};

/* Distinct ones, in the order of the arrays. *ret: grid_list_done. */
int grid_list_make(squall_dataset *ds, struct grid_list *ret, struct squall_error *err);
void grid_list_done(struct grid_list *list);

#endif
