/*
 * What a grid description says, in one shape for both editions: GRIB1's types and flags are translated to GRIB2's. Angles stay the
 * integers that the file has, with the unit as a fraction of a degree, so that coordinates are rounded once, at the very end.
 */
#ifndef SQ_FORMAT_GRIB_GRID_DEFINITION_H
#define SQ_FORMAT_GRIB_GRID_DEFINITION_H

#include "format/grib/grid.h"

#define SQ_GRID_COUNT_MISSING UINT32_MAX
#define SQ_GRID_STEP_MISSING  INT64_C(-1)

enum {
    SQ_GRID_TEMPLATE_NONE = 65535, /* code table 3.1: missing; edition 1 types that edition 2 has no template for */

    SQ_GRID_I_NEGATIVE = 0x80, /* flag table 3.4 */
    SQ_GRID_J_POSITIVE = 0x40,
    SQ_GRID_J_CONSECUTIVE = 0x20,
    SQ_GRID_BOUSTROPHEDON = 0x10,

    SQ_GRID_I_STEP_GIVEN = 0x20, /* flag table 3.3 */
    SQ_GRID_J_STEP_GIVEN = 0x10,
    SQ_GRID_UV_RELATIVE_TO_GRID = 0x08,
};

/* Code table 3.2. Axes in m, equal for a sphere; 0 where the header does not give them. */
struct sq_grid_earth {
    uint8_t shape; /* edition 1: 0 or 2 */
    double major_m, minor_m;
};

/* Which members are set depends on the template; the others are 0. */
struct sq_grid_definition {
    uint16_t template_number; /* code table 3.1 */
    uint8_t type_edition1;    /* edition 1: code table 6 */
    const char *type_name;    /* ecCodes' gridType */
    const char *title;        /* of the code table; NULL: unknown */
    enum sq_grib_grid_kind kind;
    const char *unsupported; /* why its data are no points of a grid; static */
    uint64_t point_count;
    uint32_t ni, nj; /* SQ_GRID_COUNT_MISSING */
    bool has_resolution_flags;
    uint8_t resolution_flags, scanning_mode;
    struct sq_grid_earth earth;

    /* geographic and rotated: count × unit_numerator / unit_denominator degrees */
    int64_t unit_numerator, unit_denominator;
    int64_t latitude_first, longitude_first, latitude_last, longitude_last;
    int64_t i_step, j_step;                                           /* SQ_GRID_STEP_MISSING */
    double south_pole_latitude, south_pole_longitude, rotation_angle; /* degrees; rotated grids and edition 1's oblique ones */
    uint32_t parallels;                                               /* Gaussian: N, between a pole and the equator */

    /* reduced: points of each row, big-endian, in the section */
    const uint8_t *row_lengths;
    uint32_t row_count;
    uint8_t row_length_bytes;

    /* projected: degrees and m; the first point is latitude_first, longitude_first in units of the above */
    double true_latitude;                   /* LaD */
    double central_longitude;               /* LoV; mercator: the grid's orientation is in rotation_angle */
    double parallel_first, parallel_second; /* Latin1, Latin2 */
    double dx_m, dy_m;
    bool south_pole_on_plane, bipolar;

    /* transverse mercator */
    int32_t reference_latitude_raw, reference_longitude_raw;
    double reference_scale, false_easting_m, false_northing_m;
    double x_first_m, y_first_m, x_last_m, y_last_m;

    uint8_t vertical_count;    /* edition 1: NV */
    uint32_t grid_number_used; /* unstructured */
    uint8_t grid_in_reference; /* unstructured */
    const uint8_t *grid_uuid;  /* unstructured: 16 bytes in the section */
};

/* ret points into section. Errors: SQUALL_ECORRUPT. */
int sq_grid_definition_read(uint8_t edition, uint16_t centre, const uint8_t *section, size_t size, struct sq_grid_definition *ret,
                            struct squall_error *err) SQUALL_CHECK;

/* The definition of a grid that sq_grib_grid_parse accepted; ret points into the grid's section. */
void sq_grid_definition_of(const struct sq_grib_grid *grid, struct sq_grid_definition *ret);

/* the n-th entry of row_lengths, n < row_count */
uint32_t sq_grid_row_length(const struct sq_grid_definition *g, uint32_t n);

static inline double sq_grid_degrees(const struct sq_grid_definition *g, int64_t count)
{
    return (double)count * (double)g->unit_numerator / (double)g->unit_denominator;
}

#endif
