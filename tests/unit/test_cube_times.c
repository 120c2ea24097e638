/* Runs, cadence and strays. */
#include "support/unit.h"

#include "support/fields.h"

enum { HOUR_S = 3600 };

/* One field a run, at these hours; count runs. */
static struct fields *runs_at(const int *hours, size_t count)
{
    struct fields *f = fields_new();
    uint32_t t = PRODUCT(f, .level = 2);
    for (size_t i = 0; i < count; i++)
        FIELD(f, t, .run_h = hours[i]);
    return f;
}
#define RUNS(...) runs_at((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

struct expected {
    int first_h, count, spacing_h, cadence_h, stray_count;
};

static void check(struct fields *f, const struct sq_cube_options *options, struct expected e)
{
    struct sq_cube cube;
    fields_build(f, options, &cube);
    assert_int_equal(cube.init_count, e.count);
    for (int i = 0; i < e.count; i++)
        assert_int_equal((cube.init_times_s[i] - FIELDS_START_S) / HOUR_S, e.first_h + i * e.spacing_h);
    assert_int_equal(cube.cadence_s, e.cadence_h * HOUR_S);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OFF_CADENCE), e.stray_count);
    assert_int_equal(fields_coordinate(&cube, "init_time")->shape[0], e.count);
    assert_int_equal(cube.variables[0].shape[0], e.count);
    sq_cube_done(&cube);
    fields_free(f);
}

static const struct sq_cube_options PLAIN = {0};

static void one_run_leaves_the_cadence_open(void **state)
{
    (void)state;
    check(RUNS(6), &PLAIN, (struct expected){6, 1, 0, 0, 0});
}

static void two_runs_are_as_far_apart_as_they_are(void **state)
{
    (void)state;
    check(RUNS(18, 6), &PLAIN, (struct expected){6, 2, 12, 0, 0});
}

static void three_runs_settle_the_cadence(void **state)
{
    (void)state;
    check(RUNS(0, 6, 12), &PLAIN, (struct expected){0, 3, 6, 6, 0});
}

static void gaps_get_coordinates(void **state)
{
    (void)state;
    check(RUNS(0, 6, 12, 30), &PLAIN, (struct expected){0, 6, 6, 6, 0});
}

static void of_equally_common_differences_the_smaller_counts(void **state)
{
    (void)state;
    check(RUNS(0, 6, 18), &PLAIN, (struct expected){0, 4, 6, 6, 0});
}

static void a_stray_at_the_end_is_ignored_and_named(void **state)
{
    (void)state;
    struct fields *f = RUNS(0, 6, 12, 18, 20);
    struct sq_cube cube;
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.init_count, 4);
    assert_int_equal(cube.warning_count, 1);
    assert_string_equal(cube.warnings[0],
                        "run 2022-01-01T20:00 is off the cadence of 6 h from 2022-01-01T00:00: 1 field in 1 file ignored (the first: "
                        "t2m, 2022-01-01T20:00 + 0 h, 2 m, /nowhere/a.grib at byte 400)");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_stray_at_the_beginning_costs_itself_only(void **state)
{
    (void)state;
    check(RUNS(-2, 0, 6, 12, 18), &PLAIN, (struct expected){0, 4, 6, 6, 1});
}

static void a_stray_in_the_middle_costs_itself_only(void **state)
{
    (void)state;
    check(RUNS(0, 6, 8, 12, 18, 24), &PLAIN, (struct expected){0, 5, 6, 6, 1});
}

static void every_decides(void **state)
{
    (void)state;
    const struct sq_cube_options hourly = {.every_s = HOUR_S}, daily = {.every_s = 24 * HOUR_S};
    check(RUNS(0, 6), &hourly, (struct expected){0, 7, 1, 1, 0});
    check(RUNS(0, 6, 24, 30, 48), &daily, (struct expected){0, 3, 24, 24, 2});
    check(RUNS(6), &daily, (struct expected){6, 1, 0, 24, 0});
}

/* The warning that tells of another cadence; NULL where there is none. */
static void check_advice(struct fields *f, const struct sq_cube_options *options, const char *expected)
{
    struct sq_cube cube;
    const char *found = NULL;
    fields_build(f, options, &cube);
    for (size_t i = 0; i < cube.warning_count; i++)
        found = strstr(cube.warnings[i], "--every") ? cube.warnings[i] : found;
    if (expected)
        assert_string_equal(found, expected);
    else
        assert_null(found);
    sq_cube_done(&cube);
    fields_free(f);
}

static void runs_of_months_are_told_of_a_cadence_that_takes_them_all(void **state)
{
    (void)state;
    const struct sq_cube_options monthly = {.every_s = 31 * 24 * HOUR_S};
    check_advice(RUNS(0, 31 * 24, 59 * 24, 90 * 24, 120 * 24), &PLAIN,
                 "3 of 5 runs are off the cadence of 744 h; --every 24h takes every run");
    check_advice(RUNS(0, 31 * 24, 59 * 24, 90 * 24, 120 * 24), &monthly, NULL); /* as was asked for */
    check_advice(RUNS(0, 6, 12, 18, 20), &PLAIN, NULL);                         /* a stray */
    check_advice(RUNS(0, 1, 50000), &PLAIN, NULL);                              /* it would be an axis of holes */
}

static void times_before_1970_are_times(void **state)
{
    (void)state;
    struct fields *f = RUNS(0, 6, 12);
    struct sq_cube cube;
    for (size_t i = 0; i < 3; i++)
        f->field[i].times.reference_time_s -= 2 * FIELDS_START_S;
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.init_count, 3);
    assert_int_equal(cube.init_times_s[0], -FIELDS_START_S);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_run_decades_away_is_an_error_that_names_the_cure(void **state)
{
    (void)state;
    struct fields *f = RUNS(0, 1, 2);
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_cube_options options = {.every_s = 60};
    f->field[2].times.reference_time_s += INT64_C(100) * 365 * 86400;
    assert_int_equal(sq_cube_build(&f->index, &options, &cube, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "--every"));
    fields_free(f);
}

static void the_step_axis_is_the_union_over_runs_and_variables(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .level = 2), u = PRODUCT(f, .short_name = "u", .param_id = 131);
    for (int quarter = 0; quarter < 9; quarter++)
        FIELD(f, t, .step_min = 15 * quarter);
    FIELD(f, u, .run_h = 6, .step_h = 3);
    fields_build(f, &PLAIN, &cube);
    const int64_t steps[] = {0, 900, 1800, 2700, 3600, 4500, 5400, 6300, 7200, 10800};
    assert_int_equal(fields_coordinate(&cube, "step")->shape[0], 10);
    assert_memory_equal(fields_coordinate(&cube, "step")->values, steps, sizeof steps);
    assert_int_equal(cube.holes, 2 * 2 * 10 - 10);
    sq_cube_done(&cube);
    fields_free(f);
}

static void the_steps_of_a_stray_are_no_steps(void **state)
{
    (void)state;
    struct fields *f = RUNS(0, 6, 12);
    struct sq_cube cube;
    FIELD(f, 0, .run_h = 13, .step_h = 99);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_coordinate(&cube, "step")->shape[0], 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void times_beyond_any_calendar_cost_their_field_only(void **state)
{
    (void)state;
    const int64_t odd[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, 0};
    for (int i = 0; i < 64; i++) {
        struct fields *f = RUNS(0, 6);
        struct sq_cube cube;
        f->field[1].times = (struct sq_grib_times){
            .reference_time_s = odd[i >> 4 & 3], .step_begin_s = odd[i & 3], .step_end_s = odd[i >> 2 & 3], .number = -1};
        bool sound = (i & 15) == 15 && i >> 4 == 3;
        fields_build(f, &PLAIN, &cube);
        assert_int_equal(fields_ignored(&cube, SQ_CUBE_UNSUPPORTED), !sound);
        assert_true(sound || fields_line(cube.warnings, cube.warning_count, "a time beyond any calendar"));
        sq_cube_done(&cube);
        fields_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_leaves_the_cadence_open),
        cmocka_unit_test(two_runs_are_as_far_apart_as_they_are),
        cmocka_unit_test(three_runs_settle_the_cadence),
        cmocka_unit_test(gaps_get_coordinates),
        cmocka_unit_test(of_equally_common_differences_the_smaller_counts),
        cmocka_unit_test(a_stray_at_the_end_is_ignored_and_named),
        cmocka_unit_test(a_stray_at_the_beginning_costs_itself_only),
        cmocka_unit_test(a_stray_in_the_middle_costs_itself_only),
        cmocka_unit_test(every_decides),
        cmocka_unit_test(runs_of_months_are_told_of_a_cadence_that_takes_them_all),
        cmocka_unit_test(times_before_1970_are_times),
        cmocka_unit_test(a_run_decades_away_is_an_error_that_names_the_cure),
        cmocka_unit_test(the_step_axis_is_the_union_over_runs_and_variables),
        cmocka_unit_test(the_steps_of_a_stray_are_no_steps),
        cmocka_unit_test(times_beyond_any_calendar_cost_their_field_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
