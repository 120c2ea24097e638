/*
 * How much memory a plan needs: the chunks of the largest unit, or where there is no room for them of a band of it, buffers for encoded chunks on their way to disk, what each thread
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

/* Add up the chunks of the units to do; *ret_chunk_count: of the largest. *ret_least: of the largest group of chunks. */
static void measure_units(struct squall_convert_plan *plan, struct sq_unit *unit, uint64_t *ret_chunk_count, uint64_t *ret_least)
{
    *ret_chunk_count = *ret_least = 0;
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *planned = &plan->units[i];
        uint64_t chunk_count;
        size_t largest = 0;
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
        const uint64_t group = sq_unit_largest_group(unit, &largest);
        if (group > *ret_least) {
            *ret_least = group;
            plan->largest = largest;
        }
    }
}

/* The units to do in bands of at most plan->band_bytes. */
static void cut_into_bands(struct squall_convert_plan *plan, struct sq_unit *unit)
{
    plan->unit_bytes = 0;
    for (size_t i = 0; i < plan->unit_count; i++) {
        struct sq_carry carry;
        uint64_t count = 0, bytes;
        bool last = !sq_is_to_do(&plan->units[i]);
        struct sq_unit_fields fields = sq_plan_unit_fields(plan, &plan->units[i], &carry);
        for (; !last; count++) {
            last = sq_unit_next_band(unit, &fields, plan->band_bytes, &bytes);
            plan->unit_bytes = bytes > plan->unit_bytes ? bytes : plan->unit_bytes;
        }
        plan->band_count = count > plan->band_count ? count : plan->band_count;
    }
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

/* The dimensions along which the largest group of chunks could be shorter. */
static void add_long_dims(const struct sq_layout_array *a, struct sq_text *out)
{
    for (unsigned d = 0; d + a->slab_rank < a->rank; d++)
        if (a->chunks[d] > 1)
            sq_text_printf(out, "%s%s", out->length ? ", " : "", a->dims[d]);
}

/*
 * How many init times a chunk, or shard, may have so that the chunks that one field lies in fit; 0: not one. Shorter chunks need not be cut along y and x, so that
 * one of them, in each of the buffers for encoded ones, may be as large as they are together; and a little more when it is encoded.
 */
static uint64_t inits_that_fit(const struct squall_convert_plan *plan)
{
    const uint64_t fixed = plan->peak_bytes - plan->unit_bytes - plan->slot_count * (uint64_t)plan->layout.encoded_limit_bytes;
    const uint64_t room = plan->ctx->memory_bytes > fixed ? plan->ctx->memory_bytes - fixed : 0;
    const uint64_t per_init = (plan->unit_bytes / plan->layout.init_chunk + 1) * (1 + plan->slot_count);
    const uint64_t fits = (room - room / 32) / per_init, chunk = plan->layout.arrays[0].sharded ? plan->layout.arrays[0].inner[0] : 1;
    return fits - fits % chunk;
}

/* There is not even room for the chunks that one field lies in. A store that is there has its chunks and variables already. */
static int refuse(const struct squall_convert_plan *plan, struct squall_error *err)
{
    char needed_text[SQ_SIZE_TEXT_BYTES], group_text[SQ_SIZE_TEXT_BYTES], budget_text[SQ_SIZE_TEXT_BYTES];
    SQ_CLEANUP_TEXT struct sq_text dims = SQ_TEXT_INIT;
    const struct sq_layout_array *a = &plan->layout.arrays[plan->largest];
    const uint64_t init_chunk = plan->layout.init_chunk, fits = inits_that_fit(plan);
    unsigned long long enough = mebibytes(plan->peak_bytes);
    sq_size_text(plan->peak_bytes, needed_text);
    sq_size_text(plan->unit_bytes, group_text);
    sq_size_text(plan->ctx->memory_bytes, budget_text);
    if (plan->state.exists)
        return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed and %s may be used; give --memory %lluM", needed_text, budget_text,
                        enough);
    if (fits > 0 && init_chunk > 1)
        return sq_error(err, SQUALL_ENOMEM, "%s of memory are needed and %s may be used; give %s init_time=%llu, or --memory %lluM",
                        needed_text, budget_text, sq_layout_file_option(a), (unsigned long long)fits, enough);
    add_long_dims(a, &dims);
    return sq_error(
        err, SQUALL_ENOMEM,
        "%s of memory are needed (%s of it for the chunks of %s that one field lies in) and %s may be used; give --memory %lluM%s%s%s%s",
        needed_text, group_text, a->name, budget_text, enough, dims.length ? ", or shorter " : "",
        dims.length ? sq_layout_file_option(a) : "", dims.length ? " along " : "", sq_text_string(&dims));
}

int squall_convert_plan_check(const squall_convert_plan *plan, struct squall_error *err)
{
    if (plan->peak_bytes <= plan->ctx->memory_bytes)
        return 0;
    return plan->arrays.dataset ? sq_plan_refuse_arrays(plan, err) : refuse(plan, err);
}

static void find_room(struct squall_convert_plan *plan, struct sq_unit *unit)
{
    const unsigned threads = plan->ctx->threads;
    const uint64_t budget = plan->ctx->memory_bytes;
    uint64_t chunk_count, least;
    plan->band_bytes = UINT64_MAX;
    plan->band_count = 1;
    measure_units(plan, unit, &chunk_count, &least);
    plan->spread_chunks = threads > 1 && chunk_count >= 4 * (uint64_t)threads;
    plan->slot_count = plan->spread_chunks ? threads + 2 : SLOTS_ONE_BY_ONE;
    plan->peak_bytes = needed(plan, plan->slot_count);
    if (plan->peak_bytes <= budget)
        return;
    plan->spread_chunks = false;
    plan->slot_count = SLOTS_LEAST;
    plan->peak_bytes = needed(plan, plan->slot_count);
    if (plan->peak_bytes <= budget)
        return;
    const uint64_t beside = plan->peak_bytes - plan->unit_bytes, room = budget > beside ? budget - beside : 0;
    plan->unit_bytes = least;
    if (room >= least) {
        plan->band_bytes = room;
        cut_into_bands(plan, unit);
    }
    plan->peak_bytes = beside + plan->unit_bytes;
}

int sq_plan_memory(struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_unit *unit;
    SQ_TRY(sq_unit_new(&plan->setting, &unit, err));
    find_room(plan, unit);
    sq_unit_free(unit);
    return 0;
}
