/*
 * Arrays, one behind the other along a dimension, as one: a variable of many files. Chunks of the parts need not match: a read is a read
 * of each part that it touches. And arrays that are in memory: the coordinates of such variables.
 */
#ifndef SQ_ENGINE_JOINED_ARRAY_H
#define SQ_ENGINE_JOINED_ARRAY_H

#include "engine/array.h"

/* Which dimension the parts follow each other along: one that they have, or a new one before all others, in which each has one place. */
enum { SQ_JOIN_NEW_DIMENSION = -1 };

/*
 * Add to ds an array that is described as parts[pattern], but for the shape along `axis`.
 *
 * parts    count arrays of one type and rank, equal in shape but along `axis`; their datasets outlive ds's arrays. NULL: reads as the fill value
 *          of the pattern
 * lengths  of each part along `axis`; NULL with SQ_JOIN_NEW_DIMENSION
 * dim      name of the new dimension; copied
 */
int sq_joined_array_add(struct squall_dataset *ds, struct squall_array *const *parts, const uint64_t *lengths, size_t count, size_t pattern,
                        int axis, const char *dim, struct squall_error *err) SQUALL_CHECK;

/* Does a part lie at an index along the axis (of an array that is not joined: always)? Where none does, reads give the fill value. */
bool sq_joined_array_has(const struct squall_array *a, uint64_t index);

/* Does reading a part of a chunk cost no more than the part, since chunks are stored as they are? */
bool sq_joined_array_is_plain(const struct squall_array *a);

/* Add to ds a one-dimensional array of numbers in memory. values: sq_free'd with it, also on failure; attributes likewise.
 * attribute_types outlive it. */
int sq_memory_array_add(struct squall_dataset *ds, const char *name, const char *dim, enum squall_type type, uint64_t length, void *values,
                        char *attributes, const char *attribute_types, struct squall_error *err) SQUALL_CHECK;

#endif
