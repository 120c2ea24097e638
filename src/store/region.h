/* The write behind squall_array_write, for who knows better than the array where it ends. */
#ifndef SQ_STORE_REGION_H
#define SQ_STORE_REGION_H

#include "engine/array.h"

/*
 * ends  where the array ends along each dimension, at or before where its grid says: a chunk that is selected up to there is selected whole, and
 *       is made without a look at what is stored. NULL: the grid's
 */
int sq_array_write(struct squall_array *a, const struct squall_selection *selection, const uint64_t *ends, const void *src,
                   const int64_t *strides, struct squall_error *err) SQUALL_CHECK;

#endif
