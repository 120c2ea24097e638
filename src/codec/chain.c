/*
 * A chain at work: through its stages in order to encode, backwards to decode. The last stage that has something to do writes straight
 * into the destination; what only turns bytes or values in their places is done there, and only chains of several
 * compressors need a buffer between.
 */
#include "codec/chain.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>

/* What a chunk of unknown size may decode to: more is no chunk that anyone wrote on purpose. */
static const size_t unknown_limit_bytes = (size_t)1 << 30;
enum { SLACK_BYTES = 65536 }; /* other encoders may write more than ours would */

/* ---- sizes ------------------------------------------------------------------------------------------------------------------------ */

size_t sq_chain_bound(const struct sq_codec_chain *chain, unsigned count, size_t size_bytes, bool *ret_fixed)
{
    bool fixed = true;
    for (unsigned i = 0; i < count && size_bytes != SIZE_MAX; i++) {
        size_bytes = chain->stages[i].ops->bound(&chain->stages[i], size_bytes);
        fixed = fixed && chain->stages[i].ops->fixed;
    }
    if (ret_fixed)
        *ret_fixed = fixed && size_bytes != SIZE_MAX;
    return size_bytes;
}

/* More than that no encoder makes where ours makes `most`, which may be SIZE_MAX. */
static size_t with_slack(size_t most)
{
    return most <= (SIZE_MAX - SLACK_BYTES) / 2 ? 2 * most + SLACK_BYTES : SIZE_MAX;
}

size_t sq_codec_stored_limit(const struct sq_codec_chain *chain)
{
    const bool known = !sq_type_is_variable(chain->dtype.type);
    return known ? with_slack(sq_chain_bound(chain, chain->stage_count, chain->chunk_bytes, NULL)) : SIZE_MAX;
}

/* Of elements with variable length: their framing's bytes go in, behind the stage that makes it. */
static unsigned first_of_bytes(const struct sq_codec_chain *chain)
{
    unsigned i = 0;
    while (sq_type_is_variable(chain->dtype.type) && i < chain->stage_count && chain->stages[i].ops->kind != SQ_STAGE_BYTES)
        i++;
    return i;
}

size_t sq_codec_encode_bound(const struct sq_codec_chain *chain, size_t src_size)
{
    for (unsigned i = first_of_bytes(chain); i < chain->stage_count && src_size != SIZE_MAX; i++)
        src_size = chain->stages[i].ops->bound(&chain->stages[i], src_size);
    return src_size;
}

size_t sq_codec_encode_bound_of(const struct sq_codec_chain *chain, const void *src, size_t src_size)
{
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        src_size = stage->ops->measure ? stage->ops->measure(stage, src, src_size) : stage->ops->bound(stage, src_size);
    }
    return src_size;
}

static bool within_limits(const struct sq_codec_chain *chain, size_t size)
{
    for (unsigned i = first_of_bytes(chain); i < chain->stage_count && size != SIZE_MAX; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->ops->limit_bytes && size > stage->ops->limit_bytes)
            return false;
        size = stage->ops->bound(stage, size);
    }
    return true;
}

size_t sq_codec_chain_limit_bytes(const struct sq_codec_chain *chain)
{
    size_t fits = 0, beyond = (size_t)1 << 48;
    if (within_limits(chain, beyond))
        return SIZE_MAX;
    while (beyond - fits > 1) {
        size_t middle = fits + (beyond - fits) / 2;
        if (within_limits(chain, middle))
            fits = middle;
        else
            beyond = middle;
    }
    return fits;
}

int sq_codec_chain_is_plain(const struct sq_codec_chain *chain)
{
    for (unsigned i = 0; i < chain->stage_count; i++)
        if (!chain->stages[i].decode_copies || !chain->stages[i].encode_copies)
            return 0;
    return 1;
}

/* A stage that turns elements about knows the shape; another size is a caller's mistake. */
static int check_size(const struct sq_codec_chain *chain, size_t size, struct squall_error *err)
{
    if (!chain->shaped || size == chain->chunk_bytes)
        return 0;
    return sq_error(err, SQUALL_EINVAL, "%zu bytes in memory for a chunk of %zu", size, chain->chunk_bytes);
}

size_t sq_stage_same_size(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size;
}

/* ---- decode ----------------------------------------------------------------------------------------------------------------------- */

static int wrong_size(const char *codec, size_t size, size_t expected, struct squall_error *err)
{
    const char *advice = "the file is damaged or from another array";
    if (size == 0)
        return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk decodes to more than its %zu bytes; %s", codec, expected, advice);
    return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk decodes to %zu bytes, the array's have %zu; %s", codec, size, expected, advice);
}

/* Decode what has one right size. A stage that works on arrays may rely on being given a whole one. */
static int decode_exactly(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                          size_t src_size, uint8_t *dst, size_t dst_size, struct squall_error *err)
{
    size_t got = 0;
    assert(stage->ops->decode);
    if (stage->ops->kind == SQ_STAGE_ARRAY && src_size != stage->ops->bound(stage, dst_size))
        return wrong_size("bytes", src_size, stage->ops->bound(stage, dst_size), err);
    int status = stage->ops->decode(stage, scratch, threads, src, src_size, dst, dst_size, &got, err);
    if (status == SQ_STAGE_NO_ROOM)
        return wrong_size(stage->ops->name, stage->ops->decoded_size ? stage->ops->decoded_size(src, src_size) : 0, dst_size, err);
    SQ_TRY(status);
    return got == dst_size ? 0 : wrong_size(stage->ops->name, got, dst_size, err);
}

/* Decode what has no known size: more room each time that it does not do, up to limit. */
static int decode_growing(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                          size_t src_size, struct sq_codec_buffer *buffer, size_t most, size_t *ret_size, struct squall_error *err)
{
    size_t told = stage->ops->decoded_size ? stage->ops->decoded_size(src, src_size) : 0;
    size_t guess = most != SIZE_MAX ? most : src_size * 4 + 256;
    size_t limit = most != SIZE_MAX ? with_slack(most) : unknown_limit_bytes;
    size_t room = told > guess ? told : guess;
    assert(stage->ops->decode);
    for (;;) {
        if (room > limit)
            room = limit;
        SQ_TRY(sq_codec_reserve(buffer, room, err));
        int status = stage->ops->decode(stage, scratch, threads, src, src_size, buffer->data, buffer->capacity, ret_size, err);
        if (status != SQ_STAGE_NO_ROOM)
            return status;
        if (room == limit)
            return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes decode to more than %zu; the chunk is damaged", stage->ops->name, src_size,
                            limit);
        room *= 2;
    }
}

/* Where a chunk is on its way: bytes in the source, in a buffer, or in place. */
struct way {
    const uint8_t *bytes;
    size_t size;
    unsigned free_buffer;
};

/* Undo the stages from the last down to, not including, `first`. */
static int undo(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, unsigned first, size_t final_size,
                struct way *way, struct squall_error *err)
{
    for (unsigned i = chain->stage_count; i-- > first;) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->decode_copies)
            continue;
        if (stage->ops->decode_view) {
            SQ_TRY(stage->ops->decode_view(stage, way->bytes, way->size, &way->bytes, &way->size, err));
            continue;
        }
        struct sq_codec_buffer *buffer = &scratch->between[way->free_buffer];
        bool fixed;
        size_t size = sq_chain_bound(chain, i, final_size, &fixed);
        if (fixed) {
            SQ_TRY(sq_codec_reserve(buffer, size, err));
            SQ_TRY(decode_exactly(stage, scratch, threads, way->bytes, way->size, buffer->data, size, err));
        } else {
            SQ_TRY(decode_growing(stage, scratch, threads, way->bytes, way->size, buffer, size, &size, err));
        }
        way->bytes = buffer->data;
        way->size = size;
        way->free_buffer = 1 - way->free_buffer;
    }
    return 0;
}

/* The first stages that need no room of their own: they work where the destination is. */
static unsigned stages_in_place(const struct sq_codec_chain *chain)
{
    unsigned i = 0;
    for (; i < chain->stage_count; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (!stage->decode_copies && (!stage->ops->decode_in_place || stage->resizes))
            break;
    }
    return i;
}

int sq_codec_decode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_size, struct squall_error *err)
{
    struct way way = {src, src_size, 0};
    SQ_TRY(check_size(chain, dst_size, err));
    unsigned in_place = stages_in_place(chain);
    unsigned direct = in_place; /* the stage that decodes into dst */
    while (direct < chain->stage_count && !chain->stages[direct].ops->decode)
        direct++;
    if (direct > in_place) /* what lies between are views: the bytes must be copied after them */
        direct = chain->stage_count;
    if (direct < chain->stage_count) {
        bool fixed;
        size_t size = sq_chain_bound(chain, direct, dst_size, &fixed);
        SQ_TRY(undo(chain, scratch, threads, direct + 1, dst_size, &way, err));
        SQ_TRY(decode_exactly(&chain->stages[direct], scratch, threads, way.bytes, way.size, dst, size, err));
    } else {
        SQ_TRY(undo(chain, scratch, threads, in_place, dst_size, &way, err));
        if (way.size != dst_size)
            return wrong_size("bytes", way.size, dst_size, err);
        memcpy(dst, way.bytes, dst_size);
    }
    while (in_place-- > 0)
        if (!chain->stages[in_place].decode_copies)
            chain->stages[in_place].ops->decode_in_place(&chain->stages[in_place], dst, dst_size);
    return 0;
}

/* The stage whose ranges are the chunk's: the only one, but for those that have nothing to do. */
static const struct sq_stage *range_stage(const struct sq_codec_chain *chain)
{
    const struct sq_stage *only = NULL;
    for (unsigned i = 0; i < chain->stage_count; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->decode_copies)
            continue;
        if (only || !stage->ops->decode_range)
            return NULL;
        only = stage;
    }
    return only;
}

bool sq_codec_chain_has_range(const struct sq_codec_chain *chain)
{
    return sq_codec_chain_is_plain(chain) || range_stage(chain);
}

int sq_codec_decode_range(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads,
                          const struct sq_codec_input *input, const struct sq_codec_range *range, void *dst,
                          struct sq_shuffle_layout *ret_layout, struct squall_error *err)
{
    size_t end;
    const struct sq_stage *stage = range_stage(chain);
    if (!sq_add_size(range->from_bytes, range->count_bytes, &end) || end > range->chunk_bytes)
        return sq_error(err, SQUALL_EINVAL, "%zu bytes from %zu of a chunk of %zu", range->count_bytes, range->from_bytes,
                        range->chunk_bytes);
    if (sq_type_is_variable(chain->dtype.type))
        return sq_error(err, SQUALL_EINVAL, "a part of a chunk of elements with variable length");
    SQ_TRY(check_size(chain, range->chunk_bytes, err));
    if (stage)
        return stage->ops->decode_range(stage, scratch, threads, input, range, dst, ret_layout, err);
    const uint8_t *bytes = input->bytes;
    assert(bytes);
    if (sq_codec_chain_is_plain(chain)) {
        if (input->size_bytes != range->chunk_bytes)
            return wrong_size("bytes", input->size_bytes, range->chunk_bytes, err);
    } else {
        SQ_TRY(sq_codec_reserve(&scratch->whole, range->chunk_bytes, err));
        SQ_TRY(sq_codec_decode(chain, scratch, threads, bytes, input->size_bytes, scratch->whole.data, range->chunk_bytes, err));
        bytes = scratch->whole.data;
    }
    memcpy(dst, bytes + range->from_bytes, range->count_bytes);
    if (ret_layout)
        *ret_layout = (struct sq_shuffle_layout){.block_bytes = range->chunk_bytes, .width = 1};
    return 0;
}

/* ---- encode ----------------------------------------------------------------------------------------------------------------------- */

static int encode_stage(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t size,
                        struct sq_codec_buffer *buffer, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    size_t room = stage->ops->measure ? stage->ops->measure(stage, src, size) : stage->ops->bound(stage, size);
    if (stage->ops->limit_bytes && size > stage->ops->limit_bytes)
        return sq_error(err, SQUALL_EINVAL, "%s: a chunk of %zu bytes; the codec takes at most %zu, make the chunks smaller",
                        stage->ops->name, size, stage->ops->limit_bytes);
    if (!dst) {
        SQ_TRY(sq_codec_reserve(buffer, room, err));
        dst = buffer->data;
    } else if (capacity < room) {
        return sq_error(err, SQUALL_EINVAL, "%zu bytes of room for a chunk that may take %zu", capacity, room);
    }
    return stage->ops->encode(stage, scratch, threads, src, size, dst, room, ret_size, err);
}

int sq_codec_encode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err)
{
    const uint8_t *bytes = src;
    size_t size = src_size;
    unsigned last = chain->stage_count, free_buffer = 0;
    SQ_TRY(check_size(chain, src_size, err));
    while (last > 0 && chain->stages[last - 1].encode_copies)
        last--;
    for (unsigned i = 0; i < last; i++) {
        const struct sq_stage *stage = &chain->stages[i];
        if (stage->encode_copies)
            continue;
        struct sq_codec_buffer *buffer = &scratch->between[free_buffer];
        SQ_TRY(encode_stage(stage, scratch, threads, bytes, size, buffer, i + 1 == last ? dst : NULL, dst_capacity, &size, err));
        bytes = buffer->data;
        free_buffer = 1 - free_buffer;
    }
    if (last == 0) {
        if (dst_capacity < size)
            return sq_error(err, SQUALL_EINVAL, "%zu bytes of room for a chunk that takes %zu", dst_capacity, size);
        memcpy(dst, src, size);
    }
    *ret_size = size;
    return 0;
}
