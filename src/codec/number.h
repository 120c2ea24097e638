/*
 * Numbers of any type, for the codecs that reckon with them: a block of elements is loaded into the widest type of its kind, worked
 * on there, and stored as any type, as C casts. So a codec has a loop for each kind, not for each pair of types.
 */
#ifndef SQ_CODEC_NUMBER_H
#define SQ_CODEC_NUMBER_H

#include "codec/codec_internal.h"

enum { SQ_NUMBERS = 256 }; /* in a block: source, block and destination stay in the first-level cache */

enum sq_number_kind {
    SQ_NO_NUMBER,
    SQ_SIGNED,   /* int2 to int64, datetime64, timedelta64 */
    SQ_UNSIGNED, /* bool, uint2 to uint64 */
    SQ_SINGLE,   /* float16, bfloat16, float32 */
    SQ_DOUBLE,
};

union sq_numbers {
    int64_t i[SQ_NUMBERS];
    uint64_t u[SQ_NUMBERS];
    float f[SQ_NUMBERS];
    double d[SQ_NUMBERS];
};

enum sq_number_kind sq_number_kind_of(enum squall_type type);
/* count ≤ SQ_NUMBERS elements of the type → the kind of that type */
void sq_numbers_load(enum squall_type type, const void *src, size_t count, union sq_numbers *ret);
/* In place: to another kind. Floating to whole: towards zero; what does not fit becomes the least number, as the processor has it. */
void sq_numbers_convert(union sq_numbers *numbers, enum sq_number_kind from, enum sq_number_kind to, size_t count);
/*
 * numbers of the kind → elements of the type. Whole to narrower whole: modulo; to bool: is it not 0; floating to narrower floating: to
 * the nearest, from the value as it is. numbers are used up.
 */
void sq_numbers_store(enum squall_type type, union sq_numbers *numbers, enum sq_number_kind kind, size_t count, void *dst);
/* Round SINGLE numbers to what the type holds, in place: float16's arithmetic is float's, rounded after each step. */
void sq_numbers_round(enum squall_type type, union sq_numbers *numbers, size_t count);
/* The least and greatest value of a whole type. */
void sq_number_range(enum squall_type type, __int128 *ret_least, __int128 *ret_greatest);

/* v3's spellings of a floating number: a number, "NaN", "Infinity", "-Infinity", its bits as "0x7fc00000". */
bool sq_float_from_json(const struct sq_json *value, enum squall_type type, double *ret);

/*
 * A type that numcodecs' metadata names under `key`, "<f4" or "float32"; where it is absent, the array's. given: what must be the
 * array's own; else any number. *ret_big: stored big-endian.
 */
int sq_number_type(const struct sq_stage *stage, const struct sq_json *configuration, const char *key, const struct sq_stage_array *array,
                   bool given, enum squall_type *ret, bool *ret_big, struct squall_error *err) SQUALL_CHECK;

/* What a filter makes of an array: other elements, the rest as before. */
static inline void sq_stage_array_retype(struct sq_stage_array *array, enum squall_type type, bool big_endian)
{
    array->dtype = sq_dtype_of(type);
    array->big_endian = big_endian;
}

#endif
