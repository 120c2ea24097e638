/*
 * Loops that every variant shares: the source is the same, the compiler vectorises it for the instruction set that VARIANT names.
 * Included by kernels.c and kernels_avx2.c, which define VARIANT (a function attribute, or nothing) and MULTIPLY_ADD(a, b, c).
 */
#include "format/grib/kernels.h"
#include <math.h>
#include <stdlib.h>
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

#define SCALED(x)          (MULTIPLY_ADD((double)(x), binary, reference) * decimal)
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

/*
 * The sums of one order, with and without missing values. Sums are kept to 30 bits, so that whoever computes them in 32 can tell when they
 * leave them.
 */
static inline __attribute__((always_inline)) bool sum_loop(const uint32_t *x, size_t count, const unsigned order, const bool has_missing,
                                                           struct sq_grib_sums *sums, int32_t *restrict out)
{
    uint64_t last = sums->last, difference = sums->difference, beyond = 0;
    const uint64_t bias = order ? sums->bias : 0;
    for (size_t i = 0; i < count; i++) {
        bool gone = has_missing && x[i] == SQ_GRIB_MISSING_U32;
        uint64_t step = gone ? 0 : x[i] + bias;
        if (order == 2) {
            difference += step;
            last += gone ? 0 : difference;
        } else {
            last = order ? last + step : step;
        }
        beyond |= (last + (UINT64_C(1) << 30)) >> 31;
        out[i] = gone ? INT32_MIN : (int32_t)last;
    }
    sums->last = last;
    sums->difference = difference;
    return beyond == 0;
}

VARIANT static bool sum_up_plain(const uint32_t *x, size_t count, bool has_missing, struct sq_grib_sums *sums, int32_t *out)
{
    switch (sums->order * 2 + has_missing) {
    case 0:
        return sum_loop(x, count, 0, false, sums, out);
    case 1:
        return sum_loop(x, count, 0, true, sums, out);
    case 2:
        return sum_loop(x, count, 1, false, sums, out);
    case 3:
        return sum_loop(x, count, 1, true, sums, out);
    case 4:
        return sum_loop(x, count, 2, false, sums, out);
    default:
        return sum_loop(x, count, 2, true, sums, out);
    }
}

enum { PNG_NONE, PNG_SUB, PNG_UP, PNG_AVERAGE, PNG_PAETH };

/* Whichever of left, above and upper left is nearest to left + above - upper left, in this order. */
static inline __attribute__((always_inline)) int paeth(int left, int above, int corner)
{
    int to_left = abs(above - corner), to_above = abs(left - corner), to_corner = abs(left + above - 2 * corner);
    if (to_left <= to_above && to_left <= to_corner)
        return left;
    return to_above <= to_corner ? above : corner;
}

/* One filter and one step, both known when compiled: what is left of a byte stays in registers. */
static inline __attribute__((always_inline)) void unfilter_row(const unsigned filter, uint8_t *row, const uint8_t *restrict above,
                                                               size_t count, const unsigned step)
{
    int left[4] = {0}, corner[4] = {0};
    for (size_t i = 0; i < count; i += step)
        for (unsigned k = 0; k < step && i + k < count; k++) {
            int up = above[i + k];
            int guess = filter == PNG_SUB       ? left[k]
                        : filter == PNG_UP      ? up
                        : filter == PNG_AVERAGE ? (left[k] + up) >> 1
                                                : paeth(left[k], up, corner[k]);
            left[k] = row[i + k] = (uint8_t)(row[i + k] + guess);
            corner[k] = up;
        }
}

static inline __attribute__((always_inline)) void unfilter_steps(const unsigned filter, uint8_t *row, const uint8_t *above, size_t count,
                                                                 unsigned step)
{
    switch (step) {
    case 1:
        unfilter_row(filter, row, above, count, 1);
        break;
    case 2:
        unfilter_row(filter, row, above, count, 2);
        break;
    case 3:
        unfilter_row(filter, row, above, count, 3);
        break;
    default:
        unfilter_row(filter, row, above, count, 4);
        break;
    }
}

VARIANT static bool unfilter_plain(unsigned filter, uint8_t *row, const uint8_t *above, size_t count, unsigned step)
{
    switch (filter) {
    case PNG_NONE:
        return true;
    case PNG_SUB:
        unfilter_steps(PNG_SUB, row, above, count, step);
        return true;
    case PNG_UP:
        unfilter_row(PNG_UP, row, above, count, 1);
        return true;
    case PNG_AVERAGE:
        unfilter_steps(PNG_AVERAGE, row, above, count, step);
        return true;
    case PNG_PAETH:
        unfilter_steps(PNG_PAETH, row, above, count, step);
        return true;
    default:
        return false;
    }
}
