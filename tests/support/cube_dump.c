/*
 * The cube of GRIB files as JSON, for tests: cube_dump [--select L] [--rename R] [--every S] [--stack] [--coarsen Y X] [--schema FILE] [--write-schema FILE]
 * [--places] FILE...
 */
#include "base/memory.h"
#include "cube/cube.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    struct sq_cube_options options;
    const char *select[64], *rename[64];
    const char *schema_path, *write_path;
    bool places;
};

static int fail(const struct squall_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

static struct sq_json *read_json(const char *path)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    struct sq_json *value = NULL;
    char buffer[4096];
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    for (size_t count; (count = fread(buffer, 1, sizeof buffer, file)) > 0;)
        sq_text_add_bytes(&text, buffer, count);
    fclose(file);
    return sq_json_parse(sq_text_string(&text), text.length, &value, NULL) ? NULL : value;
}

static void set(struct sq_json *object, const char *key, struct sq_json *value)
{
    if (sq_json_set(object, key, value))
        exit(1);
}

static void append(struct sq_json *array, struct sq_json *value)
{
    if (sq_json_append(array, value))
        exit(1);
}

static struct sq_json *variable_json(const struct sq_cube_variable *v)
{
    struct sq_json *o = sq_json_new_object(), *dims = sq_json_new_array(), *shape = sq_json_new_array();
    for (unsigned d = 0; d < v->rank; d++) {
        append(dims, sq_json_new_string(v->dims[d]));
        append(shape, sq_json_new_uint(v->shape[d]));
    }
    set(o, "name", sq_json_new_string(v->name));
    set(o, "type", sq_json_new_string(v->type == SQUALL_FLOAT64 ? "float64" : "float32"));
    set(o, "grid", sq_json_new_uint(v->grid));
    set(o, "dims", dims);
    set(o, "shape", shape);
    set(o, "fields", sq_json_new_uint(v->field_count));
    set(o, "attributes", sq_json_share(v->attributes));
    return o;
}

static struct sq_json *element(const struct sq_cube_coordinate *c, uint64_t i)
{
    switch (c->type) {
    case SQUALL_INT64:
        return sq_json_new_int(((const int64_t *)c->values)[i]);
    case SQUALL_INT32:
        return sq_json_new_int(((const int32_t *)c->values)[i]);
    case SQUALL_STRING:
        return sq_json_new_string(((const struct squall_bytes *)c->values)[i].data);
    default:
        return sq_json_new_double(((const double *)c->values)[i]);
    }
}

static struct sq_json *coordinate_json(const struct sq_cube_coordinate *c)
{
    struct sq_json *o = sq_json_new_object(), *dims = sq_json_new_array(), *values = sq_json_new_array();
    uint64_t count = 1;
    for (unsigned d = 0; d < c->rank; d++) {
        append(dims, sq_json_new_string(c->dims[d]));
        count *= c->shape[d];
    }
    for (uint64_t i = 0; i < count && i < 5000; i++)
        append(values, element(c, i));
    set(o, "name", sq_json_new_string(c->name));
    set(o, "dims", dims);
    set(o, "size", sq_json_new_uint(count));
    set(o, "values", values);
    set(o, "attributes", sq_json_share(c->attributes));
    return o;
}

static struct sq_json *lines_json(char *const *lines, size_t count)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; i < count; i++)
        append(list, sq_json_new_string(lines[i]));
    return list;
}

static struct sq_json *places_json(const struct sq_grib_index *index, const struct sq_cube *cube)
{
    struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; i < cube->place_count; i++) {
        const struct sq_cube_place *p = &cube->places[i];
        struct sq_json *o = sq_json_new_object();
        set(o, "field", sq_json_new_uint(p->field));
        set(o, "file", sq_json_new_string(index->files[index->fields[p->field].file].path));
        set(o, "offset", sq_json_new_uint(index->fields[p->field].offset));
        set(o, "in_message", sq_json_new_uint(index->fields[p->field].in_message));
        set(o, "variable", sq_json_new_string(cube->variables[p->variable].name));
        set(o, "init", sq_json_new_uint(p->init));
        set(o, "slab", sq_json_new_uint(p->slab));
        set(o, "flip", sq_json_new_bool(p->flip_rows));
        append(list, o);
    }
    return list;
}

static struct sq_json *cube_json(const struct sq_grib_index *index, const struct sq_cube *cube, bool places)
{
    struct sq_json *o = sq_json_new_object(), *variables = sq_json_new_array(), *coordinates = sq_json_new_array(),
                   *ignored = sq_json_new_array();
    for (size_t i = 0; i < cube->variable_count; i++)
        append(variables, variable_json(&cube->variables[i]));
    for (size_t i = 0; i < cube->coordinate_count; i++)
        append(coordinates, coordinate_json(&cube->coordinates[i]));
    for (size_t i = 0; i < cube->ignored_count; i++) {
        struct sq_json *pair = sq_json_new_object();
        set(pair, "field", sq_json_new_uint(cube->ignored[i].field));
        set(pair, "reason", sq_json_new_string(sq_cube_reason_text(cube->ignored[i].reason)));
        append(ignored, pair);
    }
    set(o, "field_count", sq_json_new_uint(index->field_count));
    set(o, "place_count", sq_json_new_uint(cube->place_count));
    set(o, "holes", sq_json_new_uint(cube->holes));
    set(o, "cadence_s", sq_json_new_int(cube->cadence_s));
    set(o, "variables", variables);
    set(o, "coordinates", coordinates);
    set(o, "attributes", sq_json_share(cube->attributes));
    set(o, "ignored", ignored);
    set(o, "notes", lines_json(cube->notes, cube->note_count));
    set(o, "warnings", lines_json(cube->warnings, cube->warning_count));
    if (places)
        set(o, "places", places_json(index, cube));
    return o;
}

static int print(const struct sq_json *value, const char *path)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (sq_json_write(value, true, &text, NULL))
        return 1;
    FILE *out = path ? fopen(path, "wb") : stdout;
    if (!out)
        return 1;
    fwrite(text.data, 1, text.length, out);
    return path ? fclose(out) : 0;
}

/* Returns how many arguments were options. */
static int parse(int argc, char **argv, struct arguments *a)
{
    int i = 1;
    a->options.select = a->select;
    a->options.rename = a->rename;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (!strcmp(argv[i], "--stack"))
            a->options.stack = true;
        else if (!strcmp(argv[i], "--places"))
            a->places = true;
        else if (i + 1 >= argc)
            exit(2);
        else if (!strcmp(argv[i], "--select"))
            a->select[a->options.select_count++] = argv[++i];
        else if (!strcmp(argv[i], "--rename"))
            a->rename[a->options.rename_count++] = argv[++i];
        else if (!strcmp(argv[i], "--every"))
            a->options.every_s = atoll(argv[++i]);
        else if (!strcmp(argv[i], "--coarsen"))
            a->options.coarsen_y = a->options.coarsen_x = (unsigned)atoi(argv[++i]);
        else if (!strcmp(argv[i], "--schema"))
            a->schema_path = argv[++i];
        else if (!strcmp(argv[i], "--write-schema"))
            a->write_path = argv[++i];
        else
            exit(2);
    }
    return i;
}

int main(int argc, char **argv)
{
    struct arguments a = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_grib_index index = {0};
    struct sq_cube cube = {0};
    int first = parse(argc, argv, &a), status = 0;
    struct sq_json *schema = a.schema_path ? read_json(a.schema_path) : NULL, *written = NULL, *json;
    a.options.schema = schema;
    if (a.schema_path && !schema)
        return 2;
    if (sq_grib_index_build((const char *const *)argv + first, (size_t)(argc - first), 2, NULL, NULL, &index, &err))
        return fail(&err);
    if (sq_cube_build(&index, &a.options, &cube, &err)) {
        sq_grib_index_done(&index);
        sq_json_free(schema);
        return fail(&err);
    }
    json = cube_json(&index, &cube, a.places);
    status = print(json, NULL);
    if (a.write_path)
        status |= sq_cube_schema(&cube, &written, &err) || print(written, a.write_path);
    sq_json_free(json);
    sq_json_free(written);
    sq_json_free(schema);
    sq_cube_done(&cube);
    sq_grib_index_done(&index);
    return status;
}
