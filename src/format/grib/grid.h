/* Grids: where a field's points lie. A grid is parsed once per distinct section 3 (edition 1: GDS) and shared. */
#ifndef SQ_FORMAT_GRIB_GRID_H
#define SQ_FORMAT_GRIB_GRID_H

#include "base/json.h"
#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sq_grib_grid_kind {
    SQ_GRID_REGULAR_LL,
    SQ_GRID_ROTATED_LL,
    SQ_GRID_REGULAR_GG,
    SQ_GRID_REDUCED_GG,
    SQ_GRID_REDUCED_LL,
    SQ_GRID_MERCATOR,
    SQ_GRID_POLAR_STEREOGRAPHIC,
    SQ_GRID_LAMBERT,
    SQ_GRID_TRANSVERSE_MERCATOR,
    SQ_GRID_OTHER, /* points without coordinates; type_name says which */
};

struct sq_grib_grid {
    enum sq_grib_grid_kind kind;
    const char *type_name;   /* ecCodes' gridType: "regular_ll", "lambert", "lambert_azimuthal_equal_area", …; static */
    const char *unsupported; /* NULL, or why its data cannot be put on a grid (spectral, …); static */
    bool rectangular;        /* rows × columns points; else one dimension `values` */
    uint32_t columns, rows;  /* ni (along x), nj (along y); 0 where not rectangular */
    uint64_t point_count;
    uint8_t scanning_mode; /* flag table 3.4 (edition 1: table 8, translated) */
    uint8_t *section;      /* its own copy of the bytes */
    uint32_t section_bytes;
    uint8_t edition;
    uint16_t centre; /* of the fields on it: some centres' headers need their own reading (UKV: 74) */
};

/* *ret: sq_grib_grid_done. A grid that is not understood yet is no error: kind OTHER with point_count. */
int sq_grib_grid_parse(uint8_t edition, uint16_t centre, const uint8_t *section, size_t size, struct sq_grib_grid *ret,
                       struct squall_error *err) SQUALL_CHECK;
void sq_grib_grid_done(struct sq_grib_grid *grid);
bool sq_grib_grid_same(const struct sq_grib_grid *a,
                       const struct sq_grib_grid *b); /* same points, whatever the scanning mode's row order */

/* Do rows run from south to north in the order that decode gives (i ascending, file's row order)? */
bool sq_grib_grid_rows_northward(const struct sq_grib_grid *grid);

/*
 * Coordinates, for data decoded as rows × columns with i ascending and rows in the file's order.
 * dims: "latitude","longitude" (regular_ll, regular_gg) | "y","x" (projected, with grid mapping; x and y in m, or
 * degrees "grid_latitude"/"grid_longitude" named y/x for rotated_ll) | "values" (reduced, unstructured; no axis values).
 */
struct sq_grib_axis {
    char name[32];  /* dimension and coordinate variable */
    double *values; /* length of them; NULL: a dimension without coordinate */
    size_t length;
    struct sq_json *attributes; /* standard_name, long_name, units, axis; NULL where values is */
};

struct sq_grib_axes {
    unsigned count;               /* 1 or 2 */
    struct sq_grib_axis axis[2];  /* y (latitude) before x (longitude) */
    struct sq_json *grid_mapping; /* CF grid mapping attributes; NULL: none is needed, or none is possible */
    char *note; /* NULL, or a line for the user: "UKV: …", "impossible projection (k0 = 0): x and y without a grid mapping"; sq_free */
    /* reduced grids: latitude and longitude of every point as auxiliary coordinates on `values`; NULL otherwise */
    double *point_latitudes, *point_longitudes;
};

int sq_grib_grid_axes(const struct sq_grib_grid *grid, struct sq_grib_axes *ret, struct squall_error *err) SQUALL_CHECK;
void sq_grib_axes_done(struct sq_grib_axes *axes);

/* cfgrib's GRIB_* attributes of the grid (GRIB_gridType, GRIB_Nx, GRIB_latitudeOfFirstGridPointInDegrees, …) into `attributes`. */
int sq_grib_grid_attributes(const struct sq_grib_grid *grid, struct sq_json *attributes, struct squall_error *err) SQUALL_CHECK;
/* The same, of rows that were put the other way round. SQUALL_ENOMEM. */
int sq_grib_grid_turn_attributes(struct sq_json *attributes) SQUALL_CHECK;

#endif
