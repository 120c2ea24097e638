/*
 * Archives made at random: whatever is in them, each field that is placed lies where its own times, member and level say, no two lie in one
 * place, and neither names nor places depend on the order in which the index has the fields.
 */
#include "support/unit.h"

#include "support/fields.h"
#include "support/random.h"

static const struct sq_cube_options PLAIN = {0};

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(random_next(state) >> 33) % limit;
}

static uint32_t random_product(struct fields *f, uint64_t *state)
{
    static const char *const NAMES[] = {"t", "u", "tp"}, *const LEVELS[] = {"surface", "isobaricInhPa", "depthBelowLandLayer"};
    static const char *const DEFINITIONS[] = {"one", "two"};
    uint32_t name = below(state, 3), level = below(state, 3), kind = below(state, 6);
    return PRODUCT(f, .short_name = NAMES[name], .param_id = (int)name + 100, .level_type = LEVELS[level],
                   .level = level ? below(state, 3) : 0, .bottom = level == 2 ? 3 + below(state, 2) : 0,
                   .step_type = name == 2 ? SQ_GRIB_ACCUM : SQ_GRIB_INSTANT, .ensemble = kind == 1, .probability = kind == 2,
                   .lower = below(state, 2), .percentile = kind == 3 ? 10 + (int)below(state, 2) : 0,
                   .derived = kind == 4 ? 1 + (int)below(state, 2) : 0, .process = 1 + (int)below(state, 2),
                   .definition = DEFINITIONS[below(state, 2)]);
}

static struct fields *random_archive(uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    struct fields *f = fields_new();
    uint32_t products = 1 + below(&state, 30), count = 1 + below(&state, 150), runs = 1 + below(&state, 5);
    fields_grid(f, 4, 3, true);
    fields_grid(f, 2, 2, false);
    fields_file(f, "/nowhere/b.grib");
    for (uint32_t i = 0; i < products; i++)
        random_product(f, &state);
    for (uint32_t i = 0; i < count; i++) {
        struct field_spec s = {.product = below(&state, products), .grid = below(&state, 8) < 6 ? below(&state, 2) : 2};
        s.file = below(&state, 2);
        s.run_h = (int)below(&state, runs) * 6 + (below(&state, 40) == 0);
        s.step_h = (int)below(&state, 4) * 3;
        s.begin_h = f->products[s.product].step_type == SQ_GRIB_ACCUM ? (int)below(&state, 2) * (s.step_h - 3) : s.step_h;
        s.begin_h = s.begin_h < 0 ? 0 : s.begin_h;
        s.number = f->products[s.product].ensemble_kind >= 0 ? 1 + (int)below(&state, 3) : 0;
        fields_add(f, s);
    }
    return f;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Do the coordinates along `dim` say of `at` what the field says of itself? */
static void check_dim(const struct sq_cube *cube, const struct sq_cube_variable *v, unsigned dim, uint64_t at, const struct fields *f,
                      const struct sq_grib_field *field)
{
    const struct sq_cube_coordinate *c = fields_coordinate(cube, v->dims[dim]);
    const double *level = f->levels[field->product];
    char bounds[100];
    switch (v->dim_kinds[dim]) {
    case SQ_DIM_STEP:
        assert_int_equal(((const int64_t *)c->values)[at], field->times.step_end_s);
        break;
    case SQ_DIM_NUMBER:
        assert_int_equal(((const int64_t *)c->values)[at], field->times.number);
        break;
    case SQ_DIM_LEVEL:
        assert_true(same_number(((const double *)c->values)[at], level[0]));
        snprintf(bounds, sizeof bounds, "%s_bounds", v->dims[dim]);
        c = fields_coordinate(cube, bounds);
        assert_true(c ? same_number(((const double *)c->values)[2 * at + 1], level[1]) : isnan(level[1]));
        break;
    default:
        fail_msg("dimension %u", dim);
    }
}

static void check_place(const struct sq_cube *cube, const struct sq_cube_place *place, const struct fields *f)
{
    const struct sq_cube_variable *v = &cube->variables[place->variable];
    const struct sq_grib_field *field = &f->field[place->field];
    const struct sq_grib_grid *grid = &f->grids[field->grid];
    uint64_t slab = place->slab;
    for (unsigned dim = v->rank - 3; dim > 0; dim--) {
        check_dim(cube, v, dim, slab % v->shape[dim], f, field);
        slab /= v->shape[dim];
    }
    assert_int_equal(slab, 0);
    assert_int_equal(cube->init_times_s[place->init], field->times.reference_time_s);
    assert_int_equal(cube->grids[v->grid].rows, grid->rows);
    const char *short_name = sq_json_string(sq_json_get(v->attributes, "GRIB_shortName"));
    assert_string_equal(short_name, f->names[field->product].short_name);
    const double *latitudes = fields_coordinate(cube, v->dims[v->rank - 2])->values;
    assert_int_equal(place->flip_rows, (latitudes[0] < latitudes[1]) != sq_grib_grid_rows_northward(grid));
}

static void every_place_is_where_its_field_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fields *f = random_archive(seed);
        struct sq_cube cube;
        size_t in_variables = 0;
        fields_build(f, &PLAIN, &cube);
        for (size_t i = 0; i < cube.place_count; i++) {
            const struct sq_cube_place *a = &cube.places[i];
            check_place(&cube, a, f);
            if (i == 0)
                continue;
            const struct sq_cube_place *b = a - 1;
            assert_true(b->init < a->init ||
                        (b->init == a->init && (b->variable < a->variable || (b->variable == a->variable && b->slab < a->slab))));
        }
        for (size_t i = 0; i < cube.variable_count; i++)
            in_variables += cube.variables[i].field_count;
        assert_int_equal(in_variables, cube.place_count);
        size_t expected = fields_ignored(&cube, SQ_CUBE_CONFLICTING_DUPLICATE) + fields_ignored(&cube, SQ_CUBE_OFF_CADENCE);
        assert_int_equal(cube.ignored_count, expected);
        sq_cube_done(&cube);
        fields_free(f);
    }
}

/* Two fields of one variable differ in nothing that the rules call another variable. */
static void the_fields_of_a_variable_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fields *f = random_archive(seed);
        struct sq_cube cube;
        fields_build(f, &PLAIN, &cube);
        for (size_t i = 0; i < cube.place_count; i++) {
            for (size_t k = 0; k < i; k++) {
                const struct sq_cube_place *a = &cube.places[i], *b = &cube.places[k];
                const struct sq_grib_field *x = &f->field[a->field], *y = &f->field[b->field];
                const struct sq_grib_product *p = &f->products[x->product], *q = &f->products[y->product];
                if (a->variable != b->variable)
                    continue;
                assert_true(p->percentile == q->percentile && p->derived_forecast == q->derived_forecast &&
                            p->ensemble_kind == q->ensemble_kind);
                assert_true(p->step_type == q->step_type && same_number(p->lower_limit, q->lower_limit));
                assert_string_equal(f->names[x->product].level_type, f->names[y->product].level_type);
                assert_true(x->times.step_end_s != y->times.step_end_s || x->times.step_begin_s == y->times.step_begin_s);
            }
        }
        sq_cube_done(&cube);
        fields_free(f);
    }
}

/* The index's own order of fields turned round. */
static void turn_round(struct fields *f)
{
    for (size_t i = 0, k = f->index.field_count; i + 1 < k; i++) {
        k--;
        struct sq_grib_field kept = f->field[i];
        f->field[i] = f->field[k];
        f->field[k] = kept;
    }
}

static void nothing_depends_on_the_order_of_the_index(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fields *f = random_archive(seed);
        struct sq_cube first, second;
        char names[2][4000];
        fields_build(f, &PLAIN, &first);
        turn_round(f);
        fields_build(f, &PLAIN, &second);
        assert_string_equal(fields_names(&first, names[0], sizeof names[0]), fields_names(&second, names[1], sizeof names[1]));
        assert_int_equal(first.place_count, second.place_count);
        for (size_t i = 0; i < first.place_count; i++) {
            const struct sq_cube_place *x = &first.places[i], *y = &second.places[i];
            assert_int_equal(x->field, f->index.field_count - 1 - y->field);
            assert_true(x->init == y->init && x->variable == y->variable && x->slab == y->slab && x->flip_rows == y->flip_rows);
        }
        assert_int_equal(first.holes, second.holes);
        sq_cube_done(&first);
        sq_cube_done(&second);
        fields_free(f);
    }
}

/* Every archive again, with what a store of it would remember. */
static void a_store_places_its_own_fields_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fields *f = random_archive(seed);
        struct sq_cube first, second;
        struct sq_json *schema;
        fields_build(f, &PLAIN, &first);
        assert_int_equal(sq_cube_schema(&first, &schema, NULL), 0);
        fields_build(f, &(struct sq_cube_options){.schema = schema}, &second);
        assert_int_equal(first.place_count, second.place_count);
        for (size_t i = 0; i < first.place_count; i++) {
            const struct sq_cube_place *x = &first.places[i], *y = &second.places[i];
            assert_true(x->field == y->field && x->init == y->init && x->variable == y->variable && x->slab == y->slab);
        }
        sq_json_free(schema);
        sq_cube_done(&first);
        sq_cube_done(&second);
        fields_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_is_where_its_field_says),
        cmocka_unit_test(the_fields_of_a_variable_agree),
        cmocka_unit_test(nothing_depends_on_the_order_of_the_index),
        cmocka_unit_test(a_store_places_its_own_fields_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
