/*
 * What a store remembers of its cube, as JSON: every variable that was known when it was made, with its key, whether it is stored or was left out by
 * --select or --stack; grids as their own bytes, so that tomorrow's can be compared with them; steps, members, runs.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <math.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

const char *const sq_kind_names[SQ_KIND_PERCENTILE + 1] = {"deterministic", "ensemble", "derived", "probability", "percentile"};
const char *const sq_mark_names[SQ_MARK_COUNT] = {"interval", "ensemble_kind",   "generating_process",
                                                  "centre",   "definition_high", "definition_low"};

/* Writing: numbers that may be absent are null. */
static struct sq_json *number_or_null(double value)
{
    return isnan(value) ? sq_json_new_null() : sq_json_new_double(value);
}

static struct sq_json *int_or_null(int64_t value, int64_t absent)
{
    return value == absent ? sq_json_new_null() : sq_json_new_int(value);
}

static struct sq_json *int_list(const int64_t *values, size_t count, int64_t absent)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < count; i++) {
        if (sq_json_append(list, int_or_null(values[i], absent))) {
            sq_json_free(list);
            return NULL;
        }
    }
    return list;
}

static struct sq_json *hex_of(const uint8_t *bytes, size_t count)
{
    static const char DIGITS[] = "0123456789abcdef";
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    for (size_t i = 0; i < count; i++)
        sq_text_add_bytes(&text, (char[]){DIGITS[bytes[i] >> 4], DIGITS[bytes[i] & 15]}, 2);
    return text.failed ? NULL : sq_json_new_string(sq_text_string(&text));
}

static int write_grid(const struct sq_points *points, struct sq_json *g, struct squall_error *err)
{
    SQ_TRY(sq_cube_put_int(g, "number", points->number, err));
    SQ_TRY(sq_cube_put_string(g, "type", points->grid->type_name, err));
    SQ_TRY(sq_cube_put_int(g, "edition", points->grid->edition, err));
    SQ_TRY(sq_cube_put_int(g, "centre", points->grid->centre, err));
    return sq_cube_put(g, "section", hex_of(points->grid->section, points->grid->section ? points->grid->section_bytes : 0), err);
}

static int write_grids(const struct sq_builder *b, struct sq_json *schema, struct squall_error *err)
{
    SQ_CLEANUP_FREE bool *named = sq_alloc_zero(b->points_count, sizeof *named);
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    if (!named || !list)
        return sq_error_memory(err, b->points_count);
    for (size_t i = 0; i < b->draft_count; i++)
        named[b->groups[b->drafts[i].group].key.grid] = true;
    for (size_t i = 0; i < b->points_count; i++) {
        if (!named[i])
            continue;
        SQ_CLEANUP_JSON struct sq_json *g = sq_json_new_object();
        if (!g)
            return sq_error_memory(err, 0);
        SQ_TRY(write_grid(&b->points[i], g, err));
        if (sq_json_append(list, sq_json_share(g)))
            return sq_error_memory(err, 0);
    }
    return sq_cube_put(schema, "grids", sq_json_share(list), err);
}

static int write_key(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *v, struct squall_error *err)
{
    const struct sq_key *key = &b->groups[draft->group].key;
    SQ_TRY(sq_cube_put_int(v, "param_id", key->param_id, err));
    SQ_TRY(sq_cube_put_string(v, "parameter", key->parameter, err));
    SQ_TRY(sq_cube_put_string(v, "level_type", key->level_type, err));
    SQ_TRY(sq_cube_put_string(v, "step_type", key->step_type, err));
    SQ_TRY(sq_cube_put(v, "statistic", int_or_null(key->statistic, -1), err));
    SQ_TRY(sq_cube_put_string(v, "kind", sq_kind_names[key->kind], err));
    SQ_TRY(sq_cube_put(v, "derived", int_or_null(key->derived, -1), err));
    SQ_TRY(sq_cube_put(v, "percentile", int_or_null(key->percentile, -1), err));
    SQ_TRY(sq_cube_put(v, "probability", int_or_null(key->probability, -1), err));
    SQ_TRY(sq_cube_put(v, "lower_limit", number_or_null(key->lower), err));
    SQ_TRY(sq_cube_put(v, "upper_limit", number_or_null(key->upper), err));
    SQ_TRY(sq_cube_put_int(v, "grid", b->points[key->grid].number, err));
    for (int mark = 0; mark < SQ_MARK_COUNT; mark++)
        SQ_TRY(sq_cube_put(v, sq_mark_names[mark], int_or_null(draft->marks[mark], SQ_MARK_ANY), err));
    return 0;
}

static int write_levels(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *v, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < draft->level_count; i++) {
        const struct sq_level *level = &b->levels[draft->first_level + i];
        struct sq_json *pair = sq_json_new_array();
        int status = sq_json_append(pair, number_or_null(level->first));
        status = status ? status : sq_json_append(pair, number_or_null(level->second));
        if (status) {
            sq_json_free(pair);
            return sq_error_memory(err, 0);
        }
        if (sq_json_append(list, pair))
            return sq_error_memory(err, 0);
    }
    return sq_cube_put(v, "levels", sq_json_share(list), err);
}

static int write_variable(const struct sq_builder *b, const struct sq_draft *draft, struct sq_json *v, struct squall_error *err)
{
    SQ_TRY(sq_cube_put_string(v, "name", draft->name, err));
    SQ_TRY(write_key(b, draft, v, err));
    SQ_TRY(sq_cube_put(v, "stored", sq_json_new_bool(draft->stored), err));
    if (!draft->stored)
        return 0;
    SQ_TRY(sq_cube_put(v, "float64", sq_json_new_bool(draft->is_float64), err));
    SQ_TRY(write_levels(b, draft, v, err));
    if (draft->level_dim)
        SQ_TRY(sq_cube_put_string(v, "level_dim", draft->level_dim, err));
    const uint32_t *made = draft->made;
    if (made[SQ_GROWS_STEPS] || made[SQ_GROWS_MEMBERS] || made[SQ_GROWS_LEVELS])
        SQ_TRY(sq_cube_put(v, "made", sq_json_new_uints((uint64_t[]){made[0], made[1], made[2]}, SQ_GROWING_COUNT), err));
    if (draft->bounds != UINT32_MAX)
        SQ_TRY(sq_cube_put_string(v, "bounds", b->bounds[draft->bounds].name, err));
    return sq_cube_put(v, "attributes", sq_json_copy(draft->attributes), err);
}

static int write_variables(const struct sq_builder *b, struct sq_json *schema, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < b->draft_count; i++) {
        SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
        if (!v)
            return sq_error_memory(err, 0);
        SQ_TRY(write_variable(b, &b->drafts[i], v, err));
        if (sq_json_append(list, sq_json_share(v)))
            return sq_error_memory(err, 0);
    }
    return sq_cube_put(schema, "variables", sq_json_share(list), err);
}

static int write_bounds(const struct sq_builder *b, struct sq_json *schema, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *tables = sq_json_new_object();
    for (size_t i = 0; tables && i < b->bounds_count; i++)
        SQ_TRY(sq_cube_put(tables, b->bounds[i].name, int_list(b->bounds[i].begins, b->steps.count, SQ_BEGIN_UNKNOWN), err));
    return sq_cube_put(schema, "step_begins", sq_json_share(tables), err);
}

int sq_cube_schema_write(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *schema = sq_json_new_object(), *attributes = sq_json_copy(b->cube->attributes);
    if (!schema || !attributes)
        return sq_error_memory(err, 0);
    SQ_TRY(sq_cube_put_int(schema, "version", SCHEMA_VERSION, err));
    if (b->options->stack)
        SQ_TRY(sq_cube_put_string(schema, "stack", b->cube->variables[0].name, err));
    SQ_TRY(sq_cube_put_int(schema, "start", b->start_s, err));
    SQ_TRY(sq_cube_put_int(schema, "count", (int64_t)b->init_count, err));
    SQ_TRY(sq_cube_put_int(schema, "spacing_s", b->spacing_s, err));
    SQ_TRY(sq_cube_put_int(schema, "cadence_s", b->cadence_s, err));
    if (b->grown)
        SQ_TRY(sq_cube_put(schema, "grown", sq_json_share(b->grown), err));
    SQ_TRY(sq_cube_put(schema, "steps", int_list(b->steps.values, b->steps.count, INT64_MIN), err));
    SQ_TRY(sq_cube_put(schema, "members", int_list(b->members.values, b->members.count, INT64_MIN), err));
    SQ_TRY(write_grids(b, schema, err));
    SQ_TRY(write_bounds(b, schema, err));
    SQ_TRY(sq_cube_put(schema, "attributes", sq_json_share(attributes), err));
    SQ_TRY(write_variables(b, schema, err));
    b->cube->schema = sq_json_share(schema);
    return 0;
}

int sq_cube_schema(const struct sq_cube *cube, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *copy = sq_json_copy(cube->schema);
    if (!copy)
        return sq_error_memory(err, 0);
    *ret = copy;
    return 0;
}
