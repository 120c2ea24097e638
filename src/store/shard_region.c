/*
 * A region's part of a shard. Inner chunks that the region touches are made of the caller's memory, each by itself, and go out in their order,
 * straight behind one another, in the buffer that is published. Of a shard that is cut, the others keep the bytes that they have: these are read and
 * written, but not decoded.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/read.h"
#include "engine/scatter.h"
#include "store/store.h"
#include "store/writing.h"
#include "sys/file.h"
#include "sys/ordered.h"
#include <string.h>

static const uint64_t EMPTY = UINT64_MAX; /* as the index has it: nothing but fill values */

/* An inner chunk that was made and has not been placed. */
struct made {
    size_t number, size_bytes; /* of how many bytes; 0: it is empty */
    bool touched;              /* else nothing is selected of it */
};

struct making {
    const struct sq_parcel *parcel;
    const struct sq_codec_shard *layout;
    struct sq_plan plan;              /* the region's part of the shard, over inner chunks */
    int64_t strides[SQUALL_RANK_MAX]; /* of an inner chunk in memory */
    size_t inner_bytes, bound;        /* in memory; encoded, at most */
    const uint8_t *old;               /* the shard that is there */
    size_t old_bytes;
    uint64_t *entries; /* offset and size of each inner chunk: in the old shard, and once it has been placed in the new one */
    uint8_t *out;      /* the new shard */
    size_t at, placed; /* out ends there; inner chunks before this one are in it */
    unsigned threads, slot_count;
    struct sq_worker **workers; /* of each thread */
    uint8_t *slots;             /* `bound` bytes each; a single thread needs none */
    struct made made[SQ_ORDERED_SLOTS_MAX];
};

static int plan_inner(struct making *m, struct squall_error *err)
{
    const struct sq_parcel *p = m->parcel;
    const struct sq_plan *outer = &p->writing->plan;
    struct sq_axis axes[SQUALL_RANK_MAX];
    struct squall_selection within;
    memset(&within, 0, sizeof within);
    m->inner_bytes = p->writing->array->info.element_bytes;
    for (unsigned d = outer->rank; d-- > 0;) {
        axes[d] = (struct sq_axis){.length = p->inside[d], .chunk = m->layout->inner_shape[d]};
        within.start[d] = p->item.first[d];
        within.count[d] = p->item.count[d];
        within.step[d] = outer->selection.step[d];
        m->strides[d] = (int64_t)m->inner_bytes;
        m->inner_bytes *= (size_t)m->layout->inner_shape[d]; /* part of the shard, which fits into memory */
    }
    m->bound = sq_codec_encode_bound(m->layout->inner, m->inner_bytes);
    return sq_plan_init(outer->rank, axes, &within, &m->plan, err);
}

/* ---- the shard that is there ------------------------------------------------------------------------------------------------------ */

static int read_file(struct making *m, int fd, size_t size_bytes, struct squall_error *err)
{
    uint8_t *old = sq_worker_member(m->parcel->worker, size_bytes);
    if (!old)
        return sq_error_memory(err, size_bytes);
    m->old = old;
    m->old_bytes = size_bytes;
    return sq_file_read_at(fd, m->parcel->where.path, 0, old, size_bytes, err);
}

static int read_index(struct making *m, struct squall_error *err)
{
    const struct squall_array *a = m->parcel->writing->array;
    if (m->old_bytes < m->layout->index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes, but the shard's index alone has %zu; the file is truncated",
                        m->parcel->where.path, m->old_bytes, m->layout->index_bytes);
    const uint8_t *stored = m->old + (m->layout->index_at_start ? 0 : m->old_bytes - m->layout->index_bytes);
    int status = a->ops->read_index(a, m->parcel->worker->scratch, stored, m->old_bytes, m->entries, err);
    return status ? sq_error_within(err, status, "%s", m->parcel->where.path) : 0;
}

/* Where there is none, all inner chunks are empty. */
static int read_old(struct making *m, struct squall_error *err)
{
    const struct squall_array *a = m->parcel->writing->array;
    const struct sq_location where = {.path = m->parcel->where.path};
    struct sq_file_identity id = {0};
    struct squall_error reason = SQUALL_ERROR_INIT;
    int fd = -1, status = sq_file_open(m->parcel->where.path, &fd, &id, &reason);
    if (status == SQUALL_ENOTFOUND)
        return a->ops->absent(a, m->parcel->item.chunk, &where, err);
    if (status && err)
        *err = reason;
    SQ_TRY(status);
    status = read_file(m, fd, (size_t)id.size_bytes, err);
    sq_file_close(fd);
    return status ? status : read_index(m, err);
}

/* Do the inner chunks take no more than the shard has? Of one that is damaged, or that others wrote, they may overlap. */
static bool lie_apart(const struct making *m)
{
    size_t bytes = 0;
    for (size_t i = 0; i < m->layout->inner_total; i++)
        if (m->entries[2 * i] != EMPTY && !sq_add_size(bytes, (size_t)m->entries[2 * i + 1], &bytes))
            return false;
    return bytes <= m->old_bytes;
}

/* ---- inner chunks ----------------------------------------------------------------------------------------------------------------- */

/* Append bytes to the new shard as inner chunk `number`. */
static void append(struct making *m, size_t number, const uint8_t *from, size_t size_bytes)
{
    if (from != m->out + m->at)
        memcpy(m->out + m->at, from, size_bytes);
    m->entries[2 * number] = m->at;
    m->entries[2 * number + 1] = size_bytes;
    m->at += size_bytes;
}

/* Those before `number` that have not been placed are not touched. */
static void keep_until(struct making *m, size_t number)
{
    for (; m->placed < number; m->placed++) {
        const uint64_t *entry = m->entries + 2 * m->placed;
        if (entry[0] != EMPTY)
            append(m, m->placed, m->old + entry[0], (size_t)entry[1]);
    }
}

/* What an inner chunk is to hold: in the caller's memory, where it lies there as it is to be, or put together at `inner`. */
static int elements_of(const struct making *m, const struct sq_plan_item *item, size_t number, struct sq_worker *worker, uint8_t *inner,
                       const uint8_t **ret, struct squall_error *err)
{
    const struct sq_writing *w = m->parcel->writing;
    const struct squall_array *a = w->array;
    const struct sq_location nowhere = {0};
    const uint64_t *entry = m->entries + 2 * number;
    const uint8_t *from = m->parcel->from;
    bool whole = true, padded = false, ready = true; /* as of the parcel */
    for (unsigned d = 0; d < m->plan.rank; d++) {
        uint64_t left = m->plan.axes[d].length - item->chunk[d] * item->extent[d];
        whole = whole && item->count[d] == (left < item->extent[d] ? left : item->extent[d]);
        padded = padded || left < item->extent[d];
        ready = ready && (item->count[d] == 1 || w->strides[d] == m->strides[d]);
        from += (int64_t)item->to[d] * w->strides[d];
    }
    *ret = from;
    if (ready && whole && !padded)
        return 0;
    if (whole ? padded : entry[0] == EMPTY)
        sq_scatter_fill(inner, m->inner_bytes / a->info.element_bytes, a->info.element_bytes, a->fill);
    else if (!whole)
        SQ_TRY(a->ops->decode(a, worker->scratch, 1, &nowhere, m->old + entry[0], (size_t)entry[1], inner, m->inner_bytes, err));
    sq_writing_gather(w, item, from, m->strides, inner);
    *ret = inner;
    return 0;
}

/* Bytes that are stored as they are in memory are put together where they are to be stored. */
static int make_inner(const struct making *m, const struct sq_plan_item *item, size_t number, struct sq_worker *worker, uint8_t *dst,
                      size_t *ret_size, struct squall_error *err)
{
    const struct squall_array *a = m->parcel->writing->array;
    const unsigned threads = m->parcel->writing->inner_threads / m->threads;
    uint8_t *inner = a->plain ? dst : sq_worker_chunk(worker, m->inner_bytes);
    const uint8_t *elements;
    *ret_size = 0;
    if (!inner)
        return sq_error_memory(err, m->inner_bytes);
    SQ_TRY(elements_of(m, item, number, worker, inner, &elements, err));
    if (sq_writing_is_all_fill(a, elements, m->inner_bytes))
        return 0;
    if (!a->plain)
        return sq_codec_encode(m->layout->inner, worker->scratch, threads, elements, m->inner_bytes, dst, m->bound, ret_size, err);
    if (elements != dst)
        memcpy(dst, elements, m->inner_bytes);
    *ret_size = m->inner_bytes;
    return 0;
}

static int work(void *user, size_t index, unsigned thread, unsigned slot, struct squall_error *err)
{
    struct making *m = user;
    const struct squall_array *a = m->parcel->writing->array;
    struct made *made = &m->made[slot];
    struct sq_plan_item item;
    *made = (struct made){.touched = sq_plan_item_at(&m->plan, index, &item)};
    if (!made->touched)
        return 0;
    for (unsigned d = 0; d < m->plan.rank; d++)
        made->number = made->number * (size_t)m->layout->inner_count[d] + (size_t)item.chunk[d];
    if (!m->workers[thread] && !(m->workers[thread] = sq_worker_take(a)))
        return sq_error_memory(err, sizeof(struct sq_worker));
    if (!m->slots)
        keep_until(m, made->number);
    uint8_t *dst = m->slots ? m->slots + slot * m->bound : m->out + m->at;
    int status = make_inner(m, &item, made->number, m->workers[thread], dst, &made->size_bytes, err);
    return status ? sq_inner_chunk_failed(a, item.chunk, status, err) : 0;
}

static int place(void *user, size_t index, unsigned thread, unsigned slot, struct squall_error *err)
{
    struct making *m = user;
    const struct made *made = &m->made[slot];
    (void)index, (void)thread, (void)err;
    if (!made->touched)
        return 0;
    keep_until(m, made->number);
    if (made->size_bytes > 0)
        append(m, made->number, m->slots ? m->slots + slot * m->bound : m->out + m->at, made->size_bytes);
    else
        m->entries[2 * made->number] = m->entries[2 * made->number + 1] = EMPTY;
    m->placed++;
    return 0;
}

/* ---- the new shard ---------------------------------------------------------------------------------------------------------------- */

/* Room for all that may come; what is not needed of it is never touched. */
static int make_room(struct making *m, struct squall_error *err)
{
    size_t shard, slots = 0, all;
    if (!sq_mul_size(m->bound, m->plan.item_count, &shard) || !sq_add_size(shard, m->old_bytes, &shard) ||
        !sq_add_size(shard, m->layout->index_bytes, &shard) || !sq_mul_size(m->bound, m->threads > 1 ? m->slot_count : 0, &slots) ||
        !sq_add_size(shard, slots, &all))
        return sq_error_memory(err, SIZE_MAX);
    uint8_t *room = sq_worker_raw(m->parcel->worker, all);
    if (!room)
        return sq_error_memory(err, all);
    m->slots = m->threads > 1 ? room : NULL;
    m->out = room + slots;
    m->at = m->layout->index_at_start ? m->layout->index_bytes : 0;
    return 0;
}

static int publish(struct making *m, struct squall_error *err)
{
    const struct sq_codec_shard *layout = m->layout;
    const bool empty = m->at == (layout->index_at_start ? layout->index_bytes : 0);
    if (empty && !m->parcel->writing->array->dataset->write_options.write_empty_chunks)
        return sq_parcel_put(m->parcel, NULL, 0, err);
    uint8_t *index = m->out + (layout->index_at_start ? 0 : m->at);
    SQ_TRY(sq_codec_shard_index_encode(layout, m->parcel->worker->scratch, m->entries, index, err));
    return sq_parcel_put(m->parcel, m->out, m->at + (layout->index_at_start ? 0 : layout->index_bytes), err);
}

static int make(struct making *m, bool *ret_done, struct squall_error *err)
{
    enum { SLOTS_PER_THREAD = 2 };
    SQ_TRY(plan_inner(m, err));
    for (size_t i = 0; i < 2 * m->layout->inner_total; i++)
        m->entries[i] = EMPTY;
    if (!m->parcel->whole)
        SQ_TRY(read_old(m, err));
    if (!lie_apart(m))
        return 0;
    m->threads = m->parcel->writing->inner_threads;
    if (m->threads > m->plan.item_count)
        m->threads = (unsigned)m->plan.item_count;
    m->slot_count = m->threads == 1 ? 1 : m->threads * SLOTS_PER_THREAD;
    if (m->slot_count > SQ_ORDERED_SLOTS_MAX)
        m->slot_count = SQ_ORDERED_SLOTS_MAX;
    if (m->slot_count > m->plan.item_count)
        m->slot_count = (unsigned)m->plan.item_count;
    SQ_TRY(make_room(m, err));
    if (!(m->workers = sq_alloc_zero(m->threads, sizeof *m->workers)))
        return sq_error_memory(err, m->threads * sizeof *m->workers);
    m->workers[0] = m->parcel->worker;
    SQ_TRY(sq_parallel_ordered(m->threads, m->plan.item_count, m->slot_count, work, place, m, err));
    keep_until(m, m->layout->inner_total);
    SQ_TRY(publish(m, err));
    *ret_done = true;
    return 0;
}

int sq_shard_write(const struct sq_parcel *p, bool *ret_done, struct squall_error *err)
{
    const struct squall_array *a = p->writing->array;
    struct making m = {.parcel = p, .layout = a->shard};
    if (sq_type_is_variable(a->info.type))
        return 0;
    if (!(m.entries = sq_alloc(m.layout->inner_total, 2 * sizeof *m.entries)))
        return sq_error_memory(err, m.layout->inner_total * 2 * sizeof *m.entries);
    int status = make(&m, ret_done, err);
    for (unsigned i = 1; i < m.threads && m.workers; i++)
        sq_worker_give_back(a, m.workers[i]);
    sq_free(m.workers);
    sq_free(m.entries);
    return status;
}
