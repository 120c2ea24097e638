/*
 * One chunk into the destination: fetch → decode → scatter. Each byte is touched as rarely as can be: a chunk whose box is a run of
 * bytes in the destination is decoded, or read from the file, straight into it; only otherwise it goes through the worker's buffer.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/swap.h"
#include "engine/chunk_cache.h"
#include "engine/reading.h"
#include "engine/scatter.h"
#include "engine/variable.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Stored bytes are read in pieces that stay in the processor's own cache until they are scattered. */
enum { PIECE_BYTES = 256 << 10 };
/* Stored bytes that nobody wants are read with those around them, as long as they are no more. */
enum { GAP_BYTES = 8 << 10 };
/* What one thread fetches of a large chunk at a time. */
enum { FETCH_BYTES = 512 << 10 };
/* Less is fetched at once, even where a decoder could do with parts. */
enum { PARTS_FROM_BYTES = 256 << 10 };
/* A box that is at most this part of its chunk is likely to have neighbours that are read next. */
enum { SMALL_PART = 4 };
/* In the place of a chunk's decoded_id: the bytes of a member of a zip file, which no codec has worked on. */
enum { INFLATED_ID = 1 };
/* At most this part of a chunk's elements are sooner found one by one than all are unshuffled. */
enum { FEW_PART = 256 };

double sq_reading_clock(const struct sq_reading *r)
{
    return r->timed ? sq_clock_s() : 0;
}

const char *sq_passage_source_name(const struct sq_passage *p)
{
    return p->where.path ? p->where.path : p->where.source ? sq_source_name(p->where.source) : "memory";
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

/* Of rows that do not lie one behind the other: what passage_init found for packed ones. */
static int spread_rows(struct sq_passage *p, struct squall_error *err)
{
    const uint64_t packed = p->chunk_bytes / p->item.extent[0], row = p->reading->array->row_bytes;
    uint64_t before;
    if (!sq_mul_u64(p->item.extent[0], row, &before) || before > INT64_MAX)
        return sq_error(err, SQUALL_ENOMEM, "a chunk does not fit into memory");
    p->offset += p->item.first[0] * (row - packed);
    p->strides[0] = (int64_t)(row * p->reading->plan.selection.step[0]);
    p->chunk_bytes = (size_t)(before - row + packed);
    return 0;
}

int sq_passage_init(struct sq_passage *p, const struct sq_reading *r, uint8_t *to, struct sq_worker *worker, struct squall_error *err)
{
    const unsigned rank = r->plan.rank;
    int64_t stride = (int64_t)r->element_bytes;
    p->reading = r;
    p->worker = worker;
    p->where = (struct sq_location){0};
    p->file = (struct sq_file_identity){0};
    p->has_identity = false;
    p->fd = -1;
    p->stored = NULL;
    p->inflated = NULL;
    p->kept_member = NULL;
    p->keep_member = false;
    p->to = to;
    p->offset = 0;
    p->box_bytes = p->chunk_bytes = r->element_bytes;
    p->whole = true;
    p->threads = 1;
    for (unsigned d = rank; d-- > 0;) {
        p->strides[d] = stride * (int64_t)r->plan.selection.step[d];
        p->offset += p->item.first[d] * (uint64_t)stride;
        p->to += (int64_t)p->item.to[d] * r->strides[d];
        p->box_bytes *= (size_t)p->item.count[d];
        p->whole = p->whole && p->item.count[d] == p->item.extent[d];
        if (!sq_mul_i64(stride, (int64_t)p->item.extent[d], &stride))
            return sq_error(err, SQUALL_ENOMEM, "a chunk does not fit into memory");
        p->chunk_bytes = (size_t)stride;
    }
    if (rank > 0 && r->array->row_bytes)
        SQ_TRY(spread_rows(p, err));
    p->one_run = is_one_run(rank, p->item.count, r->strides, r->element_bytes);
    return 0;
}

/* ---- fetch ------------------------------------------------------------------------------------------------------------------------ */

static int too_large(const struct sq_passage *p, uint64_t size_bytes, struct squall_error *err)
{
    return sq_error(err, SQUALL_ENOMEM, "%s: a chunk needs %" PRIu64 " bytes of memory, more than the %" PRIu64 " that a thread may use",
                    sq_passage_source_name(p), size_bytes, p->reading->memory_bytes);
}

/* A zip file has a checksum of each member, which can be compared where the member is read whole. */
static int check_member(const struct sq_passage *p, const void *bytes, struct squall_error *err)
{
    int status = p->where.packed.size_bytes ? sq_zip_check(&p->where.packed, bytes, err) : 0;
    return status ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : 0;
}

/* Nobody's memory is spent on what cannot be a chunk. */
static int check_stored_size(const struct sq_passage *p, uint64_t size_bytes, struct squall_error *err)
{
    const uint64_t limit = p->reading->array->stored_limit_bytes;
    if (limit == 0 || size_bytes <= limit)
        return 0;
    return sq_error(err, SQUALL_ECORRUPT, "%s: %" PRIu64 " bytes are more than any chunk of %zu is stored in; it is damaged",
                    sq_passage_source_name(p), size_bytes, p->chunk_bytes);
}

/* Into the worker's memory. */
static int inflate_member(struct sq_passage *p, const void **ret, struct squall_error *err)
{
    const struct sq_location *where = &p->where;
    uint64_t buffers;
    SQ_TRY(check_stored_size(p, where->packed.size_bytes, err));
    SQ_TRY(check_stored_size(p, where->size_bytes, err));
    if (!sq_add_u64(where->size_bytes, where->packed.size_bytes, &buffers) || buffers > p->reading->memory_bytes)
        return too_large(p, buffers, err);
    void *deflated = sq_worker_raw(p->worker, (size_t)where->size_bytes);
    void *inflated = sq_worker_member(p->worker, (size_t)where->packed.size_bytes);
    if (!deflated || !inflated)
        return sq_error_memory(err, buffers);
    SQ_TRY(sq_passage_fetch(p, 0, deflated, (size_t)where->size_bytes, err));
    double begin = sq_reading_clock(p->reading);
    int status = sq_zip_inflate(&where->packed, deflated, inflated, err);
    p->worker->speed.decode_seconds += sq_reading_clock(p->reading) - begin;
    *ret = inflated;
    return status ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : 0;
}

/* A deflated member of a zip file: its bytes are in memory from here on, and that is the source. Where little of it is wanted it is kept. */
static int inflate(struct sq_passage *p, struct squall_error *err)
{
    struct sq_location *where = &p->where;
    const void *inflated;
    const bool keep = p->box_bytes <= p->chunk_bytes / SMALL_PART;
    p->member = (struct sq_cache_key){.file = sq_source_identity(where->source), .offset = where->offset, .decoded_id = INFLATED_ID};
    if (keep)
        p->kept_member = sq_chunk_cache_pin(p->reading->array->dataset->ctx->cache, &p->member, (size_t)where->packed.size_bytes);
    inflated = p->kept_member;
    if (!inflated) {
        SQ_TRY(inflate_member(p, &inflated, err));
        p->keep_member = keep;
    }
    SQ_TRY(sq_source_open_memory(inflated, (size_t)where->packed.size_bytes, sq_passage_source_name(p), &p->inflated, err));
    p->stored = inflated;
    where->source = p->inflated;
    where->offset = 0;
    where->size_bytes = where->packed.size_bytes;
    return 0;
}

int sq_passage_open(struct sq_passage *p, struct squall_error *err)
{
    struct sq_location *where = &p->where;
    const struct squall_array *a = p->reading->array;
    struct squall_error reason = SQUALL_ERROR_INIT;
    if (where->state != SQ_CHUNK_PRESENT)
        return 0;
    if (where->source && where->packed.deflated)
        return inflate(p, err);
    if (where->source) {
        p->file = sq_source_identity(where->source);
        p->has_identity = true;
        return check_stored_size(p, where->size_bytes, err);
    }
    int status = sq_file_open(where->path, &p->fd, &p->file, &reason);
    if (reason.os_errno == ENOENT && a->ops->absent) {
        SQ_TRY(a->ops->absent(a, p->item.chunk, where, err));
        where->state = SQ_CHUNK_MISSING;
        return 0;
    }
    if (status && err)
        *err = reason;
    if (status)
        return status;
    if (where->size_bytes == UINT64_MAX)
        where->size_bytes = where->offset <= p->file.size_bytes ? p->file.size_bytes - where->offset : 0;
    p->has_identity = true;
    return check_stored_size(p, where->size_bytes, err);
}

void sq_passage_close(struct sq_passage *p)
{
    sq_file_close(p->fd);
    sq_source_close(p->inflated);
    struct sq_chunk_cache *cache = p->reading->array->dataset->ctx->cache;
    if (p->kept_member)
        sq_chunk_cache_unpin(cache, p->kept_member);
    else if (p->keep_member)
        sq_chunk_cache_give(cache, &p->member, (size_t)p->where.packed.size_bytes, &p->worker->member, &p->worker->member_capacity);
    sq_free(p->where.path);
}

/* size_bytes of what is stored, from its byte `at` on. */
static int read_stored(const struct sq_passage *p, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err)
{
    const struct sq_location *where = &p->where;
    return where->source ? sq_source_read(where->source, where->offset + at, dst, size_bytes, err)
                         : sq_file_read_at(p->fd, where->path, where->offset + at, dst, size_bytes, err);
}

int sq_passage_fetch(const struct sq_passage *p, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err)
{
    double begin = sq_reading_clock(p->reading);
    int status = read_stored(p, at, dst, size_bytes, err);
    p->worker->speed.bytes += size_bytes;
    p->worker->speed.read_seconds += sq_reading_clock(p->reading) - begin;
    return status;
}

/* ---- scatter ---------------------------------------------------------------------------------------------------------------------- */

/* from: the first selected element. */
static void scatter(const struct sq_passage *p, const void *from)
{
    const struct sq_reading *r = p->reading;
    double begin = sq_reading_clock(r);
    sq_scatter_copy(r->plan.rank, p->item.count, r->element_bytes, from, p->strides, p->to, r->strides, r->target);
    p->worker->speed.scatter_seconds += sq_reading_clock(r) - begin;
}

/* What was scattered belongs to the array, not to the reader. */
static int own_elements(const struct sq_passage *p, struct squall_error *err)
{
    const struct sq_reading *r = p->reading;
    return sq_variable_own(r->array->info.type, r->plan.rank, p->item.count, p->to, r->strides, err);
}

static int fill_box(const struct sq_passage *p, struct squall_error *err)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    const struct sq_reading *r = p->reading;
    if (p->one_run)
        sq_scatter_fill(p->to, p->box_bytes / r->element_bytes, r->element_bytes, r->array->fill);
    else
        sq_scatter_copy(r->plan.rank, p->item.count, r->element_bytes, r->array->fill, STAND_STILL, p->to, r->strides, r->target);
    return own_elements(p, err);
}

static int read_inline(const struct sq_passage *p, struct squall_error *err)
{
    scatter(p, (const uint8_t *)p->where.elements + p->offset);
    return own_elements(p, err);
}

/* ---- stored bytes that are the chunk's -------------------------------------------------------------------------------------------- */

/* A part of the box: dimensions from d on, with `count` of dimension d; the first element lies at byte `at` of the chunk. */
struct piece {
    unsigned d;
    uint64_t count;
    uint64_t at;
    uint8_t *to;
};

/* From the first selected element of the piece to the end of the last. */
static uint64_t piece_span(const struct sq_passage *p, const struct piece *piece)
{
    uint64_t span = p->reading->element_bytes;
    for (unsigned d = piece->d; d < p->reading->plan.rank; d++)
        span += ((d == piece->d ? piece->count : p->item.count[d]) - 1) * (uint64_t)p->strides[d];
    return span;
}

/*
 * Is a run sooner read into the buffer and copied, or turned, from there? The system copies at half its speed where the destination lies a few
 * bytes further in its page than the source does in its own; and a third slower where the two lie differently in their blocks of 32 bytes, which
 * costs more than turning the bytes out of the buffer, past the caches, does.
 */
static bool wants_buffer(const struct sq_passage *p, const struct piece *piece)
{
    enum { PAGE_BYTES = 4096, BLOCK_BYTES = 32, NEAR_BYTES = 16 };
    const uint64_t apart = ((uintptr_t)piece->to - (p->where.offset + piece->at)) % PAGE_BYTES;
    if (p->where.packed.size_bytes) /* its checksum is that of the whole */
        return false;
    if (apart > 0 && apart < NEAR_BYTES)
        return true;
    return p->reading->array->swap_bytes && p->reading->target == SQ_SCATTER_BEYOND_CACHES && apart % BLOCK_BYTES != 0;
}

static int read_piece(const struct sq_passage *p, const struct piece *piece, uint64_t span, struct squall_error *err)
{
    const struct sq_reading *r = p->reading;
    const unsigned d = piece->d, rank = r->plan.rank - d;
    uint64_t count[SQUALL_RANK_MAX];
    memcpy(count, p->item.count + d, rank * sizeof *count);
    if (rank > 0)
        count[0] = piece->count;
    uint64_t bytes = r->element_bytes;
    for (unsigned i = 0; i < rank; i++)
        bytes *= count[i];
    if (bytes == span && is_one_run(rank, count, r->strides + d, r->element_bytes) && !wants_buffer(p, piece)) {
        SQ_TRY(sq_passage_fetch(p, piece->at, piece->to, (size_t)span, err));
        if (r->array->swap_bytes)
            sq_swap(piece->to, piece->to, (size_t)span, r->array->swap_bytes);
        return span == p->where.size_bytes ? check_member(p, piece->to, err) : 0;
    }
    if (span > r->memory_bytes)
        return too_large(p, span, err);
    void *raw = sq_worker_raw(p->worker, (size_t)span);
    if (!raw)
        return sq_error_memory(err, span);
    SQ_TRY(sq_passage_fetch(p, piece->at, raw, (size_t)span, err));
    double begin = sq_reading_clock(r);
    if (r->array->swap_bytes)
        sq_scatter_swap(rank, count, r->element_bytes, raw, p->strides + d, piece->to, r->strides + d, r->array->swap_bytes, r->target);
    else
        sq_scatter_copy(rank, count, r->element_bytes, raw, p->strides + d, piece->to, r->strides + d, r->target);
    p->worker->speed.scatter_seconds += sq_reading_clock(r) - begin;
    return 0;
}

/*
 * How many indices of dimension d to read together: as many as a piece holds. 0: not even one, or more lies between what is wanted of
 * them than another call into the system costs.
 */
static uint64_t read_together(const struct sq_passage *p, const struct piece *piece)
{
    const struct piece one = {.d = piece->d, .count = 1};
    const uint64_t stride = (uint64_t)p->strides[piece->d];
    if (stride == 0)
        return piece->count;
    return piece->count > 1 && stride > GAP_BYTES + piece_span(p, &one) ? 0 : PIECE_BYTES / stride;
}

/* Cut the piece along its first dimensions until it is small, or one run at both ends. What lies in the other byte order stays in the caches until it is turned. */
static int read_pieces(const struct sq_passage *p, const struct piece *whole, struct squall_error *err)
{
    const struct sq_reading *r = p->reading;
    const unsigned d = whole->d;
    uint64_t span = piece_span(p, whole);
    bool direct = p->one_run && span == p->box_bytes && d == 0 && !r->array->swap_bytes && !wants_buffer(p, whole);
    if (d >= r->plan.rank || span <= PIECE_BYTES || direct)
        return read_piece(p, whole, span, err);
    const uint64_t stride = (uint64_t)p->strides[d], together = read_together(p, whole);
    for (uint64_t i = 0; i < whole->count;) {
        uint64_t left = whole->count - i;
        struct piece part = {.d = d, .count = together < left ? together : left, .at = whole->at + i * stride, .to = whole->to};
        part.to += (int64_t)i * r->strides[d];
        if (together > 0) {
            SQ_TRY(read_piece(p, &part, piece_span(p, &part), err));
        } else {
            part.d = d + 1;
            part.count = part.d < r->plan.rank ? p->item.count[part.d] : 1;
            SQ_TRY(read_pieces(p, &part, err));
        }
        i += together > 0 ? part.count : 1;
    }
    return 0;
}

static int read_plain(struct sq_passage *p, const void *stored, struct squall_error *err)
{
    if (p->where.size_bytes != p->chunk_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %" PRIu64 " bytes, but a chunk has %zu", sq_passage_source_name(p), p->where.size_bytes,
                        p->chunk_bytes);
    if (stored) {
        scatter(p, (const uint8_t *)stored + p->offset);
        return 0;
    }
    const struct piece whole = {.count = p->reading->plan.rank ? p->item.count[0] : 1, .at = p->offset, .to = p->to};
    return read_pieces(p, &whole, err);
}

/* ---- decode ----------------------------------------------------------------------------------------------------------------------- */

struct fetching {
    const struct sq_passage *passage;
    uint8_t *raw;
};

static int fetch_piece(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    const struct fetching *f = user;
    const size_t at = index * FETCH_BYTES, left = (size_t)f->passage->where.size_bytes - at;
    (void)seat;
    return read_stored(f->passage, at, f->raw + at, left < FETCH_BYTES ? left : FETCH_BYTES, err);
}

/* A large chunk that has threads to itself is fetched by all of them: a copy out of the system's cache takes a good part of decoding it. */
static int fetch_by_threads(const struct sq_passage *p, uint8_t *raw, struct squall_error *err)
{
    struct fetching f = {.passage = p, .raw = raw};
    const size_t pieces = ((size_t)p->where.size_bytes + FETCH_BYTES - 1) / FETCH_BYTES;
    double begin = sq_reading_clock(p->reading);
    int status = sq_parallel(p->threads, pieces, fetch_piece, &f, err);
    p->worker->speed.bytes += p->where.size_bytes;
    p->worker->speed.read_seconds += sq_reading_clock(p->reading) - begin;
    return status;
}

/* All that is stored of the chunk, in the worker's buffer unless it is in memory already. NULL: told in err. */
static const void *fetch_whole(const struct sq_passage *p, const void *stored, int *ret_status, struct squall_error *err)
{
    *ret_status = 0;
    if (stored)
        return stored;
    void *raw = sq_worker_raw(p->worker, (size_t)p->where.size_bytes);
    if (!raw)
        *ret_status = sq_error_memory(err, p->where.size_bytes);
    else if (p->threads > 1 && p->where.size_bytes >= 2 * FETCH_BYTES)
        *ret_status = fetch_by_threads(p, raw, err);
    else
        *ret_status = sq_passage_fetch(p, 0, raw, (size_t)p->where.size_bytes, err);
    if (!*ret_status)
        *ret_status = check_member(p, raw, err);
    return *ret_status ? NULL : raw;
}

/* For a decoder that fetches what it needs, on each of its threads. */
struct parts {
    const struct sq_passage *passage;
    atomic_ullong bytes, fetch_ns;
    atomic_bool failed;
};

static int fetch_part(void *user, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err)
{
    struct parts *parts = user;
    double begin = sq_reading_clock(parts->passage->reading);
    int status = read_stored(parts->passage, at, dst, size_bytes, err);
    parts->bytes += size_bytes;
    if (parts->passage->reading->timed)
        parts->fetch_ns += (unsigned long long)((sq_reading_clock(parts->passage->reading) - begin) * 1e9);
    if (status)
        parts->failed = true;
    return status;
}

/* ret_layout: as sq_codec_decode_range has it. */
static int decode_range(struct sq_passage *p, const void *stored, const struct sq_codec_range *range, void *dst,
                        struct sq_shuffle_layout *ret_layout, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    struct parts parts = {.passage = p};
    struct sq_codec_input input = {.size_bytes = (size_t)p->where.size_bytes};
    int status;
    if (stored || p->where.packed.size_bytes || input.size_bytes < PARTS_FROM_BYTES) {
        input.bytes = fetch_whole(p, stored, &status, err);
        if (!input.bytes)
            return status;
    } else {
        input.fetch = fetch_part;
        input.user = &parts;
    }
    const size_t worth = 1 + range->count_bytes / SQ_BYTES_WORTH_A_THREAD;
    const unsigned threads = p->threads < worth ? p->threads : (unsigned)worth;
    double begin = sq_reading_clock(p->reading);
    status = a->ops->decode_range(a, p->worker->scratch, threads, &input, range, dst, ret_layout, err);
    double fetch_seconds = (double)parts.fetch_ns / 1e9 / threads;
    p->worker->speed.bytes += parts.bytes;
    p->worker->speed.read_seconds += fetch_seconds;
    p->worker->speed.decode_seconds += sq_reading_clock(p->reading) - begin - fetch_seconds;
    return status && !parts.failed ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : status;
}

static int decode(struct sq_passage *p, const void *stored, void *dst, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    const struct sq_codec_range all = {.chunk_bytes = p->chunk_bytes, .count_bytes = p->chunk_bytes};
    int status;
    if (a->has_range)
        return decode_range(p, stored, &all, dst, NULL, err);
    const void *raw = fetch_whole(p, stored, &status, err);
    if (!raw)
        return status;
    double begin = sq_reading_clock(p->reading);
    status = a->ops->decode(a, p->worker->scratch, p->threads, &p->where, raw, (size_t)p->where.size_bytes, dst, p->chunk_bytes, err);
    p->worker->speed.decode_seconds += sq_reading_clock(p->reading) - begin;
    return status ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : 0;
}

/* Is the chunk worth keeping, decoded? Only what has an identity can be found again. */
static bool is_worth_keeping(const struct sq_passage *p)
{
    const struct squall_array *a = p->reading->array;
    return a->decoded_id && p->has_identity && p->box_bytes <= p->chunk_bytes / SMALL_PART;
}

static struct sq_cache_key cache_key(const struct sq_passage *p)
{
    return (struct sq_cache_key){.file = p->file, .offset = p->where.offset, .decoded_id = p->reading->array->decoded_id};
}

static bool read_cached(const struct sq_passage *p)
{
    struct sq_chunk_cache *cache = p->reading->array->dataset->ctx->cache;
    const struct sq_cache_key key = cache_key(p);
    const void *chunk = sq_chunk_cache_pin(cache, &key, p->chunk_bytes);
    if (!chunk)
        return false;
    scatter(p, (const uint8_t *)chunk + p->offset);
    sq_chunk_cache_unpin(cache, chunk);
    return true;
}

/* The box's part of the chunk alone, where the codecs can give it for less than the whole. */
static int read_range(struct sq_passage *p, const void *stored, size_t span, struct squall_error *err)
{
    const struct sq_codec_range range = {.chunk_bytes = p->chunk_bytes, .from_bytes = p->offset, .count_bytes = span};
    const bool direct = p->one_run && span == p->box_bytes;
    void *part = direct ? p->to : sq_worker_chunk(p->worker, span);
    if (!part)
        return sq_error_memory(err, span);
    SQ_TRY(decode_range(p, stored, &range, part, NULL, err));
    if (!direct)
        scatter(p, part);
    return 0;
}

/* A chunk whose elements may still be shuffled, as it is kept for boxes of few elements. */
struct shuffled {
    struct sq_shuffle_layout layout;
    uint8_t bytes[];
};

/* The box's elements along dimensions from d on; the first lies at byte `at` of the chunk. */
static void pick(const struct sq_passage *p, const struct shuffled *chunk, unsigned d, size_t at, uint8_t *to)
{
    const struct sq_reading *r = p->reading;
    const unsigned rank = r->plan.rank;
    const size_t one = r->element_bytes;
    if (d == rank) {
        sq_unshuffle_part(&chunk->layout, p->chunk_bytes, chunk->bytes, at, one, to);
    } else if (d + 1 == rank && p->strides[d] == (int64_t)one && r->strides[d] == (int64_t)one) {
        sq_unshuffle_part(&chunk->layout, p->chunk_bytes, chunk->bytes, at, (size_t)p->item.count[d] * one, to);
    } else {
        for (uint64_t i = 0; i < p->item.count[d]; i++)
            pick(p, chunk, d + 1, at + (size_t)i * (size_t)p->strides[d], to + (int64_t)i * r->strides[d]);
    }
}

/* All of the chunk, as cheaply as can be. */
static int decode_few(struct sq_passage *p, const void *stored, struct shuffled *chunk, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    const struct sq_codec_range all = {.chunk_bytes = p->chunk_bytes, .count_bytes = p->chunk_bytes};
    int status;
    if (a->has_range)
        return decode_range(p, stored, &all, chunk->bytes, &chunk->layout, err);
    const void *raw = fetch_whole(p, stored, &status, err);
    if (!raw)
        return status;
    double begin = sq_reading_clock(p->reading);
    status = a->ops->decode_shuffled(a, p->worker->scratch, p->threads, &p->where, raw, (size_t)p->where.size_bytes, chunk->bytes,
                                     p->chunk_bytes, &chunk->layout, err);
    p->worker->speed.decode_seconds += sq_reading_clock(p->reading) - begin;
    return status ? sq_error_within(err, status, "%s", sq_passage_source_name(p)) : 0;
}

/* Of the other elements of the chunk, which are kept for the next few, no more is done than must be. */
static int read_few(struct sq_passage *p, const void *stored, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    struct sq_chunk_cache *cache = a->dataset->ctx->cache;
    const size_t size_bytes = sizeof(struct shuffled) + p->chunk_bytes;
    const bool keep = is_worth_keeping(p);
    if (keep && read_cached(p))
        return 0;
    struct sq_cache_key key = cache_key(p);
    key.decoded_id = ~key.decoded_id; /* another thing than the chunk with its elements in place */
    const struct shuffled *kept = keep ? sq_chunk_cache_pin(cache, &key, size_bytes) : NULL;
    if (kept) {
        pick(p, kept, 0, p->offset, p->to);
        sq_chunk_cache_unpin(cache, kept);
        return 0;
    }
    struct shuffled *chunk = sq_worker_chunk(p->worker, size_bytes);
    if (!chunk)
        return sq_error_memory(err, size_bytes);
    SQ_TRY(decode_few(p, stored, chunk, err));
    pick(p, chunk, 0, p->offset, p->to);
    if (keep)
        sq_chunk_cache_give(cache, &key, size_bytes, &p->worker->chunk, &p->worker->chunk_capacity);
    return 0;
}

/* From the first selected element of the chunk to the end of the last. */
static size_t box_span(const struct sq_passage *p)
{
    size_t span = p->reading->element_bytes;
    for (unsigned d = 0; d < p->reading->plan.rank; d++)
        span += (size_t)(p->item.count[d] - 1) * (size_t)p->strides[d];
    return span;
}

static int read_through_buffer(struct sq_passage *p, const void *stored, struct squall_error *err)
{
    const struct sq_reading *r = p->reading;
    const enum squall_type type = r->array->info.type;
    const bool keep = is_worth_keeping(p);
    if (keep && read_cached(p))
        return 0;
    uint8_t *chunk = sq_worker_chunk(p->worker, p->chunk_bytes);
    if (!chunk)
        return sq_error_memory(err, p->chunk_bytes);
    SQ_TRY(decode(p, stored, chunk, err));
    scatter(p, chunk + p->offset);
    if (sq_type_is_variable(type)) { /* what was not selected is nobody's */
        sq_variable_clear(type, r->plan.rank, p->item.count, chunk + p->offset, p->strides);
        sq_variable_free_packed(type, p->chunk_bytes / r->element_bytes, chunk);
    } else if (keep) {
        const struct sq_cache_key key = cache_key(p);
        sq_chunk_cache_give(r->array->dataset->ctx->cache, &key, p->chunk_bytes, &p->worker->chunk, &p->worker->chunk_capacity);
    }
    return 0;
}

static int read_encoded(struct sq_passage *p, const void *stored, struct squall_error *err)
{
    const struct squall_array *a = p->reading->array;
    /* a decoder that fails leaves anything where it wrote, and whoever frees elements of variable length must not meet that */
    const bool direct = p->whole && p->one_run && !sq_type_is_variable(a->info.type);
    const size_t span = box_span(p);
    uint64_t buffers;
    if (!sq_add_u64(p->where.size_bytes, direct ? 0 : p->chunk_bytes, &buffers) || buffers > p->reading->memory_bytes)
        return too_large(p, buffers, err);
    if (direct)
        return decode(p, stored, p->to, err);
    if (a->has_range && span <= p->chunk_bytes / SMALL_PART)
        return read_range(p, stored, span, err);
    if ((a->has_range || a->keeps_shuffled) && p->box_bytes <= p->chunk_bytes / FEW_PART)
        return read_few(p, stored, err);
    return read_through_buffer(p, stored, err);
}

int sq_passage_read(struct sq_passage *p, const void *stored, struct squall_error *err)
{
    if (p->where.state == SQ_CHUNK_INLINE)
        return read_inline(p, err);
    if (p->where.state == SQ_CHUNK_MISSING)
        return fill_box(p, err);
    return p->reading->array->plain ? read_plain(p, stored, err) : read_encoded(p, stored, err);
}
