/* Element types: what an array holds, whatever format it lies in. Bytes in memory are always in the machine's order. */
#ifndef SQ_ARRAY_DTYPE_H
#define SQ_ARRAY_DTYPE_H

#include "squall/array.h"
#include <stdbool.h>
#include <stddef.h>

/* Size of one element in memory; 0 for strings. */
size_t sq_type_size(enum squall_type type);
/* Zarr v3's and numpy's name: "float32", "int64", "bool", "string"; "" where there is none. */
const char *sq_type_name(enum squall_type type);
/* false where the name is no type of ours */
bool sq_type_from_name(const char *name, enum squall_type *ret);
bool sq_type_is_float(enum squall_type type);
bool sq_type_is_integer(enum squall_type type);

#endif
