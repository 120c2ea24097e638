/*
 * gzip (RFC 1952, one member after another) and zlib (RFC 1950), both whole buffers through libdeflate. Zero bytes behind the
 * last gzip member are padding, as gzip itself takes them.
 */
#include "base/error_internal.h"
#include "codec/codec_internal.h"

enum { OPTION_LEVEL };

static const struct sq_stage_option gzip_options[] = {
    [OPTION_LEVEL] = {"level", NULL, 0, 9, 5, .told = true},
    {0},
};
static const struct sq_stage_option zlib_options[] = {
    [OPTION_LEVEL] = {"level", NULL, -1, 9, 1, .told = true},
    {0},
};

static int failed(const char *name, enum libdeflate_result result, size_t at, struct squall_error *err)
{
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        return SQ_STAGE_NO_ROOM;
    return sq_error(err, SQUALL_ECORRUPT, "%s: the stream at byte %zu is damaged or truncated", name, at);
}

static bool only_zeros(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static int gzip_decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                       size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)threads;
    struct libdeflate_decompressor *inflater = sq_codec_inflater(scratch, err);
    if (!inflater)
        return SQUALL_ENOMEM;
    size_t at = 0;
    size_t size = 0;
    do {
        size_t used = 0;
        size_t got = 0;
        enum libdeflate_result result =
            libdeflate_gzip_decompress_ex(inflater, src + at, src_size - at, dst + size, capacity - size, &used, &got);
        if (result != LIBDEFLATE_SUCCESS)
            return failed("gzip", result, at, err);
        at += used;
        size += got;
    } while (at < src_size && !only_zeros(src + at, src_size - at));
    *ret_size = size;
    return 0;
}

static int zlib_decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                       size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)threads;
    struct libdeflate_decompressor *inflater = sq_codec_inflater(scratch, err);
    if (!inflater)
        return SQUALL_ENOMEM;
    size_t used = 0;
    size_t got = 0;
    enum libdeflate_result result = libdeflate_zlib_decompress_ex(inflater, src, src_size, dst, capacity, &used, &got);
    if (result != LIBDEFLATE_SUCCESS)
        return failed("zlib", result, 0, err);
    if (!only_zeros(src + used, src_size - used))
        return sq_error(err, SQUALL_ECORRUPT, "zlib: %zu bytes of something else follow the stream at byte %zu", src_size - used, used);
    *ret_size = got;
    return 0;
}

/* The last member's size, modulo 2^32, ends the file: of one member, the whole. */
static size_t gzip_decoded_size(const uint8_t *src, size_t src_size)
{
    enum { FRAME_BYTES = 18, SIZE_BYTES = 4 };
    if (src_size < FRAME_BYTES)
        return 0;
    const uint8_t *p = src + src_size - SIZE_BYTES;
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    enum { FRAME_BYTES = 18 };
    return libdeflate_deflate_compress_bound(NULL, src_size) + FRAME_BYTES;
}

static int finished(const char *name, size_t got, size_t src_size, size_t *ret_size, struct squall_error *err)
{
    if (got == 0)
        return sq_error(err, SQUALL_EINVAL, "%s: %zu bytes could not be encoded", name, src_size);
    *ret_size = got;
    return 0;
}

static int gzip_encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                       size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)threads;
    struct libdeflate_compressor *deflater = sq_codec_deflater(scratch, stage->value[OPTION_LEVEL], err);
    if (!deflater)
        return SQUALL_ENOMEM;
    return finished("gzip", libdeflate_gzip_compress(deflater, src, src_size, dst, capacity), src_size, ret_size, err);
}

static int zlib_encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                       size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)threads;
    int level = stage->value[OPTION_LEVEL] < 0 ? 6 : stage->value[OPTION_LEVEL]; /* zlib's own choice */
    struct libdeflate_compressor *deflater = sq_codec_deflater(scratch, level, err);
    if (!deflater)
        return SQUALL_ENOMEM;
    return finished("zlib", libdeflate_zlib_compress(deflater, src, src_size, dst, capacity), src_size, ret_size, err);
}

const struct sq_stage_ops sq_stage_gzip = {.name = "gzip",
                                           .name_v3 = "gzip",
                                           .options = gzip_options,
                                           .decode = gzip_decode,
                                           .decoded_size = gzip_decoded_size,
                                           .bound = bound,
                                           .encode = gzip_encode};
const struct sq_stage_ops sq_stage_zlib = {
    .name = "zlib", .name_v3 = "numcodecs.zlib", .options = zlib_options, .decode = zlib_decode, .bound = bound, .encode = zlib_encode};
