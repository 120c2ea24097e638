/* squall get: values of an array or of one GRIB field, as CSV, JSON or .npy. */
#include "attributes.h"
#include "box.h"
#include "commands.h"
#include "coordinate.h"
#include "element.h"
#include "npy.h"
#include "open.h"
#include "output.h"
#include "structure.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read, and what labels its rows in CSV. */
struct block {
    struct squall_array_info info; /* name and type of what was read; its shape is the block's own */
    unsigned rank;
    uint64_t shape[SQUALL_RANK_MAX];
    const char *dims[SQUALL_RANK_MAX];
    char dim_texts[SQUALL_RANK_MAX][DIM_TEXT_BYTES];
    struct coordinate labels[SQUALL_RANK_MAX]; /* along each dimension, whole; COORDINATE_NONE: indices */
    uint64_t start[SQUALL_RANK_MAX], step[SQUALL_RANK_MAX];
    char units[COORDINATE_UNITS_BYTES], calendar[COORDINATE_UNITS_BYTES]; /* where the values are counts of time; else "" */
    void *values;
    size_t count;
};

static void block_done(struct block *b)
{
    elements_free(b->info.type, b->values, b->count);
    free(b->values);
    for (unsigned d = 0; d < b->rank; d++)
        coordinate_done(&b->labels[d]);
}

static void print_label(FILE *out, const struct block *b, unsigned d, uint64_t index, bool json)
{
    char text[SHORT_TEXT_BYTES];
    const struct coordinate *c = &b->labels[d];
    uint64_t place = b->start[d] + index * b->step[d];
    if (c->kind == COORDINATE_NONE) {
        fprintf(out, "%llu", (unsigned long long)place);
        return;
    }
    const char *label = coordinate_label(c, place, text);
    if (json && c->kind == COORDINATE_NUMBER)
        fputs(isfinite(c->numbers[place]) ? label : "null", out);
    else if (json)
        print_json_string(out, label);
    else
        print_csv_text(out, label, strlen(label));
}

/* Numbers that count time are dates, as labels are; those that are no date stay what they are. */
static void print_value(FILE *out, const struct block *b, size_t index, enum element_form form)
{
    char date[SQUALL_DATE_BYTES];
    double count;
    const bool counts = b->units[0] && element_number(&b->info, b->values, index, &count);
    if (counts && isnan(count))
        fputs(form == ELEMENT_JSON ? "null" : "NaT", out);
    else if (counts && !squall_date_of_count(b->units, b->calendar, count, date, NULL))
        fprintf(out, form == ELEMENT_JSON ? "\"%s\"" : "%s", date);
    else
        element_print(out, &b->info, b->values, index, form);
}

static void next_place(const struct block *b, uint64_t *at)
{
    for (unsigned d = b->rank; d-- > 0 && ++at[d] == b->shape[d];)
        at[d] = 0;
}

/* A coordinate's values label its own dimension: once is enough, but of steps, whose labels have the unit. */
static bool labels_itself(const struct block *b)
{
    return b->rank == 1 && b->labels[0].kind != COORDINATE_NONE && b->labels[0].kind != COORDINATE_SPAN &&
           !strcmp(b->dims[0], b->info.name);
}

static void write_csv(FILE *out, const struct block *b)
{
    uint64_t at[SQUALL_RANK_MAX] = {0};
    const unsigned labels = labels_itself(b) ? 0 : b->rank;
    for (unsigned d = 0; d < labels; d++)
        fprintf(out, "%s,", b->dims[d]);
    if (is_structure(b->info.numpy_type))
        structure_print_names(out, b->info.numpy_type, b->info.name);
    else
        fputs(b->info.name, out);
    fputc('\n', out);
    for (size_t i = 0; i < b->count && !ferror(out); i++) {
        for (unsigned d = 0; d < labels; d++) {
            print_label(out, b, d, at[d], false);
            fputc(',', out);
        }
        print_value(out, b, i, ELEMENT_CSV);
        fputc('\n', out);
        next_place(b, at);
    }
}

/* The same rows as objects. */
static void write_json(const struct block *b)
{
    uint64_t at[SQUALL_RANK_MAX] = {0};
    for (size_t i = 0; i < b->count && !ferror(stdout); i++) {
        fputs(i ? ",\n {" : "[\n {", stdout);
        for (unsigned d = 0; d < b->rank; d++) {
            print_json_string(stdout, b->dims[d]);
            fputs(": ", stdout);
            print_label(stdout, b, d, at[d], true);
            fputs(", ", stdout);
        }
        fputs("\"value\": ", stdout);
        print_value(stdout, b, i, ELEMENT_JSON);
        fputc('}', stdout);
        next_place(b, at);
    }
    fputs(b->count ? "\n]\n" : "[]\n", stdout);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

static int write_block(const struct arguments *a, const struct block *b)
{
    const char *path = a->output ? a->output : "-";
    if (!strcmp(path, "-")) {
        if (a->json)
            write_json(b);
        else
            write_csv(stdout, b);
        return EXIT_DONE;
    }
    if (ends_with(path, ".npy"))
        return npy_write(path, &b->info, b->rank, b->shape, b->values) ? EXIT_DONE : EXIT_FAILED;
    FILE *f = fopen(path, "we");
    if (!f) {
        complain("squall: %s: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    write_csv(f, b);
    bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        complain("squall: %s: writing failed: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static bool output_is_known(const struct arguments *a)
{
    const char *path = a->output ? a->output : "-";
    if (a->json && strcmp(path, "-") != 0)
        return complain("squall get: --json is for stdout; -o %s says its own format", path);
    return !strcmp(path, "-") || ends_with(path, ".npy") || ends_with(path, ".csv") ||
           complain("squall get: -o %s: FILE.npy, FILE.csv or - is wanted", path);
}

static int get_field(const struct arguments *a, squall_context *ctx)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_grib_list *list = NULL;
    struct block b = {.info = {.type = SQUALL_FLOAT32, .numpy_type = "<f4", .element_bytes = sizeof(float)}, .step = {1, 1}};
    int code = EXIT_FAILED;
    if (squall_grib_list_open(ctx, a->positional.items, 1, &list, &err))
        return fail_with(&err);
    size_t count = squall_grib_list_count(list);
    if (a->field > count) {
        for (size_t i = 0; i < squall_grib_list_problem_count(list); i++)
            warn_line("%s: %s", squall_grib_list_problem(list, i).path, squall_grib_list_problem(list, i).message);
        complain("squall get: %s has %zu fields, no number %u", a->positional.items[0], count, a->field);
        goto done;
    }
    struct squall_grib_field field = squall_grib_list_field(list, a->field - 1);
    b.info.name = field.short_name;
    b.rank = field.rows ? 2 : 1;
    b.shape[0] = field.rows ? field.rows : field.point_count;
    b.shape[1] = field.columns;
    b.dims[0] = field.rows ? "row" : "values";
    b.dims[1] = "column";
    b.count = field.point_count;
    b.values = malloc(field.point_count * sizeof(float) + 1);
    if (!b.values)
        complain("squall: out of memory for %llu points", (unsigned long long)field.point_count);
    else if (squall_grib_list_read(list, a->field - 1, b.values, &err))
        code = fail_with(&err);
    else
        code = write_block(a, &b);
done:
    block_done(&b);
    squall_grib_list_close(list);
    return code;
}

/* Before anything is read. */
static bool npy_holds(const struct arguments *a, const squall_array *array)
{
    const struct squall_array_info info = squall_array_info(array);
    if (!a->output || !ends_with(a->output, ".npy") || !info.sequence_type)
        return true;
    return complain("squall get: %s: its elements %s, %s, which .npy files cannot hold; use -o FILE.csv, or --json", info.name,
                    is_structure(info.numpy_type) ? "have parts of no fixed size" : "are sequences", info.type_name);
}

/* Shape and labels of what the box leaves. */
static int label_block(squall_dataset *ds, const struct squall_array_info *info, const struct box *box, struct block *b,
                       struct squall_error *err)
{
    b->count = 1;
    for (unsigned d = 0; d < info->rank; d++) {
        b->count *= box->selection.count[d];
        if (box->dropped[d])
            continue;
        unsigned to = b->rank++;
        b->dims[to] = dim_name(info, d, b->dim_texts[to]);
        b->shape[to] = box->selection.count[d];
        b->start[to] = box->selection.start[d];
        b->step[to] = box->selection.step[d];
        int status = coordinate_read(ds, info->name, info->dims[d], info->shape[d], &b->labels[to], err);
        if (status)
            return status;
    }
    return 0;
}

/* What is not there, or reads as missing, may be what was damaged or left out. */
static void print_problems(const squall_dataset *ds)
{
    size_t count = ds ? squall_dataset_info(ds).problem_count : 0;
    for (size_t i = 0; i < count; i++)
        warn_line("%s", squall_dataset_problem(ds, i));
}

static int read_block(squall_dataset *ds, squall_array *array, const struct box *box, struct block *b, struct squall_error *err)
{
    struct squall_array_info info = squall_array_info(array);
    b->info = info;
    attribute_text(info.attributes, "units", b->units, sizeof b->units);
    attribute_text(info.attributes, "calendar", b->calendar, sizeof b->calendar);
    if (!is_time(b->units, b->calendar))
        b->units[0] = 0;
    int status = label_block(ds, &info, box, b, err);
    if (status)
        return status;
    b->values = calloc(b->count ? b->count : 1, info.element_bytes ? info.element_bytes : 1);
    if (!b->values) {
        *err = (struct squall_error){SQUALL_ENOMEM, 0, "out of memory for the values; choose fewer with -s"};
        return SQUALL_ENOMEM;
    }
    status = squall_array_read(array, &box->selection, b->values, NULL, err);
    if (status)
        b->info.type = SQUALL_BOOL; /* what strings there are after a failure is unspecified: nothing to free */
    return status;
}

static int get_array(const struct arguments *a, squall_context *ctx)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    squall_array *array;
    struct box box;
    struct block b = {0};
    int code = EXIT_USAGE;
    if (dataset_open(ctx, a, a->positional.items, 1, &ds, &err) || array_find(ds, a->positional.items[1], &array, &err)) {
        print_problems(ds);
        code = fail_with(&err);
    } else if (npy_holds(a, array) && box_parse(ds, array, &a->selection, &a->nearest, &box)) {
        code = read_block(ds, array, &box, &b, &err) ? fail_with(&err) : write_block(a, &b);
        if (code == EXIT_DONE && squall_dataset_info(ds).problem_count) {
            print_problems(ds);
            code = EXIT_INPUTS;
        }
    }
    block_done(&b);
    squall_dataset_close(ds);
    return code;
}

static bool makes_sense(const struct arguments *a)
{
    const char *path = a->positional.items[0];
    if (!output_is_known(a))
        return false;
    if (a->field && a->positional.count != 1)
        return complain("squall get: --field takes the place of NAME");
    if (!a->field && a->positional.count != 2)
        return complain("squall get: which array? squall info %s names them; or --field N for one GRIB field", path);
    if (a->field && (a->selection.count || a->nearest.count))
        return complain("squall get: -s and --nearest choose from an array; --field gives a field whole");
    return true;
}

int run_get(const struct arguments *a)
{
    if (!makes_sense(a))
        return EXIT_USAGE;
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    int code = a->field ? get_field(a, ctx) : get_array(a, ctx);
    squall_context_free(ctx);
    return code;
}
