/*
 * The steps of building a cube, one after the other (see build.h). What is known after each: the fields that are still open, and why the others
 * are not.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <stdlib.h>
#include <string.h>

unsigned sq_cube_coarsening(const struct sq_builder *b, unsigned which)
{
    unsigned factor = which == 0 ? b->options->coarsen_y : which == 1 ? b->options->coarsen_x : 1;
    return factor ? factor : 1;
}

static void free_points(struct sq_builder *b)
{
    for (size_t i = 0; i < b->points_count; i++)
        sq_grib_axes_done(&b->points[i].axes);
    for (size_t i = 0; i < b->known_grid_count; i++)
        sq_grib_grid_done(&b->known_grids[i]);
    sq_free(b->points);
    sq_free(b->known_grids);
    sq_free(b->known_grid_numbers);
}

static void builder_done(struct sq_builder *b)
{
    for (size_t i = 0; i < b->draft_count; i++)
        sq_json_free(b->drafts[i].attributes);
    free_points(b);
    sq_json_free(b->grown);
    sq_intern_done(&b->variable_table);
    sq_axis_done(&b->runs);
    sq_axis_done(&b->steps);
    sq_axis_done(&b->members);
    void *const parts[] = {b->fate,   b->cell_of, b->variable_of, b->file_rank, b->product_levels, b->cells,       b->points_of, b->groups,
                           b->drafts, b->levels,  b->entries,     b->bounds,    b->row_offsets,    b->rename_used, b->northward};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sq_free(parts[i]);
}

void sq_cube_done(struct sq_cube *cube)
{
    if (!cube)
        return;
    for (size_t i = 0; i < cube->variable_count; i++) {
        sq_json_free(cube->variables[i].attributes);
        sq_json_free(cube->variables[i].fill_value);
    }
    for (size_t i = 0; i < cube->coordinate_count; i++) {
        sq_json_free(cube->coordinates[i].attributes);
        sq_json_free(cube->coordinates[i].fill_value);
        sq_free(cube->coordinates[i].values);
    }
    if (cube->of_arrays) /* of fields they are the arena's */
        sq_free(cube->variables);
    sq_json_free(cube->attributes);
    sq_json_free(cube->schema);
    sq_free(cube->coordinates);
    sq_free(cube->places);
    sq_free(cube->ignored);
    sq_free(cube->damage);
    sq_free(cube->notes);
    sq_free(cube->warnings);
    sq_free(cube->init_times_s);
    sq_free(cube->source_index);
    sq_arena_free(cube->arena);
    *cube = (struct sq_cube){0};
}

struct ranked_file {
    const char *path;
    uint32_t file;
};

static int compare_files(const void *a, const void *b)
{
    const struct ranked_file *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : x->file < y->file ? -1 : x->file > y->file;
}

static int rank_files(struct sq_builder *b, struct squall_error *err)
{
    size_t count = b->index->file_count;
    SQ_CLEANUP_FREE struct ranked_file *ranked = sq_alloc(count, sizeof *ranked);
    b->file_rank = sq_alloc(count, sizeof *b->file_rank);
    if (!ranked || !b->file_rank)
        return sq_error_memory(err, count * sizeof *ranked);
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked_file){b->index->files[i].path, (uint32_t)i};
    qsort(ranked, count, sizeof *ranked, compare_files);
    for (size_t i = 0; i < count; i++)
        b->file_rank[ranked[i].file] = (uint32_t)i;
    return 0;
}

static int begin(struct sq_builder *b, struct squall_error *err)
{
    size_t count = b->index->field_count;
    if (count >= UINT32_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%zu fields at once: convert fewer files at a time", count);
    b->arena = b->cube->arena = sq_arena_new();
    b->fate = sq_alloc_zero(count, sizeof *b->fate);
    b->cell_of = sq_alloc(count, sizeof *b->cell_of);
    b->variable_of = sq_alloc(count, sizeof *b->variable_of);
    b->rename_used = sq_alloc_zero(b->options->rename_count, sizeof *b->rename_used);
    b->variable_table = sq_intern_make(1 + SQ_MARK_COUNT);
    if (!b->arena || !b->fate || !b->cell_of || !b->variable_of || !b->rename_used)
        return sq_error_memory(err, count * sizeof *b->cell_of);
    SQ_TRY(rank_files(b, err));
    SQ_TRY(sq_cube_round_levels(b, err));
    for (size_t i = 0; i < count; i++)
        b->fate[i] = b->options->fields && !b->options->fields[i] ? SQ_FATE_NOT_SELECTED
                     : sq_cube_unsupported_reason(b, i)           ? SQ_FATE_UNSUPPORTED
                                                                  : SQ_FATE_OPEN;
    return 0;
}

static int find_variables(struct sq_builder *b, struct squall_error *err)
{
    if (b->options->schema)
        SQ_TRY(sq_cube_schema_read(b, err));
    SQ_TRY(sq_cube_find_points(b, err));
    SQ_TRY(sq_cube_find_variables(b, err));
    if (b->options->schema)
        return 0;
    SQ_TRY(sq_cube_number_points(b, err));
    return sq_cube_name_variables(b, err);
}

static int choose_fields(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(sq_cube_select(b, err));
    if (b->options->stack)
        SQ_TRY(sq_cube_choose_stack(b, err));
    if (b->options->schema) {
        sq_cube_leave_strays(b);
        if (b->options->grow)
            SQ_TRY(sq_cube_extend(b, err));
        SQ_TRY(sq_cube_check_places(b, err));
    }
    SQ_TRY(sq_cube_find_axes(b, err));
    SQ_TRY(sq_cube_find_runs(b, err));
    return sq_cube_advise_cadence(b, err);
}

/* Rows of the cube's variables, and the axes of what is in it now that strays are out. */
static int lay_out(struct sq_builder *b, struct squall_error *err)
{
    uint32_t rows = 0;
    SQ_TRY(sq_cube_find_axes(b, err));
    b->row_offsets = sq_alloc_zero(b->draft_count, sizeof *b->row_offsets);
    if (!b->row_offsets)
        return sq_error_memory(err, b->draft_count * sizeof *b->row_offsets);
    for (size_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        draft->stored = sq_draft_in_cube(draft);
        if (!draft->stored)
            continue;
        draft->cube_row = rows++;
        b->row_offsets[draft->cube_row] = draft->slab_offset;
    }
    if (b->options->stack)
        return sq_cube_lay_stack(b, err);
    return b->options->schema ? 0 : sq_cube_name_levels(b, err);
}

static int make_init_times(struct sq_builder *b, struct squall_error *err)
{
    struct sq_cube *cube = b->cube;
    cube->append_dim = "init_time";
    cube->init_times_s = sq_alloc((size_t)b->init_count, sizeof *cube->init_times_s);
    if (!cube->init_times_s)
        return sq_error_memory(err, b->init_count * sizeof *cube->init_times_s);
    for (uint64_t i = 0; i < b->init_count; i++)
        cube->init_times_s[i] = b->start_s + (int64_t)i * b->spacing_s;
    cube->init_count = (size_t)b->init_count;
    cube->cadence_s = b->cadence_s;
    cube->move = b->move;
    return 0;
}

static int build(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(sq_cube_check_renames(b->options, err));
    SQ_TRY(begin(b, err));
    SQ_TRY(find_variables(b, err));
    SQ_TRY(choose_fields(b, err));
    SQ_TRY(lay_out(b, err));
    SQ_TRY(make_init_times(b, err));
    SQ_TRY(sq_cube_place_fields(b, err));
    SQ_TRY(sq_cube_find_bounds(b, err));
    SQ_TRY(sq_cube_name_points(b, err));
    sq_cube_turn_rows(b);
    SQ_TRY(sq_cube_make_variables(b, err));
    SQ_TRY(sq_cube_make_coordinates(b, err));
    SQ_TRY(sq_cube_check_names(b, err));
    SQ_TRY(sq_cube_describe_dataset(b, err));
    SQ_TRY(sq_cube_account(b, err));
    SQ_TRY(sq_cube_count_holes(b, err));
    return sq_cube_schema_write(b, err);
}

int sq_cube_build(const struct sq_grib_index *index, const struct sq_cube_options *options, struct sq_cube *ret, struct squall_error *err)
{
    struct sq_cube cube = {0};
    struct sq_builder b = {.index = index, .options = options, .cube = &cube, .move = {1, 0}};
    int status = build(&b, err);
    builder_done(&b);
    if (status) {
        sq_cube_done(&cube);
        return status;
    }
    *ret = cube;
    return 0;
}
