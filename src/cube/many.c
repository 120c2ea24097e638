/*
 * See squall/many.h. Each file is opened as a dataset of its own and compared with the first; variables of the result are the files' arrays,
 * one behind the other. Decoders and their buffers belong to the result, so that ten thousand files need no more of them than one. A file that an
 * index knows (many_index.h) comes late: it is opened when it is first read.
 */
#include "cube/many.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/grib_dataset.h"
#include "cube/group.h"
#include "cube/many_internal.h"
#include "cube/path_list.h"
#include "engine/joined_array.h"
#include <string.h>

/* Fewer files are opened sooner than an index is written and read. */
enum { INDEXED_FILES = 16 };

/* ---- along what ------------------------------------------------------------------------------------------------------------------- */

/* Of two coordinates of one length: does the first file say something else than the second? */
static int differ(struct squall_array *a, struct squall_array *b, bool *ret, struct squall_error *err)
{
    *ret = a->info.type != b->info.type;
    if (*ret || !sq_values_are_compared(a))
        return 0;
    *ret = strcmp(a->info.attributes, b->info.attributes) != 0;
    return *ret ? 0 : sq_values_differ(a, b, ret, err);
}

static bool is_in_list(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, list[i]))
            return true;
    return false;
}

/* The dimensions in which the first two files differ. */
static int find_candidates(const struct squall_dataset *first, const struct squall_dataset *second, const char **ret, size_t limit,
                           size_t *ret_count, struct squall_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < first->array_count; i++) {
        struct squall_array *a = first->arrays[i], *b = sq_find_array(second, a->info.name, i);
        for (unsigned d = 0; b && a->info.rank == b->info.rank && d < a->info.rank; d++) {
            const char *dim = a->info.dims[d];
            bool candidate = a->info.shape[d] != b->info.shape[d];
            if (!dim[0] || count == limit || is_in_list(dim, ret, count))
                continue;
            if (!candidate && sq_is_coordinate(a))
                SQ_TRY(differ(a, b, &candidate, err));
            if (candidate)
                ret[count++] = dim;
        }
    }
    *ret_count = count;
    return 0;
}

static int choose_dimension(struct sq_many *m, struct squall_error *err)
{
    enum { SHOWN = 8 };
    const char *found[SHOWN];
    size_t count = 0;
    const char *chosen = m->options.concat_dim;
    if (!chosen && m->count > 1) {
        SQ_TRY(find_candidates(m->files[0].ds, m->files[1].ds, found, SHOWN, &count, err));
        if (count == 0)
            return sq_error(err, SQUALL_EREFUSED,
                            "%s and %s differ along no dimension; say along which they follow each other (concat_dim, --concat-dim)",
                            m->paths[0], m->paths[1]);
        SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
        for (size_t i = 0; i < count; i++)
            sq_text_printf(&names, "%s%s", i ? ", " : "", found[i]);
        if (count > 1)
            return sq_error(err, SQUALL_EREFUSED,
                            "%s and %s differ along %s; say along which they follow each other (concat_dim, --concat-dim)", m->paths[0],
                            m->paths[1], sq_text_string(&names));
        chosen = found[0];
    }
    if (!(m->dim = sq_strdup(chosen ? chosen : "")))
        return sq_error_memory(err, 1);
    m->new_dimension = chosen != NULL;
    const struct squall_dataset *first = m->files[0].ds;
    for (size_t i = 0; i < first->array_count; i++)
        if (sq_dimension_of(first->arrays[i], m->dim) >= 0)
            m->new_dimension = false;
    const struct squall_array *a = sq_find_array(first, m->dim, 0);
    const bool shaped = a && (m->new_dimension ? a->info.rank == 0 : sq_is_coordinate(a));
    if (shaped && sq_many_is_countable(a))
        m->coordinate = a;
    return 0;
}

static int refuse(const struct sq_many *m, const struct sq_drift *drift, size_t total, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text more = SQ_TEXT_INIT;
    if (total > 1)
        sq_text_printf(&more, ", and %zu more", total - 1);
    SQ_CLEANUP_TEXT struct sq_text taken_as = SQ_TEXT_INIT;
    if (m->new_dimension)
        sq_text_printf(&taken_as, "no file has a dimension %s, so each is one place of a new one; ", m->dim);
    return sq_error(err, SQUALL_EREFUSED, "%s%s%s; drift \"warn\" or \"first\" (--drift warn) takes the first file's word",
                    sq_text_string(&taken_as), drift->lines[0], sq_text_string(&more));
}

static int add_lines(struct squall_dataset *ds, const struct sq_drift *drift, struct squall_error *err)
{
    for (size_t i = 0; i < drift->count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, drift->lines[i], err));
    return 0;
}

/* What the policy makes of the differences. */
static int apply_policy(const struct sq_many *m, const struct sq_drift *disorder, struct squall_dataset *ds, struct squall_error *err)
{
    const struct sq_drift *first = disorder;
    size_t total = disorder->count;
    for (size_t i = m->count; i-- > 0;) {
        total += m->files[i].drift.count;
        if (m->files[i].drift.count > 0)
            first = &m->files[i].drift;
    }
    if (total == 0 || m->options.drift == SQUALL_DRIFT_FIRST)
        return 0;
    if (m->options.drift == SQUALL_DRIFT_ERROR)
        return refuse(m, first, total, err);
    for (size_t i = 0; i < m->count; i++)
        SQ_TRY(add_lines(ds, &m->files[i].drift, err));
    return add_lines(ds, disorder, err);
}

static int find_order(struct sq_many *m, struct sq_drift *drift, struct squall_error *err)
{
    for (size_t i = 0; i < m->count; i++)
        m->order[i] = i;
    if (!m->coordinate)
        return 0;
    SQ_CLEANUP_FREE struct sq_many_part *parts = sq_alloc(m->count, sizeof *parts);
    if (!parts)
        return sq_error_memory(err, m->count * sizeof *parts);
    for (size_t i = 0; i < m->count; i++)
        parts[i] = m->files[i].entry.part;
    int status = sq_many_order(parts, m->paths, m->count, m->dim, m->options.order, m->order, drift, &m->joined, err);
    for (size_t i = 0; i < m->count; i++) /* values may have become wider */
        m->files[i].entry.part = parts[i];
    return status;
}

/* ---- the result ------------------------------------------------------------------------------------------------------------------- */

/* The coordinate's attributes, with the units in which it is counted now. */
static int coordinate_attributes(const struct sq_many *m, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const char *own = m->coordinate->info.attributes;
    SQ_TRY(sq_json_parse(own, strlen(own), &attributes, err));
    if (m->joined.units)
        SQ_TRY(sq_json_set_string(attributes, "units", m->joined.units));
    SQ_TRY(sq_json_write(attributes, false, &text, err));
    *ret = sq_text_release(&text);
    return *ret ? 0 : sq_error_memory(err, strlen(own));
}

static int add_coordinate(struct sq_many *m, struct squall_dataset *ds, struct squall_error *err)
{
    char *attributes = NULL;
    SQ_TRY(coordinate_attributes(m, &attributes, err));
    void *values = m->joined.values;
    m->joined.values = NULL;
    const struct squall_array_info *of = &m->coordinate->info;
    const struct squall_array_info as = {.name = of->name,
                                         .type = m->joined.type,
                                         .rank = 1,
                                         .shape = &m->joined.length,
                                         .dims = (const char *const[]){m->dim},
                                         .attribute_types = of->attribute_types,
                                         .fill_value = of->fill_value && m->joined.type == of->type ? of->fill_value : "null"};
    return sq_memory_array_add(ds, &as, values, attributes, err);
}

/* Bounds that cannot be told are left out. */
static int add_bounds(struct sq_many *m, struct squall_dataset *ds, struct squall_error *err)
{
    struct sq_many_coordinate *c = &m->joined_bounds;
    const struct squall_array_info *of = &m->bounds->info;
    if (!c->values)
        return 0;
    char *attributes = sq_strdup(of->attributes);
    if (!attributes)
        return sq_error_memory(err, strlen(of->attributes));
    void *values = c->values;
    c->values = NULL;
    const unsigned last = of->rank - 1;
    const struct squall_array_info as = {.name = of->name,
                                         .type = c->type,
                                         .rank = 2,
                                         .shape = (const uint64_t[]){m->joined.length, of->shape[last]},
                                         .dims = (const char *const[]){m->dim, of->dims[last]},
                                         .attribute_types = of->attribute_types,
                                         .fill_value = of->fill_value && c->type == of->type ? of->fill_value : "null"};
    return sq_memory_array_add(ds, &as, values, attributes, err);
}

/* ---- variables -------------------------------------------------------------------------------------------------------------------- */

/* number: of the array, among those that are joined */
static int join_array(struct sq_many *m, struct squall_dataset *ds, size_t index, size_t number, struct squall_array **parts,
                      const uint64_t *lengths, struct squall_error *err)
{
    const struct squall_array *a = m->files[0].ds->arrays[index];
    struct sq_join join = {.parts = parts, .count = m->count, .lengths = lengths, .dim = m->dim, .open = sq_many_open_late, .user = m};
    join.axis = m->new_dimension ? SQ_JOIN_NEW_DIMENSION : sq_dimension_of(a, m->dim);
    for (size_t i = 0; i < m->count; i++) {
        const struct sq_many_file *f = &m->files[m->order[i]];
        parts[i] = f->path ? sq_late_part : sq_find_array(f->ds, a->info.name, index);
        join.pattern = m->order[i] == 0 ? i : join.pattern;
        if (f->path && number < m->shape.joined && f->entry.chunks[number] > join.late_chunk)
            join.late_chunk = f->entry.chunks[number];
    }
    return sq_joined_array_add(ds, &join, err);
}

static int add_array(struct sq_many *m, struct squall_dataset *ds, size_t index, size_t number, struct squall_array **parts,
                     const uint64_t *lengths, struct squall_error *err)
{
    struct squall_array *a = m->files[0].ds->arrays[index];
    if (a == m->coordinate)
        return add_coordinate(m, ds, err);
    if (a == m->bounds)
        return add_bounds(m, ds, err);
    if (sq_many_is_joined(m, a))
        return join_array(m, ds, index, number, parts, lengths, err);
    const uint64_t length = a->info.rank ? a->info.shape[0] : 1; /* the first file's, for all */
    return sq_joined_array_add(ds, &(struct sq_join){.parts = &a, .count = 1, .lengths = &length, .dim = ""}, err);
}

static int fill_dataset(struct sq_many *m, struct squall_dataset *ds, struct squall_error *err)
{
    const struct squall_dataset *first = m->files[0].ds;
    SQ_CLEANUP_FREE struct squall_array **parts = sq_alloc(m->count, sizeof(struct squall_array *));
    SQ_CLEANUP_FREE uint64_t *lengths = sq_alloc(m->count, sizeof *lengths);
    if (!parts || !lengths || !(ds->attributes = sq_strdup(first->attributes ? first->attributes : "{}")) ||
        (first->attribute_types && !(ds->attribute_types = sq_strdup(first->attribute_types))))
        return sq_error_memory(err, m->count * sizeof(struct squall_array *));
    for (size_t i = 0; i < m->count; i++) {
        const struct squall_dataset *one = m->files[i].ds;
        lengths[i] = m->files[m->order[i]].entry.length;
        for (size_t k = 0; one && k < one->problem_count; k++)
            SQ_TRY(sq_dataset_add_problem(ds, one->problems[k], err));
    }
    for (size_t i = 0; i < first->group_count; i++) {
        const struct squall_group_info *group = &first->groups[i];
        char *attributes = sq_strdup(group->attributes), *types = group->attribute_types ? sq_strdup(group->attribute_types) : NULL;
        if (!attributes || (group->attribute_types && !types)) {
            sq_free(attributes);
            sq_free(types);
            return sq_error_memory(err, 1);
        }
        SQ_TRY(sq_dataset_add_group(ds, group->name, attributes, types, err));
    }
    for (size_t i = 0, number = 0; i < first->array_count; i++) {
        SQ_TRY(add_array(m, ds, i, number, parts, lengths, err));
        number += sq_many_is_joined(m, first->arrays[i]);
    }
    return 0;
}

static void many_free(void *data)
{
    struct sq_many *m = data;
    for (size_t i = m->count; i-- > 0;) { /* the first last: it has the others' decoders */
        squall_dataset_close(m->files[i].ds);
        sq_drift_done(&m->files[i].drift);
        sq_many_entry_done(&m->files[i].entry);
        sq_free(m->files[i].path);
    }
    sq_many_index_free(m->index);
    sq_free(m->files);
    sq_free(m->order);
    sq_free(m->dim);
    sq_free(m->joined.values);
    sq_free(m->joined.units);
    sq_free(m->joined_bounds.values);
    sq_free(m);
}

static int open_files(struct sq_many *m, struct squall_dataset *ds, struct squall_error *err)
{
    struct sq_drift disorder = {0};
    SQ_TRY(sq_many_set_aside_groups(m, m->files[0].ds, ds, err));
    if (m->count > 1 && !m->options.concat_dim)
        SQ_TRY(sq_many_open_file(m, 1, err));
    SQ_TRY(choose_dimension(m, err));
    SQ_TRY(sq_many_take_files(m, err));
    int status = find_order(m, &disorder, err);
    if (!status && m->joined.units)
        status = sq_many_join_bounds(m, &disorder, err);
    if (!status)
        status = apply_policy(m, &disorder, ds, err);
    sq_drift_done(&disorder);
    if (!status)
        status = fill_dataset(m, ds, err);
    for (size_t i = 0; i < m->count; i++) /* what they add is joined */
        sq_many_entry_done(&m->files[i].entry);
    return status;
}

/* ds: the first file, open; taken over. */
static int make_dataset(const struct squall_context *ctx, const char *const *paths, size_t count, struct squall_many_options options,
                        bool to_store, struct squall_dataset *first, struct squall_dataset **ret, struct squall_error *err)
{
    struct sq_many *m = sq_alloc_zero(1, sizeof *m);
    struct sq_many_file *files = sq_alloc_zero(count, sizeof *files);
    size_t *order = sq_alloc(count, sizeof *order);
    struct squall_dataset *ds = m && files && order ? sq_dataset_new(ctx, paths[0], first->format, err) : NULL;
    if (!ds) {
        sq_free(m);
        sq_free(files);
        sq_free(order);
        squall_dataset_close(first);
        return sq_error_memory(err, count * sizeof *files);
    }
    *m = (struct sq_many){
        .ctx = ctx, .paths = paths, .count = count, .options = options, .to_store = to_store, .files = files, .order = order};
    m->index_folder = count >= INDEXED_FILES && !options.group ? ctx->cache_folder : NULL;
    files[0].ds = first;
    ds->format_data = m;
    ds->format_data_free = many_free;
    ds->file_count = count;
    int status = open_files(m, ds, err);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}

const char *sq_many_dimension(const struct squall_dataset *ds)
{
    return ds->format_data_free == many_free ? ((const struct sq_many *)ds->format_data)->dim : NULL;
}

size_t sq_many_file_at(const struct squall_dataset *ds, size_t i, uint64_t *ret_length)
{
    const struct sq_many *m = ds->format_data;
    *ret_length = m->files[m->order[i]].entry.length;
    return m->order[i];
}

static int open_paths(const struct squall_context *ctx, const char *const *paths, size_t count, const struct squall_many_options *options,
                      bool to_store, struct squall_dataset **ret, struct squall_error *err)
{
    static const struct squall_many_options STANDARD;
    struct squall_dataset *first = NULL;
    SQ_TRY(sq_open_group(ctx, paths[0], options ? options->group : NULL, &first, err));
    if (!strcmp(first->format, "grib")) {
        squall_dataset_close(first);
        return sq_grib_dataset_open(ctx, paths[0], paths, count, ret, err);
    }
    return make_dataset(ctx, paths, count, options ? *options : STANDARD, to_store, first, ret, err);
}

int squall_dataset_open_many(squall_context *ctx, const char *const *paths, size_t count, const struct squall_many_options *options,
                             squall_dataset **ret, struct squall_error *err)
{
    __attribute__((cleanup(sq_path_list_done))) struct sq_path_list list = {0};
    if (count == 0)
        return sq_error(err, SQUALL_EINVAL, "no file is given");
    SQ_TRY(sq_path_list_add(&list, paths, count, err));
    return open_paths(ctx, (const char *const *)list.paths, list.count, options, false, ret, err);
}

int sq_open_many_to_store(const struct squall_context *ctx, const char *const *paths, size_t count,
                          const struct squall_many_options *options, struct squall_dataset **ret, struct squall_error *err)
{
    return open_paths(ctx, paths, count, options, true, ret, err);
}
