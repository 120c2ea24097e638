/*
 * Byte shuffle with AVX2. Separating even from odd bytes halves the width of what is left, so W registers (32 elements of
 * W bytes) are sorted into planes in log2 W such steps; register p then holds the plane whose number is p with its bits reversed. Unshuffle
 * runs the steps backwards. The loops have constant bounds and vanish in the compiler.
 */
#include "codec/shuffle.h"

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

#endif
