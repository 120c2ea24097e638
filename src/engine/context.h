/* What a squall_context holds. Floors below the engine take the parts that they need, never the context. */
#ifndef SQ_ENGINE_CONTEXT_H
#define SQ_ENGINE_CONTEXT_H

#include "squall/context.h"
#include <stdbool.h>

struct squall_context {
    unsigned threads;      /* ≥ 1 */
    uint64_t memory_bytes; /* > 0 */
    int (*cancelled)(void *user);
    void *user;
};

static inline bool sq_cancelled(const struct squall_context *ctx)
{
    return ctx->cancelled && ctx->cancelled(ctx->user);
}

#endif
