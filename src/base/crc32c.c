/* See crc32c.h. The processor's own instruction where it is there, else eight tables (slicing by 8). */
#include "base/crc32c.h"
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p, size_t count)
{
    uint64_t state = crc;
    for (; count >= 8; count -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        state = _mm_crc32_u64(state, word);
    }
    uint32_t small = (uint32_t)state;
    for (; count; count--, p++)
        small = _mm_crc32_u8(small, *p);
    return small;
}
#endif

static uint32_t table[8][256];
static atomic_int table_ready;

/* Several threads may fill it at once: they write the same values. */
static void fill_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? UINT32_C(0x82f63b78) : 0);
        __atomic_store_n(&table[0][i], c, __ATOMIC_RELAXED);
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++) {
            uint32_t before = table[t - 1][i];
            __atomic_store_n(&table[t][i], before >> 8 ^ table[0][before & 255], __ATOMIC_RELAXED);
        }
    atomic_store(&table_ready, 1);
}

static uint32_t crc_tables(uint32_t crc, const uint8_t *p, size_t count)
{
    if (!atomic_load(&table_ready))
        fill_table();
    for (; count >= 8; count -= 8, p += 8) {
        uint32_t a = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^
              table[1][p[6]] ^ table[0][p[7]];
    }
    for (; count; count--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
    return crc;
}

uint32_t sq_crc32c(uint32_t crc, const void *bytes, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_sse42(~crc, bytes, count);
#endif
    return ~crc_tables(~crc, bytes, count);
}
