/* Element types: what an array holds, whatever format it lies in. Bytes in memory are always in the machine's order. */
#ifndef SQ_ARRAY_DTYPE_H
#define SQ_ARRAY_DTYPE_H

#include "squall/array.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An element in full: what enum squall_type leaves open. Formats make it, codecs are bound to it. */
struct sq_dtype {
    enum squall_type type;
    uint32_t element_bytes; /* in memory; variable length: of what stands for an element */
    uint32_t order_bytes;   /* what a byte order turns: 8 of complex128, 4 of SQUALL_TEXT; 1: nothing */
};

/* Of a type that leaves nothing open: any but SQUALL_RAW and SQUALL_TEXT. */
struct sq_dtype sq_dtype_of(enum squall_type type);
/* Are elements pointers to what they hold? */
bool sq_type_is_variable(enum squall_type type);

/* Size of one element in memory; 0 for strings and for what has no size of its own. */
size_t sq_type_size(enum squall_type type);
/* Zarr v3's and numpy's name: "float32", "int64", "bool", "string"; "" where there is none. */
const char *sq_type_name(enum squall_type type);
/* What numpy calls an element in memory, "<f4"; without unit or length where the type leaves them open. */
const char *sq_type_numpy(enum squall_type type);
/* false where the name is no type of ours */
bool sq_type_from_name(const char *name, enum squall_type *ret);
bool sq_type_is_float(enum squall_type type);
bool sq_type_is_integer(enum squall_type type);

/* An element of an integer type; of uint64 as the int64 of the same bits. */
int64_t sq_integer_at(enum squall_type type, const void *values, uint64_t i);
/* Of an integer type, float32 or float64; 64 bits are rounded. */
double sq_number_at(enum squall_type type, const void *values, uint64_t i);

#endif
