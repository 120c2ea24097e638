/* See swap.h. AVX2 turns the bytes of 64 at once, wherever elements begin in them; the plain loops do the rest. */
#include "codec/swap.h"
#include "sys/cpu.h"
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

/* Which byte of its 16 each one comes from. */
static const uint8_t order_2[] = {1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14};
static const uint8_t order_4[] = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};
static const uint8_t order_8[] = {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8};

enum { STEP = 64 };

__attribute__((target("avx2"))) static __m256i order_of(unsigned swap_bytes)
{
    const uint8_t *order = swap_bytes == 2 ? order_2 : swap_bytes == 4 ? order_4 : order_8;
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)order));
}

/* The bytes that are done: whole steps. */
__attribute__((target("avx2"))) static size_t swap_avx2(uint8_t *dst, const uint8_t *src, size_t size_bytes, unsigned swap_bytes)
{
    const __m256i mask = order_of(swap_bytes);
    size_t at = 0;
    for (; at + STEP <= size_bytes; at += STEP) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(src + at)), b = _mm256_loadu_si256((const __m256i *)(src + at + 32));
        _mm256_storeu_si256((__m256i *)(dst + at), _mm256_shuffle_epi8(a, mask));
        _mm256_storeu_si256((__m256i *)(dst + at + 32), _mm256_shuffle_epi8(b, mask));
    }
    return at;
}

/* The same, of a dst where a step begins a cache line. */
__attribute__((target("avx2"))) static size_t stream_avx2(uint8_t *dst, const uint8_t *src, size_t size_bytes, unsigned swap_bytes)
{
    const __m256i mask = order_of(swap_bytes);
    size_t at = 0;
    for (; at + STEP <= size_bytes; at += STEP) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(src + at)), b = _mm256_loadu_si256((const __m256i *)(src + at + 32));
        _mm256_stream_si256((__m256i *)(dst + at), _mm256_shuffle_epi8(a, mask));
        _mm256_stream_si256((__m256i *)(dst + at + 32), _mm256_shuffle_epi8(b, mask));
    }
    return at;
}
#endif

#define SWAP_ALL(T, swap)                                                                                                                  \
    for (; at + sizeof(T) <= size_bytes; at += sizeof(T)) {                                                                                \
        T element;                                                                                                                         \
        memcpy(&element, from + at, sizeof element);                                                                                       \
        element = swap(element);                                                                                                           \
        memcpy(to + at, &element, sizeof element);                                                                                         \
    }

void sq_swap(void *dst, const void *src, size_t size_bytes, unsigned swap_bytes)
{
    const uint8_t *from = src;
    uint8_t *to = dst;
    size_t at = 0;
#if defined(__x86_64__)
    if (sq_cpu_features() & SQ_CPU_AVX2)
        at = swap_avx2(to, from, size_bytes, swap_bytes);
#endif
    if (swap_bytes == 2)
        SWAP_ALL(uint16_t, __builtin_bswap16)
    else if (swap_bytes == 4)
        SWAP_ALL(uint32_t, __builtin_bswap32)
    else
        SWAP_ALL(uint64_t, __builtin_bswap64)
}

void sq_swap_stream(void *dst, const void *src, size_t size_bytes, unsigned swap_bytes)
{
    size_t done = 0;
#if defined(__x86_64__)
    const size_t head = -(uintptr_t)dst % STEP;
    if (sq_cpu_features() & SQ_CPU_AVX2 && head % swap_bytes == 0 && head < size_bytes) {
        sq_swap(dst, src, head, swap_bytes);
        done = head + stream_avx2((uint8_t *)dst + head, (const uint8_t *)src + head, size_bytes - head, swap_bytes);
    }
#endif
    sq_swap((uint8_t *)dst + done, (const uint8_t *)src + done, size_bytes - done, swap_bytes);
}
