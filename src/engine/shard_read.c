/*
 * Chunks that lie together in a shard (Zarr v3, "sharding_indexed"): the index says where each is; those that are wanted are read in the order
 * in which they lie, neighbours together, and then are chunks like others.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/chunk_cache.h"
#include "engine/read.h"
#include "engine/reading.h"
#include "sys/pool.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Neighbours are read at once up to so many bytes, over gaps of at most so many. */
enum { TOGETHER_BYTES = 1 << 20, GAP_BYTES = 16 << 10 };
/* What needs no decoding is read straight to its place rather than together with others, from this size on. */
enum { ALONE_BYTES = 32 << 10 };

/* A wanted chunk: an item of the plan, and where it lies in the shard; UINT64_MAX: it holds nothing but fill values. */
struct inner {
    uint64_t offset, size_bytes;
    size_t item;
};

struct shard_read {
    const struct sq_passage *shard;
    struct sq_reading reading; /* of the shard's part: its plan is over inner chunks */
    struct inner *inners;      /* by offset */
    size_t inner_count;
    size_t *runs; /* the first of each run of neighbours, and the end of the last */
    size_t run_count;
};

/* ---- the index -------------------------------------------------------------------------------------------------------------------- */

struct shard_index {
    const uint64_t *entries; /* [2 * inner_total] */
    const void *pinned;      /* in the cache */
    void *own;               /* else: sq_pages_alloc */
    size_t own_bytes;
};

/* No chunk lies so far behind in a file. */
static struct sq_cache_key index_key(const struct sq_passage *shard)
{
    return (struct sq_cache_key){.file = shard->file, .offset = ~shard->where.offset, .decoded_id = shard->reading->array->decoded_id};
}

static int fetch_index(struct sq_passage *p, uint64_t *entries, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    const struct sq_codec_shard *layout = a->shard;
    if (p->where.size_bytes < layout->index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %" PRIu64 " bytes, but the shard's index alone has %zu; the file is truncated",
                        sq_passage_source_name(p), p->where.size_bytes, layout->index_bytes);
    void *stored = sq_worker_raw(p->worker, layout->index_bytes);
    if (!stored)
        return sq_error_memory(err, layout->index_bytes);
    SQ_TRY(sq_passage_fetch(p, layout->index_at_start ? 0 : p->where.size_bytes - layout->index_bytes, stored, layout->index_bytes, err));
    int status = a->ops->read_index(a, p->worker->scratch, stored, p->where.size_bytes, entries, err);
    return status ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : 0;
}

static int open_index(struct sq_passage *p, struct shard_index *ret, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    size_t size_bytes = 2 * sizeof(uint64_t) * a->shard->inner_total;
    const struct sq_cache_key key = index_key(p);
    *ret = (struct shard_index){0};
    if (p->has_identity && a->decoded_id)
        ret->entries = ret->pinned = sq_chunk_cache_pin(a->dataset->ctx->cache, &key, size_bytes);
    if (ret->pinned)
        return 0;
    if (!(ret->own = sq_pages_alloc(size_bytes)))
        return sq_error_memory(err, size_bytes);
    ret->own_bytes = size_bytes;
    ret->entries = ret->own;
    return fetch_index(p, ret->own, err);
}

static void close_index(const struct sq_passage *p, struct shard_index *index, int status)
{
    const struct squall_array *a = p->reading->array;
    const struct sq_cache_key key = index_key(p);
    if (index->pinned)
        sq_chunk_cache_unpin(a->dataset->ctx->cache, index->pinned);
    else if (!status && p->has_identity && a->decoded_id)
        sq_chunk_cache_give(a->dataset->ctx->cache, &key, index->own_bytes, &index->own, &index->own_bytes);
    sq_pages_free(index->own, index->own_bytes);
}

/* ---- what is wanted of it --------------------------------------------------------------------------------------------------------- */

static int plan_inner(struct shard_read *s, struct squall_error *err)
{
    const struct sq_passage *p = s->shard;
    const struct sq_reading *r = p->reading;
    struct sq_axis axes[SQUALL_RANK_MAX];
    struct squall_selection within = {0};
    for (unsigned d = 0; d < r->plan.rank; d++) {
        axes[d] = (struct sq_axis){.length = p->item.extent[d], .chunk = r->array->shard->inner_shape[d]};
        within.start[d] = p->item.first[d];
        within.count[d] = p->item.count[d];
        within.step[d] = r->plan.selection.step[d];
    }
    s->reading = *r;
    return sq_plan_init(r->plan.rank, axes, &within, &s->reading.plan, err);
}

static int by_offset(const void *a, const void *b)
{
    const struct inner *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return left->item < right->item ? -1 : left->item > right->item;
}

static int list_inner(struct shard_read *s, const uint64_t *entries, struct squall_error *err)
{
    const struct sq_codec_shard *layout = s->shard->reading->array->shard;
    const size_t count = s->reading.plan.item_count;
    s->inners = sq_alloc(count, sizeof *s->inners);
    s->runs = sq_alloc(count + 1, sizeof *s->runs);
    if (!s->inners || !s->runs)
        return sq_error_memory(err, count * sizeof *s->inners);
    for (size_t i = 0; i < count; i++) {
        struct sq_plan_item item;
        size_t number = 0;
        if (!sq_plan_item_at(&s->reading.plan, i, &item))
            continue;
        for (unsigned d = 0; d < s->reading.plan.rank; d++)
            number = number * (size_t)layout->inner_count[d] + (size_t)item.chunk[d];
        s->inners[s->inner_count++] = (struct inner){entries[2 * number], entries[2 * number + 1], i};
    }
    qsort(s->inners, s->inner_count, sizeof *s->inners, by_offset);
    return 0;
}

/* Can the next chunk be read together with the run that begins at first and ends at byte end? */
static bool belongs_to_run(const struct shard_read *s, const struct inner *first, const struct inner *next, uint64_t end)
{
    if (next->offset == UINT64_MAX || first->offset == UINT64_MAX)
        return next->offset == first->offset;
    if (s->shard->reading->array->plain && (next->size_bytes >= ALONE_BYTES || first->size_bytes >= ALONE_BYTES))
        return false;
    return next->offset <= end + GAP_BYTES && next->offset + next->size_bytes - first->offset <= TOGETHER_BYTES;
}

static void make_runs(struct shard_read *s)
{
    uint64_t end = 0;
    for (size_t i = 0; i < s->inner_count; i++) {
        const struct inner *next = &s->inners[i];
        if (i == 0 || !belongs_to_run(s, &s->inners[s->runs[s->run_count - 1]], next, end)) {
            s->runs[s->run_count++] = i;
            end = 0;
        }
        if (next->offset != UINT64_MAX && next->offset + next->size_bytes > end)
            end = next->offset + next->size_bytes;
    }
    s->runs[s->run_count] = s->inner_count;
}

/* ---- the reading ------------------------------------------------------------------------------------------------------------------ */

/* stored: of the chunk, where it has been read; else NULL. */
static int read_inner(const struct shard_read *s, const struct inner *inner, const void *stored, struct sq_worker *worker,
                      struct squall_error *err)
{
    struct sq_passage p;
    (void)sq_plan_item_at(&s->reading.plan, inner->item, &p.item);
    SQ_TRY(sq_passage_init(&p, &s->reading, s->shard->to, worker, err));
    p.where = s->shard->where;
    p.where.packed = (struct sq_zip_place){0};
    p.file = s->shard->file;
    p.has_identity = s->shard->has_identity;
    p.fd = s->shard->fd;
    if (inner->offset == UINT64_MAX) {
        p.where.state = SQ_CHUNK_MISSING;
    } else {
        p.where.offset += inner->offset;
        p.where.size_bytes = inner->size_bytes;
    }
    int status = sq_passage_read(&p, stored, err);
    return status ? sq_inner_chunk_failed(s->reading.array, p.item.chunk, status, err) : 0;
}

/* Several chunks' bytes into the worker's buffer; *ret NULL where each had better be read by itself. */
static int fetch_run(const struct shard_read *s, size_t run, struct sq_worker *worker, const uint8_t **ret, struct squall_error *err)
{
    const struct inner *first = &s->inners[s->runs[run]], *behind = &s->inners[s->runs[run + 1]];
    struct sq_passage p = *s->shard;
    uint64_t end = 0;
    *ret = NULL;
    if (behind - first == 1 || first->offset == UINT64_MAX)
        return 0;
    for (const struct inner *i = first; i < behind; i++)
        if (i->offset + i->size_bytes > end)
            end = i->offset + i->size_bytes;
    p.worker = worker;
    uint8_t *raw = sq_worker_raw(worker, (size_t)(end - first->offset));
    if (!raw)
        return sq_error_memory(err, end - first->offset);
    SQ_TRY(sq_passage_fetch(&p, first->offset, raw, (size_t)(end - first->offset), err));
    *ret = raw;
    return 0;
}

static int read_run(void *user, size_t run, unsigned seat, struct squall_error *err)
{
    struct shard_read *s = user;
    struct sq_worker **worker = &s->reading.workers[seat];
    const uint8_t *raw;
    if (sq_cancelled(s->reading.array->dataset->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "the reading was cancelled");
    if (!*worker && !(*worker = sq_worker_take(s->reading.array)))
        return sq_error_memory(err, sizeof **worker);
    SQ_TRY(fetch_run(s, run, *worker, &raw, err));
    const struct inner *first = &s->inners[s->runs[run]], *behind = &s->inners[s->runs[run + 1]];
    for (const struct inner *i = first; i < behind; i++) {
        SQ_TRY(read_inner(s, i, raw ? raw + (i->offset - first->offset) : NULL, *worker, err));
        if (s->reading.done)
            s->reading.done[i->item] = true;
    }
    return 0;
}

static int read_runs(struct shard_read *s, struct squall_error *err)
{
    struct sq_passage p = *s->shard;
    unsigned threads = p.reading->inner_threads;
    struct sq_worker *workers[64] = {p.worker};
    if (threads > sizeof workers / sizeof *workers)
        threads = sizeof workers / sizeof *workers;
    SQ_CLEANUP_FREE bool *done = p.reading->done ? sq_alloc_zero(s->reading.plan.item_count, sizeof *done) : NULL;
    if (p.reading->done && !done)
        return sq_error_memory(err, s->reading.plan.item_count);
    s->reading.workers = workers;
    s->reading.done = done;
    int status = sq_parallel(threads, s->run_count, read_run, s, err);
    for (unsigned i = 1; i < threads; i++) {
        if (workers[i])
            sq_speed_add(&p.worker->speed, &workers[i]->speed);
        sq_worker_give_back(s->reading.array, workers[i]);
    }
    for (size_t i = 0; i < s->reading.plan.item_count && done && status; i++)
        if (done[i])
            sq_reading_free_item(&s->reading, i, s->shard->to);
    s->reading.workers = NULL;
    s->reading.done = NULL;
    return status;
}

int sq_shard_read(struct sq_passage *shard, struct squall_error *err)
{
    struct shard_read s = {.shard = shard};
    struct shard_index index;
    int status = open_index(shard, &index, err);
    if (!status)
        status = plan_inner(&s, err);
    if (!status)
        status = list_inner(&s, index.entries, err);
    close_index(shard, &index, status);
    if (!status) {
        make_runs(&s);
        status = read_runs(&s, err);
    }
    sq_free(s.inners);
    sq_free(s.runs);
    return status;
}
