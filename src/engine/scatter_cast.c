/*
 * Casts. Every kernel casts one piece of a row as if overflow were wanted, and reports in flags whether something did not fit; only
 * then is the piece looked at again, value by value. So the usual case, where all fits, costs one pass without a branch.
 * One body is compiled for plain x86-64 (or any machine) and for AVX2; the cast to float16 has an F16C form of its own.
 */
#include "array/dtype.h"
#include "engine/scatter.h"
#include "sys/cpu.h"
#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define WITH_AVX2 __attribute__((target("avx2,fma,f16c,bmi2")))
#endif

enum { PIECE = 2048 }; /* elements: source and destination stay in the first-level cache when a piece is looked at again */

enum flag {
    BEYOND = 1, /* a finite value (integers: or an infinity) outside the type's range */
    NOT_A_NUMBER = 2,
};

/* Cast n elements; returns a set of enum flag. fill is what NaN becomes in integers. */
typedef unsigned cast_row(const void *src, void *dst, size_t n, int64_t fill);

/* ---- float16 -------------------------------------------------------------------------------------------------------------------- */

static unsigned float_to_half(const void *src, void *dst, size_t n, int64_t fill)
{
    (void)fill;
    const float *from = src;
    uint16_t *to = dst;
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = sq_half_from_float(from[i]);
        flags |= (fabsf(from[i]) >= 65520.0F) & (fabsf(from[i]) <= FLT_MAX);
    }
    return flags;
}

#if defined(WITH_AVX2)
WITH_AVX2 static inline __m256 beyond_half(__m256 v)
{
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v);
    return _mm256_and_ps(_mm256_cmp_ps(magnitude, _mm256_set1_ps(65520.0F), _CMP_GE_OQ),
                         _mm256_cmp_ps(magnitude, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ));
}

WITH_AVX2 static unsigned float_to_half_avx2(const void *src, void *dst, size_t n, int64_t fill)
{
    const float *from = src;
    uint16_t *to = dst;
    __m256 beyond = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = _mm256_loadu_ps(from + i);
        __m256 b = _mm256_loadu_ps(from + i + 8);
        beyond = _mm256_or_ps(beyond, _mm256_or_ps(beyond_half(a), beyond_half(b)));
        _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128((__m128i *)(to + i + 8), _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT));
    }
    unsigned flags = _mm256_movemask_ps(beyond) ? BEYOND : 0;
    return flags | float_to_half(from + i, to + i, n - i, fill);
}
#endif

/* ---- the other types: bodies that the compiler vectorises ------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) unsigned double_to_float_body(const void *src, void *dst, size_t n)
{
    const double *restrict from = src;
    float *restrict to = dst;
    unsigned flags = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
        flags |= (fabsf(to[i]) > FLT_MAX) & (fabs(from[i]) <= DBL_MAX);
    }
    return flags;
}

static inline __attribute__((always_inline)) unsigned float_to_double_body(const void *src, void *dst, size_t n)
{
    const float *restrict from = src;
    double *restrict to = dst;
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
    return 0;
}

/*
 * S source, W what is calculated in, D destination; low and high are the range's ends in W. For 64 bits `high` is the greatest W that
 * D can hold, below D's own greatest.
 */
#define INTEGER_BODY(name, S, W, round, D, low, high, greatest)                                                                            \
    static inline __attribute__((always_inline)) unsigned name##_body(const void *src, void *dst, size_t n, int64_t fill)                  \
    {                                                                                                                                      \
        const S *restrict from = src;                                                                                                      \
        D *restrict to = dst;                                                                                                              \
        unsigned beyond = 0, nan = 0;                                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                                                                   \
            W value = round((W)from[i]);                                                                                                   \
            W safe = value >= (low) ? value : (low); /* NaN: low */                                                                        \
            safe = safe <= (high) ? safe : (high);                                                                                         \
            D cast = value > (high) ? (greatest) : (D)safe;                                                                                \
            beyond |= (value < (low)) | (value > (high));                                                                                  \
            nan |= value != value;                                                                                                         \
            to[i] = value == value ? cast : (D)fill;                                                                                       \
        }                                                                                                                                  \
        return (beyond ? BEYOND : 0) | (nan ? NOT_A_NUMBER : 0);                                                                           \
    }

INTEGER_BODY(float_to_int8, float, float, rintf, int8_t, -128.0F, 127.0F, INT8_MAX)
INTEGER_BODY(float_to_int16, float, float, rintf, int16_t, -32768.0F, 32767.0F, INT16_MAX)
INTEGER_BODY(float_to_int32, float, double, rint, int32_t, -0x1p31, 0x1p31 - 1, INT32_MAX)
INTEGER_BODY(float_to_int64, float, double, rint, int64_t, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX)
INTEGER_BODY(float_to_uint8, float, float, rintf, uint8_t, 0.0F, 255.0F, UINT8_MAX)
INTEGER_BODY(float_to_uint16, float, float, rintf, uint16_t, 0.0F, 65535.0F, UINT16_MAX)
INTEGER_BODY(float_to_uint32, float, double, rint, uint32_t, 0.0, 0x1p32 - 1, UINT32_MAX)
INTEGER_BODY(float_to_uint64, float, double, rint, uint64_t, 0.0, 0x1.fffffffffffffp63, UINT64_MAX)
INTEGER_BODY(double_to_int8, double, double, rint, int8_t, -128.0, 127.0, INT8_MAX)
INTEGER_BODY(double_to_int16, double, double, rint, int16_t, -32768.0, 32767.0, INT16_MAX)
INTEGER_BODY(double_to_int32, double, double, rint, int32_t, -0x1p31, 0x1p31 - 1, INT32_MAX)
INTEGER_BODY(double_to_int64, double, double, rint, int64_t, -0x1p63, 0x1.fffffffffffffp62, INT64_MAX)
INTEGER_BODY(double_to_uint8, double, double, rint, uint8_t, 0.0, 255.0, UINT8_MAX)
INTEGER_BODY(double_to_uint16, double, double, rint, uint16_t, 0.0, 65535.0, UINT16_MAX)
INTEGER_BODY(double_to_uint32, double, double, rint, uint32_t, 0.0, 0x1p32 - 1, UINT32_MAX)
INTEGER_BODY(double_to_uint64, double, double, rint, uint64_t, 0.0, 0x1.fffffffffffffp63, UINT64_MAX)

#if defined(WITH_AVX2)
#define DEFINE(name, ...)                                                                                                                  \
    static unsigned name(const void *src, void *dst, size_t n, int64_t fill)                                                               \
    {                                                                                                                                      \
        (void)fill;                                                                                                                        \
        return name##_body(src, dst, n __VA_ARGS__);                                                                                       \
    }                                                                                                                                      \
    WITH_AVX2 static unsigned name##_avx2(const void *src, void *dst, size_t n, int64_t fill)                                              \
    {                                                                                                                                      \
        (void)fill;                                                                                                                        \
        return name##_body(src, dst, n __VA_ARGS__);                                                                                       \
    }
#define BOTH(name)                                                                                                                         \
    {                                                                                                                                      \
        name, name##_avx2                                                                                                                  \
    }
#else
#define DEFINE(name, ...)                                                                                                                  \
    static unsigned name(const void *src, void *dst, size_t n, int64_t fill)                                                               \
    {                                                                                                                                      \
        (void)fill;                                                                                                                        \
        return name##_body(src, dst, n __VA_ARGS__);                                                                                       \
    }
#define BOTH(name)                                                                                                                         \
    {                                                                                                                                      \
        name, name                                                                                                                         \
    }
#endif

DEFINE(double_to_float)
DEFINE(float_to_double)
DEFINE(float_to_int8, , fill)
DEFINE(float_to_int16, , fill)
DEFINE(float_to_int32, , fill)
DEFINE(float_to_int64, , fill)
DEFINE(float_to_uint8, , fill)
DEFINE(float_to_uint16, , fill)
DEFINE(float_to_uint32, , fill)
DEFINE(float_to_uint64, , fill)
DEFINE(double_to_int8, , fill)
DEFINE(double_to_int16, , fill)
DEFINE(double_to_int32, , fill)
DEFINE(double_to_int64, , fill)
DEFINE(double_to_uint8, , fill)
DEFINE(double_to_uint16, , fill)
DEFINE(double_to_uint32, , fill)
DEFINE(double_to_uint64, , fill)

/* Through float32, as the values of a field are defined. */
static unsigned double_to_half(const void *src, void *dst, size_t n, int64_t fill)
{
    float middle[PIECE];
    unsigned flags = double_to_float(src, middle, n, fill);
    return flags | float_to_half(middle, dst, n, fill);
}

#if defined(WITH_AVX2)
static unsigned double_to_half_avx2(const void *src, void *dst, size_t n, int64_t fill)
{
    float middle[PIECE];
    unsigned flags = double_to_float_avx2(src, middle, n, fill);
    return flags | float_to_half_avx2(middle, dst, n, fill);
}
#endif

struct cast_pair {
    cast_row *plain, *avx2;
};

static const struct cast_pair casts_from_float[] = {
    [SQUALL_INT8] = BOTH(float_to_int8),      [SQUALL_INT16] = BOTH(float_to_int16),   [SQUALL_INT32] = BOTH(float_to_int32),
    [SQUALL_INT64] = BOTH(float_to_int64),    [SQUALL_UINT8] = BOTH(float_to_uint8),   [SQUALL_UINT16] = BOTH(float_to_uint16),
    [SQUALL_UINT32] = BOTH(float_to_uint32),  [SQUALL_UINT64] = BOTH(float_to_uint64), [SQUALL_FLOAT16] = BOTH(float_to_half),
    [SQUALL_FLOAT64] = BOTH(float_to_double),
};

static const struct cast_pair casts_from_double[] = {
    [SQUALL_INT8] = BOTH(double_to_int8),     [SQUALL_INT16] = BOTH(double_to_int16),   [SQUALL_INT32] = BOTH(double_to_int32),
    [SQUALL_INT64] = BOTH(double_to_int64),   [SQUALL_UINT8] = BOTH(double_to_uint8),   [SQUALL_UINT16] = BOTH(double_to_uint16),
    [SQUALL_UINT32] = BOTH(double_to_uint32), [SQUALL_UINT64] = BOTH(double_to_uint64), [SQUALL_FLOAT16] = BOTH(double_to_half),
    [SQUALL_FLOAT32] = BOTH(double_to_float),
};

/* ---- value by value, where something did not fit ---------------------------------------------------------------------------------- */

double sq_type_greatest(enum squall_type type)
{
    switch (type) {
    case SQUALL_INT8:
        return INT8_MAX;
    case SQUALL_INT16:
        return INT16_MAX;
    case SQUALL_INT32:
        return INT32_MAX;
    case SQUALL_INT64:
        return (double)INT64_MAX;
    case SQUALL_BOOL:
        return 1;
    case SQUALL_UINT8:
        return UINT8_MAX;
    case SQUALL_UINT16:
        return UINT16_MAX;
    case SQUALL_UINT32:
        return UINT32_MAX;
    case SQUALL_UINT64:
        return (double)UINT64_MAX;
    case SQUALL_FLOAT16:
        return 65504;
    case SQUALL_FLOAT32:
        return (double)FLT_MAX;
    case SQUALL_FLOAT64:
        return DBL_MAX;
    default:
        break;
    }
    return 0;
}

static bool is_unsigned(enum squall_type type)
{
    return type == SQUALL_UINT8 || type == SQUALL_UINT16 || type == SQUALL_UINT32 || type == SQUALL_UINT64;
}

/* NaN in an integer does not fit here; where it has a fill the caller has asked before. */
static bool value_fits(enum squall_type type, double value)
{
    if (type == SQUALL_FLOAT16)
        return !isfinite(value) || fabsf((float)value) < 65520.0F;
    if (type == SQUALL_FLOAT32)
        return !isfinite(value) || isfinite((float)value);
    double rounded = rint(value);
    double greatest = sq_type_greatest(type);
    double least = is_unsigned(type) ? 0 : -greatest - 1;
    if (type == SQUALL_INT64 || type == SQUALL_UINT64) /* their greatest values, as doubles, are one too many */
        return rounded >= least && rounded < greatest;
    return rounded >= least && rounded <= greatest;
}

static double value_at(enum squall_type type, const void *src, size_t i)
{
    return type == SQUALL_FLOAT32 ? (double)((const float *)src)[i] : ((const double *)src)[i];
}

static double first_misfit(enum squall_type src_type, const void *src, enum squall_type dst_type, size_t n, bool nan_fits)
{
    for (size_t i = 0; i < n; i++) {
        double value = value_at(src_type, src, i);
        if (!value_fits(dst_type, value) && !(nan_fits && isnan(value)))
            return value;
    }
    return NAN;
}

/* Infinities that came of finite values → the greatest finite ones. (The integer kernels have clipped already.) */
static void clip_floats(enum squall_type src_type, const void *src, enum squall_type dst_type, void *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double value = value_at(src_type, src, i);
        if (value_fits(dst_type, value))
            continue;
        if (dst_type == SQUALL_FLOAT16)
            ((uint16_t *)dst)[i] = value < 0 ? 0xfbff : 0x7bff;
        else
            ((float *)dst)[i] = value < 0 ? -FLT_MAX : FLT_MAX;
    }
}

/* ---- the whole box ---------------------------------------------------------------------------------------------------------------- */

struct cast {
    enum squall_type src_type, dst_type;
    cast_row *row;
    enum sq_overflow overflow;
    const int64_t *integer_fill;
};

static bool cast_piece(const struct cast *c, const void *src, void *dst, size_t n, double *ret_value)
{
    unsigned flags = c->row(src, dst, n, c->integer_fill ? *c->integer_fill : 0);
    if (flags == 0)
        return true;
    bool to_float = sq_type_is_float(c->dst_type);
    bool nan_misfits = (flags & NOT_A_NUMBER) && !c->integer_fill;
    bool beyond_is_wrong = c->overflow == SQ_OVERFLOW_ERROR || (c->overflow == SQ_OVERFLOW_INF && !to_float);
    if (((flags & BEYOND) && beyond_is_wrong) || nan_misfits) {
        if (ret_value)
            *ret_value = beyond_is_wrong ? first_misfit(c->src_type, src, c->dst_type, n, c->integer_fill != NULL) : NAN;
        return false;
    }
    if (to_float && c->overflow == SQ_OVERFLOW_CLIP)
        clip_floats(c->src_type, src, c->dst_type, dst, n);
    return true;
}

static void copy_rows(const void *src, size_t src_row_bytes, void *dst, size_t dst_row_bytes, size_t rows, size_t row_bytes)
{
    for (size_t r = 0; r < rows; r++)
        memcpy((uint8_t *)dst + r * dst_row_bytes, (const uint8_t *)src + r * src_row_bytes, row_bytes);
}

bool sq_scatter_cast(enum squall_type src_type, const void *src, size_t src_row_stride, enum squall_type dst_type, void *dst,
                     size_t dst_row_stride, size_t rows, size_t columns, enum sq_overflow overflow, const int64_t *integer_fill,
                     double *ret_value)
{
    assert(src_type == SQUALL_FLOAT32 || src_type == SQUALL_FLOAT64);
    assert(dst_type >= SQUALL_INT8 && dst_type <= SQUALL_FLOAT64);
    if (src_row_stride == columns && dst_row_stride == columns) {
        columns *= rows;
        rows = 1;
    }
    size_t src_bytes = sq_type_size(src_type);
    size_t dst_bytes = sq_type_size(dst_type);
    if (src_type == dst_type) {
        copy_rows(src, src_row_stride * src_bytes, dst, dst_row_stride * dst_bytes, rows, columns * src_bytes);
        return true;
    }
    const struct cast_pair *pair = src_type == SQUALL_FLOAT32 ? &casts_from_float[dst_type] : &casts_from_double[dst_type];
    const struct cast c = {src_type, dst_type, sq_cpu_features() & SQ_CPU_AVX2 ? pair->avx2 : pair->plain, overflow, integer_fill};
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *from = (const uint8_t *)src + r * src_row_stride * src_bytes;
        uint8_t *to = (uint8_t *)dst + r * dst_row_stride * dst_bytes;
        for (size_t at = 0; at < columns; at += PIECE) {
            size_t n = columns - at < PIECE ? columns - at : PIECE;
            if (!cast_piece(&c, from + at * src_bytes, to + at * dst_bytes, n, ret_value))
                return false;
        }
    }
    return true;
}
