/* --select, --rename, --stack: what is chosen, what it is called, and what the answer to a mistake is. */
#include "support/unit.h"

#include "support/fields.h"

/* t on three pressure levels and at 2 m, u at two members, vis and its probability, each at steps 0, 1.5 and 6 h. */
static struct fields *mixed(void)
{
    struct fields *f = fields_new();
    uint32_t products[] = {
        PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 500),
        PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 850),
        PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 1000),
        PRODUCT(f, .short_name = "2t", .cf_var_name = "t2m", .level = 2),
        PRODUCT(f, .short_name = "vis", .param_id = 3020, .level_type = "surface"),
        PRODUCT(f, .short_name = "vis", .param_id = 3020, .level_type = "surface", .probability = true, .lower = 1000),
    };
    uint32_t u = PRODUCT(f, .short_name = "u", .param_id = 131, .ensemble = true, .level = 10);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        FIELD(f, products[i], .step_h = 0);
        FIELD(f, products[i], .step_h = 1, .step_min = 30);
        FIELD(f, products[i], .step_h = 6);
    }
    FIELD(f, u, .number = 1);
    FIELD(f, u, .number = 2);
    return f;
}

struct selection {
    const char *lines[3];
    const char *names;
    size_t place_count;
};

static void check_selection(struct selection s)
{
    struct fields *f = mixed();
    struct sq_cube cube;
    struct sq_cube_options options = {.select = s.lines};
    char names[200];
    while (options.select_count < 3 && s.lines[options.select_count])
        options.select_count++;
    fields_build(f, &options, &cube);
    assert_string_equal(fields_names(&cube, names, sizeof names), s.names);
    assert_int_equal(cube.place_count, s.place_count);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_NOT_SELECTED), 20 - s.place_count);
    assert_int_equal(cube.warning_count, 0);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_line_chooses_by_all_of_its_terms(void **state)
{
    (void)state;
    check_selection((struct selection){{"name=t"}, "t", 9});
    check_selection((struct selection){{"name=t,level=850"}, "t", 3});
    check_selection((struct selection){{"name=t|t2m,step=6"}, "t t2m", 4});
    check_selection((struct selection){{"shortName=2t"}, "t2m", 3});
    check_selection((struct selection){{"typeOfLevel=isobaricInhPa,level=500|1000"}, "t", 6});
    check_selection((struct selection){{"stepType=instant,paramId=3020"}, "vis vis_probability", 6});
    check_selection((struct selection){{"number=1"}, "u", 1});
    check_selection((struct selection){{"grid=regular_ll"}, "t t2m u vis vis_probability", 20});
}

static void steps_are_hours_or_have_a_unit(void **state)
{
    (void)state;
    check_selection((struct selection){{"name=t2m,step=1.5"}, "t2m", 1});
    check_selection((struct selection){{"name=t2m,step=90min"}, "t2m", 1});
    check_selection((struct selection){{"name=t2m,step=6h|0"}, "t2m", 2});
    check_selection((struct selection){{"name=t2m,step=0.25d"}, "t2m", 1});
    check_selection((struct selection){{"name=t2m,step=5400s"}, "t2m", 1});
}

static void lines_add_up(void **state)
{
    (void)state;
    check_selection((struct selection){{"name=t2m", "name=t,level=500"}, "t t2m", 6});
}

/* the plain name belongs to the deterministic field, chosen or not */
static void names_do_not_depend_on_what_is_chosen(void **state)
{
    (void)state;
    check_selection((struct selection){{"name=vis_probability"}, "vis_probability", 3});
}

static void one_chosen_level_is_no_dimension(void **state)
{
    (void)state;
    struct fields *f = mixed();
    struct sq_cube cube;
    struct sq_cube_options options = {.select = (const char *const[]){"name=t,level=850"}, .select_count = 1};
    char text[200];
    fields_build(f, &options, &cube);
    assert_string_equal(fields_dims(&cube, "t", text, sizeof text), "init_time,step,latitude,longitude");
    sq_cube_done(&cube);
    fields_free(f);
}

static void assert_error(struct sq_cube_options options, enum squall_status status, const char *part)
{
    struct fields *f = mixed();
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_cube_build(&f->index, &options, &cube, &err), status);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err.message);
    fields_free(f);
}

static void a_malformed_selection_is_named(void **state)
{
    (void)state;
    const struct {
        const char *line, *part;
    } cases[] = {{"colour=red", "\"colour\""},
                 {"name", "\"name\""},
                 {"name=", "no value for name"},
                 {"level=high", "\"high\" is no value for level"},
                 {"step=6x", "90min"},
                 {"name=t,", "is none of"},
                 {"", "is none of"},
                 {"name=t||u", "no value"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_error((struct sq_cube_options){.select = &cases[i].line, .select_count = 1}, SQUALL_EINVAL, cases[i].part);
}

static void a_selection_of_nothing_names_what_there_is(void **state)
{
    (void)state;
    const char *line = "name=t3m";
    assert_error((struct sq_cube_options){.select = &line, .select_count = 1}, SQUALL_EINVAL,
                 "the names are t, t2m, u, vis, vis_probability");
}

static void a_line_that_chooses_nothing_is_told(void **state)
{
    (void)state;
    struct fields *f = mixed();
    struct sq_cube cube;
    struct sq_cube_options options = {.select = (const char *const[]){"name=t", "name=t3m"}, .select_count = 2};
    fields_build(f, &options, &cube);
    assert_true(fields_line(cube.warnings, cube.warning_count, "--select name=t3m chooses no field"));
    sq_cube_done(&cube);
    fields_free(f);
}

static void variables_dimensions_and_coordinates_are_renamed(void **state)
{
    (void)state;
    struct fields *f = mixed();
    struct sq_cube cube;
    const char *const renames[] = {"t=temperature", "isobaricInhPa=pressure", "latitude=lat", "valid_time=time"};
    struct sq_cube_options options = {.rename = renames, .rename_count = 4};
    char text[200];
    fields_build(f, &options, &cube);
    assert_string_equal(fields_dims(&cube, "temperature", text, sizeof text), "init_time,step,pressure,lat,longitude");
    assert_non_null(fields_coordinate(&cube, "pressure"));
    assert_string_equal(fields_coordinate(&cube, "lat")->dims[0], "lat");
    assert_string_equal(sq_json_string(sq_json_get(fields_variable(&cube, "temperature")->attributes, "coordinates")), "time");
    assert_null(fields_variable(&cube, "t"));
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_rename_that_cannot_be_is_named(void **state)
{
    (void)state;
    const struct {
        const char *rename, *part;
    } cases[] = {{"t3m=x1", "no variable or coordinate"},
                 {"t=vis", "two arrays would be called \"vis\""},
                 {"t=step", "two arrays would be called \"step\""},
                 {"t", "wants old=new"},
                 {"t=", "wants old=new"},
                 {"=t", "wants old=new"},
                 {"t=a/b", "wants old=new"},
                 {"t=.hidden", "wants old=new"},
                 {"init_time=time", "init_time keeps its name"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_error((struct sq_cube_options){.rename = &cases[i].rename, .rename_count = 1}, SQUALL_EINVAL, cases[i].part);
    const char *const twice[] = {"t=a", "t=b"};
    assert_error((struct sq_cube_options){.rename = twice, .rename_count = 2}, SQUALL_EINVAL, "another new name already");
}

static void assert_entries(const struct sq_cube *cube, const char *expected)
{
    const struct sq_cube_coordinate *c = fields_coordinate(cube, "variable");
    char text[400] = "";
    for (uint64_t i = 0; i < c->shape[0]; i++) {
        strcat(text, i ? " " : "");
        strcat(text, ((struct squall_bytes *)c->values)[i].data);
    }
    assert_string_equal(text, expected);
}

static void a_stack_is_one_array_of_the_deterministic_variables(void **state)
{
    (void)state;
    struct fields *f = mixed();
    struct sq_cube cube;
    struct sq_cube_options options = {.stack = true};
    char text[200];
    fields_build(f, &options, &cube);
    assert_int_equal(cube.variable_count, 1);
    assert_string_equal(fields_dims(&cube, "data", text, sizeof text), "init_time,variable,step,latitude,longitude");
    assert_entries(&cube, "t2m t_isobaricInhPa_1000 t_isobaricInhPa_500 t_isobaricInhPa_850 vis");
    const uint64_t shape[] = {1, 5, 3, 3, 4};
    assert_memory_equal(cube.variables[0].shape, shape, sizeof shape);
    assert_int_equal(fields_place(&cube, 0)->slab, 2 * 3);     /* t at 500 hPa, step 0 */
    assert_int_equal(fields_place(&cube, 5)->slab, 3 * 3 + 2); /* t at 850 hPa, 6 h */
    assert_int_equal(fields_place(&cube, 10)->slab, 1);        /* t2m, 1.5 h */
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_NOT_IN_STACK), 5);
    assert_true(fields_line(cube.warnings, cube.warning_count, "vis_probability does not fit the stack: 3 fields"));
    assert_true(fields_line(cube.warnings, cube.warning_count, "u does not fit the stack: 2 fields"));
    assert_string_equal(((struct squall_bytes *)fields_coordinate(&cube, "variable_units")->values)[0].data, "K");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_stack_takes_what_was_chosen(void **state)
{
    (void)state;
    struct fields *f = mixed();
    struct sq_cube cube;
    struct sq_cube_options options = {
        .stack = true, .stack_name = "ukv", .select = (const char *const[]){"name=vis|vis_probability"}, .select_count = 1};
    fields_build(f, &options, &cube);
    assert_string_equal(cube.variables[0].name, "ukv");
    assert_entries(&cube, "vis vis_probability");
    assert_int_equal(cube.warning_count, 0);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_stack_lies_on_the_commonest_grid(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    struct sq_cube_options options = {.stack = true};
    uint32_t other = fields_grid(f, 2, 2, false), t = PRODUCT(f, .short_name = "t"), u = PRODUCT(f, .short_name = "u", .param_id = 131);
    FIELD(f, t, .grid = 0);
    for (int step = 0; step < 2; step++)
        FIELD(f, u, .grid = other, .step_h = step);
    fields_build(f, &options, &cube);
    assert_entries(&cube, "u");
    assert_int_equal(cube.variables[0].shape[3], 2);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_NOT_IN_STACK), 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_stack_keeps_the_intervals_of_each_entry(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    struct sq_cube_options options = {.stack = true};
    FIELD(f, PRODUCT(f, .level = 2), .step_h = 1);
    INTERVAL(f, PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM), .begin_h = 0, .step_h = 1);
    fields_build(f, &options, &cube);
    const int64_t bounds[] = {INT64_MIN, INT64_MIN, 0, 3600};
    assert_entries(&cube, "t2m tp");
    assert_int_equal(fields_coordinate(&cube, "step_bounds")->rank, 3);
    assert_memory_equal(fields_coordinate(&cube, "step_bounds")->values, bounds, sizeof bounds);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_stack_of_nothing_says_why(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    struct sq_cube_options options = {.stack = true};
    struct squall_error err = SQUALL_ERROR_INIT;
    FIELD(f, PRODUCT(f, .ensemble = true), .number = 1);
    assert_int_equal(sq_cube_build(&f->index, &options, &cube, &err), SQUALL_ENOTFOUND);
    assert_non_null(strstr(err.message, "--stack"));
    fields_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_chooses_by_all_of_its_terms),
        cmocka_unit_test(steps_are_hours_or_have_a_unit),
        cmocka_unit_test(lines_add_up),
        cmocka_unit_test(names_do_not_depend_on_what_is_chosen),
        cmocka_unit_test(one_chosen_level_is_no_dimension),
        cmocka_unit_test(a_malformed_selection_is_named),
        cmocka_unit_test(a_selection_of_nothing_names_what_there_is),
        cmocka_unit_test(a_line_that_chooses_nothing_is_told),
        cmocka_unit_test(variables_dimensions_and_coordinates_are_renamed),
        cmocka_unit_test(a_rename_that_cannot_be_is_named),
        cmocka_unit_test(a_stack_is_one_array_of_the_deterministic_variables),
        cmocka_unit_test(a_stack_takes_what_was_chosen),
        cmocka_unit_test(a_stack_lies_on_the_commonest_grid),
        cmocka_unit_test(a_stack_keeps_the_intervals_of_each_entry),
        cmocka_unit_test(a_stack_of_nothing_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
