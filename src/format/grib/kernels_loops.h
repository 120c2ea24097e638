/*
 * Loops that every variant shares: the source is the same, the compiler vectorises it for the instruction set that VARIANT names.
 * Included by kernels.c and kernels_avx2.c, which define VARIANT (a function attribute, or nothing).
 */
#include "format/grib/kernels.h"
#include <math.h>
#include <string.h>

/* Bytes of a message lie at any address. */
struct unaligned32 {
    uint32_t value;
} __attribute__((packed, may_alias));
struct unaligned64 {
    uint64_t value;
} __attribute__((packed, may_alias));

static inline __attribute__((always_inline)) float big_float32(struct unaligned32 x)
{
    uint32_t bits = __builtin_bswap32(x.value);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline __attribute__((always_inline)) double big_float64(struct unaligned64 x)
{
    uint64_t bits = __builtin_bswap64(x.value);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define SCALED(x)          (((double)(x)*binary + reference) * decimal)
#define SCALED_OR(x, gone) ((x) == (gone) ? (double)NAN : SCALED(x))

/* One loop: NAME turns count elements of SOURCE into DESTINATION by VALUE, an expression of x. */
#define SCALE_LOOP(NAME, SOURCE, DESTINATION, VALUE)                                                                                       \
    VARIANT static void NAME(const void *src, size_t count, const struct sq_grib_scale *scale, DESTINATION *restrict dst)                  \
    {                                                                                                                                      \
        const SOURCE *restrict in = src;                                                                                                   \
        const double reference = scale->reference, binary = scale->binary, decimal = scale->decimal;                                       \
        (void)reference, (void)binary, (void)decimal;                                                                                      \
        for (size_t i = 0; i < count; i++) {                                                                                               \
            const SOURCE x = in[i];                                                                                                        \
            dst[i] = (DESTINATION)(VALUE);                                                                                                 \
        }                                                                                                                                  \
    }

#define SCALE_LOOPS(SUFFIX, DESTINATION)                                                                                                   \
    SCALE_LOOP(u8_to_##SUFFIX, uint8_t, DESTINATION, SCALED(x))                                                                            \
    SCALE_LOOP(u16_to_##SUFFIX, uint16_t, DESTINATION, SCALED(x))                                                                          \
    SCALE_LOOP(u32_to_##SUFFIX, uint32_t, DESTINATION, SCALED(x))                                                                          \
    SCALE_LOOP(i32_to_##SUFFIX, int32_t, DESTINATION, SCALED(x))                                                                           \
    SCALE_LOOP(i32_missing_to_##SUFFIX, int32_t, DESTINATION, SCALED_OR(x, INT32_MIN))                                                     \
    SCALE_LOOP(i64_missing_to_##SUFFIX, int64_t, DESTINATION, SCALED_OR(x, INT64_MAX))                                                     \
    SCALE_LOOP(big_float32_to_##SUFFIX, struct unaligned32, DESTINATION, big_float32(x))                                                   \
    SCALE_LOOP(big_float64_to_##SUFFIX, struct unaligned64, DESTINATION, big_float64(x))

SCALE_LOOPS(float32, float)
SCALE_LOOPS(float64, double)

/* Designators of the two tables in struct sq_grib_kernels. */
#define SCALE_TABLE(SUFFIX)                                                                                                                \
    {                                                                                                                                      \
        [SQ_GRIB_U8] = u8_to_##SUFFIX, [SQ_GRIB_U16] = u16_to_##SUFFIX, [SQ_GRIB_U32] = u32_to_##SUFFIX, [SQ_GRIB_I32] = i32_to_##SUFFIX,  \
        [SQ_GRIB_I32_MISSING] = i32_missing_to_##SUFFIX, [SQ_GRIB_I64_MISSING] = i64_missing_to_##SUFFIX,                                  \
        [SQ_GRIB_BIG_FLOAT32] = big_float32_to_##SUFFIX, [SQ_GRIB_BIG_FLOAT64] = big_float64_to_##SUFFIX,                                  \
    }

VARIANT static uint64_t count_ones(const uint8_t *bytes, size_t size_bytes)
{
    uint64_t ones = 0;
    size_t i = 0;
    for (; i + 8 <= size_bytes; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        ones += (uint64_t)__builtin_popcountll(word);
    }
    for (; i < size_bytes; i++)
        ones += (uint64_t)__builtin_popcount(bytes[i]);
    return ones;
}

/* Branch-free: a mask is as often random as it is smooth. */
#define EXPAND_LOOP(NAME, TYPE)                                                                                                            \
    VARIANT static __attribute__((unused)) size_t NAME(const uint8_t *bitmap, size_t bitmap_bytes, const TYPE *dense, size_t dense_count,  \
                                                       TYPE *restrict dst, size_t *used)                                                   \
    {                                                                                                                                      \
        size_t at = 0, done = 0;                                                                                                           \
        for (; done < bitmap_bytes && at + 8 <= dense_count; done++) {                                                                     \
            unsigned bits = bitmap[done];                                                                                                  \
            for (unsigned k = 0; k < 8; k++) {                                                                                             \
                unsigned one = bits >> (7 - k) & 1;                                                                                        \
                TYPE value = dense[at];                                                                                                    \
                dst[8 * done + k] = one ? value : (TYPE)NAN;                                                                               \
                at += one;                                                                                                                 \
            }                                                                                                                              \
        }                                                                                                                                  \
        *used = at;                                                                                                                        \
        return done;                                                                                                                       \
    }

EXPAND_LOOP(expand_float32_plain, float)
EXPAND_LOOP(expand_float64, double)

/* 8 bytes from p on as a big-endian number, where fewer are left as if zeros followed. */
static inline __attribute__((always_inline)) uint64_t big_word(const uint8_t *p, const uint8_t *end)
{
    uint64_t word = 0;
    if (end - p >= 8)
        memcpy(&word, p, sizeof word);
    else
        memcpy(&word, p, (size_t)(end - p));
    return __builtin_bswap64(word);
}

/* One piece, value by value: the reference, and what the wide forms leave over. The missing codes are those above `highest`. */
VARIANT static void unpack_piece_plain(const uint8_t *bytes, const uint8_t *end, uint64_t bit, const struct sq_grib_piece *piece,
                                       int64_t highest, uint32_t *restrict out)
{
    if (piece->width == 0) {
        for (uint32_t i = 0; i < piece->count; i++)
            out[i] = piece->base;
        return;
    }
    for (uint32_t i = 0; i < piece->count; i++, bit += piece->width) {
        uint64_t code = big_word(bytes + (bit >> 3), end) << (bit & 7) >> (64 - piece->width);
        out[i] = (int64_t)code > highest ? SQ_GRIB_MISSING_U32 : piece->base + (uint32_t)code;
    }
}

/* The highest code of a width that is a value; -1: none is. */
static inline int64_t highest_value(unsigned width, unsigned missing)
{
    return (INT64_C(1) << width) - 1 - (int64_t)missing;
}
