/* The read behind squall_array_read, with its threads and its clock. */
#ifndef SQ_ENGINE_READ_H
#define SQ_ENGINE_READ_H

#include "engine/array.h"

/* On at most `threads` threads. speed: NULL where nobody asks; else bytes and seconds of the threads' work are added to it. */
int sq_array_read(struct squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides, unsigned threads,
                  struct squall_speed *speed, struct squall_error *err) SQUALL_CHECK;

/* Something failed at a chunk, or a shard: "array t2m, chunk 3/0/1" before the message. */
int sq_chunk_failed(const struct squall_array *a, const uint64_t *chunk, int status, struct squall_error *err);
/* At a chunk in a shard: "inner chunk 0/1" before the message. */
int sq_inner_chunk_failed(const struct squall_array *a, const uint64_t *chunk, int status, struct squall_error *err);

#endif
