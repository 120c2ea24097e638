/*
 * How much memory a plan needs: the chunks of the largest unit, buffers for encoded chunks on their way to disk, what each thread
 * works in, coordinates and records. Known before anything is written, so that a conversion that cannot keep to its budget is refused and not
 * killed half-way.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "convert/plan.h"
#include "convert/summary.h"

/* A match finder's tables and a block, of zstd at middle levels. */
static const uint64_t CODEC_BYTES_PER_THREAD = (uint64_t)4 << 20;
static const uint64_t LIBRARY_BYTES = (uint64_t)8 << 20;

/* With few chunks, one at a time, its blocks in parallel: one is encoded while two are on their way to disk. */
enum { SLOTS_ONE_BY_ONE = 3, SLOTS_LEAST = 2 };

/* Add up the chunks of the units to do; *ret_chunk_count: of the largest. */
static int measure_units(struct squall_convert_plan *plan, uint64_t *ret_chunk_count, struct squall_error *err)
{
    struct sq_unit *unit;
    *ret_chunk_count = 0;
    SQ_TRY(sq_unit_new(&plan->setting, &unit, err));
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *planned = &plan->units[i];
        uint64_t chunk_count;
        struct sq_carry carry;
        if (!sq_is_to_do(planned))
            continue;
        const struct sq_unit_fields fields = sq_plan_unit_fields(plan, planned, &carry);
        uint64_t bytes = sq_unit_measure(unit, &fields, &chunk_count);
        plan->bytes_out += bytes;
        if (bytes > plan->unit_bytes) {
            plan->unit_bytes = bytes;
            *ret_chunk_count = chunk_count;
        }
    }
    sq_unit_free(unit);
    return 0;
}

/* Of the units to do; they are kept until the run ends. */
static uint64_t record_bytes(const struct squall_convert_plan *plan)
{
    uint64_t units = 0, chunks = 0;
    for (size_t i = 0; i < plan->unit_count; i++)
        units += sq_is_to_do(&plan->units[i]);
    for (size_t i = 0; i < plan->layout.array_count; i++)
        chunks += plan->layout.arrays[i].chunks_per_unit;
    return units * (plan->layout.array_count * sizeof(struct sq_record_array) + chunks * sizeof(struct sq_record_chunk));
}

/* Of valid_time above all, which has a value for each init time and step; of arrays' those that have no append dimension are read one at a time. */
static uint64_t coordinate_bytes(const struct sq_cube *cube)
{
    uint64_t bytes = 0, most = 0;
    for (size_t i = 0; i < cube->coordinate_count; i++) {
        const struct sq_cube_coordinate *c = &cube->coordinates[i];
        uint64_t of_this = squall_type_size(c->type);
        for (unsigned d = 0; d < c->rank; d++)
            of_this *= c->shape[d];
        bytes += c->values ? of_this : 0;
        most = c->source && of_this > most ? of_this : most;
    }
    return bytes + most;
}

uint64_t sq_plan_table_bytes(const struct squall_convert_plan *plan)
{
    return plan->index.field_count * sizeof *plan->index.fields + plan->cube.place_count * sizeof *plan->cube.places +
           coordinate_bytes(&plan->cube) + record_bytes(plan) + plan->ctx->threads * CODEC_BYTES_PER_THREAD + LIBRARY_BYTES;
}

uint64_t sq_plan_carry_bytes(const struct squall_convert_plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->unit_count; i++)
        any = any || (plan->units[i].carried && sq_is_to_do(&plan->units[i]));
    return any ? plan->ctx->threads * (uint64_t)(plan->layout.chunk_limit_bytes + plan->layout.encoded_limit_bytes) : 0;
}

static uint64_t needed(const struct squall_convert_plan *plan, size_t slots)
{
    return plan->unit_bytes + slots * (uint64_t)plan->layout.encoded_limit_bytes + sq_unit_other_bytes(&plan->setting) +
           sq_plan_table_bytes(plan) + sq_plan_carry_bytes(plan);
}

static uint64_t mebibytes(uint64_t bytes)
{
    return (bytes + ((uint64_t)1 << 20) - 1) >> 20;
}

/*
 * How many init times a unit may have so that it fits beside the rest; 0: not one. A shorter unit may lie across two of those that
 * were measured, and then touch the chunks of both.
 */
static uint64_t inits_that_fit(const struct squall_convert_plan *plan, uint64_t beside)
{
    uint64_t budget = plan->ctx->memory_bytes, init_chunk = plan->layout.init_chunk;
    uint64_t room = budget > beside ? budget - beside : 0, across = 2 * plan->unit_bytes;
    uint64_t most = across < plan->layout.unit_bytes ? across : plan->layout.unit_bytes;
    uint64_t fits = most ? room / (most / init_chunk) : 0;
    return fits == 0 && room >= plan->unit_bytes / init_chunk ? 1 : fits;
}

/* A store that is there has its chunks and variables already. */
static int refuse(const struct squall_convert_plan *plan, struct squall_error *err)
{
    char needed_text[SQ_SIZE_TEXT_BYTES], run_text[SQ_SIZE_TEXT_BYTES], budget_text[SQ_SIZE_TEXT_BYTES];
    uint64_t init_chunk = plan->layout.init_chunk, fits = inits_that_fit(plan, plan->peak_bytes - plan->unit_bytes);
    unsigned long long enough = mebibytes(plan->peak_bytes);
    sq_size_text(plan->peak_bytes, needed_text);
    sq_size_text(plan->unit_bytes / init_chunk, run_text);
    sq_size_text(plan->ctx->memory_bytes, budget_text);
    if (plan->state.exists)
        return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed and %s may be used; give --memory %lluM", needed_text, budget_text,
                        enough);
    if (fits > 0 && init_chunk > 1)
        return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed and %s may be used; give --chunks init_time=%llu, or --memory %lluM",
                        needed_text, budget_text, (unsigned long long)fits, enough);
    return sq_error(
        err, SQUALL_ENOMEM,
        "%s of memory are needed (%s of it for the fields of one run) and %s may be used; give --memory %lluM, or convert fewer "
        "variables (--select)%s",
        needed_text, run_text, budget_text, enough, init_chunk > 1 ? " with --chunks init_time=1" : "");
}

int squall_convert_plan_check(const squall_convert_plan *plan, struct squall_error *err)
{
    if (plan->peak_bytes <= plan->ctx->memory_bytes)
        return 0;
    return plan->arrays.dataset ? sq_plan_refuse_arrays(plan, err) : refuse(plan, err);
}

int sq_plan_memory(struct squall_convert_plan *plan, struct squall_error *err)
{
    unsigned threads = plan->ctx->threads;
    uint64_t chunk_count;
    SQ_TRY(measure_units(plan, &chunk_count, err));
    plan->spread_chunks = threads > 1 && chunk_count >= 4 * (uint64_t)threads;
    plan->slot_count = plan->spread_chunks ? threads + 2 : SLOTS_ONE_BY_ONE;
    plan->peak_bytes = needed(plan, plan->slot_count);
    if (plan->peak_bytes <= plan->ctx->memory_bytes)
        return 0;
    plan->spread_chunks = false;
    plan->slot_count = SLOTS_LEAST;
    plan->peak_bytes = needed(plan, plan->slot_count);
    return 0;
}
