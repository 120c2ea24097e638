/* See squall/context.h: limits with their defaults filled in. */
#include "engine/context.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "sys/memory_limit.h"
#include "sys/pool.h"

int squall_context_new(const struct squall_context_options *options, squall_context **ret, struct squall_error *err)
{
    static const struct squall_context_options DEFAULTS;
    if (!options)
        options = &DEFAULTS;
    squall_context *ctx = sq_alloc_zero(1, sizeof *ctx);
    if (!ctx)
        return sq_error_memory(err, sizeof *ctx);
    *ctx = (squall_context){
        .threads = options->threads ? options->threads : sq_cpu_count(),
        .memory_bytes = options->memory_bytes ? options->memory_bytes : sq_memory_limit_bytes() / 2,
        .cancelled = options->cancelled,
        .user = options->user,
    };
    *ret = ctx;
    return 0;
}

void squall_context_free(squall_context *ctx)
{
    sq_free(ctx);
}
