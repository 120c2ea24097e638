/* squall info: the structure of a dataset, in the shape that users of ncdump and xarray know. */
#include "commands.h"
#include "output.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH_MOST = 60 };

/* 0 where the elements' size is not known: a type that is only listed. */
static uint64_t array_bytes(const struct squall_array_info *info)
{
    bool foreign = info->unsupported && strcmp(info->type_name, squall_type_name(info->type)) != 0;
    uint64_t bytes = foreign ? 0 : squall_type_size(info->type);
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
    printf("  %s  %s\n", info->codecs, size_text(array_bytes(info), size));
    if (info->unsupported)
        printf("      not readable: %s\n", info->unsupported);
    if (verbose)
        printf("      fill value %s  attributes %s\n", info->fill_value, info->attributes);
}

static void print_text(const squall_dataset *ds, const char *path, bool verbose)
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
    if (info.array_count == 0)
        return; /* the problems say why */
    print_dimensions(ds, info.array_count);
    puts("arrays (* coordinate of its dimension):");
    for (size_t i = 0; i < info.array_count; i++) {
        struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        print_array(&a, width < NAME_WIDTH_MOST ? (int)width : NAME_WIDTH_MOST, verbose);
    }
    printf("attributes: %s\n", info.attributes);
}

static void print_json_lengths(const char *key, const struct squall_array_info *info, const uint64_t *lengths)
{
    printf(", \"%s\": [", key);
    for (unsigned d = 0; d < info->rank; d++)
        printf("%s%" PRIu64, d ? ", " : "", lengths[d]);
    fputc(']', stdout);
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
    fputs(", \"codecs\": ", stdout);
    print_json_string(stdout, info->codecs);
    printf(", \"bytes\": %" PRIu64 ", \"fill_value\": %s, \"attributes\": %s, \"unsupported\": ", array_bytes(info), info->fill_value,
           info->attributes);
    print_json_string(stdout, info->unsupported);
    fputc('}', stdout);
}

static void print_json(const squall_dataset *ds, const char *path)
{
    struct squall_dataset_info info = squall_dataset_info(ds);
    fputs("{\"path\": ", stdout);
    print_json_string(stdout, path);
    printf(", \"format\": \"%s\", \"attributes\": %s,\n \"arrays\": [\n", info.format, info.attributes);
    for (size_t i = 0; i < info.array_count; i++) {
        struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        print_json_array(&a);
        puts(i + 1 < info.array_count ? "," : "");
    }
    fputs(" ],\n \"problems\": [", stdout);
    for (size_t i = 0; i < info.problem_count; i++) {
        fputs(i ? ", " : "", stdout);
        print_json_string(stdout, squall_dataset_problem(ds, i));
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
    if (squall_dataset_open(ctx, a->positional.items[0], &ds, &err)) {
        code = fail_with(&err);
    } else {
        if (a->json)
            print_json(ds, a->positional.items[0]);
        else
            print_text(ds, a->positional.items[0], a->verbose);
        size_t problems = squall_dataset_info(ds).problem_count;
        for (size_t i = 0; i < problems && !a->json; i++)
            warn_line("%s", squall_dataset_problem(ds, i));
        code = problems ? EXIT_INPUTS : EXIT_DONE;
    }
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return code;
}
