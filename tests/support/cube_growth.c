/*
 * How time and memory of building a cube grow with the number of fields: one line a size, "fields seconds index_bytes peak_bytes". Each size is a process of its
 * own, so that its peak is its own. usage: cube_growth COUNT...
 */
#include "base/memory.h"
#include "cube/cube.h"
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PARAMETERS = 20, LEVELS = 10, STEPS = 40, PRODUCTS = PARAMETERS * LEVELS };

/* An archive: runs of 40 steps of 20 parameters on 10 levels, every other parameter a total since the start. */
static void make_fields(struct sq_grib_index *index, size_t count)
{
    index->fields = sq_alloc_zero(count, sizeof *index->fields);
    index->field_count = count;
    for (size_t i = 0; i < count; i++) {
        struct sq_grib_field *f = &index->fields[i];
        size_t run = i / (PRODUCTS * STEPS), step = i / PRODUCTS % STEPS;
        *f = (struct sq_grib_field){.offset = i * 100, .size_bytes = 100, .product = (uint32_t)(i % PRODUCTS)};
        f->times = (struct sq_grib_times){.reference_time_s = (int64_t)run * 21600, .step_end_s = (int64_t)step * 3600, .number = -1};
        f->times.step_begin_s = f->product / LEVELS % 2 ? 0 : f->times.step_end_s;
    }
}

static void make_tables(struct sq_grib_index *index)
{
    static const uint8_t section[72] = {0, 0, 0, 72,       3,        0,         0,        0,           0,    6,    0, 0,
                                        0, 0, 6, [33] = 3, [37] = 2, [54] = 48, [63] = 0, [66] = 0x1e, 0x84, 0x80, 0};
    index->products = sq_alloc_zero(PRODUCTS, sizeof *index->products);
    index->names = sq_alloc_zero(PRODUCTS, sizeof *index->names);
    index->levels = sq_alloc_zero(PRODUCTS, sizeof *index->levels);
    index->grids = sq_alloc_zero(1, sizeof *index->grids);
    index->packings = sq_alloc_zero(1, sizeof *index->packings);
    index->files = sq_alloc_zero(1, sizeof *index->files);
    for (uint32_t i = 0; i < PRODUCTS; i++) {
        unsigned parameter = i / LEVELS;
        index->products[i] = (struct sq_grib_product){.raw = {.edition = 2},
                                                      .step_type = parameter % 2 ? SQ_GRIB_ACCUM : SQ_GRIB_INSTANT,
                                                      .ensemble_kind = -1,
                                                      .derived_forecast = -1,
                                                      .probability_type = -1,
                                                      .percentile = -1,
                                                      .lower_limit = NAN,
                                                      .upper_limit = NAN};
        index->names[i] =
            (struct sq_grib_names){.param_id = (int32_t)parameter + 1, .name = "", .units = "K", .level_type = "isobaricInhPa"};
        snprintf(index->names[i].short_name, sizeof index->names[i].short_name, "p%u", parameter);
        snprintf(index->names[i].cf_var_name, sizeof index->names[i].cf_var_name, "p%u", parameter);
        index->levels[i][0] = 100.0 * (i % LEVELS + 1);
        index->levels[i][1] = NAN;
    }
    index->product_count = PRODUCTS;
    index->packing_count = index->file_count = 1;
    index->files[0].path = sq_strdup("archive.grib");
    if (sq_grib_grid_parse(2, 98, section, sizeof section, &index->grids[0], NULL) == 0)
        index->grid_count = 1;
}

static size_t peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

static int measure(size_t count)
{
    struct sq_grib_index index = {0};
    struct sq_cube_options options = {0};
    struct sq_cube cube;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct timespec begin, end;
    size_t before = peak_bytes();
    make_tables(&index);
    make_fields(&index, count);
    size_t filled = peak_bytes();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (sq_cube_build(&index, &options, &cube, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (cube.place_count != count)
        return 1;
    printf("%zu %.6f %zu %zu\n", count, (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9, filled - before,
           peak_bytes() - before);
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            status = measure(strtoull(argv[i], NULL, 10));
            fflush(stdout);
            _exit(status);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
            return 1;
    }
    return 0;
}
