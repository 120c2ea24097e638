/*
 * Coordinates along one direction, as the header's integers give them: a line of evenly spaced points, and the rows of a reduced grid.
 * The corners and the number of points determine the values; increments are asked only where the corners leave a choice.
 */
#ifndef SQ_FORMAT_GRIB_GRID_LINES_H
#define SQ_FORMAT_GRIB_GRID_LINES_H

#include "format/grib/grid_definition.h"

/* count points; the k-th lies at first + span × k / divisor, in the grid's angle units. */
struct sq_grid_line {
    double first, span, divisor;
    uint32_t count;
};

/* In the file's order of rows. */
struct sq_grid_line sq_grid_latitudes(const struct sq_grid_definition *g);
/* From west to east, as decode orders the points; the first within ±360 degrees so that the last does not pass 360. */
struct sq_grid_line sq_grid_longitudes(const struct sq_grid_definition *g);
/* degrees, rounded once */
double sq_grid_line_at(const struct sq_grid_definition *g, const struct sq_grid_line *line, uint32_t k);

/* How the rows of a reduced grid divide their circle of latitude (code table 3.11). */
struct sq_grid_reduced {
    enum { SQ_REDUCED_WHOLE, SQ_REDUCED_PART, SQ_REDUCED_BETWEEN } rows;
    double west, span;    /* degrees, of the area */
    double tolerance;     /* degrees: half of the header's precision and a little */
    uint64_t point_count; /* that the rows hold together */
};

struct sq_grid_reduced_row {
    uint32_t count;
    double first, step; /* degrees */
};

struct sq_grid_reduced sq_grid_reduced_of(const struct sq_grid_definition *g);
struct sq_grid_reduced_row sq_grid_reduced_row(const struct sq_grid_definition *g, const struct sq_grid_reduced *r, uint32_t n);

#endif
