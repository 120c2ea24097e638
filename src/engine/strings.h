/*
 * Boxes of strings. Each element is a malloc'ed text that somebody owns; they are moved like other elements, by copying
 * pointers, and what is here keeps the ownership straight.
 */
#ifndef SQ_ENGINE_STRINGS_H
#define SQ_ENGINE_STRINGS_H

#include "squall/array.h"

/* box: the first element, a char *; strides: bytes */
void sq_strings_clear(unsigned rank, const uint64_t *count, void *box, const int64_t *strides); /* all NULL */
void sq_strings_free(unsigned rank, const uint64_t *count, void *box, const int64_t *strides);  /* free each; all NULL */
/* The texts belong to others: put a copy in the place of each. On failure what is left is NULL. */
int sq_strings_own(unsigned rank, const uint64_t *count, void *box, const int64_t *strides, struct squall_error *err) SQUALL_CHECK;

#endif
