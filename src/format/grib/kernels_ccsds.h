/*
 * One block of a CCSDS 121.0-B stream, for kernels.c and kernels_avx2.c, which give UNPACK_PIECE (values of one width) and INTEGRATE
 * (from mapped differences to samples). A stream is segments of `interval` blocks; a segment's first block begins with a sample
 * as it is, all others are differences from the one before, mapped to natural numbers.
 */
#include "format/grib/kernels.h"

/* The stream from a bit on, 57 bits at least, zeros behind its end. */
VARIANT static inline uint64_t ccsds_peek(const struct sq_grib_ccsds *s, uint64_t bit)
{
    return big_word(s->bytes + (bit >> 3), s->bytes + s->size_bytes) << (bit & 7);
}

VARIANT static inline uint64_t ccsds_end(const struct sq_grib_ccsds *s)
{
    return (uint64_t)s->size_bytes * 8;
}

VARIANT static inline bool ccsds_has(const struct sq_grib_ccsds *s, uint64_t bits)
{
    return s->bit <= ccsds_end(s) && bits <= ccsds_end(s) - s->bit;
}

/* count numbers in unary: zeros, then a one. False: the stream ends before. */
VARIANT static inline bool ccsds_unary(struct sq_grib_ccsds *s, unsigned count, uint32_t *restrict out)
{
    uint64_t bit = s->bit, word = 0, limit = bit; /* word: what is left of the stream up to limit */
    uint32_t zeros = 0;
    for (unsigned i = 0; i < count;) {
        if (word == 0) {
            zeros += (uint32_t)(limit - bit);
            bit = limit;
            if (bit >= ccsds_end(s))
                return false;
            word = ccsds_peek(s, bit);
            limit = bit + 64 - (bit & 7);
            continue;
        }
        unsigned run = (unsigned)__builtin_clzll(word);
        word = word << run << 1;
        bit += run + 1;
        out[i++] = zeros + run;
        zeros = 0;
    }
    s->bit = bit;
    return true;
}

/* count numbers of width bits; out has slack. */
VARIANT static inline bool ccsds_fixed(struct sq_grib_ccsds *s, unsigned count, unsigned width, uint32_t *out)
{
    struct sq_grib_piece piece = {0, count, width};
    uint64_t bits = (uint64_t)count * width;
    if (!ccsds_has(s, bits))
        return false;
    UNPACK_PIECE(s->bytes, s->bytes + s->size_bytes, s->bit, &piece, out);
    s->bit += bits;
    return true;
}

/* Two numbers in one (the second extension option): m = (a + b)(a + b + 1)/2 + b. */
VARIANT static inline bool ccsds_pairs(struct sq_grib_ccsds *s, uint32_t *restrict out)
{
    enum { MOST = 90 };
    uint32_t codes[SQ_GRIB_CCSDS_BLOCK / 2];
    if (!ccsds_unary(s, s->block / 2, codes))
        return false;
    for (unsigned i = 0; i < s->block / 2; i++) {
        uint32_t sum = 0;
        if (codes[i] > MOST)
            return false;
        while ((sum + 1) * (sum + 2) / 2 <= codes[i])
            sum++;
        out[2 * i + 1] = codes[i] - sum * (sum + 1) / 2;
        out[2 * i] = sum - out[2 * i + 1];
    }
    return true;
}

/* A run of blocks without differences; 5 stands for "up to the end of these 64, or of the segment". */
VARIANT static inline bool ccsds_zero_run(struct sq_grib_ccsds *s)
{
    enum { REST = 5 };
    uint32_t run, left = s->interval - s->at, left64 = 64 - s->at % 64;
    if (!ccsds_unary(s, 1, &run))
        return false;
    run++;
    if (run == REST)
        run = left < left64 ? left : left64;
    else if (run > REST)
        run--;
    if (run > left)
        return false;
    s->zero_blocks = run;
    return true;
}

/* The block's option and what it holds: mapped differences, or samples where the stream has no preprocessing. */
VARIANT static inline bool ccsds_differences(struct sq_grib_ccsds *s, bool first, uint32_t *restrict out)
{
    unsigned widest = (1u << s->option_bits) - 1;
    if (!ccsds_has(s, 1))
        return false;
    uint64_t word = ccsds_peek(s, s->bit);
    unsigned option = (unsigned)(word >> (64 - s->option_bits));
    bool pairs = option == 0 && word << s->option_bits >> 63;
    s->bit += s->option_bits + (option == 0);
    if (option == widest) {
        if (!ccsds_fixed(s, s->block, s->bits, out))
            return false;
        if (first)
            s->last = out[0];
        return true;
    }
    if (first) {
        if (!ccsds_has(s, s->bits))
            return false;
        s->last = (uint32_t)(ccsds_peek(s, s->bit) >> (64 - s->bits));
        s->bit += s->bits;
    }
    if (option == 0)
        return pairs ? ccsds_pairs(s, out) : ccsds_zero_run(s);
    uint32_t low[SQ_GRIB_CCSDS_BLOCK + SQ_GRIB_SLACK];
    unsigned count = s->block - first, width = option - 1;
    if (!ccsds_unary(s, count, out + first) || !ccsds_fixed(s, count, width, low + first))
        return false;
    if (width)
        for (unsigned i = 0; i < s->block; i++)
            out[i] = out[i] << width | low[i];
    return true;
}

VARIANT static bool ccsds_block(struct sq_grib_ccsds *s, uint32_t *restrict out)
{
    bool first = s->preprocessed && s->at == 0;
    if (s->zero_blocks == 0) {
        memset(out, 0, sizeof *out); /* the place of a first sample, which has no difference */
        if (!ccsds_differences(s, first, out))
            return false;
        if (first)
            out[0] = 0;
    }
    if (s->zero_blocks) {
        s->zero_blocks--;
        memset(out, 0, s->block * sizeof *out);
    }
    if (s->preprocessed)
        INTEGRATE(s, out);
    if (++s->at == s->interval)
        s->at = 0;
    return true;
}

/* CCSDS 121.0-B, 4.3: a difference's sign alternates as far as both directions have room, then one direction is left. */
VARIANT static void integrate_plain(struct sq_grib_ccsds *s, uint32_t *restrict out)
{
    uint32_t x = s->last, most = (uint32_t)((UINT64_C(1) << s->bits) - 1), middle = most / 2 + 1;
    for (unsigned i = 0; i < s->block; i++) {
        uint32_t d = out[i], half = (d >> 1) + (d & 1), mask = x & middle ? most : 0;
        x = half <= (x ^ mask) ? x + ((d >> 1) ^ (0 - (d & 1))) : d ^ mask;
        out[i] = x;
    }
    s->last = x;
}
