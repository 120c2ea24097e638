/*
 * A set of whole numbers as ascending ranges: which slabs of a unit hold a field. A full set is one range, so records stay
 * short; as text "0-11,13".
 */
#ifndef SQ_ZARR_RANGES_H
#define SQ_ZARR_RANGES_H

#include "base/text.h"
#include "squall/error.h"

struct sq_range {
    uint64_t first, last;
};

struct sq_ranges {
    struct sq_range *items; /* ascending, apart by more than one */
    size_t count, capacity;
};

/* Values must come in ascending order; one that is in the set already changes nothing. */
int sq_ranges_add(struct sq_ranges *set, uint64_t value, struct squall_error *err) SQUALL_CHECK;
void sq_ranges_done(struct sq_ranges *set);
/* How many of `wanted` are neither in a nor in b (NULL: empty). */
uint64_t sq_ranges_lacking(const struct sq_ranges *wanted, const struct sq_ranges *a, const struct sq_ranges *b);
/* How many numbers in the set are `limit` or more. */
uint64_t sq_ranges_beyond(const struct sq_ranges *set, uint64_t limit);
void sq_ranges_write(const struct sq_ranges *set, struct sq_text *out);
/* SQUALL_ECORRUPT where the text is no such set. */
int sq_ranges_parse(const char *text, struct sq_ranges *ret, struct squall_error *err) SQUALL_CHECK;

#endif
