/*
 * The coordinate and auxiliary arrays, in the order in which a reader looks for them: times, members, levels, horizontal axes, then what
 * describes these. All of xarray 2026.9's conditions for opening them without a warning are in docs/cubes.md, "Coordinates".
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_UNITS "seconds since 1970-01-01T00:00:00"
enum { VALUE_LIMIT = 1 << 28 }; /* of one coordinate: 2 GiB */

struct attribute {
    const char *key, *value;
};

static const struct attribute INIT_TIME[] = {{"standard_name", "forecast_reference_time"},
                                             {"long_name", "start of the model run"},
                                             {"units", EPOCH_UNITS},
                                             {"calendar", "proleptic_gregorian"},
                                             {NULL, NULL}};
/* with the dtype attribute xarray makes a duration of it without asking what it is meant to be */
static const struct attribute STEP[] = {{"standard_name", "forecast_period"},
                                        {"long_name", "time since the start of the model run"},
                                        {"units", "seconds"},
                                        {"dtype", "timedelta64[ns]"},
                                        {NULL, NULL}};
static const struct attribute STEP_BOUNDS[] = {{"long_name", "begin and end of the interval that a step stands for"},
                                               {"units", "seconds"},
                                               {"dtype", "timedelta64[ns]"},
                                               {NULL, NULL}};
static const struct attribute NUMBER[] = {{"standard_name", "realization"}, {"long_name", "ensemble member"}, {"units", "1"}, {NULL, NULL}};
static const struct attribute VALID_TIME[] = {
    {"standard_name", "time"}, {"long_name", "valid time"}, {"units", EPOCH_UNITS}, {"calendar", "proleptic_gregorian"}, {NULL, NULL}};
static const struct attribute STACK[] = {{"long_name", "variable"}, {NULL, NULL}};
static const struct attribute LATITUDE[] = {
    {"standard_name", "latitude"}, {"long_name", "latitude"}, {"units", "degrees_north"}, {NULL, NULL}};
static const struct attribute LONGITUDE[] = {
    {"standard_name", "longitude"}, {"long_name", "longitude"}, {"units", "degrees_east"}, {NULL, NULL}};

/* A new coordinate at the end of the list, its values not yet filled; dims as given, already renamed. */
static int add(struct sq_builder *b, const char *name, enum squall_type type, unsigned rank, const char *const *dims, const uint64_t *shape,
               struct sq_cube_coordinate **ret, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const size_t size_bytes = squall_type_size(type);
    uint64_t count = 1;
    for (unsigned d = 0; d < rank; d++) {
        if (!sq_mul_u64(count, shape[d], &count) || count > VALUE_LIMIT)
            return sq_error(err, SQUALL_EUNSUPPORTED, "the coordinate %s would have more than %d values: --select fewer fields", name,
                            VALUE_LIMIT);
    }
    SQ_TRY(SQ_GROW(cube->coordinates, b->coordinate_capacity, cube->coordinate_count + 1, err));
    struct sq_cube_coordinate *c = &cube->coordinates[cube->coordinate_count];
    *c = (struct sq_cube_coordinate){.type = type, .rank = rank, .along_init = rank && strcmp(dims[0], "init_time") == 0};
    c->name = sq_arena_strdup(b->arena, name);
    c->attributes = sq_json_new_object();
    c->values = sq_alloc_zero((size_t)count, size_bytes);
    cube->coordinate_count++; /* from here on the cube frees it */
    if (!c->name || !c->attributes || !c->values)
        return sq_error_memory(err, count * size_bytes);
    for (unsigned d = 0; d < rank; d++) {
        c->shape[d] = shape[d];
        c->dims[d] = sq_arena_strdup(b->arena, dims[d]);
        if (!c->dims[d])
            return sq_error_memory(err, strlen(dims[d]));
    }
    *ret = c;
    return 0;
}

static int describe(struct sq_cube_coordinate *c, const struct attribute *attributes, struct squall_error *err)
{
    for (; attributes->key; attributes++)
        SQ_TRY(sq_cube_put_string(c->attributes, attributes->key, attributes->value, err));
    return 0;
}

static int add_init_time(struct sq_builder *b, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    SQ_TRY(add(b, "init_time", SQUALL_INT64, 1, (const char *const[]){"init_time"}, &b->init_count, &c, err));
    memcpy(c->values, b->cube->init_times_s, b->init_count * sizeof(int64_t));
    return describe(c, INIT_TIME, err);
}

static int add_axis(struct sq_builder *b, const char *name, const struct sq_axis *axis, const struct attribute *attributes,
                    struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const char *renamed = sq_cube_renamed(b, name);
    uint64_t count = axis->count;
    SQ_TRY(add(b, renamed, SQUALL_INT64, 1, &renamed, &count, &c, err));
    memcpy(c->values, axis->values, axis->count * sizeof(int64_t));
    return describe(c, attributes, err);
}

static int add_valid_time(struct sq_builder *b, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const uint64_t shape[2] = {b->init_count, b->steps.count};
    const char *const dims[2] = {"init_time", sq_cube_renamed(b, "step")};
    SQ_TRY(add(b, sq_cube_renamed(b, "valid_time"), SQUALL_INT64, 2, dims, shape, &c, err));
    int64_t *values = c->values;
    for (uint64_t i = 0; i < b->init_count; i++) {
        for (uint32_t s = 0; s < b->steps.count; s++)
            *values++ = b->cube->init_times_s[i] + b->steps.values[s];
    }
    return describe(c, VALID_TIME, err);
}

/* The first surfaces; both as NAME_bounds where any variable's levels are layers. */
static int add_levels(struct sq_builder *b, const struct sq_draft *draft, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const struct sq_level *levels = &b->levels[draft->first_level];
    const struct sq_grib_level_attributes *known = sq_grib_level_attributes(b->groups[draft->group].key.level_type);
    const char *name = sq_cube_renamed(b, draft->level_dim);
    const uint64_t shape[2] = {draft->level_count, 2};
    bool layers = false;
    SQ_TRY(add(b, name, SQUALL_FLOAT64, 1, &name, shape, &c, err));
    for (size_t i = 0; i < draft->level_count; i++) {
        ((double *)c->values)[i] = levels[i].first;
        layers |= !isnan(levels[i].second);
    }
    const struct attribute attributes[] = {{"long_name", known->long_name}, {"units", known->units}, {NULL, NULL}};
    if (known->standard_name)
        SQ_TRY(sq_cube_put_string(c->attributes, "standard_name", known->standard_name, err));
    SQ_TRY(describe(c, attributes, err));
    if (known->positive)
        SQ_TRY(sq_cube_put_string(c->attributes, "positive", known->positive, err));
    SQ_TRY(sq_cube_put_string(c->attributes, "axis", "Z", err));
    SQ_TRY(sq_cube_put_string(c->attributes, "GRIB_typeOfLevel", b->groups[draft->group].key.level_type, err));
    if (!layers)
        return 0;
    SQ_CLEANUP_FREE char *bounds = sq_format("%s_bounds", draft->level_dim);
    if (!bounds)
        return sq_error_memory(err, strlen(name));
    SQ_TRY(sq_cube_put_string(c->attributes, "bounds", sq_cube_renamed(b, bounds), err));
    SQ_TRY(add(b, sq_cube_renamed(b, bounds), SQUALL_FLOAT64, 2, (const char *const[]){name, "bnds"}, shape, &c, err));
    for (size_t i = 0; i < draft->level_count; i++) {
        ((double *)c->values)[2 * i] = levels[i].first;
        ((double *)c->values)[2 * i + 1] = levels[i].second;
    }
    return 0;
}

static int compare_dims(const void *a, const void *b, void *builder)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct sq_draft *drafts = ((const struct sq_builder *)builder)->drafts;
    int order = strcmp(drafts[x].level_dim, drafts[y].level_dim);
    return order ? order : x < y ? -1 : x > y;
}

static int add_level_dims(struct sq_builder *b, struct squall_error *err)
{
    size_t count = 0;
    SQ_CLEANUP_FREE uint32_t *rows = sq_alloc(b->draft_count, sizeof *rows);
    if (!rows)
        return sq_error_memory(err, b->draft_count * sizeof *rows);
    for (size_t i = 0; i < b->draft_count; i++) {
        if (sq_draft_in_cube(&b->drafts[i]) && b->drafts[i].level_dim)
            rows[count++] = (uint32_t)i;
    }
    qsort_r(rows, count, sizeof *rows, compare_dims, b);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(b->drafts[rows[i]].level_dim, b->drafts[rows[i - 1]].level_dim) != 0)
            SQ_TRY(add_levels(b, &b->drafts[rows[i]], err));
    }
    return 0;
}

/* Means of blocks of `factor`; the last block may be shorter. */
static void coarsen(const double *values, size_t length, unsigned factor, double *ret)
{
    for (size_t begin = 0; begin < length; begin += factor) {
        size_t end = begin + factor < length ? begin + factor : length;
        double sum = 0;
        for (size_t i = begin; i < end; i++)
            sum += values[i];
        ret[begin / factor] = end - begin == 1 ? values[begin] : sum / (double)(end - begin);
    }
}

static int add_point_coordinate(struct sq_builder *b, const struct sq_points *points, int which, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const uint64_t count = points->axes.axis[0].length;
    SQ_TRY(add(b, points->point_names[which], SQUALL_FLOAT64, 1, &points->dims[0], &count, &c, err));
    memcpy(c->values, which ? points->axes.point_longitudes : points->axes.point_latitudes, count * sizeof(double));
    return describe(c, which ? LONGITUDE : LATITUDE, err);
}

static int add_points(struct sq_builder *b, const struct sq_points *points, struct squall_error *err)
{
    const struct sq_grib_axes *axes = &points->axes;
    struct sq_cube_coordinate *c = NULL;
    for (unsigned d = 0; d < axes->count; d++) {
        unsigned factor = sq_cube_coarsening(b, axes->count == 2 ? d : 2);
        const uint64_t count = (axes->axis[d].length + factor - 1) / factor;
        if (!axes->axis[d].values)
            continue;
        SQ_TRY(add(b, points->dims[d], SQUALL_FLOAT64, 1, &points->dims[d], &count, &c, err));
        coarsen(axes->axis[d].values, axes->axis[d].length, factor, c->values);
        sq_json_free(c->attributes);
        c->attributes = sq_json_copy(axes->axis[d].attributes);
        if (!c->attributes)
            return sq_error_memory(err, 0);
    }
    if (axes->point_latitudes)
        SQ_TRY(add_point_coordinate(b, points, 0, err));
    return axes->point_longitudes ? add_point_coordinate(b, points, 1, err) : 0;
}

static int add_mapping(struct sq_builder *b, const struct sq_points *points, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    if (!points->mapping_name)
        return 0;
    SQ_TRY(add(b, points->mapping_name, SQUALL_INT32, 0, NULL, NULL, &c, err));
    sq_json_free(c->attributes);
    c->attributes = sq_json_copy(points->axes.grid_mapping);
    return c->attributes ? 0 : sq_error_memory(err, 0);
}

static void fill_bounds(const struct sq_builder *b, const struct sq_bounds *bounds, int64_t *values)
{
    for (uint32_t s = 0; s < b->steps.count; s++) {
        int64_t begin = bounds ? bounds->begins[s] : SQ_BEGIN_UNKNOWN;
        *values++ = begin; /* INT64_MIN is xarray's "no duration" */
        *values++ = begin == SQ_BEGIN_UNKNOWN ? begin : b->steps.values[s];
    }
}

static int add_bounds(struct sq_builder *b, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const char *const dims[3] = {sq_cube_renamed(b, "variable"), sq_cube_renamed(b, "step"), "bnds"};
    const uint64_t shape[3] = {b->entry_count, b->steps.count, 2};
    for (size_t i = 0; !b->options->stack && i < b->bounds_count; i++) {
        SQ_TRY(add(b, sq_cube_renamed(b, b->bounds[i].name), SQUALL_INT64, 2, dims + 1, shape + 1, &c, err));
        fill_bounds(b, &b->bounds[i], c->values);
        SQ_TRY(describe(c, STEP_BOUNDS, err));
    }
    if (!b->options->stack || !b->bounds_count)
        return 0;
    SQ_TRY(add(b, sq_cube_renamed(b, "step_bounds"), SQUALL_INT64, 3, dims, shape, &c, err));
    for (size_t i = 0; i < b->entry_count; i++) {
        const struct sq_draft *draft = &b->drafts[b->entries[i].draft];
        fill_bounds(b, draft->bounds == UINT32_MAX ? NULL : &b->bounds[draft->bounds], (int64_t *)c->values + i * b->steps.count * 2);
    }
    return describe(c, STEP_BOUNDS, err);
}

static int add_texts(struct sq_builder *b, const char *name, const char *key, struct squall_error *err)
{
    struct sq_cube_coordinate *c = NULL;
    const char *const dims[1] = {sq_cube_renamed(b, "variable")};
    const uint64_t count = b->entry_count;
    SQ_TRY(add(b, sq_cube_renamed(b, name), SQUALL_STRING, 1, dims, &count, &c, err));
    for (size_t i = 0; i < b->entry_count; i++) {
        const char *text = key ? sq_json_string(sq_json_get(b->drafts[b->entries[i].draft].attributes, key)) : b->entries[i].name;
        char *copy = sq_arena_strdup(b->arena, text ? text : "");
        if (!copy)
            return sq_error_memory(err, 0);
        ((struct squall_bytes *)c->values)[i] = (struct squall_bytes){copy, strlen(copy)};
    }
    return key ? 0 : describe(c, STACK, err);
}

static int add_stack_texts(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(add_texts(b, "variable_long_name", "long_name", err));
    SQ_TRY(add_texts(b, "variable_standard_name", "standard_name", err));
    return add_texts(b, "variable_units", "units", err);
}

/* A coordinate's chunks are as long as the dimension was for the first variable that has it. */
static uint64_t made_of(const struct sq_cube *cube, const char *dim)
{
    for (size_t i = 0; i < cube->variable_count; i++)
        for (unsigned d = 0; d < cube->variables[i].rank; d++)
            if (!strcmp(cube->variables[i].dims[d], dim))
                return cube->variables[i].made[d];
    return 0;
}

static int make_coordinates(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(add_init_time(b, err));
    if (b->options->stack)
        SQ_TRY(add_texts(b, "variable", NULL, err));
    SQ_TRY(add_axis(b, "step", &b->steps, STEP, err));
    if (b->has_members && !b->options->stack)
        SQ_TRY(add_axis(b, "number", &b->members, NUMBER, err));
    if (!b->options->stack)
        SQ_TRY(add_level_dims(b, err));
    for (size_t i = 0; i < b->cube->grid_count; i++)
        SQ_TRY(add_points(b, &b->points[b->used_points[i]], err));
    SQ_TRY(add_valid_time(b, err));
    SQ_TRY(add_bounds(b, err));
    for (size_t i = 0; i < b->cube->grid_count; i++)
        SQ_TRY(add_mapping(b, &b->points[b->used_points[i]], err));
    return b->options->stack ? add_stack_texts(b, err) : 0;
}

int sq_cube_make_coordinates(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(make_coordinates(b, err));
    for (size_t i = 0; i < b->cube->coordinate_count; i++) {
        struct sq_cube_coordinate *c = &b->cube->coordinates[i];
        for (unsigned d = 0; d < c->rank; d++)
            c->made[d] = made_of(b->cube, c->dims[d]);
    }
    return 0;
}
