/* See dtype.h. One table, in the order of enum squall_type. */
#include "array/dtype.h"
#include <string.h>

enum kind { KIND_OTHER, KIND_INTEGER, KIND_FLOAT };

static const struct type_row {
    const char *name;
    size_t size_bytes;
    enum kind kind;
    const char *numpy;
} types[] = {
    [SQUALL_BOOL] = {"bool", 1, KIND_OTHER, "|b1"},
    [SQUALL_INT8] = {"int8", 1, KIND_INTEGER, "|i1"},
    [SQUALL_INT16] = {"int16", 2, KIND_INTEGER, "<i2"},
    [SQUALL_INT32] = {"int32", 4, KIND_INTEGER, "<i4"},
    [SQUALL_INT64] = {"int64", 8, KIND_INTEGER, "<i8"},
    [SQUALL_UINT8] = {"uint8", 1, KIND_INTEGER, "|u1"},
    [SQUALL_UINT16] = {"uint16", 2, KIND_INTEGER, "<u2"},
    [SQUALL_UINT32] = {"uint32", 4, KIND_INTEGER, "<u4"},
    [SQUALL_UINT64] = {"uint64", 8, KIND_INTEGER, "<u8"},
    [SQUALL_FLOAT16] = {"float16", 2, KIND_FLOAT, "<f2"},
    [SQUALL_FLOAT32] = {"float32", 4, KIND_FLOAT, "<f4"},
    [SQUALL_FLOAT64] = {"float64", 8, KIND_FLOAT, "<f8"},
    [SQUALL_STRING] = {"string", 0, KIND_OTHER, "O"},
    [SQUALL_BFLOAT16] = {"bfloat16", 2, KIND_OTHER, "bfloat16"},
    [SQUALL_COMPLEX64] = {"complex64", 8, KIND_OTHER, "<c8"},
    [SQUALL_COMPLEX128] = {"complex128", 16, KIND_OTHER, "<c16"},
    [SQUALL_INT2] = {"int2", 1, KIND_OTHER, "|i1"},
    [SQUALL_INT4] = {"int4", 1, KIND_OTHER, "|i1"},
    [SQUALL_UINT2] = {"uint2", 1, KIND_OTHER, "|u1"},
    [SQUALL_UINT4] = {"uint4", 1, KIND_OTHER, "|u1"},
    [SQUALL_DATETIME64] = {"numpy.datetime64", 8, KIND_OTHER, "<M8"},
    [SQUALL_TIMEDELTA64] = {"numpy.timedelta64", 8, KIND_OTHER, "<m8"},
    [SQUALL_RAW] = {"raw", 0, KIND_OTHER, "|V"},
    [SQUALL_TEXT] = {"fixed_length_utf32", 0, KIND_OTHER, "<U"},
    [SQUALL_BYTES] = {"variable_length_bytes", 0, KIND_OTHER, "O"},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

static const struct type_row *row_of(enum squall_type type)
{
    static const struct type_row none = {"", 0, KIND_OTHER, ""};
    return (unsigned)type < TYPE_COUNT ? &types[type] : &none;
}

size_t sq_type_size(enum squall_type type)
{
    return row_of(type)->size_bytes;
}

const char *sq_type_name(enum squall_type type)
{
    return row_of(type)->name;
}

const char *sq_type_numpy(enum squall_type type)
{
    return row_of(type)->numpy;
}

bool sq_type_from_name(const char *name, enum squall_type *ret)
{
    for (unsigned i = 0; name && i < TYPE_COUNT; i++) {
        if (strcmp(name, types[i].name) == 0) {
            *ret = (enum squall_type)i;
            return true;
        }
    }
    return false;
}

bool sq_type_is_float(enum squall_type type)
{
    return row_of(type)->kind == KIND_FLOAT;
}

bool sq_type_is_integer(enum squall_type type)
{
    return row_of(type)->kind == KIND_INTEGER;
}

bool sq_type_is_variable(enum squall_type type)
{
    return type == SQUALL_STRING || type == SQUALL_BYTES;
}

size_t squall_type_size(enum squall_type type)
{
    return sq_type_is_variable(type) ? sizeof(struct squall_bytes) : sq_type_size(type);
}

struct sq_dtype sq_dtype_of(enum squall_type type)
{
    uint32_t size_bytes = (uint32_t)squall_type_size(type);
    bool is_complex = type == SQUALL_COMPLEX64 || type == SQUALL_COMPLEX128;
    return (struct sq_dtype){type, size_bytes, sq_type_is_variable(type) ? 1 : is_complex ? size_bytes / 2 : size_bytes};
}

const char *squall_type_name(enum squall_type type)
{
    return sq_type_name(type);
}

int64_t sq_integer_at(enum squall_type type, const void *values, uint64_t i)
{
    switch (type) {
    case SQUALL_INT8:
        return ((const int8_t *)values)[i];
    case SQUALL_INT16:
        return ((const int16_t *)values)[i];
    case SQUALL_INT32:
        return ((const int32_t *)values)[i];
    case SQUALL_UINT8:
        return ((const uint8_t *)values)[i];
    case SQUALL_UINT16:
        return ((const uint16_t *)values)[i];
    case SQUALL_UINT32:
        return ((const uint32_t *)values)[i];
    default:
        return ((const int64_t *)values)[i];
    }
}

double sq_number_at(enum squall_type type, const void *values, uint64_t i)
{
    switch (type) {
    case SQUALL_UINT64:
        return (double)((const uint64_t *)values)[i];
    case SQUALL_FLOAT32:
        return (double)((const float *)values)[i];
    case SQUALL_FLOAT64:
        return ((const double *)values)[i];
    default:
        return (double)sq_integer_at(type, values, i);
    }
}
