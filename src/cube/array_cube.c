/*
 * See array_cube.h. What a store has decides: on a later run its arrays are looked for in the sources, and what the sources have beside them is
 * left out by name.
 */
#include "cube/array_cube.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/array_axis.h"
#include "cube/array_chunks.h"
#include "cube/many_compare.h"
#include "engine/joined_array.h"
#include "engine/scatter.h"
#include "format/zarr/fill.h"
#include <math.h>
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
        if (found && (sq_find_array(ds, equals + 1, 0) || !strncmp(rule, b->dim, (size_t)(equals - rule))))
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
    const enum squall_type type = a->info.type;
    const int at = sq_dimension_of(a, b->dim);
    if (a->info.unsupported)
        return a->info.unsupported;
    if (strchr(a->info.name, '/'))
        return "it lies in a group; only arrays of the root are converted";
    if (a->info.rank > CUBE_RANK_MAX)
        return "it has more than 8 dimensions";
    if (at > 0)
        return "the append dimension is not its first";
    if (type > SQUALL_FLOAT64 && type != SQUALL_STRING)
        return "its type is not written";
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
    for (unsigned d = 1; d < a->info.rank; d++)
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
        role = sq_type_is_variable(a->info.type) ? ROLE_SMALL : ROLE_VARIABLE;
    SQ_TRY(SQ_GROW(b->entries, b->entry_capacity, b->entry_count + 1, err));
    b->entries[b->entry_count++] = (struct entry){name, source, stored, role};
    return 0;
}

/* What conversions keep of themselves: each store has its own. */
static bool is_flag(const char *name)
{
    return !strcmp(name, "chunk_exists") || !strcmp(name, "field_count");
}

static int list_new(struct builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources;
    for (size_t i = 0; i < ds->array_count; i++) {
        struct squall_array *a = ds->arrays[i];
        const char *why = why_not(b, a);
        if (is_flag(a->info.name))
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
        if (is_flag(a->info.name))
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
        if (!is_flag(name) && !sq_find_array(stored, renamed(b, name), i))
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

/* ---- attributes and fill values --------------------------------------------------------------------------------------------------- */

/* Eight bytes of a double, little endian, as base64: xarray's spelling of _FillValue in Zarr v3. */
static struct sq_json *fill_as_base64(double value)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits, packed;
    char text[13] = {0};
    memcpy(&bits, &value, sizeof bits);
    packed = __builtin_bswap64(bits); /* its first byte is the lowest of the number */
    for (int i = 0; i < 10; i++)
        text[i] = DIGITS[packed >> (58 - 6 * i) & 63];
    text[10] = DIGITS[(packed & 15) << 2];
    text[11] = '=';
    return sq_json_new_string(text);
}

/* A list of one is what it holds. */
static const struct sq_json *scalar(const struct sq_json *v)
{
    return sq_json_type(v) == SQ_JSON_ARRAY && sq_json_count(v) == 1 ? sq_json_at(v, 0) : v;
}

static int spell_fill_attribute(struct sq_json *attributes, enum squall_type type, struct squall_error *err)
{
    const struct sq_json *fill = scalar(sq_json_get(attributes, "_FillValue"));
    double value;
    if (!fill)
        return 0;
    struct sq_json *spelled = sq_json_share(fill);
    if (sq_type_is_float(type) && sq_json_double(fill, &value)) {
        sq_json_free(spelled);
        spelled = fill_as_base64(value);
    }
    return sq_json_set(attributes, "_FillValue", spelled) ? sq_error_memory(err, sizeof value) : 0;
}

/* As Zarr v3 spells it, or NULL where the type's own does. */
static int fill_of(const struct squall_array *a, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *fill = NULL;
    uint8_t element[SQ_ZARR_FILL_BYTES];
    double value;
    *ret = NULL;
    if (!a->info.fill_value || !strcmp(a->info.fill_value, "null"))
        return 0;
    SQ_TRY(sq_json_parse(a->info.fill_value, strlen(a->info.fill_value), &fill, err));
    if (sq_json_type(fill) == SQ_JSON_DOUBLE && sq_json_double(fill, &value) && !isfinite(value)) {
        sq_json_free(fill);
        fill = sq_json_new_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    }
    const bool good = a->info.type == SQUALL_STRING ? sq_json_string(fill) != NULL : sq_zarr_fill_parse(a->info.type, fill, element);
    if (good)
        *ret = fill;
    else
        sq_json_free(fill);
    return 0;
}

/* What numbers mean must not change on the way into a store that is there. */
static int compare_meaning(const struct entry *e, const struct sq_json *of_source, const struct sq_json *of_store, struct squall_error *err)
{
    static const char *const KEYS[] = {"units", "scale_factor", "add_offset", "_FillValue"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const struct sq_json *a = scalar(sq_json_get(of_source, KEYS[i])), *b = scalar(sq_json_get(of_store, KEYS[i]));
        SQ_CLEANUP_TEXT struct sq_text was = SQ_TEXT_INIT;
        SQ_CLEANUP_TEXT struct sq_text is = SQ_TEXT_INIT;
        if (a == b || sq_json_equal(a, b))
            continue;
        if (b)
            SQ_TRY(sq_json_write(b, false, &was, err));
        if (a)
            SQ_TRY(sq_json_write(a, false, &is, err));
        return sq_error(err, SQUALL_EREFUSED, "%s: %s is %.100s in the store and %.100s in the sources; convert them into another store",
                        e->name, KEYS[i], b ? was.data : "absent", a ? is.data : "absent");
    }
    return 0;
}

/* Of a store that is there its own, so that nothing of it changes. */
static int attributes_of(const struct builder *b, const struct entry *e, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *source = NULL;
    SQ_CLEANUP_JSON struct sq_json *stored = NULL;
    if (e->source) {
        const char *text = e->source->info.attributes;
        SQ_TRY(sq_json_parse(text, strlen(text), &source, err));
        if (!strcmp(b->options->sources->format, "zarr v2") && !sq_json_get(source, "_FillValue") &&
            strcmp(e->source->info.fill_value, "null")) {
            struct sq_json *fill = NULL;
            SQ_TRY(sq_json_parse(e->source->info.fill_value, strlen(e->source->info.fill_value), &fill, err));
            if (sq_json_set(source, "_FillValue", fill))
                return sq_error_memory(err, 1);
        }
        SQ_TRY(spell_fill_attribute(source, e->source->info.type, err));
    }
    if (e->stored) {
        const char *text = e->stored->info.attributes;
        SQ_TRY(sq_json_parse(text, strlen(text), &stored, err));
        if (e->source && e->role != ROLE_AXIS)
            SQ_TRY(compare_meaning(e, source, stored, err));
    }
    *ret = sq_json_share(e->stored ? stored : source);
    return 0;
}

/* ---- coordinates ------------------------------------------------------------------------------------------------------------------ */

static int add_coordinate(struct builder *b, const struct entry *e, struct sq_cube_coordinate **ret, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const struct squall_array *a = e->source ? e->source : e->stored;
    struct sq_cube_coordinate c = {.type = a->info.type, .rank = a->info.rank};
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
    return fill_of(a, &(*ret)->fill_value, err);
}

/* Texts move into the arena, which outlives the values. */
static int keep_texts(struct builder *b, struct squall_bytes *texts, uint64_t count, struct squall_error *err)
{
    int status = 0;
    for (uint64_t i = 0; i < count; i++) {
        void *data = texts[i].data;
        texts[i].data = sq_arena_copy(b->cube->arena, data ? data : "", texts[i].size_bytes + 1);
        if (!texts[i].data)
            status = sq_error_memory(err, texts[i].size_bytes);
        free(data);
    }
    return status;
}

static int read_whole(struct builder *b, struct squall_array *a, uint64_t elements, void **ret, struct squall_error *err)
{
    const struct squall_selection all = squall_selection_all(a);
    void *values = sq_alloc((size_t)elements + 1, a->info.element_bytes);
    if (!values)
        return sq_error_memory(err, elements * a->info.element_bytes);
    int status = squall_array_read(a, &all, values, NULL, err);
    if (!status && sq_type_is_variable(a->info.type))
        status = keep_texts(b, values, elements, err);
    if (status)
        sq_free(values);
    else
        *ret = values;
    return status;
}

/* Values along the append dimension: at each place those of the sources, or else those that the store has. */
static int join_values(struct builder *b, const struct entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
{
    const struct squall_array *a = e->source ? e->source : e->stored;
    const uint64_t each = elements_at_an_index(a), count = b->axis.count, stored_count = e->stored ? e->stored->info.shape[0] : 0;
    const size_t row = (size_t)each * a->info.element_bytes;
    void *source = NULL, *stored = NULL;
    uint64_t elements;
    if (e->source && e->stored && (e->source->info.type != e->stored->info.type || each != elements_at_an_index(e->stored)))
        return sq_error(err, SQUALL_EREFUSED, "%s has another type or shape in the store than in the sources", e->name);
    if (!sq_mul_u64(each, count, &elements) || elements > SIZE_MAX / 64 ||
        !(c->values = sq_alloc((size_t)elements + 1, a->info.element_bytes)))
        return sq_error_memory(err, SIZE_MAX);
    c->along_init = true;
    c->shape[0] = count;
    int status = e->source ? read_whole(b, e->source, each * b->length, &source, err) : 0;
    if (!status && e->stored)
        status = read_whole(b, e->stored, each * stored_count, &stored, err);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint8_t *to = (uint8_t *)c->values + i * row;
        const uint64_t from = b->axis.source_index[i];
        if (source && from != SQ_CUBE_NOWHERE)
            memcpy(to, (uint8_t *)source + from * row, row);
        else if (stored && i < stored_count)
            memcpy(to, (uint8_t *)stored + i * row, row);
        else
            sq_scatter_fill(to, (size_t)each, a->info.element_bytes, a->fill);
    }
    sq_free(source);
    sq_free(stored);
    return status;
}

static int check_grid(const struct entry *e, struct squall_error *err)
{
    bool differ = false;
    if (!e->source || !e->stored || !sq_is_coordinate(e->source) || !sq_values_are_compared(e->source))
        return 0;
    if (e->source->info.type != e->stored->info.type || e->source->info.shape[0] != e->stored->info.shape[0])
        differ = true;
    else
        SQ_TRY(sq_values_differ(e->source, e->stored, &differ, err));
    return differ ? sq_error(err, SQUALL_EREFUSED, "%s of the sources is another one than the store's; convert them into another store",
                             e->name)
                  : 0;
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
    return spell_fill_attribute(c->attributes, c->type, err);
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
            SQ_TRY(check_grid(e, err));
            c->source = e->stored ? NULL : e->source; /* of a store that is there it is as it is */
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
    return fill_of(e->stored ? e->stored : a, &cube->variables[cube->variable_count - 1].fill_value, err);
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
    for (uint64_t i = 0; i < b->length; i++)
        if (b->axis.init_of[i] == SQ_CUBE_NOWHERE)
            SQ_TRY(ignore(b, file_of(b, i), SQ_CUBE_BEHIND, err));
    return 0;
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------- */

/* The first dimension of the variable with most elements. */
static const char *largest_first_dimension(const struct squall_dataset *ds)
{
    const char *found = NULL;
    double most = 0;
    for (size_t i = 0; i < ds->array_count; i++) {
        const struct squall_array *a = ds->arrays[i];
        double elements = 1;
        for (unsigned d = 0; d < a->info.rank; d++)
            elements *= (double)a->info.shape[d];
        if (a->info.rank > 0 && a->info.dims[0][0] && !strchr(a->info.name, '/') && !a->info.unsupported && elements > most) {
            most = elements;
            found = a->info.dims[0];
        }
    }
    return found;
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

static int choose_dimension(struct builder *b, struct squall_error *err)
{
    const char *stored = sq_json_string(sq_json_get(b->options->schema, "append_dim"));
    const char *dim = b->options->append_dim ? b->options->append_dim : stored ? stored : largest_first_dimension(b->options->sources);
    if (!dim)
        return sq_error(err, SQUALL_EUNSUPPORTED, "no array with a named dimension is there to convert");
    if (stored && strcmp(dim, stored) != 0)
        return sq_error(err, SQUALL_EREFUSED, "the store grows along %s, not %s", stored, dim);
    if (b->options->schema && !stored)
        return sq_error(err, SQUALL_EREFUSED, "the store was made of GRIB fields; convert HDF5, NetCDF and Zarr sources into another one");
    b->dim = b->cube->append_dim = sq_arena_strdup(b->cube->arena, dim);
    return b->dim ? find_length(b, err) : sq_error_memory(err, strlen(dim));
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

static int make_schema(struct builder *b, struct squall_error *err)
{
    struct sq_json *schema = b->cube->schema = sq_json_new_object();
    const struct sq_json *left_out = b->options->schema ? sq_json_get(b->options->schema, "left_out") : b->left_out;
    if (!schema || sq_json_set_string(schema, "kind", "arrays") || sq_json_set_string(schema, "append_dim", b->dim) ||
        sq_json_set(schema, "variables", names_of(b, ROLE_VARIABLE)) || sq_json_set(schema, "small", names_of(b, ROLE_SMALL)) ||
        sq_json_set(schema, "left_out", sq_json_share(left_out)))
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
