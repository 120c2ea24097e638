/*
 * Which arrays a store is made of, and what becomes of each. What a store has decides: on a later run its arrays are looked for in the sources, and what
 * the sources have beside them is left out by name.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/array_builder.h"
#include "cube/array_values.h"
#include "cube/many_compare.h"
#include "format/zarr/metadata.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CUBE_RANK_MAX = 8, SMALL_ELEMENTS = 16 };

/* ---- lines for the user ----------------------------------------------------------------------------------------------------------- */

/* *ret: the arena's. */
__attribute__((format(printf, 3, 0))) static int keep_line(struct sq_array_builder *b, char **ret, const char *format, va_list args,
                                                           struct squall_error *err)
{
    char line[600];
    vsnprintf(line, sizeof line, format, args);
    *ret = sq_arena_strdup(b->cube->arena, line);
    return *ret ? 0 : sq_error_memory(err, sizeof line);
}

static int add_warning(struct sq_array_builder *b, char *line, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    SQ_TRY(SQ_GROW(cube->warnings, b->warning_capacity, cube->warning_count + 1, err));
    cube->warnings[cube->warning_count++] = line;
    return 0;
}

int sq_array_tell(struct sq_array_builder *b, struct squall_error *err, const char *format, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, format);
    int status = keep_line(b, &line, format, args, err);
    va_end(args);
    return status ? status : add_warning(b, line, err);
}

static int add_ignored(struct sq_array_builder *b, struct sq_cube_ignored ignored, uint64_t count, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    for (uint64_t i = 0; i < count; i++) {
        SQ_TRY(SQ_GROW(cube->ignored, b->ignored_capacity, cube->ignored_count + 1, err));
        cube->ignored[cube->ignored_count++] = ignored;
    }
    return 0;
}

int sq_array_ignore(struct sq_array_builder *b, uint32_t file, enum sq_cube_reason reason, uint64_t count, struct squall_error *err,
                    const char *format, ...)
{
    char *what = NULL;
    va_list args;
    va_start(args, format);
    int status = keep_line(b, &what, format, args, err);
    va_end(args);
    SQ_TRY(status);
    SQ_TRY(add_ignored(b, (struct sq_cube_ignored){file, reason, what}, count, err));
    return sq_array_tell(b, err, "%s: %s", b->options->paths[file], what);
}

/* ---- names ------------------------------------------------------------------------------------------------------------------------ */

static const char *renamed(const struct sq_array_builder *b, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < b->options->rename_count; i++) {
        const char *rule = b->options->rename[i];
        if (!strncmp(rule, name, length) && rule[length] == '=')
            return rule + length + 1;
    }
    return name;
}

/* Is the name one of "name=a|b"? */
static bool names_it(const char *line, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = line + strlen("name="); at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, name, length) && (at[length] == '|' || at[length] == 0))
            return true;
    }
    return false;
}

static bool is_selected(const struct sq_array_builder *b, const char *name)
{
    for (size_t i = 0; i < b->options->select_count; i++)
        if (names_it(b->options->select[i], name))
            return true;
    return b->options->select_count == 0;
}

static int check_renames(const struct sq_array_builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources;
    for (size_t i = 0; i < b->options->rename_count; i++) {
        const char *rule = b->options->rename[i], *equals = strchr(rule, '=');
        bool found = false;
        if (!equals || equals == rule || !equals[1])
            return sq_error(err, SQUALL_EINVAL, "--rename: \"%s\" is not OLD=NEW", rule);
        for (size_t k = 0; k < ds->array_count; k++) {
            const char *name = ds->arrays[k]->info.name;
            found = found || (strlen(name) == (size_t)(equals - rule) && !strncmp(name, rule, (size_t)(equals - rule)));
        }
        if (!found && !b->options->stored)
            return sq_error(err, SQUALL_EINVAL, "--rename: there is no variable \"%.*s\"", (int)(equals - rule), rule);
        if (found && (sq_find_array(ds, equals + 1, 0) ||
                      (strlen(b->dim) == (size_t)(equals - rule) && !strncmp(rule, b->dim, (size_t)(equals - rule)))))
            return sq_error(err, SQUALL_EINVAL, "--rename: \"%s\": %s", rule,
                            sq_find_array(ds, equals + 1, 0) ? "there is a variable of that name" : "the append dimension keeps its name");
    }
    return 0;
}

static int check_selection(const struct sq_array_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->options->select_count; i++) {
        const char *line = b->options->select[i];
        if (strncmp(line, "name=", 5) != 0 || strchr(line, ','))
            return sq_error(err, SQUALL_EINVAL,
                            "--select: \"%s\": of HDF5, NetCDF and Zarr sources variables are selected by name=A|B only", line);
        bool found = false;
        for (size_t k = 0; k < b->options->sources->array_count; k++)
            found = found || names_it(line, b->options->sources->arrays[k]->info.name);
        if (!found && !b->options->stored)
            return sq_error(err, SQUALL_EINVAL, "--select: no variable is called as in \"%s\"", line);
    }
    return 0;
}

/* ---- which arrays ----------------------------------------------------------------------------------------------------------------- */

/* NULL, or why it cannot be stored. */
static const char *why_not(const struct sq_array_builder *b, const struct squall_array *a)
{
    const int at = sq_dimension_of(a, b->dim);
    if (a->info.unsupported)
        return a->info.unsupported;
    if (strchr(a->info.name, '/'))
        return "it lies in a group; --group NAME converts the arrays of one";
    if (a->info.rank > CUBE_RANK_MAX)
        return "it has more than 8 dimensions";
    if (!sq_zarr_is_node_name(renamed(b, a->info.name)))
        return "no array of a Zarr store may have that name; --rename gives it another";
    if (at > 0)
        return "the append dimension is not its first";
    if (!sq_array_form_of(a).can)
        return "its type is not written";
    if (at >= (int)sq_array_form_of(a).rank)
        return "its letters lie along the append dimension";
    return NULL;
}

static bool is_named_in(const struct sq_json *list, const char *name)
{
    for (size_t i = 0; i < sq_json_count(list); i++)
        if (!strcmp(sq_json_string(sq_json_at(list, i)) ? sq_json_string(sq_json_at(list, i)) : "", name))
            return true;
    return false;
}

/* What is left out of the store from its beginning on is told once, and then known. */
static int leave_out(struct sq_array_builder *b, const char *name, enum sq_cube_reason reason, const char *why, struct squall_error *err)
{
    const uint32_t file = b->options->first_file;
    if (is_named_in(sq_json_get(b->options->schema, "left_out"), name))
        return 0;
    if (!b->options->stored && sq_json_append(b->left_out, sq_json_new_string(name)))
        return sq_error_memory(err, strlen(name));
    if (reason == SQ_CUBE_NOT_SELECTED)
        return add_ignored(b, (struct sq_cube_ignored){file, reason, NULL}, 1, err);
    return sq_array_ignore(b, file, reason, 1, err, "%s is left out: %s", name, why);
}

const struct squall_array *sq_array_entry_array(const struct sq_array_entry *e)
{
    return e->source ? e->source : e->stored;
}

uint64_t sq_array_elements_at_an_index(const struct squall_array *a)
{
    uint64_t count = 1;
    const unsigned rank = sq_array_form_of(a).rank;
    for (unsigned d = 1; d < rank; d++)
        if (!sq_mul_u64(count, a->info.shape[d], &count))
            return UINT64_MAX;
    return count;
}

static int add_entry(struct sq_array_builder *b, const char *name, struct squall_array *source, struct squall_array *stored,
                     struct squall_error *err)
{
    const struct squall_array *a = source ? source : stored;
    enum sq_array_role role = !strcmp(name, b->dim) && sq_is_coordinate(a) ? SQ_ARRAY_AXIS : SQ_ARRAY_STATIC;
    if (role == SQ_ARRAY_STATIC && sq_dimension_of(a, b->dim) == 0)
        role = sq_array_form_of(a).type == SQUALL_STRING ? SQ_ARRAY_SMALL : SQ_ARRAY_VARIABLE;
    SQ_TRY(SQ_GROW(b->entries, b->entry_capacity, b->entry_count + 1, err));
    b->entries[b->entry_count++] = (struct sq_array_entry){name, source, stored, role};
    return 0;
}

/* What conversions keep of themselves: each store has its own. */
static bool is_flag_name(const char *name)
{
    return !strcmp(name, "chunk_exists") || !strcmp(name, "field_count");
}

static bool is_flag(const struct sq_array_builder *b, const struct squall_array *a)
{
    return is_flag_name(a->info.name) && a->info.rank == 1 && sq_dimension_of(a, b->dim) == 0 &&
           a->info.type == (a->info.name[0] == 'c' ? SQUALL_BOOL : SQUALL_INT32);
}

static int list_new(struct sq_array_builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources;
    for (size_t i = 0; i < ds->array_count; i++) {
        struct squall_array *a = ds->arrays[i];
        const char *why = is_flag_name(a->info.name) ? "stores that are converted keep that name for themselves" : why_not(b, a);
        if (is_flag(b, a))
            continue;
        if (why)
            SQ_TRY(leave_out(b, a->info.name, SQ_CUBE_UNSUPPORTED, why, err));
        else if (sq_dimension_of(a, b->dim) == 0 && !is_selected(b, a->info.name) && strcmp(a->info.name, b->dim) != 0)
            SQ_TRY(leave_out(b, a->info.name, SQ_CUBE_NOT_SELECTED, "", err));
        else
            SQ_TRY(add_entry(b, renamed(b, a->info.name), a, NULL, err));
    }
    return 0;
}

/* Of a store that is there: its arrays, and those of the sources that it does not have. */
static int list_stored(struct sq_array_builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources, *stored = b->options->stored;
    for (size_t i = 0; i < stored->array_count; i++) {
        struct squall_array *a = stored->arrays[i], *source = NULL;
        if (is_flag_name(a->info.name))
            continue;
        for (size_t k = 0; k < ds->array_count && !source; k++)
            if (!strcmp(renamed(b, ds->arrays[k]->info.name), a->info.name))
                source = ds->arrays[k];
        const char *why = source ? why_not(b, source) : NULL;
        if (why)
            return sq_error(err, SQUALL_EREFUSED, "%s is in the store, and cannot be read from the sources: %s", a->info.name, why);
        SQ_TRY(add_entry(b, a->info.name, source, a, err));
    }
    for (size_t i = 0; i < ds->array_count; i++) {
        const char *name = ds->arrays[i]->info.name;
        if (!is_flag(b, ds->arrays[i]) && !sq_find_array(stored, renamed(b, name), i))
            SQ_TRY(leave_out(b, name, SQ_CUBE_OUTSIDE_VARIABLES, "the store was made without it", err));
    }
    return 0;
}

/* Arrays with a few elements at each index, where others have many, would be chunks of a few bytes: they are kept as coordinates are. */
static void find_small_ones(struct sq_array_builder *b)
{
    uint64_t most = 0;
    for (size_t i = 0; i < b->entry_count; i++) {
        const struct sq_array_entry *e = &b->entries[i];
        const uint64_t elements = e->role == SQ_ARRAY_VARIABLE ? sq_array_elements_at_an_index(sq_array_entry_array(e)) : 0;
        most = elements > most ? elements : most;
    }
    for (size_t i = 0; i < b->entry_count; i++) {
        struct sq_array_entry *e = &b->entries[i];
        const struct squall_array *a = sq_array_entry_array(e);
        if (e->role == SQ_ARRAY_VARIABLE && most > SMALL_ELEMENTS && sq_array_elements_at_an_index(a) <= SMALL_ELEMENTS)
            e->role = SQ_ARRAY_SMALL;
    }
}

/* As the store has it the roles are fixed: an array that is a coordinate there is one for good. */
static void take_roles(struct sq_array_builder *b)
{
    const struct sq_json *small = sq_json_get(b->options->schema, "small");
    for (size_t i = 0; i < b->entry_count; i++)
        if (b->entries[i].role == SQ_ARRAY_VARIABLE && is_named_in(small, b->entries[i].name))
            b->entries[i].role = SQ_ARRAY_SMALL;
}

int sq_array_entries_list(struct sq_array_builder *b, struct squall_error *err)
{
    SQ_TRY(check_renames(b, err));
    SQ_TRY(check_selection(b, err));
    SQ_TRY(b->options->stored ? list_stored(b, err) : list_new(b, err));
    if (b->options->stored)
        take_roles(b);
    else
        find_small_ones(b);
    return 0;
}
