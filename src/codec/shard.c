/*
 * sharding_indexed: a chunk (the shard) that holds smaller ones, each encoded by a chain of its own, and an index that says where each
 * lies; one that is all fill value is left out. The engine reads inner chunks by themselves (sq_codec_shard_index);
 * here is what makes and checks the index, and what decodes and encodes a shard as a whole, in parallel over its inner chunks.
 */
#include "array/bytes.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include "sys/ordered.h"
#include "sys/pool.h"
#include <stdlib.h>
#include <string.h>

enum { OPTION_LOCATION };
enum { LOCATION_START, LOCATION_END };

static const char *const locations[] = {"start", "end", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_LOCATION] = {"index_location", locations, 0, 0, LOCATION_END, .told = false},
    {0},
};

struct sharding {
    struct sq_codec_shard shard; /* first, so that what the engine holds is this */
    struct sq_codec_chain *inner, *index;
    struct sq_stage_array array; /* the shard's */
    void *fill;                  /* one element; NULL: zero, or empty */
    size_t inner_bytes;          /* an inner chunk in memory */
    /* An inner chunk in the shard is `runs` pieces of run_bytes; dimensions below run_rank lead from one to the next. */
    unsigned run_rank;
    size_t runs, run_bytes;
    size_t stride[SQUALL_RANK_MAX]; /* bytes between neighbours in the shard */
};

static bool is_variable(const struct sharding *s)
{
    return sq_type_is_variable(s->array.dtype.type);
}

/* ---- binding ---------------------------------------------------------------------------------------------------------------------- */

static int read_inner_shape(struct sharding *s, const struct sq_json *list, struct squall_error *err)
{
    struct sq_codec_shard *shard = &s->shard;
    size_t index_elements;
    if (sq_json_type(list) != SQ_JSON_ARRAY || sq_json_count(list) != s->array.rank)
        return sq_error(err, SQUALL_ECORRUPT, "codec sharding_indexed: its chunk shape has not the shard's %u dimensions", s->array.rank);
    shard->rank = s->array.rank;
    shard->inner_total = 1;
    for (unsigned d = 0; d < shard->rank; d++) {
        uint64_t length = 0;
        if (!sq_json_uint(sq_json_at(list, d), &length) || length == 0 || s->array.shape[d] % length != 0)
            return sq_error(err, SQUALL_ECORRUPT, "codec sharding_indexed: a shard of %llu along dimension %u does not divide into %llu",
                            (unsigned long long)s->array.shape[d], d, (unsigned long long)length);
        shard->inner_shape[d] = length;
        shard->inner_count[d] = s->array.shape[d] / length;
        if (!sq_mul_size(shard->inner_total, shard->inner_count[d], &shard->inner_total))
            return sq_error(err, SQUALL_ECORRUPT, "codec sharding_indexed: more inner chunks than can be counted");
    }
    if (!sq_mul_size(shard->inner_total, 2 * sizeof(uint64_t), &index_elements))
        return sq_error(err, SQUALL_ECORRUPT, "codec sharding_indexed: more inner chunks than can be counted");
    return 0;
}

static int bind_index(struct sharding *s, const struct sq_json *codecs, struct squall_error *err)
{
    uint64_t shape[SQUALL_RANK_MAX + 1];
    struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(SQUALL_UINT64), .rank = s->shard.rank + 1, .shape = shape};
    bool fixed;
    memcpy(shape, s->shard.inner_count, sizeof s->shard.inner_count);
    shape[s->shard.rank] = 2;
    if (chunk.rank > SQUALL_RANK_MAX) /* only a transpose would look at it */
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported sharding of %d dimensions", SQUALL_RANK_MAX);
    int status = sq_codec_chain_bind_v3(codecs, &chunk, &s->index, err);
    if (status)
        return sq_error_within(err, status, "sharding_indexed, index");
    s->shard.index_bytes = sq_chain_bound(s->index, s->index->stage_count, s->shard.inner_total * 2 * sizeof(uint64_t), &fixed);
    if (!fixed)
        return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported index codecs %s: their size depends on the data",
                        sq_codec_chain_text(s->index));
    return 0;
}

static int bind_inner(struct sharding *s, const struct sq_json *codecs, struct squall_error *err)
{
    const struct sq_codec_chunk chunk = {.dtype = s->array.dtype, .rank = s->shard.rank, .shape = s->shard.inner_shape, .fill = s->fill};
    int status = sq_codec_chain_bind_v3(codecs, &chunk, &s->inner, err);
    if (status)
        return sq_error_within(err, status, "sharding_indexed");
    s->shard.inner = s->inner;
    s->inner_bytes = s->inner->chunk_bytes;
    return 0;
}

/* How an inner chunk lies in the shard. */
static void lay_out(struct sharding *s)
{
    const struct sq_codec_shard *shard = &s->shard;
    size_t stride = s->array.dtype.element_bytes;
    for (unsigned d = shard->rank; d-- > 0;) {
        s->stride[d] = stride;
        stride *= s->array.shape[d];
    }
    unsigned run = shard->rank; /* the dimension that a run goes along */
    for (s->run_bytes = s->array.dtype.element_bytes; run > 0;) {
        run--;
        s->run_bytes = shard->inner_shape[run] * s->stride[run];
        if (shard->inner_count[run] > 1)
            break;
    }
    s->run_rank = run;
    s->runs = 1;
    for (unsigned d = 0; d < run; d++)
        s->runs *= shard->inner_shape[d];
}

static void done(struct sq_stage *stage)
{
    struct sharding *s = stage->state;
    if (!s)
        return;
    sq_codec_chain_free(s->inner);
    sq_codec_chain_free(s->index);
    sq_free(s->fill);
    sq_free(s);
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    struct sharding *s = sq_alloc_zero(1, sizeof *s);
    if (!s)
        return sq_error_memory(err, sizeof *s);
    stage->state = s;
    s->array = *array;
    s->array.fill = NULL;
    if (array->fill) {
        if (!(s->fill = sq_alloc(1, array->dtype.element_bytes)))
            return sq_error_memory(err, array->dtype.element_bytes);
        memcpy(s->fill, array->fill, array->dtype.element_bytes);
    }
    s->shard.index_at_start = stage->value[OPTION_LOCATION] == LOCATION_START;
    SQ_TRY(read_inner_shape(s, sq_json_get(configuration, "chunk_shape"), err));
    SQ_TRY(bind_index(s, sq_json_get(configuration, "index_codecs"), err));
    SQ_TRY(bind_inner(s, sq_json_get(configuration, "codecs"), err));
    lay_out(s);
    array->dtype = sq_dtype_of(SQUALL_UINT8);
    return 0;
}

/* ---- of a chain that is there --------------------------------------------------------------------------------------------------------- */

struct sq_json *sq_codec_shard_configuration(unsigned rank, const uint64_t *inner_shape, struct sq_json *codecs,
                                             struct sq_json *index_codecs, bool index_at_start)
{
    static const char STANDARD[] = "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}, {\"name\": \"crc32c\"}]";
    struct sq_json *v = sq_json_new_object();
    bool failed = !index_codecs && sq_json_parse(STANDARD, strlen(STANDARD), &index_codecs, NULL);
    /* each is the object's own once handed over, whatever comes of it */
    failed |= sq_json_set(v, "chunk_shape", sq_json_new_uints(inner_shape, rank));
    failed |= sq_json_set(v, "codecs", codecs);
    failed |= sq_json_set(v, "index_codecs", index_codecs);
    failed |= sq_json_set_string(v, "index_location", locations[index_at_start ? LOCATION_START : LOCATION_END]);
    if (!failed)
        return v;
    sq_json_free(v);
    return NULL;
}

/* In place of the one that the metadata make, which does not know how to round, nor our hints. */
static void take_inner(struct sharding *s, struct sq_codec_chain *inner)
{
    inner->chunk_bytes = s->inner->chunk_bytes;
    sq_codec_chain_free(s->inner);
    s->inner = inner;
    s->shard.inner = inner;
}

static int wrap(struct sq_codec_chain **inner, const struct sq_codec_chunk *shard, const uint64_t *inner_shape,
                struct sq_codec_chain *chain, struct squall_error *err)
{
    struct sq_stage_array array = {.dtype = shard->dtype, .rank = shard->rank, .fill = shard->fill};
    struct sq_stage *stage = NULL;
    chain->chunk_bytes = shard->dtype.element_bytes;
    for (unsigned d = 0; d < shard->rank; d++) {
        array.shape[d] = shard->shape[d];
        if (!sq_mul_size(chain->chunk_bytes, shard->shape[d], &chain->chunk_bytes))
            return sq_error(err, SQUALL_EINVAL, "a shard is larger than any memory");
    }
    SQ_TRY(sq_chain_add(chain, &sq_stage_sharding, &stage, err));
    stage->configuration = sq_codec_shard_configuration(shard->rank, inner_shape, sq_codec_chain_json_v3(*inner, true), NULL, false);
    if (!stage->configuration)
        return sq_error_memory(err, sizeof *chain);
    SQ_TRY(sq_chain_bind(chain, stage, stage->configuration, &array, err));
    take_inner(stage->state, *inner);
    *inner = NULL;
    return sq_chain_finish(chain, err);
}

int sq_codec_chain_shards(struct sq_codec_chain *inner, const struct sq_codec_chunk *shard, const uint64_t *inner_shape,
                          struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_codec_chain *chain = sq_chain_new(&shard->dtype, err);
    int status = chain ? wrap(&inner, shard, inner_shape, chain, err) : SQUALL_ENOMEM;
    sq_codec_chain_free(inner);
    if (status) {
        sq_codec_chain_free(chain);
        return status;
    }
    *ret = chain;
    return 0;
}

static void tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct sharding *s = stage->state;
    for (unsigned d = 0; d < s->shard.rank; d++)
        sq_text_printf(out, "%s%llu", d ? " × " : "", (unsigned long long)s->shard.inner_shape[d]);
    sq_text_printf(out, "%s%s", s->shard.rank ? ": " : "", sq_codec_chain_text(s->inner));
}

const struct sq_codec_shard *sq_codec_chain_shard(const struct sq_codec_chain *chain)
{
    if (chain->stage_count != 1 || chain->stages[0].ops != &sq_stage_sharding)
        return NULL;
    return &((const struct sharding *)chain->stages[0].state)->shard;
}

/* ---- the index -------------------------------------------------------------------------------------------------------------------- */

static int check_entry(const struct sq_codec_shard *shard, uint64_t shard_bytes, size_t number, const uint64_t *entry,
                       struct squall_error *err)
{
    uint64_t end, offset = entry[0], size = entry[1];
    uint64_t index_at = shard->index_at_start ? 0 : shard_bytes - shard->index_bytes;
    if (offset == UINT64_MAX && size == UINT64_MAX)
        return 0;
    if (!sq_add_u64(offset, size, &end) || end > shard_bytes)
        return sq_error(
            err, SQUALL_ECORRUPT,
            "shard: the index has inner chunk %zu at byte %llu with %llu bytes, the shard ends at %llu; it is truncated or damaged", number,
            (unsigned long long)offset, (unsigned long long)size, (unsigned long long)shard_bytes);
    if (size > 0 && offset < index_at + shard->index_bytes && end > index_at)
        return sq_error(err, SQUALL_ECORRUPT,
                        "shard: the index has inner chunk %zu at byte %llu, where the index itself lies; it is damaged", number,
                        (unsigned long long)offset);
    return 0;
}

struct placed {
    uint64_t offset, end;
    size_t number;
};

static int by_offset(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Inner chunks that are the same may share their bytes; those that share some are damaged. */
static int refuse_overlap(const struct sq_codec_shard *shard, const uint64_t *entries, struct squall_error *err)
{
    size_t count = 0;
    SQ_CLEANUP_FREE struct placed *sorted = sq_alloc(shard->inner_total, sizeof *sorted);
    if (!sorted)
        return sq_error_memory(err, shard->inner_total * sizeof *sorted);
    for (size_t i = 0; i < shard->inner_total; i++)
        if (entries[2 * i] != UINT64_MAX && entries[2 * i + 1] > 0)
            sorted[count++] = (struct placed){entries[2 * i], entries[2 * i] + entries[2 * i + 1], i};
    qsort(sorted, count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < count; i++)
        if (sorted[i].offset < sorted[i - 1].end && by_offset(&sorted[i - 1], &sorted[i]) != 0)
            return sq_error(err, SQUALL_ECORRUPT,
                            "shard: the index has inner chunk %zu at byte %llu, within inner chunk %zu; it is damaged", sorted[i].number,
                            (unsigned long long)sorted[i].offset, sorted[i - 1].number);
    return 0;
}

int sq_codec_shard_index(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const void *stored, uint64_t shard_bytes,
                         uint64_t *ret, struct squall_error *err)
{
    const struct sharding *s = (const struct sharding *)shard;
    size_t size = shard->inner_total * 2 * sizeof *ret;
    if (shard_bytes < shard->index_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "shard: %llu bytes are less than its index of %zu; it is truncated",
                        (unsigned long long)shard_bytes, shard->index_bytes);
    int status = sq_codec_decode(s->index, scratch, 1, stored, shard->index_bytes, ret, size, err);
    if (status)
        return sq_error_within(err, status, "shard index");
    bool in_order = true; /* as most write them */
    for (size_t i = 0, end = 0; i < shard->inner_total; i++) {
        const uint64_t *entry = ret + 2 * i;
        SQ_TRY(check_entry(shard, shard_bytes, i, entry, err));
        if (entry[0] == UINT64_MAX)
            continue;
        in_order = in_order && entry[0] >= end;
        end = entry[0] + entry[1];
    }
    return in_order ? 0 : refuse_overlap(shard, ret, err);
}

int sq_codec_shard_index_encode(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const uint64_t *entries, void *dst,
                                struct squall_error *err)
{
    const struct sharding *s = (const struct sharding *)shard;
    size_t size;
    return sq_codec_encode(s->index, scratch, 1, entries, shard->inner_total * 2 * sizeof *entries, dst, shard->index_bytes, &size, err);
}

/* ---- inner chunks in the shard ---------------------------------------------------------------------------------------------------- */

/* Call for each run of inner chunk `number`: at shard_at in the shard, at inner_at in the chunk. */
struct runs {
    const struct sharding *s;
    uint64_t index[SQUALL_RANK_MAX];
    size_t shard_at, inner_at;
};

static struct runs runs_of(const struct sharding *s, size_t number)
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
    const struct sharding *s = r->s;
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

static void fill_run(const struct sharding *s, uint8_t *dst, size_t size)
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
static int fill_variable_run(const struct sharding *s, uint8_t *dst, size_t size, struct squall_error *err)
{
    const struct squall_bytes *fill = s->fill;
    struct squall_bytes *elements = (void *)dst;
    for (size_t i = 0; i < size / sizeof *elements; i++)
        SQ_TRY(sq_bytes_copy(fill ? fill->data : NULL, fill ? fill->size_bytes : 0, &elements[i], err));
    return 0;
}

static int fill_inner(const struct sharding *s, size_t number, uint8_t *shard, struct squall_error *err)
{
    struct runs r = runs_of(s, number);
    do {
        if (is_variable(s))
            SQ_TRY(fill_variable_run(s, shard + r.shard_at, s->run_bytes, err));
        else
            fill_run(s, shard + r.shard_at, s->run_bytes);
    } while (next_run(&r));
    return 0;
}

static bool is_fill_element(const struct sharding *s, const uint8_t *element)
{
    size_t width = s->array.dtype.element_bytes;
    if (is_variable(s)) {
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
static bool is_all_fill(const struct sharding *s, const uint8_t *inner)
{
    size_t width = s->array.dtype.element_bytes;
    if (!is_fill_element(s, inner))
        return false;
    if (!is_variable(s))
        return memcmp(inner, inner + width, s->inner_bytes - width) == 0;
    for (size_t at = width; at < s->inner_bytes; at += width)
        if (!is_fill_element(s, inner + at))
            return false;
    return true;
}

/* ---- whole shards ----------------------------------------------------------------------------------------------------------------- */

struct work {
    const struct sharding *s;
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
    const struct sharding *s = w->s;
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
    const struct sharding *s = stage->state;
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
    if (is_variable(s))
        memset(dst, 0, size);
    int status = sq_parallel(threads, s->shard.inner_total, decode_inner, &w, err);
    if (status && is_variable(s))
        sq_bytes_free((void *)dst, size / sizeof(struct squall_bytes));
    *ret_size = size;
    return status;
}

static int encode_inner(void *user, size_t number, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct work *w = user;
    const struct sharding *s = w->s;
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
    if (is_variable(s)) { /* then there is one slot */
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
    const struct sharding *s = stage->state;
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
    const struct sharding *s = stage->state;
    if (!is_variable(s))
        return bound(stage, src_size);
    size_t of_none = sq_codec_encode_bound_of(s->inner, src, 0) + ROUNDING_BYTES;
    return sq_codec_encode_bound_of(s->inner, src, src_size) + of_none * (s->shard.inner_total + 1) + s->shard.index_bytes;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    enum { SLOTS_PER_THREAD = 2 };
    const struct sharding *s = stage->state;
    const struct sq_codec_shard *shard = &s->shard;
    struct work w = {.s = s, .scratch = scratch, .src = src, .dst = dst};
    size_t index_bytes = shard->inner_total * 2 * sizeof(uint64_t), got;
    (void)src_size;
    if (threads > shard->inner_total)
        threads = (unsigned)shard->inner_total;
    if (threads == 0 || is_variable(s))
        threads = 1;
    unsigned slots = threads == 1 ? 1 : threads * SLOTS_PER_THREAD;
    if (slots > SQ_ORDERED_SLOTS_MAX)
        slots = SQ_ORDERED_SLOTS_MAX;
    SQ_TRY(prepare(&w, threads, err));
    w.slot_bytes = is_variable(s) ? 0 : sq_chain_bound(s->inner, s->inner->stage_count, s->inner_bytes, NULL);
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
                                               .options = options,
                                               .bind = bind,
                                               .done = done,
                                               .tell = tell,
                                               .decode = decode,
                                               .bound = bound,
                                               .measure = measure,
                                               .encode = encode};
