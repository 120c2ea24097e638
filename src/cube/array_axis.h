/*
 * The dimension along which a store of arrays grows: the coordinate that the store has with what the sources add to it, and where
 * each index of the sources belongs.
 */
#ifndef SQ_CUBE_ARRAY_AXIS_H
#define SQ_CUBE_ARRAY_AXIS_H

#include "cube/cf_time.h"
#include "engine/array.h"

struct sq_array_axis {
    uint64_t count;             /* of the store after this run */
    enum squall_type type;      /* of values */
    void *values;               /* the coordinate, count elements; NULL: there is none of numbers, and a place is an index */
    struct sq_json *attributes; /* of the coordinate */
    uint64_t
        *init_of; /* of each index along the sources: its place, or SQ_CUBE_NOWHERE: it lies before the store's end, and is not there */
    uint64_t *source_index; /* of each place: the index along the sources, or SQ_CUBE_NOWHERE */
    bool recounted;         /* the sources count times otherwise than the store does: */
    struct sq_cf_time counted, stored;
    bool is_unordered; /* a new store's coordinate does not go one way */
    int64_t *times_s;  /* of each place, seconds since 1970 in the calendar; NULL: they are no such times */
    char *calendar;    /* of times_s, else NULL */
};

/*
 * sources, stored: of the dimension's name; stored NULL: a new store. length, stored_length: of the dimension.
 * Errors: SQUALL_EREFUSED (times that cannot be counted as the store counts; values that do not go one way).
 * *ret: sq_array_axis_done.
 */
int sq_array_axis_make(const struct squall_dataset *sources, const struct squall_dataset *stored, const char *dim, uint64_t length,
                       uint64_t stored_length, struct sq_array_axis *ret, struct squall_error *err) SQUALL_CHECK;
void sq_array_axis_done(struct sq_array_axis *axis);

#endif
