/*
 * sharding_indexed: a chunk (the shard) that holds smaller ones, each encoded by a chain of its own, and an index that says where each
 * lies (shard_index.c); one that is all fill value is left out. The engine reads inner chunks by themselves;
 * here is what decodes and encodes a shard as a whole, in parallel over its inner chunks.
 */
#include "array/bytes.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/shard_internal.h"
#include "sys/ordered.h"
#include "sys/pool.h"
#include <string.h>

/* ---- inner chunks in the shard ---------------------------------------------------------------------------------------------------- */

/* Call for each run of inner chunk `number`: at shard_at in the shard, at inner_at in the chunk. */
struct runs {
    const struct sq_sharding *s;
    uint64_t index[SQUALL_RANK_MAX];
    size_t shard_at, inner_at;
};

static struct runs runs_of(const struct sq_sharding *s, size_t number)
{
    struct runs r = {.s = s};
    for (unsigned d = s->shard.rank; d-- > 0;) {
        r.shard_at += number % s->shard.inner_count[d] * s->shard.inner_shape[d] * s->stride[d];
        number /= s->shard.inner_count[d];
    }
    return r;
}

static bool next_run(struct runs *r)
{
    const struct sq_sharding *s = r->s;
    r->inner_at += s->run_bytes;
    for (unsigned d = s->run_rank; d-- > 0;) {
        r->shard_at += s->stride[d];
        if (++r->index[d] < s->shard.inner_shape[d])
            return true;
        r->shard_at -= s->shard.inner_shape[d] * s->stride[d];
        r->index[d] = 0;
    }
    return false;
}

static void fill_run(const struct sq_sharding *s, uint8_t *dst, size_t size)
{
    size_t done_bytes = s->array.dtype.element_bytes;
    if (!s->fill) {
        memset(dst, 0, size);
        return;
    }
    memcpy(dst, s->fill, done_bytes);
    while (done_bytes < size) {
        size_t more = done_bytes < size - done_bytes ? done_bytes : size - done_bytes;
        memcpy(dst + done_bytes, dst, more);
        done_bytes += more;
    }
}

/* Elements with variable length: each a copy of its own. */
static int fill_variable_run(const struct sq_sharding *s, uint8_t *dst, size_t size, struct squall_error *err)
{
    const struct squall_bytes *fill = s->fill;
    struct squall_bytes *elements = (void *)dst;
    for (size_t i = 0; i < size / sizeof *elements; i++)
        SQ_TRY(sq_bytes_copy(fill ? fill->data : NULL, fill ? fill->size_bytes : 0, &elements[i], err));
    return 0;
}

static int fill_inner(const struct sq_sharding *s, size_t number, uint8_t *shard, struct squall_error *err)
{
    struct runs r = runs_of(s, number);
    do {
        if (sq_sharding_is_variable(s))
            SQ_TRY(fill_variable_run(s, shard + r.shard_at, s->run_bytes, err));
        else
            fill_run(s, shard + r.shard_at, s->run_bytes);
    } while (next_run(&r));
    return 0;
}

static bool is_fill_element(const struct sq_sharding *s, const uint8_t *element)
{
    size_t width = s->array.dtype.element_bytes;
    if (sq_sharding_is_variable(s)) {
        static const struct squall_bytes NOTHING;
        return sq_bytes_equal((const void *)element, s->fill ? s->fill : &NOTHING);
    }
    if (s->fill)
        return memcmp(element, s->fill, width) == 0;
    for (size_t i = 0; i < width; i++)
        if (element[i])
            return false;
    return true;
}

/* Bit for bit, so that what is read back is what was written: −0.0 is not 0.0, a NaN is only the fill value's own. */
static bool is_all_fill(const struct sq_sharding *s, const uint8_t *inner)
{
    size_t width = s->array.dtype.element_bytes;
    if (!is_fill_element(s, inner))
        return false;
    if (!sq_sharding_is_variable(s))
        return memcmp(inner, inner + width, s->inner_bytes - width) == 0;
    for (size_t at = width; at < s->inner_bytes; at += width)
        if (!is_fill_element(s, inner + at))
            return false;
    return true;
}

/* ---- whole shards ----------------------------------------------------------------------------------------------------------------- */

struct work {
    const struct sq_sharding *s;
    struct sq_codec_scratch *scratch;
    uint64_t *index;
    const uint8_t *src;
    uint8_t *dst;
    size_t at, end;                    /* encode: where the next inner chunk goes, and may end */
    size_t slot_bytes;                 /* encode */
    size_t used[SQ_ORDERED_SLOTS_MAX]; /* encode: what each slot holds; 0: all fill value */
};

/* Everything that tasks need, so that they allocate nothing but what inner codecs do. */
static int prepare(const struct work *w, unsigned threads, struct squall_error *err)
{
    SQ_TRY(sq_codec_helpers_ready(w->scratch, threads, err));
    for (unsigned i = 0; i < threads; i++) {
        struct sq_codec_scratch *scratch = sq_codec_worker_scratch(w->scratch, i);
        if (!sq_codec_inner_scratch(scratch, err))
            return SQUALL_ENOMEM;
        if (w->s->runs > 1)
            SQ_TRY(sq_codec_reserve(&scratch->block, w->s->inner_bytes, err));
    }
    return 0;
}

static int decode_inner(void *user, size_t number, unsigned worker, struct squall_error *err)
{
    const struct work *w = user;
    const struct sq_sharding *s = w->s;
    const uint64_t *entry = w->index + 2 * number;
    struct sq_codec_scratch *scratch = sq_codec_worker_scratch(w->scratch, worker);
    struct runs r = runs_of(s, number);
    if (entry[0] == UINT64_MAX && entry[1] == UINT64_MAX)
        return fill_inner(s, number, w->dst, err);
    uint8_t *inner = s->runs > 1 ? scratch->block.data : w->dst + r.shard_at;
    int status = sq_codec_decode(s->inner, scratch->inner, 1, w->src + entry[0], entry[1], inner, s->inner_bytes, err);
    if (status)
        return sq_error_within(err, status, "shard, inner chunk %zu", number);
    if (s->runs > 1)
        do
            memcpy(w->dst + r.shard_at, inner + r.inner_at, s->run_bytes);
        while (next_run(&r));
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    const struct sq_sharding *s = stage->state;
    struct work w = {.s = s, .scratch = scratch, .src = src, .dst = dst};
    size_t size = s->inner_bytes * s->shard.inner_total;
    if (size > capacity)
        return SQ_STAGE_NO_ROOM;
    if (src_size < s->shard.index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "shard: %zu bytes are less than its index of %zu; it is truncated", src_size,
                        s->shard.index_bytes);
    if (threads > s->shard.inner_total)
        threads = (unsigned)s->shard.inner_total;
    if (threads == 0)
        threads = 1;
    SQ_TRY(prepare(&w, threads, err));
    SQ_TRY(sq_codec_reserve(&scratch->index, s->shard.inner_total * 2 * sizeof(uint64_t), err));
    w.index = (uint64_t *)(void *)scratch->index.data;
    const uint8_t *stored = s->shard.index_at_start ? src : src + src_size - s->shard.index_bytes;
    SQ_TRY(sq_codec_shard_index(&s->shard, scratch->inner, stored, src_size, w.index, err));
    if (sq_sharding_is_variable(s))
        memset(dst, 0, size);
    int status = sq_parallel(threads, s->shard.inner_total, decode_inner, &w, err);
    if (status && sq_sharding_is_variable(s))
        sq_bytes_free((void *)dst, size / sizeof(struct squall_bytes));
    *ret_size = size;
    return status;
}

static int encode_inner(void *user, size_t number, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct work *w = user;
    const struct sq_sharding *s = w->s;
    struct sq_codec_scratch *scratch = sq_codec_worker_scratch(w->scratch, worker);
    struct runs r = runs_of(s, number);
    const uint8_t *inner = w->src + r.shard_at;
    if (s->runs > 1) {
        inner = scratch->block.data;
        do
            memcpy(scratch->block.data + r.inner_at, w->src + r.shard_at, s->run_bytes);
        while (next_run(&r));
    }
    w->used[slot] = 0;
    if (is_all_fill(s, inner))
        return 0;
    size_t room = w->slot_bytes;
    if (sq_sharding_is_variable(s)) { /* then there is one slot */
        room = sq_codec_encode_bound_of(s->inner, inner, s->inner_bytes);
        SQ_TRY(sq_codec_reserve(&w->scratch->slots, room, err));
    }
    uint8_t *dst = w->scratch->slots.data + slot * w->slot_bytes;
    int status = sq_codec_encode(s->inner, scratch->inner, 1, inner, s->inner_bytes, dst, room, &w->used[slot], err);
    return status ? sq_error_within(err, status, "shard, inner chunk %zu", number) : 0;
}

static int place(void *user, size_t number, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct work *w = user;
    uint64_t *entry = w->index + 2 * number;
    size_t used = w->used[slot];
    (void)worker;
    if (used == 0) {
        entry[0] = entry[1] = UINT64_MAX;
        return 0;
    }
    if (used > w->end - w->at)
        return sq_error(err, SQUALL_EINVAL, "shard: inner chunk %zu does not fit into the room for the shard", number);
    memcpy(w->dst + w->at, w->scratch->slots.data + slot * w->slot_bytes, used);
    entry[0] = w->at;
    entry[1] = used;
    w->at += used;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    const struct sq_sharding *s = stage->state;
    size_t each = sq_chain_bound(s->inner, s->inner->stage_count, s->inner_bytes, NULL), all;
    (void)src_size;
    if (each == SIZE_MAX || !sq_mul_size(each, s->shard.inner_total, &all) || !sq_add_size(all, s->shard.index_bytes, &all))
        return SIZE_MAX;
    return all;
}

/* Elements with variable length. Bounds of parts add up to no more than the whole's and what an empty part takes. */
static size_t measure(const struct sq_stage *stage, const uint8_t *src, size_t src_size)
{
    enum { ROUNDING_BYTES = 16 };
    const struct sq_sharding *s = stage->state;
    if (!sq_sharding_is_variable(s))
        return bound(stage, src_size);
    size_t of_none = sq_codec_encode_bound_of(s->inner, src, 0) + ROUNDING_BYTES;
    return sq_codec_encode_bound_of(s->inner, src, src_size) + of_none * (s->shard.inner_total + 1) + s->shard.index_bytes;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    enum { SLOTS_PER_THREAD = 2 };
    const struct sq_sharding *s = stage->state;
    const struct sq_codec_shard *shard = &s->shard;
    struct work w = {.s = s, .scratch = scratch, .src = src, .dst = dst};
    size_t index_bytes = shard->inner_total * 2 * sizeof(uint64_t), got;
    (void)src_size;
    if (threads > shard->inner_total)
        threads = (unsigned)shard->inner_total;
    if (threads == 0 || sq_sharding_is_variable(s))
        threads = 1;
    unsigned slots = threads == 1 ? 1 : threads * SLOTS_PER_THREAD;
    if (slots > SQ_ORDERED_SLOTS_MAX)
        slots = SQ_ORDERED_SLOTS_MAX;
    SQ_TRY(prepare(&w, threads, err));
    w.slot_bytes = sq_sharding_is_variable(s) ? 0 : sq_chain_bound(s->inner, s->inner->stage_count, s->inner_bytes, NULL);
    SQ_TRY(sq_codec_reserve(&scratch->slots, w.slot_bytes * slots, err));
    SQ_TRY(sq_codec_reserve(&scratch->index, index_bytes, err));
    w.index = (uint64_t *)(void *)scratch->index.data;
    w.at = shard->index_at_start ? shard->index_bytes : 0;
    w.end = shard->index_at_start ? capacity : capacity - shard->index_bytes;
    SQ_TRY(sq_parallel_ordered(threads, shard->inner_total, slots, encode_inner, place, &w, err));
    uint8_t *stored = shard->index_at_start ? dst : dst + w.at;
    SQ_TRY(sq_codec_encode(s->index, scratch->inner, 1, w.index, index_bytes, stored, shard->index_bytes, &got, err));
    *ret_size = shard->index_at_start ? w.at : w.at + shard->index_bytes;
    return 0;
}

const struct sq_stage_ops sq_stage_sharding = {.name = "sharding_indexed",
                                               .name_v3 = "sharding_indexed",
                                               .kind = SQ_STAGE_TO_BYTES,
                                               .only_v3 = true,
                                               .keeps_configuration = true,
                                               .shaped = true,
                                               .options = sq_sharding_options,
                                               .bind = sq_sharding_bind,
                                               .done = sq_sharding_done,
                                               .tell = sq_sharding_tell,
                                               .decode = decode,
                                               .bound = bound,
                                               .measure = measure,
                                               .encode = encode};
