/*
 * See squall/memory.h. Freed blocks, marked so that the system may take their pages when it needs some (they are then fresh ones at the
 * next use): a few of any size, or the many that Dask holds until it joins them to one variable. As in chunk_cache.c, who finds the list
 * busy goes without it.
 */
#include "squall/memory.h"
#include "base/memory.h"
#include "engine/context.h"
#include "sys/clock.h"

/* Smaller ones cost nothing worth keeping them for. */
enum { LEAST_BYTES = 1 << 20 };
/* More than FEW blocks are kept only as long as all of them are no larger than MANY_BYTES. */
enum { FEW = 4, MANY_BYTES = 256 << 20 };
static const double KEPT_SECONDS = 10;

static bool try_enter(struct sq_kept_memory *kept)
{
    return !atomic_flag_test_and_set_explicit(&kept->busy, memory_order_acquire);
}

static void leave(struct sq_kept_memory *kept)
{
    atomic_flag_clear_explicit(&kept->busy, memory_order_release);
}

static void drop(struct sq_kept_memory *kept, struct sq_kept_block *block)
{
    sq_pages_free(block->data, block->size_bytes);
    kept->held_bytes -= block->size_bytes;
    *block = (struct sq_kept_block){0};
}

static void drop_older_than(struct sq_kept_memory *kept, double freed_at)
{
    for (unsigned i = 0; i < SQ_KEPT_BLOCKS; i++)
        if (kept->blocks[i].data && kept->blocks[i].freed_at < freed_at)
            drop(kept, &kept->blocks[i]);
}

/* The one of this size that was freed last, so that those that are too many grow old; NULL: none. */
static void *take(struct sq_kept_memory *kept, size_t rounded)
{
    struct sq_kept_block *last = NULL;
    for (unsigned i = 0; i < SQ_KEPT_BLOCKS; i++) {
        struct sq_kept_block *block = &kept->blocks[i];
        if (block->data && block->size_bytes == rounded && (!last || block->freed_at >= last->freed_at))
            last = block;
    }
    if (!last)
        return NULL;
    void *found = last->data;
    kept->held_bytes -= rounded;
    *last = (struct sq_kept_block){0};
    return found;
}

void *squall_memory_alloc(squall_context *ctx, size_t size_bytes)
{
    struct sq_kept_memory *kept = &ctx->kept;
    void *found = NULL;
    if (size_bytes >= LEAST_BYTES && try_enter(kept)) {
        drop_older_than(kept, sq_clock_s() - KEPT_SECONDS);
        found = take(kept, sq_pages_rounded(size_bytes));
        leave(kept);
    }
    return found ? found : sq_pages_alloc(size_bytes);
}

/* A free place for a block, for which those freed first make room. */
static struct sq_kept_block *place_for(struct sq_kept_memory *kept, size_t rounded, uint64_t most_bytes)
{
    for (;;) {
        struct sq_kept_block *empty = NULL, *first = NULL;
        unsigned count = 0;
        for (unsigned i = 0; i < SQ_KEPT_BLOCKS; i++) {
            struct sq_kept_block *block = &kept->blocks[i];
            count += block->data != NULL;
            if (!block->data)
                empty = block;
            else if (!first || block->freed_at < first->freed_at)
                first = block;
        }
        const size_t held_bytes = kept->held_bytes + rounded;
        if (!first || (empty && held_bytes <= most_bytes && (count < FEW || held_bytes <= MANY_BYTES)))
            return empty;
        drop(kept, first);
    }
}

void squall_memory_free(squall_context *ctx, void *p, size_t size_bytes)
{
    struct sq_kept_memory *kept = &ctx->kept;
    const size_t rounded = sq_pages_rounded(size_bytes);
    if (!p)
        return;
    if (size_bytes < LEAST_BYTES || rounded > ctx->memory_bytes / 4 || !try_enter(kept)) {
        sq_pages_free(p, size_bytes);
        return;
    }
    const double now = sq_clock_s();
    drop_older_than(kept, now - KEPT_SECONDS);
    struct sq_kept_block *place = place_for(kept, rounded, ctx->memory_bytes / 4);
    sq_pages_offer(p, rounded);
    *place = (struct sq_kept_block){.data = p, .size_bytes = rounded, .freed_at = now};
    kept->held_bytes += rounded;
    leave(kept);
}

void sq_kept_memory_done(struct sq_kept_memory *kept)
{
    for (unsigned i = 0; i < SQ_KEPT_BLOCKS; i++)
        if (kept->blocks[i].data)
            drop(kept, &kept->blocks[i]);
}
