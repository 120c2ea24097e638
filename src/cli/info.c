/* squall info: the structure of a dataset, in the shape that users of ncdump and xarray know. */
#include "attributes.h"
#include "commands.h"
#include "dimensions.h"
#include "grid.h"
#include "open.h"
#include "output.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH_MOST = 60, NAME_COLUMNS = 30, TYPE_COLUMNS_MOST = 40, NAME_BYTES = 4096 };

/* 0 where the elements' size is not known: a type that is only listed. */
static uint64_t array_bytes(const struct squall_array_info *info)
{
    uint64_t bytes = info->element_bytes;
    for (unsigned d = 0; d < info->rank; d++)
        bytes *= info->shape[d];
    return bytes;
}

/* Without its group. */
static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_coordinate(const struct squall_array_info *info)
{
    return info->rank == 1 && !strcmp(base_name(info->name), info->dims[0]);
}

/* A coordinate's first or last label; of numbers ten digits say enough. */
static void print_end(const struct dimension *d, const char *label)
{
    if (d->is_quoted)
        fputs(label, stdout);
    else
        printf("%.10g", strtod(label, NULL));
}

static void print_dimension(const struct dimension *d)
{
    const int name = printf("  %.*s%s", d->group_length, d->array, d->name);
    printf("%*s %" PRIu64, name < NAME_COLUMNS ? NAME_COLUMNS - name : 0, "", d->length);
    if (d->first[0]) {
        fputs("  ", stdout);
        print_end(d, d->first);
        fputs(d->length > 1 ? " to " : "", stdout);
        if (d->length > 1)
            print_end(d, d->last);
        printf("%s%s%s%s", d->spacing[0] ? " by " : "", d->spacing, d->units[0] ? " " : "", d->units);
    }
    putchar('\n');
}

static void print_lengths(const struct squall_array_info *info, const uint64_t *lengths, bool named)
{
    fputc('(', stdout);
    for (unsigned d = 0; d < info->rank; d++)
        printf("%s%s%s%" PRIu64, d ? ", " : "", named ? info->dims[d] : "", named && info->dims[d][0] ? "=" : "", lengths[d]);
    fputc(')', stdout);
}

/* Those of structures are long; -v has them whole. */
static void print_type(const char *type, bool verbose)
{
    if (verbose || strlen(type) <= TYPE_COLUMNS_MOST)
        printf(" %-8s ", type);
    else
        printf(" %.*s... ", TYPE_COLUMNS_MOST - 3, type);
}

static void print_array(const struct squall_array_info *info, int name_width, bool verbose)
{
    char size[SHORT_TEXT_BYTES];
    printf("%s %-*s", is_coordinate(info) ? "*" : " ", name_width, base_name(info->name));
    print_type(info->type_name, verbose);
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
        if (info->enum_names)
            printf("      names %s\n", info->enum_names);
        attributes_print(info->attributes, base_name(info->name), 6);
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

/* ---- groups ----------------------------------------------------------------------------------------------------------------------- */

/* An array, or a group that says something of itself, in the group that it is listed under. */
struct member {
    const char *group; /* the first group_length bytes are its path */
    size_t group_length;
    bool is_group;
    size_t index; /* among the dataset's arrays, or groups */
};

/* Groups by name, a group before those within it; in it its own attributes last. */
static int by_group(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    const size_t shorter = x->group_length < y->group_length ? x->group_length : y->group_length;
    for (size_t i = 0; i < shorter; i++)
        if (x->group[i] != y->group[i]) {
            const unsigned char p = (unsigned char)x->group[i], q = (unsigned char)y->group[i];
            return p == '/' ? -1 : q == '/' ? 1 : p < q ? -1 : 1;
        }
    if (x->group_length != y->group_length)
        return x->group_length < y->group_length ? -1 : 1;
    if (x->is_group != y->is_group)
        return x->is_group ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

/* *ret_count of them; NULL: out of memory. */
static struct member *members_by_group(const squall_dataset *ds, size_t *ret_count)
{
    const struct squall_dataset_info info = squall_dataset_info(ds);
    struct member *members = calloc(info.array_count + info.group_count + 1, sizeof *members);
    size_t count = 0;
    for (size_t i = 0; members && i < info.array_count; i++) {
        const char *name = squall_array_info(squall_dataset_array_at(ds, i)).name, *base = base_name(name);
        members[count++] = (struct member){name, base > name ? (size_t)(base - name) - 1 : 0, false, i};
    }
    for (size_t i = 0; members && i < info.group_count; i++) {
        const char *name = squall_dataset_group(ds, i).name;
        members[count++] = (struct member){name, strlen(name), true, i};
    }
    if (members)
        qsort(members, count, sizeof *members, by_group);
    *ret_count = count;
    return members;
}

static bool is_of_group(const struct member *m, const struct member *first)
{
    return m->group_length == first->group_length && !memcmp(m->group, first->group, first->group_length);
}

/* The members of one group, from the first; returns how many. */
static size_t print_members(const squall_dataset *ds, const struct member *members, size_t count, bool verbose)
{
    size_t width = 0, here = 0;
    for (; here < count && is_of_group(&members[here], members); here++) {
        const size_t length =
            members[here].is_group ? 0 : strlen(base_name(squall_array_info(squall_dataset_array_at(ds, members[here].index)).name));
        width = length > width ? length : width;
    }
    for (size_t i = 0; i < here; i++)
        if (members[i].is_group) {
            const struct squall_group_info group = squall_dataset_group(ds, members[i].index);
            attributes_print(group.attributes, group.name, 2);
        } else {
            const struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, members[i].index));
            print_array(&info, width < NAME_WIDTH_MOST ? (int)width : NAME_WIDTH_MOST, verbose);
        }
    return here;
}

static void print_summary(const squall_dataset *ds, const char *path)
{
    const struct squall_dataset_info info = squall_dataset_info(ds);
    uint64_t bytes = 0;
    char size[SHORT_TEXT_BYTES];
    for (size_t i = 0; i < info.array_count; i++) {
        const struct squall_array_info a = squall_array_info(squall_dataset_array_at(ds, i));
        bytes += array_bytes(&a);
    }
    printf("%s: %s, ", path, info.format);
    if (info.file_count > 1)
        printf("%zu files, ", info.file_count);
    printf("%zu array%s, ", info.array_count, info.array_count == 1 ? "" : "s");
    if (info.group_count > 0)
        printf("%zu group%s, ", info.group_count, info.group_count == 1 ? "" : "s");
    printf("%s in memory\n", size_text(bytes, size));
}

static bool print_text(const squall_dataset *ds, const struct grid_list *grids, const struct dimension_list *dimensions, const char *path,
                       bool verbose)
{
    size_t count;
    struct member *members = members_by_group(ds, &count);
    if (!members)
        return complain("squall: out of memory");
    print_summary(ds, path);
    fputs(dimensions->count ? "dimensions:\n" : "", stdout);
    for (size_t i = 0; i < dimensions->count; i++)
        print_dimension(&dimensions->dimensions[i]);
    size_t at = 0;
    if (count > 0 && members[0].group_length == 0) {
        puts("arrays (* coordinate of its dimension):");
        at = print_members(ds, members, count, verbose);
    }
    for (size_t i = 0; i < grids->count; i++)
        print_grid(&grids->grids[i]);
    if (attribute_next(&(const char *){squall_dataset_info(ds).attributes}, &(struct attribute){0}))
        puts("attributes:");
    attributes_print(squall_dataset_info(ds).attributes, "", 2);
    while (at < count) {
        printf("group %.*s\n", (int)members[at].group_length, members[at].group);
        at += print_members(ds, members + at, count - at, verbose);
    }
    free(members);
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------- */

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
    if (info->enum_names)
        printf(", \"enum_names\": %s", info->enum_names);
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

static void print_json_end(const char *key, const char *text, bool quoted)
{
    printf(", \"%s\": ", key);
    if (quoted || !text[0])
        print_json_string(stdout, text[0] ? text : NULL);
    else
        fputs(text, stdout);
}

static void print_json_dimension(const struct dimension *d)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s%s", d->group_length, d->array, d->name);
    fputs("  {\"name\": ", stdout);
    print_json_string(stdout, name);
    printf(", \"length\": %" PRIu64, d->length);
    print_json_end("first", d->first, d->is_quoted);
    print_json_end("last", d->last, d->is_quoted);
    print_json_end("spacing", d->spacing, true);
    print_json_end("units", d->units, true);
    putchar('}');
}

static void print_json(const squall_dataset *ds, const struct grid_list *grids, const struct dimension_list *dimensions, const char *path)
{
    struct squall_dataset_info info = squall_dataset_info(ds);
    fputs("{\"path\": ", stdout);
    print_json_string(stdout, path);
    printf(", \"format\": \"%s\", \"files\": %zu, \"attributes\": ", info.format, info.file_count);
    print_strict_json(info.attributes);
    fputs(",\n \"dimensions\": [\n", stdout);
    for (size_t i = 0; i < dimensions->count; i++) {
        print_json_dimension(&dimensions->dimensions[i]);
        puts(i + 1 < dimensions->count ? "," : "");
    }
    fputs(" ],\n \"arrays\": [\n", stdout);
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
    const char *const more[] = {grids->problem.message, dimensions->problem.message};
    bool first = info.problem_count == 0;
    for (size_t i = 0; i < 2; i++)
        if (more[i][0]) {
            fputs(first ? "" : ", ", stdout);
            print_json_string(stdout, more[i]);
            first = false;
        }
    puts("]}");
}

/* The exit code. */
static int print_dataset(const struct arguments *a, const squall_dataset *ds, const struct grid_list *grids,
                         const struct dimension_list *dimensions)
{
    const char *const more[] = {grids->problem.message, dimensions->problem.message};
    const size_t problems = squall_dataset_info(ds).problem_count;
    if (a->json)
        print_json(ds, grids, dimensions, a->positional.items[0]);
    else if (!print_text(ds, grids, dimensions, a->positional.items[0], a->verbose))
        return EXIT_FAILED;
    for (size_t i = 0; i < problems && !a->json; i++)
        warn_line("%s", squall_dataset_problem(ds, i));
    for (size_t i = 0; i < 2 && !a->json; i++)
        if (more[i][0])
            warn_line("%s", more[i]);
    return problems || more[0][0] || more[1][0] ? EXIT_INPUTS : EXIT_DONE;
}

int run_info(const struct arguments *a)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    struct grid_list grids = {0};
    struct dimension_list dimensions = {0};
    int status = dataset_open(ctx, a, a->positional.items, 1, &ds, &err);
    if (!status)
        status = grid_list_make(ds, &grids, &err);
    if (!status)
        status = dimension_list_make(ds, &grids, &dimensions, &err);
    const int code = status ? fail_with(&err) : print_dataset(a, ds, &grids, &dimensions);
    dimension_list_done(&dimensions);
    grid_list_done(&grids);
    squall_dataset_close(ds);
    squall_context_free(ctx);
    return code;
}
