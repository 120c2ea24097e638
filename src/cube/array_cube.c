/* See array_cube.h. Along which dimension a store grows, its variables, and where each of the sources' places belongs. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/array_attributes.h"
#include "cube/array_builder.h"
#include "cube/array_chunks.h"
#include "cube/array_values.h"
#include "cube/many_compare.h"
#include "engine/joined_array.h"
#include "sys/file.h"
#include <stdlib.h>
#include <string.h>

/* ---- variables -------------------------------------------------------------------------------------------------------------------- */

static int add_variable(struct sq_array_builder *b, const struct sq_array_entry *e, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const struct squall_array *a = sq_array_entry_array(e);
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
    SQ_TRY(sq_array_entry_attributes(b, e, &v.attributes, err));
    cube->variables[cube->variable_count++] = v;
    struct sq_cube_variable *added = &cube->variables[cube->variable_count - 1];
    SQ_TRY(sq_array_missing_values(a, cube->arena, &added->missing, &added->missing_count, err));
    SQ_TRY(sq_array_packing(a, &added->packing, added->missing, added->missing_count, err));
    return sq_array_fill_value(e->stored ? e->stored : a, &added->fill_value, err);
}

/* With what was left out, and why. */
static int refuse_empty(const struct sq_array_builder *b, struct squall_error *err)
{
    enum { SHOWN = 4 };
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    size_t count = 0;
    for (size_t i = 0; i < b->cube->ignored_count; i++) {
        const struct sq_cube_ignored *ignored = &b->cube->ignored[i];
        if (!ignored->what)
            continue;
        if (count < SHOWN)
            sq_text_printf(&text, "%s%s: %s", count ? "; " : ": ", b->options->paths[ignored->field], ignored->what);
        count++;
    }
    if (count > SHOWN)
        sq_text_printf(&text, "; and %zu more", count - SHOWN);
    return sq_error(err, SQUALL_ENOTFOUND, "no variable along %s is left to convert%s", b->dim, sq_text_string(&text));
}

static int add_variables(struct sq_array_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->entry_count; i++)
        if (b->entries[i].role == SQ_ARRAY_VARIABLE)
            SQ_TRY(add_variable(b, &b->entries[i], err));
    if (b->cube->variable_count == 0)
        return refuse_empty(b, err);
    if (!b->options->stored)
        sq_array_default_chunks(b->cube->variables, b->cube->variable_count, b->length, b->options->spans[0].count);
    return 0;
}

/* The file of an index along the sources' append dimension. */
uint32_t sq_array_file_of(const struct sq_array_builder *b, uint64_t index)
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

/* A store that squall made says itself where it has nothing. *ret: of each index, or NULL; sq_free */
static int read_flags(const struct sq_array_builder *b, bool **ret, struct squall_error *err)
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
static int ignore_behind(struct sq_array_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->options->span_count; i++) {
        const struct sq_array_span *span = &b->options->spans[i];
        const uint64_t end = b->options->span_count == 1 ? b->length : span->begin + span->count;
        uint64_t count = 0;
        for (uint64_t k = span->begin; k < end; k++)
            count += b->axis.init_of[k] == SQ_CUBE_NOWHERE;
        if (count > 0)
            SQ_TRY(sq_array_ignore(b, span->file, SQ_CUBE_BEHIND, count, err,
                                   "%llu of its places along %s lie before the end of the store, which grows only there; left out",
                                   (unsigned long long)count, b->dim));
    }
    return 0;
}

static int add_places(struct sq_array_builder *b, struct squall_error *err)
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
            cube->places[cube->place_count++] =
                (struct sq_cube_place){.field = sq_array_file_of(b, index), .variable = v, .init = (uint32_t)init};
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

static int find_length(struct sq_array_builder *b, struct squall_error *err)
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
            return sq_error(err, SQUALL_EUNSUPPORTED, "%s: its arrays lie in groups; --group %.*s converts those of one", ds->path,
                            (int)(strrchr(ds->arrays[i]->info.name, '/') - ds->arrays[i]->info.name), ds->arrays[i]->info.name);
    return sq_error(err, SQUALL_EUNSUPPORTED, "%s: no array of numbers with a dimension is there to convert", ds->path);
}

static int choose_dimension(struct sq_array_builder *b, struct squall_error *err)
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

static struct sq_json *names_of(const struct sq_array_builder *b, enum sq_array_role role)
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
static struct sq_json *files_of(const struct sq_array_builder *b)
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
static int compare_files(const struct sq_array_builder *b, struct squall_error *err)
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

static int make_schema(struct sq_array_builder *b, struct squall_error *err)
{
    struct sq_json *schema = b->cube->schema;
    const struct sq_json *left_out = b->options->schema ? sq_json_get(b->options->schema, "left_out") : b->left_out;
    if (sq_json_set_string(schema, "kind", "arrays") || sq_json_set_string(schema, "append_dim", b->dim) ||
        sq_json_set(schema, "variables", names_of(b, SQ_ARRAY_VARIABLE)) || sq_json_set(schema, "small", names_of(b, SQ_ARRAY_SMALL)) ||
        sq_json_set(schema, "left_out", sq_json_share(left_out)) || (b->by_index && sq_json_set(schema, "files", files_of(b))) ||
        (b->options->group && sq_json_set_string(schema, "group", b->options->group)))
        return sq_error_memory(err, sizeof *b);
    return 0;
}

static int take_root_attributes(struct sq_array_builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->stored ? b->options->stored : b->options->sources;
    const char *text = ds->attributes ? ds->attributes : "{}";
    return sq_json_parse(text, strlen(text), &b->cube->attributes, err);
}

/* What is wrong with the sources by themselves. */
static int add_notes(struct sq_array_builder *b, struct squall_error *err)
{
    const struct squall_dataset *ds = b->options->sources;
    struct sq_cube *cube = b->cube;
    SQ_TRY(SQ_GROW(cube->notes, b->note_capacity, ds->problem_count + 1, err));
    for (size_t i = 0; i < ds->problem_count; i++)
        if (!(cube->notes[cube->note_count++] = sq_arena_strdup(cube->arena, ds->problems[i])))
            return sq_error_memory(err, strlen(ds->problems[i]));
    return 0;
}

static int build(struct sq_array_builder *b, struct squall_error *err)
{
    const struct sq_array_cube_options *o = b->options;
    struct sq_cube *cube = b->cube;
    cube->of_arrays = true;
    cube->arena = sq_arena_new();
    cube->schema = sq_json_new_object();
    b->left_out = sq_json_new_array();
    if (!cube->arena || !cube->schema || !b->left_out)
        return sq_error_memory(err, sizeof *cube);
    SQ_TRY(choose_dimension(b, err));
    SQ_TRY(sq_array_entries_list(b, err));
    SQ_TRY(sq_array_axis_make(o->sources, o->stored, b->dim, b->length, o->stored_count, &b->axis, err));
    b->by_index = !b->axis.values;
    if (b->by_index && o->stored)
        SQ_TRY(compare_files(b, err));
    if (b->axis.is_unordered)
        SQ_TRY(sq_array_tell(b, err, "%s does not go one way, so nothing can be added to the store later", b->dim));
    cube->init_count = (size_t)b->axis.count;
    if (cube->init_count == 0 || cube->init_count > SQ_INIT_COUNT_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s has %zu places; a store is made of 1 to %d", b->dim, cube->init_count,
                        SQ_INIT_COUNT_LIMIT);
    SQ_TRY(add_variables(b, err));
    SQ_TRY(sq_array_coordinates_add(b, err));
    SQ_TRY(add_places(b, err));
    SQ_TRY(take_root_attributes(b, err));
    SQ_TRY(add_notes(b, err));
    if (b->axis.calendar && !(cube->calendar = sq_arena_strdup(cube->arena, b->axis.calendar)))
        return sq_error_memory(err, strlen(b->axis.calendar));
    cube->init_times_s = b->axis.times_s;
    b->axis.times_s = NULL;
    cube->source_index = b->axis.source_index;
    b->axis.source_index = NULL;
    return make_schema(b, err);
}

int sq_array_cube_build(const struct sq_array_cube_options *options, struct sq_cube *ret, struct squall_error *err)
{
    struct sq_cube cube = {0};
    struct sq_array_builder b = {.options = options, .cube = &cube};
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
