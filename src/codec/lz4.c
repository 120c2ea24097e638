/* LZ4 as numcodecs frames it: the decoded size in four little-endian bytes, then one LZ4 block. */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <limits.h>
#include <lz4.h>

enum { PREFIX_BYTES = 4 };
enum { OPTION_ACCELERATION };

static const struct sq_stage_option options[] = {
    [OPTION_ACCELERATION] = {"acceleration", NULL, 1, 65537, 1, .told = true},
    {0},
};

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    if (src_size < PREFIX_BYTES)
        return 0;
    return (size_t)src[0] | (size_t)src[1] << 8 | (size_t)src[2] << 16 | (size_t)src[3] << 24;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)scratch, (void)threads;
    if (src_size < PREFIX_BYTES || src_size - PREFIX_BYTES > INT_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "lz4: %zu bytes are no LZ4 block with its size in front", src_size);
    size_t size = decoded_size(src, src_size);
    if (size > capacity)
        return SQ_STAGE_NO_ROOM;
    if (size > LZ4_MAX_INPUT_SIZE)
        return sq_error(err, SQUALL_ECORRUPT, "lz4: the block says %zu bytes, more than LZ4 can hold", size);
    int got = LZ4_decompress_safe((const char *)src + PREFIX_BYTES, (char *)dst, (int)(src_size - PREFIX_BYTES), (int)size);
    if (got < 0 || (size_t)got != size)
        return sq_error(err, SQUALL_ECORRUPT, "lz4: the block does not decode to the %zu bytes that it says; the chunk is damaged", size);
    *ret_size = size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + src_size / 255 + 16 + PREFIX_BYTES; /* LZ4_COMPRESSBOUND without its limit */
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity;
    int room = LZ4_compressBound((int)src_size);
    int got = LZ4_compress_fast((const char *)src, (char *)dst + PREFIX_BYTES, (int)src_size, room, stage->value[OPTION_ACCELERATION]);
    if (got <= 0)
        return sq_error(err, SQUALL_EINVAL, "lz4: %zu bytes could not be encoded", src_size);
    for (unsigned i = 0; i < PREFIX_BYTES; i++)
        dst[i] = (uint8_t)(src_size >> (8 * i));
    *ret_size = (size_t)got + PREFIX_BYTES;
    return 0;
}

const struct sq_stage_ops sq_stage_lz4 = {.name = "lz4",
                                          .name_v3 = "numcodecs.lz4",
                                          .options = options,
                                          .limit_bytes = LZ4_MAX_INPUT_SIZE,
                                          .decode = decode,
                                          .decoded_size = decoded_size,
                                          .bound = bound,
                                          .encode = encode};
