/*
 * Boxes of elements of variable length, struct squall_bytes. What each points at is malloc'ed and somebody owns it; they are moved like
 * other elements, by copying pointers, and what is here keeps the ownership straight.
 */
#ifndef SQ_ENGINE_VARIABLE_H
#define SQ_ENGINE_VARIABLE_H

#include "squall/array.h"

/* box: the first element; strides: bytes. Of another type than these two, nothing happens. */
void sq_variable_clear(enum squall_type type, unsigned rank, const uint64_t *count, void *box, const int64_t *strides); /* all NULL */
void sq_variable_free(enum squall_type type, unsigned rank, const uint64_t *count, void *box,
                      const int64_t *strides);                                       /* free each; all NULL */
void sq_variable_free_packed(enum squall_type type, uint64_t count, void *elements); /* the same of a list */
/* What they point at belongs to others: put a copy in the place of each. On failure all are NULL. */
int sq_variable_own(enum squall_type type, unsigned rank, const uint64_t *count, void *box, const int64_t *strides,
                    struct squall_error *err) SQUALL_CHECK;

#endif
