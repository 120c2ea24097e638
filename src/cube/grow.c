/*
 * New variables for a store's schema. What the store was made without is built as a cube of its own; its variables then join the schema, as
 * if they had always been in it: those that are there keep names and places, since nothing of them is touched. Steps, levels and members are extend.c's.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <string.h>

struct growth {
    const struct sq_json *others; /* the schema of what is new, alone */
    struct sq_json *schema;       /* the store's, which grows */
    struct sq_arena *arena;
};

/* ---- grids ----------------------------------------------------------------------------------------------------------------------- */

static int64_t greatest_number(const struct sq_json *grids)
{
    int64_t greatest = 0, number;
    for (size_t i = 0; i < sq_json_count(grids); i++)
        if (sq_json_int(sq_json_get(sq_json_at(grids, i), "number"), &number) && number > greatest)
            greatest = number;
    return greatest;
}

/* The store's number of a grid of the new cube; a grid that it does not have joins it. */
static int grid_number(const struct growth *g, const struct sq_json *grid, int64_t *ret, struct squall_error *err)
{
    const struct sq_json *grids = sq_json_get(g->schema, "grids");
    struct sq_grib_grid wanted, there;
    unsigned number;
    SQ_TRY(sq_cube_schema_read_grid(grid, &wanted, &number, err));
    bool found = false;
    int status = 0;
    for (size_t i = 0; i < sq_json_count(grids) && !found && !status; i++) {
        status = sq_cube_schema_read_grid(sq_json_at(grids, i), &there, &number, err);
        if (status)
            break;
        found = sq_grib_grid_same(&wanted, &there);
        sq_grib_grid_done(&there);
    }
    sq_grib_grid_done(&wanted);
    if (status || found) {
        *ret = number;
        return status;
    }
    *ret = greatest_number(grids) + 1;
    struct sq_json *copy = sq_json_copy(grid);
    if (!copy || sq_json_set_int(copy, "number", *ret)) {
        sq_json_free(copy);
        return sq_error_memory(err, 0);
    }
    return sq_json_append((struct sq_json *)(uintptr_t)grids, copy) ? sq_error_memory(err, 0) : 0;
}

static const struct sq_json *grid_of(const struct growth *g, const struct sq_json *variable)
{
    const struct sq_json *grids = sq_json_get(g->others, "grids"), *number = sq_json_get(variable, "grid");
    for (size_t i = 0; i < sq_json_count(grids); i++)
        if (sq_json_equal(sq_json_get(sq_json_at(grids, i), "number"), number))
            return sq_json_at(grids, i);
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------------------------------------------- */

static bool says(const struct sq_json *v, const char *key, const char *name)
{
    const char *text = sq_json_string(sq_json_get(v, key));
    return text && !strcmp(text, name);
}

/* Does the store use the name, for a variable or for levels? */
static bool is_taken(const struct growth *g, const char *name)
{
    const struct sq_json *variables = sq_json_get(g->schema, "variables");
    for (size_t i = 0; i < sq_json_count(variables); i++)
        if (says(sq_json_at(variables, i), "name", name) || says(sq_json_at(variables, i), "level_dim", name))
            return true;
    return sq_json_get(sq_json_get(g->schema, "step_begins"), name) != NULL;
}

/* "t", else with what it is of: "t_surface", "t_surface_max", "t_surface_max_2". */
static int free_name(const struct growth *g, const struct sq_json *variable, const char **ret, struct squall_error *err)
{
    static const char *const PARTS[] = {"level_type", "step_type"};
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    sq_text_add(&name, sq_json_string(sq_json_get(variable, "name")));
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && !name.failed && is_taken(g, sq_text_string(&name)); i++)
        sq_text_printf(&name, "_%s", sq_json_string(sq_json_get(variable, PARTS[i])));
    const size_t length = name.length;
    for (unsigned count = 2; !name.failed && is_taken(g, sq_text_string(&name)); count++) {
        name.length = length;
        sq_text_printf(&name, "_%u", count);
    }
    *ret = name.failed ? NULL : sq_arena_strdup(g->arena, sq_text_string(&name));
    return *ret ? 0 : sq_error_memory(err, name.length);
}

/* A dimension of levels is shared with variables of the store that have the same ones there, or is the new variable's own. */
static int name_levels(const struct growth *g, const char *name, struct sq_json *variable, struct squall_error *err)
{
    const struct sq_json *variables = sq_json_get(g->schema, "variables"), *levels = sq_json_get(variable, "levels");
    const char *dim = sq_json_string(sq_json_get(variable, "level_dim"));
    bool same = true;
    for (size_t i = 0; dim && i < sq_json_count(variables); i++) {
        const struct sq_json *other = sq_json_at(variables, i);
        same = same && !says(other, "name", dim) && (!says(other, "level_dim", dim) || sq_json_equal(sq_json_get(other, "levels"), levels));
    }
    if (!dim || same)
        return 0;
    SQ_CLEANUP_FREE char *own = sq_format("%s_%s", sq_json_string(sq_json_get(variable, "level_type")), name);
    return own && !sq_json_set_string(variable, "level_dim", own) ? 0 : sq_error_memory(err, 0);
}

/* ---- variables ------------------------------------------------------------------------------------------------------------------- */

/* Variables of one group are told apart by marks that hold for all of it: a store that has some of a group cannot take others. */
static bool has_group(const struct growth *g, const struct sq_json *variable)
{
    static const char *const KEYS[] = {"param_id", "parameter",  "level_type",  "step_type",   "statistic",   "kind",
                                       "derived",  "percentile", "probability", "lower_limit", "upper_limit", "grid"};
    const struct sq_json *variables = sq_json_get(g->schema, "variables");
    for (size_t i = 0; i < sq_json_count(variables); i++) {
        bool same = true;
        for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS && same; k++)
            same = sq_json_equal(sq_json_get(sq_json_at(variables, i), KEYS[k]), sq_json_get(variable, KEYS[k]));
        if (same)
            return true;
    }
    return false;
}

/* Tables of intervals are made anew, by the fields, where a variable has none. *ret_name NULL: it did not join. */
static int join(const struct growth *g, const struct sq_json *given, const char **ret_name, struct squall_error *err)
{
    int64_t number;
    const struct sq_json *grid = grid_of(g, given);
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_copy(given);
    *ret_name = NULL;
    if (!v || !grid)
        return sq_error_memory(err, 0);
    SQ_TRY(grid_number(g, grid, &number, err));
    sq_json_remove(v, "bounds");
    if (sq_json_set_int(v, "grid", number))
        return sq_error_memory(err, 0);
    if (has_group(g, v))
        return 0;
    const char *name = NULL;
    SQ_TRY(free_name(g, v, &name, err));
    SQ_TRY(name_levels(g, name, v, err));
    struct sq_json *list = (struct sq_json *)(uintptr_t)sq_json_get(g->schema, "variables");
    if (sq_json_set_string(v, "name", name) || sq_json_set(v, "joins", sq_json_new_bool(true)) || sq_json_append(list, sq_json_share(v)))
        return sq_error_memory(err, 0);
    *ret_name = name;
    return 0;
}

/* A store without any variable of members has them as the first one does; what has one member has no dimension for more. */
static int take_members(const struct growth *g, struct squall_error *err)
{
    const struct sq_json *variables = sq_json_get(g->schema, "variables");
    for (size_t i = 0; i < sq_json_count(variables); i++) {
        bool stored;
        if (says(sq_json_at(variables, i), "kind", "ensemble") && sq_json_bool(sq_json_get(sq_json_at(variables, i), "stored"), &stored) &&
            stored)
            return 0;
    }
    struct sq_json *members = sq_json_copy(sq_json_get(g->others, "members"));
    return members && !sq_json_set(g->schema, "members", members) ? 0 : sq_error_memory(err, 0);
}

static int join_all(const struct growth *g, struct sq_text *names, struct squall_error *err)
{
    const struct sq_json *variables = sq_json_get(g->others, "variables");
    SQ_TRY(take_members(g, err));
    for (size_t i = 0; i < sq_json_count(variables); i++) {
        const char *name;
        SQ_TRY(join(g, sq_json_at(variables, i), &name, err));
        if (name)
            sq_text_printf(names, "%s%s", names->length ? ", " : "", name);
    }
    return names->failed ? sq_error_memory(err, names->length) : 0;
}

/* fields: which of the index lie outside of the store's variables; false: none. ret_other: any that lie outside of what these have. */
static bool find_outside(const struct sq_cube *cube, bool *fields, bool *ret_other)
{
    bool any = false;
    *ret_other = false;
    for (size_t i = 0; i < cube->ignored_count; i++) {
        const bool outside = cube->ignored[i].reason == SQ_CUBE_OUTSIDE_VARIABLES;
        fields[cube->ignored[i].field] = outside;
        any = any || outside;
        *ret_other = *ret_other || cube->ignored[i].reason == SQ_CUBE_OUTSIDE_SCHEMA;
    }
    return any;
}

int sq_cube_schema_grow(const struct sq_grib_index *index, const struct sq_cube_options *options, struct sq_json **ret,
                        struct sq_text *names, struct squall_error *err)
{
    struct sq_cube now;
    SQ_CLEANUP_FREE bool *fields = sq_alloc_zero(index->field_count + 1, sizeof *fields);
    SQ_CLEANUP_JSON struct sq_json *schema = sq_json_copy(options->schema);
    if (!fields || !schema)
        return sq_error_memory(err, index->field_count);
    SQ_TRY(sq_cube_build(index, options, &now, err));
    bool other;
    const bool any = find_outside(&now, fields, &other);
    sq_cube_done(&now);
    if ((any || other) && options->stack)
        return sq_error(err, SQUALL_EREFUSED,
                        "--schema grow: a stack cannot grow, neither by variables nor by steps; convert into another store");
    if (any) {
        const struct sq_cube_options alone = {.fields = fields, .coarsen_y = 1, .coarsen_x = 1};
        struct sq_cube news;
        SQ_TRY(sq_cube_build(index, &alone, &news, err));
        const struct growth g = {.others = news.schema, .schema = schema, .arena = news.arena};
        int status = join_all(&g, names, err);
        sq_cube_done(&news);
        SQ_TRY(status);
    }
    *ret = schema;
    schema = NULL;
    return 0;
}
