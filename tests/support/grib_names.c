/*
 * Prints what each field of the files is called, a JSON object a line: for tests that compare names with another library's.
 * usage: grib_names FILE...
 */
#include "base/error_internal.h"
#include "base/json.h"
#include "base/text.h"
#include "format/grib/names.h"
#include "io/source.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add_text(struct sq_json *line, const char *key, const char *value)
{
    if (sq_json_set(line, key, value ? sq_json_new_string(value) : sq_json_new_null()))
        exit(1);
}

static void add_number(struct sq_json *line, const char *key, double value)
{
    if (sq_json_set(line, key, isnan(value) ? sq_json_new_null() : sq_json_new_double(value)))
        exit(1);
}

static void print_line(const struct sq_grib_product *product)
{
    struct sq_grib_names names;
    double first, second;
    sq_grib_names_of(product, &names);
    sq_grib_levels_of(product, &names, &first, &second);
    SQ_CLEANUP_JSON struct sq_json *line = sq_json_new_object();
    add_number(line, "paramId", names.param_id);
    add_text(line, "shortName", names.short_name);
    add_text(line, "name", names.name);
    add_text(line, "units", names.units);
    add_text(line, "cfName", names.cf_name);
    add_text(line, "cfVarName", names.cf_var_name);
    add_text(line, "typeOfLevel", names.level_type);
    add_number(line, "topLevel", first);
    add_number(line, "bottomLevel", second);
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (sq_json_write(line, false, &text, NULL))
        exit(1);
    puts(text.data);
}

static int print_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    (void)user;
    SQ_CLEANUP_TEXT struct sq_text key = SQ_TEXT_INIT;
    struct sq_grib_times times;
    SQ_TRY(sq_grib_product_part(found, &key, &times, err));
    struct sq_grib_product product;
    sq_grib_product_of(key.data, NULL, &product);
    print_line(&product);
    return 0;
}

static int ignore_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    (void)user, (void)offset, (void)what, (void)err;
    return 0;
}

int main(int argc, char **argv)
{
    const struct sq_grib_scan_events events = {print_field, ignore_problem, NULL};
    for (int i = 1; i < argc; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        struct sq_source *source;
        if (sq_source_open_file(argv[i], &source, &err) || sq_grib_scan(source, &events, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        sq_source_close(source);
    }
    return 0;
}
