/*
 * A unit in memory against the obvious: every value of every chunk is looked up in the fields that were written, one by one, for
 * many shapes, chunkings, types, holes and flips. Fields are IEEE 32 bit, so that values are known exactly.
 */
#include "support/folder.h"
#include "support/message.h"

#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/unit.h"
#include "engine/scatter.h"
#include <math.h>

enum { ROWS = 6, COLUMNS = 10, POINTS = ROWS * COLUMNS, STEPS = 3, LEVELS = 4, INITS = 3 };

/* The value of a point, different everywhere and exact in every type: small whole numbers. */
static float value_of(unsigned field, unsigned row, unsigned column)
{
    return (float)((field * 67 + row * 13 + column * 3) % 1021);
}

static void add_field(struct sq_text *t, unsigned field, unsigned rows, unsigned columns)
{
    uint8_t body3[67], body5[7] = {0}, body7[POINTS * 4];
    size_t start = message_begin(t, 0);
    body3_make(body3, columns, rows);
    put_be(body5, (uint64_t)rows * columns, 4);
    put_be(body5 + 4, 4, 2);
    body5[6] = 1; /* template 5.4: IEEE, 32 bit */
    for (unsigned r = 0; r < rows; r++)
        for (unsigned c = 0; c < columns; c++) {
            float v = value_of(field, r, c);
            uint32_t bits;
            memcpy(&bits, &v, 4);
            put_be(body7 + 4 * (r * columns + c), bits, 4);
        }
    message_section(t, 1, BODY1, sizeof BODY1);
    message_section(t, 3, body3, sizeof body3);
    message_section(t, 4, BODY4, sizeof BODY4);
    message_section(t, 5, body5, sizeof body5);
    message_section(t, 6, BODY6, sizeof BODY6);
    message_section(t, 7, body7, (size_t)4 * rows * columns);
    message_end(t, start);
}

static void write_bytes(const char *path, const struct sq_text *t)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(t->data, 1, t->length, f), t->length);
    assert_int_equal(fclose(f), 0);
}

/* Two files, `count` fields alternately in one and the other. */
static void write_fields(const char *folder, unsigned count)
{
    for (unsigned file = 0; file < 2; file++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        for (unsigned i = file; i < count; i += 2)
            add_field(&t, i, ROWS, COLUMNS);
        write_bytes(in_folder(folder, file ? "b.grib" : "a.grib"), &t);
    }
}

static struct sq_grib_index index_of(const char *folder)
{
    const char *const paths[] = {in_folder(folder, "a.grib"), in_folder(folder, "b.grib")};
    struct sq_grib_index index;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_grib_index_build(paths, 2, 1, NULL, NULL, &index, &err))
        fail_msg("%s", err.message);
    assert_int_equal(index.problem_count, 0);
    return index;
}

/* The index has a.grib's fields first: which of our fields is its row? */
static unsigned field_of_row(unsigned row, unsigned count)
{
    unsigned in_first = (count + 1) / 2;
    return row < in_first ? row * 2 : (row - in_first) * 2 + 1;
}

/* ---- a cube of one flat variable and one with levels ------------------------------------------------------------------------------- */

struct world {
    struct sq_grib_index index;
    struct sq_cube_variable variables[2];
    struct sq_cube_grid grids[1];
    struct sq_cube_place places[INITS * STEPS * (1 + LEVELS)];
    struct sq_cube cube;
    struct sq_settings settings;
    struct sq_layout layout;
    struct squall_context ctx;
    struct sq_unit_setting setting;
};

/* Slab places in (init, variable, slab) order, some left out; a field for each, some of them upside down. */
static void place_fields(struct world *w, unsigned hole_every, unsigned flip_every, unsigned field_count)
{
    unsigned n = 0, row = 0;
    for (unsigned init = 0; init < INITS; init++)
        for (unsigned v = 0; v < 2; v++)
            for (unsigned slab = 0; slab < (v ? STEPS * LEVELS : STEPS); slab++, n++) {
                if (hole_every && n % hole_every == 0)
                    continue;
                assert_true(row < field_count);
                w->places[w->cube.place_count++] = (struct sq_cube_place){
                    .field = row++, .variable = v, .init = init, .slab = slab, .flip_rows = flip_every && n % flip_every == 0};
            }
}

static void make_world(struct world *w, const char *folder, const char *chunks, const char *dtype, const char *coarsen, unsigned hole_every,
                       unsigned flip_every)
{
    enum { FIELDS = INITS * STEPS * (1 + LEVELS) };
    static const char *const sources[] = {"in"};
    struct squall_error err = SQUALL_ERROR_INIT;
    const struct squall_convert_options o = {
        .sources = sources, .source_count = 1, .destination = "out", .chunks = chunks, .dtype = dtype, .coarsen = coarsen, .codec = "none"};
    *w = (struct world){0};
    write_fields(folder, FIELDS);
    w->index = index_of(folder);
    if (sq_settings_parse(&o, &w->settings, &err))
        fail_msg("%s", err.message);
    uint64_t rows = (ROWS + w->settings.coarsen_y - 1) / w->settings.coarsen_y;
    uint64_t columns = (COLUMNS + w->settings.coarsen_x - 1) / w->settings.coarsen_x;
    w->grids[0] = (struct sq_cube_grid){0, rows, columns};
    w->variables[0] = (struct sq_cube_variable){
        .name = "flat",
        .type = SQUALL_FLOAT32,
        .rank = 4,
        .dim_kinds = {SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_Y, SQ_DIM_X},
        .dims = {"init_time", "step", "y", "x"},
        .shape = {INITS, STEPS, rows, columns},
    };
    w->variables[1] = (struct sq_cube_variable){
        .name = "deep",
        .type = SQUALL_FLOAT32,
        .rank = 5,
        .dim_kinds = {SQ_DIM_INIT_TIME, SQ_DIM_STEP, SQ_DIM_LEVEL, SQ_DIM_Y, SQ_DIM_X},
        .dims = {"init_time", "step", "height", "y", "x"},
        .shape = {INITS, STEPS, LEVELS, rows, columns},
    };
    w->cube = (struct sq_cube){
        .variables = w->variables, .variable_count = 2, .places = w->places, .grids = w->grids, .grid_count = 1, .init_count = INITS};
    place_fields(w, hole_every, flip_every, FIELDS);
    if (sq_layout_make(&w->settings, &w->cube, 0, &w->layout, &err))
        fail_msg("%s", err.message);
    w->ctx = (struct squall_context){.threads = 3, .memory_bytes = 1 << 30};
    w->setting = (struct sq_unit_setting){.ctx = &w->ctx,
                                          .index = &w->index,
                                          .cube = &w->cube,
                                          .layout = &w->layout,
                                          .overflow = w->settings.overflow,
                                          .coarsen_y = w->settings.coarsen_y,
                                          .coarsen_x = w->settings.coarsen_x};
}

static void world_done(struct world *w)
{
    sq_layout_done(&w->layout);
    sq_settings_done(&w->settings);
    sq_grib_index_done(&w->index);
}

static size_t places_of(const struct world *w, uint64_t unit, size_t *ret_first)
{
    size_t count = 0;
    for (size_t i = 0; i < w->cube.place_count; i++) {
        if (w->places[i].init / w->layout.init_chunk != unit)
            continue;
        if (count++ == 0)
            *ret_first = i;
    }
    return count;
}

/* What a place's field says about one output point: itself, or the mean of its block. */
static double expected_value(const struct world *w, const struct sq_cube_place *p, uint64_t y, uint64_t x)
{
    unsigned field = field_of_row(p->field, INITS * STEPS * (1 + LEVELS)), count = 0;
    double sum = 0;
    for (uint64_t r = y * w->setting.coarsen_y; r < (y + 1) * w->setting.coarsen_y && r < ROWS; r++)
        for (uint64_t c = x * w->setting.coarsen_x; c < (x + 1) * w->setting.coarsen_x && c < COLUMNS; c++, count++)
            sum += value_of(field, (unsigned)(p->flip_rows ? ROWS - 1 - r : r), (unsigned)c);
    return w->layout.arrays[p->variable].type == SQUALL_FLOAT64 ? sum / count : (double)(float)(sum / count);
}

static double element(const void *chunk, enum squall_type type, size_t index)
{
    if (type == SQUALL_FLOAT16)
        return (double)sq_half_to_float(((const uint16_t *)chunk)[index]);
    return type == SQUALL_FLOAT32 ? (double)((const float *)chunk)[index] : ((const double *)chunk)[index];
}

static const struct sq_cube_place *place_at(const struct world *w, unsigned variable, uint64_t init, uint64_t slab)
{
    for (size_t i = 0; i < w->cube.place_count; i++) {
        const struct sq_cube_place *p = &w->places[i];
        if (p->variable == variable && p->init == init && p->slab == slab)
            return p;
    }
    return NULL;
}

/* The value that belongs at an index of the array; NaN outside of it, and where there is no field. */
static double value_at(const struct world *w, unsigned variable, const uint64_t *index)
{
    const struct sq_layout_array *a = &w->layout.arrays[variable];
    uint64_t slab = 0;
    for (unsigned d = 0; d < a->rank; d++)
        if (index[d] >= a->shape[d])
            return NAN;
    for (unsigned d = 1; d < a->rank - 2; d++)
        slab = slab * a->shape[d] + index[d];
    const struct sq_cube_place *p = place_at(w, variable, index[0], slab);
    return p ? expected_value(w, p, index[a->rank - 2], index[a->rank - 1]) : NAN;
}

/* Returns how many values of the chunk are no NaN. */
static size_t check_chunk(const struct world *w, unsigned variable, uint64_t unit, uint64_t chunk, const void *bytes)
{
    const struct sq_layout_array *a = &w->layout.arrays[variable];
    uint64_t place[SQ_LAYOUT_RANK_MAX], index[SQ_LAYOUT_RANK_MAX];
    size_t values = 0;
    sq_layout_chunk_index(a, unit, chunk, place);
    for (size_t i = 0; i < a->chunk_bytes / a->element_bytes; i++) {
        size_t rest = i;
        for (unsigned d = a->rank; d-- > 0;) {
            index[d] = place[d] * a->chunks[d] + rest % a->chunks[d];
            rest /= a->chunks[d];
        }
        double expected = value_at(w, variable, index);
        if (a->type == SQUALL_FLOAT16)
            expected = (double)sq_half_to_float(sq_half_from_float((float)expected));
        values += !isnan(expected);
        if (!bytes)
            continue;
        double actual = element(bytes, a->type, i);
        if (isnan(expected) ? !isnan(actual) : actual != expected)
            fail_msg("%s, chunk %d, element %d: %g, not %g", a->name, (int)chunk, (int)i, actual, expected);
    }
    return values;
}

static void check_units(const char *folder, const char *chunks, const char *dtype, const char *coarsen, unsigned hole_every,
                        unsigned flip_every)
{
    struct world w;
    struct sq_unit *unit;
    struct squall_error err = SQUALL_ERROR_INIT;
    make_world(&w, folder, chunks, dtype, coarsen, hole_every, flip_every);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    for (uint64_t n = 0; n * w.layout.init_chunk < INITS; n++) {
        size_t first = 0, count = places_of(&w, n, &first);
        if (sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, &err))
            fail_msg("%s", err.message);
        uint64_t touched_bytes = 0, touched_count = 0, chunk_count = 0;
        for (unsigned v = 0; v < 2; v++)
            for (uint64_t k = 0; k < w.layout.arrays[v].chunks_per_unit; k++) {
                const void *bytes = sq_unit_chunk(unit, v, k);
                size_t values = check_chunk(&w, v, n, k, bytes);
                assert_true((bytes != NULL) == (values > 0)); /* only a chunk without a field is absent */
                touched_count += values > 0;
                touched_bytes += values > 0 ? w.layout.arrays[v].chunk_bytes : 0;
            }
        assert_int_equal(sq_unit_measure(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, &chunk_count), touched_bytes);
        assert_int_equal(chunk_count, touched_count);
    }
    sq_unit_free(unit);
    world_done(&w);
}

static void every_value_is_where_it_belongs(void **state)
{
    static const char *const CHUNKS[] = {"init_time=1,step=all,level=1,y=all,x=all", "init_time=1,step=all,level=all,y=3,x=5",
                                         "init_time=1,step=2,level=3,y=4,x=4",       "init_time=2,step=1,level=2,y=6,x=3",
                                         "init_time=3,step=all,level=1,y=1,x=10",    "init_time=5,step=2,level=all,y=5,x=7"};
    static const char *const TYPES[] = {"float16", "float32", "float64", "flat=float64,float16"};
    for (size_t c = 0; c < sizeof CHUNKS / sizeof *CHUNKS; c++)
        for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++)
            for (unsigned hole = 0; hole <= 3; hole++) /* 1: no field at all is tried elsewhere */
                if (hole != 1)
                    check_units(*state, CHUNKS[c], TYPES[t], NULL, hole, hole + 2);
}

static void coarsened_values_are_block_means(void **state)
{
    check_units(*state, "step=all,y=2,x=3", "float32", "y=2,x=2", 3, 2);
    check_units(*state, "step=all,y=all,x=all", "float64", "y=4,x=3", 0, 3);
    check_units(*state, "step=1,y=all,x=2", "float16", "x=3", 2, 0);
}

static void a_chunk_that_no_field_touches_is_absent(void **state)
{
    struct world w;
    struct sq_unit *unit;
    make_world(&w, *state, "step=1,level=1", "float32", NULL, 2, 0);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    size_t first = 0, count = places_of(&w, 0, &first);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, NULL), 0);
    for (uint64_t k = 0; k < STEPS; k++)
        assert_true((sq_unit_chunk(unit, 0, k) != NULL) == (place_at(&w, 0, 0, k) != NULL));
    sq_unit_free(unit);
    world_done(&w);
}

/* One level a run, another one each time: the buffers of one run are used again for the next. */
static void a_unit_takes_memory_for_touched_chunks_only(void **state)
{
    struct world w;
    struct sq_unit *unit;
    uint64_t chunk_count;
    make_world(&w, *state, "init_time=1,step=1,level=1,y=3,x=all", "float32", NULL, 0, 0);
    size_t bytes = w.layout.arrays[1].chunk_bytes;
    assert_int_equal(bytes, 3 * COLUMNS * 4);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    for (unsigned init = 0; init < INITS; init++) {
        size_t first = 0;
        places_of(&w, init, &first);
        const struct sq_cube_place *place = &w.places[first + STEPS + 2 * init]; /* deep, slab 2 × init */
        assert_int_equal(sq_unit_measure(unit, &(struct sq_unit_fields){place, 1, NULL, {0}}, &chunk_count), 2 * bytes);
        assert_int_equal(chunk_count, 2);
        assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){place, 1, NULL, {0}}, NULL), 0);
        for (uint64_t k = 0; k < w.layout.arrays[1].chunks_per_unit; k++) {
            const float *chunk = sq_unit_chunk(unit, 1, k);
            assert_true((chunk != NULL) == (k / 2 == place->slab));
            if (chunk)
                assert_true(chunk[0] == value_of(field_of_row(place->field, INITS * STEPS * (1 + LEVELS)), k % 2 ? 3 : 0, 0));
        }
        for (uint64_t k = 0; k < w.layout.arrays[0].chunks_per_unit; k++)
            assert_null(sq_unit_chunk(unit, 0, k));
    }
    sq_unit_free(unit);
    world_done(&w);
}

/* ---- what goes wrong --------------------------------------------------------------------------------------------------------------- */

/* Turn the sections' end of message `number` of a.grib into nonsense that the scan does not look at. */
static void damage_field(const struct world *w, size_t row)
{
    const struct sq_grib_field *field = &w->index.fields[row];
    FILE *f = fopen(w->index.files[field->file].path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)field->offset + 16 + 21 + 72 + 34 + 5, SEEK_SET), 0); /* section 5: number of values */
    assert_int_equal(fwrite("\xff\xff\xff\xff", 1, 4, f), 4);
    assert_int_equal(fclose(f), 0);
}

/* As if the files had been scanned as they are now. */
static void scan_again(struct world *w)
{
    for (size_t i = 0; i < w->index.file_count; i++) {
        enum sq_file_kind kind;
        assert_int_equal(sq_file_stat(w->index.files[i].path, &kind, &w->index.files[i].identity, NULL), 0);
    }
}

static void a_damaged_field_costs_only_itself(void **state)
{
    struct world w;
    struct sq_unit *unit;
    const struct sq_unit_bad *bad;
    make_world(&w, *state, "step=all", "float32", NULL, 0, 0);
    damage_field(&w, 1);
    scan_again(&w);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    size_t first = 0, count = places_of(&w, 0, &first);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, NULL), 0);
    assert_int_equal(sq_unit_bad(unit, &bad), 1);
    assert_int_equal(bad[0].place->slab, 1);
    assert_true(strlen(bad[0].message) > 0);
    assert_int_equal(sq_unit_slabs(unit, 0)[0], SQ_SLAB_STORED);
    assert_int_equal(sq_unit_slabs(unit, 0)[1], SQ_SLAB_BAD);
    assert_int_equal(sq_unit_slabs(unit, 0)[2], SQ_SLAB_STORED);
    const float *chunk = sq_unit_chunk(unit, 0, 0);
    assert_true(chunk[0] == value_of(0, 0, 0));
    for (size_t i = 0; i < POINTS; i++)
        assert_true(isnan(chunk[POINTS + i]));
    sq_unit_free(unit);
    world_done(&w);
}

static void a_chunk_that_only_a_damaged_field_touches_is_absent(void **state)
{
    struct world w;
    struct sq_unit *unit;
    make_world(&w, *state, "step=1", "float32", NULL, 0, 0);
    damage_field(&w, 1);
    scan_again(&w);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    size_t first = 0, count = places_of(&w, 0, &first);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, NULL), 0);
    assert_int_equal(sq_unit_slabs(unit, 0)[1], SQ_SLAB_BAD);
    for (uint64_t k = 0; k < STEPS; k++)
        assert_true((sq_unit_chunk(unit, 0, k) != NULL) == (k != 1));
    sq_unit_free(unit);
    world_done(&w);
}

static void a_file_that_changed_since_the_scan_ends_the_unit(void **state)
{
    struct world w;
    struct sq_unit *unit;
    struct squall_error err = SQUALL_ERROR_INIT;
    make_world(&w, *state, NULL, "float32", NULL, 0, 0);
    damage_field(&w, 1);
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    size_t first = 0, count = places_of(&w, 0, &first);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, "a.grib changed since it was scanned"));
    scan_again(&w);
    assert_int_equal(remove(w.index.files[0].path), 0);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, "a.grib: No such file"));
    sq_unit_free(unit);
    world_done(&w);
}

static int always(void *user)
{
    (void)user;
    return 1;
}

static void a_cancelled_unit_stops(void **state)
{
    struct world w;
    struct sq_unit *unit;
    make_world(&w, *state, NULL, "float32", NULL, 0, 0);
    w.ctx.cancelled = always;
    assert_int_equal(sq_unit_new(&w.setting, &unit, NULL), 0);
    size_t first = 0, count = places_of(&w, 0, &first);
    assert_int_equal(sq_unit_load(unit, &(struct sq_unit_fields){&w.places[first], count, NULL, {0}}, NULL), SQUALL_ECANCELLED);
    sq_unit_free(unit);
    world_done(&w);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(every_value_is_where_it_belongs),
        IN_FOLDER(coarsened_values_are_block_means),
        IN_FOLDER(a_chunk_that_no_field_touches_is_absent),
        IN_FOLDER(a_unit_takes_memory_for_touched_chunks_only),
        IN_FOLDER(a_damaged_field_costs_only_itself),
        IN_FOLDER(a_chunk_that_only_a_damaged_field_touches_is_absent),
        IN_FOLDER(a_file_that_changed_since_the_scan_ends_the_unit),
        IN_FOLDER(a_cancelled_unit_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
