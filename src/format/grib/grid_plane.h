/*
 * Projected grids: which projection, and where its rows and columns lie in it. Formulas after J. P. Snyder, Map Projections: A Working
 * Manual (USGS Professional Paper 1395); the ellipsoidal ones, of which a sphere is the case e = 0.
 */
#ifndef SQ_FORMAT_GRIB_GRID_PLANE_H
#define SQ_FORMAT_GRIB_GRID_PLANE_H

#include "format/grib/grid_definition.h"

struct sq_grid_projection {
    enum sq_grib_grid_kind kind;
    double major_m, minor_m;
    double latitude_origin, longitude_origin;        /* degrees; polar stereographic: ±90 and the straight meridian */
    double parallel_first, parallel_second;          /* degrees; only the first but for lambert */
    double scale, false_easting_m, false_northing_m; /* transverse mercator */
    bool british_national_grid;                      /* EPSG:27700 */
    bool earth_assumed;                              /* the header gives no axes */
    const char *impossible;                          /* NULL, or why the header describes no projection; static */
};

void sq_grid_projection_of(const struct sq_grid_definition *g, uint16_t centre, struct sq_grid_projection *ret);

/* x = x_first + k × dx for columns from west to east, y = y_first + k × dy for rows in the file's order. */
struct sq_grid_plane {
    double x_first, dx, y_first, dy;
    bool absolute; /* false: counted from the first point, since the projection is unknown */
};

void sq_grid_plane_of(const struct sq_grid_definition *g, const struct sq_grid_projection *p, struct sq_grid_plane *ret);
/* The same points, whatever the scanning mode; a metre of rounding in the first point is allowed where the modes differ. */
bool sq_grid_plane_same(const struct sq_grid_definition *a, uint16_t centre_a, const struct sq_grid_definition *b, uint16_t centre_b);

#endif
