/*
 * What of a cube of arrays is written whole: the append dimension's coordinate, what has little at each of its indices, and what has it not. Of the first two
 * a store that is there keeps what the sources do not tell again; the others it keeps as they are.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/array_attributes.h"
#include "cube/array_builder.h"
#include "cube/array_damage.h"
#include "cube/array_values.h"
#include "cube/many_compare.h"
#include "engine/scatter.h"
#include "format/zarr/ranges.h"
#include <string.h>

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

/* Of a store that is there its own, so that nothing of it changes. */
int sq_array_entry_attributes(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *source = NULL;
    SQ_CLEANUP_JSON struct sq_json *stored = NULL;
    if (e->source)
        SQ_TRY(sq_array_attributes(e->source, &source, err));
    if (e->stored)
        SQ_TRY(sq_array_attributes(e->stored, &stored, err));
    if (source && stored && e->role != SQ_ARRAY_AXIS) {
        const enum squall_type type = sq_array_form_of(e->source).type;
        const bool same = type == e->stored->info.type, unpacked = !same && sq_type_is_integer(type);
        SQ_TRY(sq_array_compare_meaning(e->name, source, stored,
                                        same       ? SQ_MEANING_ALL
                                        : unpacked ? SQ_MEANING_UNPACKED
                                                   : SQ_MEANING_CAST,
                                        err));
    }
    if (e->source && !e->stored && sq_array_fill_is_unusable(e->source))
        SQ_TRY(sq_array_tell(b, err, "%s: %s has a _FillValue that no %s can be; it is left out", b->options->paths[b->options->first_file],
                             e->name, sq_type_name(e->source->info.type)));
    *ret = sq_json_share(e->stored ? stored : source);
    return 0;
}

/* ---- coordinates ------------------------------------------------------------------------------------------------------------------ */

static int add_coordinate(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_cube_coordinate **ret,
                          struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    const struct squall_array *a = sq_array_entry_array(e);
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
    SQ_TRY(sq_array_entry_attributes(b, e, &c.attributes, err));
    cube->coordinates[cube->coordinate_count] = c;
    *ret = &cube->coordinates[cube->coordinate_count++];
    return form.letters ? 0 : sq_array_fill_value(a, &(*ret)->fill_value, err);
}

/* Bounds of times have no units of their own (CF 7.1): what the sources count from another moment is counted as the store counts. */
static int rebase_bounds(const struct sq_array_builder *b, const struct sq_array_entry *e, void *values, uint64_t count,
                         struct squall_error *err)
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

/* ---- what cannot be read ---------------------------------------------------------------------------------------------------------- */

/* A bad input; with --strict it ends the run. *ret: the arena's. */
static int note_damage(struct sq_array_builder *b, uint32_t file, const char *message, const char **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *text = sq_array_damage_text(b->options->paths[file], message);
    struct sq_cube *cube = b->cube;
    if (!text)
        return sq_error_memory(err, strlen(message));
    if (b->options->strict)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %s", b->options->paths[file], text);
    SQ_TRY(SQ_GROW(cube->damage, b->damage_capacity, cube->damage_count + 1, err));
    const char *what = sq_arena_strdup(cube->arena, text);
    if (!what)
        return sq_error_memory(err, strlen(text));
    cube->damage[cube->damage_count++] = (struct sq_cube_damage){file, what};
    *ret = what;
    return 0;
}

/* ---- along the append dimension ---------------------------------------------------------------------------------------------------- */

/* Values of one variable along the append dimension, while the sources' and the store's are joined. */
struct join {
    struct sq_array_builder *b;
    const struct sq_array_entry *e;
    uint64_t stored_count;
    size_t row;            /* bytes at a place */
    void *source, *stored; /* NULL: there is none */
    bool *bad;             /* of each index of the sources: it could not be read */
    bool *lost;            /* of each place of the store: it has no value, since its source could not be read */
    const char *why;       /* the last of them */
};

static void join_done(struct join *j)
{
    sq_free(j->source);
    sq_free(j->stored);
    sq_free(j->bad);
    sq_free(j->lost);
}

/* Index by index, so that damage costs only the indices that it lies in; told once a file. */
static int read_each(struct join *j, struct squall_error *err)
{
    struct sq_array_builder *b = j->b;
    uint32_t told = UINT32_MAX;
    j->source = sq_alloc_zero((size_t)b->length + 1, j->row);
    if (!j->source)
        return sq_error_memory(err, b->length * j->row);
    for (uint64_t i = 0; i < b->length; i++) {
        struct squall_error failure = SQUALL_ERROR_INIT;
        void *one = NULL;
        const uint32_t file = sq_array_file_of(b, i);
        int status = sq_array_values_read_part(j->e->source, i, 1, b->cube->arena, &one, &failure);
        if (!status)
            memcpy((uint8_t *)j->source + i * j->row, one, j->row);
        sq_free(one);
        if (status && !sq_array_is_damage(status)) {
            if (err)
                *err = failure;
            return status;
        }
        j->bad[i] = status != 0;
        if (status && file != told)
            SQ_TRY(note_damage(b, file, failure.message, &j->why, err));
        told = status ? file : told;
    }
    return 0;
}

static int read_sources(struct join *j, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = sq_array_values_read(j->e->source, j->b->cube->arena, &j->source, &failure);
    if (sq_array_is_damage(status))
        return read_each(j, err);
    if (status && err)
        *err = failure;
    return status;
}

/* Places that lacked their value before. */
static int take_lost(struct join *j, struct squall_error *err)
{
    const char *text = sq_schema_failed_places(j->b->options->schema, j->e->name);
    struct sq_ranges places = {0};
    if (text)
        SQ_TRY(sq_ranges_parse(text, &places, err));
    for (size_t i = 0; i < places.count; i++)
        for (uint64_t k = places.items[i].first; k <= places.items[i].last && k < j->stored_count; k++)
            j->lost[k] = true;
    sq_ranges_done(&places);
    return 0;
}

/* Places that lack their value. *ret: "4-7", the arena's; NULL: none */
static int name_lost(const struct join *j, const char **ret, struct squall_error *err)
{
    struct sq_ranges places = {0};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    int status = 0;
    for (uint64_t i = 0; i < j->b->axis.count && !status; i++)
        if (j->lost[i])
            status = sq_ranges_add(&places, i, err);
    sq_ranges_write(&places, &text);
    const bool any = places.count > 0;
    sq_ranges_done(&places);
    SQ_TRY(status);
    *ret = any ? sq_arena_strdup(j->b->cube->arena, sq_text_string(&text)) : NULL;
    return any && !*ret ? sq_error_memory(err, text.length) : 0;
}

/* Until all is written, what lacked its value before may lack it still. */
static int keep_lost(struct join *j, struct sq_cube_coordinate *c, struct squall_error *err)
{
    struct sq_array_builder *b = j->b;
    const char *before = sq_schema_failed(b->options->schema, j->e->name), *why = j->why ? j->why : before, *places = NULL;
    SQ_TRY(name_lost(j, &c->failed_places, err));
    c->failed = c->failed_places ? why : NULL;
    SQ_TRY(take_lost(j, err));
    SQ_TRY(name_lost(j, &places, err));
    return sq_schema_set_failed(b->cube->schema, j->e->name, places ? why : NULL, places, err);
}

/* At each place those of the sources, or else those that the store has. */
static void put_values(struct join *j, const struct squall_array *a, struct sq_cube_coordinate *c)
{
    const struct squall_bytes empty = {(char[]){""}, 0};
    const struct sq_array_form form = sq_array_form_of(a);
    for (uint64_t i = 0; i < j->b->axis.count; i++) {
        uint8_t *to = (uint8_t *)c->values + i * j->row;
        const uint64_t from = j->b->axis.source_index[i];
        const bool told = j->source && from != SQ_CUBE_NOWHERE;
        if (told && !j->bad[from])
            memcpy(to, (uint8_t *)j->source + from * j->row, j->row);
        else if (j->stored && i < j->stored_count && !j->lost[i])
            memcpy(to, (uint8_t *)j->stored + i * j->row, j->row);
        else
            sq_scatter_fill(to, j->row / form.element_bytes, form.element_bytes,
                            form.type == SQUALL_STRING ? (const void *)&empty : a->fill);
        j->lost[i] = told ? j->bad[from] && (i >= j->stored_count || j->lost[i]) : j->lost[i];
    }
}

static int join_values(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
{
    __attribute__((cleanup(join_done))) struct join j = {.b = b, .e = e, .stored_count = e->stored ? e->stored->info.shape[0] : 0};
    const struct squall_array *a = sq_array_entry_array(e);
    const struct sq_array_form form = sq_array_form_of(a);
    const uint64_t each = sq_array_elements_at_an_index(a), count = b->axis.count;
    uint64_t elements;
    if (e->source && e->stored && (form.type != e->stored->info.type || each != sq_array_elements_at_an_index(e->stored)))
        return sq_error(err, SQUALL_EREFUSED, "%s has another type or shape in the store than in the sources", e->name);
    if (!sq_mul_u64(each, count, &elements) || elements > SIZE_MAX / 64 ||
        !(c->values = sq_alloc((size_t)elements + 1, form.element_bytes)))
        return sq_error_memory(err, SIZE_MAX);
    c->along_init = true;
    c->shape[0] = count;
    j.row = (size_t)each * form.element_bytes;
    j.bad = sq_alloc_zero((size_t)b->length + 1, sizeof *j.bad);
    j.lost = sq_alloc_zero((size_t)count + 1, sizeof *j.lost);
    if (!j.bad || !j.lost)
        return sq_error_memory(err, count);
    SQ_TRY(take_lost(&j, err));
    SQ_TRY(e->source ? read_sources(&j, err) : 0);
    if (e->source && e->stored)
        SQ_TRY(rebase_bounds(b, e, j.source, each * b->length, err));
    if (e->stored)
        SQ_TRY(sq_array_values_read(e->stored, b->cube->arena, &j.stored, err));
    put_values(&j, a, c);
    return keep_lost(&j, c, err);
}

/* ---- without the append dimension -------------------------------------------------------------------------------------------------- */

/* Of what has not the append dimension the store keeps its own: a grid must be the same, and other things that are not are named. */
static int compare_static(struct sq_array_builder *b, const struct sq_array_entry *e, struct squall_error *err)
{
    static const uint64_t LIMIT_BYTES = (uint64_t)64 << 20;
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
    return sq_array_ignore(b, b->options->first_file, SQ_CUBE_DIFFERENT, 1, err, "%s is another one than the store's, which stays",
                           e->name);
}

/* What the store has stays as it is; what it lacks, since it could not be read, is read now, when it is written (texts here). */
static int add_static(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    const char *failed = e->stored ? sq_schema_failed(b->options->schema, e->name) : NULL;
    int status = 0;
    SQ_TRY(sq_schema_set_failed(b->cube->schema, e->name, failed, NULL, err));
    c->failed = e->source ? NULL : failed;
    c->source = e->stored && !failed ? NULL : e->source;
    c->file = b->options->first_file;
    if (e->stored && !failed && e->source)
        status = compare_static(b, e, &failure);
    else if (c->source && sq_array_form_of(c->source).letters)
        status = sq_array_values_read(c->source, b->cube->arena, &c->values, &failure);
    if (!sq_array_is_damage(status)) {
        if (status && err)
            *err = failure;
        return status;
    }
    const bool lacks = c->source != NULL;
    const char *why = NULL;
    c->source = NULL;
    SQ_TRY(note_damage(b, c->file, failure.message, &why, err));
    c->failed = lacks ? why : NULL;
    return sq_schema_set_failed(b->cube->schema, e->name, c->failed, NULL, err);
}

static int add_axis(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_cube_coordinate *c, struct squall_error *err)
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

int sq_array_coordinates_add(struct sq_array_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->entry_count; i++) {
        const struct sq_array_entry *e = &b->entries[i];
        struct sq_cube_coordinate *c = NULL;
        if (e->role == SQ_ARRAY_VARIABLE)
            continue;
        SQ_TRY(add_coordinate(b, e, &c, err));
        if (e->role == SQ_ARRAY_AXIS)
            SQ_TRY(add_axis(b, e, c, err));
        else if (e->role == SQ_ARRAY_SMALL)
            SQ_TRY(join_values(b, e, c, err));
        else
            SQ_TRY(add_static(b, e, c, err));
    }
    return 0;
}
