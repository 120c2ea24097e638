/* See array_unit.h: planning. How much memory a brick may have follows from what everything else needs. */
#include "convert/array_unit.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/plan.h"
#include "convert/summary.h"
#include "engine/joined_array.h"

/* A batch smaller than this is not worth the start of all threads; a larger brick no faster. */
static const uint64_t BATCH_BYTES = (uint64_t)64 << 20, BRICK_BYTES = (uint64_t)128 << 20;
static const uint64_t CACHE_BYTES = (uint64_t)12 << 20;

enum { SLOTS_BESIDE_THREADS = 2 };

uint64_t sq_brick_bytes(const struct sq_brick *brick, const struct sq_layout_array *a, uint64_t init_chunk)
{
    uint64_t bytes = brick->source_element_bytes;
    if (!sq_mul_u64(bytes, brick->units, &bytes) || !sq_mul_u64(bytes, init_chunk, &bytes))
        return UINT64_MAX;
    for (unsigned d = 1; d < a->rank; d++)
        if (!sq_mul_u64(bytes, brick->lengths[d], &bytes))
            return UINT64_MAX;
    return bytes;
}

/* Elements of the source's chunks along a dimension; 1 where a part of a chunk can be read for itself. */
static uint64_t source_chunk(const struct sq_cube_variable *v, unsigned d)
{
    if (!v->source || sq_joined_array_is_plain(v->source))
        return 1;
    return v->source->info.chunks[d] < v->shape[d] ? v->source->info.chunks[d] : v->shape[d];
}

static uint64_t rounded_up(uint64_t length, uint64_t to)
{
    return (length + to - 1) / to * to;
}

/* Make it longer along a dimension, up to `length`, as far as the limit goes. */
static void lengthen(struct sq_brick *brick, const struct sq_layout_array *a, uint64_t init_chunk, unsigned d, uint64_t length,
                     uint64_t limit_bytes)
{
    const uint64_t before = brick->lengths[d], one = sq_brick_bytes(brick, a, init_chunk) / (before / a->chunks[d]);
    const uint64_t most = one ? limit_bytes / one * a->chunks[d] : 0, wanted = rounded_up(length, a->chunks[d]);
    const uint64_t now = wanted < most ? wanted : most;
    brick->lengths[d] = now > before ? now : before;
}

static void cut_brick(struct sq_brick *brick, const struct sq_cube_variable *v, const struct sq_layout_array *a, uint64_t init_chunk,
                      uint64_t batch_units, uint64_t room)
{
    const uint64_t enough = room < BRICK_BYTES ? room : BRICK_BYTES;
    *brick = (struct sq_brick){.units = 1, .source_element_bytes = sq_type_size(v->source_type)};
    for (unsigned d = 1; d < a->rank; d++)
        brick->lengths[d] = a->chunks[d];
    const uint64_t of_unit = sq_brick_bytes(brick, a, init_chunk), fit = of_unit ? room / of_unit : batch_units;
    brick->units = fit < batch_units ? fit : batch_units;
    brick->units = brick->units ? brick->units : 1;
    for (unsigned d = a->rank; d-- > 1;)
        lengthen(brick, a, init_chunk, d, source_chunk(v, d), room);
    for (unsigned d = a->rank; d-- > 1;)
        lengthen(brick, a, init_chunk, d, a->shape[d], enough);
}

static uint64_t units_to_do(const struct squall_convert_plan *plan)
{
    uint64_t count = 0;
    for (size_t i = 0; i < plan->unit_count; i++)
        count += sq_is_to_do(&plan->units[i]);
    return count;
}

/* So many that no chunk of a source lies in two batches, where memory allows, and that there is something to do for all threads. */
static uint64_t batch_units(const struct squall_convert_plan *plan)
{
    const uint64_t init_chunk = plan->layout.init_chunk, most = units_to_do(plan), unit_bytes = plan->layout.unit_bytes;
    uint64_t units = unit_bytes ? (BATCH_BYTES + unit_bytes - 1) / unit_bytes : 1;
    for (size_t i = 0; i < plan->layout.array_count; i++) {
        const uint64_t across = (source_chunk(&plan->cube.variables[i], 0) + init_chunk - 1) / init_chunk;
        units = across > units ? across : units;
    }
    units = units < most ? units : most;
    return units ? units : 1;
}

static void add_up(struct squall_convert_plan *plan)
{
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *unit = &plan->units[i];
        for (size_t k = 0; k < unit->place_count && sq_is_to_do(unit); k++) {
            const struct sq_cube_place *p = &plan->cube.places[unit->first_place + k];
            const struct sq_layout_array *a = &plan->layout.arrays[p->variable];
            uint64_t elements = 1;
            for (unsigned d = 1; d < a->rank; d++)
                elements *= a->shape[d];
            plan->bytes_in += elements * sq_type_size(plan->cube.variables[p->variable].source_type);
            plan->bytes_out += elements * a->element_bytes;
        }
    }
}

/* Of the threads: a chunk of the sources stored and decoded, and one of the store as it was and as it is to be. */
static uint64_t working_bytes(const struct squall_convert_plan *plan)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->layout.array_count; i++) {
        const struct sq_cube_variable *v = &plan->cube.variables[i];
        uint64_t bytes = sq_type_size(v->source_type);
        for (unsigned d = 0; d < v->rank; d++)
            bytes *= source_chunk(v, d);
        bytes = 2 * bytes + 2 * plan->layout.arrays[i].chunk_bytes;
        most = bytes > most ? bytes : most;
    }
    return most * plan->ctx->threads;
}

int sq_plan_array_units(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_layout *layout = &plan->layout;
    const uint64_t budget = plan->ctx->memory_bytes;
    plan->outlooks = sq_alloc_zero(layout->array_count + 1, sizeof *plan->outlooks);
    plan->bricks = sq_alloc_zero(layout->array_count + 1, sizeof *plan->bricks);
    if (!plan->outlooks || !plan->bricks)
        return sq_error_memory(err, layout->array_count * sizeof *plan->bricks);
    for (size_t i = 0; i < layout->array_count; i++)
        if (layout->arrays[i].type != plan->cube.variables[i].source_type)
            plan->outlooks[i] = SQ_OUTLOOK_UNKNOWN;
    add_up(plan);
    plan->spread_chunks = true;
    plan->slot_count = plan->ctx->threads + SLOTS_BESIDE_THREADS;
    const uint64_t beside = sq_plan_table_bytes(plan) + sq_plan_carry_bytes(plan) + working_bytes(plan) +
                            plan->slot_count * (uint64_t)layout->encoded_limit_bytes +
                            (budget / 8 < CACHE_BYTES ? budget / 8 : CACHE_BYTES);
    const uint64_t room = budget > beside ? budget - beside : 0;
    plan->batch_units = batch_units(plan);
    for (size_t i = 0; i < layout->array_count; i++) {
        cut_brick(&plan->bricks[i], &plan->cube.variables[i], &layout->arrays[i], layout->init_chunk, plan->batch_units, room);
        const uint64_t bytes = sq_brick_bytes(&plan->bricks[i], &layout->arrays[i], layout->init_chunk);
        plan->unit_bytes = bytes > plan->unit_bytes ? bytes : plan->unit_bytes;
    }
    plan->peak_bytes = units_to_do(plan) ? plan->unit_bytes + beside : 0;
    return 0;
}

int sq_plan_refuse_arrays(const struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_layout_array *largest = &plan->layout.arrays[0];
    char needed[SQ_SIZE_TEXT_BYTES], budget[SQ_SIZE_TEXT_BYTES], chunk[SQ_SIZE_TEXT_BYTES];
    for (size_t i = 1; i < plan->layout.array_count; i++)
        if (plan->layout.arrays[i].chunk_bytes > largest->chunk_bytes)
            largest = &plan->layout.arrays[i];
    sq_size_text(plan->peak_bytes, needed);
    sq_size_text(plan->ctx->memory_bytes, budget);
    sq_size_text(largest->chunk_bytes, chunk);
    return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed (a chunk of %s has %s) and %s may be used; give --memory %lluM%s%s",
                    needed, largest->name, chunk, budget, (unsigned long long)((plan->peak_bytes >> 20) + 1),
                    plan->state.exists ? "" : ", or shorter ", plan->state.exists ? "" : sq_layout_file_option(largest));
}
