/* cfgrib's GRIB_* attributes of a grid: ecCodes' keys under their names, with a table that says which type of grid has which. */
#include "format/grib/grid.h"

#include <stdio.h>
#include <string.h>

#include "base/error_internal.h"
#include "format/grib/grid_definition.h"
#include "format/grib/grid_lines.h"

enum key {
    NX,
    NY,
    NI,
    NJ,
    PARALLELS,
    I_STEP,
    J_STEP,
    I_NEGATIVE,
    J_POSITIVE,
    J_CONSECUTIVE,
    LATITUDE_FIRST,
    LATITUDE_LAST,
    LONGITUDE_FIRST,
    LONGITUDE_LAST,
    SOUTH_POLE_LATITUDE,
    SOUTH_POLE_LONGITUDE,
    ROTATION,
    TRUE_LATITUDE,
    CENTRAL_LONGITUDE,
    PARALLEL_FIRST,
    PARALLEL_SECOND,
    DX,
    DY,
    KEY_COUNT
};

static const struct {
    const char *name;
    bool is_integer;
} keys[KEY_COUNT] = {
    [NX] = {"GRIB_Nx", true},
    [NY] = {"GRIB_Ny", true},
    [NI] = {"GRIB_Ni", true},
    [NJ] = {"GRIB_Nj", true},
    [PARALLELS] = {"GRIB_N", true},
    [I_STEP] = {"GRIB_iDirectionIncrementInDegrees", false},
    [J_STEP] = {"GRIB_jDirectionIncrementInDegrees", false},
    [I_NEGATIVE] = {"GRIB_iScansNegatively", true},
    [J_POSITIVE] = {"GRIB_jScansPositively", true},
    [J_CONSECUTIVE] = {"GRIB_jPointsAreConsecutive", true},
    [LATITUDE_FIRST] = {"GRIB_latitudeOfFirstGridPointInDegrees", false},
    [LATITUDE_LAST] = {"GRIB_latitudeOfLastGridPointInDegrees", false},
    [LONGITUDE_FIRST] = {"GRIB_longitudeOfFirstGridPointInDegrees", false},
    [LONGITUDE_LAST] = {"GRIB_longitudeOfLastGridPointInDegrees", false},
    [SOUTH_POLE_LATITUDE] = {"GRIB_latitudeOfSouthernPoleInDegrees", false},
    [SOUTH_POLE_LONGITUDE] = {"GRIB_longitudeOfSouthernPoleInDegrees", false},
    [ROTATION] = {"GRIB_angleOfRotationInDegrees", false},
    [TRUE_LATITUDE] = {"GRIB_LaDInDegrees", false},
    [CENTRAL_LONGITUDE] = {"GRIB_LoVInDegrees", false},
    [PARALLEL_FIRST] = {"GRIB_Latin1InDegrees", false},
    [PARALLEL_SECOND] = {"GRIB_Latin2InDegrees", false},
    [DX] = {"GRIB_DxInMetres", false},
    [DY] = {"GRIB_DyInMetres", false},
};

static const struct {
    const char *type_name;
    uint8_t count;
    uint8_t keys[16];
} types[] = {
    {"regular_ll",
     11,
     {NX, NY, I_STEP, J_STEP, I_NEGATIVE, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LATITUDE_LAST, LONGITUDE_FIRST, LONGITUDE_LAST}},
    {"rotated_ll",
     14,
     {NX, NY, I_STEP, J_STEP, I_NEGATIVE, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LATITUDE_LAST, LONGITUDE_FIRST, LONGITUDE_LAST,
      SOUTH_POLE_LATITUDE, SOUTH_POLE_LONGITUDE, ROTATION}},
    {"reduced_ll", 6, {NY, J_STEP, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LATITUDE_LAST}},
    {"regular_gg",
     11,
     {PARALLELS, NI, NJ, I_STEP, I_NEGATIVE, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LATITUDE_LAST, LONGITUDE_FIRST, LONGITUDE_LAST}},
    {"rotated_gg",
     14,
     {NX, NY, PARALLELS, I_STEP, I_NEGATIVE, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LATITUDE_LAST, LONGITUDE_FIRST, LONGITUDE_LAST,
      SOUTH_POLE_LATITUDE, SOUTH_POLE_LONGITUDE, ROTATION}},
    {"lambert",
     15,
     {NX, NY, DX, DY, I_NEGATIVE, J_POSITIVE, J_CONSECUTIVE, LATITUDE_FIRST, LONGITUDE_FIRST, TRUE_LATITUDE, CENTRAL_LONGITUDE,
      PARALLEL_FIRST, PARALLEL_SECOND, SOUTH_POLE_LATITUDE, SOUTH_POLE_LONGITUDE}},
    {"reduced_gg", 1, {PARALLELS}},
};

/* Where the header gives no increment, the distance of its corners does. */
static bool step_of(const struct sq_grid_definition *g, bool along_i, double *ret)
{
    int64_t step = along_i ? g->i_step : g->j_step;
    uint32_t count = along_i ? g->ni : g->nj;
    if (step != SQ_GRID_STEP_MISSING) {
        *ret = sq_grid_degrees(g, step);
        return true;
    }
    if (count < 2 || count == SQ_GRID_COUNT_MISSING)
        return false;
    struct sq_grid_line line = along_i ? sq_grid_longitudes(g) : sq_grid_latitudes(g);
    double distance = sq_grid_line_at(g, &line, 1) - sq_grid_line_at(g, &line, 0);
    *ret = distance < 0 ? -distance : distance;
    return true;
}

/* false: the header does not have it */
static bool value_of(const struct sq_grid_definition *g, enum key key, double *ret)
{
    switch (key) {
    case NX:
    case NI:
        *ret = g->ni;
        return g->ni != SQ_GRID_COUNT_MISSING;
    case NY:
    case NJ:
        *ret = g->nj;
        return g->nj != SQ_GRID_COUNT_MISSING;
    case PARALLELS:
        *ret = g->parallels;
        return true;
    case I_STEP:
    case J_STEP:
        return step_of(g, key == I_STEP, ret);
    case I_NEGATIVE:
        *ret = (g->scanning_mode & SQ_GRID_I_NEGATIVE) != 0;
        return true;
    case J_POSITIVE:
        *ret = (g->scanning_mode & SQ_GRID_J_POSITIVE) != 0;
        return true;
    case J_CONSECUTIVE:
        *ret = (g->scanning_mode & SQ_GRID_J_CONSECUTIVE) != 0;
        return true;
    case LATITUDE_FIRST:
        *ret = sq_grid_degrees(g, g->latitude_first);
        return true;
    case LATITUDE_LAST:
        *ret = sq_grid_degrees(g, g->latitude_last);
        return true;
    case LONGITUDE_FIRST:
        *ret = sq_grid_degrees(g, g->longitude_first);
        return true;
    case LONGITUDE_LAST:
        *ret = sq_grid_degrees(g, g->longitude_last);
        return true;
    case SOUTH_POLE_LATITUDE:
        *ret = g->south_pole_latitude;
        return true;
    case SOUTH_POLE_LONGITUDE:
        *ret = g->south_pole_longitude;
        return true;
    case ROTATION:
        *ret = g->rotation_angle;
        return true;
    case TRUE_LATITUDE:
        *ret = g->true_latitude;
        return true;
    case CENTRAL_LONGITUDE:
        *ret = g->central_longitude;
        return true;
    case PARALLEL_FIRST:
        *ret = g->parallel_first;
        return true;
    case PARALLEL_SECOND:
        *ret = g->parallel_second;
        return true;
    case DX:
        *ret = g->dx_m;
        return true;
    case DY:
        *ret = g->dy_m;
        return true;
    default:
        return false;
    }
}

static int set_keys(const struct sq_grid_definition *g, const uint8_t *list, unsigned count, struct sq_json *attributes)
{
    for (unsigned i = 0; i < count; i++) {
        double value;
        if (!value_of(g, list[i], &value))
            continue;
        if (keys[list[i]].is_integer)
            SQ_TRY(sq_json_set_int(attributes, keys[list[i]].name, (int64_t)value));
        else
            SQ_TRY(sq_json_set_double(attributes, keys[list[i]].name, value));
    }
    return 0;
}

static int set_row_lengths(const struct sq_grid_definition *g, struct sq_json *attributes)
{
    struct sq_json *list = sq_json_new_array();
    for (uint32_t n = 0; list && n < g->row_count; n++) {
        if (sq_json_append(list, sq_json_new_int(sq_grid_row_length(g, n)))) {
            sq_json_free(list);
            list = NULL;
        }
    }
    return sq_json_set(attributes, "GRIB_pl", list);
}

static int set_unstructured(const struct sq_grid_definition *g, struct sq_json *attributes)
{
    char uuid[33];
    for (int i = 0; i < 16; i++)
        snprintf(uuid + 2 * i, 3, "%02x", g->grid_uuid[i]);
    SQ_TRY(sq_json_set_int(attributes, "GRIB_numberOfGridUsed", g->grid_number_used));
    SQ_TRY(sq_json_set_int(attributes, "GRIB_numberOfGridInReference", g->grid_in_reference));
    return sq_json_set_string(attributes, "GRIB_uuidOfHGrid", uuid);
}

static int set_attributes(const struct sq_grib_grid *grid, struct sq_json *attributes)
{
    struct sq_grid_definition g;
    sq_grid_definition_of(grid, &g);
    SQ_TRY(sq_json_set_string(attributes, "GRIB_gridType", g.type_name));
    if (g.title)
        SQ_TRY(sq_json_set_string(attributes, "GRIB_gridDefinitionDescription", g.title));
    SQ_TRY(sq_json_set_int(attributes, "GRIB_numberOfPoints", (int64_t)grid->point_count));
    if (g.has_resolution_flags)
        SQ_TRY(sq_json_set_int(attributes, "GRIB_uvRelativeToGrid", (g.resolution_flags & SQ_GRID_UV_RELATIVE_TO_GRID) != 0));
    if (grid->edition == 1)
        SQ_TRY(sq_json_set_int(attributes, "GRIB_NV", g.vertical_count));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type_name, g.type_name) == 0)
            SQ_TRY(set_keys(&g, types[i].keys, types[i].count, attributes));
    if (grid->kind == SQ_GRID_REDUCED_GG)
        SQ_TRY(set_row_lengths(&g, attributes));
    return g.grid_uuid ? set_unstructured(&g, attributes) : 0;
}

int sq_grib_grid_attributes(const struct sq_grib_grid *grid, struct sq_json *attributes, struct squall_error *err)
{
    return set_attributes(grid, attributes) ? sq_error_memory(err, 0) : 0;
}

int sq_grib_grid_turn_attributes(struct sq_json *attributes)
{
    static const char POSITIVE[] = "GRIB_jScansPositively", FIRST[] = "GRIB_latitudeOfFirstGridPointInDegrees",
                      LAST[] = "GRIB_latitudeOfLastGridPointInDegrees";
    int64_t positive;
    if (sq_json_int(sq_json_get(attributes, POSITIVE), &positive))
        SQ_TRY(sq_json_set_int(attributes, POSITIVE, !positive));
    if (!sq_json_get(attributes, FIRST) || !sq_json_get(attributes, LAST))
        return 0;
    struct sq_json *first = sq_json_copy(sq_json_get(attributes, FIRST)), *last = sq_json_copy(sq_json_get(attributes, LAST));
    int status = sq_json_set(attributes, FIRST, last); /* each is the object's own once handed over, whatever comes of it */
    int other = sq_json_set(attributes, LAST, first);
    return status ? status : other;
}
