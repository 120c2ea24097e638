/* See number.h. */
#include "codec/number.h"
#include "base/error_internal.h"
#include "base/half.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum sq_number_kind sq_number_kind_of(enum squall_type type)
{
    switch (type) {
    case SQUALL_INT8:
    case SQUALL_INT16:
    case SQUALL_INT32:
    case SQUALL_INT64:
    case SQUALL_INT2:
    case SQUALL_INT4:
    case SQUALL_DATETIME64:
    case SQUALL_TIMEDELTA64:
        return SQ_SIGNED;
    case SQUALL_BOOL:
    case SQUALL_UINT8:
    case SQUALL_UINT16:
    case SQUALL_UINT32:
    case SQUALL_UINT64:
    case SQUALL_UINT2:
    case SQUALL_UINT4:
        return SQ_UNSIGNED;
    case SQUALL_FLOAT16:
    case SQUALL_BFLOAT16:
    case SQUALL_FLOAT32:
        return SQ_SINGLE;
    case SQUALL_FLOAT64:
        return SQ_DOUBLE;
    default:
        return SQ_NO_NUMBER;
    }
}

/* ---- load ------------------------------------------------------------------------------------------------------------------------- */

/* Elements may lie anywhere: they are taken out by bytes, which costs nothing. */
#define LOAD(T, member)                                                                                                                    \
    do {                                                                                                                                   \
        for (size_t n = 0; n < count; n++) {                                                                                               \
            T element;                                                                                                                     \
            memcpy(&element, (const uint8_t *)src + n * sizeof element, sizeof element);                                                   \
            ret->member[n] = element;                                                                                                      \
        }                                                                                                                                  \
    } while (0)

static void load_short_floats(enum squall_type type, const void *src, size_t count, union sq_numbers *ret)
{
    for (size_t n = 0; n < count; n++) {
        uint16_t bits;
        memcpy(&bits, (const uint8_t *)src + 2 * n, sizeof bits);
        if (type == SQUALL_FLOAT16) {
            ret->f[n] = sq_half_to_float(bits);
        } else {
            uint32_t wide = (uint32_t)bits << 16;
            memcpy(&ret->f[n], &wide, sizeof wide);
        }
    }
}

void sq_numbers_load(enum squall_type type, const void *src, size_t count, union sq_numbers *ret)
{
    switch (type) {
    case SQUALL_INT2:
    case SQUALL_INT4:
    case SQUALL_INT8:
        LOAD(int8_t, i);
        break;
    case SQUALL_INT16:
        LOAD(int16_t, i);
        break;
    case SQUALL_INT32:
        LOAD(int32_t, i);
        break;
    case SQUALL_UINT16:
        LOAD(uint16_t, u);
        break;
    case SQUALL_UINT32:
        LOAD(uint32_t, u);
        break;
    case SQUALL_INT64:
    case SQUALL_DATETIME64:
    case SQUALL_TIMEDELTA64:
    case SQUALL_UINT64:
    case SQUALL_FLOAT64:
        memcpy(ret, src, count * 8);
        break;
    case SQUALL_FLOAT32:
        memcpy(ret, src, count * 4);
        break;
    case SQUALL_FLOAT16:
    case SQUALL_BFLOAT16:
        load_short_floats(type, src, count, ret);
        break;
    default: /* bool and small naturals */
        LOAD(uint8_t, u);
    }
}

/* ---- convert ---------------------------------------------------------------------------------------------------------------------- */

static const double two_to_63 = 9223372036854775808.0;

static int64_t whole(double value)
{
    return value >= -two_to_63 && value < two_to_63 ? (int64_t)value : INT64_MIN;
}

static uint64_t natural(double value)
{
    return value >= two_to_63 && value < 2 * two_to_63 ? (uint64_t)value : (uint64_t)whole(value);
}

#define CONVERT(from_member, to_member, expression)                                                                                        \
    for (size_t n = 0; n < count; n++) {                                                                                                   \
        union sq_numbers *const m = numbers;                                                                                               \
        m->to_member[n] = (expression);                                                                                                    \
    }

/* Where both have eight bytes, or floats grow: from the end on, so that none is overwritten before it is read. */
static void widen(union sq_numbers *numbers, enum sq_number_kind to, size_t count)
{
    for (size_t n = count; n-- > 0;) {
        float value = numbers->f[n];
        if (to == SQ_DOUBLE)
            numbers->d[n] = value;
        else if (to == SQ_SIGNED)
            numbers->i[n] = whole(value);
        else
            numbers->u[n] = natural(value);
    }
}

void sq_numbers_convert(union sq_numbers *numbers, enum sq_number_kind from, enum sq_number_kind to, size_t count)
{
    if (from == to || (from == SQ_SIGNED && to == SQ_UNSIGNED) || (from == SQ_UNSIGNED && to == SQ_SIGNED))
        return;
    if (from == SQ_SINGLE)
        widen(numbers, to, count);
    else if (from == SQ_DOUBLE && to == SQ_SINGLE)
        CONVERT(d, f, (float)m->d[n])
    else if (from == SQ_DOUBLE && to == SQ_SIGNED)
        CONVERT(d, i, whole(m->d[n]))
    else if (from == SQ_DOUBLE)
        CONVERT(d, u, natural(m->d[n]))
    else if (from == SQ_SIGNED && to == SQ_SINGLE)
        CONVERT(i, f, (float)m->i[n])
    else if (from == SQ_SIGNED)
        CONVERT(i, d, (double)m->i[n])
    else if (to == SQ_SINGLE)
        CONVERT(u, f, (float)m->u[n])
    else
        CONVERT(u, d, (double)m->u[n])
}

/* ---- store ------------------------------------------------------------------------------------------------------------------------ */

#define STORE(T, member)                                                                                                                   \
    do {                                                                                                                                   \
        for (size_t n = 0; n < count; n++) {                                                                                               \
            T element = (T)numbers->member[n];                                                                                             \
            memcpy((uint8_t *)dst + n * sizeof element, &element, sizeof element);                                                         \
        }                                                                                                                                  \
    } while (0)

static uint16_t brain_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void store_short_floats(enum squall_type type, const union sq_numbers *numbers, enum sq_number_kind kind, size_t count, void *dst)
{
    for (size_t n = 0; n < count; n++) {
        float value = kind == SQ_DOUBLE ? sq_float_to_odd(numbers->d[n]) : numbers->f[n];
        uint16_t bits = type == SQUALL_FLOAT16 ? sq_half_from_float(value) : brain_from_float(value);
        memcpy((uint8_t *)dst + 2 * n, &bits, sizeof bits);
    }
}

static void store_floats(enum squall_type type, union sq_numbers *numbers, enum sq_number_kind kind, size_t count, void *dst)
{
    if (type == SQUALL_FLOAT16 || type == SQUALL_BFLOAT16) {
        if (kind == SQ_SIGNED || kind == SQ_UNSIGNED) {
            sq_numbers_convert(numbers, kind, SQ_SINGLE, count);
            kind = SQ_SINGLE;
        }
        store_short_floats(type, numbers, kind, count, dst);
        return;
    }
    sq_numbers_convert(numbers, kind, type == SQUALL_FLOAT64 ? SQ_DOUBLE : SQ_SINGLE, count);
    memcpy(dst, numbers, count * (type == SQUALL_FLOAT64 ? 8 : 4));
}

/* Of floating numbers: as the processor's conversion to 32 bits has it, where that is what C's cast goes through. */
static void cut_to_32_bits(union sq_numbers *numbers, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (numbers->i[n] < INT32_MIN || numbers->i[n] > INT32_MAX)
            numbers->i[n] = INT32_MIN;
}

static void store_truths(union sq_numbers *numbers, enum sq_number_kind kind, size_t count, uint8_t *dst)
{
    for (size_t n = 0; n < count; n++)
        dst[n] = kind == SQ_SINGLE ? numbers->f[n] != 0 : kind == SQ_DOUBLE ? numbers->d[n] != 0 : numbers->u[n] != 0;
}

void sq_numbers_store(enum squall_type type, union sq_numbers *numbers, enum sq_number_kind kind, size_t count, void *dst)
{
    enum sq_number_kind stored = sq_number_kind_of(type);
    bool floating = kind == SQ_SINGLE || kind == SQ_DOUBLE;
    size_t width = sq_type_size(type);
    if (type == SQUALL_BOOL) {
        store_truths(numbers, kind, count, dst);
        return;
    }
    if (stored == SQ_SINGLE || stored == SQ_DOUBLE) {
        store_floats(type, numbers, kind, count, dst);
        return;
    }
    sq_numbers_convert(numbers, kind, type == SQUALL_UINT64 ? SQ_UNSIGNED : SQ_SIGNED, count);
    if (floating && (width < 4 || type == SQUALL_INT32))
        cut_to_32_bits(numbers, count);
    if (width == 1)
        STORE(uint8_t, u);
    else if (width == 2)
        STORE(uint16_t, u);
    else if (width == 4)
        STORE(uint32_t, u);
    else
        memcpy(dst, numbers, count * 8);
}

void sq_numbers_round(enum squall_type type, union sq_numbers *numbers, size_t count)
{
    if (type != SQUALL_FLOAT16)
        return;
    for (size_t n = 0; n < count; n++)
        numbers->f[n] = sq_half_to_float(sq_half_from_float(numbers->f[n]));
}

void sq_number_range(enum squall_type type, __int128 *ret_least, __int128 *ret_greatest)
{
    unsigned bits = 8 * (unsigned)sq_type_size(type);
    if (type == SQUALL_INT2 || type == SQUALL_UINT2)
        bits = 2;
    else if (type == SQUALL_INT4 || type == SQUALL_UINT4)
        bits = 4;
    bool is_signed = sq_number_kind_of(type) == SQ_SIGNED;
    *ret_least = is_signed ? -((__int128)1 << (bits - 1)) : 0;
    *ret_greatest = ((__int128)1 << (is_signed ? bits - 1 : bits)) - 1;
}

bool sq_float_from_json(const struct sq_json *value, enum squall_type type, double *ret)
{
    const char *text = sq_json_string(value);
    size_t digits = 2 * sq_type_size(type);
    if (!text)
        return sq_json_double(value, ret);
    if (strcmp(text, "NaN") == 0)
        *ret = NAN;
    else if (strcmp(text, "Infinity") == 0 || strcmp(text, "-Infinity") == 0)
        *ret = text[0] == '-' ? -INFINITY : INFINITY;
    else if (strncmp(text, "0x", 2) == 0 && strlen(text + 2) == digits && strspn(text + 2, "0123456789abcdefABCDEF") == digits) {
        uint64_t bits = strtoull(text, NULL, 16);
        union sq_numbers number;
        if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
            bits <<= 64 - 4 * digits;
        sq_numbers_load(type, &bits, 1, &number);
        *ret = type == SQUALL_FLOAT64 ? number.d[0] : (double)number.f[0];
    } else {
        return false;
    }
    return true;
}

/* ---- names ------------------------------------------------------------------------------------------------------------------------ */

/* numpy's: an order, a letter, a size. */
static bool from_numpy_name(const char *name, enum squall_type *ret, bool *ret_big)
{
    static const struct {
        const char *name;
        enum squall_type type;
    } names[] = {{"b1", SQUALL_BOOL},    {"?", SQUALL_BOOL},     {"i1", SQUALL_INT8},   {"i2", SQUALL_INT16},  {"i4", SQUALL_INT32},
                 {"i8", SQUALL_INT64},   {"u1", SQUALL_UINT8},   {"u2", SQUALL_UINT16}, {"u4", SQUALL_UINT32}, {"u8", SQUALL_UINT64},
                 {"f2", SQUALL_FLOAT16}, {"f4", SQUALL_FLOAT32}, {"f8", SQUALL_FLOAT64}};
    *ret_big = name[0] == '>';
    name += name[0] && strchr("<>|=", name[0]) ? 1 : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0) {
            *ret = names[i].type;
            *ret_big = *ret_big && sq_type_size(*ret) > 1;
            return true;
        }
    }
    *ret = SQUALL_INT64; /* numcodecs looks at times as at whole numbers */
    return strncmp(name, "M8", 2) == 0 || strncmp(name, "m8", 2) == 0;
}

static bool is_same(enum squall_type a, enum squall_type b)
{
    bool both_whole = sq_number_kind_of(a) == SQ_SIGNED && sq_number_kind_of(b) == SQ_SIGNED;
    return a == b || (both_whole && sq_type_size(a) == 8 && sq_type_size(b) == 8);
}

int sq_number_type(const struct sq_stage *stage, const struct sq_json *configuration, const char *key, const struct sq_stage_array *array,
                   bool given, enum squall_type *ret, bool *ret_big, struct squall_error *err)
{
    const struct sq_json *v = sq_json_get(configuration, key);
    const char *name = sq_json_string(v), *codec = stage->ops->name;
    enum squall_type type = array->dtype.type;
    bool big = array->big_endian, is_type = true;
    if (sq_json_type(v) > SQ_JSON_NULL && !name)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported \"%s\": it is no name of a type", codec, key);
    if (name && sq_type_from_name(name, &type))
        big = false;
    else if (name)
        is_type = from_numpy_name(name, &type, &big);
    if (!is_type || sq_number_kind_of(type) == SQ_NO_NUMBER)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported \"%s\" %.60s", codec, key, name ? name : sq_type_name(type));
    if (given && (!is_same(type, array->dtype.type) || (big != array->big_endian && sq_type_size(type) > 1)))
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported \"%s\" %.60s for elements of %s%s", codec, key, name ? name : "",
                        array->big_endian ? "big-endian " : "", sq_type_name(array->dtype.type));
    if (big && !array->from_numpy)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec %s: unsupported \"%s\" %.60s: big-endian", codec, key, name ? name : "");
    *ret = type;
    *ret_big = big;
    return 0;
}
