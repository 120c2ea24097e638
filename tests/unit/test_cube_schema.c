/* What a store remembers: tomorrow's files give the same names and places, whatever else they hold. */
#include "support/unit.h"

#include "array/bytes.h"
#include "support/fields.h"

static const struct sq_cube_options PLAIN = {0};

/* Builds and keeps the schema only. */
static struct sq_json *schema_of(const struct fields *f, const struct sq_cube_options *options)
{
    struct sq_cube cube;
    struct sq_json *schema;
    fields_build(f, options, &cube);
    assert_int_equal(sq_cube_schema(&cube, &schema, NULL), 0);
    sq_cube_done(&cube);
    return schema;
}

/* Through text and back, as a store does it. */
static struct sq_json *reread(struct sq_json *schema)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    struct sq_json *again;
    assert_int_equal(sq_json_write(schema, false, &text, NULL), 0);
    assert_int_equal(sq_json_parse(text.data, text.length, &again, NULL), 0);
    sq_json_free(schema);
    return again;
}

static void assert_same_text(const struct sq_json *a, const struct sq_json *b)
{
    SQ_CLEANUP_TEXT struct sq_text left = SQ_TEXT_INIT, right = SQ_TEXT_INIT;
    assert_int_equal(sq_json_write(a, true, &left, NULL), 0);
    assert_int_equal(sq_json_write(b, true, &right, NULL), 0);
    assert_string_equal(left.data, right.data);
}

/* t at three levels with members, totals since the start and of six hours, visibility and its probability, on two grids; these runs. */
static void add_day(struct fields *f, int first_run_h, int last_run_h)
{
    static uint32_t t[3], tp, vis, twin, small;
    if (f->index.product_count == 0) {
        for (int i = 0; i < 3; i++)
            t[i] = PRODUCT(f, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 100 * (i + 1), .ensemble = true);
        tp = PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM);
        vis = PRODUCT(f, .short_name = "vis", .param_id = 3020);
        twin = PRODUCT(f, .short_name = "vis", .param_id = 3020, .probability = true, .lower = 1000);
        small = fields_grid(f, 2, 2, false);
    }
    for (int run = first_run_h; run <= last_run_h; run += 6) {
        for (int step = 0; step <= 12; step += 6) {
            for (int i = 0; i < 6; i++)
                FIELD(f, t[i / 2], .run_h = run, .step_h = step, .number = i % 2 + 1);
            INTERVAL(f, tp, .run_h = run, .begin_h = 0, .step_h = step);
            if (step > 6)
                INTERVAL(f, tp, .run_h = run, .begin_h = 6, .step_h = step);
            FIELD(f, vis, .run_h = run, .step_h = step);
        }
        FIELD(f, twin, .run_h = run);
        FIELD(f, vis, .run_h = run, .grid = small);
    }
}

static struct fields *day(int first_run_h, int last_run_h)
{
    struct fields *f = fields_new();
    add_day(f, first_run_h, last_run_h);
    return f;
}

static void assert_same_variables(const struct sq_cube *a, const struct sq_cube *b)
{
    assert_int_equal(a->variable_count, b->variable_count);
    for (size_t i = 0; i < a->variable_count; i++) {
        const struct sq_cube_variable *x = &a->variables[i], *y = &b->variables[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->rank, y->rank);
        assert_memory_equal(x->shape + 1, y->shape + 1, (x->rank - 1) * sizeof *x->shape);
        for (unsigned d = 0; d < x->rank; d++)
            assert_string_equal(x->dims[d], y->dims[d]);
        assert_same_text(x->attributes, y->attributes);
    }
}

static void the_same_files_give_the_same_cube(void **state)
{
    (void)state;
    struct fields *f = day(0, 18);
    struct sq_cube first, second;
    fields_build(f, &PLAIN, &first);
    struct sq_json *schema = reread(schema_of(f, &PLAIN)), *again = NULL;
    fields_build(f, &(struct sq_cube_options){.schema = schema}, &second);
    assert_same_variables(&first, &second);
    assert_int_equal(first.place_count, second.place_count);
    for (size_t i = 0; i < first.place_count; i++) {
        const struct sq_cube_place *x = &first.places[i], *y = &second.places[i];
        assert_true(x->field == y->field && x->variable == y->variable && x->init == y->init && x->slab == y->slab &&
                    x->flip_rows == y->flip_rows);
    }
    assert_int_equal(first.coordinate_count, second.coordinate_count);
    for (size_t i = 0; i < first.coordinate_count; i++) {
        assert_string_equal(first.coordinates[i].name, second.coordinates[i].name);
        assert_same_text(first.coordinates[i].attributes, second.coordinates[i].attributes);
    }
    assert_same_text(first.attributes, second.attributes);
    assert_int_equal(sq_cube_schema(&second, &again, NULL), 0);
    assert_same_text(schema, again);
    assert_int_equal(first.holes, second.holes);
    assert_int_equal(second.warning_count, 0);
    sq_json_free(schema);
    sq_json_free(again);
    sq_cube_done(&first);
    sq_cube_done(&second);
    fields_free(f);
}

/* Else a run that does the same again would tell of them as of something new. */
static void strays_are_told_alike_again(void **state)
{
    (void)state;
    struct fields *f = day(-2, -2); /* before the first run */
    add_day(f, 0, 36);
    uint32_t elsewhere = PRODUCT(f, .short_name = "sst", .param_id = 34);
    FIELD(f, elsewhere, .run_h = 8);                  /* of a variable that the store does not have */
    FIELD(f, elsewhere - 3, .run_h = 9, .step_h = 5); /* of a step that it does not have */
    struct sq_cube first, second;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    fields_build(f, &PLAIN, &first);
    fields_build(f, &(struct sq_cube_options){.schema = schema}, &second);
    assert_true(first.ignored_count > 2);
    assert_int_equal(first.ignored_count, second.ignored_count);
    for (size_t i = 0; i < first.ignored_count; i++) {
        assert_int_equal(first.ignored[i].field, second.ignored[i].field);
        assert_int_equal(first.ignored[i].reason, SQ_CUBE_OFF_CADENCE);
        assert_int_equal(second.ignored[i].reason, SQ_CUBE_OFF_CADENCE);
    }
    sq_json_free(schema);
    sq_cube_done(&first);
    sq_cube_done(&second);
    fields_free(f);
}

static void later_runs_extend_init_time_and_earlier_ones_stay(void **state)
{
    (void)state;
    struct fields *f = day(0, 18), *next = day(24, 36);
    struct sq_cube cube, first;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    fields_build(f, &PLAIN, &first);
    fields_build(next, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_same_variables(&first, &cube);
    assert_int_equal(cube.init_count, 7);
    assert_int_equal(cube.init_times_s[0], FIELDS_START_S);
    assert_int_equal(cube.places[0].init, 4);
    assert_int_equal(cube.place_count, next->index.field_count);
    sq_cube_done(&cube);
    sq_cube_done(&first);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void fewer_sources_lose_no_init_time_and_no_variable(void **state)
{
    (void)state;
    struct fields *f = day(0, 18), *less = fields_new();
    struct sq_cube cube, first;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    fields_build(f, &PLAIN, &first);
    FIELD(less, PRODUCT(less, .short_name = "vis", .param_id = 3020), .run_h = 6);
    fields_build(less, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_same_variables(&first, &cube);
    assert_int_equal(cube.init_count, 4);
    assert_int_equal(cube.place_count, 1);
    assert_int_equal(cube.places[0].init, 1);
    less->index.field_count = 0;
    sq_cube_done(&cube);
    fields_build(less, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_int_equal(cube.init_count, 4);
    assert_same_variables(&first, &cube);
    sq_cube_done(&cube);
    sq_cube_done(&first);
    sq_json_free(schema);
    fields_free(f);
    fields_free(less);
}

/* tomorrow there may be more probabilities than values: the names stay */
static void names_stay_whatever_comes(void **state)
{
    (void)state;
    struct fields *f = day(0, 12), *next = fields_new();
    struct sq_cube cube;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    uint32_t twin = PRODUCT(next, .short_name = "vis", .param_id = 3020, .probability = true, .lower = 1000);
    for (int step = 0; step <= 12; step += 6)
        FIELD(next, twin, .run_h = 18, .step_h = step);
    fields_build(next, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_int_equal(fields_variable(&cube, "vis")->field_count, 0);
    assert_int_equal(fields_variable(&cube, "vis_probability")->field_count, 3);
    sq_cube_done(&cube);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void what_the_store_has_no_place_for_is_listed(void **state)
{
    (void)state;
    struct fields *f = day(0, 12), *next = day(18, 18);
    struct sq_cube cube;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    size_t known = next->index.field_count;
    FIELD(next, PRODUCT(next, .short_name = "sp", .param_id = 134, .level_type = "surface"), .run_h = 18);
    FIELD(next, PRODUCT(next, .short_name = "vis", .param_id = 3020), .run_h = 18, .step_h = 18);
    FIELD(next, PRODUCT(next, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 700, .ensemble = true),
          .run_h = 18, .number = 1);
    FIELD(next, PRODUCT(next, .short_name = "t", .param_id = 130, .level_type = "isobaricInhPa", .level = 100, .ensemble = true),
          .run_h = 18, .number = 3);
    INTERVAL(next, PRODUCT(next, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM), .run_h = 18, .begin_h = 3, .step_h = 12);
    FIELD(next, PRODUCT(next, .short_name = "vis", .param_id = 3020), .run_h = 18, .grid = fields_grid(next, 3, 3, false));
    fields_build(next, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_int_equal(cube.place_count, known);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OUTSIDE_SCHEMA), 4);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OUTSIDE_VARIABLES), 2);
    const char *const parts[] = {"the store was made without sp (surface)",    "vis: the store was made without these steps",
                                 "t: the store was made without these levels", "t: the store was made without these members",
                                 "tp_6h: the store has other intervals",       "the store was made without vis (heightAboveGround)"};
    for (size_t i = 0; i < 6; i++) {
        if (!fields_line(cube.warnings, cube.warning_count, parts[i]))
            fail_msg("no line says: %s", parts[i]);
    }
    sq_cube_done(&cube);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void what_was_not_selected_is_not_news(void **state)
{
    (void)state;
    struct fields *f = day(0, 12), *next = day(18, 18);
    struct sq_cube cube;
    struct sq_cube_options options = {.select = (const char *const[]){"name=t|vis_probability,level=0|100"}, .select_count = 1};
    struct sq_json *schema = reread(schema_of(f, &options));
    options.schema = schema;
    fields_build(next, &options, &cube);
    assert_int_equal(cube.variable_count, 2);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OUTSIDE_VARIABLES), 0);
    assert_int_equal(cube.warning_count, 0);
    assert_int_equal(cube.place_count, 6 + 1);
    sq_cube_done(&cube);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void a_stack_keeps_its_entries(void **state)
{
    (void)state;
    struct fields *f = day(0, 12), *next = day(18, 18);
    struct sq_cube cube, first;
    struct sq_cube_options options = {.stack = true};
    struct sq_json *schema = reread(schema_of(f, &options));
    fields_build(f, &options, &first);
    options.schema = schema;
    FIELD(next, PRODUCT(next, .short_name = "sp", .param_id = 134), .run_h = 18);
    fields_build(next, &options, &cube);
    assert_same_variables(&first, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_OUTSIDE_VARIABLES), 1);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_NOT_IN_STACK), 18 + 1 + 1);
    const struct sq_cube_coordinate *a = fields_coordinate(&first, "variable"), *b = fields_coordinate(&cube, "variable");
    assert_int_equal(a->shape[0], b->shape[0]);
    for (uint64_t i = 0; i < a->shape[0]; i++)
        assert_true(sq_bytes_equal(&((struct squall_bytes *)a->values)[i], &((struct squall_bytes *)b->values)[i]));
    sq_cube_done(&cube);
    sq_cube_done(&first);
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_cube_build(&next->index, &(struct sq_cube_options){.schema = schema}, &cube, &err), SQUALL_EREFUSED);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void rows_keep_the_order_of_the_store(void **state)
{
    (void)state;
    struct fields *f = fields_new(), *next = fields_new();
    struct sq_cube cube;
    FIELD(f, PRODUCT(f, .level = 2));
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    uint32_t northward = fields_grid(next, 4, 3, true);
    FIELD(next, PRODUCT(next, .level = 2), .grid = northward);
    fields_build(next, &(struct sq_cube_options){.schema = schema}, &cube);
    const double latitudes[] = {50, 49, 48};
    assert_memory_equal(fields_coordinate(&cube, "latitude")->values, latitudes, sizeof latitudes);
    assert_true(cube.places[0].flip_rows);
    assert_int_equal(cube.grids[0].grid, UINT32_MAX);
    assert_int_equal(cube.grids[0].rows, 3);
    sq_cube_done(&cube);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

/* an interval that no field had when the store was made */
static void an_empty_step_takes_its_interval_later(void **state)
{
    (void)state;
    struct fields *f = fields_new(), *next = fields_new();
    struct sq_cube cube;
    const int64_t bounds[] = {0, 3600, 0, 7200};
    INTERVAL(f, PRODUCT(f, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM), .step_h = 1);
    FIELD(f, PRODUCT(f, .level = 2), .step_h = 2);
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    INTERVAL(next, PRODUCT(next, .short_name = "tp", .param_id = 228, .step_type = SQ_GRIB_ACCUM), .step_h = 2);
    fields_build(next, &(struct sq_cube_options){.schema = schema}, &cube);
    assert_int_equal(cube.place_count, 1);
    assert_memory_equal(fields_coordinate(&cube, "step_bounds")->values, bounds, sizeof bounds);
    sq_cube_done(&cube);
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

struct append {
    int store_h[3], store_count;
    int new_h[4], new_count;
    int every_h;
    enum squall_status status;
    int count, spacing_h, cadence_h;
    size_t before, off;
};

static struct fields *runs(const int *hours, int count)
{
    struct fields *f = fields_new();
    uint32_t t = PRODUCT(f, .level = 2);
    for (int i = 0; i < count; i++)
        FIELD(f, t, .run_h = hours[i]);
    return f;
}

static void check_append(struct append a)
{
    struct fields *f = runs(a.store_h, a.store_count), *next = runs(a.new_h, a.new_count);
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_cube_options options = {.schema = schema, .every_s = a.every_h * 3600};
    assert_int_equal(sq_cube_build(&next->index, &options, &cube, &err), a.status);
    if (a.status == SQUALL_OK) {
        assert_int_equal(cube.init_count, a.count);
        assert_int_equal(cube.cadence_s, a.cadence_h * 3600);
        for (int i = 0; i < a.count; i++)
            assert_int_equal(cube.init_times_s[i], FIELDS_START_S + 3600 * (a.store_h[0] + i * a.spacing_h));
        assert_int_equal(fields_ignored(&cube, SQ_CUBE_BEFORE_START), a.before);
        assert_int_equal(fields_ignored(&cube, SQ_CUBE_OFF_CADENCE), a.off);
        sq_cube_done(&cube);
    } else {
        assert_non_null(strstr(err.message, "init_time"));
    }
    sq_json_free(schema);
    fields_free(f);
    fields_free(next);
}

static void appended_runs_keep_the_cadence(void **state)
{
    (void)state;
    check_append((struct append){{0, 6, 12}, 3, {18, 30}, 2, 0, SQUALL_OK, 6, 6, 6, 0, 0});
    check_append((struct append){{0, 6, 18}, 3, {12}, 1, 0, SQUALL_OK, 4, 6, 6, 0, 0});
    check_append((struct append){{0, 6, 12}, 3, {13, 14, 15, 16}, 4, 0, SQUALL_OK, 3, 6, 6, 0, 4});
    check_append((struct append){{0, 6, 12}, 3, {-6, -5, 18}, 3, 0, SQUALL_OK, 4, 6, 6, 1, 1});
}

static void an_open_cadence_is_settled_where_nothing_moves(void **state)
{
    (void)state;
    check_append((struct append){{0}, 1, {6}, 1, 0, SQUALL_OK, 2, 6, 0, 0, 0});
    check_append((struct append){{0}, 1, {12}, 1, 0, SQUALL_OK, 2, 12, 0, 0, 0});
    check_append((struct append){{0}, 1, {6, 12}, 2, 0, SQUALL_OK, 3, 6, 6, 0, 0});
    check_append((struct append){{0}, 1, {1, 7, 13}, 3, 0, SQUALL_OK, 1, 6, 6, 0, 3});
    check_append((struct append){{0, 6}, 2, {12}, 1, 0, SQUALL_OK, 3, 6, 6, 0, 0});
    check_append((struct append){{0, 6}, 2, {6}, 1, 0, SQUALL_OK, 2, 6, 0, 0, 0});
}

static void an_append_that_would_move_coordinates_is_refused(void **state)
{
    (void)state;
    check_append((struct append){{0, 12}, 2, {18, 24}, 2, 0, SQUALL_EREFUSED, 0, 0, 0, 0, 0});
    check_append((struct append){{0, 12}, 2, {18}, 1, 0, SQUALL_EREFUSED, 0, 0, 0, 0, 0});
    check_append((struct append){{0, 6, 12}, 3, {18}, 1, 3, SQUALL_EREFUSED, 0, 0, 0, 0, 0});
    check_append((struct append){{0, 6}, 2, {12}, 1, 12, SQUALL_EREFUSED, 0, 0, 0, 0, 0});
    check_append((struct append){{0}, 1, {12}, 1, 3, SQUALL_OK, 5, 3, 3, 0, 0});
    check_append((struct append){{0, 6, 12}, 3, {18}, 1, 6, SQUALL_OK, 4, 6, 6, 0, 0});
}

/* Sets each member of an object in turn to each odd value, or takes it away; calls itself for what is below. */
static void spoil(const struct fields *f, struct sq_json *root, struct sq_json *object, size_t *refused, int depth);

struct spoiling {
    const struct fields *f;
    struct sq_json *root, *object;
    size_t *refused;
    int depth;
    const char *keys[64];
    size_t count;
};

static int collect(void *user, const char *key, const struct sq_json *value, struct squall_error *err)
{
    struct spoiling *s = user;
    (void)value, (void)err;
    assert_true(s->count < 64);
    s->keys[s->count++] = key;
    return 0;
}

static void try_build(const struct spoiling *s)
{
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    int status = sq_cube_build(&s->f->index, &(struct sq_cube_options){.schema = s->root}, &cube, &err);
    if (status == 0)
        sq_cube_done(&cube);
    else
        ++*s->refused;
}

static void spoil(const struct fields *f, struct sq_json *root, struct sq_json *object, size_t *refused, int depth)
{
    static const char *const ODD[] = {"null", "\"text\"",      "-1",    "0",  "1e300",       "9223372036854775807",
                                      "[]",   "[[1,2],[1,2]]", "[5,5]", "{}", "{\"a\":[1]}", "true"};
    struct spoiling s = {f, root, object, refused, depth, {NULL}, 0};
    assert_int_equal(sq_json_each(object, collect, &s, NULL), 0);
    for (size_t i = 0; i < s.count; i++) {
        struct sq_json *kept = sq_json_share(sq_json_get(object, s.keys[i]));
        char *key = sq_strdup(s.keys[i]);
        for (size_t k = 0; k < sizeof ODD / sizeof *ODD; k++) {
            struct sq_json *odd;
            assert_int_equal(sq_json_parse(ODD[k], strlen(ODD[k]), &odd, NULL), 0);
            assert_int_equal(sq_json_set(object, key, odd), 0);
            try_build(&s);
        }
        sq_json_remove(object, key);
        try_build(&s);
        assert_int_equal(sq_json_set(object, key, kept), 0);
        for (size_t k = 0; depth && k < sq_json_count(kept) && sq_json_type(kept) == SQ_JSON_ARRAY; k++) {
            if (sq_json_type(sq_json_at(kept, k)) == SQ_JSON_OBJECT)
                spoil(f, root, (struct sq_json *)(uintptr_t)sq_json_at(kept, k), refused, depth - 1);
        }
        sq_free(key);
    }
}

static void a_damaged_schema_is_refused_and_never_crashes(void **state)
{
    (void)state;
    struct fields *f = day(0, 6);
    size_t refused = 0;
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    spoil(f, schema, schema, &refused, 1);
    assert_true(refused > 300);
    sq_json_free(schema);
    fields_free(f);
}

static void a_failed_allocation_is_an_error_without_a_leak(void **state)
{
    (void)state;
    struct fields *f = day(0, 12);
    struct sq_json *schema = reread(schema_of(f, &PLAIN));
    for (long after = 0;; after++) {
        struct sq_cube cube;
        sq_fail_allocation(after);
        int status = sq_cube_build(&f->index, &(struct sq_cube_options){.schema = schema}, &cube, NULL);
        sq_fail_allocation(-1);
        if (status == 0) {
            sq_cube_done(&cube);
            break;
        }
        assert_int_equal(status, SQUALL_ENOMEM);
    }
    sq_json_free(schema);
    fields_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_files_give_the_same_cube),
        cmocka_unit_test(strays_are_told_alike_again),
        cmocka_unit_test(later_runs_extend_init_time_and_earlier_ones_stay),
        cmocka_unit_test(fewer_sources_lose_no_init_time_and_no_variable),
        cmocka_unit_test(names_stay_whatever_comes),
        cmocka_unit_test(what_the_store_has_no_place_for_is_listed),
        cmocka_unit_test(what_was_not_selected_is_not_news),
        cmocka_unit_test(a_stack_keeps_its_entries),
        cmocka_unit_test(rows_keep_the_order_of_the_store),
        cmocka_unit_test(an_empty_step_takes_its_interval_later),
        cmocka_unit_test(appended_runs_keep_the_cadence),
        cmocka_unit_test(an_open_cadence_is_settled_where_nothing_moves),
        cmocka_unit_test(an_append_that_would_move_coordinates_is_refused),
        cmocka_unit_test(a_damaged_schema_is_refused_and_never_crashes),
        cmocka_unit_test(a_failed_allocation_is_an_error_without_a_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
