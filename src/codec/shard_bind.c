/* sharding_indexed as metadata have it, or as a chain is made of it: how inner chunks and the index are encoded, and how they lie in the shard. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/shard_internal.h"
#include <string.h>

enum { OPTION_LOCATION };
enum { LOCATION_START, LOCATION_END };

static const char *const locations[] = {"start", "end", NULL};

const struct sq_stage_option sq_sharding_options[] = {
    [OPTION_LOCATION] = {"index_location", locations, 0, 0, LOCATION_END, .told = false},
    {0},
};

/* ---- binding ---------------------------------------------------------------------------------------------------------------------- */

static int read_inner_shape(struct sq_sharding *s, const struct sq_json *list, struct squall_error *err)
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

static int bind_index(struct sq_sharding *s, const struct sq_json *codecs, struct squall_error *err)
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

static int bind_inner(struct sq_sharding *s, const struct sq_json *codecs, struct squall_error *err)
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
static void lay_out(struct sq_sharding *s)
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

void sq_sharding_done(struct sq_stage *stage)
{
    struct sq_sharding *s = stage->state;
    if (!s)
        return;
    sq_codec_chain_free(s->inner);
    sq_codec_chain_free(s->index);
    sq_free(s->fill);
    sq_free(s);
}

int sq_sharding_bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    struct sq_sharding *s = sq_alloc_zero(1, sizeof *s);
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
static void take_inner(struct sq_sharding *s, struct sq_codec_chain *inner)
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

void sq_sharding_tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct sq_sharding *s = stage->state;
    for (unsigned d = 0; d < s->shard.rank; d++)
        sq_text_printf(out, "%s%llu", d ? " × " : "", (unsigned long long)s->shard.inner_shape[d]);
    sq_text_printf(out, "%s%s", s->shard.rank ? ": " : "", sq_codec_chain_text(s->inner));
}

const struct sq_codec_shard *sq_codec_chain_shard(const struct sq_codec_chain *chain)
{
    if (chain->stage_count != 1 || chain->stages[0].ops != &sq_stage_sharding)
        return NULL;
    return &((const struct sq_sharding *)chain->stages[0].state)->shard;
}
