/* What is in HDF5 files as JSON, for tests, a line each: hdf5_tree FILE... Of a file that cannot be read: the message, as a text. */
#include "base/memory.h"
#include "format/hdf5/attribute_json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set(struct sq_json *object, const char *key, struct sq_json *value)
{
    if (sq_json_set(object, key, value))
        abort();
}

static struct sq_json *parsed(const char *text)
{
    struct sq_json *value;
    if (sq_json_parse(text, strlen(text), &value, NULL))
        abort();
    return value;
}

static int put_attributes(struct sq_hdf5_tree *tree, const char *name, const struct sq_hdf5_attributes *attributes, struct sq_json *object,
                          struct squall_error *err)
{
    char *values, *types;
    SQ_TRY(sq_hdf5_attributes_json(tree, name, attributes, &values, &types, err));
    set(object, "attributes", parsed(values));
    set(object, "types", parsed(types));
    sq_free(values);
    sq_free(types);
    return 0;
}

static struct sq_json *lengths(const uint64_t *list, unsigned rank)
{
    struct sq_json *array = sq_json_new_array();
    for (unsigned d = 0; d < rank; d++)
        if (sq_json_append(array, list[d] == SQ_HDF5_NOWHERE ? sq_json_new_null() : sq_json_new_uint(list[d])))
            abort();
    return array;
}

static struct sq_json *type_of(const struct sq_hdf5_dataset *d)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (d->unsupported || sq_hdf5_type_numpy(d->type, &text, NULL))
        return sq_json_new_null();
    return sq_json_new_string(sq_text_string(&text));
}

static int describe(struct sq_hdf5_tree *tree, struct sq_json *file, struct squall_error *err)
{
    struct sq_json *groups = sq_json_new_object(), *datasets = sq_json_new_object();
    set(file, "groups", groups);
    set(file, "datasets", datasets);
    for (size_t i = 0; i < tree->group_count; i++) {
        struct sq_json *one = sq_json_new_object();
        set(groups, tree->groups[i].name, one);
        SQ_TRY(put_attributes(tree, tree->groups[i].name, &tree->groups[i].attributes, one, err));
    }
    for (size_t i = 0; i < tree->dataset_count; i++) {
        const struct sq_hdf5_dataset *d = &tree->datasets[i];
        struct sq_json *one = sq_json_new_object();
        set(datasets, d->name, one);
        set(one, "shape", d->space.is_null ? sq_json_new_null() : lengths(d->space.shape, d->space.rank));
        set(one, "maximum", d->space.is_null ? sq_json_new_null() : lengths(d->space.maximum, d->space.rank));
        set(one, "type", type_of(d));
        SQ_TRY(put_attributes(tree, d->name, &d->attributes, one, err));
    }
    set(file, "problems", sq_json_new_texts(tree->problems, tree->problem_count));
    return 0;
}

static struct sq_json *read_file(const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_source *source;
    struct sq_hdf5_file *file = NULL;
    struct sq_hdf5_tree tree = {0};
    struct sq_json *told = sq_json_new_object();
    int status = sq_source_open_file(path, &source, &err);
    if (!status)
        status = sq_hdf5_file_open(source, &file, &err);
    if (!status)
        status = sq_hdf5_tree_read(file, &tree, &err);
    if (!status)
        status = describe(&tree, told, &err);
    sq_hdf5_tree_done(&tree);
    sq_hdf5_file_close(file);
    if (!status)
        return told;
    sq_json_free(told);
    return sq_json_new_string(err.message);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
        SQ_CLEANUP_JSON struct sq_json *told = read_file(argv[i]);
        if (sq_json_write(told, false, &text, NULL))
            return 1;
        puts(sq_text_string(&text));
    }
    return 0;
}
