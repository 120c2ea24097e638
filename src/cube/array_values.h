/* Whole small arrays in memory, as a store keeps them: numbers as they are, texts of characters (|S4, or |S1 with a dimension of letters) as texts. */
#ifndef SQ_CUBE_ARRAY_VALUES_H
#define SQ_CUBE_ARRAY_VALUES_H

#include "base/arena.h"
#include "engine/array.h"

/* What an array becomes in the store. */
struct sq_array_form {
    enum squall_type type;
    unsigned rank; /* less the letters */
    size_t element_bytes;
    uint64_t letters; /* characters of a text; 0: it is not made of characters */
    bool can;         /* false: there is no such type in a store */
};
struct sq_array_form sq_array_form_of(const struct squall_array *a);

/* All of it, in C order. What texts point at is the arena's. *ret: sq_free. */
int sq_array_values_read(struct squall_array *a, struct sq_arena *arena, void **ret, struct squall_error *err) SQUALL_CHECK;
/* So many indices of its first dimension. */
int sq_array_values_read_part(struct squall_array *a, uint64_t first, uint64_t count, struct sq_arena *arena, void **ret,
                              struct squall_error *err) SQUALL_CHECK;
/* Do two of one form hold the same? Larger ones than limit_bytes are taken to. */
int sq_array_values_same(struct squall_array *a, struct squall_array *b, uint64_t limit_bytes, bool *ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
