/* From options and a cube to arrays, chunks and types; what another layout is refused with. The cubes are made by hand. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "convert/layout.h"
#include "format/zarr/records.h"
#include <stdlib.h>
#include <string.h>

enum { VARIABLES = 2 };

/* t2m on (init_time 3, step 13, y 704, x 548) and u on (init_time 3, step 13, isobaricInhPa 20, y 704, x 548). */
static struct sq_cube_variable variables[VARIABLES];
static struct sq_cube_grid grids[] = {{0, 704, 548}, {1, 0, 10000}};

static struct sq_cube cube(void)
{
    variables[0] = (struct sq_cube_variable){
        .name = "t2m",
        .type = SQUALL_FLOAT32,
        .rank = 4,
        .dim_kinds = {SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_Y, SQ_DIM_X},
        .dims = {"init_time", "step", "y", "x"},
        .shape = {3, 13, 704, 548},
    };
    variables[1] = (struct sq_cube_variable){
        .name = "u",
        .type = SQUALL_FLOAT64,
        .rank = 5,
        .dim_kinds = {SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_LEVEL, SQ_DIM_Y, SQ_DIM_X},
        .dims = {"init_time", "step", "isobaricInhPa", "y", "x"},
        .shape = {3, 13, 20, 704, 548},
    };
    return (struct sq_cube){.variables = variables, .variable_count = VARIABLES, .grids = grids, .grid_count = 2, .init_count = 3};
}

struct asked {
    const char *chunks, *dtype, *codec, *coarsen;
};

static struct sq_settings settings(struct asked asked)
{
    static const char *const sources[] = {"in"};
    const struct squall_convert_options o = {.sources = sources,
                                             .source_count = 1,
                                             .destination = "out",
                                             .chunks = asked.chunks,
                                             .dtype = asked.dtype,
                                             .codec = asked.codec,
                                             .coarsen = asked.coarsen};
    struct sq_settings s;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_settings_parse(&o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static struct sq_layout laid_out(struct asked asked)
{
    struct sq_cube c = cube();
    struct sq_settings s = settings(asked);
    struct sq_layout layout;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_layout_make(&s, &c, 0, &layout, &err))
        fail_msg("%s", err.message);
    sq_settings_done(&s);
    return layout;
}

static void chunks_are(const struct sq_layout_array *a, const uint64_t *expected)
{
    for (unsigned d = 0; d < a->rank; d++)
        assert_int_equal(a->chunks[d], expected[d]);
}

static void default_chunks_are_one_run_of_at_most_16_mebibytes(void **state)
{
    (void)state;
    struct sq_layout layout = laid_out((struct asked){0});
    /* 13 × 704 × 548 × 4 bytes are 19 MiB: halved once */
    chunks_are(&layout.arrays[0], (const uint64_t[]){1, 13, 352, 274});
    assert_int_equal(layout.arrays[0].chunks_per_unit, 4);
    assert_int_equal(layout.arrays[0].slabs_per_init, 13);
    /* 13 × 704 × 548 × 8 bytes are 38 MiB: halved once; levels apart */
    chunks_are(&layout.arrays[1], (const uint64_t[]){1, 13, 1, 352, 274});
    assert_int_equal(layout.arrays[1].chunks_per_unit, 80);
    assert_int_equal(layout.arrays[1].slabs_per_init, 260);
    assert_int_equal(layout.init_chunk, 1);
    assert_int_equal(layout.unit_bytes, 4 * (size_t)13 * 352 * 274 * 4 + 80 * (size_t)13 * 352 * 274 * 8);
    sq_layout_done(&layout);
}

static void given_chunks_win_and_are_cut_to_the_array(void **state)
{
    (void)state;
    struct sq_layout layout = laid_out((struct asked){.chunks = "init_time=4,step=all,level=5,isobaricInhPa=6,y=1000,x=100"});
    chunks_are(&layout.arrays[0], (const uint64_t[]){4, 13, 704, 100});
    chunks_are(&layout.arrays[1], (const uint64_t[]){4, 13, 6, 704, 100});
    assert_int_equal(layout.arrays[1].grid[0], 1);
    assert_int_equal(layout.arrays[1].grid[2], 4);
    assert_int_equal(layout.arrays[1].grid[4], 6);
    assert_int_equal(layout.init_chunk, 4);
    sq_layout_done(&layout);
}

static void a_chunk_of_all_init_times_stays_as_long_when_the_store_grows(void **state)
{
    (void)state;
    struct sq_cube c = cube();
    struct sq_settings s = settings((struct asked){.chunks = "init_time=all,y=88,x=68"});
    struct sq_layout first, later;
    assert_int_equal(sq_layout_make(&s, &c, 0, &first, NULL), 0);
    assert_int_equal(first.init_chunk, 3);
    variables[0].shape[0] = variables[1].shape[0] = 7;
    c.init_count = 7;
    assert_int_equal(sq_layout_make(&s, &c, first.init_chunk, &later, NULL), 0);
    assert_int_equal(later.init_chunk, 3);
    assert_string_equal(first.id, later.id);
    assert_int_equal(sq_layout_compare(first.description, later.description, false, NULL), 0);
    sq_layout_done(&first);
    sq_layout_done(&later);
    sq_settings_done(&s);
}

static void types_are_the_variables_own_unless_given(void **state)
{
    (void)state;
    struct sq_layout layout = laid_out((struct asked){0});
    assert_int_equal(layout.arrays[0].type, SQUALL_FLOAT32);
    assert_int_equal(layout.arrays[1].type, SQUALL_FLOAT64);
    sq_layout_done(&layout);
    layout = laid_out((struct asked){.dtype = "u=float32,float16"});
    assert_int_equal(layout.arrays[0].type, SQUALL_FLOAT16);
    assert_int_equal(layout.arrays[1].type, SQUALL_FLOAT32);
    sq_layout_done(&layout);
}

static void refused(struct asked asked, const char *words)
{
    struct sq_cube c = cube();
    struct sq_settings s = settings(asked);
    struct sq_layout layout;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_layout_make(&s, &c, 0, &layout, &err), SQUALL_EINVAL);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" is not in: %s", words, err.message);
    sq_settings_done(&s);
}

static void names_that_nothing_has_are_refused_with_those_there_are(void **state)
{
    (void)state;
    refused((struct asked){.chunks = "time=1"}, "no dimension \"time\"; there are init_time, step, y, x, isobaricInhPa");
    refused((struct asked){.dtype = "t=float16"}, "no variable \"t\"; there are t2m, u");
    refused((struct asked){.codec = "zip"}, "zip");
}

static void a_chunk_beyond_the_codec_s_limit_is_refused(void **state)
{
    (void)state;
    refused((struct asked){.chunks = "init_time=100,level=all,y=all,x=all", .codec = "blosc:cname=zstd,clevel=5,shuffle=shuffle"},
            "--chunks");
}

static void grids_without_rows_are_cut_along_their_values(void **state)
{
    (void)state;
    struct sq_cube c = cube();
    struct sq_settings s = settings((struct asked){.chunks = "values=4000"});
    struct sq_layout layout;
    c.variable_count = 1;
    variables[0] = (struct sq_cube_variable){
        .name = "t2m",
        .type = SQUALL_FLOAT32,
        .grid = 1,
        .rank = 3,
        .dim_kinds = {SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_X},
        .dims = {"init_time", "step", "values"},
        .shape = {3, 13, 10000},
    };
    assert_int_equal(sq_layout_make(&s, &c, 0, &layout, NULL), 0);
    assert_int_equal(layout.arrays[0].slab_rank, 1);
    assert_int_equal(layout.arrays[0].rows, 1);
    assert_int_equal(layout.arrays[0].columns, 10000);
    assert_int_equal(layout.arrays[0].chunks_per_unit, 3);
    sq_layout_done(&layout);
    sq_settings_done(&s);
}

/* ---- comparing ------------------------------------------------------------------------------------------------------------------- */

static void the_same_settings_give_the_same_layout_id(void **state)
{
    (void)state;
    struct sq_layout a = laid_out((struct asked){0}),
                     b = laid_out((struct asked){.chunks = "y=352,x=274,init_time=1", .dtype = "u=float64"});
    assert_string_equal(a.id, b.id);
    sq_layout_done(&a);
    sq_layout_done(&b);
}

static void each_setting_that_differs_is_named(void **state)
{
    (void)state;
    static const struct {
        struct asked asked;
        const char *words;
    } CASES[] = {
        {{.chunks = "y=100"}, "t2m: --chunks is [1,13,352,274] there and [1,13,100,548] now"}, {{.chunks = "level=2"}, "u: --chunks"},
        {{.dtype = "float16"}, "t2m: --dtype is \"float32\" there and \"float16\" now"},       {{.codec = "zstd:level=3"}, "t2m: --codec"},
        {{.coarsen = "y=2,x=2"}, "--coarsen is \"y=1,x=1\" there and \"y=2,x=2\" now"},
    };
    struct sq_layout stored = laid_out((struct asked){0});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct sq_layout asked = laid_out(CASES[i].asked);
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_string_not_equal(stored.id, asked.id);
        assert_int_equal(sq_layout_compare(stored.description, asked.description, false, &err), SQUALL_EREFUSED);
        if (!strstr(err.message, CASES[i].words))
            fail_msg("\"%s\" is not in: %s", CASES[i].words, err.message);
        sq_layout_done(&asked);
    }
    sq_layout_done(&stored);
}

static void a_variable_more_or_less_is_refused(void **state)
{
    (void)state;
    struct sq_cube c = cube();
    struct sq_settings s = settings((struct asked){0});
    struct sq_layout both, one;
    assert_int_equal(sq_layout_make(&s, &c, 0, &both, NULL), 0);
    c.variable_count = 1;
    assert_int_equal(sq_layout_make(&s, &c, 0, &one, NULL), 0);
    assert_int_equal(sq_layout_compare(both.description, one.description, false, NULL), SQUALL_EREFUSED);
    assert_int_equal(sq_layout_compare(one.description, both.description, false, NULL), SQUALL_EREFUSED);
    assert_int_equal(sq_layout_compare(one.description, both.description, true, NULL), 0);
    assert_int_equal(sq_layout_compare(both.description, one.description, true, NULL), SQUALL_EREFUSED);
    sq_layout_done(&both);
    sq_layout_done(&one);
    sq_settings_done(&s);
}

/* ---- dimensions that grow ------------------------------------------------------------------------------------------------------- */

static void chunks_stay_as_long_when_a_dimension_grows(void **state)
{
    (void)state;
    struct sq_cube c = cube();
    struct sq_settings s = settings((struct asked){.chunks = "step=all,level=7"});
    struct sq_layout before, after;
    assert_int_equal(sq_layout_make(&s, &c, 0, &before, NULL), 0);
    for (int i = 0; i < VARIABLES; i++) {
        variables[i].made[1] = 13;
        variables[i].shape[1] = 15;
    }
    variables[1].made[2] = 20;
    variables[1].shape[2] = 22;
    assert_int_equal(sq_layout_make(&s, &c, 0, &after, NULL), 0);
    for (int i = 0; i < VARIABLES; i++)
        assert_memory_equal(after.arrays[i].chunks, before.arrays[i].chunks, sizeof before.arrays[i].chunks);
    assert_int_equal(after.arrays[1].grid[1], 2);
    assert_int_equal(after.arrays[1].grid[2], 4);
    assert_int_equal(sq_layout_compare(before.description, after.description, true, NULL), 0);
    assert_int_equal(sq_layout_compare(before.description, after.description, false, NULL), SQUALL_EREFUSED);
    assert_int_equal(sq_layout_compare(after.description, before.description, true, NULL), SQUALL_EREFUSED); /* none grows shorter */
    sq_layout_done(&before);
    sq_layout_done(&after);
    sq_settings_done(&s);
}

enum { OUTER = 3, RANK = 5, INITS = 2, MOST = 7 };

/* An array of init_time, three dimensions that grow, and one that does not. */
static struct sq_layout_array array_of(const uint64_t *lengths, const uint64_t *chunks)
{
    struct sq_layout_array a = {.name = "v", .rank = RANK, .outer_rank = OUTER, .slabs_per_init = 1, .chunks_per_unit = 1};
    for (unsigned d = 1; d < RANK; d++) {
        a.shape[d] = a.made[d] = d <= OUTER ? lengths[d] : 5;
        a.chunks[d] = chunks[d];
        a.grid[d] = (a.shape[d] + chunks[d] - 1) / chunks[d];
        a.chunks_per_unit *= a.grid[d];
        a.slabs_per_init *= d <= OUTER ? a.shape[d] : 1;
    }
    return a;
}

/* What is stored follows from the indices alone; within: the lengths in which anything is. */
static bool is_stored(uint64_t init, const uint64_t *index, const uint64_t *within, unsigned seed)
{
    for (unsigned d = 1; d <= OUTER; d++)
        if (index[d] >= within[d])
            return false;
    return (init * 31 + index[1] * 17 + index[2] * 7 + index[3] * 3 + seed) % 5 < 3;
}

static void fill_ranges(const struct sq_layout_array *a, const uint64_t *within, unsigned seed, struct sq_ranges *set)
{
    uint64_t number = 0, i[RANK];
    for (uint64_t init = 0; init < INITS; init++)
        for (i[1] = 0; i[1] < a->shape[1]; i[1]++)
            for (i[2] = 0; i[2] < a->shape[2]; i[2]++)
                for (i[3] = 0; i[3] < a->shape[3]; i[3]++, number++)
                    if (is_stored(init, i, within, seed))
                        assert_int_equal(sq_ranges_add(set, number, NULL), 0);
}

/* A chunk's size tells where it lies. */
static void fill_chunks(const struct sq_layout_array *a, const struct sq_layout_array *within, struct sq_record_chunk *chunks)
{
    uint64_t i[RANK];
    size_t number = 0;
    for (i[1] = 0; i[1] < a->grid[1]; i[1]++)
        for (i[2] = 0; i[2] < a->grid[2]; i[2]++)
            for (i[3] = 0; i[3] < a->grid[3]; i[3]++)
                for (i[4] = 0; i[4] < a->grid[4]; i[4]++, number++) {
                    const bool there = i[1] < within->grid[1] && i[2] < within->grid[2] && i[3] < within->grid[3];
                    chunks[number].size_bytes = there ? 1 + i[4] + 10 * (i[3] + 10 * (i[2] + 10 * i[1])) : 0;
                }
}

/* The record of what lies within one array's lengths, numbered by another's. */
static struct sq_record_array recorded(const struct sq_layout_array *by, const struct sq_layout_array *within, unsigned seed)
{
    struct sq_record_array r = {.name = "v", .length_count = OUTER, .chunk_count = (size_t)by->chunks_per_unit};
    r.lengths = malloc(OUTER * sizeof *r.lengths);
    r.chunks = calloc(r.chunk_count, sizeof *r.chunks);
    memcpy(r.lengths, by->shape + 1, OUTER * sizeof *r.lengths);
    fill_ranges(by, within->shape, seed, &r.stored);
    fill_ranges(by, within->shape, seed + 1, &r.bad);
    fill_chunks(by, within, r.chunks);
    return r;
}

static void recorded_done(struct sq_record_array *r)
{
    free(r->lengths);
    free(r->chunks);
    sq_ranges_done(&r->stored);
    sq_ranges_done(&r->bad);
}

static void assert_ranges_equal(const struct sq_ranges *a, const struct sq_ranges *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->items[i].first, b->items[i].first);
        assert_int_equal(a->items[i].last, b->items[i].last);
    }
}

/* told: as the record was written, and as it is to be by the layout's array. */
static void assert_renumbered(const struct sq_record_array *told, struct sq_layout_array *array, const struct sq_record_array *expected)
{
    struct sq_record_array arrays[1] = {*told};
    uint32_t counts[INITS] = {0};
    struct sq_record_unit unit = {.arrays = arrays, .array_count = 1, .field_counts = counts, .init_count = INITS};
    struct sq_records records = {.units = &unit, .unit_count = 1, .arena = sq_arena_new()};
    const struct sq_layout layout = {.arrays = array, .array_count = 1, .init_chunk = INITS};
    assert_int_equal(sq_layout_renumber(&layout, &records, NULL), 0);
    assert_int_equal(arrays[0].chunk_count, expected->chunk_count);
    for (size_t k = 0; k < expected->chunk_count; k++)
        assert_int_equal(arrays[0].chunks[k].size_bytes, expected->chunks[k].size_bytes);
    assert_ranges_equal(&arrays[0].stored, &expected->stored);
    assert_ranges_equal(&arrays[0].bad, &expected->bad);
    sq_arena_free(records.arena);
}

static void records_are_numbered_by_the_lengths_that_there_are_now(void **state)
{
    (void)state;
    srand(7);
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t was[RANK], is[RANK], chunks[RANK];
        for (unsigned d = 1; d < RANK; d++) {
            was[d] = 1 + (uint64_t)rand() % (MOST - 1);
            is[d] = was[d] + (rand() % 2 ? 0 : (uint64_t)rand() % (MOST - was[d] + 1));
            chunks[d] = 1 + (uint64_t)rand() % 4;
        }
        struct sq_layout_array before = array_of(was, chunks), after = array_of(is, chunks);
        struct sq_record_array old = recorded(&before, &before, round), new = recorded(&after, &before, round);
        memcpy(after.made, before.shape, sizeof before.shape);
        assert_renumbered(&old, &after, &new);
        assert_renumbered(&new, &before, &old); /* as after a run that was killed before the layout had grown */
        uint64_t *const lengths = old.lengths;
        old.lengths = NULL;
        old.length_count = 0;
        assert_renumbered(&old, &after, &new); /* of a record that does not tell lengths, the first ones are meant */
        old.lengths = lengths;
        recorded_done(&old);
        recorded_done(&new);
    }
}

static void a_record_of_more_than_there_is_does_not_fit(void **state)
{
    (void)state;
    const uint64_t was[RANK] = {0, 3, 2, 4}, is[RANK] = {0, 3, 3, 4}, chunks[RANK] = {0, 2, 2, 2, 5};
    struct sq_layout_array before = array_of(was, chunks), after = array_of(is, chunks);
    struct sq_record_array large = recorded(&after, &after, 1);
    assert_renumbered(&large, &before, &large);
    uint32_t counts[INITS] = {(uint32_t)sq_ranges_beyond(&large.stored, 0), 0};
    const struct sq_record_unit unit = {.arrays = &large, .array_count = 1, .field_counts = counts, .init_count = INITS};
    assert_true(sq_layout_fits(&after, 1, INITS, &unit));
    assert_false(sq_layout_fits(&before, 1, INITS, &unit));
    recorded_done(&large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_chunks_are_one_run_of_at_most_16_mebibytes),
        cmocka_unit_test(given_chunks_win_and_are_cut_to_the_array),
        cmocka_unit_test(a_chunk_of_all_init_times_stays_as_long_when_the_store_grows),
        cmocka_unit_test(types_are_the_variables_own_unless_given),
        cmocka_unit_test(names_that_nothing_has_are_refused_with_those_there_are),
        cmocka_unit_test(a_chunk_beyond_the_codec_s_limit_is_refused),
        cmocka_unit_test(grids_without_rows_are_cut_along_their_values),
        cmocka_unit_test(the_same_settings_give_the_same_layout_id),
        cmocka_unit_test(each_setting_that_differs_is_named),
        cmocka_unit_test(a_variable_more_or_less_is_refused),
        cmocka_unit_test(chunks_stay_as_long_when_a_dimension_grows),
        cmocka_unit_test(records_are_numbered_by_the_lengths_that_there_are_now),
        cmocka_unit_test(a_record_of_more_than_there_is_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
