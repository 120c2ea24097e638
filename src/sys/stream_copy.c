/* See stream_copy.h. Whole cache lines bypass the caches; what lies before the first and behind the last of them does not. */
#include "sys/stream_copy.h"
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

enum { LINE_BYTES = 64 };

void sq_stream_copy(void *dst, const void *src, size_t size_bytes)
{
    uint8_t *to = dst;
    const uint8_t *from = src;
    size_t head = -(uintptr_t)to % LINE_BYTES;
    if (size_bytes < head + LINE_BYTES) {
        memcpy(to, from, size_bytes);
        return;
    }
    memcpy(to, from, head);
    size_t at = head;
    for (; at + LINE_BYTES <= size_bytes; at += LINE_BYTES) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(from + at)), b = _mm_loadu_si128((const __m128i *)(from + at + 16));
        const __m128i c = _mm_loadu_si128((const __m128i *)(from + at + 32)), d = _mm_loadu_si128((const __m128i *)(from + at + 48));
        _mm_stream_si128((__m128i *)(to + at), a);
        _mm_stream_si128((__m128i *)(to + at + 16), b);
        _mm_stream_si128((__m128i *)(to + at + 32), c);
        _mm_stream_si128((__m128i *)(to + at + 48), d);
    }
    memcpy(to + at, from + at, size_bytes - at);
}

void sq_stream_copy_done(void)
{
    _mm_sfence();
}
#else
void sq_stream_copy(void *dst, const void *src, size_t size_bytes)
{
    memcpy(dst, src, size_bytes);
}

void sq_stream_copy_done(void)
{
}
#endif
