/* The coordinate along which the files of many follow each other: read, counted alike, and the files put in its order. */
#ifndef SQ_CUBE_MANY_ORDER_H
#define SQ_CUBE_MANY_ORDER_H

#include "cube/many_compare.h"
#include "squall/many.h"

/* The coordinate's part in one file. */
struct sq_many_part {
    enum squall_type type;
    void *values;           /* length elements; sq_free */
    uint64_t length;        /* elements */
    char *units, *calendar; /* NULL: none; sq_free */
};

struct sq_many_coordinate {
    enum squall_type type;
    char *units;  /* what they are counted in together; NULL: as the first file says; sq_free */
    void *values; /* of all files, in order; sq_free. NULL: there is no coordinate of numbers */
    uint64_t length;
};

/* Can files be put in order by numbers of this type? */
bool sq_many_is_countable_type(enum squall_type type);
/* Is it of such a type? */
bool sq_many_is_countable(const struct squall_array *a);

/* The part of one file: all elements of `a`. */
int sq_many_part_read(struct squall_array *a, struct sq_many_part *ret, struct squall_error *err) SQUALL_CHECK;
void sq_many_part_done(struct sq_many_part *part);

/*
 * Count all parts alike, in one type, find the order of the files, join the values. paths: for messages.
 *
 * order     [count]: which file is the i-th
 * drift     files that overlap or are in no order
 * Errors: SQUALL_EREFUSED where times cannot be counted alike
 */
int sq_many_order(struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, enum squall_order how,
                  size_t *order, struct sq_drift *drift, struct sq_many_coordinate *ret, struct squall_error *err) SQUALL_CHECK;

/*
 * Count the bounds of times as the times themselves, after sq_many_order, and join them.
 *
 * parts   [count]: bounds, of one type, in the order of the result; they may become wider
 * times   [count]: the parts to which they belong; bounds are counted as these were
 * units   those of all, in the result
 * drift   where one has no exact counterpart; ret->values is NULL then
 */
int sq_many_count_bounds(struct sq_many_part *parts, const struct sq_many_part *times, const char *const *paths, size_t count,
                         const char *name, const char *units, struct sq_drift *drift, struct sq_many_coordinate *ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
