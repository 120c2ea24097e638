/*
 * Print the grids of GRIB files as JSON, one line a field: the oracle tests in Python compare these with ecCodes and pyproj.
 *
 *     grib_grids [--points] FILE...       --points: all coordinate values; else the ends of each axis
 */
#include "base/json.h"
#include "base/memory.h"
#include "format/grib/grid.h"
#include "format/grib/scan.h"

#include <stdio.h>
#include <string.h>

static bool with_points;

static struct sq_json *numbers(const double *values, size_t count)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; i < count; i++)
        if ((with_points || i < 2 || i + 2 >= count) && sq_json_append(list, sq_json_new_double(values[i])))
            return NULL;
    return list;
}

static int add_axis(struct sq_json *list, const struct sq_grib_axis *axis)
{
    struct sq_json *o = sq_json_new_object();
    int status = sq_json_set_string(o, "name", axis->name) || sq_json_set_int(o, "length", (int64_t)axis->length) ||
                 (axis->values && sq_json_set(o, "values", numbers(axis->values, axis->length))) ||
                 (axis->attributes && sq_json_set(o, "attributes", sq_json_share(axis->attributes)));
    return sq_json_append(list, o) || status;
}

static int add_axes(struct sq_json *o, const struct sq_grib_axes *axes, size_t point_count)
{
    struct sq_json *list = sq_json_new_array();
    int status = 0;
    for (unsigned i = 0; i < axes->count; i++)
        status = status || add_axis(list, &axes->axis[i]);
    status = sq_json_set(o, "axes", list) || status;
    if (axes->grid_mapping)
        status = status || sq_json_set(o, "grid_mapping", sq_json_share(axes->grid_mapping));
    if (axes->note)
        status = status || sq_json_set_string(o, "note", axes->note);
    if (axes->point_latitudes)
        status = status || sq_json_set(o, "latitudes", numbers(axes->point_latitudes, point_count)) ||
                 sq_json_set(o, "longitudes", numbers(axes->point_longitudes, point_count));
    return status;
}

static int describe(const struct sq_grib_grid *grid, struct sq_json *o, struct squall_error *err)
{
    struct sq_grib_axes axes;
    struct sq_json *attributes = sq_json_new_object();
    int status = sq_json_set_string(o, "type", grid->type_name) || sq_json_set_int(o, "kind", grid->kind) ||
                 sq_json_set(o, "rectangular", sq_json_new_bool(grid->rectangular)) || sq_json_set_int(o, "columns", grid->columns) ||
                 sq_json_set_int(o, "rows", grid->rows) || sq_json_set_int(o, "points", (int64_t)grid->point_count) ||
                 sq_json_set_int(o, "scanning_mode", grid->scanning_mode) ||
                 sq_json_set(o, "northward", sq_json_new_bool(sq_grib_grid_rows_northward(grid))) ||
                 (grid->unsupported && sq_json_set_string(o, "unsupported", grid->unsupported));
    status = status || sq_grib_grid_attributes(grid, attributes, err);
    status = sq_json_set(o, "attributes", attributes) || status;
    if (status)
        return status;
    status = sq_grib_grid_axes(grid, &axes, err);
    if (status)
        return status;
    status = add_axes(o, &axes, grid->point_count);
    sq_grib_axes_done(&axes);
    return status;
}

static int print_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct sq_grib_grid grid;
    struct sq_json *o = sq_json_new_object();
    struct sq_text line = SQ_TEXT_INIT;
    const uint8_t *s1 = found->section[1];
    uint16_t centre = !s1 ? 0 : found->frame.edition == 1 ? s1[4] : (uint16_t)(s1[5] << 8 | s1[6]);
    int status = sq_json_set_string(o, "file", user) || sq_json_set_int(o, "offset", (int64_t)found->offset) ||
                 sq_json_set_int(o, "in_message", found->frame.in_message);
    struct squall_error grid_error = SQUALL_ERROR_INIT;
    int refused =
        sq_grib_grid_parse(found->frame.edition, centre, found->section[3], found->frame.section[3].size_bytes, &grid, &grid_error);
    if (!refused) {
        refused = describe(&grid, o, &grid_error);
        sq_grib_grid_done(&grid);
    }
    if (refused)
        status = status || sq_json_set_string(o, "error", grid_error.message);
    status = status || sq_json_write(o, false, &line, err);
    if (!status)
        puts(sq_text_string(&line));
    sq_text_done(&line);
    sq_json_free(o);
    return status;
}

static int print_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    (void)err;
    fprintf(stderr, "%s: at byte %llu: %s\n", (const char *)user, (unsigned long long)offset, what);
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--points") == 0) {
            with_points = true;
            continue;
        }
        struct squall_error err = SQUALL_ERROR_INIT;
        struct sq_source *source = NULL;
        struct sq_grib_scan_events events = {print_field, print_problem, argv[i]};
        int status = sq_source_open_file(argv[i], &source, &err);
        if (!status)
            status = sq_grib_scan(source, &events, &err);
        sq_source_close(source);
        if (status) {
            fprintf(stderr, "%s: %s\n", argv[i], err.message);
            return 1;
        }
    }
    return 0;
}
