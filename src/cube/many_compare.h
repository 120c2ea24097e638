/* How the files of many agree: what each says differently than the first, a line each. */
#ifndef SQ_CUBE_MANY_COMPARE_H
#define SQ_CUBE_MANY_COMPARE_H

#include "engine/array.h"

/* Differences found. */
struct sq_drift {
    char **lines;
    size_t count, capacity;
    bool fatal; /* one of them is of type or shape: no policy allows it. It is lines[fatal_line] */
    size_t fatal_line;
    bool packing; /* one of them is of what the same numbers mean, or which are missing: the first is lines[packing_line] */
    size_t packing_line;
};
void sq_drift_done(struct sq_drift *drift);
__attribute__((format(printf, 3, 4))) int sq_drift_add(struct sq_drift *drift, struct squall_error *err, const char *format, ...);

/* The array of this name; NULL: there is none. hint: where it is looked for first. */
struct squall_array *sq_find_array(const struct squall_dataset *ds, const char *name, size_t hint);
/* Which dimension of an array has this name; -1: none. */
int sq_dimension_of(const struct squall_array *a, const char *dim);
/* Is this the coordinate of its own only dimension? */
bool sq_is_coordinate(const struct squall_array *a);
/* Is this coordinate read when files are compared? Large ones, and those of texts, are not. */
bool sq_values_are_compared(const struct squall_array *a);
/* Do two such, of one type and one length, hold other values? */
int sq_values_differ(struct squall_array *a, struct squall_array *b, bool *ret, struct squall_error *err) SQUALL_CHECK;

/*
 * Everything that `other` says differently than `first`, but for lengths along dim, the values of the array dim itself, and the time units of `counted`, an
 * array of first whose times are counted alike afterwards; NULL: there is none. Coordinates of other dimensions are read and compared.
 */
int sq_compare_datasets(const struct squall_dataset *first, const struct squall_dataset *other, const char *dim,
                        const struct squall_array *counted, struct sq_drift *ret, struct squall_error *err) SQUALL_CHECK;

#endif
