/*
 * What the rest of the library knows of a grid: its shape, its name and whether two grids have the same points. Everything finer is
 * read again from the grid's own copy of the section, which is cheap and keeps one reading of the bytes (grid_definition.c).
 */
#include "format/grib/grid.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/grid_definition.h"
#include "format/grib/grid_lines.h"
#include "format/grib/grid_plane.h"

static bool has_rows(const struct sq_grid_definition *g)
{
    return !g->row_lengths && g->ni != 0 && g->nj != 0 && g->ni != SQ_GRID_COUNT_MISSING && g->nj != SQ_GRID_COUNT_MISSING;
}

/* Staggered rows (flag table 3.4, bits 5 to 8): the points are not where the corners alone would put them. */
static bool is_staggered(const struct sq_grid_definition *g)
{
    return g->scanning_mode & 0x0f;
}

int sq_grib_grid_parse(uint8_t edition, uint16_t centre, const uint8_t *section, size_t size, struct sq_grib_grid *ret,
                       struct squall_error *err)
{
    struct sq_grid_definition g;
    SQ_TRY(sq_grid_definition_read(edition, centre, section, size, &g, err));
    if (size > UINT32_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "grid description of %zu bytes", size);
    bool described = g.kind != SQ_GRID_OTHER && !g.row_lengths;
    if (described && !has_rows(&g))
        return sq_error(err, SQUALL_ECORRUPT, "grid description (%s): %u × %u points", g.type_name, g.ni, g.nj);

    uint64_t in_rows = has_rows(&g) ? (uint64_t)g.ni * g.nj : 0;
    if (edition == 1 && g.row_lengths)
        g.point_count = sq_grid_reduced_of(&g).point_count;
    else if (edition == 1 && in_rows)
        g.point_count = in_rows;

    struct sq_grib_grid grid = {
        .kind = g.kind,
        .type_name = g.type_name,
        .unsupported = g.unsupported,
        .rectangular = in_rows != 0 && in_rows == g.point_count,
        .point_count = g.point_count,
        .scanning_mode = g.scanning_mode,
        .section_bytes = (uint32_t)size,
        .edition = edition,
        .centre = centre,
    };
    if ((described && !grid.rectangular) || is_staggered(&g))
        grid.kind = SQ_GRID_OTHER;
    if (grid.rectangular) {
        grid.columns = g.ni;
        grid.rows = g.nj;
    }
    grid.section = sq_alloc(size ? size : 1, 1);
    if (!grid.section)
        return sq_error_memory(err, size);
    if (size)
        memcpy(grid.section, section, size);
    *ret = grid;
    return 0;
}

void sq_grib_grid_done(struct sq_grib_grid *grid)
{
    if (!grid)
        return;
    sq_free(grid->section);
    *grid = (struct sq_grib_grid){0};
}

/* Parsing has accepted these bytes; grids whose description and data disagree have become kind OTHER meanwhile. */
void sq_grid_definition_of(const struct sq_grib_grid *grid, struct sq_grid_definition *ret)
{
    int status = sq_grid_definition_read(grid->edition, grid->centre, grid->section, grid->section_bytes, ret, NULL);
    assert(status == 0);
    (void)status;
    ret->kind = grid->kind;
    ret->point_count = grid->point_count;
}

/* ---- the same points? ---- */

static bool same_ends(const struct sq_grid_definition *a, const struct sq_grid_line *la, const struct sq_grid_definition *b,
                      const struct sq_grid_line *lb)
{
    double first_a = sq_grid_line_at(a, la, 0), last_a = sq_grid_line_at(a, la, la->count - 1);
    double first_b = sq_grid_line_at(b, lb, 0), last_b = sq_grid_line_at(b, lb, lb->count - 1);
    return fmin(first_a, last_a) == fmin(first_b, last_b) && fmax(first_a, last_a) == fmax(first_b, last_b);
}

static bool same_area(const struct sq_grid_definition *a, const struct sq_grid_definition *b)
{
    struct sq_grid_line latitudes_a = sq_grid_latitudes(a), latitudes_b = sq_grid_latitudes(b);
    struct sq_grid_line longitudes_a = sq_grid_longitudes(a), longitudes_b = sq_grid_longitudes(b);
    return same_ends(a, &latitudes_a, b, &latitudes_b) && same_ends(a, &longitudes_a, b, &longitudes_b);
}

static bool same_rotation(const struct sq_grid_definition *a, const struct sq_grid_definition *b)
{
    return a->south_pole_latitude == b->south_pole_latitude && a->south_pole_longitude == b->south_pole_longitude &&
           a->rotation_angle == b->rotation_angle;
}

/* Decode leaves the points of reduced grids in the file's order, so that here the order counts. */
static bool same_reduced(const struct sq_grid_definition *a, const struct sq_grid_definition *b)
{
    return a->parallels == b->parallels && a->scanning_mode == b->scanning_mode && a->row_count == b->row_count &&
           a->row_length_bytes == b->row_length_bytes &&
           memcmp(a->row_lengths, b->row_lengths, (size_t)a->row_count * a->row_length_bytes) == 0 &&
           sq_grid_degrees(a, a->latitude_first) == sq_grid_degrees(b, b->latitude_first) &&
           sq_grid_degrees(a, a->longitude_first) == sq_grid_degrees(b, b->longitude_first) &&
           sq_grid_degrees(a, a->latitude_last) == sq_grid_degrees(b, b->latitude_last) &&
           sq_grid_degrees(a, a->longitude_last) == sq_grid_degrees(b, b->longitude_last);
}

bool sq_grib_grid_same(const struct sq_grib_grid *a, const struct sq_grib_grid *b)
{
    if (a->kind != b->kind || strcmp(a->type_name, b->type_name) != 0 || a->rectangular != b->rectangular || a->columns != b->columns ||
        a->rows != b->rows || a->point_count != b->point_count)
        return false;
    bool same_reading = a->edition == b->edition && (a->centre == b->centre || a->kind != SQ_GRID_TRANSVERSE_MERCATOR);
    if (same_reading && a->section_bytes == b->section_bytes && memcmp(a->section, b->section, a->section_bytes) == 0)
        return true;

    struct sq_grid_definition da, db;
    sq_grid_definition_of(a, &da);
    sq_grid_definition_of(b, &db);
    switch (a->kind) {
    case SQ_GRID_REGULAR_LL:
        return same_area(&da, &db);
    case SQ_GRID_REGULAR_GG:
        return da.parallels == db.parallels && same_area(&da, &db);
    case SQ_GRID_ROTATED_LL:
        return same_rotation(&da, &db) && same_area(&da, &db);
    case SQ_GRID_REDUCED_GG:
    case SQ_GRID_REDUCED_LL:
        return same_reduced(&da, &db);
    case SQ_GRID_OTHER:
        return false;
    default:
        return sq_grid_plane_same(&da, a->centre, &db, b->centre);
    }
}

bool sq_grib_grid_rows_northward(const struct sq_grib_grid *grid)
{
    struct sq_grid_definition g;
    sq_grid_definition_of(grid, &g);
    switch (grid->kind) {
    case SQ_GRID_REGULAR_LL:
    case SQ_GRID_ROTATED_LL:
    case SQ_GRID_REGULAR_GG:
    case SQ_GRID_REDUCED_LL:
    case SQ_GRID_REDUCED_GG:
        if (g.latitude_first != g.latitude_last)
            return g.latitude_first < g.latitude_last;
        break;
    case SQ_GRID_TRANSVERSE_MERCATOR:
        if (g.y_first_m != g.y_last_m)
            return g.y_first_m < g.y_last_m;
        break;
    default:
        break;
    }
    return g.scanning_mode & SQ_GRID_J_POSITIVE;
}
