/*
 * Arrays, one behind the other along a dimension, as one: a variable of many files. Chunks of the parts need not match: a read is a read
 * of each part that it touches. And arrays that are in memory: the coordinates of such variables.
 */
#ifndef SQ_ENGINE_JOINED_ARRAY_H
#define SQ_ENGINE_JOINED_ARRAY_H

#include "engine/array.h"

/* Which dimension the parts follow each other along: one that they have, or a new one before all others, in which each has one place. */
enum { SQ_JOIN_NEW_DIMENSION = -1 };

/* A part that is not open yet: `open` gives it when it is first read. */
extern struct squall_array *const sq_late_part;

struct sq_join {
    /* count arrays of one type and rank, equal in shape but along the axis; their datasets outlive the joined array. NULL: fill values of the pattern */
    struct squall_array *const *parts;
    size_t count;
    const uint64_t *lengths; /* of each along the axis; SQ_JOIN_NEW_DIMENSION: of no meaning */
    size_t pattern;          /* the part as which the array is described, but for its shape along the axis */
    int axis;
    const char *dim; /* of the new dimension; copied */
    /* The array `name` of a late part, by any thread and any number of times; it is checked against the pattern. */
    int (*open)(void *user, size_t part, const char *name, struct squall_array **ret, struct squall_error *err);
    void *user;
    uint64_t late_chunk; /* the longest chunk of a late part along the axis */
};

int sq_joined_array_add(struct squall_dataset *ds, const struct sq_join *join, struct squall_error *err) SQUALL_CHECK;

/* Does a part lie at an index along the axis (of an array that is not joined: always)? Where none does, reads give the fill value. */
bool sq_joined_array_has(const struct squall_array *a, uint64_t index);

/* Does reading a part of a chunk cost no more than the part, since chunks are stored as they are? */
bool sq_joined_array_is_plain(const struct squall_array *a);

/*
 * Add to ds an array of numbers in memory, of one or two dimensions. values: sq_free'd with it, also on failure; attributes likewise.
 *
 * as   its name, type, rank, shape, dims, attribute_types and fill_value; what they point to outlives it, but for shape, and dims, the list
 */
int sq_memory_array_add(struct squall_dataset *ds, const struct squall_array_info *as, void *values, char *attributes,
                        struct squall_error *err) SQUALL_CHECK;

#endif
