/*
 * chunk_exists (bool) and field_count (int32): along the append dimension, cut so that no two units share a chunk: one element each, of arrays as many
 * as a unit has. In Zarr v3 an absent chunk is false and 0; an init time's flags are what says that its data are there.
 */
#ifndef SQ_CONVERT_FLAGS_H
#define SQ_CONVERT_FLAGS_H

#include "store/zarr_writer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQ_FLAG_EXISTS "chunk_exists"
#define SQ_FLAG_COUNT  "field_count"

/* Elements of a chunk of the flags. init_chunk: init times of a unit. */
static inline uint64_t sq_flag_chunk(bool of_arrays, uint64_t init_chunk)
{
    return of_arrays ? init_chunk : 1;
}

struct sq_flag {
    uint32_t field_count;
    bool exists;
};

/*
 * Of `count` init times from `first` on; chunk: elements of the flags' chunks, of which first is a multiple.
 * set: durable, all counts, then all flags, which were not set before; nothing is written where all counts of a chunk are 0.
 * clear: durable, the flags, then the counts.
 * get: what the files say; false and 0 where they are not there or are no flags.
 * prepare: before there is room for count of them. In Zarr v2 what is not there is not false but unknown, so that every flag has its file.
 */
int sq_flags_prepare(struct sq_store store, uint64_t chunk, uint64_t count, struct squall_error *err) SQUALL_CHECK;
int sq_flags_set(struct sq_store store, uint64_t chunk, uint64_t first, const struct sq_flag *flags, size_t count,
                 struct squall_error *err) SQUALL_CHECK;
int sq_flags_clear(struct sq_store store, uint64_t chunk, uint64_t first, size_t count, struct squall_error *err) SQUALL_CHECK;
int sq_flags_get(struct sq_store store, uint64_t chunk, uint64_t first, struct sq_flag *ret, size_t count,
                 struct squall_error *err) SQUALL_CHECK;

#endif
