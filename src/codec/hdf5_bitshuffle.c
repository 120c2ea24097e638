/*
 * HDF5's filter 32008: bit shuffle in blocks, each of which may then be compressed by LZ4 or zstd. With a compressor the decoded size in
 * eight bytes and the size of a block in four stand in front, and each block's stored size in four, all big-endian; without, a block is
 * found by its size alone. Elements that fill no group of eight are stored as they are, behind the blocks.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "codec/hdf5_stages.h"
#include "codec/shuffle.h"
#include <limits.h>
#include <lz4.h>
#include <string.h>

enum { OPTION_WIDTH, OPTION_COMPRESSOR, OPTION_BLOCK_ELEMENTS };
enum { COMPRESSOR_NONE, COMPRESSOR_LZ4, COMPRESSOR_ZSTD };
enum { GROUP = 8 }; /* elements */

static const char *const compressors[] = {"none", "lz4", "zstd", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_WIDTH] = {"elementsize", NULL, 1, 1 << 20, 1, .told = true},
    [OPTION_COMPRESSOR] = {"cname", compressors, 0, COMPRESSOR_ZSTD, COMPRESSOR_NONE, .told = true},
    [OPTION_BLOCK_ELEMENTS] = {"block", NULL, 0, INT_MAX, 0, .told = false},
    {0},
};

/* What the filter takes where nothing is said: blocks of some 8 KiB. */
static uint32_t standard_block(uint32_t width)
{
    enum { BLOCK_BYTES = 8192, ELEMENTS_LEAST = 128 };
    uint32_t elements = BLOCK_BYTES / width / GROUP * GROUP;
    return elements < ELEMENTS_LEAST ? ELEMENTS_LEAST : elements;
}

/* Values: two of the filter's version, bytes of an element, elements of a block, compressor, its level. */
int sq_hdf5_bitshuffle_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    enum { VALUE_WIDTH = 2, VALUE_BLOCK = 3, VALUE_COMPRESSOR = 4 };
    static const int known[] = {[0] = COMPRESSOR_NONE, [2] = COMPRESSOR_LZ4, [3] = COMPRESSOR_ZSTD};
    const uint32_t *v = filter->values;
    uint32_t width = filter->value_count > VALUE_WIDTH ? v[VALUE_WIDTH] : 0;
    uint32_t block = filter->value_count > VALUE_BLOCK ? v[VALUE_BLOCK] : 0;
    uint32_t compressor = filter->value_count > VALUE_COMPRESSOR ? v[VALUE_COMPRESSOR] : 0;
    if (width == 0 || width > (uint32_t)options[OPTION_WIDTH].greatest || block % GROUP != 0 || block > INT_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "filter bitshuffle: elements of %u bytes in blocks of %u make no sense", width, block);
    if (compressor >= sizeof known / sizeof *known || (compressor != 0 && known[compressor] == COMPRESSOR_NONE))
        return sq_error(err, SQUALL_EUNSUPPORTED, "filter bitshuffle: unsupported compressor number %u", compressor);
    stage->value[OPTION_WIDTH] = (int)width;
    stage->value[OPTION_BLOCK_ELEMENTS] = (int)(block ? block : standard_block(width));
    stage->value[OPTION_COMPRESSOR] = known[compressor];
    return 0;
}

static int damaged(const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "bitshuffle: %s; the chunk is damaged or truncated", what);
}

/* The next compressed block → size_bytes bytes at dst, still shuffled. */
static int decompress(int compressor, ZSTD_DCtx *zstd, struct sq_cursor *c, uint8_t *dst, size_t size_bytes, struct squall_error *err)
{
    uint32_t stored_bytes = sq_u32be(c);
    const uint8_t *block = sq_take(c, stored_bytes);
    if (!block)
        return damaged("a block ends beyond the chunk", err);
    bool right = compressor == COMPRESSOR_ZSTD
                     ? ZSTD_decompressDCtx(zstd, dst, size_bytes, block, stored_bytes) == size_bytes
                     : stored_bytes <= INT_MAX && size_bytes <= LZ4_MAX_INPUT_SIZE &&
                           LZ4_decompress_safe((const char *)block, (char *)dst, (int)stored_bytes, (int)size_bytes) == (int)size_bytes;
    return right ? 0 : damaged("a block does not decode to its size", err);
}

/* The blocks at c, and what is behind them → size bytes at dst. */
static int decode_blocks(const struct sq_stage *stage, struct sq_codec_scratch *scratch, struct sq_cursor *c, size_t block_bytes,
                         uint8_t *dst, size_t size, struct squall_error *err)
{
    size_t width = (size_t)stage->value[OPTION_WIDTH], blocks_end = size - size % (GROUP * width);
    int compressor = stage->value[OPTION_COMPRESSOR];
    ZSTD_DCtx *zstd = NULL;
    if (block_bytes > blocks_end)
        block_bytes = blocks_end;
    if (compressor == COMPRESSOR_ZSTD && !(zstd = sq_codec_zstd_decoder(scratch, err)))
        return SQUALL_ENOMEM;
    if (compressor != COMPRESSOR_NONE)
        SQ_TRY(sq_codec_reserve(&scratch->block, block_bytes, err));
    for (size_t at = 0; at < blocks_end; at += block_bytes) {
        if (block_bytes > blocks_end - at)
            block_bytes = blocks_end - at;
        const uint8_t *block = scratch->block.data;
        if (compressor != COMPRESSOR_NONE)
            SQ_TRY(decompress(compressor, zstd, c, scratch->block.data, block_bytes, err));
        else if (!(block = sq_take(c, block_bytes)))
            return damaged("a block ends beyond the chunk", err);
        sq_bitunshuffle(width, block_bytes, block, dst + at);
    }
    const uint8_t *rest = sq_take(c, size - blocks_end);
    if (!rest)
        return damaged("its last elements lie beyond the chunk", err);
    memcpy(dst + blocks_end, rest, size - blocks_end);
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)threads;
    struct sq_cursor c = sq_cursor(src, src_size);
    size_t width = (size_t)stage->value[OPTION_WIDTH];
    uint64_t size = src_size, block_bytes = (uint64_t)stage->value[OPTION_BLOCK_ELEMENTS] * width;
    if (stage->value[OPTION_COMPRESSOR] != COMPRESSOR_NONE) {
        size = sq_u64be(&c);
        block_bytes = sq_u32be(&c);
    }
    if (sq_cursor_failed(&c) || size % width != 0 || (size > 0 && (block_bytes == 0 || block_bytes % (GROUP * width) != 0)))
        return damaged("its sizes make no sense", err);
    if (size > capacity)
        return SQ_STAGE_NO_ROOM;
    SQ_TRY(decode_blocks(stage, scratch, &c, (size_t)block_bytes, dst, (size_t)size, err));
    *ret_size = (size_t)size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    enum { HEADER_BYTES = 12 };
    if (stage->value[OPTION_COMPRESSOR] == COMPRESSOR_NONE)
        return src_size;
    return src_size + src_size / GROUP + HEADER_BYTES; /* blocks that do not compress grow, each by a few bytes */
}

const struct sq_stage_ops sq_stage_hdf5_bitshuffle = {.name = "bitshuffle", .options = options, .decode = decode, .bound = bound};
