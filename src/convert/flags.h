/*
 * chunk_exists (bool) and field_count (int32): along init_time, one chunk an element, so that no two units share one. An
 * absent chunk is false and 0; a run's flags are what says that its data are there.
 */
#ifndef SQ_CONVERT_FLAGS_H
#define SQ_CONVERT_FLAGS_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQ_FLAG_EXISTS "chunk_exists"
#define SQ_FLAG_COUNT  "field_count"

struct sq_flag {
    uint64_t init;
    uint32_t field_count;
    bool exists; /* false: only the count is written; the flag was not set before */
};

/* Durable: all counts, then all flags. */
int sq_flags_set(const char *store, const struct sq_flag *flags, size_t count, struct squall_error *err) SQUALL_CHECK;
/* Durable: the flag, then the count. */
int sq_flags_clear(const char *store, uint64_t init, struct squall_error *err) SQUALL_CHECK;
/* What the files say; false and 0 where they are not there or are no flags. */
int sq_flags_get(const char *store, uint64_t init, bool *ret_exists, uint32_t *ret_field_count, struct squall_error *err) SQUALL_CHECK;

#endif
