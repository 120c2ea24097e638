/*
 * Decoded chunks, and indexes of shards, that were read in small parts: kept for the next part, up to a number of bytes, the longest
 * unused going first. What it is found by is the file's identity, so that a chunk that was written again is not found.
 *
 * No lock is waited for: who finds the cache busy goes without it. So a fork at any moment leaves nobody waiting.
 */
#ifndef SQ_ENGINE_CHUNK_CACHE_H
#define SQ_ENGINE_CHUNK_CACHE_H

#include "sys/file.h"
#include <stdbool.h>

struct sq_chunk_cache;

struct sq_cache_key {
    struct sq_file_identity file;
    uint64_t offset;     /* in the file */
    uint64_t decoded_id; /* how it was decoded: type, shape, codecs */
};

struct sq_chunk_cache *sq_chunk_cache_new(size_t limit_bytes); /* NULL: out of memory */
void sq_chunk_cache_free(struct sq_chunk_cache *cache);        /* NULL is accepted; nothing is pinned */

/* What was kept, of exactly this size; it stays until it is unpinned. NULL: not there. */
const void *sq_chunk_cache_pin(struct sq_chunk_cache *cache, const struct sq_cache_key *key, size_t size_bytes);
void sq_chunk_cache_unpin(struct sq_chunk_cache *cache, const void *data);
/*
 * Keep *buffer (sq_pages_alloc'ed, *capacity bytes), which holds size_bytes of key's. It is the cache's then, and the caller has
 * another one instead, of any size, or none (NULL, 0). Where the cache does not take it, nothing changes. The file is still open.
 */
void sq_chunk_cache_give(struct sq_chunk_cache *cache, const struct sq_cache_key *key, size_t size_bytes, void **buffer, size_t *capacity);

#endif
