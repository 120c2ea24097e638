/*
 * Units made of arrays. A unit may be larger than memory, and chunks of the sources may lie across many units (a time series in each chunk of the
 * source, a map in each of the store's, or the other way round). So units are written in *batches*, consecutive ones together, and of each array a
 * *brick* is in memory at a time: a box of whole chunks of the store, as long along the append dimension as the sources' chunks are where
 * memory allows. What of a source chunk lies in several bricks is decoded for each.
 */
#ifndef SQ_CONVERT_ARRAY_UNIT_H
#define SQ_CONVERT_ARRAY_UNIT_H

#include "convert/layout.h"

struct sq_brick {
    uint64_t units;                       /* along the append dimension */
    uint64_t lengths[SQ_LAYOUT_RANK_MAX]; /* elements along each other dimension, of whole chunks; [0] is not used */
    size_t source_element_bytes;
};

/* Bytes of the largest brick of the array. */
uint64_t sq_brick_bytes(const struct sq_brick *brick, const struct sq_layout_array *a, uint64_t init_chunk);

#endif
