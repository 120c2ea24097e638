/*
 * LZ4 as HDF5's filter 32004 frames it, all numbers big-endian: the decoded size in eight bytes, the size of a block in four, then the
 * blocks, each its stored size in four bytes and an LZ4 block. A block that is stored in as many bytes as it has is no LZ4.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "codec/hdf5_stages.h"
#include <limits.h>
#include <lz4.h>
#include <string.h>

enum { SIZE_BYTES = 8, HEADER_BYTES = 12, BLOCK_HEADER_BYTES = 4 };

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    struct sq_cursor c = sq_cursor(src, src_size);
    return (size_t)sq_u64be(&c);
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)scratch, (void)threads;
    struct sq_cursor c = sq_cursor(src, src_size);
    uint64_t size = sq_u64be(&c), block_bytes = sq_u32be(&c);
    if (sq_cursor_failed(&c) || (block_bytes == 0 && size > 0))
        return sq_error(err, SQUALL_ECORRUPT, "lz4: %zu bytes do not begin with HDF5's header for LZ4 blocks", src_size);
    if (size > capacity)
        return SQ_STAGE_NO_ROOM;
    for (uint64_t at = 0; at < size; at += block_bytes) {
        if (block_bytes > size - at)
            block_bytes = size - at;
        size_t begin = src_size - sq_cursor_left(&c);
        uint32_t stored_bytes = sq_u32be(&c);
        const uint8_t *block = sq_take(&c, stored_bytes);
        if (!block)
            return sq_error(err, SQUALL_ECORRUPT, "lz4: the block at byte %zu ends beyond the chunk, which is truncated or damaged", begin);
        if (stored_bytes == block_bytes)
            memcpy(dst + at, block, stored_bytes);
        else if (stored_bytes > INT_MAX || block_bytes > LZ4_MAX_INPUT_SIZE ||
                 LZ4_decompress_safe((const char *)block, (char *)dst + at, (int)stored_bytes, (int)block_bytes) != (int)block_bytes)
            return sq_error(err, SQUALL_ECORRUPT, "lz4: the block at byte %zu does not decode to its %llu bytes; the chunk is damaged",
                            begin, (unsigned long long)block_bytes);
    }
    *ret_size = (size_t)size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + HEADER_BYTES + BLOCK_HEADER_BYTES; /* of one block; more of them fit into the chain's reserve */
}

const struct sq_stage_ops sq_stage_hdf5_lz4 = {.name = "lz4", .decode = decode, .decoded_size = decoded_size, .bound = bound};
