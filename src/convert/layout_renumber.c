/*
 * Records of a store whose dimensions have grown since they were written (layout.h). Dimensions grow at their ends, so every slab and chunk keeps its
 * index along each of them; only the numbers, which count in C order, become others.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/layout.h"
#include "format/zarr/records.h"
#include <string.h>

/* One array of one record. Lengths of the dimensions behind init_time, from [1] on. */
struct renumbering {
    const struct sq_layout_array *array;
    uint64_t init_chunk;
    unsigned outer_rank;
    uint64_t was[SQ_LAYOUT_RANK_MAX];
    uint64_t grid[SQ_LAYOUT_RANK_MAX]; /* chunks along each, as it was */
    uint64_t slabs_per_init;           /* as it was */
};

/* false: nothing is to be done, or the record does not fit. */
static bool begin(const struct sq_layout_array *a, uint64_t init_chunk, const struct sq_record_array *r, struct renumbering *ret)
{
    uint64_t chunk_count = 1;
    bool same = true, good = true;
    *ret = (struct renumbering){a, init_chunk, r->length_count ? r->length_count : a->outer_rank, {0}, {0}, 1};
    if (ret->outer_rank == 0 || ret->outer_rank >= a->rank)
        return false;
    for (unsigned d = 1; d < a->rank && good; d++) {
        const bool outer = d <= ret->outer_rank;
        ret->was[d] = !outer ? a->shape[d] : r->length_count ? r->lengths[d - 1] : a->made[d];
        same = same && ret->was[d] == a->shape[d];
        good = ret->was[d] > 0 && a->shape[d] > 0;
        ret->grid[d] = good ? (ret->was[d] - 1) / a->chunks[d] + 1 : 0;
        good = good && sq_mul_u64(chunk_count, ret->grid[d], &chunk_count) &&
               (!outer || sq_mul_u64(ret->slabs_per_init, ret->was[d], &ret->slabs_per_init));
    }
    return good && !same && chunk_count == r->chunk_count;
}

/* A number in C order over dimensions first..last of these lengths → the same place over others; false: it has none there. */
static bool convert_number(const uint64_t *was, const uint64_t *is, unsigned first, unsigned last, uint64_t number, uint64_t *ret)
{
    uint64_t step = 1;
    *ret = 0;
    for (unsigned d = last; d >= first; d--) {
        const uint64_t index = number % was[d];
        number /= was[d];
        if (index >= is[d])
            return false;
        *ret += index * step;
        step *= is[d];
    }
    *ret += number * step; /* init times of the unit */
    return true;
}

/* *ret: in the arena. *ret_fits false: a chunk that is stored has no place. */
static int renumber_chunks(const struct renumbering *n, const struct sq_record_array *r, struct sq_arena *arena,
                           struct sq_record_chunk **ret, bool *ret_fits, struct squall_error *err)
{
    const struct sq_layout_array *a = n->array;
    struct sq_record_chunk *chunks = sq_arena_alloc(arena, ((size_t)a->chunks_per_unit + 1) * sizeof *chunks);
    if (!chunks)
        return sq_error_memory(err, a->chunks_per_unit * sizeof *chunks);
    *ret_fits = true;
    for (size_t k = 0; k < r->chunk_count && *ret_fits; k++) {
        uint64_t number;
        if (convert_number(n->grid, a->grid, 1, a->rank - 1, k, &number))
            chunks[number] = r->chunks[k];
        else
            *ret_fits = r->chunks[k].size_bytes == 0;
    }
    *ret = chunks;
    return 0;
}

static int add_range(struct sq_ranges *set, uint64_t first, uint64_t last, struct squall_error *err)
{
    if (set->count && set->items[set->count - 1].last + 1 == first) {
        set->items[set->count - 1].last = last;
        return 0;
    }
    SQ_TRY(SQ_GROW(set->items, set->capacity, set->count + 1, err));
    set->items[set->count++] = (struct sq_range){first, last};
    return 0;
}

/*
 * Slabs with the same indices along all dimensions before the last one that has another length follow each other then as they do now: such pieces
 * keep their order.
 */
static int renumber_pieces(const struct renumbering *n, const struct sq_ranges *set, struct sq_ranges *ret, bool *ret_fits,
                           struct squall_error *err)
{
    const struct sq_layout_array *a = n->array;
    unsigned last = n->outer_rank;
    uint64_t piece = 1, now = 1;
    while (last > 1 && n->was[last] == a->shape[last])
        last--;
    for (unsigned d = last; d <= n->outer_rank; d++) {
        piece *= n->was[d];
        now *= a->shape[d];
    }
    *ret_fits = sq_ranges_beyond(set, n->slabs_per_init * n->init_chunk) == 0;
    for (size_t i = 0; i < set->count && *ret_fits; i++) {
        for (uint64_t first = set->items[i].first, end; first <= set->items[i].last && *ret_fits; first = end + 1) {
            uint64_t number;
            end = (first / piece + 1) * piece - 1;
            end = end < set->items[i].last ? end : set->items[i].last;
            *ret_fits = end % piece < now && convert_number(n->was, a->shape, 1, last - 1, first / piece, &number);
            if (*ret_fits)
                SQ_TRY(add_range(ret, number * now + first % piece, number * now + end % piece, err));
        }
    }
    return 0;
}

/* The set's items, in the arena. */
static int renumber_slabs(const struct renumbering *n, const struct sq_ranges *set, struct sq_arena *arena, struct sq_ranges *ret,
                          bool *ret_fits, struct squall_error *err)
{
    struct sq_ranges made = {0};
    int status = renumber_pieces(n, set, &made, ret_fits, err);
    struct sq_range *items = status ? NULL : sq_arena_copy(arena, made.count ? made.items : (const void *)"", made.count * sizeof *items);
    if (!status && !items)
        status = sq_error_memory(err, made.count * sizeof *items);
    if (!status)
        *ret = (struct sq_ranges){.items = items, .count = made.count};
    sq_ranges_done(&made);
    return status;
}

static int renumber(const struct renumbering *n, struct sq_record_array *r, struct sq_arena *arena, struct squall_error *err)
{
    struct sq_record_array now = {.name = r->name, .length_count = n->outer_rank, .chunk_count = (size_t)n->array->chunks_per_unit};
    bool chunks_fit = false, stored_fit = false, bad_fit = false;
    SQ_TRY(renumber_chunks(n, r, arena, &now.chunks, &chunks_fit, err));
    SQ_TRY(renumber_slabs(n, &r->stored, arena, &now.stored, &stored_fit, err));
    SQ_TRY(renumber_slabs(n, &r->bad, arena, &now.bad, &bad_fit, err));
    if (!(now.lengths = sq_arena_copy(arena, n->array->shape + 1, n->outer_rank * sizeof *now.lengths)))
        return sq_error_memory(err, sizeof now.lengths);
    if (chunks_fit && stored_fit && bad_fit)
        *r = now;
    return 0;
}

/* Most records have the layout's arrays in its order. */
static struct sq_record_array *array_of(struct sq_record_unit *unit, const char *name, size_t likely)
{
    if (likely < unit->array_count && !strcmp(unit->arrays[likely].name, name))
        return &unit->arrays[likely];
    return (struct sq_record_array *)(uintptr_t)sq_record_array_of(unit, name);
}

int sq_layout_renumber(const struct sq_layout *layout, struct sq_records *records, struct squall_error *err)
{
    struct renumbering n;
    for (size_t i = 0; i < records->unit_count; i++) {
        for (size_t k = 0; k < layout->array_count; k++) {
            struct sq_record_array *r = array_of(&records->units[i], layout->arrays[k].name, k);
            if (r && begin(&layout->arrays[k], layout->init_chunk, r, &n))
                SQ_TRY(renumber(&n, r, records->arena, err));
        }
    }
    return 0;
}
