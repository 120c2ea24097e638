/*
 * Print the grids of GRIB files as JSON, a line for each field whose grid is not that of the field before: the tests in Python compare
 * them with ecCodes and pyproj.
 *
 *     grib_grids FILE...
 */
#include "base/json.h"
#include "format/grib/grid.h"
#include "format/grib/scan.h"

#include <stdio.h>

struct file {
    const char *path;
    unsigned field; /* from 0 */
    struct sq_grib_grid last;
};

static struct sq_json *numbers(const double *values, size_t count)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; i < count; i++)
        if (sq_json_append(list, sq_json_new_double(values[i])))
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

static bool same_as_last(const struct file *file, const struct sq_grib_grid *grid)
{
    return file->last.section && file->last.scanning_mode == grid->scanning_mode && sq_grib_grid_same(&file->last, grid);
}

static int print_line(const struct file *file, const struct sq_grib_grid *grid, const struct squall_error *refusal,
                      struct squall_error *err)
{
    struct sq_json *o = sq_json_new_object();
    struct sq_text line = SQ_TEXT_INIT;
    struct squall_error refused = SQUALL_ERROR_INIT;
    int status = sq_json_set_string(o, "file", file->path) || sq_json_set_int(o, "field", file->field);
    if (refusal)
        status = status || sq_json_set_string(o, "error", refusal->message);
    else if (describe(grid, o, &refused))
        status = status || sq_json_set_string(o, "error", refused.message);
    status = status || sq_json_write(o, false, &line, err);
    if (!status)
        puts(sq_text_string(&line));
    sq_text_done(&line);
    sq_json_free(o);
    return status;
}

static int take_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct file *file = user;
    struct sq_grib_grid grid;
    struct squall_error refusal = SQUALL_ERROR_INIT;
    const uint8_t *s1 = found->section[1];
    uint16_t centre = !s1 ? 0 : found->frame.edition == 1 ? s1[4] : (uint16_t)(s1[5] << 8 | s1[6]);
    int status = 0;
    if (sq_grib_grid_parse(found->frame.edition, centre, found->section[3], found->frame.section[3].size_bytes, &grid, &refusal)) {
        status = print_line(file, NULL, &refusal, err);
    } else if (same_as_last(file, &grid)) {
        sq_grib_grid_done(&grid);
    } else {
        status = print_line(file, &grid, NULL, err);
        sq_grib_grid_done(&file->last);
        file->last = grid;
    }
    file->field++;
    return status;
}

static int print_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    (void)err;
    const struct file *file = user;
    fprintf(stderr, "%s: at byte %llu: %s\n", file->path, (unsigned long long)offset, what);
    return 0;
}

static int print_file(const char *path, struct squall_error *err)
{
    struct file file = {.path = path};
    struct sq_source *source = NULL;
    struct sq_grib_scan_events events = {take_field, print_problem, &file};
    int status = sq_source_open_file(path, &source, err);
    if (!status)
        status = sq_grib_scan(source, &events, err);
    sq_source_close(source);
    sq_grib_grid_done(&file.last);
    return status;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        if (print_file(argv[i], &err)) {
            fprintf(stderr, "%s: %s\n", argv[i], err.message);
            return 1;
        }
    }
    return 0;
}
