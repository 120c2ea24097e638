/*
 * See squall/memory.h. A few freed blocks, marked so that the system may take their pages when it needs some (they are then fresh ones
 * at the next use). As in chunk_cache.c, who finds the list busy goes without it.
 */
#include "squall/memory.h"
#include "base/memory.h"
#include "engine/context.h"
#include "sys/clock.h"

/* Smaller ones cost nothing worth keeping them for. */
enum { LEAST_BYTES = 1 << 20 };
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

void *squall_memory_alloc(squall_context *ctx, size_t size_bytes)
{
    struct sq_kept_memory *kept = &ctx->kept;
    void *found = NULL;
    if (size_bytes >= LEAST_BYTES && try_enter(kept)) {
        drop_older_than(kept, sq_clock_s() - KEPT_SECONDS);
        for (unsigned i = 0; i < SQ_KEPT_BLOCKS && !found; i++) {
            struct sq_kept_block *block = &kept->blocks[i];
            if (!block->data || block->size_bytes != sq_pages_rounded(size_bytes))
                continue;
            found = block->data;
            kept->held_bytes -= block->size_bytes;
            *block = (struct sq_kept_block){0};
        }
        leave(kept);
    }
    return found ? found : sq_pages_alloc(size_bytes);
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
    struct sq_kept_block *place = &kept->blocks[0];
    drop_older_than(kept, now - KEPT_SECONDS);
    for (unsigned i = 1; i < SQ_KEPT_BLOCKS; i++) /* a free place, or the one freed first */
        if (kept->blocks[i].freed_at < place->freed_at)
            place = &kept->blocks[i];
    if (place->data)
        drop(kept, place);
    if (kept->held_bytes + rounded > ctx->memory_bytes / 4)
        drop_older_than(kept, now);
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
