/* What many files add, each for itself: opened and compared with the first, or known from the index, and opened when it is first read. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/group.h"
#include "cube/many.h"
#include "cube/many_internal.h"
#include "engine/read.h"
#include "squall/version.h"
#include "sys/clock.h"
#include "sys/pool.h"
#include <string.h>

/* The dimension's length in a file: every array that has it must agree. */
static int find_length(const struct sq_many *m, struct sq_many_file *f, struct squall_error *err)
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
int sq_many_reserve(struct sq_many *m, size_t index, uint64_t length, struct squall_error *err)
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
static void identify(struct sq_many *m, size_t index)
{
    enum sq_file_kind kind = SQ_FILE_NONE;
    struct sq_many_file *f = &m->files[index];
    f->is_regular = m->index_folder && !sq_file_stat(m->paths[index], &kind, &f->entry.identity, NULL) && kind == SQ_FILE_REGULAR;
}

int sq_many_set_aside_groups(const struct sq_many *m, struct squall_dataset *file, struct squall_dataset *ds, struct squall_error *err)
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

int sq_many_open_file(struct sq_many *m, size_t index, struct squall_error *err)
{
    struct squall_dataset *ds;
    SQ_TRY(sq_open_group(m->ctx, m->paths[index], m->options.group, &ds, err));
    if (!strcmp(ds->format, "grib")) {
        squall_dataset_close(ds);
        return sq_error(err, SQUALL_EINVAL, "%s is GRIB and %s is not; GRIB goes with GRIB only", m->paths[index], m->paths[0]);
    }
    ds->workers_of = m->files[0].ds;
    m->files[index].ds = ds;
    return sq_many_set_aside_groups(m, ds, NULL, err);
}

bool sq_many_is_joined(const struct sq_many *m, const struct squall_array *first)
{
    return first != m->coordinate && (m->new_dimension ? !sq_is_coordinate(first) : sq_dimension_of(first, m->dim) >= 0);
}

/* Of a file that was looked at only what is joined is kept, and what it has equal to the first file's only once. */
static void lighten(const struct sq_many *m, struct squall_dataset *ds)
{
    for (size_t i = ds->array_count; i-- > 0;) {
        struct squall_array *a = ds->arrays[i], *first = sq_find_array(m->files[0].ds, a->info.name, i);
        if (!first || !sq_many_is_joined(m, first))
            sq_dataset_drop(ds, i);
        else if (a->ops == first->ops && a->ops->share)
            a->ops->share(a, first);
    }
    sq_free(ds->attributes);
    sq_free(ds->attribute_types);
    ds->attributes = ds->attribute_types = NULL;
}

/* How long the chunks of what is joined are along the dimension. */
static int find_chunks(const struct sq_many *m, struct sq_many_file *f, struct squall_error *err)
{
    const struct squall_dataset *first = m->files[0].ds;
    if (!(f->entry.chunks = sq_alloc_zero(m->shape.joined, sizeof *f->entry.chunks)))
        return sq_error_memory(err, m->shape.joined * sizeof *f->entry.chunks);
    for (size_t i = 0, number = 0; i < first->array_count && number < m->shape.joined; i++) {
        if (!sq_many_is_joined(m, first->arrays[i]))
            continue;
        const struct squall_array *a = sq_find_array(f->ds, first->arrays[i]->info.name, i);
        const int axis = a ? sq_dimension_of(a, m->dim) : -1;
        f->entry.chunks[number++] = axis < 0 ? 0 : a->info.chunks[axis];
    }
    return 0;
}

/* What it adds: how long it is, and the coordinate's values. */
static int look_at(struct sq_many *m, size_t index, struct squall_error *err)
{
    struct sq_many_file *f = &m->files[index];
    SQ_TRY(find_length(m, f, err));
    if (m->index_folder)
        SQ_TRY(find_chunks(m, f, err));
    struct squall_array *a = m->coordinate ? sq_find_array(f->ds, m->dim, 0) : NULL;
    if (!m->coordinate)
        return 0;
    if (!a)
        return sq_error(err, SQUALL_EREFUSED, "%s: there is no %s, which tells where its fields belong", m->paths[index], m->dim);
    SQ_TRY(sq_many_reserve(m, index, a->info.rank ? a->info.shape[0] : 1, err));
    int status = sq_many_part_read(a, &f->entry.part, err);
    return status ? sq_error_within(err, status, "%s", m->paths[index]) : 0;
}

/* false: the index does not know it. */
static int take_from_index(struct sq_many *m, size_t index, bool *ret, struct squall_error *err)
{
    struct sq_many_file *f = &m->files[index];
    *ret = m->index && f->is_regular && sq_many_index_find(m->index, &f->entry.identity, &f->entry);
    if (!*ret)
        return 0;
    f->path = sq_path_absolute(m->paths[index]);
    return f->path ? sq_many_reserve(m, index, m->coordinate ? f->entry.length : 0, err) : sq_error_memory(err, 1);
}

static int take_file(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    struct sq_many *m = user;
    struct sq_many_file *f = &m->files[index];
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
        SQ_TRY(sq_many_open_file(m, index, err));
    if (index > 0)
        SQ_TRY(sq_compare_datasets(m->files[0].ds, f->ds, m->dim, m->coordinate, &f->drift, err));
    if (f->drift.fatal)
        return 0;
    SQ_TRY(look_at(m, index, err));
    if (index > 0)
        lighten(m, f->ds);
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
static int hash_array(const struct sq_many *m, struct sq_hash *hash, struct squall_array *a, struct squall_error *err)
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
static int load_index(struct sq_many *m, struct squall_error *err)
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
        m->shape.joined += !m->new_dimension && sq_many_is_joined(m, first->arrays[i]);
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
static void save_index(struct sq_many *m, int64_t now_ns)
{
    SQ_CLEANUP_FREE struct sq_many_entry *entries = sq_alloc(m->count, sizeof *entries);
    size_t count = 0, new_count = 0;
    for (size_t i = 1; entries && i < m->count; i++) {
        const struct sq_many_file *f = &m->files[i];
        const struct squall_dataset *ds = f->ds;
        if (!f->is_regular || f->drift.count > 0 || (ds && ds->problem_count > 0) || !is_settled(&f->entry.identity, now_ns))
            continue;
        entries[count++] = f->entry;
        new_count += f->path == NULL;
    }
    if (new_count > 0)
        sq_many_index_save(m->index_folder, &m->shape, entries, count);
}

/* Types and shapes that differ leave nothing to go on with. */
static int refuse_fatal(const struct sq_many *m, struct squall_error *err)
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

int sq_many_take_files(struct sq_many *m, struct squall_error *err)
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

/* ---- files that come late ---- */

/* A file that comes late, as it was when all were opened. */
static int open_late_file(const struct sq_many *m, const struct sq_many_file *f, struct squall_dataset **ret, struct squall_error *err)
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
int sq_many_open_late(void *user, size_t part, const char *name, struct squall_array **ret, struct squall_error *err)
{
    const struct sq_many *m = user;
    struct sq_many_file *f = &m->files[m->order[part]];
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
