/*
 * Chunk grids, a dimension at a time: where its chunks begin and end. Regular ones all have one length (Zarr v3, "Regular grids");
 * those of a rectilinear grid each have their own.
 */
#ifndef SQ_ARRAY_GRID_H
#define SQ_ARRAY_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_axis {
    uint64_t length; /* of the dimension, within int64 */
    uint64_t chunk;  /* length of every chunk, ≥ 1; of a rectilinear one's longest */
    const uint64_t
        *edges; /* rectilinear: chunk k has the elements from edges[k] up to edges[k + 1], the last edge ≥ length; NULL: regular */
    uint64_t edge_count;
    bool cut; /* regular: the last chunk ends with the dimension. Else it is as long as the others, and reaches beyond */
};

/* How many chunks; of a dimension without elements 0. */
static inline uint64_t sq_axis_count(const struct sq_axis *axis)
{
    return axis->edges ? axis->edge_count - 1 : axis->length ? (axis->length - 1) / axis->chunk + 1 : 0;
}

/* The chunk that element `index` (below length) lies in. */
static inline uint64_t sq_axis_chunk_of(const struct sq_axis *axis, uint64_t index)
{
    if (!axis->edges)
        return index / axis->chunk;
    uint64_t low = 0, high = axis->edge_count - 1; /* edges[low] ≤ index < edges[high] */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (axis->edges[middle] <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A regular chunk at the end may reach beyond the dimension, within uint64. */
static inline uint64_t sq_axis_begin(const struct sq_axis *axis, uint64_t chunk)
{
    return axis->edges ? axis->edges[chunk] : chunk * axis->chunk;
}

static inline uint64_t sq_axis_extent(const struct sq_axis *axis, uint64_t chunk)
{
    if (axis->edges)
        return axis->edges[chunk + 1] - axis->edges[chunk];
    const uint64_t left = axis->length - chunk * axis->chunk;
    return axis->cut && left < axis->chunk ? left : axis->chunk;
}

#endif
