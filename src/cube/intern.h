/*
 * Small dense numbers for keys of a few 64-bit words: the first distinct key is 0, the next 1, … Adding n keys takes linear time, which is what
 * lets a cube of millions of fields be built without sorting texts or comparing fields pairwise.
 */
#ifndef SQ_CUBE_INTERN_H
#define SQ_CUBE_INTERN_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_intern {
    size_t words;   /* of a key */
    uint32_t count; /* distinct keys */
    int64_t *keys;  /* count × words, by number */
    size_t key_capacity;
    uint32_t *slots; /* number + 1; 0: free */
    size_t slot_count;
};

struct sq_intern sq_intern_make(size_t words);
void sq_intern_done(struct sq_intern *table);
#define SQ_CLEANUP_INTERN __attribute__((cleanup(sq_intern_done)))

/* *ret: the key's number, a new one where it was not there. */
int sq_intern_add(struct sq_intern *table, const int64_t *key, uint32_t *ret, struct squall_error *err) SQUALL_CHECK;
/* The key's number; UINT32_MAX where it is not there. */
uint32_t sq_intern_find(const struct sq_intern *table, const int64_t *key);

/* Distinct numbers in ascending order, such as the steps of a cube. */
struct sq_axis {
    int64_t *values;
    uint32_t count;
};

void sq_axis_done(struct sq_axis *axis);
/* The keys of a table of one word, sorted. axis: replaced. */
int sq_axis_from(struct sq_axis *axis, const struct sq_intern *table, struct squall_error *err) SQUALL_CHECK;
/* UINT32_MAX where the value is not there. */
uint32_t sq_axis_index(const struct sq_axis *axis, int64_t value);

#endif
