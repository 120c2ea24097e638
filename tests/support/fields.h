/*
 * An index of fields made by hand, for tests of cubes: a test says only what matters to it, the rest is a deterministic 2 metre temperature
 * on a small latitude/longitude grid.
 */
#ifndef SQ_TESTS_SUPPORT_FIELDS_H
#define SQ_TESTS_SUPPORT_FIELDS_H

#include "base/memory.h"
#include "cube/cube.h"
#include "support/message.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS_LIMIT = 4096, FIELDS_TABLE_LIMIT = 64 };
static const int64_t FIELDS_START_S = 1640995200; /* 2022-01-01T00:00 */

struct fields {
    struct sq_grib_index index;
    struct sq_grib_field field[FIELDS_LIMIT];
    struct sq_grib_product products[FIELDS_TABLE_LIMIT];
    struct sq_grib_names names[FIELDS_TABLE_LIMIT];
    double levels[FIELDS_TABLE_LIMIT][2];
    struct sq_grib_grid grids[FIELDS_TABLE_LIMIT];
    struct sq_grib_packing packings[2]; /* simple, IEEE 64 */
    struct sq_grib_file files[FIELDS_TABLE_LIMIT];
};

/* A parameter on a level. 0 and NULL: the default. */
struct product_spec {
    const char *short_name, *cf_var_name; /* "2t", "t2m" */
    int param_id;                         /* 167; -1: unknown */
    const char *level_type;               /* "heightAboveGround" */
    double level, bottom;                 /* bottom 0: none */
    enum sq_grib_step_type step_type;
    bool ensemble, probability;
    int ensemble_kind, derived, percentile; /* 0: none; derived is one more than the code */
    double lower;
    int process;            /* typeOfGeneratingProcess */
    const char *definition; /* bytes that tell it from others of the same meaning */
    const char *unsupported;
    const char *units, *cf_name;
};

struct field_spec {
    uint32_t product, grid, file;
    int run_h, begin_h, step_h; /* from FIELDS_START_S */
    int step_min;               /* added to step and begin */
    int number;                 /* one more than the member; 0: none */
    bool is_float64;
    uint64_t offset, size_bytes; /* offset 0: behind the field before */
    uint16_t in_message;
};

static inline uint32_t fields_product_of(struct fields *f, struct product_spec s)
{
    uint32_t row = (uint32_t)f->index.product_count++;
    struct sq_grib_product *p = &f->products[row];
    struct sq_grib_names *n = &f->names[row];
    bool default_name = !s.short_name && !s.cf_var_name;
    *p = (struct sq_grib_product){.raw = {.edition = 2},
                                  .centre = 74,
                                  .generating_process = (uint8_t)(s.process ? s.process : 2),
                                  .step_type = s.step_type,
                                  .statistical_process = 255,
                                  .first = {.type = 103},
                                  .second = {.type = 255},
                                  .ensemble_kind = s.ensemble || s.ensemble_kind ? (int16_t)(s.ensemble_kind ? s.ensemble_kind : 3) : -1,
                                  .derived_forecast = (int16_t)(s.derived - 1),
                                  .probability_type = s.probability ? 3 : -1,
                                  .lower_limit = s.probability ? s.lower : NAN,
                                  .upper_limit = NAN,
                                  .percentile = (int16_t)(s.percentile ? s.percentile : -1),
                                  .unsupported = s.unsupported};
    if (s.definition) {
        p->raw.section4 = (const uint8_t *)s.definition;
        p->raw.section4_bytes = (uint32_t)strlen(s.definition);
    }
    *n = (struct sq_grib_names){.param_id = s.param_id < 0 ? 0
                                            : s.param_id   ? s.param_id
                                                           : 167,
                                .name = "a name",
                                .units = s.units ? s.units : "K",
                                .cf_name = s.cf_name,
                                .level_type = s.level_type ? s.level_type : "heightAboveGround"};
    const char *cf = s.cf_var_name ? s.cf_var_name : s.short_name, *brief = s.short_name ? s.short_name : s.cf_var_name;
    strncpy(n->cf_var_name, default_name ? "t2m" : cf, sizeof n->cf_var_name - 1);
    strncpy(n->short_name, default_name ? "2t" : brief, sizeof n->short_name - 1);
    f->levels[row][0] = s.level;
    f->levels[row][1] = s.bottom != 0 ? s.bottom : NAN;
    return row;
}
#define PRODUCT(f, ...) fields_product_of((f), (struct product_spec){__VA_ARGS__})

/* ni × nj points one degree apart from 50 N 10 E; south_first: the same points in the other row order. */
static inline uint32_t fields_grid(struct fields *f, uint32_t ni, uint32_t nj, bool south_first)
{
    uint8_t section[72] = {0, 0, 0, 72, 3};
    struct squall_error err = SQUALL_ERROR_INIT;
    body3_make(section + 5, ni, nj);
    if (south_first) {
        uint8_t first[4];
        memcpy(first, section + 46, 4);
        memcpy(section + 46, section + 55, 4);
        memcpy(section + 55, first, 4);
        section[71] = 0x40;
    }
    uint32_t row = (uint32_t)f->index.grid_count++;
    if (sq_grib_grid_parse(2, 74, section, sizeof section, &f->grids[row], &err))
        fail_msg("%s", err.message);
    return row;
}

static inline uint32_t fields_file(struct fields *f, const char *path)
{
    f->files[f->index.file_count].path = sq_strdup(path);
    return (uint32_t)f->index.file_count++;
}

static inline struct fields *fields_new(void)
{
    struct fields *f = sq_alloc_zero(1, sizeof *f);
    assert_non_null(f);
    f->packings[0] = (struct sq_grib_packing){.name = "grid_simple", .bits_per_value = 16};
    f->packings[1] = (struct sq_grib_packing){.name = "grid_ieee", .bits_per_value = 64, .is_float64 = true};
    f->index = (struct sq_grib_index){.fields = f->field,
                                      .products = f->products,
                                      .names = f->names,
                                      .levels = f->levels,
                                      .grids = f->grids,
                                      .packings = f->packings,
                                      .packing_count = 2,
                                      .files = f->files};
    fields_grid(f, 4, 3, false);
    fields_file(f, "/nowhere/a.grib");
    return f;
}

static inline void fields_free(struct fields *f)
{
    for (size_t i = 0; i < f->index.grid_count; i++)
        sq_grib_grid_done(&f->grids[i]);
    for (size_t i = 0; i < f->index.file_count; i++)
        sq_free(f->files[i].path);
    sq_free(f);
}

static inline uint32_t fields_add(struct fields *f, struct field_spec s)
{
    assert_true(f->index.field_count < FIELDS_LIMIT);
    uint32_t row = (uint32_t)f->index.field_count++;
    f->field[row] = (struct sq_grib_field){.offset = s.offset ? s.offset : row * UINT64_C(100),
                                           .size_bytes = s.size_bytes ? s.size_bytes : 100,
                                           .file = s.file,
                                           .product = s.product,
                                           .grid = s.grid,
                                           .packing = s.is_float64,
                                           .in_message = s.in_message,
                                           .times = {.reference_time_s = FIELDS_START_S + 3600 * s.run_h,
                                                     .step_begin_s = 3600 * s.begin_h + 60 * s.step_min,
                                                     .step_end_s = 3600 * s.step_h + 60 * s.step_min,
                                                     .number = s.number - 1}};
    return row;
}
/* An instant at step_h. */
#define FIELD(f, what, ...) fields_add_instant((f), (struct field_spec){.product = (what), ##__VA_ARGS__})
/* An interval from begin_h to step_h. */
#define INTERVAL(f, what, ...) fields_add((f), (struct field_spec){.product = (what), ##__VA_ARGS__})

static inline uint32_t fields_add_instant(struct fields *f, struct field_spec s)
{
    s.begin_h = s.step_h;
    return fields_add(f, s);
}

static inline void fields_build(const struct fields *f, const struct sq_cube_options *options, struct sq_cube *ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_cube_build(&f->index, options, ret, &err))
        fail_msg("%s", err.message);
    assert_int_equal(ret->place_count + ret->ignored_count, f->index.field_count);
}

static inline const struct sq_cube_variable *fields_variable(const struct sq_cube *cube, const char *name)
{
    for (size_t i = 0; i < cube->variable_count; i++) {
        if (strcmp(cube->variables[i].name, name) == 0)
            return &cube->variables[i];
    }
    return NULL;
}

static inline const struct sq_cube_coordinate *fields_coordinate(const struct sq_cube *cube, const char *name)
{
    for (size_t i = 0; i < cube->coordinate_count; i++) {
        if (strcmp(cube->coordinates[i].name, name) == 0)
            return &cube->coordinates[i];
    }
    return NULL;
}

/* "init_time,step,latitude,longitude" */
static inline const char *fields_dims(const struct sq_cube *cube, const char *name, char *text, size_t size)
{
    const struct sq_cube_variable *v = fields_variable(cube, name);
    text[0] = 0;
    for (unsigned d = 0; v && d < v->rank; d++) {
        strncat(text, d ? "," : "", size - strlen(text) - 1);
        strncat(text, v->dims[d], size - strlen(text) - 1);
    }
    return text;
}

static inline const struct sq_cube_place *fields_place(const struct sq_cube *cube, uint32_t field)
{
    for (size_t i = 0; i < cube->place_count; i++) {
        if (cube->places[i].field == field)
            return &cube->places[i];
    }
    return NULL;
}

static inline size_t fields_ignored(const struct sq_cube *cube, enum sq_cube_reason reason)
{
    size_t count = 0;
    for (size_t i = 0; i < cube->ignored_count; i++)
        count += cube->ignored[i].reason == reason;
    return count;
}

static inline bool fields_line(char *const *lines, size_t count, const char *part)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(lines[i], part))
            return true;
    }
    return false;
}

/* The variables' names, in order: "t2m vis vis_probability" */
static inline const char *fields_names(const struct sq_cube *cube, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < cube->variable_count; i++) {
        strncat(text, i ? " " : "", size - strlen(text) - 1);
        strncat(text, cube->variables[i].name, size - strlen(text) - 1);
    }
    return text;
}

#endif
