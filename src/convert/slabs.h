/*
 * Where slabs lie in chunks. Chunks come in groups (a *group*: the chunks that cut the same slabs, side by side along y and x); a *cell* is a slab's
 * piece of each chunk of its group.
 */
#ifndef SQ_CONVERT_SLABS_H
#define SQ_CONVERT_SLABS_H

#include "convert/layout.h"

/* What is known of a slab of a unit at hand. */
enum sq_slab_state {
    SQ_SLAB_EMPTY,
    SQ_SLAB_STORED,
    SQ_SLAB_BAD,     /* its field could not be decoded */
    SQ_SLAB_CARRIED, /* the sources have no field for it: it has its old values */
    SQ_SLAB_KEPT     /* SQ_SLAB_BAD, so it has its old values */
};

static inline bool sq_slab_has_values(uint8_t state)
{
    return state == SQ_SLAB_STORED || state == SQ_SLAB_CARRIED || state == SQ_SLAB_KEPT;
}

static inline bool sq_slab_is_old(uint8_t state)
{
    return state == SQ_SLAB_CARRIED || state == SQ_SLAB_KEPT;
}

/* The state of one that is stored, and that the sources do not fill. */
static inline uint8_t sq_slab_carry(uint8_t state)
{
    return state == SQ_SLAB_EMPTY ? SQ_SLAB_CARRIED : state == SQ_SLAB_BAD ? SQ_SLAB_KEPT : state;
}

struct sq_slab_groups {
    uint64_t count, chunks_per_group;
    size_t cell_bytes;
};

struct sq_slab_groups sq_slab_groups(const struct sq_layout_array *a);
/* The group that a slab of an init time of the unit is in, and its cell. */
uint64_t sq_slab_group(const struct sq_layout_array *a, uint64_t within_unit, uint64_t slab, uint64_t *ret_cell);
/* The slab of the unit (init within it × slabs_per_init + slab) of a cell; false where the cell lies beyond the array's edge. */
bool sq_slab_of_cell(const struct sq_layout_array *a, uint64_t group, uint64_t cell, size_t *ret_slab);

#endif
