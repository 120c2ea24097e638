/*
 * Small dense numbers for keys of a few 64-bit words, and the sorted lists that come of them. Numbering n keys takes linear time, which is what lets a
 * cube of millions of fields be built without comparing fields pairwise.
 */
#ifndef SQ_CUBE_INTERN_H
#define SQ_CUBE_INTERN_H

#include "base/distinct.h"
#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_intern {
    size_t words;           /* of a key */
    uint32_t count;         /* distinct keys */
    struct sq_arena *arena; /* NULL: no key yet */
    struct sq_distinct table;
};

struct sq_intern sq_intern_make(size_t words);
void sq_intern_done(struct sq_intern *table);
#define SQ_CLEANUP_INTERN __attribute__((cleanup(sq_intern_done)))

/* *ret: the key's number, a new one where it was not there. */
int sq_intern_add(struct sq_intern *table, const int64_t *key, uint32_t *ret, struct squall_error *err) SQUALL_CHECK;
/* The key's number; UINT32_MAX where it is not there. */
uint32_t sq_intern_find(const struct sq_intern *table, const int64_t *key);
const int64_t *sq_intern_key(const struct sq_intern *table, uint32_t number);
/* All keys, one after the other, in ascending order. *ret: sq_free. */
int sq_intern_sorted(const struct sq_intern *table, int64_t **ret, struct squall_error *err) SQUALL_CHECK;

/* Distinct numbers, such as the steps of a cube. */
struct sq_axis {
    int64_t *values;
    uint32_t count;
    bool is_unsorted; /* not ascending: as members are that joined a store one after the other */
};

void sq_axis_done(struct sq_axis *axis);
/* The keys of a table of one word, sorted. axis: replaced. */
int sq_axis_from(struct sq_axis *axis, const struct sq_intern *table, struct squall_error *err) SQUALL_CHECK;
/* Distinct numbers as they come. axis: replaced. */
int sq_axis_take(struct sq_axis *axis, const int64_t *values, uint32_t count, struct squall_error *err) SQUALL_CHECK;
/* UINT32_MAX where the value is not there. */
uint32_t sq_axis_index(const struct sq_axis *axis, int64_t value);

#endif
