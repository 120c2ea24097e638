/*
 * Zstandard (RFC 8878): frames one after another, with or without content size and checksum. A frame's own word about its size
 * is used for messages and as a first guess only.
 */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <zstd_errors.h>

enum { OPTION_LEVEL, OPTION_CHECKSUM, OPTION_SEARCH };
enum { SEARCH_FULL, SEARCH_GREEDY };
enum { STANDARD_LEVEL = 3, GREEDY_FROM_LEVEL = 5 }; /* below that zstd searches less than greedily anyway */

static const char *const searches[] = {"full", "greedy", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_LEVEL] = {"level", NULL, -131072, 22, STANDARD_LEVEL, .told = true},
    [OPTION_CHECKSUM] = {"checksum", NULL, 0, 1, 0, .truth = true},
    [OPTION_SEARCH] = {"search", searches, 0, 1, SEARCH_FULL, .hidden = true},
    {0},
};

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    unsigned long long size = ZSTD_getFrameContentSize(src, src_size);
    return size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > SIZE_MAX ? 0 : (size_t)size;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)threads;
    ZSTD_DCtx *decoder = sq_codec_zstd_decoder(scratch, err);
    if (!decoder)
        return SQUALL_ENOMEM;
    size_t got = ZSTD_decompressDCtx(decoder, dst, capacity, src, src_size);
    if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall)
        return SQ_STAGE_NO_ROOM;
    if (ZSTD_isError(got) || src_size == 0)
        return sq_error(err, SQUALL_ECORRUPT, "zstd: %s; the chunk is damaged or truncated",
                        src_size == 0 ? "no frame" : ZSTD_getErrorName(got));
    *ret_size = got;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return ZSTD_compressBound(src_size);
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)threads;
    ZSTD_CCtx *encoder = sq_codec_zstd_encoder(scratch, err);
    if (!encoder)
        return SQUALL_ENOMEM;
    int level = stage->value[OPTION_LEVEL];
    ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, stage->value[OPTION_CHECKSUM]);
    if (stage->value[OPTION_SEARCH] == SEARCH_GREEDY && level >= GREEDY_FROM_LEVEL)
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_strategy, ZSTD_greedy);
    size_t got = ZSTD_compress2(encoder, dst, capacity, src, src_size);
    if (ZSTD_isError(got))
        return sq_error(err, SQUALL_EINVAL, "zstd: %zu bytes could not be encoded: %s", src_size, ZSTD_getErrorName(got));
    *ret_size = got;
    return 0;
}

const struct sq_stage_ops sq_stage_zstd = {.name = "zstd",
                                           .name_v3 = "zstd",
                                           .options = options,
                                           .decode = decode,
                                           .decoded_size = decoded_size,
                                           .bound = bound,
                                           .encode = encode};
