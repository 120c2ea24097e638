/* What a squall_context holds. Floors below the engine take the parts that they need, never the context. */
#ifndef SQ_ENGINE_CONTEXT_H
#define SQ_ENGINE_CONTEXT_H

#include "squall/context.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct sq_chunk_cache;

/* Results that were freed: memory.c. */
enum { SQ_KEPT_BLOCKS = 64 };
struct sq_kept_block {
    void *data; /* sq_pages_alloc; NULL: none */
    size_t size_bytes;
    double freed_at; /* sq_clock_s */
};
struct sq_kept_memory {
    atomic_flag busy;
    size_t held_bytes;
    struct sq_kept_block blocks[SQ_KEPT_BLOCKS];
};
void sq_kept_memory_done(struct sq_kept_memory *kept);

struct squall_context {
    unsigned threads;      /* ≥ 1 */
    uint64_t memory_bytes; /* > 0 */
    struct sq_kept_memory kept;
    struct sq_chunk_cache *cache; /* NULL: none */
    int (*cancelled)(void *user);
    void *user;
    char *cache_folder; /* NULL: none */
};

static inline bool sq_cancelled(const struct squall_context *ctx)
{
    return ctx->cancelled && ctx->cancelled(ctx->user);
}

#endif
