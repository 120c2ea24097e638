/* See grid.h. */
#include "grid.h"

#include "attributes.h"
#include "coordinate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct squall_error *err)
{
    *err = (struct squall_error){SQUALL_ENOMEM, 0, "out of memory"};
    return SQUALL_ENOMEM;
}

static int read_some(squall_array *a, uint64_t start, uint64_t count, double *dst, struct squall_error *err)
{
    struct squall_selection box = squall_selection_all(a);
    box.start[0] = start;
    box.count[0] = count;
    return squall_array_read(a, &box, dst, NULL, err);
}

/* Along a line all values are read, of points the first and the last. */
static int read_axis(struct grid *g, squall_array *a, struct squall_error *err)
{
    struct squall_array_info info = squall_array_info(a);
    if (info.rank != 1 || info.shape[0] == 0 || info.type != SQUALL_FLOAT64 || info.unsupported)
        return 0;
    struct axis axis = {.name = info.name, .spacing = (double)NAN};
    uint64_t length = info.shape[0];
    attribute_text(info.attributes, "units", axis.units, sizeof axis.units);
    int status;
    if (g->rank == 1) {
        status = read_some(a, 0, 1, &axis.first, err);
        if (!status)
            status = read_some(a, length - 1, 1, &axis.last, err);
    } else {
        double *values = malloc(length * sizeof *values);
        status = values ? read_some(a, 0, length, values, err) : no_memory(err);
        if (!status) {
            axis.first = values[0];
            axis.last = values[length - 1];
            axis.spacing = even_spacing(values, length);
        }
        free(values);
    }
    if (!status)
        g->axes[g->axis_count++] = axis;
    return status;
}

static int add_axis(struct grid_list *list, struct grid *g, squall_array *a, struct squall_error *err)
{
    struct squall_error why = SQUALL_ERROR_INIT;
    int status = read_axis(g, a, &why);
    if (status == SQUALL_ENOMEM || status == SQUALL_ECANCELLED) {
        *err = why;
        return status;
    }
    if (status && !list->problem.message[0])
        list->problem = why;
    return 0;
}

/* The coordinates of a dimension's points: those that lie along it and say by their standard name that they are. */
static int add_point_axes(struct grid_list *list, squall_dataset *ds, struct grid *g, struct squall_error *err)
{
    size_t count = squall_dataset_info(ds).array_count;
    int status = 0;
    for (size_t i = 0; i < count && !status && g->axis_count < 2; i++) {
        squall_array *a = squall_dataset_array_at(ds, i);
        struct squall_array_info info = squall_array_info(a);
        char name[GRID_TEXT_BYTES];
        if (info.rank != 1 || strcmp(info.dims[0], g->dims[0]) != 0)
            continue;
        attribute_text(info.attributes, "standard_name", name, sizeof name);
        if (!strcmp(name, "latitude") || !strcmp(name, "longitude"))
            status = add_axis(list, g, a, err);
    }
    return status;
}

/* A WKT of either version ends with the code of the whole: ID["EPSG",27700]] or AUTHORITY["EPSG","27700"]]. 0: it does not. */
static unsigned epsg_code(const char *wkt)
{
    const char *last = NULL;
    for (const char *p = wkt; (p = strstr(p, "[\"EPSG\",")); p++)
        last = p;
    if (!last)
        return 0;
    last += strlen("[\"EPSG\",");
    last += *last == '"';
    char *end;
    unsigned long code = strtoul(last, &end, 10);
    end += *end == '"';
    return strcmp(end, "]]") == 0 && code < 1000000 ? (unsigned)code : 0;
}

static void find_crs(squall_dataset *ds, const char *attributes, struct grid *g)
{
    char name[GRID_TEXT_BYTES];
    squall_array *mapping;
    attribute_text(attributes, "grid_mapping", name, sizeof name);
    if (!name[0] || squall_dataset_array(ds, name, &mapping, NULL))
        return;
    const char *its = squall_array_info(mapping).attributes;
    struct attribute wkt;
    attribute_text(its, "grid_mapping_name", g->crs, sizeof g->crs);
    if (!attribute_find(its, "crs_wkt", &wkt))
        return;
    char *text = malloc(wkt.value_length + 1);
    unsigned code = text ? epsg_code(attribute_text(its, "crs_wkt", text, wkt.value_length + 1)) : 0;
    free(text);
    if (code)
        snprintf(g->crs, sizeof g->crs, "EPSG:%u", code);
}

static bool is_known(const struct grid_list *list, const struct grid *g)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct grid *k = &list->grids[i];
        if (!strcmp(k->type, g->type) && k->rank == g->rank && !strcmp(k->dims[0], g->dims[0]) && !strcmp(k->dims[1], g->dims[1]))
            return true;
    }
    return false;
}

/* What the array lies on; false: on none that it tells of. */
static bool grid_of(const struct squall_array_info *info, struct grid *ret)
{
    *ret = (struct grid){.dims = {"", ""}};
    attribute_text(info->attributes, "GRIB_gridType", ret->type, sizeof ret->type);
    if (!ret->type[0] || info->rank == 0)
        return false;
    bool points = info->rank == 1 || !strncmp(info->dims[info->rank - 1], "values", 6);
    ret->rank = points ? 1 : 2;
    for (unsigned d = 0; d < ret->rank; d++) {
        ret->dims[d] = info->dims[info->rank - ret->rank + d];
        ret->shape[d] = info->shape[info->rank - ret->rank + d];
    }
    return true;
}

static int add_grid(struct grid_list *list, squall_dataset *ds, struct grid *g, const char *attributes, struct squall_error *err)
{
    squall_array *a;
    int status = g->rank == 1 ? add_point_axes(list, ds, g, err) : 0;
    for (unsigned d = 0; g->rank == 2 && d < 2 && !status; d++)
        if (g->dims[d][0] && !squall_dataset_array(ds, g->dims[d], &a, NULL))
            status = add_axis(list, g, a, err);
    if (status)
        return status;
    find_crs(ds, attributes, g);
    struct grid *grown = realloc(list->grids, (list->count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(err);
    list->grids = grown;
    grown[list->count++] = *g;
    return 0;
}

int grid_list_make(squall_dataset *ds, struct grid_list *ret, struct squall_error *err)
{
    struct grid_list list = {0};
    size_t count = squall_dataset_info(ds).array_count;
    for (size_t i = 0; i < count; i++) {
        struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, i));
        struct grid g;
        if (!grid_of(&info, &g) || is_known(&list, &g))
            continue;
        int status = add_grid(&list, ds, &g, info.attributes, err);
        if (status) {
            grid_list_done(&list);
            return status;
        }
    }
    *ret = list;
    return 0;
}

void grid_list_done(struct grid_list *list)
{
    free(list->grids);
    *list = (struct grid_list){0};
}
