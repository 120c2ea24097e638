/*
 * The arrays of the cube, and what is said about them: CF's words, and the GRIB_* attributes under the names that cfgrib's users know. What a store was made
 * with stays; only a new variable is described from its fields.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <math.h>
#include <string.h>

int sq_cube_put(struct sq_json *object, const char *key, struct sq_json *value, struct squall_error *err)
{
    return sq_json_set(object, key, value) ? sq_error_memory(err, strlen(key)) : 0;
}

int sq_cube_put_string(struct sq_json *object, const char *key, const char *text, struct squall_error *err)
{
    return sq_cube_put(object, key, sq_json_new_string(text), err);
}

int sq_cube_put_int(struct sq_json *object, const char *key, int64_t value, struct squall_error *err)
{
    return sq_cube_put(object, key, sq_json_new_int(value), err);
}

static int put_double(struct sq_json *object, const char *key, double value, struct squall_error *err)
{
    return sq_cube_put(object, key, sq_json_new_double(value), err);
}

/* What ecCodes writes for "no dimension", in the words that UDUNITS reads. */
static const char *plain_units(const char *units)
{
    static const char *const NO_DIMENSION[] = {"(0 - 1)",       "(-1 to 1)",    "~", "-", "Numeric", "Proportion", "Fraction",
                                               "Dimensionless", "dimensionless"};
    for (size_t i = 0; i < sizeof NO_DIMENSION / sizeof *NO_DIMENSION; i++) {
        if (strcmp(units, NO_DIMENSION[i]) == 0)
            return "1";
    }
    return strncmp(units, "(Code table", 11) == 0 ? "1" : units;
}

/* CF's word for a statistic over the interval (appendix E); NULL: it has none. */
static const char *cell_method(enum sq_grib_step_type type)
{
    switch (type) {
    case SQ_GRIB_AVG:
        return "step: mean";
    case SQ_GRIB_ACCUM:
    case SQ_GRIB_SUM:
        return "step: sum";
    case SQ_GRIB_MAX:
        return "step: maximum";
    case SQ_GRIB_MIN:
        return "step: minimum";
    case SQ_GRIB_RMS:
        return "step: root_mean_square";
    case SQ_GRIB_SD:
        return "step: standard_deviation";
    default:
        return NULL;
    }
}

static bool is_coarsened(const struct sq_builder *b)
{
    return sq_cube_coarsening(b, 0) > 1 || sq_cube_coarsening(b, 1) > 1;
}

/* Means of blocks lie on a grid that no GRIB attribute describes. */
static int put_grid(const struct sq_builder *b, const struct sq_points *points, struct sq_json *a, struct squall_error *err)
{
    if (is_coarsened(b))
        return sq_cube_put_string(a, "GRIB_gridType", points->grid->type_name, err);
    SQ_TRY(sq_grib_grid_attributes(points->grid, a, err));
    return points->turned && sq_grib_grid_turn_attributes(a) ? sq_error_memory(err, 0) : 0;
}

static int put_cf(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *a, struct squall_error *err)
{
    const struct sq_grib_names *names = &b->index->names[draft->product];
    const struct sq_key *key = &b->groups[draft->group].key;
    const char *method = cell_method(b->index->products[draft->product].step_type), *area = is_coarsened(b) ? "area: mean" : NULL;
    bool probability = key->kind == SQ_KIND_PROBABILITY; /* of a quantity, and not that quantity: in per cent */
    SQ_CLEANUP_FREE char *long_name = sq_format("%s%s", probability ? "Probability: " : "", names->name);
    if (!long_name)
        return sq_error_memory(err, strlen(names->name));
    if (names->cf_name && !probability)
        SQ_TRY(sq_cube_put_string(a, "standard_name", names->cf_name, err));
    SQ_TRY(sq_cube_put_string(a, "long_name", long_name, err));
    if (strcmp(names->units, "unknown") != 0 || probability)
        SQ_TRY(sq_cube_put_string(a, "units", probability ? "%" : plain_units(names->units), err));
    if (!method || !area)
        return method || area ? sq_cube_put_string(a, "cell_methods", method ? method : area, err) : 0;
    SQ_CLEANUP_FREE char *both = sq_format("%s %s", method, area);
    return both ? sq_cube_put_string(a, "cell_methods", both, err) : sq_error_memory(err, strlen(method));
}

/* Names of the arrays that describe this one. */
static int put_references(struct sq_builder *b, const struct sq_points *points, const char *bounds_name, struct sq_json *a,
                          struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_text_add(&text, sq_cube_renamed(b, "valid_time"));
    for (int i = 0; i < 2; i++) {
        if (points->point_names[i])
            sq_text_printf(&text, " %s", points->point_names[i]);
    }
    if (text.failed)
        return sq_error_memory(err, text.length);
    SQ_TRY(sq_cube_put_string(a, "coordinates", sq_text_string(&text), err));
    if (points->mapping_name)
        SQ_TRY(sq_cube_put_string(a, "grid_mapping", points->mapping_name, err));
    return bounds_name ? sq_cube_put_string(a, "step_bounds", bounds_name, err) : 0;
}

static int put_names(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *a, struct squall_error *err)
{
    const struct sq_grib_names *names = &b->index->names[draft->product];
    const struct sq_grib_product *product = &b->index->products[draft->product];
    const struct sq_key *key = &b->groups[draft->group].key;
    SQ_TRY(sq_cube_put_int(a, "GRIB_paramId", names->param_id, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_shortName", names->short_name, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_name", names->name, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_units", names->units, err));
    if (names->cf_name)
        SQ_TRY(sq_cube_put_string(a, "GRIB_cfName", names->cf_name, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_cfVarName", names->cf_var_name, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_typeOfLevel", key->level_type, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_stepType", key->step_type, err));
    if (product->raw.edition != 1)
        SQ_TRY(sq_cube_put_int(a, "GRIB_discipline", product->raw.discipline, err));
    SQ_TRY(sq_cube_put_int(a, product->raw.edition == 1 ? "GRIB_table2Version" : "GRIB_parameterCategory", product->category, err));
    return sq_cube_put_int(a, product->raw.edition == 1 ? "GRIB_indicatorOfParameter" : "GRIB_parameterNumber", product->number, err);
}

static int put_kind(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *a, struct squall_error *err)
{
    const struct sq_key *key = &b->groups[draft->group].key;
    if (key->derived >= 0)
        SQ_TRY(sq_cube_put_int(a, "GRIB_derivedForecast", key->derived, err));
    if (key->percentile >= 0)
        SQ_TRY(sq_cube_put_int(a, "GRIB_percentileValue", key->percentile, err));
    if (key->probability >= 0)
        SQ_TRY(sq_cube_put_int(a, "GRIB_probabilityType", key->probability, err));
    if (!isnan(key->lower))
        SQ_TRY(put_double(a, "GRIB_lowerLimit", key->lower, err));
    if (!isnan(key->upper))
        SQ_TRY(put_double(a, "GRIB_upperLimit", key->upper, err));
    if (key->kind == SQ_KIND_ENSEMBLE && !b->has_members && b->members.count == 1 && b->members.values[0] >= 0)
        SQ_TRY(sq_cube_put_int(a, "number", b->members.values[0], err));
    return 0;
}

/* One level is an attribute: "heightAboveGround": 2.0, and both surfaces of a layer as "…_bounds". */
static int put_level(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *a, struct squall_error *err)
{
    const struct sq_level *level = &b->levels[draft->first_level];
    const char *type = b->groups[draft->group].key.level_type;
    if (draft->level_count != 1 || isnan(level->first))
        return 0;
    SQ_TRY(put_double(a, type, level->first, err));
    if (isnan(level->second))
        return 0;
    SQ_CLEANUP_FREE char *name = sq_format("%s_bounds", type);
    struct sq_json *pair = sq_json_new_array();
    int status = sq_json_append(pair, sq_json_new_double(level->first));
    status = status ? status : sq_json_append(pair, sq_json_new_double(level->second));
    if (status || !name) {
        sq_json_free(pair);
        return sq_error_memory(err, 0);
    }
    return sq_cube_put(a, name, pair, err);
}

static int describe_draft(struct sq_builder *b, struct sq_draft *draft, struct squall_error *err)
{
    const struct sq_points *points = &b->points[b->groups[draft->group].key.grid];
    const char *bounds_name = draft->bounds == UINT32_MAX ? NULL : sq_cube_renamed(b, b->bounds[draft->bounds].name);
    if (draft->attributes)
        return bounds_name ? sq_cube_put_string(draft->attributes, "step_bounds", bounds_name, err) : 0;
    draft->attributes = sq_json_new_object();
    if (!draft->attributes)
        return sq_error_memory(err, 0);
    SQ_TRY(put_cf(b, draft, draft->attributes, err));
    SQ_TRY(put_references(b, points, bounds_name, draft->attributes, err));
    SQ_TRY(put_level(b, draft, draft->attributes, err));
    SQ_TRY(put_names(b, draft, draft->attributes, err));
    SQ_TRY(put_kind(b, draft, draft->attributes, err));
    return put_grid(b, points, draft->attributes, err);
}

static void add_dim(struct sq_cube_variable *v, enum sq_cube_dim kind, const char *name, uint64_t length)
{
    v->dim_kinds[v->rank] = kind;
    v->dims[v->rank] = name;
    v->shape[v->rank++] = length;
}

/* made: 0 where it has not grown. */
static void add_growing_dim(struct sq_cube_variable *v, enum sq_cube_dim kind, const char *name, uint64_t length, uint64_t made)
{
    v->made[v->rank] = made;
    add_dim(v, kind, name, length);
}

static void add_horizontal_dims(const struct sq_builder *b, struct sq_cube_variable *v, const struct sq_points *points)
{
    for (unsigned d = 0; d < points->axes.count; d++) {
        unsigned which = points->axes.count == 2 ? d : 2, factor = sq_cube_coarsening(b, which);
        add_dim(v, which == 0 ? SQ_DIM_Y : SQ_DIM_X, points->dims[d], (points->axes.axis[d].length + factor - 1) / factor);
    }
}

static int make_variable(struct sq_builder *b, struct sq_draft *draft, struct squall_error *err)
{
    const struct sq_points *points = &b->points[b->groups[draft->group].key.grid];
    struct sq_cube_variable *v = &b->cube->variables[draft->cube_row];
    *v = (struct sq_cube_variable){.type = draft->is_float64 ? SQUALL_FLOAT64 : SQUALL_FLOAT32, .grid = points->cube_row};
    v->name = sq_arena_strdup(b->arena, sq_cube_renamed(b, draft->name));
    v->attributes = sq_json_share(draft->attributes);
    if (!v->name)
        return sq_error_memory(err, strlen(draft->name));
    add_dim(v, SQ_DIM_INIT_TIME, "init_time", b->init_count);
    const uint32_t *made = draft->made;
    add_growing_dim(v, SQ_DIM_STEP, sq_cube_renamed(b, "step"), b->steps.count, made[SQ_GROWS_STEPS]);
    if (draft->has_members)
        add_growing_dim(v, SQ_DIM_NUMBER, sq_cube_renamed(b, "number"), b->members.count, made[SQ_GROWS_MEMBERS]);
    if (draft->level_dim)
        add_growing_dim(v, SQ_DIM_LEVEL, sq_cube_renamed(b, draft->level_dim), draft->level_count, made[SQ_GROWS_LEVELS]);
    add_horizontal_dims(b, v, points);
    return 0;
}

static int make_stack(struct sq_builder *b, struct squall_error *err)
{
    const struct sq_points *points = &b->points[b->used_points[0]];
    struct sq_cube_variable *v = &b->cube->variables[0];
    *v = (struct sq_cube_variable){.type = SQUALL_FLOAT32, .attributes = sq_json_new_object()};
    v->name = sq_arena_strdup(b->arena, b->options->stack_name ? b->options->stack_name : "data");
    if (!v->name || !v->attributes)
        return sq_error_memory(err, 0);
    for (size_t i = 0; i < b->draft_count; i++)
        v->type = sq_draft_in_cube(&b->drafts[i]) && b->drafts[i].is_float64 ? SQUALL_FLOAT64 : v->type;
    add_dim(v, SQ_DIM_INIT_TIME, "init_time", b->init_count);
    add_dim(v, SQ_DIM_STACK, sq_cube_renamed(b, "variable"), b->entry_count);
    add_dim(v, SQ_DIM_STEP, sq_cube_renamed(b, "step"), b->steps.count);
    add_horizontal_dims(b, v, points);
    SQ_TRY(sq_cube_put_string(v->attributes, "long_name", "stacked variables, named along their dimension", err));
    SQ_TRY(put_references(b, points, b->bounds_count ? sq_cube_renamed(b, "step_bounds") : NULL, v->attributes, err));
    return put_grid(b, points, v->attributes, err);
}

int sq_cube_make_variables(struct sq_builder *b, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    size_t count = 0;
    for (size_t i = 0; i < b->draft_count; i++) {
        if (!sq_draft_in_cube(&b->drafts[i]))
            continue;
        SQ_TRY(describe_draft(b, &b->drafts[i], err));
        count = b->drafts[i].cube_row + (size_t)1;
    }
    cube->variables = sq_arena_alloc(b->arena, count * sizeof *cube->variables);
    if (!cube->variables)
        return sq_error_memory(err, count * sizeof *cube->variables);
    cube->variable_count = count;
    for (size_t i = 0; !b->options->stack && i < b->draft_count; i++) {
        if (sq_draft_in_cube(&b->drafts[i]))
            SQ_TRY(make_variable(b, &b->drafts[i], err));
    }
    if (b->options->stack)
        SQ_TRY(make_stack(b, err));
    for (size_t i = 0; i < cube->place_count; i++)
        cube->variables[cube->places[i].variable].field_count++;
    return 0;
}
