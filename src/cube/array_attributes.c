/* See array_attributes.h. */
#include "cube/array_attributes.h"
#include "array/dtype.h"
#include "base/base64.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/fill.h"
#include <math.h>
#include <string.h>

/* Eight bytes of a double, little endian, as base64: xarray's spelling of _FillValue in Zarr v3. */
static struct sq_json *as_base64(double value)
{
    uint64_t bits;
    uint8_t bytes[sizeof bits];
    char text[SQ_BASE64_TEXT_BYTES(sizeof bits)];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    sq_base64_encode(bytes, sizeof bytes, text);
    return sq_json_new_string(text);
}

/* What as_base64 makes of a number. */
static bool number_of_base64(const char *text, double *ret)
{
    uint8_t *read = NULL;
    size_t count = 0;
    uint64_t bits = 0;
    const bool good = sq_base64_decode(text, strlen(text), &read, &count);
    SQ_CLEANUP_FREE uint8_t *bytes = read;
    if (!good || !bytes || count != sizeof bits)
        return false;
    for (size_t i = 0; i < sizeof bits; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    memcpy(ret, &bits, sizeof bits);
    return true;
}

/* A list of one is what it holds. */
static const struct sq_json *scalar(const struct sq_json *v)
{
    return sq_json_type(v) == SQ_JSON_ARRAY && sq_json_count(v) == 1 ? sq_json_at(v, 0) : v;
}

/* A number, also as Zarr and JSON write those that JSON has not. */
static bool number(const struct sq_json *v, double *ret)
{
    const char *text = sq_json_string(v);
    if (!text)
        return sq_json_double(v, ret);
    if (!strcmp(text, "NaN"))
        *ret = __builtin_nan("");
    else if (!strcmp(text, "Infinity") || !strcmp(text, "-Infinity"))
        *ret = text[0] == '-' ? -__builtin_inf() : __builtin_inf();
    else
        return number_of_base64(text, ret);
    return true;
}

/* Can an element of the type be it? Of signed numbers that _Unsigned calls unsigned any number is taken. */
static bool is_fill_of(enum squall_type type, const struct sq_json *attributes, const struct sq_json *fill)
{
    uint8_t element[SQ_ZARR_FILL_BYTES];
    double value;
    if (sq_type_is_float(type))
        return number(fill, &value);
    if (!sq_type_is_integer(type))
        return true;
    return sq_json_double(fill, &value) && (sq_json_get(attributes, "_Unsigned") || sq_zarr_fill_parse(type, fill, element));
}

static int spell_fill_value(struct sq_json *attributes, enum squall_type type, struct squall_error *err)
{
    const struct sq_json *fill = scalar(sq_json_get(attributes, "_FillValue"));
    double value;
    if (!fill)
        return 0;
    if (!is_fill_of(type, attributes, fill)) {
        sq_json_remove(attributes, "_FillValue");
        return 0;
    }
    struct sq_json *spelled = sq_type_is_float(type) && number(fill, &value) ? as_base64(value) : sq_json_share(fill);
    return sq_json_set(attributes, "_FillValue", spelled) ? sq_error_memory(err, sizeof value) : 0;
}

static int add_fill_of_v2(const struct squall_array *a, struct sq_json *attributes, struct squall_error *err)
{
    struct sq_json *fill = NULL;
    if (strcmp(a->dataset->format, "zarr v2") != 0 || sq_json_get(attributes, "_FillValue") || !a->info.fill_value ||
        !strcmp(a->info.fill_value, "null"))
        return 0;
    SQ_TRY(sq_json_parse(a->info.fill_value, strlen(a->info.fill_value), &fill, err));
    return sq_json_set(attributes, "_FillValue", fill) ? sq_error_memory(err, sizeof fill) : 0;
}

int sq_array_attributes(const struct squall_array *a, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *attributes = NULL;
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &attributes, err));
    int status = add_fill_of_v2(a, attributes, err);
    if (!status)
        status = spell_fill_value(attributes, a->info.type, err);
    if (status)
        sq_json_free(attributes);
    else
        *ret = attributes;
    return status;
}

int sq_array_fill_value(const struct squall_array *a, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *fill = NULL;
    uint8_t element[SQ_ZARR_FILL_BYTES];
    double value;
    *ret = NULL;
    if (!a->info.fill_value || !strcmp(a->info.fill_value, "null"))
        return 0;
    SQ_TRY(sq_json_parse(a->info.fill_value, strlen(a->info.fill_value), &fill, err));
    if (sq_json_type(fill) == SQ_JSON_DOUBLE && sq_json_double(fill, &value) && !isfinite(value)) {
        sq_json_free(fill);
        fill = sq_json_new_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    }
    const bool is_text = a->info.type == SQUALL_STRING;
    const bool plain = sq_type_is_float(a->info.type) || sq_type_is_integer(a->info.type) || a->info.type == SQUALL_BOOL;
    if (fill && (is_text ? sq_json_string(fill) != NULL : plain && sq_zarr_fill_parse(a->info.type, fill, element)))
        *ret = fill;
    else
        sq_json_free(fill);
    return 0;
}

/* A value that is not a number is the same as another such one. */
static bool is_same(const struct sq_json *a, const struct sq_json *b)
{
    double x, y;
    bool same = a == b || (a && b && sq_json_equal(a, b));
    if (same || !a || !b)
        return same;
    if (sq_json_type(a) != SQ_JSON_ARRAY || sq_json_type(b) != SQ_JSON_ARRAY)
        return number(a, &x) && number(b, &y) && isnan(x) && isnan(y);
    same = sq_json_count(a) == sq_json_count(b);
    for (size_t i = 0; i < sq_json_count(a) && same; i++)
        same = is_same(sq_json_at(a, i), sq_json_at(b, i));
    return same;
}

/* As `_FillValue`, what is not a number means nothing: it stands for itself. */
static bool is_nothing(const struct sq_json *v)
{
    double value;
    return !v || (number(v, &value) && isnan(value));
}

int sq_array_compare_meaning(const char *name, const struct sq_json *of_source, const struct sq_json *of_store, enum sq_array_meaning how,
                             struct squall_error *err)
{
    static const char *const KEYS[] = {"units",         "calendar",    "flag_values", "flag_masks",   "flag_meanings",
                                       "standard_name", "valid_range", "valid_min",   "valid_max",    "_Unsigned",
                                       "scale_factor",  "add_offset",  "_FillValue",  "missing_value"};
    static const size_t COUNTS[] = {[SQ_MEANING_ALL] = 14, [SQ_MEANING_CAST] = 12, [SQ_MEANING_UNPACKED] = 6};
    for (size_t i = 0; i < COUNTS[how]; i++) {
        const struct sq_json *a = scalar(sq_json_get(of_source, KEYS[i])), *b = scalar(sq_json_get(of_store, KEYS[i]));
        SQ_CLEANUP_TEXT struct sq_text was = SQ_TEXT_INIT;
        SQ_CLEANUP_TEXT struct sq_text is = SQ_TEXT_INIT;
        if (is_same(a, b) || (!strcmp(KEYS[i], "_FillValue") && is_nothing(a) && is_nothing(b)))
            continue;
        if (b)
            SQ_TRY(sq_json_write(b, false, &was, err));
        if (a)
            SQ_TRY(sq_json_write(a, false, &is, err));
        return sq_error(err, SQUALL_EREFUSED, "%s: %s is %.100s in the store and %.100s in the sources; convert them into another store",
                        name, KEYS[i], b ? was.data : "absent", a ? is.data : "absent");
    }
    return 0;
}

bool sq_array_fill_is_unusable(const struct squall_array *a)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    if (sq_json_parse(a->info.attributes, strlen(a->info.attributes), &attributes, NULL))
        return false;
    const struct sq_json *fill = scalar(sq_json_get(attributes, "_FillValue"));
    return fill && !is_fill_of(a->info.type, attributes, fill);
}

static const char *const MISSING_KEYS[] = {"_FillValue", "missing_value"};

static size_t count_of(const struct sq_json *value)
{
    return sq_json_type(value) == SQ_JSON_ARRAY ? sq_json_count(value) : value != NULL;
}

static const struct sq_json *element_at(const struct sq_json *value, size_t i)
{
    return sq_json_type(value) == SQ_JSON_ARRAY ? sq_json_at(value, i) : value;
}

int sq_array_missing_values(const struct squall_array *a, struct sq_arena *arena, double **ret, size_t *ret_count, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    size_t most = 0, count = 0;
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &attributes, err));
    SQ_TRY(add_fill_of_v2(a, attributes, err));
    for (unsigned k = 0; k < 2; k++)
        most += count_of(sq_json_get(attributes, MISSING_KEYS[k]));
    double *values = sq_arena_alloc(arena, (most + 1) * sizeof *values);
    if (!values)
        return sq_error_memory(err, most * sizeof *values);
    for (unsigned k = 0; k < 2; k++) {
        const struct sq_json *value = sq_json_get(attributes, MISSING_KEYS[k]);
        for (size_t i = 0; i < count_of(value); i++)
            count += number(element_at(value, i), &values[count]);
    }
    *ret = values;
    *ret_count = count;
    return 0;
}

void sq_array_drop_missing(struct sq_json *attributes)
{
    for (unsigned k = 0; k < 2; k++) {
        const struct sq_json *value = sq_json_get(attributes, MISSING_KEYS[k]);
        bool understood = true;
        double ignored;
        for (size_t i = 0; i < count_of(value) && understood; i++)
            understood = number(element_at(value, i), &ignored);
        if (understood)
            sq_json_remove(attributes, MISSING_KEYS[k]);
    }
}

static const char *const PACKING_KEYS[] = {"scale_factor", "add_offset", "_Unsigned", "valid_range", "valid_min", "valid_max"};

void sq_array_drop_packing(struct sq_json *attributes)
{
    for (size_t i = 0; i < sizeof PACKING_KEYS / sizeof *PACKING_KEYS; i++)
        sq_json_remove(attributes, PACKING_KEYS[i]);
}

/* Of the same size. */
static enum squall_type with_sign(enum squall_type type, bool is_signed)
{
    static const enum squall_type PAIRS[][2] = {
        {SQUALL_UINT8, SQUALL_INT8}, {SQUALL_UINT16, SQUALL_INT16}, {SQUALL_UINT32, SQUALL_INT32}, {SQUALL_UINT64, SQUALL_INT64}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        if (type == PAIRS[i][0] || type == PAIRS[i][1])
            return PAIRS[i][is_signed];
    return type;
}

int sq_array_packing(const struct squall_array *a, struct sq_cube_packing *ret, double *missing, size_t missing_count,
                     struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    struct sq_cube_packing p = {.type = a->info.type, .scale = 1};
    double *const numbers[] = {&p.scale, &p.offset};
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &attributes, err));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct sq_json *value = scalar(sq_json_get(attributes, PACKING_KEYS[i]));
        if (value && !sq_json_double(value, numbers[i]))
            p.unusable = PACKING_KEYS[i];
    }
    const char *without_sign = sq_json_string(sq_json_get(attributes, "_Unsigned"));
    if (without_sign && (!strcmp(without_sign, "true") || !strcmp(without_sign, "false")))
        p.type = with_sign(p.type, without_sign[0] == 'f');
    const double range = ldexp(1, (int)(8 * a->info.element_bytes));
    const bool is_signed = with_sign(p.type, true) == p.type;
    for (size_t i = 0; i < missing_count && p.type != a->info.type; i++)
        missing[i] += !is_signed && missing[i] < 0 ? range : is_signed && missing[i] >= range / 2 ? -range : 0;
    *ret = p;
    return 0;
}
