/*
 * Prints the index of GRIB files, a JSON object a field and one a problem, a line each: for tests that compare it with another library's keys.
 * usage: grib_index THREADS FILE...
 */
#include "base/json.h"
#include "base/text.h"
#include "format/grib/index.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add(struct sq_json *line, const char *key, struct sq_json *value)
{
    if (sq_json_set(line, key, value))
        exit(1);
}

static void add_number(struct sq_json *line, const char *key, double value)
{
    add(line, key, isnan(value) ? sq_json_new_null() : sq_json_new_double(value));
}

static void add_int(struct sq_json *line, const char *key, int64_t value)
{
    add(line, key, sq_json_new_int(value));
}

static void add_surface(struct sq_json *line, const char *key, const struct sq_grib_surface *s)
{
    struct sq_json *surface = sq_json_new_object();
    add_int(surface, "type", s->type);
    if (s->has_value) {
        add_int(surface, "scale", s->scale);
        add_int(surface, "value", s->value);
    }
    add(line, key, surface);
}

static void print_line(const struct sq_json *line)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (sq_json_write(line, false, &text, NULL))
        exit(1);
    puts(text.data);
}

static void print_field(const struct sq_grib_index *index, size_t i)
{
    const struct sq_grib_field *f = &index->fields[i];
    const struct sq_grib_product *p = &index->products[f->product];
    SQ_CLEANUP_JSON struct sq_json *line = sq_json_new_object();
    add(line, "path", sq_json_new_string(index->files[f->file].path));
    add_int(line, "offset", (int64_t)f->offset);
    add_int(line, "in_message", f->in_message);
    add_int(line, "product", f->product);
    add_int(line, "grid", f->grid);
    add_int(line, "packing", f->packing);
    add_int(line, "reference", f->times.reference_time_s);
    add_int(line, "begin", f->times.step_begin_s);
    add_int(line, "end", f->times.step_end_s);
    add_int(line, "number", f->times.number);
    add(line, "stepType", sq_json_new_string(sq_grib_step_type_name(p->step_type)));
    add(line, "shortName", sq_json_new_string(index->names[f->product].short_name));
    add_int(line, "centre", p->centre);
    add_int(line, "subcentre", p->subcentre);
    add_int(line, "template", p->template_number);
    add_int(line, "process", p->statistical_process);
    add_surface(line, "first", &p->first);
    add_surface(line, "second", &p->second);
    add_int(line, "ensemble", p->ensemble_kind);
    add_int(line, "derived", p->derived_forecast);
    add_int(line, "probability", p->probability_type);
    add_number(line, "lower", p->lower_limit);
    add_number(line, "upper", p->upper_limit);
    add_int(line, "percentile", p->percentile);
    add(line, "unsupported", p->unsupported ? sq_json_new_string(p->unsupported) : sq_json_new_null());
    print_line(line);
}

int main(int argc, char **argv)
{
    struct sq_grib_index index;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (argc < 3)
        return 2;
    if (sq_grib_index_build((const char *const *)argv + 2, (size_t)argc - 2, (unsigned)atoi(argv[1]), NULL, NULL, &index, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < index.field_count; i++)
        print_field(&index, i);
    for (size_t i = 0; i < index.problem_count; i++) {
        SQ_CLEANUP_JSON struct sq_json *line = sq_json_new_object();
        add(line, "path", sq_json_new_string(index.files[index.problems[i].file].path));
        add(line, "problem", sq_json_new_string(index.problems[i].message));
        print_line(line);
    }
    sq_grib_index_done(&index);
    return 0;
}
