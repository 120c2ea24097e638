/*
 * Units made of arrays (array_unit.h), written: batch → brick → chunks. A brick is read by all threads, then its chunks are gathered and encoded by
 * all threads; a unit is complete when all bricks of its batch are through. Where a brick cannot be read, it is read index by index: damage costs
 * only the indices that it lies in.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/report.h"
#include "convert/write.h"
#include "cube/array_damage.h"
#include "engine/joined_array.h"
#include "engine/scatter.h"
#include "sys/pool.h"
#include <assert.h>
#include <string.h>

struct pending_unit {
    size_t which; /* of the plan's units */
    struct sq_record_unit *record;
    struct sq_pending *pending;
};

struct batch {
    struct sq_run *run;
    uint8_t *brick;
    void **chunks, **casts; /* of each worker: a chunk of the store; elements of one init time of it, of the source's type and of its own */
    void **old;             /* of each worker that has carried something over: a chunk as it was */
    struct pending_unit *units;
    size_t unit_count;
    uint64_t first_unit, first_init, init_count; /* what there is of the last unit, too */
    uint64_t slab_count;                         /* of each array: init times of all units, whole */
    uint8_t *slabs;                              /* enum sq_slab_state, arrays × slab_count */
    bool trial;                                  /* nothing is written: can all be read? */
    char *failure;                               /* why the batch is left; NULL: it is not */
};

/* A box of one array: in init times from the batch's first, and elements. */
struct box {
    size_t array;
    uint64_t begin[SQ_LAYOUT_RANK_MAX], count[SQ_LAYOUT_RANK_MAX];
    int64_t strides[SQ_LAYOUT_RANK_MAX]; /* in the brick, bytes */
};

static uint8_t *slabs_of(const struct batch *b, size_t array)
{
    return b->slabs + array * b->slab_count;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t source_index(const struct batch *b, const struct box *box, uint64_t i)
{
    return b->run->plan->cube.source_index[b->first_init + box->begin[0] + i];
}

/* Elements that nothing is read into, of init time i of the box; of what is cast nothing is taken from there. */
static void fill_index(const struct batch *b, const struct box *box, uint64_t i)
{
    const struct sq_cube_variable *v = &b->run->plan->cube.variables[box->array];
    const size_t row = (size_t)box->strides[0], element_bytes = sq_type_size(v->source_type);
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[box->array];
    if (v->source_type == a->type)
        sq_scatter_fill(b->brick + i * row, row / element_bytes, element_bytes, a->fill);
}

static int read_indices(const struct batch *b, const struct box *box, uint64_t i, uint64_t count, struct squall_error *err)
{
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[box->array];
    struct squall_selection s = {.start[0] = source_index(b, box, i), .count[0] = count, .step[0] = 1};
    for (unsigned d = 1; d < a->rank; d++) {
        s.start[d] = box->begin[d];
        s.count[d] = box->count[d];
        s.step[d] = 1;
    }
    return squall_array_read(b->run->plan->cube.variables[box->array].source, &s, b->brick + (int64_t)i * box->strides[0], box->strides,
                             err);
}

/* The place of this array and init time in the cube: it says which file it comes from. */
static const struct sq_cube_place *place_of(const struct batch *b, size_t array, uint64_t init)
{
    const struct squall_convert_plan *plan = b->run->plan;
    const struct sq_planned_unit *unit = &plan->units[b->units[(init - b->first_init) / plan->layout.init_chunk].which];
    for (size_t k = 0; k < unit->place_count; k++) {
        const struct sq_cube_place *p = &plan->cube.places[unit->first_place + k];
        if (p->init == init && p->variable == array)
            return p;
    }
    return NULL;
}

static int note_damage(const struct batch *b, const struct box *box, uint64_t i, const char *message, struct squall_error *err)
{
    struct squall_convert_plan *plan = b->run->plan;
    uint8_t *slab = &slabs_of(b, box->array)[box->begin[0] + i];
    const struct sq_cube_place *place = place_of(b, box->array, b->first_init + box->begin[0] + i);
    if (*slab == SQ_SLAB_BAD || !place)
        return 0;
    *slab = SQ_SLAB_BAD;
    return sq_input_add_damage(plan, sq_plan_file_of(plan, place->field), message, err);
}

/* A run of neighbouring indices of the source; one by one where something in it is damaged. */
static int read_run(struct batch *b, const struct box *box, uint64_t i, uint64_t count, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = read_indices(b, box, i, count, &failure);
    if (sq_array_is_damage(status) && count > 1) {
        for (uint64_t k = 0; k < count && !b->failure; k++)
            SQ_TRY(read_run(b, box, i + k, 1, err));
        return 0;
    }
    if (sq_array_is_damage(status)) {
        fill_index(b, box, i);
        return note_damage(b, box, i, failure.message, err);
    }
    if (status == SQUALL_EIO || status == SQUALL_ENOTFOUND)
        return (b->failure = sq_strdup(failure.message)) ? 0 : sq_error_memory(err, sizeof failure);
    if (status && err)
        *err = failure;
    return status;
}

/* Is there something of the sources to read? */
static bool is_read(uint8_t state)
{
    return state != SQ_SLAB_EMPTY && !sq_slab_is_old(state);
}

static int read_box(struct batch *b, const struct box *box, struct squall_error *err)
{
    const uint8_t *slabs = slabs_of(b, box->array) + box->begin[0];
    for (uint64_t i = 0, end; i < box->count[0] && !b->failure; i = end) {
        end = i + 1;
        if (!is_read(slabs[i])) {
            fill_index(b, box, i);
            continue;
        }
        while (end < box->count[0] && is_read(slabs[end]) && source_index(b, box, end) == source_index(b, box, end - 1) + 1)
            end++;
        SQ_TRY(read_run(b, box, i, end - i, err));
    }
    struct squall_convert_plan *plan = b->run->plan;
    sq_mutex_lock(&plan->say_lock);
    if (!b->trial)
        b->run->totals.bytes_in += box->count[0] * (uint64_t)box->strides[0];
    sq_mutex_unlock(&plan->say_lock);
    return 0;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------------------------- */

struct encoding {
    struct batch *batch;
    const struct box *box;
    uint64_t grid[SQ_LAYOUT_RANK_MAX]; /* chunks of the box along each dimension */
    unsigned threads;                  /* inside one chunk */
};

static void missing_to_nan(const struct sq_cube_variable *v, void *values, size_t count)
{
    for (size_t m = 0; m < v->missing_count; m++) {
        if (v->source_type == SQUALL_FLOAT64) {
            double *value = values;
            for (size_t i = 0; i < count; i++)
                value[i] = value[i] == v->missing[m] ? __builtin_nan("") : value[i];
        } else {
            float *value = values;
            const float missing = (float)v->missing[m];
            for (size_t i = 0; i < count; i++)
                value[i] = value[i] == missing ? __builtin_nanf("") : value[i];
        }
    }
}

static int overflow(const struct encoding *e, uint64_t i, double value, struct squall_error *err)
{
    const struct batch *b = e->batch;
    const struct squall_convert_plan *plan = b->run->plan;
    const struct sq_layout_array *a = &plan->layout.arrays[e->box->array];
    const struct sq_cube_place *place = place_of(b, e->box->array, b->first_init + e->box->begin[0] + i);
    return sq_error(err, SQUALL_ERANGE,
                    "%s: %.9g does not fit %s, which ends at %g (%s); use --on-overflow inf or clip, or --dtype %s=float32", a->name, value,
                    sq_type_name(a->type), sq_type_greatest(a->type),
                    place ? sq_plan_file_path(plan, sq_plan_file_of(plan, place->field)) : "", a->name);
}

/* What integers stand for; NaN where something is missing. */
static void unpack(const struct sq_cube_variable *v, const void *elements, size_t first, size_t count, double *values)
{
    const struct sq_cube_packing *p = &v->packing;
    for (size_t i = 0; i < count; i++) {
        const double element = sq_number_at(p->type, elements, first + i);
        values[i] = element * p->scale + p->offset;
        for (size_t m = 0; m < v->missing_count; m++)
            if (element == v->missing[m])
                values[i] = __builtin_nan("");
    }
}

/* Elements of one init time: from the source's type, unpacked, to the store's. What is missing becomes NaN. false: one does not fit */
static bool cast(const struct encoding *e, void *from, size_t count, void *to, double *ret_value)
{
    enum { PIECE = 512 };
    const struct squall_convert_plan *plan = e->batch->run->plan;
    const struct sq_layout_array *a = &plan->layout.arrays[e->box->array];
    const struct sq_cube_variable *v = &plan->cube.variables[e->box->array];
    const enum sq_overflow how = plan->settings.overflow;
    double values[PIECE];
    if (!sq_type_is_integer(v->source_type)) {
        missing_to_nan(v, from, count);
        return sq_scatter_cast(v->source_type, from, count, a->type, to, count, 1, count, how, NULL, ret_value);
    }
    for (size_t i = 0; i < count; i += PIECE) {
        const size_t n = count - i < PIECE ? count - i : PIECE;
        unpack(v, from, i, n, values);
        if (!sq_scatter_cast(SQUALL_FLOAT64, values, n, a->type, (uint8_t *)to + i * a->element_bytes, n, 1, n, how, NULL, ret_value))
            return false;
    }
    return true;
}

/*
 * A chunk of another type than the source's: init time by init time, the part of the box that lies in it. from: its first element in the brick.
 * count: of elements there are along each dimension.
 */
static int cast_chunk(const struct encoding *e, uint64_t begin, const uint64_t *count, const uint8_t *from, unsigned worker,
                      struct squall_error *err)
{
    const struct batch *b = e->batch;
    const struct box *box = e->box;
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[box->array];
    const size_t source_bytes = sq_type_size(b->run->plan->cube.variables[box->array].source_type);
    const size_t row = a->chunk_bytes / a->element_bytes / (size_t)a->chunks[0];
    const uint8_t *slabs = slabs_of(b, box->array) + box->begin[0] + begin;
    uint64_t part[SQ_LAYOUT_RANK_MAX] = {1};
    int64_t from_strides[SQ_LAYOUT_RANK_MAX] = {0}, packed[SQ_LAYOUT_RANK_MAX] = {0}, to_strides[SQ_LAYOUT_RANK_MAX] = {0};
    int64_t stride = (int64_t)a->element_bytes;
    size_t elements = 1;
    for (unsigned d = a->rank; d-- > 1;) {
        part[d] = count[d];
        from_strides[d] = box->strides[d];
        packed[d] = (int64_t)elements;
        to_strides[d] = stride;
        stride *= (int64_t)a->chunks[d];
        elements *= (size_t)count[d];
    }
    uint8_t *values = b->casts[worker], *results = values + row * source_bytes;
    for (uint64_t i = 0; i < a->chunks[0]; i++) {
        uint8_t *to = (uint8_t *)b->chunks[worker] + i * row * a->element_bytes;
        const bool there = i < count[0] && slabs[i] == SQ_SLAB_STORED;
        int64_t strides[SQ_LAYOUT_RANK_MAX] = {0};
        double value;
        if (!there || elements < row)
            sq_scatter_fill(to, row, a->element_bytes, a->fill);
        if (!there)
            continue;
        for (unsigned d = 1; d < a->rank; d++)
            strides[d] = packed[d] * (int64_t)source_bytes;
        sq_scatter_copy(a->rank, part, source_bytes, from + (int64_t)i * box->strides[0], from_strides, values, strides,
                        SQ_SCATTER_INTO_CACHES);
        if (!cast(e, values, elements, elements < row ? results : to, &value))
            return overflow(e, begin + i, value, err);
        for (unsigned d = 1; d < a->rank; d++)
            strides[d] = packed[d] * (int64_t)a->element_bytes;
        if (elements < row)
            sq_scatter_copy(a->rank, part, a->element_bytes, results, strides, to, to_strides, SQ_SCATTER_INTO_CACHES);
    }
    return 0;
}

/* The chunk's elements from the brick, in the store's type. *ret: what is to be encoded. */
static int gather(const struct encoding *e, const uint64_t *begin, unsigned worker, const void **ret, struct squall_error *err)
{
    const struct batch *b = e->batch;
    const struct box *box = e->box;
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[box->array];
    const enum squall_type source_type = b->run->plan->cube.variables[box->array].source_type;
    uint64_t count[SQ_LAYOUT_RANK_MAX] = {0};
    int64_t strides[SQ_LAYOUT_RANK_MAX], stride = (int64_t)a->element_bytes;
    const uint8_t *from = b->brick;
    bool whole = true, lies_so = true;
    for (unsigned d = a->rank; d-- > 0;) {
        count[d] = box->count[d] - begin[d] < a->chunks[d] ? box->count[d] - begin[d] : a->chunks[d];
        whole = whole && count[d] == a->chunks[d];
        strides[d] = stride;
        lies_so = lies_so && (box->strides[d] == stride || count[d] == 1);
        from += (int64_t)begin[d] * box->strides[d];
        stride *= (int64_t)a->chunks[d];
    }
    *ret = b->chunks[worker];
    if (source_type != a->type)
        return cast_chunk(e, begin[0], count, from, worker, err);
    if (lies_so && whole) {
        *ret = from;
        return 0;
    }
    if (!whole)
        sq_scatter_fill(b->chunks[worker], a->chunk_bytes / a->element_bytes, a->element_bytes, a->fill);
    sq_scatter_copy(a->rank, count, a->element_bytes, from, box->strides, b->chunks[worker], strides, SQ_SCATTER_INTO_CACHES);
    return 0;
}

static bool any_slab(const uint8_t *slabs, uint64_t count, bool (*is)(uint8_t state))
{
    for (uint64_t i = 0; i < count; i++)
        if (is(slabs[i]))
            return true;
    return false;
}

/* Is any init time of the chunk such a one? */
static bool chunk_has(const struct encoding *e, uint64_t begin, bool (*is)(uint8_t state))
{
    const struct sq_layout_array *a = &e->batch->run->plan->layout.arrays[e->box->array];
    const uint64_t left = e->box->count[0] - begin, count = left < a->chunks[0] ? left : a->chunks[0];
    return any_slab(slabs_of(e->batch, e->box->array) + e->box->begin[0] + begin, count, is);
}

/* The init times that keep their old values, from the old chunk. *src: the chunk's elements; here in a buffer of the worker's. */
static int carry_over(const struct encoding *e, const struct pending_unit *unit, uint64_t chunk, unsigned worker, const void **src,
                      struct squall_error *err)
{
    const struct batch *b = e->batch;
    const struct squall_convert_plan *plan = b->run->plan;
    const struct sq_layout_array *a = &plan->layout.arrays[e->box->array];
    assert(a->chunks[0] > 0); /* layout_array.c sees to it */
    const size_t row = a->chunk_bytes / (size_t)a->chunks[0];
    const struct sq_carry carry = {sq_plan_store(plan), &plan->layout, plan->units[unit->which].record};
    const uint8_t *slabs = slabs_of(b, e->box->array); /* the batch is this unit */
    uint8_t *to = b->chunks[worker];
    if (!b->old[worker] && !(b->old[worker] = sq_alloc(plan->layout.chunk_limit_bytes, 1)))
        return sq_error_memory(err, plan->layout.chunk_limit_bytes);
    SQ_TRY(sq_carry_chunk(&carry, e->box->array, chunk, b->run->scratch[worker], b->old[worker], err));
    if (*src != to)
        memcpy(to, *src, a->chunk_bytes);
    for (uint64_t i = 0; i < a->chunks[0]; i++)
        if (sq_slab_is_old(slabs[i]))
            memcpy(to + i * row, (const uint8_t *)b->old[worker] + i * row, row);
    *src = to;
    return 0;
}

/* A sparse store stays one. */
static bool is_all_fill(const struct sq_layout_array *a, const void *chunk)
{
    const uint8_t *bytes = chunk;
    return !memcmp(bytes, a->fill, a->element_bytes) && !memcmp(bytes, bytes + a->element_bytes, a->chunk_bytes - a->element_bytes);
}

static int encode(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct encoding *e = user;
    struct sq_run *run = e->batch->run;
    const struct sq_layout_array *a = &run->plan->layout.arrays[e->box->array];
    uint64_t begin[SQ_LAYOUT_RANK_MAX] = {0}, chunk = 0, rest = index;
    struct sq_slot *slot;
    const void *src;
    size_t size;
    if (sq_cancelled(run->plan->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    for (unsigned d = a->rank; d-- > 0;) {
        begin[d] = rest % e->grid[d] * a->chunks[d];
        rest /= e->grid[d];
    }
    for (unsigned d = 1; d < a->rank; d++)
        chunk = chunk * a->grid[d] + (e->box->begin[d] + begin[d]) / a->chunks[d];
    const struct pending_unit *unit = &e->batch->units[(e->box->begin[0] + begin[0]) / a->chunks[0]];
    const struct sq_planned_unit *planned = &run->plan->units[unit->which];
    if (!chunk_has(e, begin[0], sq_slab_has_values))
        return sq_run_remove_chunk(run, planned, a, chunk, err);
    SQ_TRY(gather(e, begin, worker, &src, err));
    if (chunk_has(e, begin[0], sq_slab_is_old))
        SQ_TRY(carry_over(e, unit, chunk, worker, &src, err));
    if (!a->keeps_fill && is_all_fill(a, src))
        return sq_run_remove_chunk(run, planned, a, chunk, err);
    SQ_TRY(sq_publisher_slot(run->publisher, &slot, err));
    int status = sq_codec_encode(a->codecs, run->scratch[worker], e->threads, src, a->chunk_bytes, slot->bytes, slot->capacity, &size, err);
    if (status) {
        sq_publisher_return(run->publisher, slot);
        return sq_error_within(err, status, "%s", a->name);
    }
    sq_publisher_put(run->publisher, unit->pending, e->box->array, chunk, slot, size);
    return 0;
}

static int encode_box(struct batch *b, const struct box *box, struct squall_error *err)
{
    const struct squall_convert_plan *plan = b->run->plan;
    const struct sq_layout_array *a = &plan->layout.arrays[box->array];
    const unsigned threads = plan->ctx->threads;
    struct encoding e = {.batch = b, .box = box};
    size_t count = 1;
    for (unsigned d = 0; d < a->rank; d++) {
        e.grid[d] = (box->count[d] + a->chunks[d] - 1) / a->chunks[d];
        count *= e.grid[d];
    }
    const bool spread = count >= 2 * (size_t)threads;
    e.threads = spread ? 1 : threads;
    return sq_parallel(spread ? threads : 1, count, encode, &e, err);
}

/* ---- bricks ----------------------------------------------------------------------------------------------------------------------- */

static int do_box(struct batch *b, const struct box *box, struct squall_error *err)
{
    SQ_TRY(read_box(b, box, err));
    return b->trial || b->failure ? 0 : encode_box(b, box, err);
}

/* The next brick of the batch; false behind the last. */
static bool next_box(const struct batch *b, const struct sq_brick *brick, struct box *box)
{
    const struct sq_layout *layout = &b->run->plan->layout;
    const struct sq_layout_array *a = &layout->arrays[box->array];
    for (unsigned d = a->rank; d-- > 0;) {
        const uint64_t step = d ? brick->lengths[d] : brick->units * layout->init_chunk, end = d ? a->shape[d] : b->init_count;
        box->begin[d] += step;
        if (box->begin[d] < end)
            return true;
        box->begin[d] = 0;
    }
    return false;
}

static void measure(const struct batch *b, const struct sq_brick *brick, struct box *box)
{
    const struct sq_layout *layout = &b->run->plan->layout;
    const struct sq_layout_array *a = &layout->arrays[box->array];
    int64_t stride = (int64_t)brick->source_element_bytes;
    for (unsigned d = a->rank; d-- > 0;) {
        const uint64_t step = d ? brick->lengths[d] : brick->units * layout->init_chunk, end = d ? a->shape[d] : b->init_count;
        box->count[d] = end - box->begin[d] < step ? end - box->begin[d] : step;
        box->strides[d] = stride;
        stride *= (int64_t)box->count[d];
    }
}

/* Nothing is in the batch for this array. */
static bool is_empty(const struct batch *b, size_t array)
{
    return !any_slab(slabs_of(b, array), b->slab_count, sq_slab_has_values);
}

static int remove_all(const struct batch *b, size_t array, struct squall_error *err)
{
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[array];
    for (size_t i = 0; i < b->unit_count && !b->trial; i++)
        for (uint64_t k = 0; k < a->chunks_per_unit; k++)
            SQ_TRY(sq_run_remove_chunk(b->run, &b->run->plan->units[b->units[i].which], a, k, err));
    return 0;
}

static int do_array(struct batch *b, size_t array, struct squall_error *err)
{
    const struct sq_brick *brick = &b->run->plan->bricks[array];
    const struct sq_layout_array *a = &b->run->plan->layout.arrays[array];
    struct box box = {.array = array};
    if (is_empty(b, array))
        return remove_all(b, array, err);
    for (unsigned d = 0; d < a->rank; d++)
        if (a->shape[d] == 0)
            return 0;
    do {
        measure(b, brick, &box);
        SQ_TRY(do_box(b, &box, err));
    } while (!b->failure && next_box(b, brick, &box));
    return 0;
}

static int do_arrays(struct batch *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->run->plan->layout.array_count && !b->failure; i++)
        SQ_TRY(do_array(b, i, err));
    return 0;
}

/* ---- batches ---------------------------------------------------------------------------------------------------------------------- */

static void begin_batch(struct batch *b, size_t first, size_t count)
{
    const struct squall_convert_plan *plan = b->run->plan;
    const uint64_t init_chunk = plan->layout.init_chunk;
    b->unit_count = count;
    b->first_unit = plan->units[first].unit;
    b->first_init = b->first_unit * init_chunk;
    b->slab_count = count * init_chunk;
    const uint64_t left = plan->cube.init_count - b->first_init;
    b->init_count = left < b->slab_count ? left : b->slab_count;
    memset(b->slabs, SQ_SLAB_EMPTY, plan->layout.array_count * b->slab_count);
    for (size_t i = 0; i < count; i++) {
        const struct sq_planned_unit *unit = &plan->units[first + i];
        b->units[i] = (struct pending_unit){.which = first + i};
        for (size_t k = 0; k < unit->place_count; k++) {
            const struct sq_cube_place *p = &plan->cube.places[unit->first_place + k];
            slabs_of(b, p->variable)[p->init - b->first_init] = SQ_SLAB_STORED;
        }
    }
}

static void take_slabs(struct batch *b, size_t unit)
{
    const struct sq_layout *layout = &b->run->plan->layout;
    for (size_t i = 0; i < layout->array_count; i++)
        b->run->slabs[i] = slabs_of(b, i) + unit * layout->init_chunk;
}

/* Why the batch is left though it could be read; NULL: it is not. */
static const char *why_left(struct batch *b)
{
    const struct squall_convert_plan *plan = b->run->plan;
    if (plan->settings.strict)
        for (size_t i = 0; i < plan->layout.array_count; i++)
            if (memchr(slabs_of(b, i), SQ_SLAB_BAD, (size_t)b->slab_count))
                return "has a part that cannot be read; left out (--strict)";
    return NULL;
}

/* Of a batch that is one unit, which was read: what is stored and the sources do not give keeps its values. */
static void carry_slabs(struct batch *b)
{
    const struct squall_convert_plan *plan = b->run->plan;
    const struct sq_planned_unit *unit = &plan->units[b->units[0].which];
    const struct sq_carry carry = {sq_plan_store(plan), &plan->layout, unit->record};
    for (size_t i = 0; i < plan->layout.array_count && unit->carries; i++) {
        const struct sq_ranges *stored = sq_carry_stored(&carry, i);
        uint8_t *slabs = slabs_of(b, i);
        for (size_t k = 0; k < stored->count; k++)
            for (uint64_t s = stored->items[k].first; s <= stored->items[k].last; s++)
                slabs[s] = sq_slab_carry(slabs[s]);
    }
}

/* Something of a unit that could be read a moment ago no longer can. */
static bool loses(struct batch *b)
{
    const struct sq_planned_unit *unit = &b->run->plan->units[b->units[0].which];
    take_slabs(b, 0);
    return unit->carries && sq_plan_loses(unit->record, &b->run->plan->layout, b->run->slabs);
}

static int leave_all(struct batch *b, const char *why, struct squall_error *err)
{
    for (size_t i = 0; i < b->unit_count; i++)
        SQ_TRY(sq_run_leave(b->run, b->units[i].which, why, err));
    return 0;
}

static int publish_batch(struct batch *b, struct squall_error *err)
{
    struct sq_run *run = b->run;
    struct squall_error failure = SQUALL_ERROR_INIT;
    for (size_t i = 0; i < b->unit_count; i++) {
        struct pending_unit *u = &b->units[i];
        const struct sq_planned_unit *planned = &run->plan->units[u->which];
        SQ_TRY(sq_run_record(run, planned, &u->record, err));
        SQ_TRY(sq_run_withdraw(run, planned, err));
        SQ_TRY(sq_publisher_begin(run->publisher, u->record, planned->record != NULL, &u->pending, err));
    }
    int status = do_arrays(b, &failure);
    if (run->plan->units[b->units[0].which].carries && (status == SQUALL_ECORRUPT || status == SQUALL_ENOTFOUND))
        return sq_run_leave_damaged(run, b->units[0].which, failure.message, err);
    if (status) {
        if (err)
            *err = failure;
        return status;
    }
    if (b->failure || loses(b))
        return leave_all(b, b->failure ? b->failure : "something that is stored can no longer be read; left as it is", err);
    for (size_t i = 0; i < b->unit_count; i++) {
        struct pending_unit *u = &b->units[i];
        take_slabs(b, i);
        SQ_TRY(sq_run_record_slabs(run, &run->plan->units[u->which], u->record, run->slabs, err));
        sq_publisher_seal(run->publisher, u->pending);
        run->records[u->which] = u->record;
    }
    return 0;
}

/*
 * A unit that was recorded before is read whole before anything of it is written: only then is it known what keeps its old values. With --strict
 * the same shows whether it is to be written.
 */
static int write_batch(struct batch *b, size_t first, size_t count, struct squall_error *err)
{
    const struct squall_convert_plan *plan = b->run->plan;
    begin_batch(b, first, count);
    if (plan->units[first].record || plan->settings.strict) {
        b->trial = true;
        int status = do_arrays(b, err);
        b->trial = false;
        SQ_TRY(status);
        const char *why = b->failure ? b->failure : why_left(b);
        if (why)
            return leave_all(b, why, err);
        carry_slabs(b);
    }
    return publish_batch(b, err);
}

/* Neighbours without a record go together. */
static size_t batch_length(const struct squall_convert_plan *plan, size_t first)
{
    size_t count = 1;
    while (first + count < plan->unit_count && count < plan->batch_units && sq_is_to_do(&plan->units[first + count]) &&
           plan->units[first + count].unit == plan->units[first].unit + count && !plan->units[first].record && !plan->settings.strict &&
           !plan->units[first + count].record)
        count++;
    return count;
}

static void batch_done(struct batch *b)
{
    const struct squall_convert_plan *plan = b->run->plan;
    for (unsigned i = 0; i < plan->ctx->threads; i++) {
        if (b->chunks)
            sq_free(b->chunks[i]);
        if (b->casts)
            sq_free(b->casts[i]);
        if (b->old)
            sq_free(b->old[i]);
    }
    sq_free(b->chunks);
    sq_free(b->casts);
    sq_free(b->old);
    sq_free(b->units);
    sq_free(b->slabs);
    sq_free(b->failure);
    sq_pages_free(b->brick, plan->unit_bytes);
}

static int batch_init(struct batch *b, struct squall_error *err)
{
    const struct squall_convert_plan *plan = b->run->plan;
    size_t cast_bytes = 0;
    for (size_t i = 0; i < plan->layout.array_count; i++) {
        const struct sq_layout_array *a = &plan->layout.arrays[i];
        const size_t row = a->chunk_bytes / a->element_bytes / (size_t)a->chunks[0];
        const size_t bytes = row * (sq_type_size(plan->cube.variables[i].source_type) + a->element_bytes);
        if (a->type != plan->cube.variables[i].source_type && bytes > cast_bytes)
            cast_bytes = bytes;
    }
    b->brick = sq_pages_alloc(plan->unit_bytes);
    b->units = sq_alloc(plan->batch_units, sizeof *b->units);
    b->slabs = sq_alloc(plan->batch_units * plan->layout.init_chunk, plan->layout.array_count);
    b->chunks = sq_alloc_zero(plan->ctx->threads, sizeof *b->chunks);
    b->casts = sq_alloc_zero(plan->ctx->threads, sizeof *b->casts);
    b->old = sq_alloc_zero(plan->ctx->threads, sizeof *b->old);
    if (!b->brick || !b->units || !b->slabs || !b->chunks || !b->casts || !b->old)
        return sq_error_memory(err, plan->unit_bytes);
    for (unsigned i = 0; i < plan->ctx->threads; i++) {
        b->chunks[i] = sq_alloc(plan->layout.chunk_limit_bytes, 1);
        b->casts[i] = cast_bytes ? sq_alloc(cast_bytes, 1) : NULL;
        if (!b->chunks[i] || (cast_bytes && !b->casts[i]))
            return sq_error_memory(err, plan->layout.chunk_limit_bytes);
    }
    return 0;
}

int sq_run_array_units(struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    struct batch b = {.run = run};
    int status = batch_init(&b, err);
    for (size_t i = 0, count; i < plan->unit_count && !status; i += count) {
        count = 1;
        if (!sq_is_to_do(&plan->units[i]))
            continue;
        count = batch_length(plan, i);
        status = write_batch(&b, i, count, err);
        sq_free(b.failure);
        b.failure = NULL;
    }
    batch_done(&b);
    return status;
}
