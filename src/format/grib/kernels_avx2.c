/*
 * The kernels for AVX2. Unpacking takes eight values a step: eight values of n bits are n whole bytes, so one byte shuffle and one
 * shift, made once a piece, serve all of it wherever its first bit lies.
 */
#include "format/grib/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VARIANT __attribute__((target("avx2,fma,bmi2,popcnt")))
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

VARIANT static void unpack_avx2(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, const struct sq_grib_piece *pieces,
                                size_t piece_count, unsigned missing, uint32_t *out)
{
    const uint8_t *end = bytes + size_bytes;
    for (size_t k = 0; k < piece_count; k++) {
        struct sq_grib_piece piece = pieces[k];
        uint64_t bit = first_bit;
        first_bit += (uint64_t)piece.width * piece.count;
        if (piece.width == 0) {
            fill(piece.base, piece.count, out);
        } else {
            uint32_t done = piece.width <= NARROW ? unpack_narrow(bytes, end, bit, &piece, missing, out) : 0;
            if (done < piece.count) {
                struct sq_grib_piece rest = {piece.base, piece.count - done, piece.width};
                unpack_piece_plain(bytes, end, bit + (uint64_t)done * piece.width, &rest, highest_value(piece.width, missing), out + done);
            }
        }
        out += piece.count;
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

static const struct sq_grib_kernels avx2 = {
    .unpack = unpack_avx2,
    .to_float32 = SCALE_TABLE(float32),
    .to_float64 = SCALE_TABLE(float64),
    .count_ones = count_ones,
    .expand_float32 = expand_float32_avx2,
    .expand_float64 = expand_float64,
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
