/* See squall/context.h: limits with their defaults filled in. */
#include "engine/context.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/chunk_cache.h"
#include "sys/file.h"
#include "sys/memory_limit.h"
#include "sys/pool.h"

/* Enough for the chunks that a walk through neighbouring points meets, and little beside what a reader asks for. */
enum { CACHE_LIMIT_BYTES = 12 << 20 };

int squall_context_new(const struct squall_context_options *options, squall_context **ret, struct squall_error *err)
{
    static const struct squall_context_options DEFAULTS;
    if (!options)
        options = &DEFAULTS;
    squall_context *ctx = sq_alloc_zero(1, sizeof *ctx);
    if (!ctx)
        return sq_error_memory(err, sizeof *ctx);
    *ctx = (squall_context){
        .threads = options->threads ? options->threads : sq_thread_count(),
        .memory_bytes = options->memory_bytes ? options->memory_bytes : sq_memory_limit_bytes() / 2,
        .cancelled = options->cancelled,
        .user = options->user,
    };
    size_t cache_bytes = ctx->memory_bytes / 8 < CACHE_LIMIT_BYTES ? (size_t)(ctx->memory_bytes / 8) : CACHE_LIMIT_BYTES;
    ctx->cache = sq_chunk_cache_new(cache_bytes);
    ctx->cache_folder = options->cache_folder ? sq_path_absolute(options->cache_folder) : NULL;
    if (!ctx->cache || (options->cache_folder && !ctx->cache_folder)) {
        squall_context_free(ctx);
        return sq_error_memory(err, cache_bytes);
    }
    *ret = ctx;
    return 0;
}

void squall_context_free(squall_context *ctx)
{
    if (!ctx)
        return;
    sq_kept_memory_done(&ctx->kept);
    sq_chunk_cache_free(ctx->cache);
    sq_free(ctx->cache_folder);
    sq_free(ctx);
}
