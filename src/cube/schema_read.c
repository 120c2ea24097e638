/* The other way: a store's schema into the builder, before any field is looked at. The text comes from a file, so nothing in it is taken for granted. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <math.h>
#include <string.h>

static int bad(struct squall_error *err, const char *what)
{
    return sq_error(err, SQUALL_ECORRUPT, "the store's schema has no valid \"%s\": its records are damaged or of another version", what);
}

static int read_int(const struct sq_json *object, const char *key, int64_t least, int64_t most, int64_t *ret, struct squall_error *err)
{
    int64_t value;
    if (!sq_json_int(sq_json_get(object, key), &value) || value < least || value > most)
        return bad(err, key);
    *ret = value;
    return 0;
}

/* null: absent */
static int read_optional_int(const struct sq_json *object, const char *key, int64_t absent, int64_t *ret, struct squall_error *err)
{
    const struct sq_json *value = sq_json_get(object, key);
    if (sq_json_type(value) == SQ_JSON_NULL) {
        *ret = absent;
        return 0;
    }
    return sq_json_int(value, ret) ? 0 : bad(err, key);
}

static int read_number(const struct sq_json *value, const char *key, double *ret, struct squall_error *err)
{
    if (sq_json_type(value) == SQ_JSON_NULL) {
        *ret = NAN;
        return 0;
    }
    return sq_json_double(value, ret) ? 0 : bad(err, key);
}

static int read_text(struct sq_builder *b, const struct sq_json *object, const char *key, const char **ret, struct squall_error *err)
{
    const char *text = sq_json_string(sq_json_get(object, key));
    char *copy = text ? sq_arena_strdup(b->arena, text) : NULL;
    if (!text)
        return bad(err, key);
    if (!copy)
        return sq_error_memory(err, strlen(text));
    *ret = copy;
    return 0;
}

static int read_axis(const struct sq_json *schema, const char *key, struct sq_axis *axis, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(1);
    const struct sq_json *list = sq_json_get(schema, key);
    SQ_CLEANUP_FREE int64_t *values = sq_alloc(sq_json_count(list) + 1, sizeof *values);
    if (!values)
        return sq_error_memory(err, sq_json_count(list) * sizeof *values);
    if (sq_json_type(list) != SQ_JSON_ARRAY)
        return bad(err, key);
    for (size_t i = 0; i < sq_json_count(list); i++) {
        uint32_t number;
        if (!sq_json_int(sq_json_at(list, i), &values[i]))
            return bad(err, key);
        SQ_TRY(sq_intern_add(&table, &values[i], &number, err));
        if (number != i)
            return bad(err, key);
    }
    return sq_axis_take(axis, values, (uint32_t)sq_json_count(list), err);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int sq_cube_schema_read_grid(const struct sq_json *g, struct sq_grib_grid *ret, unsigned *ret_number, struct squall_error *err)
{
    int64_t number = 0, edition = 0, centre = 0;
    const char *hex = sq_json_string(sq_json_get(g, "section"));
    size_t size = hex ? strlen(hex) / 2 : 0;
    SQ_TRY(read_int(g, "number", 1, UINT32_MAX, &number, err));
    SQ_TRY(read_int(g, "edition", 1, 2, &edition, err));
    SQ_TRY(read_int(g, "centre", 0, UINT16_MAX, &centre, err));
    SQ_CLEANUP_FREE uint8_t *section = sq_alloc(size, 1);
    if (!section)
        return sq_error_memory(err, size);
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return bad(err, "section");
        section[i] = (uint8_t)(high << 4 | low);
    }
    *ret_number = (unsigned)number;
    return sq_grib_grid_parse((uint8_t)edition, (uint16_t)centre, section, size, ret, err);
}

static int read_grids(struct sq_builder *b, const struct sq_json *schema, struct squall_error *err)
{
    const struct sq_json *list = sq_json_get(schema, "grids");
    size_t count = sq_json_count(list);
    if (sq_json_type(list) != SQ_JSON_ARRAY)
        return bad(err, "grids");
    b->known_grids = sq_alloc_zero(count, sizeof *b->known_grids);
    b->known_grid_numbers = sq_alloc_zero(count, sizeof *b->known_grid_numbers);
    if (!b->known_grids || !b->known_grid_numbers)
        return sq_error_memory(err, count * sizeof *b->known_grids);
    for (size_t i = 0; i < count; i++) {
        SQ_TRY(sq_cube_schema_read_grid(sq_json_at(list, i), &b->known_grids[i], &b->known_grid_numbers[i], err));
        b->known_grid_count++;
    }
    return 0;
}

static int read_table(void *user, const char *name, const struct sq_json *list, struct squall_error *err)
{
    struct sq_builder *b = user;
    SQ_TRY(SQ_GROW(b->bounds, b->bounds_capacity, b->bounds_count + 1, err));
    struct sq_bounds *table = &b->bounds[b->bounds_count];
    *table = (struct sq_bounds){.name = sq_arena_strdup(b->arena, name),
                                .begins = sq_arena_alloc(b->arena, b->steps.count * sizeof *table->begins)};
    if (!table->name || !table->begins)
        return sq_error_memory(err, b->steps.count * sizeof *table->begins);
    if (sq_json_count(list) != b->steps.count)
        return bad(err, "step_begins");
    for (uint32_t s = 0; s < b->steps.count; s++) {
        const struct sq_json *value = sq_json_at(list, s);
        table->begins[s] = SQ_BEGIN_UNKNOWN;
        if (sq_json_type(value) != SQ_JSON_NULL && !sq_json_int(value, &table->begins[s]))
            return bad(err, "step_begins");
    }
    b->bounds_count++;
    return 0;
}

static int read_key(struct sq_builder *b, const struct sq_json *v, struct sq_key *key, struct squall_error *err)
{
    int64_t param_id = 0, statistic = 0, derived = 0, percentile = 0, probability = 0, number = 0;
    const char *kind = sq_json_string(sq_json_get(v, "kind"));
    SQ_TRY(read_int(v, "param_id", INT32_MIN, INT32_MAX, &param_id, err));
    SQ_TRY(read_text(b, v, "parameter", &key->parameter, err));
    SQ_TRY(read_text(b, v, "level_type", &key->level_type, err));
    SQ_TRY(read_text(b, v, "step_type", &key->step_type, err));
    SQ_TRY(read_optional_int(v, "statistic", -1, &statistic, err));
    SQ_TRY(read_optional_int(v, "derived", -1, &derived, err));
    SQ_TRY(read_optional_int(v, "percentile", -1, &percentile, err));
    SQ_TRY(read_optional_int(v, "probability", -1, &probability, err));
    SQ_TRY(read_number(sq_json_get(v, "lower_limit"), "lower_limit", &key->lower, err));
    SQ_TRY(read_number(sq_json_get(v, "upper_limit"), "upper_limit", &key->upper, err));
    SQ_TRY(read_int(v, "grid", 1, UINT32_MAX, &number, err));
    key->param_id = (int32_t)param_id;
    key->statistic = (int)statistic;
    key->derived = (int)derived;
    key->percentile = (int)percentile;
    key->probability = (int)probability;
    for (key->kind = 0; !kind || strcmp(kind, sq_kind_names[key->kind]) != 0; key->kind++) {
        if (!kind || key->kind == SQ_KIND_PERCENTILE)
            return bad(err, "kind");
    }
    for (key->grid = 0; key->grid < b->known_grid_count; key->grid++) {
        if (b->known_grid_numbers[key->grid] == number)
            return 0;
    }
    return bad(err, "grid");
}

static int read_level_list(struct sq_builder *b, const struct sq_json *v, uint32_t draft, size_t *capacity, struct squall_error *err)
{
    const struct sq_json *list = sq_json_get(v, "levels");
    for (size_t i = 0; i < sq_json_count(list); i++) {
        struct sq_level level = {.draft = draft};
        SQ_TRY(read_number(sq_json_at(sq_json_at(list, i), 0), "levels", &level.first, err));
        SQ_TRY(read_number(sq_json_at(sq_json_at(list, i), 1), "levels", &level.second, err));
        SQ_TRY(SQ_GROW(b->levels, *capacity, b->level_count + 1, err));
        b->levels[b->level_count++] = level;
    }
    return sq_json_count(list) ? 0 : bad(err, "levels");
}

/* How long its dimensions were, where they have grown. */
static int read_made(const struct sq_builder *b, const struct sq_json *v, struct sq_draft *draft, size_t level_count,
                     struct squall_error *err)
{
    const struct sq_json *list = sq_json_get(v, "made");
    const uint64_t most[SQ_GROWING_COUNT] = {b->steps.count, b->members.count, level_count};
    for (int k = 0; list && k < SQ_GROWING_COUNT; k++) {
        uint64_t length;
        if (!sq_json_uint(sq_json_at(list, (size_t)k), &length) || length > most[k])
            return bad(err, "made");
        draft->made[k] = (uint32_t)length;
    }
    return 0;
}

static int read_stored(struct sq_builder *b, const struct sq_json *v, struct sq_draft *draft, size_t *capacity, struct squall_error *err)
{
    const char *bounds = sq_json_string(sq_json_get(v, "bounds"));
    const size_t levels_before = b->level_count;
    if (!sq_json_bool(sq_json_get(v, "float64"), &draft->is_float64))
        return bad(err, "float64");
    SQ_TRY(read_level_list(b, v, (uint32_t)(draft - b->drafts), capacity, err));
    SQ_TRY(read_made(b, v, draft, b->level_count - levels_before, err));
    draft->joins = sq_json_get(v, "joins") != NULL;
    if (sq_json_get(v, "level_dim"))
        SQ_TRY(read_text(b, v, "level_dim", &draft->level_dim, err));
    for (size_t i = 0; bounds && i < b->bounds_count && draft->bounds == UINT32_MAX; i++)
        draft->bounds = strcmp(b->bounds[i].name, bounds) == 0 ? (uint32_t)i : UINT32_MAX;
    if (bounds && draft->bounds == UINT32_MAX)
        return bad(err, "bounds");
    if (sq_json_type(sq_json_get(v, "attributes")) != SQ_JSON_OBJECT)
        return bad(err, "attributes");
    draft->attributes = sq_json_copy(sq_json_get(v, "attributes"));
    return draft->attributes ? 0 : sq_error_memory(err, 0);
}

/* needed and by_length of the group follow from the marks that its variables have. */
static struct sq_group group_of(const struct sq_key *key, const int64_t *marks)
{
    struct sq_group group = {.key = *key};
    for (int mark = 0; mark < SQ_MARK_COUNT; mark++)
        group.needed |= marks[mark] != SQ_MARK_ANY ? 1u << mark : 0;
    group.by_length = marks[SQ_MARK_INTERVAL] >= 0;
    return group;
}

static int read_variables(struct sq_builder *b, const struct sq_json *schema, struct squall_error *err)
{
    const struct sq_json *list = sq_json_get(schema, "variables");
    size_t count = sq_json_count(list), level_capacity = 0;
    SQ_CLEANUP_FREE struct sq_key *keys = sq_alloc_zero(count, sizeof *keys);
    b->drafts = sq_alloc_zero(count, sizeof *b->drafts);
    b->groups = sq_alloc_zero(count, sizeof *b->groups);
    if (!keys || !b->drafts || !b->groups)
        return sq_error_memory(err, count * sizeof *b->drafts);
    if (sq_json_type(list) != SQ_JSON_ARRAY)
        return bad(err, "variables");
    for (size_t i = 0; i < count; i++) {
        const struct sq_json *v = sq_json_at(list, i);
        struct sq_draft *draft = &b->drafts[b->draft_count++];
        *draft = (struct sq_draft){.product = UINT32_MAX, .cube_row = UINT32_MAX, .bounds = UINT32_MAX, .known = true};
        SQ_TRY(read_text(b, v, "name", &draft->name, err));
        SQ_TRY(read_key(b, v, &keys[i], err));
        for (int mark = 0; mark < SQ_MARK_COUNT; mark++)
            SQ_TRY(read_optional_int(v, sq_mark_names[mark], SQ_MARK_ANY, &draft->marks[mark], err));
        if (!sq_json_bool(sq_json_get(v, "stored"), &draft->stored))
            return bad(err, "stored");
        if (draft->stored)
            SQ_TRY(read_stored(b, v, draft, &level_capacity, err));
        b->groups[b->group_count++] = group_of(&keys[i], draft->marks);
    }
    sq_cube_settle_groups(b);
    for (size_t i = 0; i < count; i++) {
        b->drafts[i].group = sq_cube_group_of(b, &keys[i]);
        SQ_TRY(sq_cube_know_variable(b, (uint32_t)i, err));
    }
    return 0;
}

static int read_grown(struct sq_builder *b, const struct sq_json *list, struct squall_error *err)
{
    int64_t time_s;
    for (size_t i = 0; i < sq_json_count(list); i++)
        if (!sq_json_int(sq_json_at(list, i), &time_s))
            return bad(err, "grown");
    if (list && !(b->grown = sq_json_copy(list)))
        return sq_error_memory(err, sq_json_count(list));
    return 0;
}

int sq_cube_schema_read(struct sq_builder *b, struct squall_error *err)
{
    const struct sq_json *schema = b->options->schema;
    int64_t version = 0, count = 0;
    SQ_TRY(read_int(schema, "version", 1, 1, &version, err));
    if (b->options->stack != (sq_json_string(sq_json_get(schema, "stack")) != NULL))
        return sq_error(err, SQUALL_EREFUSED, "the store was made %s --stack variable", b->options->stack ? "without" : "with");
    SQ_TRY(read_int(schema, "start", -SQ_TIME_LIMIT_S, SQ_TIME_LIMIT_S, &b->start_s, err));
    SQ_TRY(read_int(schema, "count", 1, SQ_INIT_COUNT_LIMIT, &count, err));
    SQ_TRY(read_int(schema, "spacing_s", 0, SQ_TIME_LIMIT_S, &b->spacing_s, err));
    SQ_TRY(read_int(schema, "cadence_s", 0, SQ_TIME_LIMIT_S, &b->cadence_s, err));
    if ((count > 1 && !b->spacing_s) || (b->cadence_s && b->cadence_s != b->spacing_s))
        return bad(err, "spacing_s");
    b->known_init_count = (uint64_t)count;
    SQ_TRY(read_axis(schema, "steps", &b->steps, err));
    SQ_TRY(read_axis(schema, "members", &b->members, err));
    b->has_members = b->members.count > 1;
    if (sq_json_type(sq_json_get(schema, "attributes")) != SQ_JSON_OBJECT || !b->steps.count)
        return bad(err, b->steps.count ? "attributes" : "steps");
    if (b->steps.is_unsorted)
        return bad(err, "steps");
    SQ_TRY(read_grown(b, sq_json_get(schema, "grown"), err));
    SQ_TRY(read_grids(b, schema, err));
    if (sq_json_type(sq_json_get(schema, "step_begins")) != SQ_JSON_OBJECT)
        return bad(err, "step_begins");
    SQ_TRY(sq_json_each(sq_json_get(schema, "step_begins"), read_table, b, err));
    SQ_TRY(read_variables(b, schema, err));
    sq_cube_settle_levels(b);
    return 0;
}

/* Does the store have a place for each open field? What it does not have is outside of it. */
int sq_cube_check_places(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (b->fate[i] != SQ_FATE_OPEN)
            continue;
        uint32_t variable = b->variable_of[i];
        if (variable == UINT32_MAX || !b->drafts[variable].stored) {
            b->fate[i] = SQ_FATE_OUTSIDE_VARIABLE;
            continue;
        }
        struct sq_where where = sq_cube_where(b, i);
        bool agrees = true;
        if (where.step == UINT32_MAX)
            b->fate[i] = SQ_FATE_OUTSIDE_STEP;
        else if (where.level == UINT32_MAX)
            b->fate[i] = SQ_FATE_OUTSIDE_LEVEL;
        else if (where.member == UINT32_MAX)
            b->fate[i] = SQ_FATE_OUTSIDE_MEMBER;
        else
            SQ_TRY(sq_cube_check_bounds(b, i, where.step, &agrees, err));
        if (!agrees)
            b->fate[i] = SQ_FATE_OUTSIDE_INTERVAL;
    }
    return 0;
}
