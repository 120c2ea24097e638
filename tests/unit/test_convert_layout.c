/* From options and a cube to arrays, chunks and types; what another layout is refused with. The cubes are made by hand. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "convert/layout.h"
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
