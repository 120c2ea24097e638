/*
 * How much memory a plan needs: one unit's chunks, buffers for encoded chunks on their way to disk, and what each thread works in.
 * Known before anything is written, so that a conversion that cannot keep to its budget is refused and not killed half-way.
 */
#include "base/error_internal.h"
#include "convert/plan.h"
#include "convert/summary.h"

/* A match finder's tables and a block, of zstd at middle levels. */
static const uint64_t CODEC_BYTES_PER_THREAD = (uint64_t)4 << 20;
static const uint64_t LIBRARY_BYTES = (uint64_t)8 << 20;

/* With few chunks, one at a time, its blocks in parallel: one is encoded while two are on their way to disk. */
enum { SLOTS_ONE_BY_ONE = 3, SLOTS_LEAST = 2 };

static uint64_t chunks_of_unit(const struct sq_layout *layout)
{
    uint64_t count = 0;
    for (size_t i = 0; i < layout->array_count; i++)
        count += layout->arrays[i].chunks_per_unit;
    return count;
}

static uint64_t needed(const struct squall_convert_plan *plan, size_t slots)
{
    uint64_t table_bytes = plan->index.field_count * sizeof *plan->index.fields + plan->cube.place_count * sizeof *plan->cube.places;
    return plan->layout.unit_bytes + slots * (uint64_t)plan->layout.encoded_limit_bytes + sq_unit_worker_bytes(&plan->setting) +
           plan->ctx->threads * CODEC_BYTES_PER_THREAD + table_bytes + LIBRARY_BYTES;
}

static uint64_t mebibytes(uint64_t bytes)
{
    return (bytes + ((uint64_t)1 << 20) - 1) >> 20;
}

static int refuse(const struct squall_convert_plan *plan, uint64_t least, struct squall_error *err)
{
    char needed_text[SQ_SIZE_TEXT_BYTES], run_text[SQ_SIZE_TEXT_BYTES], budget_text[SQ_SIZE_TEXT_BYTES];
    uint64_t budget = plan->ctx->memory_bytes, init_chunk = plan->layout.init_chunk;
    uint64_t beside = least - plan->layout.unit_bytes, per_init = plan->layout.unit_bytes / init_chunk;
    uint64_t fits = budget > beside && per_init ? (budget - beside) / per_init : 0;
    sq_size_text(least, needed_text);
    sq_size_text(per_init, run_text);
    sq_size_text(budget, budget_text);
    if (fits > 0)
        return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed and %s may be used; give --chunks init_time=%llu, or --memory %lluM",
                        needed_text, budget_text, (unsigned long long)fits, (unsigned long long)mebibytes(least));
    return sq_error(
        err, SQUALL_ENOMEM,
        "%s of memory are needed (%s of it for the fields of one run) and %s may be used; give --memory %lluM, or convert fewer "
        "variables (--select)%s",
        needed_text, run_text, budget_text, (unsigned long long)mebibytes(least), init_chunk > 1 ? " with --chunks init_time=1" : "");
}

int sq_plan_memory(struct squall_convert_plan *plan, struct squall_error *err)
{
    unsigned threads = plan->ctx->threads;
    plan->spread_chunks = threads > 1 && chunks_of_unit(&plan->layout) >= 4 * (uint64_t)threads;
    plan->slot_count = plan->spread_chunks ? threads + 2 : SLOTS_ONE_BY_ONE;
    plan->peak_bytes = needed(plan, plan->slot_count);
    if (plan->peak_bytes <= plan->ctx->memory_bytes)
        return 0;
    plan->spread_chunks = false;
    plan->slot_count = SLOTS_LEAST;
    plan->peak_bytes = needed(plan, plan->slot_count);
    return plan->peak_bytes <= plan->ctx->memory_bytes ? 0 : refuse(plan, plan->peak_bytes, err);
}
