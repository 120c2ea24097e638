/* A write and its chunks on their way, for the files that make it: region.c, and shard_region.c, which makes shards. */
#ifndef SQ_STORE_WRITING_H
#define SQ_STORE_WRITING_H

#include "base/hash.h"
#include "engine/array.h"
#include "engine/plan.h"
#include "engine/worker.h"
#include <stdbool.h>

struct sq_writing {
    struct squall_array *array;
    const char *folder; /* of the array */
    struct sq_plan plan;
    const uint64_t *ends; /* of the array along each dimension; NULL: they are the grid's */
    const uint8_t *src;
    int64_t strides[SQUALL_RANK_MAX]; /* of src */
    struct sq_worker **workers;       /* one for each thread */
    unsigned inner_threads;           /* that may work on one chunk */
    struct sq_hash identity;          /* of the array, for locks */
};

/* A chunk on its way. */
struct sq_parcel {
    const struct sq_writing *writing;
    struct sq_worker *worker;
    struct sq_plan_item item;
    uint64_t begin[SQUALL_RANK_MAX], inside[SQUALL_RANK_MAX]; /* the chunk's first element in the array, and how many of it the array has */
    int64_t strides[SQUALL_RANK_MAX];                         /* of the whole chunk, bytes */
    size_t bytes;                                             /* the same */
    const uint8_t *from;                                      /* its first selected element in src */
    bool whole;                                               /* the region has every element of it that the array has */
    bool padded;                                              /* it reaches beyond the array */
    struct sq_location where;
    uint64_t lock;
};

/* Elements of a box at src into its places in a chunk of elements in the order of C: those that the item says, every step-th. */
void sq_writing_gather(const struct sq_writing *w, const struct sq_plan_item *item, const uint8_t *src, const int64_t *chunk_strides,
                       uint8_t *chunk);
bool sq_writing_is_all_fill(const struct squall_array *a, const uint8_t *elements, size_t size_bytes);
/* Publish what is stored of the chunk; bytes NULL: remove it. Of one that is written in part the lock is held all along. */
int sq_parcel_put(const struct sq_parcel *p, const void *bytes, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;

/*
 * A shard, or the region's part of it: inner chunks that the region does not touch keep their bytes. *ret_done false, and nothing changed: it has to be
 * put together as a whole.
 */
int sq_shard_write(const struct sq_parcel *p, bool *ret_done, struct squall_error *err) SQUALL_CHECK;

#endif
