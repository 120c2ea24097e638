/* See dtype.h. One table, in the order of enum squall_type. */
#include "array/dtype.h"
#include <string.h>

enum kind { KIND_OTHER, KIND_INTEGER, KIND_FLOAT };

static const struct type_row {
    const char *name;
    size_t size_bytes;
    enum kind kind;
} types[] = {
    [SQUALL_BOOL] = {"bool", 1, KIND_OTHER},       [SQUALL_INT8] = {"int8", 1, KIND_INTEGER},
    [SQUALL_INT16] = {"int16", 2, KIND_INTEGER},   [SQUALL_INT32] = {"int32", 4, KIND_INTEGER},
    [SQUALL_INT64] = {"int64", 8, KIND_INTEGER},   [SQUALL_UINT8] = {"uint8", 1, KIND_INTEGER},
    [SQUALL_UINT16] = {"uint16", 2, KIND_INTEGER}, [SQUALL_UINT32] = {"uint32", 4, KIND_INTEGER},
    [SQUALL_UINT64] = {"uint64", 8, KIND_INTEGER}, [SQUALL_FLOAT16] = {"float16", 2, KIND_FLOAT},
    [SQUALL_FLOAT32] = {"float32", 4, KIND_FLOAT}, [SQUALL_FLOAT64] = {"float64", 8, KIND_FLOAT},
    [SQUALL_STRING] = {"string", 0, KIND_OTHER},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

static const struct type_row *row_of(enum squall_type type)
{
    static const struct type_row none = {"", 0, KIND_OTHER};
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

size_t squall_type_size(enum squall_type type)
{
    return type == SQUALL_STRING ? sizeof(char *) : sq_type_size(type);
}

const char *squall_type_name(enum squall_type type)
{
    return sq_type_name(type);
}
