/*
 * See squall/many.h. Each file is opened as a dataset of its own and compared with the first; variables of the result are the files' arrays,
 * one behind the other. Decoders and their buffers belong to the result, so that ten thousand files need no more of them than one. A file that an
 * index knows (many_index.h) comes late: it is opened when it is first read.
 */
#include "cube/many.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/grib_dataset.h"
#include "cube/group.h"
#include "cube/many_compare.h"
#include "cube/many_index.h"
#include "cube/many_order.h"
#include "engine/joined_array.h"
#include "engine/read.h"
#include "squall/many.h"
#include "squall/version.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <stdatomic.h>
#include <string.h>

/* Fewer files are opened sooner than an index is written and read. */
enum { INDEXED_FILES = 16 };

struct one_file {
    _Atomic(struct squall_dataset *) ds; /* NULL: not open yet */
    struct sq_drift drift;
    struct sq_many_entry entry;
    bool is_regular; /* entry.identity is that of a file */
    char *path;      /* from the root on, of one that comes late; NULL: it was opened */
};

struct many {
    const struct squall_context *ctx;
    const char *const *paths; /* the caller's: while files are opened */
    size_t count;
    struct squall_many_options options;
    bool to_store;          /* sq_open_many_to_store */
    struct one_file *files; /* as given */
    size_t *order;
    char *dim;
    bool new_dimension;
    const struct squall_array *coordinate; /* of the first file; NULL: none of numbers */
    struct sq_many_coordinate joined;
    struct squall_array *bounds;             /* of the coordinate, where they are counted as it is; NULL: they are read as they are */
    struct sq_many_coordinate joined_bounds; /* values NULL: they cannot be told */
    _Atomic uint64_t coordinate_bytes;       /* of the files that were looked at */
    const char *index_folder;                /* NULL: no index is kept */
    struct sq_many_index_shape shape;
    struct sq_many_index *index; /* while files are opened; NULL: there is none */
};

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

static int choose_dimension(struct many *m, struct squall_error *err)
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

/* ---- the files -------------------------------------------------------------------------------------------------------------------- */

/* The dimension's length in a file: every array that has it must agree. */
static int find_length(const struct many *m, struct one_file *f, struct squall_error *err)
{
    bool found = false;
    for (size_t i = 0; i < f->ds->array_count && !m->new_dimension; i++) {
        const struct squall_array *a = f->ds->arrays[i];
        int d = sq_dimension_of(a, m->dim);
        if (d < 0 || !sq_find_array(m->files[0].ds, a->info.name, i))
            continue;
        if (found && a->info.shape[d] != f->entry.length)
            return sq_error(err, SQUALL_EREFUSED, "%s: %s has %llu elements along %s, others have %llu", f->ds->path, a->info.name,
                            (unsigned long long)a->info.shape[d], m->dim, (unsigned long long)f->entry.length);
        f->entry.length = a->info.shape[d];
        found = true;
    }
    if (m->new_dimension)
        f->entry.length = 1;
    return 0;
}

/* All files' values are in memory at once, several times: a coordinate that nobody wrote may claim any length. */
static int reserve_coordinate(struct many *m, size_t index, uint64_t length, struct squall_error *err)
{
    enum { COPIES = 4 };
    const uint64_t limit = m->ctx->memory_bytes / COPIES;
    uint64_t bytes;
    if (!sq_mul_u64(length, sizeof(uint64_t), &bytes) || bytes > limit || atomic_fetch_add(&m->coordinate_bytes, bytes) > limit - bytes)
        return sq_error(err, SQUALL_ENOMEM, "%s: %s has %llu values; with other files' they need more memory than may be used",
                        m->paths[index], m->dim, (unsigned long long)length);
    return 0;
}

/* Which file it is, found before anything is read of it. */
static void identify(struct many *m, size_t index)
{
    enum sq_file_kind kind = SQ_FILE_NONE;
    struct one_file *f = &m->files[index];
    f->is_regular = m->index_folder && !sq_file_stat(m->paths[index], &kind, &f->entry.identity, NULL) && kind == SQ_FILE_REGULAR;
}

/* A group's dimensions may be others of the same names, and stores have no arrays in groups: of the first file they are in the result, to be named. */
static int set_aside_groups(const struct many *m, struct squall_dataset *file, struct squall_dataset *ds, struct squall_error *err)
{
    for (size_t i = file->array_count; m->to_store && i-- > 0;) {
        if (!strchr(file->arrays[i]->info.name, '/'))
            continue;
        if (ds)
            SQ_TRY(sq_dataset_move(file, i, ds, err));
        else
            sq_dataset_drop(file, i);
    }
    return 0;
}

static int open_file(struct many *m, size_t index, struct squall_error *err)
{
    struct squall_dataset *ds;
    SQ_TRY(sq_open_group(m->ctx, m->paths[index], m->options.group, &ds, err));
    if (!strcmp(ds->format, "grib")) {
        squall_dataset_close(ds);
        return sq_error(err, SQUALL_EINVAL, "%s is GRIB and %s is not; GRIB goes with GRIB only", m->paths[index], m->paths[0]);
    }
    ds->workers_of = m->files[0].ds;
    m->files[index].ds = ds;
    return set_aside_groups(m, ds, NULL, err);
}

/* Is it read of every file, to be put behind the others'? What is not is the first file's, or in memory. */
static bool is_joined(const struct many *m, const struct squall_array *first)
{
    return first != m->coordinate && (m->new_dimension ? !sq_is_coordinate(first) : sq_dimension_of(first, m->dim) >= 0);
}

/* Of a file that was looked at only what is joined is kept, and what it has equal to the first file's only once. */
static void lighten(const struct many *m, struct squall_dataset *ds)
{
    for (size_t i = ds->array_count; i-- > 0;) {
        struct squall_array *a = ds->arrays[i], *first = sq_find_array(m->files[0].ds, a->info.name, i);
        if (!first || !is_joined(m, first))
            sq_dataset_drop(ds, i);
        else if (a->ops == first->ops && a->ops->share)
            a->ops->share(a, first);
    }
    sq_free(ds->attributes);
    sq_free(ds->attribute_types);
    ds->attributes = ds->attribute_types = NULL;
}

/* How long the chunks of what is joined are along the dimension. */
static int find_chunks(const struct many *m, struct one_file *f, struct squall_error *err)
{
    const struct squall_dataset *first = m->files[0].ds;
    if (!(f->entry.chunks = sq_alloc_zero(m->shape.joined, sizeof *f->entry.chunks)))
        return sq_error_memory(err, m->shape.joined * sizeof *f->entry.chunks);
    for (size_t i = 0, number = 0; i < first->array_count && number < m->shape.joined; i++) {
        if (!is_joined(m, first->arrays[i]))
            continue;
        const struct squall_array *a = sq_find_array(f->ds, first->arrays[i]->info.name, i);
        const int axis = a ? sq_dimension_of(a, m->dim) : -1;
        f->entry.chunks[number++] = axis < 0 ? 0 : a->info.chunks[axis];
    }
    return 0;
}

/* What it adds: how long it is, and the coordinate's values. */
static int look_at(struct many *m, size_t index, struct squall_error *err)
{
    struct one_file *f = &m->files[index];
    SQ_TRY(find_length(m, f, err));
    if (m->index_folder)
        SQ_TRY(find_chunks(m, f, err));
    struct squall_array *a = m->coordinate ? sq_find_array(f->ds, m->dim, 0) : NULL;
    if (!m->coordinate)
        return 0;
    if (!a)
        return sq_error(err, SQUALL_EREFUSED, "%s: there is no %s, which tells where its fields belong", m->paths[index], m->dim);
    SQ_TRY(reserve_coordinate(m, index, a->info.rank ? a->info.shape[0] : 1, err));
    int status = sq_many_part_read(a, &f->entry.part, err);
    return status ? sq_error_within(err, status, "%s", m->paths[index]) : 0;
}

/* false: the index does not know it. */
static int take_from_index(struct many *m, size_t index, bool *ret, struct squall_error *err)
{
    struct one_file *f = &m->files[index];
    *ret = m->index && f->is_regular && sq_many_index_find(m->index, &f->entry.identity, &f->entry);
    if (!*ret)
        return 0;
    f->path = sq_path_absolute(m->paths[index]);
    return f->path ? reserve_coordinate(m, index, m->coordinate ? f->entry.length : 0, err) : sq_error_memory(err, 1);
}

static int take_file(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    struct many *m = user;
    struct one_file *f = &m->files[index];
    (void)seat;
    if (sq_cancelled(m->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "opening %s was cancelled", m->paths[index]);
    bool known = false;
    if (index > 0)
        identify(m, index);
    if (index > 0)
        SQ_TRY(take_from_index(m, index, &known, err));
    if (known)
        return 0;
    if (!f->ds)
        SQ_TRY(open_file(m, index, err));
    if (index > 0)
        SQ_TRY(sq_compare_datasets(m->files[0].ds, f->ds, m->dim, m->coordinate, &f->drift, err));
    if (f->drift.fatal)
        return 0;
    SQ_TRY(look_at(m, index, err));
    if (index > 0)
        lighten(m, f->ds);
    return 0;
}

static int refuse(const struct many *m, const struct sq_drift *drift, size_t total, struct squall_error *err)
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
static int apply_policy(const struct many *m, const struct sq_drift *disorder, struct squall_dataset *ds, struct squall_error *err)
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

static int find_order(struct many *m, struct sq_drift *drift, struct squall_error *err)
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
static int coordinate_attributes(const struct many *m, char **ret, struct squall_error *err)
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

static int add_coordinate(struct many *m, struct squall_dataset *ds, struct squall_error *err)
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
static int add_bounds(struct many *m, struct squall_dataset *ds, struct squall_error *err)
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

/* A file that comes late, as it was when all were opened. */
static int open_late_file(const struct many *m, const struct one_file *f, struct squall_dataset **ret, struct squall_error *err)
{
    enum sq_file_kind kind;
    struct sq_file_identity now = {0};
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct squall_dataset *ds = NULL;
    int opened = sq_open_path(m->ctx, f->path, &ds, &reason);
    int status = sq_file_stat(f->path, &kind, &now, err);
    if (!status && kind == SQ_FILE_NONE)
        status = sq_error(err, SQUALL_EIO, "%s is gone since it was opened", f->path);
    else if (!status && (kind != SQ_FILE_REGULAR || !sq_file_identity_same(&now, &f->entry.identity)))
        status = sq_error(err, SQUALL_EIO, "%s changed since it was opened; open it again", f->path);
    if (!status && opened && err)
        *err = reason;
    if (status || opened) {
        squall_dataset_close(ds);
        return status ? status : opened;
    }
    ds->workers_of = m->files[0].ds;
    lighten(m, ds);
    *ret = ds;
    return 0;
}

/* Threads that need the file at the same time may each open it, and all but one close theirs. */
static int open_late(void *user, size_t part, const char *name, struct squall_array **ret, struct squall_error *err)
{
    const struct many *m = user;
    struct one_file *f = &m->files[m->order[part]];
    struct squall_dataset *ds = atomic_load(&f->ds), *own = NULL;
    if (!ds) {
        SQ_TRY(open_late_file(m, f, &own, err));
        if (atomic_compare_exchange_strong(&f->ds, &ds, own))
            ds = own;
        else
            squall_dataset_close(own);
    }
    *ret = sq_find_array(ds, name, 0);
    return *ret ? 0 : sq_error(err, SQUALL_ECORRUPT, "%s: there is no %s, which the index of many files says there is", f->path, name);
}

/* ---- bounds of times -------------------------------------------------------------------------------------------------------------- */

static int find_bounds(struct many *m, bool *ret_plain, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL, *own = NULL;
    const char *text = m->coordinate->info.attributes;
    SQ_TRY(sq_json_parse(text, strlen(text), &attributes, err));
    const char *name = sq_json_string(sq_json_get(attributes, "bounds"));
    if (!name)
        name = sq_json_string(sq_json_get(attributes, "climatology"));
    struct squall_array *a = name ? sq_find_array(m->files[0].ds, name, 0) : NULL;
    if (!a || a == m->coordinate)
        return 0;
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &own, err));
    if (sq_json_get(own, "units"))
        return 0;
    m->bounds = a;
    *ret_plain = is_joined(m, a) && sq_many_is_countable(a) && a->info.rank + m->new_dimension == 2 &&
                 (m->new_dimension || sq_dimension_of(a, m->dim) == 0) && !sq_json_get(own, "scale_factor") &&
                 !sq_json_get(own, "add_offset");
    return 0;
}

struct bounds_parts {
    struct many *m;
    struct sq_many_part *parts; /* in the order of the result */
};

static int take_bounds(void *user, size_t part, unsigned seat, struct squall_error *err)
{
    const struct bounds_parts *b = user;
    struct many *m = b->m;
    struct one_file *f = &m->files[m->order[part]];
    struct squall_array *a = f->path ? NULL : sq_find_array(f->ds, m->bounds->info.name, 0);
    (void)seat;
    if (f->path)
        SQ_TRY(open_late(m, part, m->bounds->info.name, &a, err));
    if (!a) /* the drift tells */
        return 0;
    SQ_TRY(reserve_coordinate(m, m->order[part], f->entry.length * a->info.shape[a->info.rank - 1], err));
    int status = sq_many_part_read(a, &b->parts[part], err);
    return status ? sq_error_within(err, status, "%s", m->paths[m->order[part]]) : 0;
}

static int join_bounds(struct many *m, struct sq_many_part *parts, struct sq_drift *drift, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_many_part *times = sq_alloc(m->count, sizeof *times);
    SQ_CLEANUP_FREE const char **paths = sq_alloc(m->count, sizeof *paths);
    struct bounds_parts b = {.m = m, .parts = parts};
    if (!times || !paths)
        return sq_error_memory(err, m->count * sizeof *times);
    SQ_TRY(sq_parallel(m->ctx->threads, m->count, take_bounds, &b, err));
    for (size_t i = 0; i < m->count; i++) {
        times[i] = m->files[m->order[i]].entry.part;
        paths[i] = m->paths[m->order[i]];
        if (!parts[i].values)
            return 0;
    }
    return sq_many_count_bounds(parts, times, paths, m->count, m->bounds->info.name, m->joined.units, drift, &m->joined_bounds, err);
}

/* Where times are counted otherwise than in their files, so are their bounds, which have no units of their own (CF conventions, 7.1). */
static int count_bounds(struct many *m, struct sq_drift *drift, struct squall_error *err)
{
    bool plain = false;
    SQ_TRY(find_bounds(m, &plain, err));
    if (!m->bounds)
        return 0;
    if (!plain)
        return sq_drift_add(drift, err, "%s: %s, the bounds of %s, cannot be counted as other files count, and is left out", m->paths[0],
                            m->bounds->info.name, m->dim);
    struct sq_many_part *parts = sq_alloc_zero(m->count, sizeof *parts);
    if (!parts)
        return sq_error_memory(err, m->count * sizeof *parts);
    int status = join_bounds(m, parts, drift, err);
    for (size_t i = 0; i < m->count; i++)
        sq_many_part_done(&parts[i]);
    sq_free(parts);
    return status;
}

/* ---- variables -------------------------------------------------------------------------------------------------------------------- */

/* number: of the array, among those that are joined */
static int join_array(struct many *m, struct squall_dataset *ds, size_t index, size_t number, struct squall_array **parts,
                      const uint64_t *lengths, struct squall_error *err)
{
    const struct squall_array *a = m->files[0].ds->arrays[index];
    struct sq_join join = {.parts = parts, .count = m->count, .lengths = lengths, .dim = m->dim, .open = open_late, .user = m};
    join.axis = m->new_dimension ? SQ_JOIN_NEW_DIMENSION : sq_dimension_of(a, m->dim);
    for (size_t i = 0; i < m->count; i++) {
        const struct one_file *f = &m->files[m->order[i]];
        parts[i] = f->path ? sq_late_part : sq_find_array(f->ds, a->info.name, index);
        join.pattern = m->order[i] == 0 ? i : join.pattern;
        if (f->path && number < m->shape.joined && f->entry.chunks[number] > join.late_chunk)
            join.late_chunk = f->entry.chunks[number];
    }
    return sq_joined_array_add(ds, &join, err);
}

static int add_array(struct many *m, struct squall_dataset *ds, size_t index, size_t number, struct squall_array **parts,
                     const uint64_t *lengths, struct squall_error *err)
{
    struct squall_array *a = m->files[0].ds->arrays[index];
    if (a == m->coordinate)
        return add_coordinate(m, ds, err);
    if (a == m->bounds)
        return add_bounds(m, ds, err);
    if (is_joined(m, a))
        return join_array(m, ds, index, number, parts, lengths, err);
    const uint64_t length = a->info.rank ? a->info.shape[0] : 1; /* the first file's, for all */
    return sq_joined_array_add(ds, &(struct sq_join){.parts = &a, .count = 1, .lengths = &length, .dim = ""}, err);
}

static int fill_dataset(struct many *m, struct squall_dataset *ds, struct squall_error *err)
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
        number += is_joined(m, first->arrays[i]);
    }
    return 0;
}

static void many_free(void *data)
{
    struct many *m = data;
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

/* Types and shapes that differ leave nothing to go on with. */
static int refuse_fatal(const struct many *m, struct squall_error *err)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct sq_drift *drift = &m->files[i].drift;
        if (drift->fatal)
            return sq_error(err, SQUALL_EREFUSED, "%s: they cannot be read as one array", drift->lines[drift->fatal_line]);
        if (drift->packing && m->to_store)
            return sq_error(
                err, SQUALL_EREFUSED,
                "%s: the same numbers mean something else in the one than in the other, so no --drift makes them one array; "
                "convert each kind for itself, into stores of their own or unpacked (--dtype NAME=float32) one after the other into one",
                drift->lines[drift->packing_line]);
    }
    return 0;
}

/* ---- the index -------------------------------------------------------------------------------------------------------------------- */

static void hash_text(struct sq_hash *hash, const char *text)
{
    *hash = sq_hash_more(*hash, text ? text : "", text ? strlen(text) + 1 : 0);
}

static int hash_values(struct sq_hash *hash, struct squall_array *a, struct squall_error *err)
{
    const struct squall_selection all = squall_selection_all(a);
    const size_t bytes = (size_t)a->info.shape[0] * a->info.element_bytes;
    SQ_CLEANUP_FREE void *values = sq_alloc(bytes, 1);
    if (!values)
        return sq_error_memory(err, bytes);
    SQ_TRY(sq_array_read(a, &all, values, NULL, 1, NULL, err));
    *hash = sq_hash_more(*hash, values, bytes);
    return 0;
}

/* All of it that other files are compared with. */
static int hash_array(const struct many *m, struct sq_hash *hash, struct squall_array *a, struct squall_error *err)
{
    const struct squall_array_info *info = &a->info;
    const int axis = sq_dimension_of(a, m->dim);
    const uint64_t numbers[] = {info->type, info->rank, info->element_bytes};
    const char *const texts[] = {info->name,       info->numpy_type,  info->sequence_type, info->attributes,
                                 info->fill_value, info->unsupported, info->enum_names};
    *hash = sq_hash_more(*hash, numbers, sizeof numbers);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash_text(hash, texts[i]);
    for (unsigned d = 0; d < info->rank; d++) {
        const uint64_t length = (int)d == axis ? UINT64_MAX : info->shape[d];
        hash_text(hash, info->dims[d]);
        *hash = sq_hash_more(*hash, &length, sizeof length);
    }
    return axis < 0 && sq_is_coordinate(a) && sq_values_are_compared(a) ? hash_values(hash, a, err) : 0;
}

/*
 * An index tells of files that agreed with the first one. Its key is what they were compared with, and where the first one is, so that files of
 * several series do not take each other's place.
 */
static int load_index(struct many *m, struct squall_error *err)
{
    const struct squall_dataset *first = m->files[0].ds;
    const uint64_t numbers[] = {m->new_dimension, m->coordinate != NULL};
    struct sq_hash key = sq_hash_bytes(numbers, sizeof numbers);
    SQ_CLEANUP_FREE char *path = sq_path_absolute(m->paths[0]);
    if (!path)
        return sq_error_memory(err, 1);
    hash_text(&key, squall_version());
    hash_text(&key, path);
    hash_text(&key, m->dim);
    m->shape.counted = m->coordinate != NULL;
    for (size_t i = 0; i < first->array_count; i++) {
        m->shape.joined += !m->new_dimension && is_joined(m, first->arrays[i]);
        SQ_TRY(hash_array(m, &key, first->arrays[i], err));
    }
    m->shape.key = key;
    m->index = sq_many_index_load(m->index_folder, &m->shape);
    return 0;
}

/* One that was written a moment ago may be written to again within one tick of its file system's clock, and no time would tell. */
static bool is_settled(const struct sq_file_identity *identity, int64_t now_ns)
{
    static const int64_t TICK_NS = INT64_C(2000000000); /* the coarsest: FAT's */
    return now_ns - identity->ctime_ns > TICK_NS && now_ns - identity->mtime_ns > TICK_NS;
}

/* What was found of the files that agree with the first. now_ns: a time before they were opened */
static void save_index(struct many *m, int64_t now_ns)
{
    SQ_CLEANUP_FREE struct sq_many_entry *entries = sq_alloc(m->count, sizeof *entries);
    size_t count = 0, new_count = 0;
    for (size_t i = 1; entries && i < m->count; i++) {
        const struct one_file *f = &m->files[i];
        const struct squall_dataset *ds = f->ds;
        if (!f->is_regular || f->drift.count > 0 || (ds && ds->problem_count > 0) || !is_settled(&f->entry.identity, now_ns))
            continue;
        entries[count++] = f->entry;
        new_count += f->path == NULL;
    }
    if (new_count > 0)
        sq_many_index_save(m->index_folder, &m->shape, entries, count);
}

/* Each file is looked at, or known. */
static int take_files(struct many *m, struct squall_error *err)
{
    const int64_t now_ns = sq_clock_now_ns();
    if (m->index_folder)
        SQ_TRY(load_index(m, err));
    SQ_TRY(sq_parallel(m->ctx->threads, m->count, take_file, m, err));
    SQ_TRY(refuse_fatal(m, err));
    if (m->index_folder)
        save_index(m, now_ns);
    sq_many_index_free(m->index);
    m->index = NULL;
    return 0;
}

static int open_files(struct many *m, struct squall_dataset *ds, struct squall_error *err)
{
    struct sq_drift disorder = {0};
    SQ_TRY(set_aside_groups(m, m->files[0].ds, ds, err));
    if (m->count > 1 && !m->options.concat_dim)
        SQ_TRY(open_file(m, 1, err));
    SQ_TRY(choose_dimension(m, err));
    SQ_TRY(take_files(m, err));
    int status = find_order(m, &disorder, err);
    if (!status && m->joined.units)
        status = count_bounds(m, &disorder, err);
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
    struct many *m = sq_alloc_zero(1, sizeof *m);
    struct one_file *files = sq_alloc_zero(count, sizeof *files);
    size_t *order = sq_alloc(count, sizeof *order);
    struct squall_dataset *ds = m && files && order ? sq_dataset_new(ctx, paths[0], first->format, err) : NULL;
    if (!ds) {
        sq_free(m);
        sq_free(files);
        sq_free(order);
        squall_dataset_close(first);
        return sq_error_memory(err, count * sizeof *files);
    }
    *m =
        (struct many){.ctx = ctx, .paths = paths, .count = count, .options = options, .to_store = to_store, .files = files, .order = order};
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
    return ds->format_data_free == many_free ? ((const struct many *)ds->format_data)->dim : NULL;
}

size_t sq_many_file_at(const struct squall_dataset *ds, size_t i, uint64_t *ret_length)
{
    const struct many *m = ds->format_data;
    *ret_length = m->files[m->order[i]].entry.length;
    return m->order[i];
}

/* ---- patterns --------------------------------------------------------------------------------------------------------------------- */

int sq_is_pattern(const char *path, bool *ret, struct squall_error *err)
{
    enum sq_file_kind kind = SQ_FILE_REGULAR;
    const bool could_be = strpbrk(path, "*?[") != NULL;
    if (could_be)
        SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    *ret = could_be && kind == SQ_FILE_NONE;
    return 0;
}

struct path_list {
    char **paths;
    size_t count, capacity;
};

static void path_list_done(struct path_list *list)
{
    sq_names_free(list->paths, list->count);
}

static int add_path(struct path_list *list, const char *path, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(list->paths, list->capacity, list->count + 1, err));
    if (!(list->paths[list->count] = sq_strdup(path)))
        return sq_error_memory(err, strlen(path));
    list->count++;
    return 0;
}

static int add_matching(struct path_list *list, const char *pattern, struct squall_error *err)
{
    char **paths = NULL;
    size_t count = 0;
    SQ_TRY(sq_paths_matching(pattern, &paths, &count, err));
    int status = count ? 0 : sq_error(err, SQUALL_ENOTFOUND, "%s: no file has such a name", pattern);
    for (size_t i = 0; i < count && !status; i++)
        status = add_path(list, paths[i], err);
    sq_names_free(paths, count);
    return status;
}

static int expand(const char *const *paths, size_t count, struct path_list *list, struct squall_error *err)
{
    bool is_pattern;
    for (size_t i = 0; i < count; i++) {
        SQ_TRY(sq_is_pattern(paths[i], &is_pattern, err));
        SQ_TRY(is_pattern ? add_matching(list, paths[i], err) : add_path(list, paths[i], err));
    }
    return 0;
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
    __attribute__((cleanup(path_list_done))) struct path_list list = {0};
    if (count == 0)
        return sq_error(err, SQUALL_EINVAL, "no file is given");
    SQ_TRY(expand(paths, count, &list, err));
    return open_paths(ctx, (const char *const *)list.paths, list.count, options, false, ret, err);
}

int sq_open_many_to_store(const struct squall_context *ctx, const char *const *paths, size_t count,
                          const struct squall_many_options *options, struct squall_dataset **ret, struct squall_error *err)
{
    return open_paths(ctx, paths, count, options, true, ret, err);
}
