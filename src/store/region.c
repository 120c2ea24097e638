/*
 * Writing a region: the plan of a read, the other way round. Chunks that the region holds whole are made of it alone, those that it cuts are
 * read, changed and written under a lock. Where a chunk's elements lie in one run in the caller's memory they are encoded from there.
 */
#include "store/region.h"
#include "array/bytes.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/read.h"
#include "engine/scatter.h"
#include "engine/zarr_array.h"
#include "store/netcdf3.h"
#include "store/store.h"
#include "store/writing.h"
#include "sys/file.h"
#include "sys/locks.h"
#include "sys/pool.h"
#include <inttypes.h>
#include <string.h>

/* Encoding less than this is sooner done than another thread is awake. */
enum { BYTES_WORTH_A_THREAD = 128 << 10 };
/* A chunk, what it is encoded to, and what a chunk that is changed in part is read with. */
enum { BUFFERS_A_THREAD = 4 };

static uint64_t up_to(uint64_t n, uint64_t limit)
{
    return n < limit ? n : limit;
}

static int parcel_init(struct sq_parcel *p, const struct sq_writing *w, struct squall_error *err)
{
    const unsigned rank = w->plan.rank;
    int64_t stride = (int64_t)w->array->info.element_bytes;
    p->writing = w;
    p->from = w->src;
    p->whole = true;
    for (unsigned d = rank; d-- > 0;) {
        const struct sq_axis *axis = &w->plan.axes[d];
        p->begin[d] = sq_axis_begin(axis, p->item.chunk[d]);
        p->inside[d] = up_to(axis->length - p->begin[d], p->item.extent[d]);
        p->whole = p->whole && p->item.count[d] == (w->ends ? up_to(w->ends[d] - p->begin[d], p->item.extent[d]) : p->inside[d]);
        p->from += (int64_t)p->item.to[d] * w->strides[d];
        p->strides[d] = stride;
        if (!sq_mul_i64(stride, (int64_t)p->item.extent[d], &stride))
            return sq_error(err, SQUALL_ENOMEM, "a chunk does not fit into memory");
    }
    p->padded = false;
    for (unsigned d = 0; d < rank; d++)
        p->padded = p->padded || (p->whole ? p->item.count[d] : p->inside[d]) < p->item.extent[d];
    p->bytes = (size_t)stride;
    p->lock = sq_hash_more(w->identity, p->item.chunk, rank * sizeof *p->item.chunk).low;
    return 0;
}

/* ---- the chunk in memory ---------------------------------------------------------------------------------------------------------- */

/* Are the elements in the caller's memory the whole chunk, as it is to be? */
static bool lies_ready(const struct sq_parcel *p)
{
    const struct sq_writing *w = p->writing;
    for (unsigned d = 0; d < w->plan.rank; d++)
        if (p->item.count[d] > 1 && w->strides[d] != p->strides[d])
            return false;
    return p->whole && !p->padded;
}

void sq_writing_gather(const struct sq_writing *w, const struct sq_plan_item *item, const uint8_t *src, const int64_t *chunk_strides,
                       uint8_t *chunk)
{
    int64_t to[SQUALL_RANK_MAX];
    for (unsigned d = 0; d < w->plan.rank; d++) {
        to[d] = chunk_strides[d] * (int64_t)w->plan.selection.step[d];
        chunk += (int64_t)item->first[d] * chunk_strides[d];
    }
    sq_scatter_copy(w->plan.rank, item->count, w->array->info.element_bytes, src, w->strides, chunk, to, SQ_SCATTER_INTO_CACHES);
}

static void gather(const struct sq_parcel *p, uint8_t *chunk)
{
    sq_writing_gather(p->writing, &p->item, p->from, p->strides, chunk);
}

static void fill(const struct sq_parcel *p, uint8_t *chunk)
{
    const struct squall_array *a = p->writing->array;
    sq_scatter_fill(chunk, p->bytes / a->info.element_bytes, a->info.element_bytes, a->fill);
}

/* What is there of the chunk now; elements of variable length are the caller's. What fails says where, as any read does. */
static int read_present(const struct sq_parcel *p, uint8_t *chunk, struct squall_error *err)
{
    const struct sq_writing *w = p->writing;
    struct squall_selection s;
    memset(&s, 0, sizeof s);
    for (unsigned d = 0; d < w->plan.rank; d++) {
        s.start[d] = p->begin[d];
        s.count[d] = p->inside[d];
        s.step[d] = 1;
    }
    return sq_array_read(w->array, &s, chunk, p->strides, w->inner_threads, NULL, err);
}

static bool same_element(enum squall_type type, size_t bytes, const void *a, const void *b)
{
    return sq_type_is_variable(type) ? sq_bytes_equal(a, b) : memcmp(a, b, bytes) == 0;
}

bool sq_writing_is_all_fill(const struct squall_array *a, const uint8_t *elements, size_t size_bytes)
{
    const size_t width = a->info.element_bytes;
    if (!same_element(a->info.type, width, elements, a->fill))
        return false;
    if (!sq_type_is_variable(a->info.type))
        return memcmp(elements, elements + width, size_bytes - width) == 0;
    for (size_t at = width; at < size_bytes; at += width)
        if (!same_element(a->info.type, width, elements + at, a->fill))
            return false;
    return true;
}

/* ---- the chunk in the store ------------------------------------------------------------------------------------------------------- */

int sq_parcel_put(const struct sq_parcel *p, const void *bytes, size_t size_bytes, struct squall_error *err)
{
    const struct sq_writing *w = p->writing;
    const enum sq_durability durability = sq_store_durability(&w->array->dataset->write_options);
    if (p->whole)
        sq_locks_hold(p->lock);
    int status =
        bytes ? sq_store_publish(w->folder, p->where.path, bytes, size_bytes, durability, err) : sq_file_remove(p->where.path, err);
    if (p->whole)
        sq_locks_release(p->lock);
    return status;
}

static int encode_and_put(const struct sq_parcel *p, const uint8_t *chunk, struct squall_error *err)
{
    const struct squall_array *a = p->writing->array;
    size_t size, bound;
    if (!a->dataset->write_options.write_empty_chunks && sq_writing_is_all_fill(a, chunk, p->bytes))
        return sq_parcel_put(p, NULL, 0, err);
    if (a->plain && !a->shard)
        return sq_parcel_put(p, chunk, p->bytes, err);
    SQ_TRY(a->ops->encode_bound(a, &p->where, chunk, p->bytes, &bound, err));
    void *encoded = sq_worker_raw(p->worker, bound);
    if (!encoded)
        return sq_error_memory(err, bound);
    SQ_TRY(a->ops->encode(a, p->worker->scratch, p->writing->inner_threads, &p->where, chunk, p->bytes, encoded, bound, &size, err));
    return sq_parcel_put(p, encoded, size, err);
}

static int put(const struct sq_parcel *p, const uint8_t *chunk, struct squall_error *err)
{
    int status = encode_and_put(p, chunk, err);
    return status ? sq_chunk_failed(p->writing->array, p->item.chunk, status, err) : 0;
}

/* ---- a chunk ---------------------------------------------------------------------------------------------------------------------- */

static int write_whole(const struct sq_parcel *p, struct squall_error *err)
{
    if (lies_ready(p))
        return put(p, p->from, err);
    uint8_t *chunk = sq_worker_chunk(p->worker, p->bytes);
    if (!chunk)
        return sq_error_memory(err, p->bytes);
    if (p->padded)
        fill(p, chunk);
    gather(p, chunk);
    return put(p, chunk, err);
}

/*
 * Elements of variable length that were read are ours until the chunk has been encoded, those of the region stay the caller's. So what is read
 * goes into a box of its own, and the chunk borrows from both.
 */
static int change_variable(const struct sq_parcel *p, uint8_t *chunk, struct squall_error *err)
{
    const struct sq_writing *w = p->writing;
    const size_t width = w->array->info.element_bytes;
    struct sq_parcel inside = *p;
    int64_t stride = (int64_t)width;
    for (unsigned d = w->plan.rank; d-- > 0;) {
        inside.strides[d] = stride;
        stride *= (int64_t)p->inside[d];
    }
    SQ_CLEANUP_FREE uint8_t *owned = sq_alloc_zero((size_t)stride, 1);
    if (!owned)
        return sq_error_memory(err, (size_t)stride);
    SQ_TRY(read_present(&inside, owned, err));
    if (p->padded)
        fill(p, chunk);
    sq_scatter_copy(w->plan.rank, p->inside, width, owned, inside.strides, chunk, p->strides, SQ_SCATTER_INTO_CACHES);
    gather(p, chunk);
    int status = put(p, chunk, err);
    sq_bytes_free((void *)owned, (size_t)stride / width);
    return status;
}

static int change(const struct sq_parcel *p, struct squall_error *err)
{
    uint8_t *chunk = sq_worker_chunk(p->worker, p->bytes);
    if (!chunk)
        return sq_error_memory(err, p->bytes);
    if (sq_type_is_variable(p->writing->array->info.type))
        return change_variable(p, chunk, err);
    if (p->padded)
        fill(p, chunk);
    SQ_TRY(read_present(p, chunk, err));
    gather(p, chunk);
    return put(p, chunk, err);
}

static int write_parcel(const struct sq_parcel *p, struct squall_error *err)
{
    bool done = false;
    int status = p->writing->array->shard ? sq_shard_write(p, &done, err) : 0;
    if (status)
        return sq_chunk_failed(p->writing->array, p->item.chunk, status, err);
    if (done)
        return 0;
    return p->whole ? write_whole(p, err) : change(p, err);
}

static int write_item(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    struct sq_writing *w = user;
    struct squall_array *a = w->array;
    struct sq_parcel p;
    if (sq_cancelled(a->dataset->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "writing array %s was cancelled", a->info.name);
    if (!w->workers[seat] && !(w->workers[seat] = sq_worker_take(a)))
        return sq_error_memory(err, sizeof(struct sq_worker));
    p.worker = w->workers[seat];
    if (!sq_plan_item_at(&w->plan, index, &p.item))
        return 0;
    SQ_TRY(parcel_init(&p, w, err));
    int status = a->ops->locate(a, p.item.chunk, &p.where, err);
    if (status)
        return sq_chunk_failed(a, p.item.chunk, status, err);
    if (!p.whole)
        sq_locks_hold(p.lock);
    status = write_parcel(&p, err);
    if (!p.whole)
        sq_locks_release(p.lock);
    sq_free(p.where.path);
    return status;
}

/* ---- a write ---------------------------------------------------------------------------------------------------------------------- */

static int refuse_unaligned(const struct squall_array *a, const struct squall_selection *s, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text region = SQ_TEXT_INIT;
    const struct squall_selection aligned = squall_selection_aligned(a, s);
    for (unsigned d = 0; d < a->info.rank; d++)
        sq_text_printf(&region, "%s%" PRIu64 ":%" PRIu64, d ? ", " : "", aligned.start[d], aligned.start[d] + aligned.count[d]);
    return sq_error(err, SQUALL_EREFUSED,
                    "array %s: the region cuts %s, which another process may be writing; the nearest region that cuts none is [%s]",
                    a->info.name, a->shard ? "shards" : "chunks", sq_text_string(&region));
}

static int writing_init(struct sq_writing *w, struct squall_array *a, const struct squall_selection *selection, const uint64_t *ends,
                        const void *src, const int64_t *strides, struct squall_error *err)
{
    const struct squall_array_info *info = &a->info;
    const struct sq_zarr_array *description = sq_zarr_array_description(a);
    if (!a->dataset->writable || !description)
        return sq_error(err, SQUALL_EREFUSED, "array %s was not opened for writing", info->name);
    if (info->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s: %s", info->name, info->unsupported);
    *w = (struct sq_writing){.array = a, .folder = description->folder, .ends = ends, .src = src};
    int status = sq_plan_init(info->rank, a->grid, selection, &w->plan, err);
    if (status)
        return sq_error_within(err, status, "array %s", info->name);
    int64_t stride = (int64_t)info->element_bytes;
    for (unsigned d = info->rank; d-- > 0 && w->plan.item_count > 0;) {
        w->strides[d] = strides ? strides[d] : stride;
        if (!sq_mul_i64(stride, (int64_t)selection->count[d], &stride))
            return sq_error(err, SQUALL_EINVAL, "array %s: the selection does not fit into memory", info->name);
    }
    return 0;
}

/* The same array has the same locks, by whatever path and dataset it was opened. */
static int identify(struct sq_writing *w, struct squall_error *err)
{
    enum sq_file_kind kind;
    struct sq_file_identity id = {0};
    SQ_TRY(sq_file_stat(w->folder, &kind, &id, err));
    if (kind != SQ_FILE_FOLDER)
        return sq_error(err, SQUALL_EIO, "%s is gone since the store was opened", w->folder);
    const uint64_t numbers[] = {id.device, id.inode};
    w->identity = sq_hash_bytes(numbers, sizeof numbers);
    return 0;
}

static uint64_t chunk_bytes(const struct squall_array *a)
{
    uint64_t bytes = a->info.element_bytes;
    for (unsigned d = 0; d < a->info.rank; d++)
        if (!sq_mul_u64(bytes, a->grid[d].chunk, &bytes))
            return UINT64_MAX;
    return bytes;
}

/* Who finds no shard that nobody has begun may help with the last ones, where their inner chunks are worth it. */
static bool is_shared_out(const struct squall_array *a, uint64_t shard_bytes)
{
    return a->shard && !a->plain && shard_bytes / a->shard->inner_total >= BYTES_WORTH_A_THREAD;
}

/* As many threads as have something to do and room for their buffers: over chunks, and what is left of them within each. */
static unsigned choose_threads(struct sq_writing *w)
{
    const struct squall_context *ctx = w->array->dataset->ctx;
    const uint64_t items = w->plan.item_count, bytes = chunk_bytes(w->array);
    uint64_t threads = ctx->threads, work;
    if (sq_mul_u64(items, bytes, &work) && threads > work / BYTES_WORTH_A_THREAD + 1)
        threads = work / BYTES_WORTH_A_THREAD + 1;
    uint64_t outer = items < threads ? items : threads;
    if (outer > ctx->memory_bytes / BUFFERS_A_THREAD / bytes)
        outer = ctx->memory_bytes / BUFFERS_A_THREAD / bytes;
    if (outer == 0)
        outer = 1;
    w->inner_threads = (unsigned)(is_shared_out(w->array, bytes) ? threads : threads / outer);
    return (unsigned)outer;
}

int sq_array_write(struct squall_array *a, const struct squall_selection *selection, const uint64_t *ends, const void *src,
                   const int64_t *strides, struct squall_error *err)
{
    struct sq_writing w;
    if (sq_netcdf3_of_array(a))
        return sq_netcdf3_region_write(a, selection, src, strides, err);
    SQ_TRY(writing_init(&w, a, selection, ends, src, strides, err));
    if (w.plan.item_count == 0)
        return 0;
    if (a->dataset->write_options.aligned_only && !squall_selection_is_aligned(a, selection))
        return refuse_unaligned(a, selection, err);
    SQ_TRY(identify(&w, err));
    unsigned threads = choose_threads(&w);
    SQ_CLEANUP_FREE struct sq_worker **workers = sq_alloc_zero(threads, sizeof *workers);
    if (!workers)
        return sq_error_memory(err, threads * sizeof *workers);
    w.workers = workers;
    int status = sq_parallel(threads, w.plan.item_count, write_item, &w, err);
    for (unsigned i = 0; i < threads; i++)
        sq_worker_give_back(a, workers[i]);
    return status;
}

int squall_array_write(squall_array *a, const struct squall_selection *selection, const void *src, const int64_t *strides,
                       struct squall_error *err)
{
    return sq_array_write(a, selection, NULL, src, strides, err);
}

/* ---- alignment -------------------------------------------------------------------------------------------------------------------- */

/* One behind the last selected element. */
static uint64_t selection_end(const struct squall_selection *s, unsigned d)
{
    return s->start[d] + (s->count[d] - 1) * s->step[d] + 1;
}

struct squall_selection squall_selection_aligned(const squall_array *a, const struct squall_selection *s)
{
    struct squall_selection r = *s;
    for (unsigned d = 0; d < a->info.rank; d++) {
        const struct sq_axis *axis = &a->grid[d];
        r.step[d] = 1;
        if (s->count[d] == 0)
            continue;
        uint64_t last = sq_axis_chunk_of(axis, selection_end(s, d) - 1), end = sq_axis_begin(axis, last) + sq_axis_extent(axis, last);
        r.start[d] = sq_axis_begin(axis, sq_axis_chunk_of(axis, s->start[d]));
        r.count[d] = (end < axis->length ? end : axis->length) - r.start[d];
    }
    return r;
}

int squall_selection_is_aligned(const squall_array *a, const struct squall_selection *s)
{
    if (sq_netcdf3_of_array(a)) /* elements are written one by one */
        return 1;
    for (unsigned d = 0; d < a->info.rank; d++)
        if (s->count[d] == 0)
            return 1;
    const struct squall_selection aligned = squall_selection_aligned(a, s);
    for (unsigned d = 0; d < a->info.rank; d++)
        if (aligned.start[d] != s->start[d] || aligned.count[d] != s->count[d])
            return 0;
    return 1;
}
