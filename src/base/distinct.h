/*
 * Distinct strings of bytes, numbered in the order in which they first came: what turns many equal descriptions into one row of a table. Adding is a
 * hash and a comparison; the string that came last costs the comparison only.
 */
#ifndef SQ_BASE_DISTINCT_H
#define SQ_BASE_DISTINCT_H

#include "base/arena.h"
#include "squall/error.h"
#include <stddef.h>
#include <stdint.h>

struct sq_distinct_row {
    const void *bytes; /* a copy in the arena, 16-byte aligned */
    size_t count;
    uint64_t hash;
};

struct sq_distinct {
    struct sq_arena *arena; /* the caller's; outlives the table */
    struct sq_distinct_row *rows;
    size_t row_count, row_capacity;
    uint32_t *slots; /* row + 1; 0: free */
    size_t slot_count;
    uint32_t last;
};

/* clang-format off */
#define SQ_DISTINCT_INIT(arena) {(arena), NULL, 0, 0, NULL, 0, 0}
/* clang-format on */

/* *ret: the row of these bytes; a new one, the last, where they were not there. */
int sq_distinct_add(struct sq_distinct *d, const void *bytes, size_t count, uint32_t *ret, struct squall_error *err) SQUALL_CHECK;
/* The row of these bytes; UINT32_MAX where they are not there. */
uint32_t sq_distinct_find(const struct sq_distinct *d, const void *bytes, size_t count);
void sq_distinct_done(struct sq_distinct *d);

#endif
