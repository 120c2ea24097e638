/*
 * Two independent lanes of multiply and fold over 16-byte steps; the length goes in at the end, so that no padding collides.
 * The constants are the golden ratio's bits and digits of pi: arbitrary, but fixed for ever, since stores record hashes.
 */
#include "base/hash.h"
#include <string.h>

static const uint64_t MIX_A = UINT64_C(0x9e3779b97f4a7c15);
static const uint64_t MIX_B = UINT64_C(0x243f6a8885a308d3);
static const uint64_t MIX_C = UINT64_C(0x13198a2e03707345);
static const uint64_t MIX_D = UINT64_C(0xa4093822299f31d1);

static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load_le(const uint8_t *p, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

struct sq_hash sq_hash_more(struct sq_hash before, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    uint64_t high = before.high ^ MIX_A, low = before.low ^ MIX_B;
    size_t left = count;
    for (; left >= 16; left -= 16, p += 16) {
        uint64_t a = load_le(p, 8), b = load_le(p + 8, 8);
        high = fold(high ^ a, MIX_C ^ b) + b;
        low = fold(low ^ b, MIX_D ^ a) + a;
    }
    uint64_t a = load_le(p, left < 8 ? left : 8), b = left > 8 ? load_le(p + 8, left - 8) : 0;
    high = fold(high ^ a, MIX_C ^ b ^ count) + low;
    low = fold(low ^ b, MIX_D ^ a ^ count) + high;
    return (struct sq_hash){fold(high ^ MIX_D, low ^ MIX_A) ^ high, fold(low ^ MIX_C, high ^ MIX_B) ^ low};
}

struct sq_hash sq_hash_bytes(const void *bytes, size_t count)
{
    return sq_hash_more((struct sq_hash){0, 0}, bytes, count);
}

void sq_hash_text(struct sq_hash h, char ret[SQ_HASH_TEXT_BYTES])
{
    static const char DIGITS[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        ret[i] = DIGITS[h.high >> (60 - 4 * i) & 15];
        ret[16 + i] = DIGITS[h.low >> (60 - 4 * i) & 15];
    }
    ret[32] = 0;
}
