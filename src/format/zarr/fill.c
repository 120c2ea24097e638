/* See fill.h. Each value is read as what its type can hold exactly, and refused where it cannot: a fill value is data. */
#include "format/zarr/fill.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* IEEE 754 binary16, nearest even; a value beyond its range is infinite, as in numpy. */
static uint16_t half_of(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (magnitude >= 65520) /* half way from the greatest finite value to the next power of two */
        return sign | 0x7c00;
    if (magnitude < 0x1p-14) /* subnormal: multiples of 2^-24, and the carry into the first normal number is right */
        return sign | (uint16_t)nearbyint(magnitude * 0x1p24);
    int exponent;
    double fraction = frexp(magnitude, &exponent);          /* 0.5 ≤ fraction < 1 */
    unsigned bits = (unsigned)nearbyint(fraction * 0x1p11); /* 11 significant bits, the first of them implied */
    return sign | (uint16_t)(((unsigned)(exponent + 13) << 10) + bits);
}

static void put_float(enum squall_type type, double value, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    float single = (float)value;
    uint16_t half = half_of(value);
    if (type == SQUALL_FLOAT64)
        memcpy(ret, &value, sizeof value);
    else if (type == SQUALL_FLOAT32)
        memcpy(ret, &single, sizeof single);
    else
        memcpy(ret, &half, sizeof half);
}

/* "0x" and exactly the type's bits in hexadecimal, most significant first. */
static bool put_bits(enum squall_type type, const char *text, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    size_t digits = 2 * sq_type_size(type);
    if (strncmp(text, "0x", 2) != 0 || strlen(text + 2) != digits || strspn(text + 2, "0123456789abcdefABCDEF") != digits)
        return false;
    uint64_t bits = strtoull(text + 2, NULL, 16);
    uint32_t bits32 = (uint32_t)bits;
    uint16_t bits16 = (uint16_t)bits;
    if (digits == 16)
        memcpy(ret, &bits, sizeof bits);
    else if (digits == 8)
        memcpy(ret, &bits32, sizeof bits32);
    else
        memcpy(ret, &bits16, sizeof bits16);
    return true;
}

static bool parse_float(enum squall_type type, const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    double number;
    const char *text = sq_json_string(value);
    if (text) {
        if (!strcmp(text, "NaN"))
            number = (double)NAN;
        else if (!strcmp(text, "Infinity"))
            number = (double)INFINITY;
        else if (!strcmp(text, "-Infinity"))
            number = -(double)INFINITY;
        else
            return put_bits(type, text, ret);
    } else if (!sq_json_double(value, &number)) {
        return false;
    }
    put_float(type, number, ret);
    return true;
}

/* An integer, or a number with nothing behind its point ("0.0": some writers of v2 say that for integers). */
static bool whole_number(const struct sq_json *value, int64_t *ret_signed, uint64_t *ret_unsigned, bool *ret_negative)
{
    double number;
    *ret_signed = 0;
    *ret_unsigned = 0;
    *ret_negative = false;
    if (sq_json_uint(value, ret_unsigned))
        return true;
    if (sq_json_int(value, ret_signed)) {
        *ret_negative = true;
        return true;
    }
    if (!sq_json_double(value, &number) || !(fabs(number) < 0x1p53) || number != trunc(number))
        return false;
    *ret_negative = number < 0;
    if (*ret_negative)
        *ret_signed = (int64_t)number;
    else
        *ret_unsigned = (uint64_t)number;
    return true;
}

static bool parse_integer(enum squall_type type, const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    int64_t number;
    uint64_t magnitude;
    bool negative;
    if (!whole_number(value, &number, &magnitude, &negative))
        return false;
    bool is_signed = type >= SQUALL_INT8 && type <= SQUALL_INT64;
    unsigned bits = 8 * (unsigned)sq_type_size(type);
    uint64_t greatest = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
    if (negative ? !is_signed || number < -(int64_t)greatest - 1 : magnitude > greatest)
        return false;
    uint64_t word = negative ? (uint64_t)number : magnitude;
    uint8_t byte = (uint8_t)word;
    uint16_t half = (uint16_t)word;
    uint32_t single = (uint32_t)word;
    switch (bits) {
    case 8:
        memcpy(ret, &byte, sizeof byte);
        break;
    case 16:
        memcpy(ret, &half, sizeof half);
        break;
    case 32:
        memcpy(ret, &single, sizeof single);
        break;
    default:
        memcpy(ret, &word, sizeof word);
    }
    return true;
}

static bool parse_bool(const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    bool truth;
    uint64_t number;
    if (sq_json_bool(value, &truth))
        ret[0] = truth;
    else if (sq_json_uint(value, &number) && number <= 1)
        ret[0] = (uint8_t)number;
    else
        return false;
    return true;
}

bool sq_zarr_fill_parse(enum squall_type type, const struct sq_json *value, uint8_t ret[SQ_ZARR_FILL_BYTES])
{
    memset(ret, 0, SQ_ZARR_FILL_BYTES);
    if (!value || sq_json_type(value) == SQ_JSON_NULL)
        return true;
    if (type == SQUALL_BOOL)
        return parse_bool(value, ret);
    return sq_type_is_float(type) ? parse_float(type, value, ret) : parse_integer(type, value, ret);
}

int sq_zarr_fill_text(const struct sq_json *value, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    enum sq_json_type type = sq_json_type(value);
    if (type == SQ_JSON_STRING)
        sq_text_add(&text, sq_json_string(value));
    else if (type == SQ_JSON_INT || type == SQ_JSON_DOUBLE)
        SQ_TRY(sq_json_write(value, false, &text, err));
    else if (type == SQ_JSON_ABSENT || type == SQ_JSON_NULL)
        sq_text_add(&text, "");
    else
        return sq_error(err, SQUALL_ECORRUPT, "its fill value is no text");
    *ret = sq_text_release(&text);
    return *ret ? 0 : sq_error_memory(err, 1);
}
