/*
 * Blosc, search=greedy: streams in zstd's own format, found with less searching. The byte planes of a field are of very different kinds: the
 * high bytes come in long stretches that return row after row, the low ones are noise, noise with gaps, or short steps. A
 * sample of the plane tells which, and each kind gets the search that is worth its time. The choice depends on the plane's bytes
 * only, so that the same data give the same chunk. Thresholds and searches are fits: of time + 0.25 µs a byte, over planes of model output and of real
 * fields of many centres as float16 and float32.
 */
#include "codec/blosc.h"
#include <string.h>

/* How to search, in zstd's terms. */
struct search {
    ZSTD_strategy strategy;
    int hash_log, chain_log, least_match, search_log;
    bool by_chains; /* hash chains, where zstd would look through rows of candidates */
};

static const struct search searches[] = {
    {ZSTD_fast, 16, 14, 4, 1, false},   /* many values, which hardly ever return: noise */
    {ZSTD_greedy, 16, 16, 4, 3, false}, /* many values, which return: short steps */
    {ZSTD_fast, 14, 14, 5, 1, false},   /* few values without order: noise with gaps */
    {ZSTD_greedy, 15, 13, 7, 3, true},  /* few values in long stretches */
};
enum kind { NOISE, STEPS, GAPS, STRETCHES };

enum { WINDOWS = 2, WINDOW_BYTES = 2048, WORD_BYTES = 4 };

struct statistics {
    double collisions; /* how often two bytes drawn at random from the sample are equal */
    double repeats;    /* how often a byte is the one before it */
    double matches;    /* how many matches a byte an eager search finds, of four bytes or more */
};

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Walk one window as a fast compressor would: a table from four bytes to where they were last seen. */
static unsigned count_matches(const uint8_t *window)
{
    enum { TABLE_LOG = 10 };
    uint16_t last[1 << TABLE_LOG] = {0};
    unsigned matches = 0;
    for (unsigned i = 1, next = 1; i < WINDOW_BYTES - WORD_BYTES; i++) {
        uint32_t word = word_at(window + i);
        uint16_t *entry = &last[word * UINT32_C(2654435761) >> (32 - TABLE_LOG)];
        unsigned candidate = *entry;
        *entry = (uint16_t)i;
        if (i < next || candidate == 0 || word_at(window + candidate) != word)
            continue;
        unsigned length = WORD_BYTES;
        while (i + length < WINDOW_BYTES && window[candidate + length] == window[i + length])
            length++;
        next = i + length;
        matches++;
    }
    return matches;
}

static struct statistics sample(const uint8_t *src, size_t size)
{
    unsigned count[256] = {0}, repeats = 0, matches = 0;
    for (unsigned w = 0; w < WINDOWS; w++) {
        const uint8_t *window = src + (2 * w + 1) * (size / (2 * WINDOWS)) - WINDOW_BYTES / 2;
        for (unsigned i = 1; i < WINDOW_BYTES; i++) {
            count[window[i]]++;
            repeats += window[i] == window[i - 1];
        }
        matches += count_matches(window);
    }
    const double drawn = WINDOWS * (WINDOW_BYTES - 1);
    double squares = 0;
    for (unsigned v = 0; v < 256; v++)
        squares += (double)count[v] * count[v];
    return (struct statistics){squares / (drawn * drawn), repeats / drawn, matches / drawn};
}

static enum kind kind_of(const uint8_t *src, size_t size)
{
    if (size < (size_t)2 * WINDOWS * WINDOW_BYTES)
        return STEPS;
    struct statistics s = sample(src, size);
    if (s.collisions < 0.04)
        return s.matches < 0.016 ? NOISE : STEPS;
    double order = (s.repeats - s.collisions) / (1.0001 - s.collisions); /* 0: as at random; 1: constant */
    return order < 0.68 ? GAPS : STRETCHES;
}

size_t sq_blosc_greedy(ZSTD_CCtx *encoder, const uint8_t *src, size_t src_size, uint8_t *dst, size_t capacity)
{
    const struct search *search = &searches[kind_of(src, src_size)];
    ZSTD_CCtx_reset(encoder, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_strategy, (int)search->strategy);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_hashLog, search->hash_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_chainLog, search->chain_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_minMatch, search->least_match);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_searchLog, search->search_log);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_targetLength, 0);
    if (search->by_chains) /* useRowMatchFinder off; a zstd that does not know it may do as it likes */
        (void)ZSTD_CCtx_setParameter(encoder, ZSTD_c_experimentalParam14, 2);
    size_t got = ZSTD_compress2(encoder, dst, capacity, src, src_size);
    return ZSTD_isError(got) ? 0 : got;
}
