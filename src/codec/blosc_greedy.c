/*
 * Blosc, search=greedy: zstd's own format, found with less searching. The byte planes of a field are of very different kinds: the high bytes
 * repeat in long stretches, the low ones are noise, or noise with gaps, or steps of a few values. A sample of the plane tells which, and
 * each kind is searched in the way that is worth its time. The choice depends on the plane's bytes only, so that the same data
 * give the same chunk.
 */
#include "codec/blosc.h"

/* How to search, in zstd's terms. */
struct search {
    ZSTD_strategy strategy;
    int hash_log, chain_log, least_match, search_log, target_length;
};

static const struct search searches[] = {
    {ZSTD_fast, 14, 14, 4, 1, 1},   /* noise: what repeats, repeats by chance */
    {ZSTD_dfast, 14, 14, 4, 1, 0},  /* noise with gaps */
    {ZSTD_greedy, 16, 16, 4, 2, 0}, /* many values in short steps */
    {ZSTD_greedy, 16, 16, 6, 3, 0}, /* long stretches */
};
enum kind { NOISE, GAPS, STEPS, STRETCHES };

struct statistics {
    double repeats;    /* how often a byte is the one before it */
    double collisions; /* how often it would be, were the bytes drawn at random from the plane */
};

enum { WINDOWS = 8, WINDOW_BYTES = 512, SAMPLE_BYTES = WINDOWS * WINDOW_BYTES };

static struct statistics sample(const uint8_t *src, size_t size)
{
    uint32_t count[256] = {0};
    unsigned repeats = 0;
    size_t stride = size / WINDOWS;
    for (size_t w = 0; w < WINDOWS; w++) {
        const uint8_t *window = src + w * stride + (stride - WINDOW_BYTES) / 2;
        for (unsigned i = 1; i < WINDOW_BYTES; i++) {
            count[window[i]]++;
            repeats += window[i] == window[i - 1];
        }
    }
    const double drawn = WINDOWS * (WINDOW_BYTES - 1);
    double squares = 0;
    for (unsigned v = 0; v < 256; v++)
        squares += (double)count[v] * count[v];
    return (struct statistics){repeats / drawn, squares / (drawn * drawn)};
}

static enum kind kind_of(const uint8_t *src, size_t size)
{
    if (size < (size_t)2 * SAMPLE_BYTES)
        return STRETCHES;
    struct statistics s = sample(src, size);
    if (s.collisions > 0.999)
        return STRETCHES;
    double order = (s.repeats - s.collisions) / (1 - s.collisions);
    if (order > 0.6)
        return STRETCHES;
    if (s.collisions < 0.015 && order > 0.06)
        return STEPS;
    return order > 0.05 ? GAPS : NOISE;
}

size_t sq_blosc_greedy(ZSTD_CCtx *encoder, int clevel, const uint8_t *src, size_t src_size, uint8_t *dst, size_t capacity)
{
    const struct search *search = &searches[kind_of(src, src_size)];
    ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_compressionLevel, clevel < 9 ? 2 * clevel - 1 : ZSTD_maxCLevel());
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_strategy, (int)search->strategy);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_hashLog, search->hash_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_chainLog, search->chain_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_minMatch, search->least_match);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_searchLog, search->search_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_targetLength, search->target_length);
    size_t got = ZSTD_compress2(encoder, dst, capacity, src, src_size);
    return ZSTD_isError(got) ? 0 : got;
}
