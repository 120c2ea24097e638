/*
 * The kernels for AVX2. Unpacking takes eight values a step: eight values of n bits are n whole bytes, so one byte shuffle and one
 * shift, made once a piece, serve all of it wherever its first bit lies.
 */
#include "format/grib/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VARIANT               __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt")))
#define MULTIPLY_ADD(a, b, c) __builtin_fma(a, b, c)
#include "format/grib/kernels_loops.h"

enum {
    LANES = 8,
    LOAD_BYTES = 16,
    NARROW = 25 /* with up to 7 bits of offset before it, a value of this width lies in 4 bytes */
};

/* How to bring eight values of one width, from one bit offset on, into 32-bit lanes. Lanes 4 to 7 come from a second load. */
struct gather {
    __m256i shuffle, shift, mask;
    size_t second_bytes; /* where the second load begins */
};

VARIANT static inline struct gather gather_of(unsigned width, unsigned offset)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i spread =
        _mm256_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    const __m256i reversed = _mm256_set1_epi32(0x00010203);
    struct gather g;
    g.second_bytes = (offset + 4 * width) >> 3;
    __m256i bit = _mm256_add_epi32(_mm256_mullo_epi32(index, _mm256_set1_epi32((int)width)), _mm256_set1_epi32((int)offset));
    __m128i back = _mm_set1_epi32((int)(8 * g.second_bytes));
    bit = _mm256_sub_epi32(bit, _mm256_inserti128_si256(_mm256_setzero_si256(), back, 1));
    g.shuffle = _mm256_add_epi8(_mm256_shuffle_epi8(_mm256_srli_epi32(bit, 3), spread), reversed);
    g.shift = _mm256_sub_epi32(_mm256_set1_epi32((int)(32 - width)), _mm256_and_si256(bit, _mm256_set1_epi32(7)));
    g.mask = _mm256_set1_epi32((int)((1u << width) - 1));
    return g;
}

VARIANT static inline __m256i eight_values(const uint8_t *p, const struct gather *g)
{
    __m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p));
    x = _mm256_inserti128_si256(x, _mm_loadu_si128((const __m128i *)(p + g->second_bytes)), 1);
    return _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(x, g->shuffle), g->shift), g->mask);
}

/* Eight at a time while both loads lie inside; returns how many values were done (maybe more than there are: out has slack). */
VARIANT static inline uint32_t unpack_narrow(const uint8_t *bytes, const uint8_t *end, uint64_t bit, const struct sq_grib_piece *piece,
                                             unsigned missing, uint32_t *restrict out)
{
    const struct gather g = gather_of(piece->width, (unsigned)(bit & 7));
    const __m256i base = _mm256_set1_epi32((int)piece->base);
    const uint8_t *p = bytes + (bit >> 3);
    if ((size_t)(end - p) < LOAD_BYTES + g.second_bytes)
        return 0;
    const uint8_t *last = end - LOAD_BYTES - g.second_bytes;
    uint32_t i = 0;
    if (!missing) {
        for (; i < piece->count && p <= last; i += LANES, p += piece->width)
            _mm256_storeu_si256((__m256i *)(out + i), _mm256_add_epi32(base, eight_values(p, &g)));
        return i;
    }
    const __m256i highest = _mm256_set1_epi32((int)highest_value(piece->width, missing));
    for (; i < piece->count && p <= last; i += LANES, p += piece->width) {
        __m256i code = eight_values(p, &g);
        __m256i gone = _mm256_cmpgt_epi32(code, highest);
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_or_si256(_mm256_add_epi32(base, code), gone));
    }
    return i;
}

VARIANT static inline void fill(uint32_t value, uint32_t count, uint32_t *restrict out)
{
    const __m256i x = _mm256_set1_epi32((int)value);
    for (uint32_t i = 0; i < count; i += LANES)
        _mm256_storeu_si256((__m256i *)(out + i), x);
}

VARIANT static inline __attribute__((always_inline)) void unpack_piece(const uint8_t *bytes, const uint8_t *end, uint64_t bit,
                                                                       const struct sq_grib_piece *piece, unsigned missing, uint32_t *out)
{
    if (piece->width == 0) {
        fill(piece->base, piece->count, out);
        return;
    }
    uint32_t done = piece->width <= NARROW ? unpack_narrow(bytes, end, bit, piece, missing, out) : 0;
    if (done < piece->count) {
        struct sq_grib_piece rest = {piece->base, piece->count - done, piece->width};
        unpack_piece_plain(bytes, end, bit + (uint64_t)done * piece->width, &rest, highest_value(piece->width, missing), out + done);
    }
}

VARIANT static void unpack_avx2(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, const struct sq_grib_piece *pieces,
                                size_t piece_count, unsigned missing, uint32_t *out)
{
    for (size_t k = 0; k < piece_count; k++) {
        unpack_piece(bytes, bytes + size_bytes, first_bit, &pieces[k], missing, out);
        first_bit += (uint64_t)pieces[k].width * pieces[k].count;
        out += pieces[k].count;
    }
}

/*
 * Eight points a step. The bitmap byte becomes eight bytes 0 or 1 (first point lowest); one multiplication makes each the number of ones
 * before it, which is the lane of the dense values to take.
 */
VARIANT static size_t expand_float32_avx2(const uint8_t *bitmap, size_t bitmap_bytes, const float *dense, size_t dense_count,
                                          float *restrict dst, size_t *used)
{
    const uint64_t ones = 0x0101010101010101;
    const __m256 nan = _mm256_set1_ps(NAN);
    size_t at = 0, done = 0;
    for (; done < bitmap_bytes && at + LANES <= dense_count; done++) {
        uint64_t bits = bitmap[done];
        uint64_t flags = ((((bits * ones) & 0x0102040810204080) + 0x7f7f7f7f7f7f7f7f) >> 7) & ones;
        uint64_t before = (flags * ones) << 8;
        __m256i lane = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)before));
        __m256i one = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)flags));
        __m256 values = _mm256_permutevar8x32_ps(_mm256_loadu_ps(dense + at), lane);
        __m256 kept = _mm256_castsi256_ps(_mm256_slli_epi32(one, 31));
        _mm256_storeu_ps(dst + LANES * done, _mm256_blendv_ps(nan, values, kept));
        at += (unsigned)__builtin_popcount((unsigned)bits);
    }
    *used = at;
    return done;
}

/* Sums of the lanes up to each. */
VARIANT static inline __m256i running_sums(__m256i x)
{
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
    __m256i lower = _mm256_permute2x128_si256(x, x, 0x08); /* zero below, the lower half above */
    return _mm256_add_epi32(x, _mm256_shuffle_epi32(lower, 0xff));
}

/*
 * In 32 bits, which is right as long as nothing leaves them. While every x, difference and sum is within ±2^29 nothing can: each comes
 * from two such numbers. All three are watched; where one is not, the block is refused.
 */
enum { WATCHED = 1 << 29 };

VARIANT static inline __attribute__((always_inline)) bool
sum_eights(const uint32_t *x, size_t count, const unsigned order, const bool has_missing, struct sq_grib_sums *sums, int32_t *restrict out)
{
    const __m256i last_lane = _mm256_set1_epi32(7), missing = _mm256_set1_epi32(-1), hole = _mm256_set1_epi32(INT32_MIN);
    const __m256i bias = _mm256_set1_epi32((int)sums->bias), within = _mm256_set1_epi32(WATCHED);
    __m256i last = _mm256_set1_epi32((int)sums->last), difference = _mm256_set1_epi32((int)sums->difference);
    __m256i beyond = _mm256_setzero_si256(), beyond_x = beyond;
    for (size_t i = 0; i < count; i += LANES) {
        __m256i step = _mm256_loadu_si256((const __m256i *)(x + i));
        __m256i gone = has_missing ? _mm256_cmpeq_epi32(step, missing) : _mm256_setzero_si256();
        beyond_x = _mm256_or_si256(beyond_x, has_missing ? _mm256_andnot_si256(gone, step) : step);
        step = _mm256_add_epi32(step, bias);
        if (has_missing)
            step = _mm256_andnot_si256(gone, step);
        if (order == 2) {
            step = _mm256_add_epi32(running_sums(step), difference);
            difference = _mm256_permutevar8x32_epi32(step, last_lane);
            beyond = _mm256_or_si256(beyond, _mm256_add_epi32(step, within));
            if (has_missing)
                step = _mm256_andnot_si256(gone, step);
        }
        __m256i sum = _mm256_add_epi32(running_sums(step), last);
        last = _mm256_permutevar8x32_epi32(sum, last_lane);
        beyond = _mm256_or_si256(beyond, _mm256_add_epi32(sum, within));
        _mm256_storeu_si256((__m256i *)(out + i), has_missing ? _mm256_blendv_epi8(sum, hole, gone) : sum);
    }
    sums->last = (uint64_t)(int64_t)_mm256_cvtsi256_si32(last);
    sums->difference = (uint64_t)(int64_t)_mm256_cvtsi256_si32(difference);
    beyond = _mm256_or_si256(_mm256_srli_epi32(beyond, 30), _mm256_srli_epi32(beyond_x, 29));
    return _mm256_testz_si256(beyond, beyond);
}

static bool is_within(uint64_t x)
{
    return x + WATCHED < 2 * (uint64_t)WATCHED;
}

VARIANT static bool sum_up_avx2(const uint32_t *x, size_t count, bool has_missing, struct sq_grib_sums *sums, int32_t *out)
{
    size_t eights = count / LANES * LANES;
    if (sums->order == 0 || !is_within(sums->bias) || !is_within(sums->last) || !is_within(sums->difference))
        return sum_up_plain(x, count, has_missing, sums, out);
    bool fits;
    if (sums->order == 1)
        fits = has_missing ? sum_eights(x, eights, 1, true, sums, out) : sum_eights(x, eights, 1, false, sums, out);
    else
        fits = has_missing ? sum_eights(x, eights, 2, true, sums, out) : sum_eights(x, eights, 2, false, sums, out);
    return fits && sum_up_plain(x + eights, count - eights, has_missing, sums, out + eights);
}

VARIANT static inline __attribute__((always_inline)) void integrate(struct sq_grib_ccsds *s, uint32_t *restrict out);
#define UNPACK_PIECE(bytes, end, bit, piece, out) unpack_piece(bytes, end, bit, piece, 0, out)
#define INTEGRATE(s, out)                         integrate(s, out)
#include "format/grib/kernels_ccsds.h"

/*
 * As if every difference alternated in sign, which is right as long as each is no more than twice the room on the narrower side of its predecessor;
 * a block where one is not is done value by value.
 */
VARIANT static inline __attribute__((always_inline)) void integrate(struct sq_grib_ccsds *s, uint32_t *restrict out)
{
    const __m256i one = _mm256_set1_epi32(1), zero = _mm256_setzero_si256(), last_lane = _mm256_set1_epi32(7);
    const __m256i most = _mm256_set1_epi32((int)((UINT64_C(1) << s->bits) - 1));
    __m256i last = _mm256_set1_epi32((int)s->last), narrow = zero, samples[SQ_GRIB_CCSDS_BLOCK / LANES];
    for (unsigned i = 0; i < s->block / LANES; i++) {
        __m256i d = _mm256_loadu_si256((const __m256i *)(out + LANES * i));
        __m256i step = _mm256_xor_si256(_mm256_srli_epi32(d, 1), _mm256_sub_epi32(zero, _mm256_and_si256(d, one)));
        __m256i x = _mm256_add_epi32(running_sums(step), last), before = _mm256_sub_epi32(x, step);
        __m256i room = _mm256_min_epu32(before, _mm256_sub_epi32(most, before));
        __m256i half = _mm256_sub_epi32(d, _mm256_srli_epi32(d, 1));
        narrow = _mm256_or_si256(narrow, _mm256_sub_epi32(_mm256_max_epu32(half, room), room));
        last = _mm256_permutevar8x32_epi32(x, last_lane);
        samples[i] = x;
    }
    if (!_mm256_testz_si256(narrow, narrow)) {
        integrate_plain(s, out);
        return;
    }
    for (unsigned i = 0; i < s->block / LANES; i++)
        _mm256_storeu_si256((__m256i *)(out + LANES * i), samples[i]);
    s->last = (uint32_t)_mm256_cvtsi256_si32(last);
}

/* One rounding instead of two conversions; see sq_grib_scale_of. */
#define EXACT_LOOP(NAME, SOURCE)                                                                                                           \
    VARIANT static void NAME(const void *src, size_t count, const struct sq_grib_scale *scale, float *restrict dst)                        \
    {                                                                                                                                      \
        const SOURCE *restrict in = src;                                                                                                   \
        const float reference = (float)scale->reference, binary = (float)scale->binary;                                                    \
        for (size_t i = 0; i < count; i++)                                                                                                 \
            dst[i] = __builtin_fmaf((float)in[i], binary, reference);                                                                      \
    }

EXACT_LOOP(u8_to_float32_exact, uint8_t)
EXACT_LOOP(u16_to_float32_exact, uint16_t)
EXACT_LOOP(i32_to_float32_exact, int32_t)

/* Sub is a running sum of samples; step: 1, 2 or 4. Returns the bytes done. */
VARIANT static inline __attribute__((always_inline)) size_t unfilter_sub(uint8_t *row, size_t count, const unsigned step)
{
    const __m128i last_sample = step == 1 ? _mm_set1_epi8(15) : step == 2 ? _mm_set1_epi16(0x0f0e) : _mm_set1_epi32(0x0f0e0d0c);
    __m128i before = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(row + i));
        if (step == 1)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 1));
        if (step <= 2)
            x = _mm_add_epi8(x, _mm_slli_si128(x, 2));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 4));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 8));
        x = _mm_add_epi8(x, before);
        _mm_storeu_si128((__m128i *)(row + i), x);
        before = _mm_shuffle_epi8(x, last_sample);
    }
    return i;
}

VARIANT static inline __attribute__((always_inline)) __m128i load_sample(const uint8_t *p, const unsigned step)
{
    int32_t bits = 0;
    memcpy(&bits, p, step);
    return _mm_cvtepu8_epi16(_mm_cvtsi32_si128(bits));
}

/* A sample's bytes side by side in 16-bit lanes; the chain from sample to sample is all that is left in sequence. */
VARIANT static inline __attribute__((always_inline)) size_t unfilter_paeth(uint8_t *row, const uint8_t *above_row, size_t count,
                                                                           const unsigned step)
{
    const __m128i low = _mm_set1_epi16(255);
    __m128i left = _mm_setzero_si128(), corner = left;
    size_t i = 0;
    for (; i + step <= count; i += step) {
        __m128i above = load_sample(above_row + i, step), sample = load_sample(row + i, step);
        __m128i to_left = _mm_sub_epi16(above, corner), to_above = _mm_sub_epi16(left, corner);
        __m128i to_corner = _mm_abs_epi16(_mm_add_epi16(to_left, to_above));
        to_left = _mm_abs_epi16(to_left);
        to_above = _mm_abs_epi16(to_above);
        __m128i least = _mm_min_epi16(to_corner, _mm_min_epi16(to_left, to_above));
        __m128i nearest = _mm_blendv_epi8(corner, above, _mm_cmpeq_epi16(least, to_above));
        nearest = _mm_blendv_epi8(nearest, left, _mm_cmpeq_epi16(least, to_left));
        left = _mm_and_si128(_mm_add_epi16(nearest, sample), low);
        int32_t bits = _mm_cvtsi128_si32(_mm_packus_epi16(left, left));
        memcpy(row + i, &bits, step);
        corner = above;
    }
    return i;
}

VARIANT static bool unfilter_avx2(unsigned filter, uint8_t *row, const uint8_t *above, size_t count, unsigned step)
{
    size_t done = 0;
    if (filter == PNG_SUB && step != 3)
        done = step == 1 ? unfilter_sub(row, count, 1) : step == 2 ? unfilter_sub(row, count, 2) : unfilter_sub(row, count, 4);
    if (filter == PNG_PAETH && step > 1)
        done = step == 2   ? unfilter_paeth(row, above, count, 2)
               : step == 3 ? unfilter_paeth(row, above, count, 3)
                           : unfilter_paeth(row, above, count, 4);
    if (done == 0)
        return unfilter_plain(filter, row, above, count, step);
    for (size_t i = done; i < count; i++)
        row[i] = (uint8_t)(row[i] + (filter == PNG_SUB ? row[i - step] : paeth(row[i - step], above[i], above[i - step])));
    return true;
}

static const struct sq_grib_kernels avx2 = {
    .unpack = unpack_avx2,
    .sum_up = sum_up_avx2,
    .to_float32 = SCALE_TABLE(float32),
    .to_float32_exact = {[SQ_GRIB_U8] = u8_to_float32_exact, [SQ_GRIB_U16] = u16_to_float32_exact, [SQ_GRIB_I32] = i32_to_float32_exact},
    .to_float64 = SCALE_TABLE(float64),
    .count_ones = count_ones,
    .expand_float32 = expand_float32_avx2,
    .expand_float64 = expand_float64,
    .unfilter = unfilter_avx2,
    .ccsds_block = ccsds_block,
};

const struct sq_grib_kernels *sq_grib_kernels_avx2(void)
{
    return &avx2;
}

#else

const struct sq_grib_kernels *sq_grib_kernels_avx2(void)
{
    return NULL;
}

#endif
