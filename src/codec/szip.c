/*
 * HDF5's filter 4: the decoded size in four little-endian bytes, then what szip makes of the chunk, which is CCSDS 121.0-B adaptive
 * entropy coding as libaec does it, with three habits of szip's: numbers of 32 and 64 bits are coded byte plane by byte plane,
 * other ones take 1, 2 or 4 bytes, and a scanline that is no whole number of blocks is padded to one.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "codec/hdf5_stages.h"
#include "codec/shuffle.h"
#include <libaec.h>
#include <limits.h>
#include <string.h>

enum { PREFIX_BYTES = 4 };
enum { OPTION_BITS, OPTION_BLOCK, OPTION_SCANLINE, OPTION_FLAGS };
enum { BLOCK_MAX = 32, SCANLINE_MAX = 4096, BITS_MAX = 24 }; /* szip's own limits; 32 and 64 bits besides */

static const struct sq_stage_option options[] = {
    [OPTION_BITS] = {"bits", NULL, 1, 64, 8, .told = true},
    [OPTION_BLOCK] = {"block", NULL, 2, BLOCK_MAX, 2, .told = true},
    [OPTION_SCANLINE] = {"scanline", NULL, 1, SCANLINE_MAX, 1, .told = true},
    [OPTION_FLAGS] = {"flags", NULL, 0, INT_MAX, 0, .told = false},
    {0},
};

/* Values: the mask of szip's options, numbers a block, bits a number, numbers a scanline. */
int sq_szip_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    enum { VALUE_MASK, VALUE_BLOCK, VALUE_BITS, VALUE_SCANLINE, VALUES };
    enum { MASK_MSB = 16, MASK_NEAREST_NEIGHBOUR = 32 };
    if (filter->value_count < VALUES)
        return sq_error(err, SQUALL_ECORRUPT, "filter szip: %u values, not %d", filter->value_count, VALUES);
    uint32_t mask = filter->values[VALUE_MASK], block = filter->values[VALUE_BLOCK], bits = filter->values[VALUE_BITS],
             scanline = filter->values[VALUE_SCANLINE];
    if (block < 2 || block > BLOCK_MAX || block % 2 != 0 || scanline < block || scanline > SCANLINE_MAX || bits == 0 ||
        (bits > BITS_MAX && bits != 32 && bits != 64))
        return sq_error(err, SQUALL_ECORRUPT, "filter szip: %u bits, blocks of %u and scanlines of %u make no sense", bits, block,
                        scanline);
    stage->value[OPTION_BITS] = (int)bits;
    stage->value[OPTION_BLOCK] = (int)block;
    stage->value[OPTION_SCANLINE] = (int)scanline;
    stage->value[OPTION_FLAGS] =
        AEC_NOT_ENFORCE | (mask & MASK_MSB ? AEC_DATA_MSB : 0) | (mask & MASK_NEAREST_NEIGHBOUR ? AEC_DATA_PREPROCESS : 0);
    return 0;
}

static bool in_planes(const struct sq_stage *stage)
{
    return stage->value[OPTION_BITS] > BITS_MAX;
}

static size_t sample_bytes(const struct sq_stage *stage)
{
    int bits = stage->value[OPTION_BITS];
    if (in_planes(stage) || bits <= 8)
        return 1;
    return bits <= 16 ? 2 : 4;
}

/* Scanlines in blocks, the last one rounded up. */
static unsigned scanline_blocks(const struct sq_stage *stage)
{
    return ((unsigned)stage->value[OPTION_SCANLINE] + (unsigned)stage->value[OPTION_BLOCK] - 1) / (unsigned)stage->value[OPTION_BLOCK];
}

static int entropy_decode(const struct sq_stage *stage, const uint8_t *src, size_t src_size, uint8_t *dst, size_t size,
                          struct squall_error *err)
{
    struct aec_stream stream = {.next_in = src,
                                .avail_in = src_size,
                                .next_out = dst,
                                .avail_out = size,
                                .bits_per_sample = in_planes(stage) ? 8 : (unsigned)stage->value[OPTION_BITS],
                                .block_size = (unsigned)stage->value[OPTION_BLOCK],
                                .rsi = scanline_blocks(stage),
                                .flags = (unsigned)stage->value[OPTION_FLAGS]};
    int status = aec_buffer_decode(&stream);
    if (status == AEC_MEM_ERROR)
        return sq_error(err, SQUALL_ENOMEM, "out of memory for an szip decoder");
    if (status != AEC_OK || stream.total_out != size)
        return sq_error(err, SQUALL_ECORRUPT, "szip: the stream does not decode to the chunk's %zu bytes; it is damaged or truncated",
                        size);
    return 0;
}

/* Scanlines of from_bytes each, of which to_bytes count → size bytes in their place. */
static void close_up(uint8_t *bytes, size_t from_bytes, size_t to_bytes, size_t size)
{
    for (size_t line = 1; line * to_bytes < size; line++) {
        size_t left = size - line * to_bytes;
        memmove(bytes + line * to_bytes, bytes + line * from_bytes, left < to_bytes ? left : to_bytes);
    }
}

/* Where szip has padded or taken numbers apart, the way back leads through a buffer. */
static int decode_indirectly(const struct sq_stage *stage, struct sq_codec_scratch *scratch, const uint8_t *src, size_t src_size,
                             uint8_t *dst, size_t size, struct squall_error *err)
{
    size_t line_bytes = (size_t)stage->value[OPTION_SCANLINE] * sample_bytes(stage), padded_bytes;
    size_t stored_bytes = (size_t)scanline_blocks(stage) * (size_t)stage->value[OPTION_BLOCK] * sample_bytes(stage);
    size_t lines = size / line_bytes + (size % line_bytes != 0);
    if (stored_bytes == line_bytes)
        padded_bytes = size;
    else if (!sq_mul_size(lines, stored_bytes, &padded_bytes))
        return sq_error(err, SQUALL_ECORRUPT, "szip: a chunk of %zu bytes", size);
    SQ_TRY(sq_codec_reserve(&scratch->block, padded_bytes, err));
    SQ_TRY(entropy_decode(stage, src, src_size, scratch->block.data, padded_bytes, err));
    if (stored_bytes != line_bytes)
        close_up(scratch->block.data, stored_bytes, line_bytes, size);
    if (in_planes(stage))
        sq_unshuffle((size_t)stage->value[OPTION_BITS] / 8, size, scratch->block.data, dst);
    else
        memcpy(dst, scratch->block.data, size);
    return 0;
}

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    return src_size < PREFIX_BYTES ? 0 : sq_get_u32(src);
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)threads;
    if (src_size < PREFIX_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "szip: %zu bytes do not hold the chunk's size; it is truncated", src_size);
    size_t size = sq_get_u32(src);
    if (size > capacity)
        return SQ_STAGE_NO_ROOM;
    src += PREFIX_BYTES;
    src_size -= PREFIX_BYTES;
    if (in_planes(stage) || stage->value[OPTION_SCANLINE] % stage->value[OPTION_BLOCK] != 0)
        SQ_TRY(decode_indirectly(stage, scratch, src, src_size, dst, size, err));
    else
        SQ_TRY(entropy_decode(stage, src, src_size, dst, size, err));
    *ret_size = size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + src_size / 8 + PREFIX_BYTES; /* a few bits a block where nothing compresses, and padding */
}

const struct sq_stage_ops sq_stage_szip = {
    .name = "szip", .options = options, .decode = decode, .decoded_size = decoded_size, .bound = bound};
