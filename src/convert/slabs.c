/* See slabs.h. */
#include "convert/slabs.h"

struct sq_slab_groups sq_slab_groups(const struct sq_layout_array *a)
{
    struct sq_slab_groups g = {.chunks_per_group = 1, .cell_bytes = a->element_bytes};
    for (unsigned d = a->rank - a->slab_rank; d < a->rank; d++) {
        g.chunks_per_group *= a->grid[d];
        g.cell_bytes *= a->chunks[d];
    }
    g.count = g.chunks_per_group ? a->chunks_per_unit / g.chunks_per_group : 0;
    return g;
}

uint64_t sq_slab_group(const struct sq_layout_array *a, uint64_t within_unit, uint64_t slab, uint64_t *ret_cell)
{
    uint64_t group = 0, cell = 0, group_step = 1, cell_step = 1, rest = slab;
    for (unsigned d = a->rank - a->slab_rank; d-- > 1;) {
        uint64_t index = rest % a->shape[d];
        rest /= a->shape[d];
        group += index / a->chunks[d] * group_step;
        cell += index % a->chunks[d] * cell_step;
        group_step *= a->grid[d];
        cell_step *= a->chunks[d];
    }
    *ret_cell = cell + within_unit * cell_step;
    return group;
}

bool sq_slab_of_cell(const struct sq_layout_array *a, uint64_t group, uint64_t cell, size_t *ret_slab)
{
    uint64_t slab = 0, slab_step = 1;
    for (unsigned d = a->rank - a->slab_rank; d-- > 1;) {
        uint64_t index = group % a->grid[d] * a->chunks[d] + cell % a->chunks[d];
        group /= a->grid[d];
        cell /= a->chunks[d];
        if (index >= a->shape[d])
            return false;
        slab += index * slab_step;
        slab_step *= a->shape[d];
    }
    *ret_slab = cell * a->slabs_per_init + slab; /* what is left of cell counts init times */
    return true;
}
