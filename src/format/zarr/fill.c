/* See fill.h. Each value is read as what its type can hold exactly, and refused where it cannot: a fill value is data. */
#include "format/zarr/fill.h"
#include "array/bytes.h"
#include "array/dtype.h"
#include "base/base64.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include <errno.h>
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

/* The upper half of a float32, nearest even. */
static uint16_t bfloat_of(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static size_t put_float(enum squall_type type, double value, uint8_t *ret)
{
    float single = (float)value;
    uint16_t half = type == SQUALL_BFLOAT16 ? bfloat_of(value) : half_of(value);
    if (type == SQUALL_FLOAT64)
        memcpy(ret, &value, sizeof value);
    else if (type == SQUALL_FLOAT32)
        memcpy(ret, &single, sizeof single);
    else
        memcpy(ret, &half, sizeof half);
    return sq_type_size(type);
}

/* The low bytes of a word, as an unsigned number of that many. */
static void put_word(uint64_t word, size_t size_bytes, uint8_t *ret)
{
    uint8_t byte = (uint8_t)word;
    uint16_t half = (uint16_t)word;
    uint32_t single = (uint32_t)word;
    if (size_bytes == 8)
        memcpy(ret, &word, sizeof word);
    else if (size_bytes == 4)
        memcpy(ret, &single, sizeof single);
    else if (size_bytes == 2)
        memcpy(ret, &half, sizeof half);
    else
        memcpy(ret, &byte, sizeof byte);
}

/* "0x" and exactly the type's bits in hexadecimal, most significant first. */
static bool put_bits(enum squall_type type, const char *text, uint8_t *ret)
{
    size_t digits = 2 * sq_type_size(type);
    if (strncmp(text, "0x", 2) != 0 || strlen(text + 2) != digits || strspn(text + 2, "0123456789abcdefABCDEF") != digits)
        return false;
    put_word(strtoull(text + 2, NULL, 16), digits / 2, ret);
    return true;
}

/* A decimal number and nothing else; none of the words for what is not finite. */
static bool number_of_text(const char *text, double *ret)
{
    char *end;
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    *ret = strtod(text, &end);
    return end != text && !*end;
}

static bool parse_float(enum squall_type type, const struct sq_json *value, uint8_t *ret)
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
        else if (!number_of_text(text, &number))
            return put_bits(type, text, ret);
    } else if (!sq_json_double(value, &number)) {
        return false;
    }
    put_float(type, number, ret);
    return true;
}

/* [real, imaginary], each as a float; or a real number. */
static bool parse_complex(enum squall_type type, const struct sq_json *value, uint8_t *ret)
{
    const enum squall_type part = type == SQUALL_COMPLEX64 ? SQUALL_FLOAT32 : SQUALL_FLOAT64;
    if (sq_json_type(value) != SQ_JSON_ARRAY)
        return parse_float(part, value, ret);
    return sq_json_count(value) == 2 && parse_float(part, sq_json_at(value, 0), ret) &&
           parse_float(part, sq_json_at(value, 1), ret + sq_type_size(part));
}

/* Decimal digits, perhaps behind a sign; false: something else, or too large. */
static bool whole_number_of_text(const char *text, int64_t *ret_signed, uint64_t *ret_unsigned, bool *ret_negative)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits))
        return false;
    errno = 0;
    *ret_negative = *text == '-';
    if (*ret_negative)
        *ret_signed = strtoll(text, NULL, 10);
    else
        *ret_unsigned = strtoull(digits, NULL, 10);
    return errno == 0;
}

/* An integer, or a number with nothing behind its point ("0.0": some writers of v2 say that for integers), or a text of digits. */
static bool whole_number(const struct sq_json *value, int64_t *ret_signed, uint64_t *ret_unsigned, bool *ret_negative)
{
    double number;
    *ret_signed = 0;
    *ret_unsigned = 0;
    *ret_negative = false;
    if (sq_json_string(value))
        return whole_number_of_text(sq_json_string(value), ret_signed, ret_unsigned, ret_negative);
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

static bool is_time(enum squall_type type)
{
    return type == SQUALL_DATETIME64 || type == SQUALL_TIMEDELTA64;
}

static unsigned bits_of(enum squall_type type)
{
    if (type == SQUALL_INT2 || type == SQUALL_UINT2)
        return 2;
    return type == SQUALL_INT4 || type == SQUALL_UINT4 ? 4 : 8 * (unsigned)sq_type_size(type);
}

static bool is_signed(enum squall_type type)
{
    return (type >= SQUALL_INT8 && type <= SQUALL_INT64) || type == SQUALL_INT2 || type == SQUALL_INT4 || is_time(type);
}

static bool parse_integer(enum squall_type type, const struct sq_json *value, uint8_t *ret)
{
    int64_t number;
    uint64_t magnitude;
    bool negative;
    if (!whole_number(value, &number, &magnitude, &negative))
        return false;
    uint64_t greatest = UINT64_MAX >> (64 - bits_of(type) + (is_signed(type) ? 1 : 0));
    if (negative ? (number != 0 && !is_signed(type)) || number < -(int64_t)greatest - 1 : magnitude > greatest)
        return false;
    put_word(negative ? (uint64_t)number : magnitude, sq_type_size(type), ret);
    return true;
}

static bool parse_time(enum squall_type type, const struct sq_json *value, uint8_t *ret)
{
    const char *text = sq_json_string(value);
    if (!text || strcmp(text, "NaT") != 0)
        return parse_integer(type, value, ret);
    put_word((uint64_t)INT64_MIN, sizeof(uint64_t), ret);
    return true;
}

static bool parse_bool(const struct sq_json *value, uint8_t *ret)
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
    if (!value || sq_json_type(value) == SQ_JSON_NULL) {
        if (is_time(type))
            put_word((uint64_t)INT64_MIN, sizeof(uint64_t), ret);
        return true;
    }
    if (type == SQUALL_BOOL)
        return parse_bool(value, ret);
    if (is_time(type))
        return parse_time(type, value, ret);
    if (type == SQUALL_COMPLEX64 || type == SQUALL_COMPLEX128)
        return parse_complex(type, value, ret);
    return sq_type_is_float(type) || type == SQUALL_BFLOAT16 ? parse_float(type, value, ret) : parse_integer(type, value, ret);
}

/* ---- texts and bytes -------------------------------------------------------------------------------------------------------------- */

/* A text, or a number's digits, as zarr-python takes v2's 0; NULL and null: "". SQUALL_ECORRUPT: none of these. */
static int parse_text(const struct sq_json *value, struct squall_bytes *ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    enum sq_json_type type = sq_json_type(value);
    if (type == SQ_JSON_STRING)
        return sq_bytes_copy(sq_json_string(value), sq_json_string_bytes(value), ret, err);
    if (type == SQ_JSON_INT || type == SQ_JSON_DOUBLE)
        SQ_TRY(sq_json_write(value, false, &text, err));
    else if (type != SQ_JSON_ABSENT && type != SQ_JSON_NULL)
        return sq_error(err, SQUALL_ECORRUPT, "its fill value is no text");
    return sq_bytes_copy(sq_text_string(&text), text.length, ret, err);
}

/* The character at *at, which moves on; never past the text's end, whatever its bytes are. */
static uint32_t next_character(const uint8_t **at)
{
    const uint8_t *c = *at;
    unsigned more = c[0] >= 0xf0 ? 3 : c[0] >= 0xe0 ? 2 : c[0] >= 0xc0 ? 1 : 0;
    uint32_t character = more ? c[0] & (0x3fu >> more) : c[0];
    for (c++; more > 0 && (*c & 0xc0) == 0x80; c++, more--)
        character = character << 6 | (*c & 0x3f);
    *at = c;
    return character;
}

/* UTF-32, zeros behind; what is too long is cut, as numpy does. */
static int put_text(const struct sq_dtype *dtype, const struct sq_json *value, uint8_t *ret, struct squall_error *err)
{
    struct squall_bytes made = {NULL, 0};
    SQ_TRY(parse_text(value, &made, err));
    SQ_CLEANUP_FREE uint8_t *text = made.data;
    const uint8_t *at = text;
    for (uint32_t i = 0; i + 4 <= dtype->element_bytes && at < text + made.size_bytes; i += 4) {
        uint32_t character = next_character(&at);
        memcpy(ret + i, &character, sizeof character);
    }
    return 0;
}

/* [1, 255, 0] */
static int bytes_of_list(const struct sq_json *list, struct squall_bytes *ret, struct squall_error *err)
{
    const size_t count = sq_json_count(list);
    SQ_CLEANUP_FREE uint8_t *bytes = sq_alloc_zero(count + 1, 1);
    uint64_t byte;
    if (!bytes)
        return sq_error_memory(err, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!sq_json_uint(sq_json_at(list, i), &byte) || byte > UINT8_MAX)
            return sq_error(err, SQUALL_ECORRUPT, "its fill value is no list of bytes from 0 to 255");
        bytes[i] = (uint8_t)byte;
    }
    *ret = (struct squall_bytes){bytes, count};
    bytes = NULL;
    return 0;
}

/* base64, or a list; a text that is no base64 and the digits of a number stand for themselves, as in early stores of v2. */
static int parse_bytes(const struct sq_json *value, struct squall_bytes *ret, struct squall_error *err)
{
    const char *base64 = sq_json_string(value);
    if (sq_json_type(value) == SQ_JSON_ARRAY)
        return bytes_of_list(value, ret, err);
    uint8_t *bytes = NULL;
    size_t count = 0;
    if (base64 && sq_base64_decode(base64, sq_json_string_bytes(value), &bytes, &count)) {
        *ret = (struct squall_bytes){bytes, count};
        return bytes ? 0 : sq_error_memory(err, strlen(base64));
    }
    return parse_text(value, ret, err);
}

/* From the machine's byte order into the stored one. */
static void turn(const struct sq_zarr_type *type, uint8_t *bytes)
{
    const bool machine_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    const size_t width = type->dtype.order_bytes;
    for (size_t at = 0; width > 1 && type->big_endian != machine_is_big && at < type->dtype.element_bytes; at += width) {
        for (size_t i = 0; i < width / 2; i++) {
            uint8_t byte = bytes[at + i];
            bytes[at + i] = bytes[at + width - 1 - i];
            bytes[at + width - 1 - i] = byte;
        }
    }
    for (size_t i = 0; type->fields && i < type->field_count; i++)
        for (uint32_t k = 0; k < type->fields[i].count; k++, bytes += type->fields[i].type.dtype.element_bytes)
            turn(&type->fields[i].type, bytes);
}

/* As many bytes as the type has; fewer where NULs may follow. A number 0 is all zeros, as numpy has it. */
static int put_raw(const struct sq_zarr_type *type, const struct sq_json *value, uint8_t *ret, struct squall_error *err)
{
    const size_t size_bytes = type->dtype.element_bytes;
    struct squall_bytes made = {NULL, 0};
    double number;
    if (!type->zero_ended && sq_json_double(value, &number) && number == 0)
        return 0;
    SQ_TRY(parse_bytes(value, &made, err));
    SQ_CLEANUP_FREE uint8_t *bytes = made.data;
    const size_t count = made.size_bytes;
    if (!type->zero_ended && count != size_bytes && count != 0)
        return sq_error(err, SQUALL_ECORRUPT, "its fill value has %zu bytes, its data type %zu", count, size_bytes);
    memcpy(ret, bytes, count < size_bytes ? count : size_bytes);
    if (type->big_endian) /* v3 says nothing of order in base64: zarr-python's is little endian. In v2 each field has its own */
        turn(type, ret);
    return 0;
}

/* {"x": 1.5, "y": 0}, each field in its own byte order; one that is not there is zero. */
static int put_structure(const struct sq_zarr_type *type, const struct sq_json *value, uint8_t *ret, struct squall_error *err)
{
    for (size_t i = 0; i < type->field_count; i++) {
        const struct sq_zarr_type *field = &type->fields[i].type;
        const struct sq_json *of_field = sq_json_get(value, type->fields[i].name);
        for (uint32_t k = 0; k < type->fields[i].count; k++, ret += field->dtype.element_bytes) {
            if (!of_field)
                continue;
            SQ_TRY(sq_zarr_fill_element(field, of_field, ret, err));
            if (!field->fields)
                turn(field, ret);
        }
    }
    return 0;
}

static int put_variable(enum squall_type type, const struct sq_json *value, void *ret, struct squall_error *err)
{
    double number;
    if (type == SQUALL_STRING)
        return parse_text(value, ret, err);
    if (sq_json_type(value) <= SQ_JSON_NULL || (sq_json_double(value, &number) && number == 0))
        return 0;
    return parse_bytes(value, ret, err);
}

int sq_zarr_fill_element(const struct sq_zarr_type *type, const struct sq_json *value, void *ret, struct squall_error *err)
{
    const enum squall_type what = type->dtype.type;
    uint8_t element[SQ_ZARR_FILL_BYTES];
    memset(ret, 0, type->dtype.element_bytes);
    if (sq_type_is_variable(what))
        return put_variable(what, value, ret, err);
    if (what == SQUALL_TEXT)
        return put_text(&type->dtype, value, ret, err);
    if (what == SQUALL_RAW)
        return type->fields && sq_json_type(value) == SQ_JSON_OBJECT ? put_structure(type, value, ret, err)
                                                                     : put_raw(type, value, ret, err);
    if (!sq_zarr_fill_parse(what, value, element))
        return sq_error(err, SQUALL_ECORRUPT, "its fill value is no %s", type->name);
    memcpy(ret, element, type->dtype.element_bytes);
    return 0;
}

void sq_zarr_fill_done(enum squall_type type, void *element)
{
    if (element && sq_type_is_variable(type))
        sq_bytes_free(element, 1);
}
