/* See element.h. An element becomes a text first; whether it is a number, a text or nothing decides how JSON and CSV spell it. */
#include "element.h"

#include "attributes.h"
#include "output.h"
#include "structure.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { UTF8_MOST = 4, ENUM_NAME_BYTES = 1024 };

static float half_to_float(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double mantissa = half & 1023, value;
    if (exponent == 31)
        value = mantissa > 0 ? NAN : INFINITY;
    else
        value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return (float)(half & 0x8000 ? -value : value);
}

static float bfloat_to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------------------- */

static void print_float(FILE *out, float value)
{
    char text[SHORT_TEXT_BYTES];
    fputs(isnan(value) ? "nan" : single_text(value, text), out);
}

static void print_double(FILE *out, double value)
{
    char text[SHORT_TEXT_BYTES];
    fputs(isnan(value) ? "nan" : number_text(value, text), out);
}

/* Floats of any width. false: the type is none. */
static bool float_value(enum squall_type type, const void *element, double *ret)
{
    switch (type) {
    case SQUALL_FLOAT16:
        *ret = (double)half_to_float(*(const uint16_t *)element);
        return true;
    case SQUALL_BFLOAT16:
        *ret = (double)bfloat_to_float(*(const uint16_t *)element);
        return true;
    case SQUALL_FLOAT32:
        *ret = (double)*(const float *)element;
        return true;
    case SQUALL_FLOAT64:
        *ret = *(const double *)element;
        return true;
    default:
        return false;
    }
}

static bool integer_value(enum squall_type type, const void *element, long long *ret)
{
    switch (type) {
    case SQUALL_INT8:
    case SQUALL_INT2:
    case SQUALL_INT4:
        *ret = *(const int8_t *)element;
        return true;
    case SQUALL_UINT8:
    case SQUALL_UINT2:
    case SQUALL_UINT4:
        *ret = *(const uint8_t *)element;
        return true;
    case SQUALL_INT16:
        *ret = *(const int16_t *)element;
        return true;
    case SQUALL_UINT16:
        *ret = *(const uint16_t *)element;
        return true;
    case SQUALL_INT32:
        *ret = *(const int32_t *)element;
        return true;
    case SQUALL_UINT32:
        *ret = *(const uint32_t *)element;
        return true;
    case SQUALL_INT64:
        *ret = *(const int64_t *)element;
        return true;
    default:
        return false;
    }
}

static void print_number(FILE *out, enum squall_type type, double value)
{
    if (type == SQUALL_FLOAT64)
        print_double(out, value);
    else
        print_float(out, (float)value);
}

/* As Python says it: "1+2j". */
static void print_complex(FILE *out, enum squall_type type, const void *element)
{
    double part[2];
    for (int i = 0; i < 2; i++)
        part[i] = type == SQUALL_COMPLEX64 ? (double)((const float *)element)[i] : ((const double *)element)[i];
    const enum squall_type of = type == SQUALL_COMPLEX64 ? SQUALL_FLOAT32 : SQUALL_FLOAT64;
    print_number(out, of, part[0]);
    if (!signbit(part[1]) || isnan(part[1]))
        fputc('+', out);
    print_number(out, of, part[1]);
    fputc('j', out);
}

/* ---- times ------------------------------------------------------------------------------------------------------------------------ */

/* "<M8[10ms]" → 10 and "ms"; a unit "" where numpy has none. */
static long long unit_of(const char *numpy_type, char unit[8])
{
    const char *at = strchr(numpy_type, '[');
    long long scale = 1;
    char *end;
    unit[0] = 0;
    if (!at)
        return 1;
    at++;
    if (*at >= '0' && *at <= '9') {
        scale = strtoll(at, &end, 10);
        at = end;
    }
    size_t length = strcspn(at, "]");
    snprintf(unit, 8, "%.*s", length < 7 ? (int)length : 7, at);
    return scale;
}

static long long floor_divide(long long a, long long b)
{
    return a / b - (a % b < 0);
}

/* The civil date of a day since 1970, by the rules of Gregory in both directions. */
static void civil(long long day, long long *year, int *month, int *day_of_month)
{
    day += 719468; /* since 1 March of the year 0 */
    long long era = floor_divide(day, 146097), in_era = day - era * 146097;
    long long year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    long long day_of_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int shifted = (int)((5 * day_of_year + 2) / 153); /* March is 0 */
    *day_of_month = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = year_of_era + era * 400 + (*month <= 2);
}

/* Units below a day: how many to a second and how many digits behind it; or how many seconds. */
static const struct {
    const char *unit;
    long long per_second, seconds;
    int digits;
} CLOCK[] = {
    {"h", 1, 3600, 0},
    {"m", 1, 60, 0},
    {"s", 1, 1, 0},
    {"ms", 1000, 1, 3},
    {"us", 1000000, 1, 6},
    {"ns", 1000000000, 1, 9},
    {"ps", 1000000000000, 1, 12},
    {"fs", 1000000000000000, 1, 15},
    {"as", 1000000000000000000, 1, 18},
};

static bool clock_text(long long count, const char *unit, char *text, size_t size)
{
    long long year, seconds;
    int month, day_of_month;
    for (size_t i = 0; i < sizeof CLOCK / sizeof *CLOCK; i++) {
        if (strcmp(unit, CLOCK[i].unit) != 0 ||
            __builtin_mul_overflow(floor_divide(count, CLOCK[i].per_second), CLOCK[i].seconds, &seconds))
            continue;
        long long fraction = count - floor_divide(count, CLOCK[i].per_second) * CLOCK[i].per_second;
        long long day = floor_divide(seconds, 86400), second = seconds - day * 86400;
        civil(day, &year, &month, &day_of_month);
        int at = snprintf(text, size, "%04lld-%02d-%02dT%02lld", year, month, day_of_month, second / 3600);
        if (CLOCK[i].seconds < 3600)
            at += snprintf(text + at, size - (size_t)at, ":%02lld", second / 60 % 60);
        if (CLOCK[i].seconds < 60)
            at += snprintf(text + at, size - (size_t)at, ":%02lld", second % 60);
        if (CLOCK[i].digits)
            snprintf(text + at, size - (size_t)at, ".%0*lld", CLOCK[i].digits, fraction);
        return true;
    }
    return false;
}

/* As numpy prints datetime64, to its unit. false: beyond what can be counted. */
static bool date_text(long long count, const char *numpy_type, char *text, size_t size)
{
    char unit[8];
    long long year, scale = unit_of(numpy_type, unit);
    int month, day_of_month;
    if (__builtin_mul_overflow(count, scale, &count))
        return false;
    if (!strcmp(unit, "Y")) {
        snprintf(text, size, "%04lld", 1970 + count);
    } else if (!strcmp(unit, "M")) {
        snprintf(text, size, "%04lld-%02lld", 1970 + floor_divide(count, 12), count - floor_divide(count, 12) * 12 + 1);
    } else if (!strcmp(unit, "W") || !strcmp(unit, "D")) {
        if (__builtin_mul_overflow(count, unit[0] == 'W' ? 7 : 1, &count) || llabs(count) > (1LL << 50))
            return false;
        civil(count, &year, &month, &day_of_month);
        snprintf(text, size, "%04lld-%02d-%02d", year, month, day_of_month);
    } else {
        return clock_text(count, unit, text, size);
    }
    return true;
}

/* ---- texts and bytes -------------------------------------------------------------------------------------------------------------- */

/* A character of UTF-32 as UTF-8; U+FFFD for what is none. */
static size_t put_utf8(uint32_t c, char *to)
{
    if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (size_t i = more; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | c);
    return more + 1;
}

/* Malloc'ed, a NUL behind it; NULL: out of memory. NULs at the end are no part of a text. */
static char *utf8_of(const uint32_t *characters, size_t count, size_t *ret_length)
{
    while (count > 0 && characters[count - 1] == 0)
        count--;
    char *text = malloc(UTF8_MOST * count + 1);
    size_t at = 0;
    for (size_t i = 0; text && i < count; i++)
        at += put_utf8(characters[i], text + at);
    if (text)
        text[at] = 0;
    *ret_length = at;
    return text;
}

void print_csv_text(FILE *out, const char *text, size_t length)
{
    bool quoted = false;
    for (size_t i = 0; i < length; i++)
        quoted = quoted || text[i] == ',' || text[i] == '"' || text[i] == '\r' || text[i] == '\n';
    fputs(quoted ? "\"" : "", out);
    for (size_t i = 0; i < length; i++) {
        fputs(text[i] == '"' ? "\"" : "", out);
        fputc(text[i], out);
    }
    fputs(quoted ? "\"" : "", out);
}

static void print_text(FILE *out, const char *text, size_t length, enum element_form form)
{
    if (form == ELEMENT_JSON)
        print_json_bytes(out, text, length);
    else
        print_csv_text(out, text, length);
}

static void print_hex(FILE *out, const unsigned char *bytes, size_t count, enum element_form form)
{
    fputs(form == ELEMENT_JSON ? "\"" : "", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%02x", bytes[i]);
    fputs(form == ELEMENT_JSON ? "\"" : "", out);
}

/* Bytes that are ASCII are a text: most are names. Others are shown in hexadecimal. */
static void print_bytes(FILE *out, const unsigned char *bytes, size_t count, enum element_form form)
{
    bool is_text = true;
    for (size_t i = 0; i < count; i++)
        is_text = is_text && bytes[i] >= 0x20 && bytes[i] < 0x7f;
    if (is_text)
        print_text(out, (const char *)bytes, count, form);
    else
        print_hex(out, bytes, count, form);
}

/* ---- an element ------------------------------------------------------------------------------------------------------------------- */

static void print_time(FILE *out, const struct squall_array_info *info, const void *element, enum element_form form)
{
    char text[SHORT_TEXT_BYTES];
    long long count = *(const int64_t *)element;
    if (count == INT64_MIN)
        fputs(form == ELEMENT_JSON ? "null" : "NaT", out);
    else if (info->type == SQUALL_DATETIME64 && date_text(count, info->numpy_type, text, sizeof text))
        print_text(out, text, strlen(text), form);
    else
        fprintf(out, "%lld", count);
}

/* numpy's S ends at the last byte that is not NUL; numpy's V and structures are no texts. */
static void print_raw(FILE *out, const struct squall_array_info *info, const unsigned char *bytes, enum element_form form)
{
    size_t count = info->element_bytes;
    const bool is_text = !strncmp(info->numpy_type, "|S", 2);
    if (is_structure(info->numpy_type)) {
        (form == ELEMENT_JSON ? structure_print_json : structure_print_csv)(out, info->numpy_type, bytes);
        return;
    }
    while (is_text && count > 0 && bytes[count - 1] == 0)
        count--;
    if (is_text)
        print_bytes(out, bytes, count, form);
    else
        print_hex(out, bytes, count, form);
}

static void print_fixed_text(FILE *out, const struct squall_array_info *info, const void *element, enum element_form form)
{
    size_t length;
    char *text = utf8_of(element, info->element_bytes / sizeof(uint32_t), &length);
    print_text(out, text ? text : "", text ? length : 0, form);
    free(text);
}

/* false: the number has no name. */
static bool print_enum_name(FILE *out, const char *names, long long number, enum element_form form)
{
    struct attribute a;
    char text[ENUM_NAME_BYTES];
    while (attribute_next(&names, &a))
        if (strtoll(a.value, NULL, 10) == number) {
            attribute_name(&a, text, sizeof text);
            print_text(out, text, strlen(text), form);
            return true;
        }
    return false;
}

void element_print(FILE *out, const struct squall_array_info *info, const void *values, size_t index, enum element_form form)
{
    const void *element = (const unsigned char *)values + index * info->element_bytes;
    const struct squall_bytes *bytes = element;
    const bool quoted = form == ELEMENT_JSON;
    long long whole;
    double number;
    if (float_value(info->type, element, &number)) {
        if (quoted && !isfinite(number))
            fputs("null", out);
        else
            print_number(out, info->type, number);
        return;
    }
    if (integer_value(info->type, element, &whole)) {
        if (!info->enum_names || !print_enum_name(out, info->enum_names, whole, form))
            fprintf(out, "%lld", whole);
        return;
    }
    switch (info->type) {
    case SQUALL_BOOL:
        fputs(*(const uint8_t *)element ? "true" : "false", out);
        break;
    case SQUALL_UINT64:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)element);
        break;
    case SQUALL_COMPLEX64:
    case SQUALL_COMPLEX128:
        fputs(quoted ? "\"" : "", out);
        print_complex(out, info->type, element);
        fputs(quoted ? "\"" : "", out);
        break;
    case SQUALL_DATETIME64:
    case SQUALL_TIMEDELTA64:
        print_time(out, info, element, form);
        break;
    case SQUALL_STRING:
        print_text(out, bytes->data, bytes->size_bytes, form);
        break;
    case SQUALL_TEXT:
        print_fixed_text(out, info, element, form);
        break;
    case SQUALL_BYTES:
        if (is_structure(info->numpy_type))
            (quoted ? structure_print_json : structure_print_csv)(out, info->sequence_type, bytes->data);
        else if (info->sequence_type)
            (quoted ? sequence_print_json : sequence_print_csv)(out, info->sequence_type, bytes->data, bytes->size_bytes);
        else
            print_bytes(out, bytes->data, bytes->size_bytes, form);
        break;
    default: /* SQUALL_RAW */
        print_raw(out, info, element, form);
    }
}

bool element_number(const struct squall_array_info *info, const void *values, size_t index, double *ret)
{
    const void *element = (const unsigned char *)values + index * info->element_bytes;
    long long whole;
    if (float_value(info->type, element, ret))
        return true;
    if (info->type == SQUALL_UINT64)
        *ret = (double)*(const uint64_t *)element;
    else if (integer_value(info->type, element, &whole))
        *ret = (double)whole;
    else if (info->type == SQUALL_DATETIME64 || info->type == SQUALL_TIMEDELTA64)
        *ret = (double)*(const int64_t *)element;
    else
        return false;
    return true;
}

char *element_text(const struct squall_array_info *info, const void *values, size_t index)
{
    const void *element = (const unsigned char *)values + index * info->element_bytes;
    size_t length;
    if (info->type == SQUALL_TEXT)
        return utf8_of(element, info->element_bytes / sizeof(uint32_t), &length);
    return strndup(element, info->element_bytes);
}

double element_unit_s(const struct squall_array_info *info)
{
    char unit[8];
    double scale = (double)unit_of(info->numpy_type, unit);
    for (size_t i = 0; i < sizeof CLOCK / sizeof *CLOCK; i++)
        if (!strcmp(unit, CLOCK[i].unit))
            return scale * (double)CLOCK[i].seconds / (double)CLOCK[i].per_second;
    return !strcmp(unit, "D") ? scale * 86400 : !strcmp(unit, "W") ? scale * 7 * 86400 : 0;
}

void elements_free(enum squall_type type, void *values, size_t count)
{
    const bool is_variable = type == SQUALL_STRING || type == SQUALL_BYTES;
    for (size_t i = 0; values && is_variable && i < count; i++)
        free(((struct squall_bytes *)values)[i].data);
}
