/*
 * Which of the index's grids are the same points. Only grids of one kind and size are compared with each other, so that an archive with many
 * grids costs no more than it must.
 */
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "cube/build.h"
#include <stdlib.h>

/* The rows of b->points that have one size are a chain: newest first, by points.next. */
struct chains {
    struct sq_intern sizes;
    uint32_t *newest; /* by number of the size */
    size_t capacity;
};

static void chains_done(struct chains *chains)
{
    sq_intern_done(&chains->sizes);
    sq_free(chains->newest);
}

static int find_or_add(struct sq_builder *b, struct chains *chains, const struct sq_grib_grid *grid, uint32_t *ret,
                       struct squall_error *err)
{
    int64_t key[4] = {grid->kind, (int64_t)grid->point_count, grid->rectangular ? (int64_t)grid->rows : -1,
                      grid->rectangular ? (int64_t)grid->columns : -1};
    uint32_t size, known = chains->sizes.count;
    SQ_TRY(sq_intern_add(&chains->sizes, key, &size, err));
    if (size == known) {
        SQ_TRY(SQ_GROW(chains->newest, chains->capacity, size + (size_t)1, err));
        chains->newest[size] = UINT32_MAX;
    }
    for (uint32_t row = chains->newest[size]; row != UINT32_MAX; row = b->points[row].next) {
        if (sq_grib_grid_same(b->points[row].grid, grid)) {
            *ret = row;
            return 0;
        }
    }
    SQ_TRY(SQ_GROW(b->points, b->points_capacity, b->points_count + 1, err));
    b->points[b->points_count] = (struct sq_points){.grid = grid,
                                                    .northward = sq_grib_grid_rows_northward(grid),
                                                    .row = UINT32_MAX,
                                                    .first_field = UINT32_MAX,
                                                    .next = chains->newest[size],
                                                    .cube_row = UINT32_MAX};
    *ret = chains->newest[size] = (uint32_t)b->points_count++;
    return 0;
}

static struct sq_hash grid_id(const struct sq_grib_grid *grid)
{
    uint8_t head[3] = {grid->edition, (uint8_t)(grid->centre >> 8), (uint8_t)grid->centre};
    return sq_hash_more(sq_hash_bytes(head, sizeof head), grid->section, grid->section ? grid->section_bytes : 0);
}

int sq_cube_find_points(struct sq_builder *b, struct squall_error *err)
{
    __attribute__((cleanup(chains_done))) struct chains chains = {.sizes = sq_intern_make(4)};
    uint32_t row;
    for (size_t i = 0; i < b->known_grid_count; i++) {
        SQ_TRY(find_or_add(b, &chains, &b->known_grids[i], &row, err));
        if (row != i)
            return sq_error(err, SQUALL_ECORRUPT, "the store's schema names one grid twice");
        b->points[i].number = b->known_grid_numbers[i];
    }
    b->points_of = sq_alloc(b->index->grid_count, sizeof *b->points_of);
    b->northward = sq_alloc(b->index->grid_count, sizeof *b->northward);
    if (!b->points_of || !b->northward)
        return sq_error_memory(err, b->index->grid_count * sizeof *b->points_of);
    for (size_t i = 0; i < b->index->grid_count; i++) {
        SQ_TRY(find_or_add(b, &chains, &b->index->grids[i], &b->points_of[i], err));
        b->northward[i] = sq_grib_grid_rows_northward(&b->index->grids[i]);
    }
    return 0;
}

struct ranked {
    uint32_t row;
    size_t field_count;
    struct sq_hash id;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->field_count != y->field_count)
        return x->field_count > y->field_count ? -1 : 1;
    if (x->id.high != y->id.high)
        return x->id.high < y->id.high ? -1 : 1;
    return x->id.low < y->id.low ? -1 : x->id.low > y->id.low;
}

int sq_cube_number_points(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct ranked *ranked = sq_alloc(b->points_count, sizeof *ranked);
    if (!ranked)
        return sq_error_memory(err, b->points_count * sizeof *ranked);
    for (size_t i = 0; i < b->points_count; i++)
        ranked[i] = (struct ranked){(uint32_t)i, b->points[i].field_count, grid_id(b->points[i].grid)};
    qsort(ranked, b->points_count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < b->points_count; i++)
        b->points[ranked[i].row].number = (unsigned)i + 1;
    return 0;
}
