/*
 * Reading a box: which chunks, and shards, are touched; on which threads. Chunks in parallel first; threads that are left work inside of
 * one: on the chunks of a shard, on the blocks of a codec.
 */
#include "engine/read.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/array.h"
#include "engine/reading.h"
#include "engine/variable.h"
#include "sys/pool.h"
#include <inttypes.h>

/* A result of this size does not stay in any cache until somebody looks at it. */
static const uint64_t BEYOND_CACHES_BYTES = UINT64_C(48) << 20;
/* With fewer shards for each thread, the last ones would keep some waiting: then all threads work on one after the other. */
enum { SHARDS_A_THREAD = 4 };

static void add_numbers(struct sq_text *text, const struct squall_array *a, const uint64_t *chunk)
{
    for (unsigned d = 0; d < a->info.rank; d++)
        sq_text_printf(text, "%s%" PRIu64, d ? "/" : "", chunk[d]);
}

int sq_chunk_failed(const struct squall_array *a, const uint64_t *chunk, int status, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text numbers = SQ_TEXT_INIT;
    add_numbers(&numbers, a, chunk);
    return sq_error_within(err, status, "array %s, %s %s", a->info.name, a->shard ? "shard" : "chunk", sq_text_string(&numbers));
}

int sq_inner_chunk_failed(const struct squall_array *a, const uint64_t *chunk, int status, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text numbers = SQ_TEXT_INIT;
    add_numbers(&numbers, a, chunk);
    return sq_error_within(err, status, "inner chunk %s", sq_text_string(&numbers));
}

static int read_item(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    struct sq_reading *r = user;
    struct squall_array *a = r->array;
    struct sq_passage p;
    if (sq_cancelled(a->dataset->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "reading array %s was cancelled", a->info.name);
    if (!r->workers[seat] && !(r->workers[seat] = sq_worker_take(a)))
        return sq_error_memory(err, sizeof(struct sq_worker));
    if (!sq_plan_item_at(&r->plan, index, &p.item))
        return 0;
    SQ_TRY(sq_passage_init(&p, r, r->dst, r->workers[seat], err));
    p.threads = r->inner_threads;
    int status = a->ops->locate(a, p.item.chunk, &p.where, err);
    if (!status && p.where.source)
        status = sq_worker_note_source(p.worker, p.where.source, err);
    if (!status)
        status = sq_passage_open(&p, err);
    if (!status)
        status = a->shard && p.where.state == SQ_CHUNK_PRESENT ? sq_shard_read(&p, err) : sq_passage_read(&p, p.stored, err);
    sq_passage_close(&p);
    if (r->done)
        r->done[index] = !status;
    return status ? sq_chunk_failed(a, p.item.chunk, status, err) : 0;
}

/* ---- a read ----------------------------------------------------------------------------------------------------------------------- */

static int reading_init(struct sq_reading *r, struct squall_array *a, const struct squall_selection *selection, void *dst,
                        const int64_t *strides, struct squall_error *err)
{
    const struct squall_array_info *info = &a->info;
    if (info->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s cannot be read: %s", info->name, info->unsupported);
    *r = (struct sq_reading){.array = a, .dst = dst, .element_bytes = info->element_bytes};
    int status = sq_plan_init(info->rank, a->grid, selection, &r->plan, err);
    if (status)
        return sq_error_within(err, status, "array %s", info->name);
    int64_t stride = (int64_t)r->element_bytes;
    for (unsigned d = info->rank; d-- > 0 && r->plan.item_count > 0;) {
        r->strides[d] = strides ? strides[d] : stride;
        if (!sq_mul_i64(stride, (int64_t)selection->count[d], &stride))
            return sq_error(err, SQUALL_EINVAL, "array %s: the selection does not fit into memory", info->name);
    }
    return 0;
}

/* Bytes of a box; UINT64_MAX where they cannot be counted. */
static uint64_t box_bytes(const struct squall_array *a, const uint64_t *count)
{
    uint64_t bytes = a->info.element_bytes;
    bool fits = true;
    for (unsigned d = 0; d < a->info.rank; d++)
        fits = fits && sq_mul_u64(bytes, count[d], &bytes);
    return fits ? bytes : UINT64_MAX;
}

/* As many threads as may be, have something to do and room for their buffers; outer ones over the items, inner ones within each. */
static unsigned choose_threads(struct sq_reading *r, unsigned threads)
{
    const struct squall_array *a = r->array;
    const uint64_t items = r->plan.item_count, chunk_bytes = box_bytes(a, a->info.chunks), budget = a->dataset->ctx->memory_bytes;
    uint64_t work = box_bytes(a, r->plan.selection.count), decoded;
    if (!a->plain && sq_mul_u64(items, chunk_bytes, &decoded) && decoded > work) /* of each chunk all is decoded */
        work = decoded;
    if (threads > work / SQ_BYTES_WORTH_A_THREAD + 1)
        threads = (unsigned)(work / SQ_BYTES_WORTH_A_THREAD + 1);
    if (chunk_bytes && threads > budget / 2 / chunk_bytes)
        threads = (unsigned)(budget / 2 / chunk_bytes);
    if (threads == 0)
        threads = 1;
    r->inner_threads = 1;
    r->target = box_bytes(a, r->plan.selection.count) >= BEYOND_CACHES_BYTES ? SQ_SCATTER_BEYOND_CACHES : SQ_SCATTER_INTO_CACHES;
    r->memory_bytes = budget / threads;
    if (items >= threads && (!a->shard || items >= (uint64_t)SHARDS_A_THREAD * threads))
        return threads;
    unsigned outer = a->shard || items == 0 ? 1 : (unsigned)items;
    r->inner_threads = threads / outer;
    return outer;
}

/* What changed meanwhile was read in part; that says more than what the reading of it failed at. */
static int check_unchanged(const struct sq_worker *w, int status, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int changed = 0;
    for (size_t i = 0; i < w->source_count && !changed; i++)
        changed = sq_source_check_unchanged(w->sources[i], &reason);
    if (changed && err)
        *err = reason;
    return changed ? changed : status;
}

static int run(struct sq_reading *r, unsigned threads, struct squall_speed *speed, struct squall_error *err)
{
    enum { FEW = 8 };
    struct sq_worker *few[FEW] = {0};
    threads = choose_threads(r, threads);
    r->workers = threads <= FEW ? few : sq_alloc_zero(threads, sizeof(struct sq_worker *));
    if (!r->workers)
        return sq_error_memory(err, threads * sizeof *r->workers);
    int status = sq_parallel(threads, r->plan.item_count, read_item, r, err);
    for (unsigned i = 0; i < threads; i++) {
        struct sq_worker *w = r->workers[i];
        if (w && speed)
            sq_speed_add(speed, &w->speed);
        if (w)
            status = check_unchanged(w, status, err);
        sq_worker_give_back(r->array, w);
    }
    if (r->workers != few)
        sq_free(r->workers);
    return status;
}

void sq_reading_free_item(const struct sq_reading *r, size_t index, uint8_t *to)
{
    struct sq_plan_item item;
    if (!sq_plan_item_at(&r->plan, index, &item))
        return;
    for (unsigned d = 0; d < r->plan.rank; d++)
        to += (int64_t)item.to[d] * r->strides[d];
    sq_variable_free(r->array->info.type, r->plan.rank, item.count, to, r->strides);
}

/* Elements of variable length: what was read before something failed is freed. */
static int run_variable(struct sq_reading *r, unsigned threads, struct squall_speed *speed, struct squall_error *err)
{
    SQ_CLEANUP_FREE bool *done = r->done = sq_alloc_zero(r->plan.item_count, sizeof *done);
    if (!done)
        return sq_error_memory(err, r->plan.item_count);
    int status = run(r, threads, speed, err);
    for (size_t i = 0; i < r->plan.item_count && status; i++)
        if (done[i])
            sq_reading_free_item(r, i, r->dst);
    return status;
}

int sq_array_read(struct squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides, unsigned threads,
                  struct squall_speed *speed, struct squall_error *err)
{
    struct sq_reading r;
    if (a->ops->read)
        return a->ops->read(a, selection, dst, strides, threads, speed, err);
    SQ_TRY(reading_init(&r, a, selection, dst, strides, err));
    if (r.plan.item_count == 0)
        return 0;
    r.timed = speed != NULL;
    int status = a->ops->prepare ? a->ops->prepare(a, err) : 0;
    if (status)
        return sq_error_within(err, status, "array %s", a->info.name);
    return sq_type_is_variable(a->info.type) ? run_variable(&r, threads, speed, err) : run(&r, threads, speed, err);
}

int squall_array_read(squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides,
                      struct squall_error *err)
{
    return sq_array_read(a, selection, dst, strides, a->dataset->ctx->threads, NULL, err);
}
