/*
 * Changing a shard in part. Inner chunks that the region touches are made anew, the others keep the bytes that they have: what is stored before and
 * behind them is read and written, but not decoded.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/scatter.h"
#include "store/store.h"
#include "store/writing.h"
#include "sys/file.h"
#include <string.h>

static const uint64_t EMPTY = UINT64_MAX;
static const uint64_t KEPT = UINT64_MAX - 1; /* in place of an offset: not touched */

struct patch {
    const struct sq_parcel *parcel;
    const struct sq_codec_shard *layout;
    struct sq_plan plan; /* the region's part of the shard, over inner chunks */
    const uint8_t *old;
    size_t old_bytes;
    uint64_t *entries; /* of the old shard: offset and size of each inner chunk */
    uint64_t *fresh;   /* the same of those that are made anew, in `made` */
    uint8_t *made;
    size_t made_bytes, made_capacity;
    int64_t strides[SQUALL_RANK_MAX]; /* of an inner chunk in memory */
    size_t inner_bytes;
    uint8_t *out; /* the new shard */
};

/* *ret_there false: there is none. */
static int read_old(struct patch *t, bool *ret_there, struct squall_error *err)
{
    const struct sq_parcel *p = t->parcel;
    struct sq_file_identity id = {0};
    struct squall_error reason = SQUALL_ERROR_INIT;
    int fd = -1, status = sq_file_open(p->path, &fd, &id, &reason);
    *ret_there = status != SQUALL_ENOTFOUND;
    if (!*ret_there)
        return 0;
    if (status && err)
        *err = reason;
    if (status)
        return status;
    uint8_t *old = sq_worker_raw(p->worker, (size_t)id.size_bytes);
    status = old ? sq_file_read_at(fd, p->path, 0, old, (size_t)id.size_bytes, err) : sq_error_memory(err, id.size_bytes);
    sq_file_close(fd);
    t->old = old;
    t->old_bytes = (size_t)id.size_bytes;
    return status;
}

static int read_entries(struct patch *t, struct squall_error *err)
{
    const struct squall_array *a = t->parcel->writing->array;
    const size_t count = t->layout->inner_total;
    if (t->old_bytes < t->layout->index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes, but the shard's index alone has %zu; the file is truncated", t->parcel->path,
                        t->old_bytes, t->layout->index_bytes);
    t->entries = sq_alloc(count, 2 * sizeof *t->entries);
    t->fresh = sq_alloc(count, 2 * sizeof *t->fresh);
    if (!t->entries || !t->fresh)
        return sq_error_memory(err, count * 2 * sizeof *t->entries);
    for (size_t i = 0; i < count; i++)
        t->fresh[2 * i] = KEPT;
    const uint8_t *stored = t->old + (t->layout->index_at_start ? 0 : t->old_bytes - t->layout->index_bytes);
    int status = a->ops->read_index(a, t->parcel->worker->scratch, stored, t->old_bytes, t->entries, err);
    return status ? sq_error_within(err, status, "%s", t->parcel->path) : 0;
}

static int plan_inner(struct patch *t, struct squall_error *err)
{
    const struct sq_parcel *p = t->parcel;
    const struct sq_plan *outer = &p->writing->plan;
    struct sq_axis axes[SQUALL_RANK_MAX];
    struct squall_selection within;
    memset(&within, 0, sizeof within);
    t->inner_bytes = p->writing->array->info.element_bytes;
    for (unsigned d = outer->rank; d-- > 0;) {
        axes[d] = (struct sq_axis){.length = p->inside[d], .chunk = t->layout->inner_shape[d]};
        within.start[d] = p->item.first[d];
        within.count[d] = p->item.count[d];
        within.step[d] = outer->selection.step[d];
        t->strides[d] = (int64_t)t->inner_bytes;
        t->inner_bytes *= (size_t)t->layout->inner_shape[d]; /* part of the shard, which fits into memory */
    }
    return sq_plan_init(outer->rank, axes, &within, &t->plan, err);
}

/* ---- inner chunks that are touched ------------------------------------------------------------------------------------------------ */

static int encode_inner(struct patch *t, size_t number, const uint8_t *inner, struct squall_error *err)
{
    const size_t bound = sq_codec_encode_bound_of(t->layout->inner, inner, t->inner_bytes);
    size_t need, size;
    if (sq_writing_is_all_fill(t->parcel->writing->array, inner, t->inner_bytes)) {
        t->fresh[2 * number] = EMPTY;
        return 0;
    }
    if (!sq_add_size(t->made_bytes, bound, &need))
        return sq_error_memory(err, bound);
    SQ_TRY(SQ_GROW(t->made, t->made_capacity, need, err));
    SQ_TRY(sq_codec_encode(t->layout->inner, t->parcel->worker->scratch, t->parcel->writing->inner_threads, inner, t->inner_bytes,
                           t->made + t->made_bytes, bound, &size, err));
    t->fresh[2 * number] = t->made_bytes;
    t->fresh[2 * number + 1] = size;
    t->made_bytes += size;
    return 0;
}

static int make_inner(struct patch *t, const struct sq_plan_item *item, uint8_t *inner, struct squall_error *err)
{
    const struct sq_writing *w = t->parcel->writing;
    const struct squall_array *a = w->array;
    const uint8_t *from = t->parcel->from;
    const struct sq_location nowhere = {0};
    size_t number = 0;
    bool whole = true, padded = false; /* as of the parcel */
    for (unsigned d = 0; d < t->plan.rank; d++) {
        uint64_t left = t->plan.axes[d].length - item->chunk[d] * item->extent[d];
        whole = whole && item->count[d] == (left < item->extent[d] ? left : item->extent[d]);
        padded = padded || left < item->extent[d];
        number = number * (size_t)t->layout->inner_count[d] + (size_t)item->chunk[d];
        from += (int64_t)item->to[d] * w->strides[d];
    }
    const uint64_t *entry = t->entries + 2 * number;
    if (whole ? padded : entry[0] == EMPTY)
        sq_scatter_fill(inner, t->inner_bytes / a->info.element_bytes, a->info.element_bytes, a->fill);
    else if (!whole)
        SQ_TRY(a->ops->decode(a, t->parcel->worker->scratch, w->inner_threads, &nowhere, t->old + entry[0], (size_t)entry[1], inner,
                              t->inner_bytes, err));
    sq_writing_gather(w, item, from, t->strides, inner);
    return encode_inner(t, number, inner, err);
}

static int make_touched(struct patch *t, struct squall_error *err)
{
    uint8_t *inner = sq_worker_chunk(t->parcel->worker, t->inner_bytes);
    struct sq_plan_item item;
    if (!inner)
        return sq_error_memory(err, t->inner_bytes);
    for (size_t i = 0; i < t->plan.item_count; i++)
        if (sq_plan_item_at(&t->plan, i, &item))
            SQ_TRY(make_inner(t, &item, inner, err));
    return 0;
}

/* ---- the new shard ---------------------------------------------------------------------------------------------------------------- */

/* Bytes that all inner chunks take. Those of an old shard may overlap: false where they claim more than there is. */
static bool count_bytes(const struct patch *t, size_t *ret_kept, size_t *ret_chunks)
{
    size_t kept = 0, chunks = 0;
    for (size_t i = 0; i < t->layout->inner_total; i++) {
        bool touched = t->fresh[2 * i] != KEPT;
        uint64_t offset = touched ? t->fresh[2 * i] : t->entries[2 * i];
        chunks += offset != EMPTY;
        if (!touched && offset != EMPTY && !sq_add_size(kept, (size_t)t->entries[2 * i + 1], &kept))
            return false;
    }
    *ret_kept = kept;
    *ret_chunks = chunks;
    return kept <= t->old_bytes;
}

static int put_together(struct patch *t, size_t size, struct squall_error *err)
{
    const struct sq_codec_shard *layout = t->layout;
    size_t at = layout->index_at_start ? layout->index_bytes : 0;
    if (!(t->out = sq_alloc(size, 1)))
        return sq_error_memory(err, size);
    for (size_t i = 0; i < layout->inner_total; i++) {
        bool touched = t->fresh[2 * i] != KEPT;
        uint64_t *entry = t->entries + 2 * i;
        const uint8_t *from = touched ? t->made + t->fresh[2 * i] : t->old + entry[0];
        if ((touched ? t->fresh[2 * i] : entry[0]) == EMPTY) {
            entry[0] = entry[1] = EMPTY;
            continue;
        }
        const size_t bytes = (size_t)(touched ? t->fresh[2 * i + 1] : entry[1]);
        memcpy(t->out + at, from, bytes);
        entry[0] = at;
        entry[1] = bytes;
        at += bytes;
    }
    uint8_t *index = t->out + (layout->index_at_start ? 0 : at);
    SQ_TRY(sq_codec_shard_index_encode(layout, t->parcel->worker->scratch, t->entries, index, err));
    return sq_parcel_put(t->parcel, t->out, size, err);
}

static int change(struct patch *t, bool *ret_done, struct squall_error *err)
{
    const struct sq_writing *w = t->parcel->writing;
    size_t kept, chunks, size;
    bool there;
    SQ_TRY(plan_inner(t, err));
    if (w->inner_threads > 1 && t->plan.item_count > t->layout->inner_total / 4) /* all threads make the whole sooner */
        return 0;
    SQ_TRY(read_old(t, &there, err));
    if (!there)
        return 0;
    SQ_TRY(read_entries(t, err));
    SQ_TRY(make_touched(t, err));
    if (!count_bytes(t, &kept, &chunks) || !sq_add_size(kept, t->made_bytes, &size) || !sq_add_size(size, t->layout->index_bytes, &size))
        return 0;
    *ret_done = true;
    if (chunks == 0 && !w->array->dataset->write_options.write_empty_chunks)
        return sq_parcel_put(t->parcel, NULL, 0, err);
    return put_together(t, size, err);
}

int sq_shard_change(const struct sq_parcel *p, bool *ret_done, struct squall_error *err)
{
    const struct squall_array *a = p->writing->array;
    struct patch t = {.parcel = p, .layout = a->shard};
    if (sq_type_is_variable(a->info.type))
        return 0;
    int status = change(&t, ret_done, err);
    sq_free(t.entries);
    sq_free(t.fresh);
    sq_free(t.made);
    sq_free(t.out);
    return status;
}
