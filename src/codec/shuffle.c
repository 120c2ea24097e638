/* The shuffles, plainly; x86/shuffle_avx2.c does most of each where it can. */
#include "codec/shuffle.h"
#include "sys/cpu.h"
#include <string.h>

/* The elements that a wide kernel has done: none on a processor without it. */
static size_t wide(size_t (*kernel)(size_t, size_t, const uint8_t *, uint8_t *), size_t width, size_t elements, const uint8_t *src,
                   uint8_t *dst)
{
    return sq_cpu_features() & SQ_CPU_AVX2 ? kernel(width, elements, src, dst) : 0;
}

void sq_shuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst)
{
    size_t elements = size_bytes / width;
    size_t done = wide(sq_shuffle_avx2, width, elements, src, dst);
    for (size_t b = 0; b < width; b++)
        for (size_t i = done; i < elements; i++)
            dst[b * elements + i] = src[i * width + b];
    memcpy(dst + elements * width, src + elements * width, size_bytes - elements * width);
}

void sq_unshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst)
{
    size_t elements = size_bytes / width;
    size_t done = wide(sq_unshuffle_avx2, width, elements, src, dst);
    for (size_t i = done; i < elements; i++)
        for (size_t b = 0; b < width; b++)
            dst[i * width + b] = src[b * elements + i];
    memcpy(dst + elements * width, src + elements * width, size_bytes - elements * width);
}

/* The same of one block, [from, end) of its size_bytes. */
static void unshuffle_part_of_block(size_t width, size_t size_bytes, const uint8_t *src, size_t from, size_t end, uint8_t *dst)
{
    const size_t elements = size_bytes / width, shuffled = elements * width;
    size_t element = from / width, b = from % width, at = from;
    for (; at < end && at < shuffled; at++) {
        *dst++ = src[b * elements + element];
        if (++b == width) {
            b = 0;
            element++;
        }
    }
    memcpy(dst, src + at, end - at);
}

void sq_unshuffle_part(const struct sq_shuffle_layout *layout, size_t size_bytes, const uint8_t *src, size_t from, size_t count_bytes,
                       uint8_t *dst)
{
    while (count_bytes > 0) {
        const size_t begin = from - from % layout->block_bytes, left = size_bytes - begin;
        const size_t block = left < layout->block_bytes ? left : layout->block_bytes, within = from - begin;
        const size_t count = count_bytes < block - within ? count_bytes : block - within;
        unshuffle_part_of_block(layout->width, block, src + begin, within, within + count, dst);
        from += count;
        dst += count;
        count_bytes -= count;
    }
}

/* Byte k of the result holds bit k of each of the eight bytes: an 8 × 8 bit matrix transposed in three steps of swaps. */
static uint64_t transpose_bits(uint64_t x)
{
    uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
    return x ^ t ^ (t << 28);
}

void sq_bitshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst)
{
    size_t elements = size_bytes / width;
    size_t row = elements / 8; /* bytes that one bit of all elements takes */
    if (elements % 8 != 0) {
        memcpy(dst, src, size_bytes);
        return;
    }
    size_t done = wide(sq_bitshuffle_avx2, width, elements, src, dst);
    for (size_t b = 0; b < width; b++) {
        for (size_t i = done / 8; i < row; i++) {
            uint64_t x = 0;
            for (unsigned k = 0; k < 8; k++)
                x |= (uint64_t)src[(8 * i + k) * width + b] << (8 * k);
            x = transpose_bits(x);
            for (unsigned k = 0; k < 8; k++)
                dst[(8 * b + k) * row + i] = (uint8_t)(x >> (8 * k));
        }
    }
    memcpy(dst + elements * width, src + elements * width, size_bytes - elements * width);
}

void sq_bitunshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst)
{
    size_t elements = size_bytes / width;
    size_t row = elements / 8;
    if (elements % 8 != 0) {
        memcpy(dst, src, size_bytes);
        return;
    }
    size_t done = wide(sq_bitunshuffle_avx2, width, elements, src, dst);
    for (size_t b = 0; b < width; b++) {
        for (size_t i = done / 8; i < row; i++) {
            uint64_t x = 0;
            for (unsigned k = 0; k < 8; k++)
                x |= (uint64_t)src[(8 * b + k) * row + i] << (8 * k);
            x = transpose_bits(x);
            for (unsigned k = 0; k < 8; k++)
                dst[(8 * i + k) * width + b] = (uint8_t)(x >> (8 * k));
        }
    }
    memcpy(dst + elements * width, src + elements * width, size_bytes - elements * width);
}
