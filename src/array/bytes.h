/*
 * Elements of variable length, texts and bytes alike: struct squall_bytes. Those that the library makes have a zero byte behind their last
 * one that does not count, so that a text is a C string, too, where it has no zero of its own.
 */
#ifndef SQ_ARRAY_BYTES_H
#define SQ_ARRAY_BYTES_H

#include "squall/array.h"
#include <stdbool.h>

/* ret->data: sq_free; never NULL, of no bytes neither. */
int sq_bytes_copy(const void *data, size_t size_bytes, struct squall_bytes *ret, struct squall_error *err) SQUALL_CHECK;
bool sq_bytes_equal(const struct squall_bytes *a, const struct squall_bytes *b);
void sq_bytes_free(struct squall_bytes *elements, size_t count); /* what they point at */

#endif
