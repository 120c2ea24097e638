/*
 * What a thread needs to read chunks, kept from read to read: the format's decoder, buffers for stored bytes, for an inflated
 * member of a zip file and for a decoded chunk. A dataset keeps those that no read uses; reads that run at the same time each have their own.
 */
#ifndef SQ_ENGINE_WORKER_H
#define SQ_ENGINE_WORKER_H

#include "engine/array.h"

struct sq_worker {
    struct sq_worker *next;
    const struct sq_array_ops *ops; /* whose scratch it is */
    void *scratch;
    void *raw, *chunk, *member; /* grown as needed; where a shard is changed, member is the old one */
    size_t raw_capacity, chunk_capacity, member_capacity;
    struct sq_source **sources; /* that this read touched: sq_worker_note_source */
    size_t source_count, source_capacity;
    struct squall_speed speed; /* of the read that it serves; seconds only where that is timed */
};

/* NULL: out of memory. */
struct sq_worker *sq_worker_take(const struct squall_array *a);
void sq_worker_give_back(const struct squall_array *a, struct sq_worker *worker); /* NULL is accepted */
void sq_workers_free(struct sq_worker *list);

/* The read took something from this source, which is asked at the end whether it is what it was. */
int sq_worker_note_source(struct sq_worker *worker, struct sq_source *source, struct squall_error *err) SQUALL_CHECK;

/* What other threads read, and how long it took them; points and the clock on the wall are their caller's to tell. */
void sq_speed_add(struct squall_speed *to, const struct squall_speed *from);

/* At least size_bytes, content undefined; NULL: out of memory. */
void *sq_worker_raw(struct sq_worker *worker, size_t size_bytes);
void *sq_worker_chunk(struct sq_worker *worker, size_t size_bytes);
void *sq_worker_member(struct sq_worker *worker, size_t size_bytes);

#endif
