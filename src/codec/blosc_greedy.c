/* search=greedy. */
#include "codec/blosc.h"

size_t sq_blosc_greedy(ZSTD_CCtx *encoder, int clevel, const uint8_t *src, size_t src_size, uint8_t *dst, size_t capacity)
{
    ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, clevel < 9 ? 2 * clevel - 1 : ZSTD_maxCLevel());
    if (clevel >= 3)
        ZSTD_CCtx_setParameter(encoder, ZSTD_c_strategy, ZSTD_greedy);
    size_t got = ZSTD_compress2(encoder, dst, capacity, src, src_size);
    return ZSTD_isError(got) ? 0 : got;
}
