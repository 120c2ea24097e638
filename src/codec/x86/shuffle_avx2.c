/*
 * Byte shuffle with AVX2. Separating even from odd bytes halves the width of what is left, so W registers (32 elements of
 * W bytes) are sorted into planes in log2 W such steps; register p then holds the plane whose number is p with its bits reversed. Unshuffle
 * runs the steps backwards. The loops have constant bounds and vanish in the compiler.
 *
 * Bit shuffle goes through byte planes of RUN elements in the first-level cache: there a movemask takes one bit of 32 bytes,
 * and on the way back 8 × 8 bit matrices are transposed, four to a register.
 */
#include "codec/shuffle.h"
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_AVX2   __attribute__((target("avx2")))
#define INLINE_AVX2 WITH_AVX2 static inline __attribute__((always_inline))

enum { GROUP = 32 }; /* elements at a time */

INLINE_AVX2 unsigned reversed(unsigned p, unsigned width)
{
    unsigned r = 0;
    for (unsigned bit = 1; bit < width; bit *= 2, p /= 2)
        r = 2 * r + p % 2;
    return r;
}

/* Registers a, b in memory order → their even bytes in *even, their odd ones in *odd. */
INLINE_AVX2 void separate(__m256i a, __m256i b, __m256i *even, __m256i *odd)
{
    const __m256i low = _mm256_set1_epi16(0x00ff);
    __m256i e = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    __m256i o = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    *even = _mm256_permute4x64_epi64(e, 0xd8); /* packus works within 128-bit lanes */
    *odd = _mm256_permute4x64_epi64(o, 0xd8);
}

INLINE_AVX2 void join(__m256i even, __m256i odd, __m256i *a, __m256i *b)
{
    __m256i low = _mm256_unpacklo_epi8(even, odd);
    __m256i high = _mm256_unpackhi_epi8(even, odd);
    *a = _mm256_permute2x128_si256(low, high, 0x20);
    *b = _mm256_permute2x128_si256(low, high, 0x31);
}

INLINE_AVX2 size_t shuffle(const unsigned width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    size_t i = 0;
    for (; i + GROUP <= elements; i += GROUP) {
        __m256i x[16], y[16];
#pragma GCC unroll 16
        for (unsigned k = 0; k < width; k++)
            x[k] = _mm256_loadu_si256((const __m256i *)(src + i * width + 32 * k));
#pragma GCC unroll 4
        for (unsigned part = width; part > 1; part /= 2) { /* each run of `part` registers falls into halves */
#pragma GCC unroll 16
            for (unsigned k = 0; k < width / 2; k++) {
                unsigned run = k / (part / 2) * part, at = k % (part / 2);
                separate(x[run + 2 * at], x[run + 2 * at + 1], &y[run + at], &y[run + part / 2 + at]);
            }
#pragma GCC unroll 16
            for (unsigned k = 0; k < width; k++)
                x[k] = y[k]; // cppcheck-suppress uninitvar // join wrote it
        }
#pragma GCC unroll 16
        for (unsigned k = 0; k < width; k++)
            _mm256_storeu_si256((__m256i *)(dst + reversed(k, width) * elements + i), x[k]);
    }
    return i;
}

INLINE_AVX2 size_t unshuffle(const unsigned width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    size_t i = 0;
    for (; i + GROUP <= elements; i += GROUP) {
        __m256i x[16], y[16];
#pragma GCC unroll 16
        for (unsigned k = 0; k < width; k++)
            x[k] = _mm256_loadu_si256((const __m256i *)(src + reversed(k, width) * elements + i));
#pragma GCC unroll 4
        for (unsigned part = 2; part <= width; part *= 2) {
#pragma GCC unroll 16
            for (unsigned k = 0; k < width / 2; k++) {
                unsigned run = k / (part / 2) * part, at = k % (part / 2);
                join(x[run + at], x[run + part / 2 + at], &y[run + 2 * at], &y[run + 2 * at + 1]);
            }
#pragma GCC unroll 16
            for (unsigned k = 0; k < width; k++)
                x[k] = y[k]; // cppcheck-suppress uninitvar // join wrote it
        }
#pragma GCC unroll 16
        for (unsigned k = 0; k < width; k++)
            _mm256_storeu_si256((__m256i *)(dst + i * width + 32 * k), x[k]);
    }
    return i;
}

WITH_AVX2 size_t sq_shuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    switch (width) {
    case 2:
        return shuffle(2, elements, src, dst);
    case 4:
        return shuffle(4, elements, src, dst);
    case 8:
        return shuffle(8, elements, src, dst);
    case 16:
        return shuffle(16, elements, src, dst);
    default:
        return 0;
    }
}

WITH_AVX2 size_t sq_unshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    switch (width) {
    case 2:
        return unshuffle(2, elements, src, dst);
    case 4:
        return unshuffle(4, elements, src, dst);
    case 8:
        return unshuffle(8, elements, src, dst);
    case 16:
        return unshuffle(16, elements, src, dst);
    default:
        return 0;
    }
}

enum { RUN = 256, WIDTH_MAX = 16 };

/* RUN elements, byte by byte where their width has no kernel. */
static void run_to_planes(size_t width, const uint8_t *src, uint8_t *planes)
{
    if (sq_shuffle_avx2(width, RUN, src, planes) == RUN)
        return;
    for (size_t i = 0; i < RUN; i++)
        for (size_t b = 0; b < width; b++)
            planes[b * RUN + i] = src[i * width + b];
}

static void planes_to_run(size_t width, const uint8_t *planes, uint8_t *dst)
{
    if (sq_unshuffle_avx2(width, RUN, planes, dst) == RUN)
        return;
    for (size_t i = 0; i < RUN; i++)
        for (size_t b = 0; b < width; b++)
            dst[i * width + b] = planes[b * RUN + i];
}

/* RUN bytes of one plane → RUN / 8 bytes of each of its eight rows, `row` apart. */
INLINE_AVX2 void bytes_to_rows(const uint8_t *plane, uint8_t *dst, size_t row)
{
    for (size_t i = 0; i < RUN / 32; i++) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(plane + 32 * i));
        for (unsigned k = 8; k-- > 0;) { /* the highest bit of each byte, then the next one in its place */
            uint32_t bits = (uint32_t)_mm256_movemask_epi8(v);
            memcpy(dst + k * row + 4 * i, &bits, sizeof bits);
            v = _mm256_add_epi8(v, v);
        }
    }
}

/* Swap the bits of x that `mask` names with those `shift` above them. */
INLINE_AVX2 __m256i swap_bits(__m256i x, int shift, uint64_t mask)
{
    __m256i t = _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, shift)), _mm256_set1_epi64x((long long)mask));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, shift)));
}

/* The way back: byte j of the eight rows, brought together, is a matrix whose columns are the bytes 8 j to 8 j + 7 of the plane. */
INLINE_AVX2 void rows_to_bytes(const uint8_t *src, size_t row, uint8_t *plane)
{
    __m256i r[8], pairs[8], fours[8];
#pragma GCC unroll 8
    for (unsigned k = 0; k < 8; k++)
        r[k] = _mm256_loadu_si256((const __m256i *)(src + k * row));
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) { /* pairs: rows 2 k and 2 k + 1, first the lower halves of the lanes, then the upper */
        pairs[k] = _mm256_unpacklo_epi8(r[2 * k], r[2 * k + 1]);
        pairs[4 + k] = _mm256_unpackhi_epi8(r[2 * k], r[2 * k + 1]);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) { /* fours: rows 0 to 3 in even places, 4 to 7 in odd ones */
        fours[k] = _mm256_unpacklo_epi16(pairs[k / 2 * 4 + k % 2 * 2], pairs[k / 2 * 4 + k % 2 * 2 + 1]);
        fours[4 + k] = _mm256_unpackhi_epi16(pairs[k / 2 * 4 + k % 2 * 2], pairs[k / 2 * 4 + k % 2 * 2 + 1]);
    }
#pragma GCC unroll 8
    for (unsigned t = 0; t < 8; t++) { /* matrices 2 t and 2 t + 1, and those 16 further on in the upper lane */
        unsigned at = t / 4 * 2 + t / 2 % 2 * 4;
        __m256i x = t % 2 ? _mm256_unpackhi_epi32(fours[at], fours[at + 1]) : _mm256_unpacklo_epi32(fours[at], fours[at + 1]);
        x = swap_bits(x, 7, 0x00aa00aa00aa00aa);
        x = swap_bits(x, 14, 0x0000cccc0000cccc);
        x = swap_bits(x, 28, 0x00000000f0f0f0f0);
        _mm_storeu_si128((__m128i *)(plane + 16 * t), _mm256_castsi256_si128(x));
        _mm_storeu_si128((__m128i *)(plane + RUN / 2 + 16 * t), _mm256_extracti128_si256(x, 1));
    }
}

WITH_AVX2 size_t sq_bitshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    uint8_t planes[WIDTH_MAX * RUN];
    size_t row = elements / 8, done = 0;
    for (; width <= WIDTH_MAX && done + RUN <= elements; done += RUN) {
        const uint8_t *from = src + done * width;
        if (width > 1)
            run_to_planes(width, from, planes);
        for (size_t b = 0; b < width; b++)
            bytes_to_rows(width > 1 ? planes + b * RUN : from, dst + 8 * b * row + done / 8, row);
    }
    return done;
}

WITH_AVX2 size_t sq_bitunshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    uint8_t planes[WIDTH_MAX * RUN];
    size_t row = elements / 8, done = 0;
    for (; width <= WIDTH_MAX && done + RUN <= elements; done += RUN) {
        uint8_t *to = dst + done * width;
        for (size_t b = 0; b < width; b++)
            rows_to_bytes(src + 8 * b * row + done / 8, row, width > 1 ? planes + b * RUN : to);
        if (width > 1)
            planes_to_run(width, planes, to);
    }
    return done;
}

#else

size_t sq_shuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    (void)width, (void)elements, (void)src, (void)dst;
    return 0;
}

size_t sq_unshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    (void)width, (void)elements, (void)src, (void)dst;
    return 0;
}

size_t sq_bitshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    (void)width, (void)elements, (void)src, (void)dst;
    return 0;
}

size_t sq_bitunshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst)
{
    (void)width, (void)elements, (void)src, (void)dst;
    return 0;
}

#endif
