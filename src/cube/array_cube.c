/*
 * See array_cube.h. What a store has decides: on a later run its arrays are looked for in the sources, and what the sources have beside them is
 * left out by name.
 */
#include "cube/array_cube.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/array_attributes.h"
#include "cube/array_axis.h"
#include "cube/array_chunks.h"
#include "cube/array_values.h"
#include "cube/many_compare.h"
#include "engine/joined_array.h"
#include "engine/scatter.h"
#include "format/zarr/metadata.h"
#include "sys/file.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUBE_RANK_MAX = 8, SMALL_ELEMENTS = 16 };

/* What becomes of an array. */
enum role {
    ROLE_VARIABLE, /* has the append dimension: written unit by unit */
    ROLE_SMALL,    /* has it, but so little at each index that it is written as a coordinate: bounds of times, texts */
    ROLE_STATIC,   /* has it not */
    ROLE_AXIS,     /* the append dimension's coordinate */
};

struct entry {
    const char *name;                     /* in the store */
    struct squall_array *source, *stored; /* one of them may be NULL */
    enum role role;
};

struct builder {
    const struct sq_array_cube_options *options;
    struct sq_cube *cube;
    const char *dim;
    uint64_t length; /* of the dimension in the sources */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct sq_array_axis axis;
    bool by_index;            /* no coordinate of numbers says what the places are */
    struct sq_json *left_out; /* names that are known and not stored */
    size_t note_capacity, warning_capacity, ignored_capacity, coordinate_capacity, variable_capacity;
};

__attribute__((format(printf, 5, 6))) static int add_line(struct builder *b, char ***lines, size_t *count, size_t *capacity,
                                                          const char *format, ...)
{
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    SQ_TRY(SQ_GROW(*lines, *capacity, *count + 1, NULL));
    char *copy = sq_arena_strdup(b->cube->arena, line);
    if (!copy)
        return SQUALL_ENOMEM;
    (*lines)[(*count)++] = copy;
    return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------------------------ */

static const char *renamed(const struct builder *b, const char *name)
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

static bool is_selected(const struct builder *b, const char *name)
{
    for (size_t i = 0; i < b->options->select_count; i++)
        if (names_it(b->options->select[i], name))
            return true;
    return b->options->select_count == 0;
}

static int check_renames(const struct builder *b, struct squall_error *err)
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

static int check_selection(const struct builder *b, struct squall_error *err)
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
static const char *why_not(const struct builder *b, const struct squall_array *a)
{
    const int at = sq_dimension_of(a, b->dim);
    if (a->info.unsupported)
        return a->info.unsupported;
    if (strchr(a->info.name, '/'))
        return "it lies in a group; only arrays of the root are converted";
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

/* The file of an index along the sources' append dimension. */
static uint32_t file_of(const struct builder *b, uint64_t index)
{
    size_t low = 0, high = b->options->span_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (b->options->spans[middle].begin <= index)
            low = middle;
        else
            high = middle;
    }
    return b->options->spans[low].file;
}

static int ignore(struct builder *b, uint32_t file, enum sq_cube_reason reason, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    SQ_TRY(SQ_GROW(cube->ignored, b->ignored_capacity, cube->ignored_count + 1, err));
    cube->ignored[cube->ignored_count++] = (struct sq_cube_ignored){file, reason};
    return 0;
}

/* What is left out of the store from its beginning on is told once, and then known. */
static int leave_out(struct builder *b, const char *name, enum sq_cube_reason reason, const char *why, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    if (is_named_in(sq_json_get(b->options->schema, "left_out"), name))
        return 0;
    if (!b->options->stored && sq_json_append(b->left_out, sq_json_new_string(name)))
        return sq_error_memory(err, strlen(name));
    SQ_TRY(ignore(b, b->options->spans[0].file, reason, err));
    if (reason == SQ_CUBE_NOT_SELECTED)
        return 0;
    int status = add_line(b, &cube->warnings, &cube->warning_count, &b->warning_capacity, "%s is left out: %s", name, why);
    return status ? sq_error_memory(err, strlen(name)) : 0;
}

static uint64_t elements_at_an_index(const struct squall_array *a)
{
    uint64_t count = 1;
    const unsigned rank = sq_array_form_of(a).rank;
    for (unsigned d = 1; d < rank; d++)
        if (!sq_mul_u64(count, a->info.shape[d], &count))
            return UINT64_MAX;
    return count;
}

static int add_entry(struct builder *b, const char *name, struct squall_array *source, struct squall_array *stored,
                     struct squall_error *err)
{
    const struct squall_array *a = source ? source : stored;
    enum role role = !strcmp(name, b->dim) && sq_is_coordinate(a) ? ROLE_AXIS : ROLE_STATIC;
    if (role == ROLE_STATIC && sq_dimension_of(a, b->dim) == 0)
        role = sq_array_form_of(a).type == SQUALL_STRING ? ROLE_SMALL : ROLE_VARIABLE;
    SQ_TRY(SQ_GROW(b->entries, b->entry_capacity, b->entry_count + 1, err));
    b->entries[b->entry_count++] = (struct entry){name, source, stored, role};
    return 0;
}

/* What conversions keep of themselves: each store has its own. */
static bool is_flag_name(const char *name)
{
    return !strcmp(name, "chunk_exists") || !strcmp(name, "field_count");
}

static bool is_flag(const struct builder *b, const struct squall_array *a)
{
    return is_flag_name(a->info.name) && a->info.rank == 1 && sq_dimension_of(a, b->dim) == 0 &&
           a->info.type == (a->info.name[0] == 'c' ? SQUALL_BOOL : SQUALL_INT32);
}

static int list_new(struct builder *b, struct squall_error *err)
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
static int list_stored(struct builder *b, struct squall_error *err)
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
            SQ_TRY(leave_out(b, name, SQ_CUBE_OUTSIDE_SCHEMA, "the store was made without it", err));
    }
    return 0;
}

/* Arrays with a few elements at each index, where others have many, would be chunks of a few bytes: they are kept as coordinates are. */
static void find_small_ones(struct builder *b)
{
    uint64_t most = 0;
    for (size_t i = 0; i < b->entry_count; i++) {
        const struct entry *e = &b->entries[i];
        const uint64_t elements = e->role == ROLE_VARIABLE ? elements_at_an_index(e->source ? e->source : e->stored) : 0;
        most = elements > most ? elements : most;
    }
    for (size_t i = 0; i < b->entry_count; i++) {
        struct entry *e = &b->entries[i];
        const struct squall_array *a = e->source ? e->source : e->stored;
        if (e->role == ROLE_VARIABLE && most > SMALL_ELEMENTS && elements_at_an_index(a) <= SMALL_ELEMENTS)
            e->role = ROLE_SMALL;
    }
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

/* Of a store that is there its own, so that nothing of it changes. */
static int attributes_of(struct builder *b, const struct entry *e, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *source = NULL;
    SQ_CLEANUP_JSON struct sq_json *stored = NULL;
    if (e->source)
        SQ_TRY(sq_array_attributes(e->source, &source, err));
    if (e->stored)
        SQ_TRY(sq_array_attributes(e->stored, &stored, err));
    if (source && stored && e->role != ROLE_AXIS)
        SQ_TRY(sq_array_compare_meaning(e->name, source, stored, sq_array_form_of(e->source).type == e->stored->info.type, err));
    if (e->source && !e->stored && sq_array_fill_is_unusable(e->source) &&
        add_line(b, &b->cube->warnings, &b->cube->warning_count, &b->warning_capacity,
                 "%s: %s has a _FillValue that no %s can be; it is left out", b->options->paths[b->options->spans[0].file], e->name,
                 sq_type_name(e->source->info.type)))
        return sq_error_memory(err, strlen(e->name));
    *ret = sq_json_share(e->stored ? stored : source);
    return 0;
}

/* ---- coordinates ------------------------------------------------------------------------------------------------------------------ */

static int add_coordinate(struct builder *b, const struct entry *e, struct sq_cube_coordinate **ret, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const struct squall_array *a = e->source ? e->source : e->stored;
    const struct sq_array_form form = sq_array_form_of(a);
    struct sq_cube_coordinate c = {.type = form.type, .rank = form.rank};
    SQ_TRY(SQ_GROW(cube->coordinates, b->coordinate_capacity, cube->coordinate_count + 1, err));
    c.name = sq_arena_strdup(cube->arena, e->name);
    for (unsigned d = 0; d < c.rank; d++) {
        c.dims[d] = sq_arena_strdup(cube->arena, a->info.dims[d]);
        c.shape[d] = a->info.shape[d];
        if (!c.dims[d])
            return sq_error_memory(err, strlen(a->info.dims[d]));
    }
    if (!c.name)
        return sq_error_memory(err, strlen(e->name));
    SQ_TRY(attributes_of(b, e, &c.attributes, err));
    cube->coordinates[cube->coordinate_count] = c;
    *ret = &cube->coordinates[cube->coordinate_count++];
    return form.letters ? 0 : sq_array_fill_value(a, &(*ret)->fill_value, err);
}

/* Bounds of times have no units of their own (CF 7.1): what the sources count from another moment is counted as the store counts. */
static int rebase_bounds(const struct builder *b, const struct entry *e, void *values, uint64_t count, struct squall_error *err)
{
    const struct sq_array_axis *axis = &b->axis;
    const struct squall_array *of = axis->recounted ? sq_find_array(b->options->sources, b->dim, 0) : NULL;
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    SQ_CLEANUP_JSON struct sq_json *own = NULL;
    if (!of)
        return 0;
    SQ_TRY(sq_json_parse(of->info.attributes, strlen(of->info.attributes), &attributes, err));
    SQ_TRY(sq_json_parse(e->source->info.attributes, strlen(e->source->info.attributes), &own, err));
    const char *bounds = sq_json_string(sq_json_get(attributes, "bounds"));
    bounds = bounds ? bounds : sq_json_string(sq_json_get(attributes, "climatology"));
    if (!bounds || strcmp(bounds, e->source->info.name) != 0 || sq_json_get(own, "units") ||
        sq_cf_time_rebase(e->source->info.type, values, count, &axis->counted, &axis->stored))
        return 0;
    SQ_CLEANUP_FREE char *now = sq_cf_time_units(&axis->counted);
    SQ_CLEANUP_FREE char *then = sq_cf_time_units(&axis->stored);
    return sq_error(err, SQUALL_EREFUSED, "%s is counted in \"%s\" and cannot be told exactly in \"%s\", as the store counts", e->name,
                    now ? now : "", then ? then : "");
}

/* Values along the append dimension: at each place those of the sources, or else those that the store has. */
static int join_values(struct builder *b, const struct entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
{
    const struct squall_array *a = e->source ? e->source : e->stored;
    assert(a);
    const struct sq_array_form form = sq_array_form_of(a);
    const uint64_t each = elements_at_an_index(a), count = b->axis.count, stored_count = e->stored ? e->stored->info.shape[0] : 0;
    const size_t row = (size_t)each * form.element_bytes;
    const struct squall_bytes empty = {(char[]){""}, 0};
    void *source = NULL, *stored = NULL;
    uint64_t elements;
    if (e->source && e->stored && (form.type != e->stored->info.type || each != elements_at_an_index(e->stored)))
        return sq_error(err, SQUALL_EREFUSED, "%s has another type or shape in the store than in the sources", e->name);
    if (!sq_mul_u64(each, count, &elements) || elements > SIZE_MAX / 64 ||
        !(c->values = sq_alloc((size_t)elements + 1, form.element_bytes)))
        return sq_error_memory(err, SIZE_MAX);
    c->along_init = true;
    c->shape[0] = count;
    int status = e->source ? sq_array_values_read(e->source, b->cube->arena, &source, err) : 0;
    if (!status && e->source && e->stored)
        status = rebase_bounds(b, e, source, each * b->length, err);
    if (!status && e->stored)
        status = sq_array_values_read(e->stored, b->cube->arena, &stored, err);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint8_t *to = (uint8_t *)c->values + i * row;
        const uint64_t from = b->axis.source_index[i];
        if (source && from != SQ_CUBE_NOWHERE)
            memcpy(to, (uint8_t *)source + from * row, row);
        else if (stored && i < stored_count)
            memcpy(to, (uint8_t *)stored + i * row, row);
        else
            sq_scatter_fill(to, (size_t)each, form.element_bytes, form.type == SQUALL_STRING ? (const void *)&empty : a->fill);
    }
    sq_free(source);
    sq_free(stored);
    return status;
}

/* Of what has not the append dimension the store keeps its own: a grid must be the same, and other things that are not are named. */
static int compare_static(struct builder *b, const struct entry *e, struct squall_error *err)
{
    static const uint64_t LIMIT_BYTES = (uint64_t)64 << 20;
    struct sq_cube *cube = b->cube;
    const struct sq_array_form form = sq_array_form_of(e->source);
    bool same = form.type == e->stored->info.type && form.rank == e->stored->info.rank;
    for (unsigned d = 0; d < form.rank && same; d++)
        same = e->source->info.shape[d] == e->stored->info.shape[d];
    if (same)
        SQ_TRY(sq_array_values_same(e->source, e->stored, LIMIT_BYTES, &same, err));
    if (same)
        return 0;
    if (sq_is_coordinate(e->source))
        return sq_error(err, SQUALL_EREFUSED, "%s of the sources is another one than the store's; convert them into another store",
                        e->name);
    SQ_TRY(ignore(b, b->options->spans[0].file, SQ_CUBE_DIFFERENT, err));
    int status = add_line(b, &cube->warnings, &cube->warning_count, &b->warning_capacity,
                          "%s of the sources is another one than the store's, which stays", e->name);
    return status ? sq_error_memory(err, strlen(e->name)) : 0;
}

static int add_axis(struct builder *b, const struct entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
{
    if (!b->axis.values)
        return join_values(b, e, c, err);
    c->along_init = true;
    c->type = b->axis.type;
    c->shape[0] = b->axis.count;
    c->values = b->axis.values;
    b->axis.values = NULL;
    sq_json_free(c->attributes);
    c->attributes = b->axis.attributes;
    b->axis.attributes = NULL;
    return 0;
}

static int add_coordinates(struct builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->entry_count; i++) {
        const struct entry *e = &b->entries[i];
        struct sq_cube_coordinate *c = NULL;
        if (e->role == ROLE_VARIABLE)
            continue;
        SQ_TRY(add_coordinate(b, e, &c, err));
        if (e->role == ROLE_AXIS)
            SQ_TRY(add_axis(b, e, c, err));
        else if (e->role == ROLE_SMALL)
            SQ_TRY(join_values(b, e, c, err));
        else {
            SQ_TRY(e->stored && e->source ? compare_static(b, e, err) : 0);
            c->source = e->stored ? NULL : e->source; /* of a store that is there it is as it is */
            if (c->source && sq_array_form_of(c->source).letters)
                SQ_TRY(sq_array_values_read(c->source, b->cube->arena, &c->values, err));
        }
    }
    return 0;
}

/* ---- variables -------------------------------------------------------------------------------------------------------------------- */

static int add_variable(struct builder *b, const struct entry *e, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const struct squall_array *a = e->source ? e->source : e->stored;
    struct sq_cube_variable v = {.type = a->info.type, .source_type = a->info.type, .rank = a->info.rank, .source = e->source};
    SQ_TRY(SQ_GROW(cube->variables, b->variable_capacity, cube->variable_count + 1, err));
    v.name = sq_arena_strdup(cube->arena, e->name);
    for (unsigned d = 0; d < v.rank; d++) {
        v.dims[d] = a->info.dims[d];
        v.shape[d] = d == 0 ? b->axis.count : a->info.shape[d];
        v.dim_kinds[d] = d == 0 ? SQ_DIM_INIT_TIME : SQ_DIM_OTHER;
        v.default_chunks[d] = e->stored ? e->stored->info.chunks[d] : 0;
    }
    if (e->stored)
        v.default_chunks[0] = b->options->stored_chunk;
    if (!v.name)
        return sq_error_memory(err, strlen(e->name));
    SQ_TRY(attributes_of(b, e, &v.attributes, err));
    cube->variables[cube->variable_count++] = v;
    struct sq_cube_variable *added = &cube->variables[cube->variable_count - 1];
    SQ_TRY(sq_array_missing_values(a, cube->arena, &added->missing, &added->missing_count, err));
    return sq_array_fill_value(e->stored ? e->stored : a, &added->fill_value, err);
}

static int add_variables(struct builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->entry_count; i++)
        if (b->entries[i].role == ROLE_VARIABLE)
            SQ_TRY(add_variable(b, &b->entries[i], err));
    if (b->cube->variable_count == 0)
        return sq_error(err, SQUALL_ENOTFOUND, "no variable along %s is left to convert", b->dim);
    if (!b->options->stored)
        sq_array_default_chunks(b->cube->variables, b->cube->variable_count, b->length, b->options->spans[0].count);
    return 0;
}

/* A store that squall made says itself where it has nothing. *ret: of each index, or NULL; sq_free */
static int read_flags(const struct builder *b, bool **ret, struct squall_error *err)
{
    struct squall_array *a = sq_find_array(b->options->sources, "chunk_exists", 0);
    *ret = NULL;
    if (!a || a->info.type != SQUALL_BOOL || a->info.rank != 1 || sq_dimension_of(a, b->dim) != 0 || a->info.unsupported)
        return 0;
    const struct squall_selection all = squall_selection_all(a);
    bool *flags = sq_alloc((size_t)b->length + 1, sizeof *flags);
    int status = flags ? squall_array_read(a, &all, flags, NULL, err) : sq_error_memory(err, b->length);
    if (status)
        sq_free(flags);
    else
        *ret = flags;
    return status;
}

/* Places that a store which only grows at its end has no room for: a line a file. */
static int ignore_behind(struct builder *b, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    for (size_t i = 0; i < b->options->span_count; i++) {
        const struct sq_array_span *span = &b->options->spans[i];
        const uint64_t end = b->options->span_count == 1 ? b->length : span->begin + span->count;
        uint64_t count = 0;
        for (uint64_t k = span->begin; k < end; k++)
            if (b->axis.init_of[k] == SQ_CUBE_NOWHERE) {
                SQ_TRY(ignore(b, span->file, SQ_CUBE_BEHIND, err));
                count++;
            }
        if (count == 0)
            continue;
        int status = add_line(b, &cube->warnings, &cube->warning_count, &b->warning_capacity,
                              "%s: %llu of its places along %s lie before the end of the store, which grows only there; left out",
                              b->options->paths[span->file], (unsigned long long)count, b->dim);
        if (status)
            return sq_error_memory(err, sizeof *cube);
    }
    return 0;
}

static int add_places(struct builder *b, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    size_t most;
    if (!sq_mul_size(b->length, cube->variable_count, &most) || most >= UINT32_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%llu places along %s at once: convert fewer files at a time",
                        (unsigned long long)b->length, b->dim);
    cube->places = sq_alloc(most + 1, sizeof *cube->places);
    if (!cube->places)
        return sq_error_memory(err, most * sizeof *cube->places);
    bool *flags = NULL;
    SQ_TRY(read_flags(b, &flags, err));
    SQ_CLEANUP_FREE bool *exists = flags;
    for (uint64_t init = 0; init < b->axis.count; init++) {
        const uint64_t index = b->axis.source_index[init];
        const size_t before = cube->place_count;
        const bool held = index != SQ_CUBE_NOWHERE && (!exists || exists[index]);
        for (uint32_t v = 0; v < cube->variable_count && held; v++) {
            const struct squall_array *source = cube->variables[v].source;
            if (!source || !sq_joined_array_has(source, index))
                continue;
            cube->variables[v].field_count++;
            cube->places[cube->place_count++] = (struct sq_cube_place){.field = file_of(b, index), .variable = v, .init = (uint32_t)init};
        }
        if (cube->place_count > before)
            cube->holes += cube->variable_count - (cube->place_count - before);
    }
    return ignore_behind(b, err);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------- */

static bool has_first_dimension(const struct squall_array *a)
{
    return a->info.rank > 0 && a->info.dims[0][0] && !strchr(a->info.name, '/') && !a->info.unsupported;
}

/* Is a larger than b, or as large with more dimensions: variables at one time are as large as a grid of two dimensions? */
static bool is_larger(const struct squall_array *a, const struct squall_array *b)
{
    double elements[2] = {1, 1};
    for (unsigned d = 0; d < a->info.rank; d++)
        elements[0] *= (double)a->info.shape[d];
    for (unsigned d = 0; d < b->info.rank; d++)
        elements[1] *= (double)b->info.shape[d];
    return elements[0] > elements[1] || (elements[0] == elements[1] && a->info.rank > b->info.rank);
}

/* The first dimension of the largest variable; where some have an unlimited one, of those. */
static const char *likeliest_dimension(const struct squall_dataset *ds)
{
    const struct squall_array *found = NULL;
    for (size_t i = 0; i < ds->array_count; i++) {
        const struct squall_array *a = ds->arrays[i];
        if (has_first_dimension(a) && (!found || (a->grows == found->grows ? is_larger(a, found) : a->grows)))
            found = a;
    }
    return found ? found->info.dims[0] : NULL;
}

static int find_length(struct builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources;
    bool found = false;
    for (size_t i = 0; i < ds->array_count; i++) {
        const struct squall_array *a = ds->arrays[i];
        const int d = strchr(a->info.name, '/') ? -1 : sq_dimension_of(a, b->dim);
        if (d < 0)
            continue;
        if (found && a->info.shape[d] != b->length)
            return sq_error(err, SQUALL_EREFUSED, "%s has %llu elements along %s, others have %llu", a->info.name,
                            (unsigned long long)a->info.shape[d], b->dim, (unsigned long long)b->length);
        b->length = a->info.shape[d];
        found = true;
    }
    return found ? 0 : sq_error(err, SQUALL_EINVAL, "no variable has a dimension \"%s\" (--append-dim)", b->dim);
}

static int refuse_without_dimension(const struct squall_dataset *ds, struct squall_error *err)
{
    for (size_t i = 0; i < ds->array_count; i++)
        if (strchr(ds->arrays[i]->info.name, '/'))
            return sq_error(
                err, SQUALL_EUNSUPPORTED,
                "%s: its arrays lie in groups (%s); only those of the root are converted. squall get and Python read the others", ds->path,
                ds->arrays[i]->info.name);
    return sq_error(err, SQUALL_EUNSUPPORTED, "%s: no array of numbers with a dimension is there to convert", ds->path);
}

static int choose_dimension(struct builder *b, struct squall_error *err)
{
    const char *stored = sq_json_string(sq_json_get(b->options->schema, "append_dim"));
    const char *dim = b->options->append_dim ? b->options->append_dim : stored ? stored : likeliest_dimension(b->options->sources);
    if (!dim)
        return refuse_without_dimension(b->options->sources, err);
    if (stored && strcmp(dim, stored) != 0)
        return sq_error(err, SQUALL_EREFUSED, "the store grows along %s, not %s", stored, dim);
    if (b->options->schema && !stored)
        return sq_error(err, SQUALL_EREFUSED, "the store was made of GRIB fields; convert HDF5, NetCDF and Zarr sources into another one");
    b->dim = b->cube->append_dim = sq_arena_strdup(b->cube->arena, dim);
    if (!b->dim)
        return sq_error_memory(err, strlen(dim));
    SQ_TRY(find_length(b, err));
    if (b->length > SQ_INIT_COUNT_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: %s has %llu places; a store is made of at most %d", b->options->sources->path,
                        b->dim, (unsigned long long)b->length, SQ_INIT_COUNT_LIMIT);
    return 0;
}

static struct sq_json *names_of(const struct builder *b, enum role role)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < b->entry_count; i++)
        if (b->entries[i].role == role && sq_json_append(list, sq_json_new_string(b->entries[i].name))) {
            sq_json_free(list);
            return NULL;
        }
    return list;
}

/* Where no coordinate says what a place is, the files' order does: name and places of each. */
static struct sq_json *files_of(const struct builder *b)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < b->options->span_count; i++) {
        const struct sq_array_span *span = &b->options->spans[i];
        struct sq_json *file = sq_json_new_array();
        const uint64_t count = b->options->span_count == 1 ? b->length : span->count;
        if (!file || sq_json_append(file, sq_json_new_string(sq_path_name(b->options->paths[span->file]))) ||
            sq_json_append(file, sq_json_new_uint(count)) || sq_json_append(list, sq_json_share(file))) {
            sq_json_free(file);
            sq_json_free(list);
            return NULL;
        }
        sq_json_free(file);
    }
    return list;
}

/* The same files first, and what is new behind them: anything else would put one file's values in the place of another's. */
static int compare_files(const struct builder *b, struct squall_error *err)
{
    const struct sq_json *stored = sq_json_get(b->options->schema, "files");
    SQ_CLEANUP_JSON struct sq_json *now = files_of(b);
    const size_t count = sq_json_count(stored);
    if (!now)
        return sq_error_memory(err, sizeof *b);
    for (size_t i = 0; i < count; i++) {
        const struct sq_json *was = sq_json_at(stored, i), *is = sq_json_at(now, i);
        uint64_t places_before = 0, places = 0;
        const char *name = sq_json_string(sq_json_at(was, 0));
        const bool same = is && name && !strcmp(name, sq_json_string(sq_json_at(is, 0))) &&
                          sq_json_uint(sq_json_at(was, 1), &places_before) && sq_json_uint(sq_json_at(is, 1), &places) &&
                          (places == places_before || (i + 1 == count && places > places_before));
        if (!same)
            return sq_error(
                err, SQUALL_EREFUSED,
                "no coordinate %s says which places the sources have, so the order of files does: the store was made of %s there; "
                "give the same files in the same order, and new ones behind them",
                b->dim, name ? name : "other files");
    }
    return 0;
}

static int make_schema(struct builder *b, struct squall_error *err)
{
    struct sq_json *schema = b->cube->schema = sq_json_new_object();
    const struct sq_json *left_out = b->options->schema ? sq_json_get(b->options->schema, "left_out") : b->left_out;
    if (!schema || sq_json_set_string(schema, "kind", "arrays") || sq_json_set_string(schema, "append_dim", b->dim) ||
        sq_json_set(schema, "variables", names_of(b, ROLE_VARIABLE)) || sq_json_set(schema, "small", names_of(b, ROLE_SMALL)) ||
        sq_json_set(schema, "left_out", sq_json_share(left_out)) || (b->by_index && sq_json_set(schema, "files", files_of(b))))
        return sq_error_memory(err, sizeof *b);
    return 0;
}

/* As the store has it the roles are fixed: an array that is a coordinate there is one for good. */
static void take_roles(struct builder *b)
{
    const struct sq_json *small = sq_json_get(b->options->schema, "small");
    for (size_t i = 0; i < b->entry_count; i++)
        if (b->entries[i].role == ROLE_VARIABLE && is_named_in(small, b->entries[i].name))
            b->entries[i].role = ROLE_SMALL;
}

static int take_root_attributes(struct builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->stored ? b->options->stored : b->options->sources;
    const char *text = ds->attributes ? ds->attributes : "{}";
    return sq_json_parse(text, strlen(text), &b->cube->attributes, err);
}

static int build(struct builder *b, struct squall_error *err)
{
    const struct sq_array_cube_options *o = b->options;
    struct sq_cube *cube = b->cube;
    cube->of_arrays = true;
    cube->arena = sq_arena_new();
    b->left_out = sq_json_new_array();
    if (!cube->arena || !b->left_out)
        return sq_error_memory(err, sizeof *cube);
    SQ_TRY(choose_dimension(b, err));
    SQ_TRY(check_renames(b, err));
    SQ_TRY(check_selection(b, err));
    SQ_TRY(o->stored ? list_stored(b, err) : list_new(b, err));
    if (o->stored)
        take_roles(b);
    else
        find_small_ones(b);
    SQ_TRY(sq_array_axis_make(o->sources, o->stored, b->dim, b->length, o->stored_count, &b->axis, err));
    b->by_index = !b->axis.values;
    if (b->by_index && o->stored)
        SQ_TRY(compare_files(b, err));
    if (b->axis.is_unordered && add_line(b, &cube->warnings, &cube->warning_count, &b->warning_capacity,
                                         "%s does not go one way, so nothing can be added to the store later", b->dim))
        return sq_error_memory(err, strlen(b->dim));
    cube->init_count = (size_t)b->axis.count;
    if (cube->init_count == 0 || cube->init_count > SQ_INIT_COUNT_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s has %zu places; a store is made of 1 to %d", b->dim, cube->init_count,
                        SQ_INIT_COUNT_LIMIT);
    SQ_TRY(add_variables(b, err));
    SQ_TRY(add_coordinates(b, err));
    SQ_TRY(add_places(b, err));
    SQ_TRY(take_root_attributes(b, err));
    for (size_t i = 0; i < o->sources->problem_count; i++)
        if (add_line(b, &cube->notes, &cube->note_count, &b->note_capacity, "%s", o->sources->problems[i]))
            return sq_error_memory(err, 1);
    cube->init_times_s = b->axis.times_s;
    b->axis.times_s = NULL;
    cube->source_index = b->axis.source_index;
    b->axis.source_index = NULL;
    return make_schema(b, err);
}

int sq_array_cube_build(const struct sq_array_cube_options *options, struct sq_cube *ret, struct squall_error *err)
{
    struct sq_cube cube = {0};
    struct builder b = {.options = options, .cube = &cube};
    int status = build(&b, err);
    sq_array_axis_done(&b.axis);
    sq_json_free(b.left_out);
    sq_free(b.entries);
    if (status)
        sq_cube_done(&cube);
    else
        *ret = cube;
    return status;
}
