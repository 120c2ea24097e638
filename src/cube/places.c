/*
 * Each field that is left gets its place; of several in one place the last in file order wins. Then what no field fills is counted.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/duplicates.h"

static void free_duplicates(struct sq_duplicates **d)
{
    sq_duplicates_free(*d);
}

/* Fields of one place, the winner last. */
static int settle_duplicates(struct sq_builder *b, struct sq_duplicates *reader, const struct sq_spot *spots, size_t count,
                             struct squall_error *err)
{
    uint32_t winner = spots[count - 1].field;
    for (size_t i = 0; i + 1 < count; i++) {
        bool same = false;
        struct squall_error unread = SQUALL_ERROR_INIT;
        int status = sq_duplicates_same(reader, spots[i].field, winner, &same, &unread);
        if (status == SQUALL_ENOMEM)
            return sq_error(err, status, "%s", unread.message);
        /* what cannot be read any more cannot be shown to be the same; whoever reads the winner next says why */
        b->fate[spots[i].field] = status == 0 && same ? SQ_FATE_IDENTICAL : SQ_FATE_CONFLICTING;
        if (b->fate[spots[i].field] == SQ_FATE_CONFLICTING)
            SQ_TRY(sq_cube_note_conflict(b, spots[i].field, winner, err));
    }
    return 0;
}

static int settle_places(struct sq_builder *b, const struct sq_spot *spots, size_t count, struct squall_error *err)
{
    __attribute__((cleanup(free_duplicates))) struct sq_duplicates *reader = sq_duplicates_new(b->index);
    if (!reader)
        return sq_error_memory(err, sizeof(void *));
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && spots[end].place == spots[i].place; end++)
            ;
        SQ_TRY(settle_duplicates(b, reader, spots + i, end - i, err));
        b->fate[spots[end - 1].field] = SQ_FATE_PLACED;
        b->cube->place_count++;
    }
    return 0;
}

/* Points give the orientation of the first field on them; those of a store keep the one they have. */
static void orient(struct sq_builder *b)
{
    for (uint32_t i = 0; i < b->index->field_count; i++) {
        uint32_t grid = b->index->fields[i].grid;
        struct sq_points *points = &b->points[b->points_of[grid]];
        bool known = b->points_of[grid] < b->known_grid_count;
        if (b->fate[i] != SQ_FATE_PLACED || (known && b->northward[grid] != points->northward))
            continue;
        if (points->first_field != UINT32_MAX && sq_cube_is_later(b, i, points->first_field))
            continue;
        points->first_field = i;
        points->row = grid;
        points->northward = b->northward[grid];
        points->grid = known ? points->grid : &b->index->grids[grid];
    }
}

static int make_places(struct sq_builder *b, const struct sq_spot *spots, size_t count, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    size_t made = 0;
    cube->places = sq_alloc(cube->place_count, sizeof *cube->places);
    if (!cube->places)
        return sq_error_memory(err, cube->place_count * sizeof *cube->places);
    for (size_t i = 0; i < count; i++) {
        const struct sq_grib_field *f = &b->index->fields[spots[i].field];
        const struct sq_draft *draft = &b->drafts[b->variable_of[spots[i].field]];
        if (b->fate[spots[i].field] != SQ_FATE_PLACED)
            continue;
        const struct sq_points *points = &b->points[b->points_of[f->grid]];
        cube->places[made++] = (struct sq_cube_place){
            .field = spots[i].field,
            .variable = draft->cube_row,
            .init = (uint32_t)(spots[i].place / b->slabs_a_run),
            .slab = (uint32_t)(spots[i].place % b->slabs_a_run - draft->slab_offset),
            .flip_rows = points->grid->rectangular && b->northward[f->grid] != points->northward,
        };
    }
    return 0;
}

void sq_cube_turn_rows(struct sq_builder *b)
{
    for (size_t i = 0; i < b->cube->place_count; i++) {
        struct sq_cube_place *place = &b->cube->places[i];
        place->flip_rows ^= b->points[b->points_of[b->index->fields[place->field].grid]].turned;
    }
}

int sq_cube_place_fields(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_spot *spots = NULL;
    size_t count = 0;
    SQ_TRY(sq_cube_find_spots(b, &spots, &count, err));
    SQ_TRY(settle_places(b, spots, count, err));
    orient(b);
    return make_places(b, spots, count, err);
}
