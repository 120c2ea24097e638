/* Which fields make one variable, what it is called, and where its fields lie: on indexes made by hand. */
#include "support/unit.h"

#include "support/fields.h"

static const struct sq_cube_options PLAIN = {0};

static void assert_names(const struct fields *f, const char *expected)
{
    struct sq_cube cube;
    char text[1000];
    fields_build(f, &PLAIN, &cube);
    assert_string_equal(fields_names(&cube, text, sizeof text), expected);
    sq_cube_done(&cube);
}

static void assert_dims(const struct sq_cube *cube, const char *name, const char *expected)
{
    char text[300];
    assert_string_equal(fields_dims(cube, name, text, sizeof text), expected);
}

static void one_field_is_a_variable_with_a_step(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .level = 2), .step_h = 6);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.variable_count, 1);
    assert_dims(&cube, "t2m", "init_time,step,latitude,longitude");
    const struct sq_cube_variable *v = fields_variable(&cube, "t2m");
    const uint64_t shape[] = {1, 1, 3, 4};
    assert_memory_equal(v->shape, shape, sizeof shape);
    assert_int_equal(v->type, SQUALL_FLOAT32);
    assert_int_equal(cube.grids[v->grid].rows, 3);
    assert_int_equal(cube.grids[v->grid].columns, 4);
    assert_int_equal(cube.holes, 0);
    assert_int_equal(cube.warning_count, 0);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_probability_beside_its_quantity_says_so_in_its_name(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t vis = PRODUCT(f, .short_name = "vis", .param_id = 3020),
             twin = PRODUCT(f, .short_name = "vis", .param_id = 3020, .probability = true);
    for (int step = 0; step < 3; step++)
        FIELD(f, vis, .step_h = step);
    FIELD(f, twin, .step_h = 0);
    assert_names(f, "vis vis_probability");
    fields_free(f);
}

static void a_probability_has_no_name_and_unit_of_its_quantity(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .short_name = "vis", .units = "m", .cf_name = "visibility_in_air", .probability = true, .lower = 1000));
    fields_build(f, &PLAIN, &cube);
    const struct sq_json *a = cube.variables[0].attributes;
    double limit;
    assert_null(sq_json_get(a, "standard_name"));
    assert_string_equal(sq_json_string(sq_json_get(a, "units")), "%");
    assert_string_equal(sq_json_string(sq_json_get(a, "GRIB_units")), "m");
    assert_true(sq_json_double(sq_json_get(a, "GRIB_lowerLimit"), &limit) && limit == 1000);
    sq_cube_done(&cube);
    fields_free(f);
}

static void thresholds_are_all_named_where_there_are_several(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .short_name = "tp", .param_id = 228));
    FIELD(f, PRODUCT(f, .short_name = "tp", .param_id = 228, .probability = true, .lower = 0.254));
    FIELD(f, PRODUCT(f, .short_name = "tp", .param_id = 228, .probability = true, .lower = 10));
    assert_names(f, "tp tp_probability_above0p254 tp_probability_above10");
    fields_free(f);
}

static void each_type_of_probability_has_its_word(void **state)
{
    (void)state;
    static const char *const WORDS[] = {"below1",      "above10",    "between1and10", "above1",      "below10",      "equal1",
                                        "aboveNormal", "nearNormal", "belowNormal",   "categorical", "quantile1of10"};
    for (int type = 0; type < 11; type++) {
        struct fields *f = fields_new();
        char names[100];
        for (int i = 0; i < 2; i++) { /* the other of a type that no table has */
            uint32_t row = PRODUCT(f, .short_name = "tp", .param_id = 228, .probability = true, .lower = 1);
            f->products[row].probability_type = (int16_t)(i ? 99 : type);
            f->products[row].upper_limit = 10;
            FIELD(f, row);
        }
        FIELD(f, PRODUCT(f, .short_name = "tp", .param_id = 228));
        snprintf(names, sizeof names, "tp tp_probability_%s tp_probability_type99_1and10", WORDS[type]);
        assert_names(f, names);
        fields_free(f);
    }
}

static void percentiles_are_variables_of_their_own(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .percentile = 10));
    FIELD(f, PRODUCT(f, .percentile = 90));
    assert_names(f, "t2m_p10 t2m_p90");
    FIELD(f, PRODUCT(f, .percentile = 50), .step_h = 6);
    assert_names(f, "t2m_p10 t2m_p50 t2m_p90");
    FIELD(f, PRODUCT(f, .level = 2));
    assert_names(f, "t2m t2m_p10 t2m_p50 t2m_p90");
    fields_free(f);
}

static void ensemble_mean_and_spread_are_told_apart(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t members = PRODUCT(f, .ensemble = true);
    FIELD(f, members, .number = 1);
    FIELD(f, members, .number = 2);
    FIELD(f, PRODUCT(f, .derived = 1));
    FIELD(f, PRODUCT(f, .derived = 5));
    FIELD(f, PRODUCT(f, .level = 0));
    assert_names(f, "t2m t2m_deterministic t2m_mean t2m_spread");
    fields_free(f);
}

/* as GFS has total cloud cover: an instant and two means of two kinds of level */
static void a_name_adds_only_what_differs(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .short_name = "tcc", .level_type = "atmosphere"), .step_h = 6);
    INTERVAL(f, PRODUCT(f, .short_name = "tcc", .level_type = "atmosphere", .step_type = SQ_GRIB_AVG), .step_h = 6);
    INTERVAL(f, PRODUCT(f, .short_name = "tcc", .level_type = "boundaryLayerCloudLayer", .step_type = SQ_GRIB_AVG), .step_h = 6);
    assert_names(f, "tcc tcc_avg tcc_avg_boundaryLayerCloudLayer");
    fields_free(f);
}

static void the_variable_with_most_fields_keeps_the_name(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t pressure[3];
    for (int i = 0; i < 3; i++)
        pressure[i] = PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 100 * (i + 1));
    uint32_t ground = PRODUCT(f, .short_name = "t", .param_id = 130, .level = 1);
    FIELD(f, ground);
    assert_names(f, "t");
    for (int i = 0; i < 3; i++)
        FIELD(f, pressure[i]);
    assert_names(f, "t t_heightAboveGround");
    struct sq_cube cube;
    fields_build(f, &PLAIN, &cube);
    assert_string_equal(cube.notes[0], "t is 2 variables: t, t_heightAboveGround");
    sq_cube_done(&cube);
    for (int step = 1; step < 4; step++)
        FIELD(f, ground, .step_h = step);
    assert_names(f, "t t_isobaricInhPa");
    fields_free(f);
}

static void names_do_not_depend_on_the_order_of_files(void **state)
{
    (void)state;
    const char *levels[] = {"surface", "meanSea", "nominalTop"};
    for (int first = 0; first < 3; first++) {
        struct fields *f = fields_new();
        for (int i = 0; i < 3; i++)
            FIELD(f, PRODUCT(f, .short_name = "q", .level_type = levels[(first + i) % 3]));
        assert_names(f, "q q_nominalTop q_surface");
        fields_free(f);
    }
}

/* as GFS has its maximum temperature: one parameter, whose names tell its intervals of six hours */
static const struct {
    const char *short_name, *cf_var_name;
    int field_count;
    const char *definition;
} EXTREMES[] = {
    {"mx2t6", "mx2t6", 2, "6 hours"}, {"tmax", "mx2t", 1, "3 hours"}, {"tmax", "mx2t", 1, "5 hours"}, {"mx2t3", "mx2t3", 2, "1 hour"}};

/* The products in this order of files: kinds[] are rows of EXTREMES. */
static void assert_extreme_is_named(const int *kinds, size_t count, const char *cf_var_name, const char *short_name)
{
    struct fields *f = fields_new();
    struct sq_cube cube;
    for (size_t i = 0, step = 0; i < count; i++) {
        uint32_t product = PRODUCT(f, .short_name = EXTREMES[kinds[i]].short_name, .cf_var_name = EXTREMES[kinds[i]].cf_var_name,
                                   .param_id = 121, .step_type = SQ_GRIB_MAX, .definition = EXTREMES[kinds[i]].definition);
        f->products[product].number = (uint8_t)kinds[i];
        for (int field = 0; field < EXTREMES[kinds[i]].field_count; field++, step++)
            INTERVAL(f, product, .begin_h = (int)step, .step_h = (int)step + 1);
    }
    fields_build(f, &PLAIN, &cube);
    int64_t number;
    assert_int_equal(cube.variable_count, 1);
    const struct sq_json *a = cube.variables[0].attributes;
    assert_string_equal(cube.variables[0].name, cf_var_name);
    assert_string_equal(sq_json_string(sq_json_get(a, "GRIB_cfVarName")), cf_var_name);
    assert_string_equal(sq_json_string(sq_json_get(a, "GRIB_shortName")), short_name);
    assert_true(sq_json_int(sq_json_get(a, "GRIB_parameterNumber"), &number));
    assert_string_equal(EXTREMES[number].short_name, short_name);
    if (count == 3) { /* of two products with these names, the same in any order */
        static int64_t chosen = -1;
        chosen = chosen < 0 ? number : chosen;
        assert_int_equal(number, chosen);
    }
    sq_cube_done(&cube);
    fields_free(f);
}

static void of_several_names_a_variable_has_the_commonest_in_any_order_of_files(void **state)
{
    (void)state;
    static const int ORDERS[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof ORDERS / sizeof *ORDERS; i++) {
        assert_extreme_is_named(ORDERS[i], 3, "mx2t", "tmax"); /* two fields each: the shorter */
        int more[4] = {0};
        memcpy(more, ORDERS[i], sizeof ORDERS[i]); /* six hours once more: the commonest */
        assert_extreme_is_named(more, 4, "mx2t6", "mx2t6");
    }
    assert_extreme_is_named((const int[]){0, 3}, 2, "mx2t3", "mx2t3"); /* as long: the first in the alphabet */
    assert_extreme_is_named((const int[]){3, 0}, 2, "mx2t3", "mx2t3");
}

static void unknown_parameters_stay_apart(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .short_name = "param_0_3_200", .param_id = -1));
    FIELD(f, PRODUCT(f, .short_name = "param_0_3_201", .param_id = -1));
    assert_names(f, "param_0_3_200 param_0_3_201");
    fields_free(f);
}

static void parameters_with_one_short_name_stay_apart(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t one = PRODUCT(f, .short_name = "tp", .param_id = 228), other = PRODUCT(f, .short_name = "tp", .param_id = 228228);
    FIELD(f, one);
    FIELD(f, one, .step_h = 1);
    FIELD(f, other);
    assert_names(f, "tp tp_param228228");
    fields_free(f);
}

static void a_name_that_a_coordinate_needs_is_changed(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .short_name = "latitude"));
    FIELD(f, PRODUCT(f, .short_name = "step", .param_id = 9));
    FIELD(f, PRODUCT(f, .short_name = "heightAboveGround", .param_id = 10));
    assert_names(f, "heightAboveGround_field latitude_field step_field");
    fields_free(f);
}

static void a_name_of_one_family_never_is_another_familys(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t t = PRODUCT(f, .short_name = "t", .param_id = 130),
             mean = PRODUCT(f, .short_name = "t", .param_id = 130, .step_type = SQ_GRIB_AVG);
    FIELD(f, t);
    FIELD(f, t, .step_h = 1);
    FIELD(f, mean);
    FIELD(f, PRODUCT(f, .short_name = "t_avg", .param_id = 999));
    struct sq_cube cube;
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.variable_count, 3);
    for (size_t i = 1; i < cube.variable_count; i++)
        assert_true(strcmp(cube.variables[i - 1].name, cube.variables[i].name) < 0);
    assert_non_null(fields_variable(&cube, "t"));
    sq_cube_done(&cube);
    fields_free(f);
}

/* total precipitation since the start of the run, and of the last hours, as GFS has both */
static void totals_since_the_start_and_of_the_last_hours_are_two_variables(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t tp = PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM);
    for (int step = 6; step <= 24; step += 6)
        INTERVAL(f, tp, .begin_h = 0, .step_h = step);
    for (int step = 12; step <= 24; step += 6)
        INTERVAL(f, tp, .begin_h = step - 6, .step_h = step);
    assert_names(f, "tp tp_6h");
    fields_build(f, &PLAIN, &cube);
    const int64_t from_start[] = {0, 21600, 0, 43200, 0, 64800, 0, 86400},
                  last[] = {INT64_MIN, INT64_MIN, 21600, 43200, 43200, 64800, 64800, 86400};
    const char *first = sq_json_string(sq_json_get(fields_variable(&cube, "tp")->attributes, "step_bounds"));
    const char *second = sq_json_string(sq_json_get(fields_variable(&cube, "tp_6h")->attributes, "step_bounds"));
    assert_memory_equal(fields_coordinate(&cube, first)->values, from_start, sizeof from_start);
    assert_memory_equal(fields_coordinate(&cube, second)->values, last, sizeof last);
    assert_int_equal(cube.holes, 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void intervals_of_several_lengths_that_end_together_are_told_apart(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t gust = PRODUCT(f, .short_name = "gust", .param_id = 49, .step_type = SQ_GRIB_MAX);
    for (int step = 2; step <= 12; step++)
        INTERVAL(f, gust, .begin_h = step - 1, .step_h = step);
    INTERVAL(f, gust, .begin_h = 6, .step_h = 12);
    INTERVAL(f, gust, .begin_h = 0, .step_h = 12);
    assert_names(f, "gust gust_6h gust_fromStart");
    fields_free(f);
}

static void intervals_that_never_end_together_are_one_variable(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t mean = PRODUCT(f, .short_name = "dswrf", .param_id = 7, .step_type = SQ_GRIB_AVG);
    INTERVAL(f, mean, .begin_h = 0, .step_h = 3);
    INTERVAL(f, mean, .begin_h = 0, .step_h = 6);
    INTERVAL(f, mean, .begin_h = 6, .step_h = 9);
    INTERVAL(f, mean, .begin_h = 6, .step_h = 12);
    fields_build(f, &PLAIN, &cube);
    const int64_t bounds[] = {0, 10800, 0, 21600, 21600, 32400, 21600, 43200};
    assert_int_equal(cube.variable_count, 1);
    assert_memory_equal(fields_coordinate(&cube, "step_bounds")->values, bounds, sizeof bounds);
    assert_string_equal(sq_json_string(sq_json_get(cube.variables[0].attributes, "cell_methods")), "step: mean");
    sq_cube_done(&cube);
    fields_free(f);
}

static void an_interval_that_changes_from_run_to_run_is_another_variable(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t tp = PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM);
    INTERVAL(f, tp, .run_h = 0, .begin_h = 0, .step_h = 6);
    INTERVAL(f, tp, .run_h = 0, .begin_h = 0, .step_h = 12);
    INTERVAL(f, tp, .run_h = 6, .begin_h = 6, .step_h = 12);
    assert_names(f, "tp tp_6h");
    fields_free(f);
}

static void analysis_and_forecast_of_one_time_are_both_kept(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t forecast = PRODUCT(f, .process = 2, .definition = "forecast"), analysis = PRODUCT(f, .process = 255, .definition = "analysis");
    FIELD(f, forecast);
    FIELD(f, forecast, .step_h = 1);
    FIELD(f, analysis);
    assert_names(f, "t2m t2m_process255");
    fields_free(f);
}

static void definitions_that_differ_otherwise_are_both_kept(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t one = PRODUCT(f, .definition = "one"), other = PRODUCT(f, .definition = "other");
    FIELD(f, one);
    FIELD(f, one, .step_h = 1);
    FIELD(f, other, .step_h = 1);
    assert_names(f, "t2m t2m_2");
    fields_free(f);
}

static void definitions_that_never_meet_are_one_variable(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    FIELD(f, PRODUCT(f, .process = 1, .definition = "old model"), .run_h = 0);
    FIELD(f, PRODUCT(f, .process = 2, .definition = "new model"), .run_h = 6);
    assert_names(f, "t2m");
    fields_free(f);
}

static void several_levels_are_a_dimension_of_the_level_type(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    const double levels[] = {850, 500, 1000};
    for (int i = 0; i < 3; i++) {
        FIELD(f, PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = levels[i]));
        FIELD(f, PRODUCT(f, .short_name = "u", .param_id = 131, .level_type = "isobaricInhPa", .level = levels[i]));
    }
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t", "init_time,step,isobaricInhPa,latitude,longitude");
    assert_dims(&cube, "u", "init_time,step,isobaricInhPa,latitude,longitude");
    const struct sq_cube_coordinate *c = fields_coordinate(&cube, "isobaricInhPa");
    const double sorted[] = {500, 850, 1000};
    assert_memory_equal(c->values, sorted, sizeof sorted);
    assert_string_equal(sq_json_string(sq_json_get(c->attributes, "units")), "hPa");
    assert_string_equal(sq_json_string(sq_json_get(c->attributes, "positive")), "down");
    assert_int_equal(fields_place(&cube, 2)->slab, 0); /* t at 500 hPa */
    assert_int_equal(fields_place(&cube, 0)->slab, 1);
    assert_int_equal(fields_place(&cube, 4)->slab, 2);
    sq_cube_done(&cube);
    fields_free(f);
}

static void different_sets_of_levels_are_dimensions_of_their_own(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    for (int i = 1; i <= 3; i++)
        FIELD(f, PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 100 * i));
    for (int i = 1; i <= 2; i++)
        FIELD(f, PRODUCT(f, .short_name = "w", .param_id = 135, .level_type = "isobaricInhPa", .level = 100 * i));
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t", "init_time,step,isobaricInhPa_t,latitude,longitude");
    assert_dims(&cube, "w", "init_time,step,isobaricInhPa_w,latitude,longitude");
    assert_int_equal(cube.holes, 0);
    sq_cube_done(&cube);
    for (int i = 1; i <= 3; i++)
        FIELD(f, PRODUCT(f, .short_name = "u", .param_id = 131, .level_type = "isobaricInhPa", .level = 100 * i));
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t", "init_time,step,isobaricInhPa,latitude,longitude");
    assert_dims(&cube, "u", "init_time,step,isobaricInhPa,latitude,longitude");
    assert_dims(&cube, "w", "init_time,step,isobaricInhPa_w,latitude,longitude");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_single_level_is_an_attribute(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    double value;
    FIELD(f, PRODUCT(f, .level = 2));
    FIELD(f, PRODUCT(f, .short_name = "st", .level_type = "depthBelowLandLayer", .level = 0, .bottom = 0.1));
    fields_build(f, &PLAIN, &cube);
    assert_true(sq_json_double(sq_json_get(fields_variable(&cube, "t2m")->attributes, "heightAboveGround"), &value) && value == 2);
    const struct sq_json *bounds = sq_json_get(fields_variable(&cube, "st")->attributes, "depthBelowLandLayer_bounds");
    assert_true(sq_json_double(sq_json_at(bounds, 0), &value) && value == 0);
    assert_true(sq_json_double(sq_json_at(bounds, 1), &value) && value == 0.1);
    assert_null(fields_coordinate(&cube, "heightAboveGround"));
    sq_cube_done(&cube);
    fields_free(f);
}

static void layers_with_one_top_are_told_apart_by_their_bottom(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .short_name = "r", .level_type = "sigmaLayer", .level = 0.44, .bottom = 1));
    FIELD(f, PRODUCT(f, .short_name = "r", .level_type = "sigmaLayer", .level = 0.44, .bottom = 0.72));
    fields_build(f, &PLAIN, &cube);
    const double tops[] = {0.44, 0.44}, bounds[] = {0.44, 0.72, 0.44, 1};
    assert_int_equal(cube.place_count, 2);
    assert_memory_equal(fields_coordinate(&cube, "sigmaLayer")->values, tops, sizeof tops);
    assert_memory_equal(fields_coordinate(&cube, "sigmaLayer_bounds")->values, bounds, sizeof bounds);
    assert_string_equal(sq_json_string(sq_json_get(fields_coordinate(&cube, "sigmaLayer")->attributes, "bounds")), "sigmaLayer_bounds");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_level_is_the_same_however_it_is_scaled(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .level = 44 * 1e-2), .step_h = 0);
    FIELD(f, PRODUCT(f, .level = 4400000 * 1e-7), .step_h = 1);
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t2m", "init_time,step,latitude,longitude");
    sq_cube_done(&cube);
    fields_free(f);
}

static void members_are_a_dimension_where_there_are_several(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .ensemble = true), u = PRODUCT(f, .short_name = "u10", .param_id = 165, .ensemble = true);
    FIELD(f, t, .number = 1);
    FIELD(f, t, .number = 4);
    FIELD(f, u, .number = 8);
    FIELD(f, PRODUCT(f, .short_name = "sp", .param_id = 134));
    fields_build(f, &PLAIN, &cube);
    const int64_t numbers[] = {0, 3, 7};
    assert_dims(&cube, "t2m", "init_time,step,number,latitude,longitude");
    assert_dims(&cube, "u10", "init_time,step,number,latitude,longitude");
    assert_dims(&cube, "sp", "init_time,step,latitude,longitude");
    assert_memory_equal(fields_coordinate(&cube, "number")->values, numbers, sizeof numbers);
    assert_int_equal(fields_place(&cube, 1)->slab, 1);
    assert_int_equal(fields_place(&cube, 2)->slab, 2);
    assert_int_equal(cube.holes, 3);
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_single_member_is_an_attribute(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    int64_t number;
    FIELD(f, PRODUCT(f, .ensemble = true), .number = 6);
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t2m", "init_time,step,latitude,longitude");
    assert_true(sq_json_int(sq_json_get(cube.variables[0].attributes, "number"), &number) && number == 5);
    sq_cube_done(&cube);
    fields_free(f);
}

static void slabs_are_in_the_order_of_step_member_level(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t levels[3];
    for (int i = 0; i < 3; i++)
        levels[i] = PRODUCT(f, .ensemble = true, .level = i);
    for (int level = 2; level >= 0; level--) {
        for (int member = 1; member >= 0; member--) {
            for (int step = 3; step >= 0; step--)
                FIELD(f, levels[level], .number = member + 1, .step_h = step);
        }
    }
    fields_build(f, &PLAIN, &cube);
    for (size_t i = 0; i < cube.place_count; i++) {
        const struct sq_grib_field *field = &f->field[cube.places[i].field];
        uint32_t expected = (uint32_t)((field->times.step_end_s / 3600 * 2 + field->times.number) * 3 + field->product);
        assert_int_equal(cube.places[i].slab, expected);
        assert_int_equal(cube.places[i].slab, i);
    }
    sq_cube_done(&cube);
    fields_free(f);
}

static void places_are_sorted_by_run_variable_and_slab(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t u = PRODUCT(f, .short_name = "u"), t = PRODUCT(f, .short_name = "t", .param_id = 130);
    for (int run = 12; run >= 0; run -= 6) {
        for (int step = 0; step < 3; step++) {
            FIELD(f, u, .run_h = run, .step_h = step);
            FIELD(f, t, .run_h = run, .step_h = step);
        }
    }
    fields_build(f, &PLAIN, &cube);
    for (size_t i = 0; i < cube.place_count; i++) {
        assert_int_equal(cube.places[i].init, i / 6);
        assert_int_equal(cube.places[i].variable, i / 3 % 2);
        assert_int_equal(cube.places[i].slab, i % 3);
    }
    assert_string_equal(cube.variables[0].name, "t");
    assert_int_equal(cube.variables[0].field_count, 9);
    sq_cube_done(&cube);
    fields_free(f);
}

static void another_grid_is_another_variable_on_dimensions_of_its_own(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t small = fields_grid(f, 2, 2, false), t = PRODUCT(f, .level = 2);
    FIELD(f, t, .grid = 0);
    FIELD(f, t, .grid = 0, .step_h = 1);
    FIELD(f, t, .grid = small);
    fields_build(f, &PLAIN, &cube);
    assert_dims(&cube, "t2m", "init_time,step,latitude,longitude");
    assert_dims(&cube, "t2m_grid2", "init_time,step,latitude_2,longitude_2");
    assert_int_equal(cube.grid_count, 2);
    assert_int_equal(fields_coordinate(&cube, "latitude")->shape[0], 3);
    assert_int_equal(fields_coordinate(&cube, "latitude_2")->shape[0], 2);
    sq_cube_done(&cube);
    fields_free(f);
}

static void rows_are_in_the_order_of_the_first_field_and_others_are_flipped(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t northward = fields_grid(f, 4, 3, true), t = PRODUCT(f, .level = 2);
    FIELD(f, t, .grid = northward, .step_h = 0);
    FIELD(f, t, .grid = 0, .step_h = 1);
    FIELD(f, t, .grid = northward, .step_h = 2);
    fields_build(f, &PLAIN, &cube);
    const double latitudes[] = {48, 49, 50};
    assert_int_equal(cube.variable_count, 1);
    assert_memory_equal(fields_coordinate(&cube, "latitude")->values, latitudes, sizeof latitudes);
    assert_false(fields_place(&cube, 0)->flip_rows);
    assert_true(fields_place(&cube, 1)->flip_rows);
    assert_false(fields_place(&cube, 2)->flip_rows);
    assert_int_equal(cube.grids[0].grid, northward);
    sq_cube_done(&cube);
    fields_free(f);
}

static void the_first_field_is_the_first_by_path(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t northward = fields_grid(f, 4, 3, true), t = PRODUCT(f, .level = 2), z = fields_file(f, "/nowhere/z.grib");
    FIELD(f, t, .file = z, .grid = northward, .step_h = 0);
    FIELD(f, t, .file = 0, .grid = 0, .step_h = 1);
    fields_build(f, &PLAIN, &cube);
    assert_true(fields_place(&cube, 0)->flip_rows);
    assert_false(fields_place(&cube, 1)->flip_rows);
    sq_cube_done(&cube);
    fields_free(f);
}

static void doubles_are_kept_as_doubles(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .short_name = "t");
    FIELD(f, t);
    FIELD(f, t, .step_h = 1, .is_float64 = true);
    FIELD(f, PRODUCT(f, .short_name = "u", .param_id = 131));
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_variable(&cube, "t")->type, SQUALL_FLOAT64);
    assert_int_equal(fields_variable(&cube, "u")->type, SQUALL_FLOAT32);
    sq_cube_done(&cube);
    fields_free(f);
}

static void what_is_not_read_yet_is_one_line_with_its_reason(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t odd = PRODUCT(f, .short_name = "b", .unsupported = "satellite product");
    FIELD(f, PRODUCT(f, .level = 2));
    for (int step = 0; step < 50; step++)
        FIELD(f, odd, .step_h = step);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_UNSUPPORTED), 50);
    assert_int_equal(cube.warning_count, 1);
    assert_true(fields_line(cube.warnings, 1, "satellite product: 50 fields in 1 file ignored"));
    assert_true(fields_line(cube.warnings, 1, "/nowhere/a.grib at byte 100"));
    assert_int_equal(fields_coordinate(&cube, "step")->shape[0], 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void nothing_to_convert_is_an_error_that_says_why(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    FIELD(f, PRODUCT(f, .short_name = "b", .unsupported = "satellite product"));
    assert_int_equal(sq_cube_build(&f->index, &PLAIN, &cube, &err), SQUALL_ENOTFOUND);
    assert_non_null(strstr(err.message, "satellite product"));
    f->index.field_count = 0;
    assert_int_equal(sq_cube_build(&f->index, &PLAIN, &cube, &err), SQUALL_ENOTFOUND);
    fields_free(f);
}

static void holes_are_counted_and_named(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .short_name = "t"), u = PRODUCT(f, .short_name = "u", .param_id = 131);
    for (int run = 0; run < 24; run += 6) {
        for (int step = 0; step < 6; step++) {
            if (run != 6 || step < 2 || step > 3)
                FIELD(f, t, .run_h = run, .step_h = step);
            FIELD(f, u, .run_h = run, .step_h = step);
        }
    }
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.holes, 2);
    assert_int_equal(cube.note_count, 1);
    assert_string_equal(cube.notes[0], "t: no field for 2 of 24 places: 2022-01-01T06:00 at 2 h to 3 h");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_run_that_is_missing_is_no_hole(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .short_name = "t");
    const int runs[] = {0, 6, 18, 24};
    for (int i = 0; i < 4; i++)
        FIELD(f, t, .run_h = runs[i]);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.init_count, 5);
    assert_int_equal(cube.holes, 0);
    sq_cube_done(&cube);
    fields_free(f);
}

static void coordinates_are_block_means_when_coarsened(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    struct sq_cube_options options = {.coarsen_y = 2, .coarsen_x = 2};
    FIELD(f, PRODUCT(f, .level = 2));
    fields_build(f, &options, &cube);
    const double latitudes[] = {49.5, 48}, longitudes[] = {10.5, 12.5};
    assert_memory_equal(fields_coordinate(&cube, "latitude")->values, latitudes, sizeof latitudes);
    assert_memory_equal(fields_coordinate(&cube, "longitude")->values, longitudes, sizeof longitudes);
    assert_int_equal(cube.variables[0].shape[2], 2);
    assert_int_equal(cube.variables[0].shape[3], 2);
    assert_int_equal(cube.grids[0].rows, 3);
    const struct sq_json *a = cube.variables[0].attributes;
    assert_string_equal(sq_json_string(sq_json_get(a, "cell_methods")), "area: mean");
    assert_string_equal(sq_json_string(sq_json_get(a, "GRIB_gridType")), "regular_ll");
    assert_null(sq_json_get(a, "GRIB_Nx"));
    sq_cube_done(&cube);
    fields_free(f);
}

static void coordinates_come_in_a_readers_order(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .short_name = "t", .level = 2, .ensemble = true), .number = 1);
    FIELD(f, PRODUCT(f, .short_name = "t", .level = 10, .ensemble = true), .number = 2);
    INTERVAL(f, PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM), .step_h = 1);
    fields_build(f, &PLAIN, &cube);
    const char *const names[] = {"init_time", "step", "number", "heightAboveGround", "latitude", "longitude", "valid_time", "step_bounds"};
    assert_int_equal(cube.coordinate_count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(cube.coordinates[i].name, names[i]);
    const struct sq_cube_coordinate *valid = fields_coordinate(&cube, "valid_time");
    assert_true(valid->along_init && valid->rank == 2);
    assert_int_equal(((const int64_t *)valid->values)[1], FIELDS_START_S + 3600);
    assert_string_equal(sq_json_string(sq_json_get(cube.attributes, "coordinates")), "valid_time step_bounds");
    assert_string_equal(sq_json_string(sq_json_get(cube.attributes, "GRIB_centre")), "egrr");
    assert_string_equal(sq_json_string(sq_json_get(fields_coordinate(&cube, "step")->attributes, "dtype")), "timedelta64[ns]");
    sq_cube_done(&cube);
    fields_free(f);
}

static void many_kinds_of_trouble_make_few_lines(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .short_name = "t");
    for (int run = 0; run < 60; run++)
        FIELD(f, t, .run_h = 6 * run);
    for (int run = 0; run < 50; run++)
        FIELD(f, t, .run_h = 6 * run + 1 + run % 2);
    struct sq_cube_options options = {.every_s = 21600};
    fields_build(f, &options, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OFF_CADENCE), 50);
    assert_int_equal(cube.warning_count, 21);
    assert_string_equal(cube.warnings[20], "off cadence: 30 more fields ignored, in 30 groups like those above");
    sq_cube_done(&cube);
    fields_free(f);
}

static void a_key_is_another_for_every_part_of_a_definition(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t t = PRODUCT(f, .definition = "one"), other = PRODUCT(f, .definition = "two"), grid = fields_grid(f, 2, 2, false);
    uint32_t fields[] = {
        FIELD(f, t),
        FIELD(f, t, .run_h = 6),
        FIELD(f, t, .step_h = 6),
        INTERVAL(f, t, .step_h = 6),
        FIELD(f, t, .number = 1),
        FIELD(f, t, .grid = grid),
        FIELD(f, other),
    };
    enum { COUNT = sizeof fields / sizeof *fields };
    struct sq_text keys[COUNT + 1] = {0};
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(sq_cube_field_key(&f->index, fields[i], &keys[i], NULL), 0);
    assert_int_equal(sq_cube_field_key(&f->index, FIELD(f, t, .offset = 777, .file = fields_file(f, "b")), &keys[COUNT], NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < i; k++)
            assert_false(keys[i].length == keys[k].length && memcmp(keys[i].data, keys[k].data, keys[i].length) == 0);
    }
    assert_int_equal(keys[0].length, keys[COUNT].length);
    assert_memory_equal(keys[0].data, keys[COUNT].data, keys[0].length);
    for (int i = 0; i <= COUNT; i++)
        sq_text_done(&keys[i]);
    fields_free(f);
}

static void assert_text(const struct fields *f, uint32_t field, const char *expected)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    assert_int_equal(sq_cube_field_text(&f->index, field, &text, NULL), 0);
    assert_string_equal(text.data, expected);
}

static void a_field_is_told_in_a_line(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    assert_text(f, FIELD(f, PRODUCT(f, .level = 2), .step_h = 6), "t2m, 2022-01-01T00:00 + 6 h, 2 m");
    assert_text(f, FIELD(f, PRODUCT(f, .short_name = "sp", .level_type = "surface"), .step_min = 90),
                "sp, 2022-01-01T00:00 + 90 min, surface");
    assert_text(f,
                INTERVAL(f, PRODUCT(f, .short_name = "st", .level_type = "depthBelowLandLayer", .bottom = 0.1), .run_h = -1, .begin_h = 1,
                         .step_h = 2),
                "st, 2021-12-31T23:00 + 1 h to 2 h, 0 to 0.1 m");
    assert_text(f, FIELD(f, PRODUCT(f, .short_name = "t", .level_type = "isobaricInhPa", .level = 1000, .ensemble = true), .number = 4),
                "t, 2022-01-01T00:00 + 0 h, 1000 hPa, member 3");
    assert_text(f, FIELD(f, PRODUCT(f, .short_name = "t", .level_type = "hybrid", .level = 60, .percentile = 90)),
                "t, 2022-01-01T00:00 + 0 h, hybrid 60, percentile 90");
    fields_free(f);
}

/* Every allocation fails once, in turn: an error each time, nothing leaks, the result is untouched. */
static void a_failed_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    uint32_t t = PRODUCT(f, .ensemble = true, .level = 2), tp = PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM);
    uint32_t vis = PRODUCT(f, .short_name = "vis", .param_id = 20),
             twin = PRODUCT(f, .short_name = "vis", .param_id = 20, .probability = true);
    for (int run = 0; run < 18; run += 6) {
        for (int member = 1; member < 3; member++)
            FIELD(f, t, .run_h = run, .number = member);
        INTERVAL(f, tp, .run_h = run, .step_h = 1);
        FIELD(f, vis, .run_h = run);
        FIELD(f, twin, .run_h = run + 1);
    }
    const char *select[] = {"name=t2m|tp", "name=vis,step=0"}, *rename[] = {"t2m=temperature"};
    struct sq_cube_options options[2] = {{.select = select, .select_count = 2, .rename = rename, .rename_count = 1}, {.stack = true}};
    for (int i = 0; i < 2; i++) {
        for (long after = 0;; after++) {
            struct sq_cube cube = {.holes = 12345};
            struct squall_error err = SQUALL_ERROR_INIT;
            sq_fail_allocation(after);
            int status = sq_cube_build(&f->index, &options[i], &cube, &err);
            sq_fail_allocation(-1);
            if (status == 0) {
                sq_cube_done(&cube);
                break;
            }
            assert_int_equal(status, SQUALL_ENOMEM);
            assert_int_equal(err.status, SQUALL_ENOMEM);
            assert_int_equal(cube.holes, 12345);
            assert_true(after < 100000);
        }
    }
    fields_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_field_is_a_variable_with_a_step),
        cmocka_unit_test(a_probability_beside_its_quantity_says_so_in_its_name),
        cmocka_unit_test(a_probability_has_no_name_and_unit_of_its_quantity),
        cmocka_unit_test(thresholds_are_all_named_where_there_are_several),
        cmocka_unit_test(each_type_of_probability_has_its_word),
        cmocka_unit_test(percentiles_are_variables_of_their_own),
        cmocka_unit_test(ensemble_mean_and_spread_are_told_apart),
        cmocka_unit_test(a_name_adds_only_what_differs),
        cmocka_unit_test(the_variable_with_most_fields_keeps_the_name),
        cmocka_unit_test(names_do_not_depend_on_the_order_of_files),
        cmocka_unit_test(of_several_names_a_variable_has_the_commonest_in_any_order_of_files),
        cmocka_unit_test(unknown_parameters_stay_apart),
        cmocka_unit_test(parameters_with_one_short_name_stay_apart),
        cmocka_unit_test(a_name_that_a_coordinate_needs_is_changed),
        cmocka_unit_test(a_name_of_one_family_never_is_another_familys),
        cmocka_unit_test(totals_since_the_start_and_of_the_last_hours_are_two_variables),
        cmocka_unit_test(intervals_of_several_lengths_that_end_together_are_told_apart),
        cmocka_unit_test(intervals_that_never_end_together_are_one_variable),
        cmocka_unit_test(an_interval_that_changes_from_run_to_run_is_another_variable),
        cmocka_unit_test(analysis_and_forecast_of_one_time_are_both_kept),
        cmocka_unit_test(definitions_that_differ_otherwise_are_both_kept),
        cmocka_unit_test(definitions_that_never_meet_are_one_variable),
        cmocka_unit_test(several_levels_are_a_dimension_of_the_level_type),
        cmocka_unit_test(different_sets_of_levels_are_dimensions_of_their_own),
        cmocka_unit_test(a_single_level_is_an_attribute),
        cmocka_unit_test(layers_with_one_top_are_told_apart_by_their_bottom),
        cmocka_unit_test(a_level_is_the_same_however_it_is_scaled),
        cmocka_unit_test(members_are_a_dimension_where_there_are_several),
        cmocka_unit_test(a_single_member_is_an_attribute),
        cmocka_unit_test(slabs_are_in_the_order_of_step_member_level),
        cmocka_unit_test(places_are_sorted_by_run_variable_and_slab),
        cmocka_unit_test(another_grid_is_another_variable_on_dimensions_of_its_own),
        cmocka_unit_test(rows_are_in_the_order_of_the_first_field_and_others_are_flipped),
        cmocka_unit_test(the_first_field_is_the_first_by_path),
        cmocka_unit_test(doubles_are_kept_as_doubles),
        cmocka_unit_test(what_is_not_read_yet_is_one_line_with_its_reason),
        cmocka_unit_test(nothing_to_convert_is_an_error_that_says_why),
        cmocka_unit_test(holes_are_counted_and_named),
        cmocka_unit_test(a_run_that_is_missing_is_no_hole),
        cmocka_unit_test(coordinates_are_block_means_when_coarsened),
        cmocka_unit_test(coordinates_come_in_a_readers_order),
        cmocka_unit_test(many_kinds_of_trouble_make_few_lines),
        cmocka_unit_test(a_key_is_another_for_every_part_of_a_definition),
        cmocka_unit_test(a_field_is_told_in_a_line),
        cmocka_unit_test(a_failed_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
