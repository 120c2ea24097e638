/*
 * A chain at work: through its stages in order to encode, backwards to decode. The last stage to decode writes straight into
 * the destination; only chains of several compressors need a buffer between.
 */
#include "codec/chain.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <string.h>

/* What a chunk of strings may decode to: more is no chunk that anyone wrote on purpose. */
static const size_t strings_limit_bytes = (size_t)1 << 30;

size_t sq_codec_chain_limit_bytes(const struct sq_codec_chain *chain)
{
    size_t limit = SIZE_MAX;
    size_t grown = 0; /* what earlier stages may have added */
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->ops->limit_bytes && stage->ops->limit_bytes - grown < limit)
            limit = stage->ops->limit_bytes - grown;
        grown += stage->ops->bound(stage, 0);
    }
    return limit;
}

int sq_codec_chain_is_plain(const struct sq_codec_chain *chain)
{
    return chain->stage_count == 0 && chain->swap_width == 0 && !chain->strings;
}

/* ---- decode ----------------------------------------------------------------------------------------------------------------------- */

/* What the first `count` stages can make of size bytes. */
static size_t bound_after(const struct sq_codec_chain *chain, unsigned count, size_t size)
{
    for (unsigned i = 0; i < count; i++)
        size = chain->stages[i].ops->bound(&chain->stages[i], size);
    return size;
}

/* Decode what has no known size: more room each time that it does not do, up to limit. */
static int decode_growing(const struct sq_stage *stage, struct sq_codec_scratch *scratch, const uint8_t *src, size_t src_size,
                          struct sq_codec_buffer *buffer, size_t guess, size_t limit, size_t *ret_size, struct squall_error *err)
{
    size_t told = stage->ops->decoded_size ? stage->ops->decoded_size(src, src_size) : 0;
    size_t room = told > guess ? told : guess;
    for (;;) {
        if (room > limit)
            room = limit;
        SQ_TRY(sq_codec_reserve(buffer, room, err));
        int status = stage->ops->decode(stage, scratch, src, src_size, buffer->data, buffer->capacity, ret_size, err);
        if (status != SQ_STAGE_NO_ROOM)
            return status;
        if (room == limit)
            return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes decode to more than %zu; the chunk is damaged", stage->ops->name, src_size,
                            limit);
        room *= 2;
    }
}

/*
 * Undo the stages from the last down to, not including, `first`. *ret lies in src or in the scratch. final_size: what
 * comes out of all stages, 0 where that is not known.
 */
static int undo(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned first, size_t final_size,
                const uint8_t **ret, size_t *ret_size, struct squall_error *err)
{
    unsigned free_buffer = 0;
    for (unsigned i = chain->stage_count; i-- > first;) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->ops->decode_view) {
            SQ_TRY(stage->ops->decode_view(stage, *ret, *ret_size, ret, ret_size, err));
            continue;
        }
        struct sq_codec_buffer *buffer = &scratch->between[free_buffer];
        size_t guess = final_size ? bound_after(chain, i, final_size) : *ret_size * 4 + 256;
        size_t limit = final_size ? 2 * guess + 65536 : strings_limit_bytes;
        size_t size = 0;
        SQ_TRY(decode_growing(stage, scratch, *ret, *ret_size, buffer, guess, limit, &size, err));
        *ret = buffer->data;
        *ret_size = size;
        free_buffer = 1 - free_buffer;
    }
    return 0;
}

static int wrong_size(const char *codec, size_t size, size_t expected, struct squall_error *err)
{
    const char *advice = "the file is damaged or from another array";
    if (size == 0)
        return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk decodes to more than its %zu bytes; %s", codec, expected, advice);
    return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk decodes to %zu bytes, the array's have %zu; %s", codec, size, expected, advice);
}

int sq_codec_decode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_size, struct squall_error *err)
{
    (void)threads;
    const uint8_t *bytes = src;
    size_t size = src_size;
    if (chain->strings)
        return sq_error(err, SQUALL_EINVAL, "a chunk of strings cannot be decoded as numbers");
    unsigned direct = chain->stage_count && chain->stages[0].ops->decode ? 1 : 0; /* this stage decodes into dst */
    SQ_TRY(undo(chain, scratch, direct, dst_size, &bytes, &size, err));
    if (direct) {
        const struct sq_stage *stage = &chain->stages[0];
        size_t got = 0;
        int status = stage->ops->decode(stage, scratch, bytes, size, dst, dst_size, &got, err);
        if (status == SQ_STAGE_NO_ROOM)
            return wrong_size(stage->ops->name, stage->ops->decoded_size ? stage->ops->decoded_size(bytes, size) : 0, dst_size, err);
        SQ_TRY(status);
        if (got != dst_size)
            return wrong_size(stage->ops->name, got, dst_size, err);
    } else {
        if (size != dst_size)
            return sq_error(err, SQUALL_ECORRUPT, "bytes: the chunk has %zu bytes, the array's have %zu; %s", size, dst_size,
                            "the file is truncated or from another array");
        memcpy(dst, bytes, dst_size);
    }
    if (chain->swap_width)
        sq_bytes_swap(dst, dst, dst_size, chain->swap_width);
    return 0;
}

bool sq_codec_chain_has_range(const struct sq_codec_chain *chain)
{
    return sq_codec_chain_is_plain(chain);
}

int sq_codec_decode_range(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const void *src, size_t src_size,
                          size_t chunk_bytes, size_t from_bytes, size_t count_bytes, void *dst, struct squall_error *err)
{
    size_t end;
    if (!sq_add_size(from_bytes, count_bytes, &end) || end > chunk_bytes)
        return sq_error(err, SQUALL_EINVAL, "bytes %zu to %zu of a chunk of %zu", from_bytes, from_bytes + count_bytes, chunk_bytes);
    SQ_TRY(sq_codec_reserve(&scratch->whole, chunk_bytes, err));
    SQ_TRY(sq_codec_decode(chain, scratch, 1, src, src_size, scratch->whole.data, chunk_bytes, err));
    memcpy(dst, scratch->whole.data + from_bytes, count_bytes);
    return 0;
}

const struct sq_codec_shard *sq_codec_chain_shard(const struct sq_codec_chain *chain)
{
    (void)chain;
    return NULL;
}

int sq_codec_decode_strings(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const void *src, size_t src_size,
                            char **dst, size_t count, struct squall_error *err)
{
    const uint8_t *bytes = src;
    size_t size = src_size;
    if (!chain->strings)
        return sq_error(err, SQUALL_EINVAL, "a chunk of %s cannot be decoded as strings", chain->text);
    SQ_TRY(undo(chain, scratch, 0, 0, &bytes, &size, err));
    return sq_vlen_utf8_decode(bytes, size, dst, count, err);
}

/* ---- encode ----------------------------------------------------------------------------------------------------------------------- */

size_t sq_codec_encode_bound(const struct sq_codec_chain *chain, size_t src_size)
{
    return bound_after(chain, chain->stage_count, src_size);
}

/* All stages over bytes that are in the chunk's order. src may lie in scratch->strings or, at first, in between[0]. */
static int encode_stages(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                         size_t src_size, uint8_t *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err)
{
    if (dst_capacity < sq_codec_encode_bound(chain, src_size))
        return sq_error(err, SQUALL_EINVAL, "%zu bytes of room for a chunk that may take %zu", dst_capacity,
                        sq_codec_encode_bound(chain, src_size));
    size_t size = src_size;
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        bool last = i + 1 == chain->stage_count;
        struct sq_codec_buffer *buffer = &scratch->between[(i + 1) % 2];
        size_t room = last ? dst_capacity : stage->ops->bound(stage, size);
        if (stage->ops->limit_bytes && size > stage->ops->limit_bytes)
            return sq_error(err, SQUALL_EINVAL, "%s: a chunk of %zu bytes; the codec takes at most %zu, make the chunks smaller",
                            stage->ops->name, size, stage->ops->limit_bytes);
        if (!last)
            SQ_TRY(sq_codec_reserve(buffer, room, err));
        SQ_TRY(stage->ops->encode(stage, scratch, threads, src, size, last ? dst : buffer->data, room, &size, err));
        src = buffer->data;
    }
    if (chain->stage_count == 0)
        memcpy(dst, src, size);
    *ret_size = size;
    return 0;
}

int sq_codec_encode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err)
{
    const uint8_t *bytes = src;
    if (chain->strings)
        return sq_error(err, SQUALL_EINVAL, "a chunk of strings cannot be encoded as numbers");
    if (chain->swap_width) {
        SQ_TRY(sq_codec_reserve(&scratch->between[0], src_size, err));
        sq_bytes_swap(bytes, scratch->between[0].data, src_size, chain->swap_width);
        bytes = scratch->between[0].data;
    }
    return encode_stages(chain, scratch, threads, bytes, src_size, dst, dst_capacity, ret_size, err);
}

int sq_codec_encode_strings(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const char *const *src, size_t count,
                            void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err)
{
    if (!chain->strings)
        return sq_error(err, SQUALL_EINVAL, "strings cannot be encoded as %s", chain->text);
    size_t size = sq_vlen_utf8_encoded_size(src, count);
    if (size == SIZE_MAX)
        return sq_error(err, SQUALL_EINVAL, "vlen-utf8: more than 2^32 - 1 strings, or a longer one");
    SQ_TRY(sq_codec_reserve(&scratch->strings, size, err));
    sq_vlen_utf8_encode(src, count, scratch->strings.data);
    return encode_stages(chain, scratch, 1, scratch->strings.data, size, dst, dst_capacity, ret_size, err);
}
