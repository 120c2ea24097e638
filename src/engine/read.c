/*
 * Reading a box: plan → for each chunk fetch → decode → scatter, chunks in parallel. Each byte is touched as rarely as can be: a chunk
 * whose box is a run of bytes in the destination is decoded, or read from the file, straight into it; only otherwise it goes through
 * the worker's buffer.
 */
#include "engine/read.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/array.h"
#include "engine/plan.h"
#include "engine/scatter.h"
#include "engine/strings.h"
#include "engine/worker.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* Decoding less than this is sooner done than another thread is awake. */
enum { BYTES_WORTH_A_THREAD = 256 << 10 };

struct reading {
    struct squall_array *array;
    struct sq_plan plan;
    uint8_t *dst;
    int64_t strides[SQUALL_RANK_MAX]; /* of dst */
    size_t element_bytes;             /* in memory; of strings: a pointer */
    uint64_t chunk_elements;
    uint64_t memory_bytes; /* that one worker's buffers may take */
    struct sq_worker **workers;
    bool timed;
};

/* One chunk on its way: where its bytes come from, which box of it is wanted and where that goes. */
struct passage {
    const struct reading *reading;
    struct sq_worker *worker;
    struct sq_plan_item item;
    struct sq_location where;
    int fd;                           /* of where.path, while it is open */
    int64_t strides[SQUALL_RANK_MAX]; /* bytes between selected elements of the chunk */
    size_t offset;                    /* of the first selected element in the chunk, bytes */
    uint8_t *to;                      /* where that goes */
    bool whole;                       /* the box is the chunk */
    bool one_run;                     /* the box is one run of bytes in the destination */
};

static double seconds_now(bool timed)
{
    struct timespec t = {0};
    if (timed)
        clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *source_name(const struct passage *p)
{
    return p->where.source ? sq_source_name(p->where.source) : p->where.path ? p->where.path : "memory";
}

/* Is a box with these counts and strides one run of packed elements, in C order? */
static bool is_one_run(unsigned rank, const uint64_t *count, const int64_t *strides, size_t element_bytes)
{
    int64_t packed = (int64_t)element_bytes;
    for (unsigned d = rank; d-- > 0;) {
        if (count[d] > 1 && strides[d] != packed)
            return false;
        packed *= (int64_t)count[d];
    }
    return true;
}

static void passage_init(struct passage *p, const struct reading *r, size_t index, struct sq_worker *worker)
{
    const unsigned rank = r->plan.rank;
    *p = (struct passage){.reading = r, .worker = worker, .fd = -1, .to = r->dst, .whole = true};
    sq_plan_item_at(&r->plan, index, &p->item);
    int64_t stride = (int64_t)r->element_bytes;
    for (unsigned d = rank; d-- > 0;) {
        p->strides[d] = stride * (int64_t)r->plan.selection.step[d];
        p->offset += p->item.first[d] * (uint64_t)stride;
        p->to += (int64_t)p->item.to[d] * r->strides[d];
        p->whole = p->whole && p->item.count[d] == r->plan.chunks[d];
        stride *= (int64_t)r->plan.chunks[d];
    }
    p->one_run = is_one_run(rank, p->item.count, r->strides, r->element_bytes);
}

static size_t passage_elements(const struct passage *p)
{
    size_t elements = 1;
    for (unsigned d = 0; d < p->reading->plan.rank; d++)
        elements *= p->item.count[d];
    return elements;
}

/* ---- fetch ------------------------------------------------------------------------------------------------------------------------ */

/* Open the chunk's own file, where it has one, and find its size. Or that it is a missing one. */
static int open_location(struct passage *p, struct squall_error *err)
{
    struct sq_location *where = &p->where;
    const struct squall_array *a = p->reading->array;
    struct sq_file_identity id = {0};
    struct squall_error reason = SQUALL_ERROR_INIT;
    if (where->source)
        return 0;
    int status = sq_file_open(where->path, &p->fd, &id, &reason);
    if (reason.os_errno == ENOENT && a->ops->absent) {
        SQ_TRY(a->ops->absent(a, where, err));
        where->state = SQ_CHUNK_MISSING;
        return 0;
    }
    if (status && err)
        *err = reason;
    if (status)
        return status;
    if (where->identity && !sq_file_identity_same(&id, where->identity))
        return sq_error(err, SQUALL_EIO, "%s changed since it was opened; open it again", where->path);
    if (where->size_bytes == UINT64_MAX)
        where->size_bytes = where->offset <= id.size_bytes ? id.size_bytes - where->offset : 0;
    return 0;
}

/* size_bytes of the stored chunk, from its byte `at` on. */
static int fetch(const struct passage *p, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err)
{
    const struct sq_location *where = &p->where;
    double begin = seconds_now(p->reading->timed);
    int status = where->source ? sq_source_read(where->source, where->offset + at, dst, size_bytes, err)
                               : sq_file_read_at(p->fd, where->path, where->offset + at, dst, size_bytes, err);
    p->worker->speed.bytes += size_bytes;
    p->worker->speed.read_seconds += seconds_now(p->reading->timed) - begin;
    return status;
}

static int too_large(const struct passage *p, uint64_t size_bytes, struct squall_error *err)
{
    return sq_error(err, SQUALL_ENOMEM, "%s: a chunk needs %" PRIu64 " bytes of memory, more than the %" PRIu64 " that a thread may use",
                    source_name(p), size_bytes, p->reading->memory_bytes);
}

/* ---- scatter ---------------------------------------------------------------------------------------------------------------------- */

/* from: the first selected element. */
static void scatter(const struct passage *p, const void *from)
{
    const struct reading *r = p->reading;
    double begin = seconds_now(r->timed);
    sq_scatter_copy(r->plan.rank, p->item.count, r->element_bytes, from, p->strides, p->to, r->strides);
    p->worker->speed.scatter_seconds += seconds_now(r->timed) - begin;
}

/* The texts that were scattered belong to the array, not to the reader. */
static int own_strings(const struct passage *p, struct squall_error *err)
{
    const struct reading *r = p->reading;
    return r->array->info.type == SQUALL_STRING ? sq_strings_own(r->plan.rank, p->item.count, p->to, r->strides, err) : 0;
}

static int fill_box(const struct passage *p, struct squall_error *err)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    const struct reading *r = p->reading;
    if (p->one_run)
        sq_scatter_fill(p->to, passage_elements(p), r->element_bytes, r->array->fill);
    else
        sq_scatter_copy(r->plan.rank, p->item.count, r->element_bytes, r->array->fill, STAND_STILL, p->to, r->strides);
    return own_strings(p, err);
}

static int read_inline(const struct passage *p, struct squall_error *err)
{
    scatter(p, (const uint8_t *)p->where.elements + p->offset);
    return own_strings(p, err);
}

/* ---- decode ----------------------------------------------------------------------------------------------------------------------- */

/* The stored bytes are the chunk's: read what the box needs of them, and where it can be straight to its place. */
static int read_plain(struct passage *p, struct squall_error *err)
{
    const struct reading *r = p->reading;
    uint64_t chunk_bytes = r->chunk_elements * r->element_bytes;
    size_t span = r->element_bytes; /* from the first selected element to the end of the last */
    if (p->where.size_bytes != chunk_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %" PRIu64 " bytes, but a chunk has %" PRIu64, source_name(p), p->where.size_bytes,
                        chunk_bytes);
    for (unsigned d = 0; d < r->plan.rank; d++)
        span += (size_t)(p->item.count[d] - 1) * (size_t)p->strides[d];
    if (p->one_run && span == passage_elements(p) * r->element_bytes)
        return fetch(p, p->offset, p->to, span, err);
    if (span > r->memory_bytes)
        return too_large(p, span, err);
    void *raw = sq_worker_raw(p->worker, span);
    if (!raw)
        return sq_error_memory(err, span);
    SQ_TRY(fetch(p, p->offset, raw, span, err));
    scatter(p, raw);
    return 0;
}

static int decode(struct passage *p, const void *raw, void *dst, size_t dst_bytes, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    double begin = seconds_now(p->reading->timed);
    int status = a->ops->decode(a, p->worker->scratch, &p->where, raw, (size_t)p->where.size_bytes, dst, dst_bytes, err);
    p->worker->speed.decode_seconds += seconds_now(p->reading->timed) - begin;
    return status ? sq_error_within(err, status, "%s", source_name(p)) : 0;
}

static int read_encoded(struct passage *p, struct squall_error *err)
{
    const struct reading *r = p->reading;
    size_t chunk_bytes = (size_t)(r->chunk_elements * r->element_bytes);
    /* a decoder that fails leaves anything where it wrote, and whoever frees strings must not meet that */
    bool direct = p->whole && p->one_run && r->array->info.type != SQUALL_STRING;
    uint64_t buffers;
    if (!sq_add_u64(p->where.size_bytes, direct ? 0 : chunk_bytes, &buffers) || buffers > r->memory_bytes)
        return too_large(p, buffers, err);
    void *raw = sq_worker_raw(p->worker, (size_t)p->where.size_bytes);
    if (!raw)
        return sq_error_memory(err, p->where.size_bytes);
    SQ_TRY(fetch(p, 0, raw, (size_t)p->where.size_bytes, err));
    if (direct)
        return decode(p, raw, p->to, chunk_bytes, err);
    void *chunk = sq_worker_chunk(p->worker, chunk_bytes);
    if (!chunk)
        return sq_error_memory(err, chunk_bytes);
    SQ_TRY(decode(p, raw, chunk, chunk_bytes, err));
    scatter(p, (uint8_t *)chunk + p->offset);
    if (r->array->info.type == SQUALL_STRING) {
        sq_strings_clear(r->plan.rank, p->item.count, (uint8_t *)chunk + p->offset, p->strides);
        sq_strings_free(1, &r->chunk_elements, chunk, &(int64_t){sizeof(char *)});
    }
    return 0;
}

static int read_passage(struct passage *p, struct squall_error *err)
{
    if (p->where.state == SQ_CHUNK_INLINE)
        return read_inline(p, err);
    int status = p->where.state == SQ_CHUNK_PRESENT ? open_location(p, err) : 0;
    if (!status && p->where.state == SQ_CHUNK_MISSING)
        status = fill_box(p, err);
    else if (!status)
        status = p->reading->array->plain ? read_plain(p, err) : read_encoded(p, err);
    sq_file_close(p->fd);
    return status;
}

/* "array t2m, chunk 3/0/1" before the message. */
static int failed_at(const struct passage *p, int status, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text chunk = SQ_TEXT_INIT;
    for (unsigned d = 0; d < p->reading->plan.rank; d++)
        sq_text_printf(&chunk, "%s%" PRIu64, d ? "/" : "", p->item.chunk[d]);
    return sq_error_within(err, status, "array %s, chunk %s", p->reading->array->info.name, sq_text_string(&chunk));
}

static int read_item(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct reading *r = user;
    struct passage p;
    if (sq_cancelled(r->array->dataset->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "reading array %s was cancelled", r->array->info.name);
    if (!r->workers[worker] && !(r->workers[worker] = sq_worker_take(r->array)))
        return sq_error_memory(err, sizeof(struct sq_worker));
    passage_init(&p, r, index, r->workers[worker]);
    int status = r->array->ops->locate(r->array, p.item.chunk, &p.where, err);
    if (!status)
        status = read_passage(&p, err);
    sq_free(p.where.path);
    return status ? failed_at(&p, status, err) : 0;
}

/* ---- a read ----------------------------------------------------------------------------------------------------------------------- */

static int reading_init(struct reading *r, struct squall_array *a, const struct squall_selection *selection, void *dst,
                        const int64_t *strides, struct squall_error *err)
{
    const struct squall_array_info *info = &a->info;
    if (info->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s: %s", info->name, info->unsupported);
    *r = (struct reading){.array = a, .dst = dst, .element_bytes = squall_type_size(info->type), .chunk_elements = 1};
    int status = sq_plan_init(info->rank, info->shape, info->chunks, selection, &r->plan, err);
    if (status)
        return sq_error_within(err, status, "array %s", info->name);
    uint64_t chunk_bytes;
    bool fits = true;
    for (unsigned d = 0; d < info->rank; d++)
        fits = fits && sq_mul_u64(r->chunk_elements, info->chunks[d], &r->chunk_elements);
    if (!fits || !sq_mul_u64(r->chunk_elements, r->element_bytes, &chunk_bytes) || chunk_bytes > INT64_MAX)
        return sq_error(err, SQUALL_ENOMEM, "array %s: its chunks do not fit into memory", info->name);
    int64_t stride = (int64_t)r->element_bytes;
    for (unsigned d = info->rank; d-- > 0 && r->plan.item_count > 0;) {
        r->strides[d] = strides ? strides[d] : stride;
        if (!sq_mul_i64(stride, (int64_t)selection->count[d], &stride))
            return sq_error(err, SQUALL_EINVAL, "array %s: the selection does not fit into memory", info->name);
    }
    return 0;
}

/* As many as may be, have chunks to read and room for their buffers, and are worth being woken. */
static unsigned threads_for(const struct reading *r, unsigned threads)
{
    uint64_t chunk_bytes = r->chunk_elements * r->element_bytes;
    uint64_t most = r->plan.item_count, budget = r->array->dataset->ctx->memory_bytes;
    uint64_t worth = chunk_bytes < BYTES_WORTH_A_THREAD ? 1 + most / (BYTES_WORTH_A_THREAD / (chunk_bytes + 1) + 1) : most;
    if (worth < most)
        most = worth;
    if (chunk_bytes && most > budget / 2 / chunk_bytes)
        most = budget / 2 / chunk_bytes;
    if (most > threads)
        most = threads;
    return most > 0 ? (unsigned)most : 1;
}

static int run(struct reading *r, unsigned threads, struct squall_speed *speed, struct squall_error *err)
{
    threads = threads_for(r, threads);
    r->memory_bytes = r->array->dataset->ctx->memory_bytes / threads;
    r->workers = sq_alloc_zero(threads, sizeof *r->workers);
    if (!r->workers)
        return sq_error_memory(err, threads * sizeof *r->workers);
    int status = sq_parallel(threads, r->plan.item_count, read_item, r, err);
    for (unsigned i = 0; i < threads; i++) {
        struct sq_worker *w = r->workers[i];
        if (w && speed) {
            speed->bytes += w->speed.bytes;
            speed->read_seconds += w->speed.read_seconds;
            speed->decode_seconds += w->speed.decode_seconds;
            speed->scatter_seconds += w->speed.scatter_seconds;
        }
        if (w)
            w->speed = (struct squall_speed){0};
        sq_worker_give_back(r->array, w);
    }
    sq_free(r->workers);
    return status;
}

int sq_array_read(struct squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides, unsigned threads,
                  struct squall_speed *speed, struct squall_error *err)
{
    struct reading r;
    SQ_TRY(reading_init(&r, a, selection, dst, strides, err));
    if (r.plan.item_count == 0)
        return 0;
    r.timed = speed != NULL;
    if (a->info.type == SQUALL_STRING)
        sq_strings_clear(a->info.rank, selection->count, dst, r.strides);
    int status = run(&r, threads, speed, err);
    if (status && a->info.type == SQUALL_STRING)
        sq_strings_free(a->info.rank, selection->count, dst, r.strides);
    return status;
}

int squall_array_read(squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides,
                      struct squall_error *err)
{
    return sq_array_read(a, selection, dst, strides, a->dataset->ctx->threads, NULL, err);
}
