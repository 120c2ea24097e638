/*
 * Which chunks a selection touches, and which box of each goes where. Pure arithmetic, no I/O. Dimensions are independent:
 * along each one the selection falls into segments, one a chunk, and an item of the plan is one segment of every dimension.
 * Nothing is stored per item, so that a plan of a billion chunks costs what a plan of one does.
 */
#ifndef SQ_ENGINE_PLAN_H
#define SQ_ENGINE_PLAN_H

#include "array/grid.h"
#include "squall/array.h"
#include <stdbool.h>

struct sq_plan {
    unsigned rank;
    struct sq_axis axes[SQUALL_RANK_MAX]; /* edges are the caller's */
    struct squall_selection selection;
    uint64_t segment_counts[SQUALL_RANK_MAX];
    size_t item_count; /* 0: the selection is empty */
};

/* Along dimension d: the elements first[d], first[d] + step, … of the chunk, count[d] of them, go to to[d] and on. */
struct sq_plan_item {
    uint64_t chunk[SQUALL_RANK_MAX];
    uint64_t extent[SQUALL_RANK_MAX]; /* the chunk's shape */
    uint64_t first[SQUALL_RANK_MAX];
    uint64_t count[SQUALL_RANK_MAX];
    uint64_t to[SQUALL_RANK_MAX];
};

/* SQUALL_EINVAL where the selection leaves the shape. */
int sq_plan_init(unsigned rank, const struct sq_axis *axes, const struct squall_selection *selection, struct sq_plan *ret,
                 struct squall_error *err) SQUALL_CHECK;
/* Items are in C order of their chunks. False: nothing is selected of this chunk (long steps over short chunks). */
bool sq_plan_item_at(const struct sq_plan *plan, size_t index, struct sq_plan_item *ret);

#endif
