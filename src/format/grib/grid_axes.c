/* Coordinates of a grid: values of its axes, or of each point where rows differ in length, with their CF attributes. */
#include "format/grib/gaussian.h"
#include "format/grib/grid.h"
#include "format/grib/grid_lines.h"
#include "format/grib/grid_mapping.h"
#include "format/grib/grid_plane.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error_internal.h"
#include "base/memory.h"

/* What a header may ask for; the grids of today's finest models have a tenth of it. */
enum { AXIS_LENGTH_MAX = 1 << 24, POINT_COUNT_MAX = 1 << 26 };

enum direction { LATITUDE, LONGITUDE, ROTATED_LATITUDE, ROTATED_LONGITUDE, PROJECTED_Y, PROJECTED_X };

static const struct {
    const char *name, *standard_name, *long_name, *units, *axis;
} directions[] = {
    [LATITUDE] = {"latitude", "latitude", "latitude", "degrees_north", "Y"},
    [LONGITUDE] = {"longitude", "longitude", "longitude", "degrees_east", "X"},
    [ROTATED_LATITUDE] = {"y", "grid_latitude", "latitude in rotated pole grid", "degrees", "Y"},
    [ROTATED_LONGITUDE] = {"x", "grid_longitude", "longitude in rotated pole grid", "degrees", "X"},
    [PROJECTED_Y] = {"y", "projection_y_coordinate", "y coordinate of projection", "m", "Y"},
    [PROJECTED_X] = {"x", "projection_x_coordinate", "x coordinate of projection", "m", "X"},
};

/* An axis with room for its values: the caller fills them. */
static int add_axis(struct sq_grib_axes *axes, enum direction d, size_t length, struct squall_error *err)
{
    if (length > AXIS_LENGTH_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "a grid with %zu points along %s (at most %d)", length, directions[d].name,
                        AXIS_LENGTH_MAX);
    struct sq_grib_axis *axis = &axes->axis[axes->count++];
    snprintf(axis->name, sizeof axis->name, "%s", directions[d].name);
    axis->values = sq_alloc(length, sizeof *axis->values);
    axis->attributes = sq_json_new_object();
    if (!axis->values || !axis->attributes)
        return sq_error_memory(err, length * sizeof *axis->values);
    if (sq_json_set_string(axis->attributes, "standard_name", directions[d].standard_name) ||
        sq_json_set_string(axis->attributes, "long_name", directions[d].long_name) ||
        sq_json_set_string(axis->attributes, "units", directions[d].units) ||
        sq_json_set_string(axis->attributes, "axis", directions[d].axis))
        return sq_error_memory(err, 0);
    axis->length = length;
    return 0;
}

/* A dimension of which only the length is known */
static void add_bare_axis(struct sq_grib_axes *axes, const char *name, size_t length)
{
    struct sq_grib_axis *axis = &axes->axis[axes->count++];
    snprintf(axis->name, sizeof axis->name, "%s", name);
    axis->length = length;
}

static void drop_values(struct sq_grib_axis *axis)
{
    sq_free(axis->values);
    sq_json_free(axis->attributes);
    axis->values = NULL;
    axis->attributes = NULL;
}

__attribute__((format(printf, 3, 4))) static int note(struct sq_grib_axes *axes, struct squall_error *err, const char *format, ...)
{
    va_list arguments;
    char text[256];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    axes->note = sq_strdup(text);
    return axes->note ? 0 : sq_error_memory(err, sizeof text);
}

static void fill_line(const struct sq_grid_definition *g, const struct sq_grid_line *line, size_t count, double *values)
{
    for (size_t k = 0; k < count; k++)
        values[k] = sq_grid_line_at(g, line, (uint32_t)k);
}

static void fill_steps(double first, double step, const struct sq_grib_axis *axis)
{
    for (size_t k = 0; k < axis->length; k++)
        axis->values[k] = first + (double)k * step;
}

static int latlon_axes(const struct sq_grid_definition *g, struct sq_grib_axes *axes, struct squall_error *err)
{
    bool rotated = g->kind == SQ_GRID_ROTATED_LL;
    struct sq_grid_line latitudes = sq_grid_latitudes(g), longitudes = sq_grid_longitudes(g);
    SQ_TRY(add_axis(axes, rotated ? ROTATED_LATITUDE : LATITUDE, g->nj, err));
    SQ_TRY(add_axis(axes, rotated ? ROTATED_LONGITUDE : LONGITUDE, g->ni, err));
    fill_line(g, &latitudes, axes->axis[0].length, axes->axis[0].values);
    fill_line(g, &longitudes, axes->axis[1].length, axes->axis[1].values);
    return rotated ? sq_grid_mapping_rotated(g, &axes->grid_mapping, err) : 0;
}

/* The Gaussian latitudes of nj rows in the file's order; false where the header's first latitude is on none of them. */
static bool gaussian_rows(const struct sq_grid_definition *g, double *ret)
{
    uint32_t parallels = g->parallels, row;
    bool northward = g->latitude_first < g->latitude_last;
    if (g->latitude_first == g->latitude_last)
        northward = g->scanning_mode & SQ_GRID_J_POSITIVE;
    if (parallels == 0 || parallels > SQ_GAUSSIAN_PARALLELS_MAX || g->nj > 2 * parallels ||
        !sq_gaussian_row(parallels, sq_grid_degrees(g, g->latitude_first), &row))
        return false;
    if (northward) /* the rows mirrored at the equator, then with the opposite sign */
        row = 2 * parallels - 1 - row;
    if (g->nj > 2 * parallels - row)
        return false;
    sq_gaussian_latitudes(parallels, row, g->nj, ret);
    for (uint32_t k = 0; northward && k < g->nj; k++)
        ret[k] = -ret[k];
    return true;
}

static int no_gaussian(const struct sq_grid_definition *g, struct sq_grib_axes *axes, struct squall_error *err)
{
    return note(axes, err, "Gaussian grid N%u: no %u rows of it begin at latitude %g; latitudes are left out", g->parallels, g->nj,
                sq_grid_degrees(g, g->latitude_first));
}

static int gaussian_axes(const struct sq_grid_definition *g, struct sq_grib_axes *axes, struct squall_error *err)
{
    struct sq_grid_line longitudes = sq_grid_longitudes(g);
    SQ_TRY(add_axis(axes, LATITUDE, g->nj, err));
    SQ_TRY(add_axis(axes, LONGITUDE, g->ni, err));
    fill_line(g, &longitudes, axes->axis[1].length, axes->axis[1].values);
    if (axes->axis[0].length && gaussian_rows(g, axes->axis[0].values))
        return 0;
    drop_values(&axes->axis[0]);
    return no_gaussian(g, axes, err);
}

static int projected_axes(const struct sq_grid_definition *g, uint16_t centre, struct sq_grib_axes *axes, struct squall_error *err)
{
    struct sq_grid_projection p;
    struct sq_grid_plane plane;
    sq_grid_projection_of(g, centre, &p);
    sq_grid_plane_of(g, &p, &plane);
    SQ_TRY(add_axis(axes, PROJECTED_Y, g->nj, err));
    SQ_TRY(add_axis(axes, PROJECTED_X, g->ni, err));
    fill_steps(plane.y_first, plane.dy, &axes->axis[0]);
    fill_steps(plane.x_first, plane.dx, &axes->axis[1]);
    if (p.impossible)
        return note(axes, err, "%s: impossible projection (%s): x and y without a grid mapping", g->type_name, p.impossible);
    if (!plane.absolute)
        return note(axes, err, "%s: the first point is outside of the projection: x and y count from it, without a grid mapping",
                    g->type_name);
    if (p.british_national_grid)
        SQ_TRY(note(axes, err,
                    "UKV: British National Grid (EPSG:27700), x and y from the corner coordinates; the header's projection is wrong"));
    if (p.earth_assumed)
        SQ_TRY(note(axes, err, "%s: the header gives no axes of the Earth; a sphere of %.0f m is assumed", g->type_name, p.major_m));
    return sq_grid_mapping_projected(&p, &axes->grid_mapping, err);
}

/* ---- reduced grids: a latitude and a longitude for every point, in the file's order ---- */

static bool reduced_latitudes(const struct sq_grid_definition *g, double *ret)
{
    if (g->kind == SQ_GRID_REDUCED_GG)
        return gaussian_rows(g, ret);
    struct sq_grid_line line = sq_grid_latitudes(g);
    fill_line(g, &line, g->row_count, ret);
    return true;
}

static void fill_points(const struct sq_grid_definition *g, const struct sq_grid_reduced *r, const double *row_latitudes,
                        struct sq_grib_axes *axes)
{
    size_t at = 0;
    for (uint32_t n = 0; n < g->row_count; n++) {
        struct sq_grid_reduced_row row = sq_grid_reduced_row(g, r, n);
        bool backwards = g->scanning_mode & SQ_GRID_I_NEGATIVE;
        if (n % 2 && g->scanning_mode & SQ_GRID_BOUSTROPHEDON)
            backwards = !backwards;
        for (uint32_t k = 0; k < row.count; k++, at++) {
            axes->point_latitudes[at] = row_latitudes[n];
            axes->point_longitudes[at] = row.first + row.step * (backwards ? row.count - 1 - k : k);
        }
    }
}

static int reduced_axes(const struct sq_grid_definition *g, struct sq_grib_axes *axes, struct squall_error *err)
{
    add_bare_axis(axes, "values", g->point_count);
    struct sq_grid_reduced r = sq_grid_reduced_of(g);
    if (r.point_count != g->point_count)
        return note(axes, err, "%s: rows of %llu points for %llu values; coordinates are left out", g->type_name,
                    (unsigned long long)r.point_count, (unsigned long long)g->point_count);
    if (g->point_count > POINT_COUNT_MAX)
        return note(axes, err, "%s: coordinates of %llu points are left out (at most %d)", g->type_name, (unsigned long long)g->point_count,
                    POINT_COUNT_MAX);
    SQ_CLEANUP_FREE double *row_latitudes = sq_alloc(g->row_count, sizeof *row_latitudes);
    if (!row_latitudes)
        return sq_error_memory(err, g->row_count * sizeof *row_latitudes);
    if (!reduced_latitudes(g, row_latitudes))
        return no_gaussian(g, axes, err);
    axes->point_latitudes = sq_alloc(g->point_count, sizeof(double));
    axes->point_longitudes = sq_alloc(g->point_count, sizeof(double));
    if (!axes->point_latitudes || !axes->point_longitudes)
        return sq_error_memory(err, g->point_count * sizeof(double));
    fill_points(g, &r, row_latitudes, axes);
    return 0;
}

static int other_axes(const struct sq_grib_grid *grid, const struct sq_grid_definition *g, struct sq_grib_axes *axes,
                      struct squall_error *err)
{
    if (grid->rectangular) {
        add_bare_axis(axes, "y", grid->rows);
        add_bare_axis(axes, "x", grid->columns);
    } else {
        add_bare_axis(axes, "values", grid->point_count);
    }
    uint64_t in_rows = (uint64_t)g->ni * g->nj;
    if (!grid->rectangular && !g->row_lengths && g->ni && g->nj && in_rows != grid->point_count)
        return note(axes, err, "%s: the header's %u × %u points are not its %llu values; coordinates are left out", g->type_name, g->ni,
                    g->nj, (unsigned long long)grid->point_count);
    if (grid->unsupported)
        return 0;
    return note(axes, err, "%s: no coordinates for this type of grid yet", g->type_name);
}

static int make_axes(const struct sq_grib_grid *grid, struct sq_grib_axes *axes, struct squall_error *err)
{
    struct sq_grid_definition g;
    sq_grid_definition_of(grid, &g);
    switch (grid->kind) {
    case SQ_GRID_REGULAR_LL:
    case SQ_GRID_ROTATED_LL:
        return latlon_axes(&g, axes, err);
    case SQ_GRID_REGULAR_GG:
        return gaussian_axes(&g, axes, err);
    case SQ_GRID_REDUCED_GG:
    case SQ_GRID_REDUCED_LL:
        return reduced_axes(&g, axes, err);
    case SQ_GRID_MERCATOR:
    case SQ_GRID_POLAR_STEREOGRAPHIC:
    case SQ_GRID_LAMBERT:
    case SQ_GRID_TRANSVERSE_MERCATOR:
        return projected_axes(&g, grid->centre, axes, err);
    default:
        return other_axes(grid, &g, axes, err);
    }
}

int sq_grib_grid_axes(const struct sq_grib_grid *grid, struct sq_grib_axes *ret, struct squall_error *err)
{
    struct sq_grib_axes axes = {0};
    int status = make_axes(grid, &axes, err);
    if (status) {
        sq_grib_axes_done(&axes);
        return status;
    }
    *ret = axes;
    return 0;
}

void sq_grib_axes_done(struct sq_grib_axes *axes)
{
    if (!axes)
        return;
    for (unsigned i = 0; i < axes->count; i++)
        drop_values(&axes->axis[i]);
    sq_json_free(axes->grid_mapping);
    sq_free(axes->note);
    sq_free(axes->point_latitudes);
    sq_free(axes->point_longitudes);
    *axes = (struct sq_grib_axes){0};
}
