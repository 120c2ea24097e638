/* squall info: the structure of a dataset, in the shape that users of ncdump and xarray know. */
#include "attributes.h"
#include "commands.h"
#include "grid.h"
#include "open.h"
#include "output.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH_MOST = 60 };

/* 0 where the elements' size is not known: a type that is only listed. */
static uint64_t array_bytes(const struct squall_array_info *info)
{
    uint64_t bytes = info->element_bytes;
    for (unsigned d = 0; d < info->rank; d++)
        bytes *= info->shape[d];
    return bytes;
}

static bool is_coordinate(const struct squall_array_info *info)
{
    return info->rank == 1 && !strcmp(info->name, info->dims[0]);
}

/* Dimensions in the order in which arrays name them first. */
static void print_dimensions(const squall_dataset *ds, size_t count)
{
    const char *seen[256];
    size_t seen_count = 0;
    puts("dimensions:");
    for (size_t i = 0; i < count; i++) {
        struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, i));
        for (unsigned d = 0; d < info.rank; d++) {
            size_t k = 0;
            while (k < seen_count && strcmp(seen[k], info.dims[d]))
                k++;
            if (k < seen_count || seen_count == sizeof seen / sizeof *seen || !info.dims[d][0])
                continue;
            seen[seen_count++] = info.dims[d];
            printf("  %-28s %" PRIu64 "\n", info.dims[d], info.shape[d]);
        }
    }
}

static void print_lengths(const struct squall_array_info *info, const uint64_t *lengths, bool named)
{
    fputc('(', stdout);
    for (unsigned d = 0; d < info->rank; d++)
        printf("%s%s%s%" PRIu64, d ? ", " : "", named ? info->dims[d] : "", named && info->dims[d][0] ? "=" : "", lengths[d]);
    fputc(')', stdout);
}

static void print_array(const struct squall_array_info *info, int name_width, bool verbose)
{
    char size[SHORT_TEXT_BYTES];
    printf("%s %-*s %-8s ", is_coordinate(info) ? "*" : " ", name_width, info->name, info->type_name);
    print_lengths(info, info->shape, true);
    fputs("  chunks ", stdout);
    print_lengths(info, info->chunks, false);
    if (info->shards) {
        fputs(" in shards ", stdout);
        print_lengths(info, info->shards, false);
    }
    printf("  %s  %s\n", info->codecs, size_text(array_bytes(info), size));
    if (info->unsupported)
        printf("      not readable: %s\n", info->unsupported);
    if (verbose) {
        printf("      fill value %s\n", info->fill_value);
        attributes_print(info->attributes, info->name, 6);
    }
}

static void print_grid(const struct grid *g)
{
    printf("grid: %s, ", g->type);
    if (g->rank == 2)
        printf("%" PRIu64 " x %" PRIu64, g->shape[0], g->shape[1]);
    else
        printf("%" PRIu64 " points", g->shape[0]);
    bool crs_says_more = g->crs[0] && strcmp(g->crs, g->type) != 0;
    printf("%s%s\n", crs_says_more ? ", " : "", crs_says_more ? g->crs : "");
    for (unsigned i = 0; i < g->axis_count; i++) {
        const struct axis *axis = &g->axes[i];
        printf("  %-28s %.10g to %.10g", axis->name, axis->first, axis->last);
        if (!isnan(axis->spacing))
            printf(" by %.6g", axis->spacing);
        printf("%s%s\n", axis->units[0] ? " " : "", axis->units);
    }
}

static void print_text(const squall_dataset *ds, const struct grid_list *grids, const char *path, bool verbose)
{
    struct squall_dataset_info info = squall_dataset_info(ds);
    uint64_t bytes = 0;
    size_t width = 0;
    char size[SHORT_TEXT_BYTES];
    for (size_t i = 0; i < info.array_count; i++) {
        struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        bytes += array_bytes(&a);
        width = strlen(a.name) > width ? strlen(a.name) : width;
    }
    printf("%s: %s, %zu array%s, %s in memory\n", path, info.format, info.array_count, info.array_count == 1 ? "" : "s",
           size_text(bytes, size));
    if (info.array_count > 0) {
        print_dimensions(ds, info.array_count);
        puts("arrays (* coordinate of its dimension):");
    }
    for (size_t i = 0; i < info.array_count; i++) {
        struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        print_array(&a, width < NAME_WIDTH_MOST ? (int)width : NAME_WIDTH_MOST, verbose);
    }
    for (size_t i = 0; i < grids->count; i++)
        print_grid(&grids->grids[i]);
    puts("attributes:");
    attributes_print(info.attributes, "", 2);
    for (size_t i = 0; i < info.group_count; i++) {
        struct squall_group_info group = squall_dataset_group(ds, i);
        printf("group %s\n", group.name);
        attributes_print(group.attributes, group.name, 2);
    }
}

static void print_json_lengths(const char *key, const struct squall_array_info *info, const uint64_t *lengths)
{
    printf(", \"%s\": [", key);
    for (unsigned d = 0; d < info->rank; d++)
        printf("%s%" PRIu64, d ? ", " : "", lengths[d]);
    fputc(']', stdout);
}

/* Zarr writes a NaN among numbers as a text. */
static void print_fill_value(const struct squall_array_info *info)
{
    static const char *const WORDS[] = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
    const bool is_float = info->type == SQUALL_FLOAT16 || info->type == SQUALL_FLOAT32 || info->type == SQUALL_FLOAT64;
    for (size_t i = 0; is_float && i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(info->fill_value, WORDS[i])) {
            fputs("null", stdout);
            return;
        }
    print_strict_json(info->fill_value);
}

static void print_json_array(const struct squall_array_info *info)
{
    fputs("  {\"name\": ", stdout);
    print_json_string(stdout, info->name);
    fputs(", \"type\": ", stdout);
    print_json_string(stdout, info->type_name);
    fputs(", \"dims\": [", stdout);
    for (unsigned d = 0; d < info->rank; d++) {
        fputs(d ? ", " : "", stdout);
        print_json_string(stdout, info->dims[d]);
    }
    fputc(']', stdout);
    print_json_lengths("shape", info, info->shape);
    print_json_lengths("chunks", info, info->chunks);
    if (info->shards)
        print_json_lengths("shards", info, info->shards);
    fputs(", \"codecs\": ", stdout);
    print_json_string(stdout, info->codecs);
    printf(", \"bytes\": %" PRIu64 ", \"fill_value\": ", array_bytes(info));
    print_fill_value(info);
    fputs(", \"attributes\": ", stdout);
    print_strict_json(info->attributes);
    fputs(", \"unsupported\": ", stdout);
    print_json_string(stdout, info->unsupported);
    fputc('}', stdout);
}

static void print_json_grid(const struct grid *g)
{
    fputs("  {\"type\": ", stdout);
    print_json_string(stdout, g->type);
    fputs(", \"dims\": [", stdout);
    for (unsigned d = 0; d < g->rank; d++) {
        fputs(d ? ", " : "", stdout);
        print_json_string(stdout, g->dims[d]);
    }
    fputs("], \"shape\": [", stdout);
    for (unsigned d = 0; d < g->rank; d++)
        printf("%s%" PRIu64, d ? ", " : "", g->shape[d]);
    fputs("], \"crs\": ", stdout);
    print_json_string(stdout, g->crs[0] ? g->crs : NULL);
    fputs(", \"axes\": [", stdout);
    for (unsigned i = 0; i < g->axis_count; i++) {
        const struct axis *axis = &g->axes[i];
        fputs(i ? ", {\"name\": " : "{\"name\": ", stdout);
        print_json_string(stdout, axis->name);
        fputs(", \"units\": ", stdout);
        print_json_string(stdout, axis->units[0] ? axis->units : NULL);
        fputs(", \"first\": ", stdout);
        print_json_double(stdout, axis->first);
        fputs(", \"last\": ", stdout);
        print_json_double(stdout, axis->last);
        fputs(", \"spacing\": ", stdout);
        print_json_double(stdout, axis->spacing);
        fputc('}', stdout);
    }
    fputs("]}", stdout);
}

static void print_json(const squall_dataset *ds, const struct grid_list *grids, const char *path)
{
    struct squall_dataset_info info = squall_dataset_info(ds);
    fputs("{\"path\": ", stdout);
    print_json_string(stdout, path);
    printf(", \"format\": \"%s\", \"attributes\": ", info.format);
    print_strict_json(info.attributes);
    fputs(",\n \"arrays\": [\n", stdout);
    for (size_t i = 0; i < info.array_count; i++) {
        struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        print_json_array(&a);
        puts(i + 1 < info.array_count ? "," : "");
    }
    fputs(" ],\n \"groups\": [\n", stdout);
    for (size_t i = 0; i < info.group_count; i++) {
        struct squall_group_info group = squall_dataset_group(ds, i);
        fputs("  {\"name\": ", stdout);
        print_json_string(stdout, group.name);
        fputs(", \"attributes\": ", stdout);
        print_strict_json(group.attributes);
        printf("}%s\n", i + 1 < info.group_count ? "," : "");
    }
    fputs(" ],\n \"grids\": [\n", stdout);
    for (size_t i = 0; i < grids->count; i++) {
        print_json_grid(&grids->grids[i]);
        puts(i + 1 < grids->count ? "," : "");
    }
    fputs(" ],\n \"problems\": [", stdout);
    for (size_t i = 0; i < info.problem_count; i++) {
        fputs(i ? ", " : "", stdout);
        print_json_string(stdout, squall_dataset_problem(ds, i));
    }
    if (grids->problem.message[0]) {
        fputs(info.problem_count ? ", " : "", stdout);
        print_json_string(stdout, grids->problem.message);
    }
    puts("]}");
}

int run_info(const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    int code = EXIT_DONE;
    struct grid_list grids = {0};
    if (dataset_open(ctx, a, a->positional.items, 1, &ds, &err) || grid_list_make(ds, &grids, &err)) {
        code = fail_with(&err);
    } else {
        if (a->json)
            print_json(ds, &grids, a->positional.items[0]);
        else
            print_text(ds, &grids, a->positional.items[0], a->verbose);
        size_t problems = squall_dataset_info(ds).problem_count;
        for (size_t i = 0; i < problems && !a->json; i++)
            warn_line("%s", squall_dataset_problem(ds, i));
        if (grids.problem.message[0] && !a->json)
            warn_line("%s", grids.problem.message);
        code = problems || grids.problem.message[0] ? EXIT_INPUTS : EXIT_DONE;
    }
    grid_list_done(&grids);
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return code;
}
