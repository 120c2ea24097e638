/*
 * HDF5 files: their tree, with all attributes. Checksums hold here whatever the bytes are (meson.build), else nearly no change would come past them. What is
 * told keeps to its promises: paths that lead down, shapes within int64, values within the file's bytes, problems that name the file. NetCDF's
 * conventions give every dimension a name, and lengths that can be.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "format/hdf5/attribute_json.h"
#include "format/hdf5/netcdf4.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_status(int status, const struct squall_error *err)
{
    require((status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) && !strncmp(err->message, "x.h5: ", 6));
}

static void check_name(const char *name)
{
    require(sq_text_is_visible(name) && name[0] != '/' && !strstr(name, "//"));
}

static void check_attributes(struct sq_hdf5_tree *tree, const char *name, const struct sq_hdf5_attributes *attributes)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *value;
    char *values, *types;
    for (size_t i = 0; i < attributes->count; i++) {
        const struct sq_hdf5_attribute *a = &attributes->list[i];
        require(a->name[0] && a->type && a->size_bytes == a->space.element_count * a->type->size_bytes);
        require(a->size_bytes == 0 || a->value[0] + a->value[a->size_bytes - 1] >= 0); /* they can be looked at */
    }
    int status = sq_hdf5_attributes_json(tree, name, attributes, &values, &types, &err);
    if (status) {
        check_status(status, &err);
        return;
    }
    require(!sq_json_parse(values, strlen(values), &value, NULL));
    sq_json_free(value);
    require(!sq_json_parse(types, strlen(types), &value, NULL));
    sq_json_free(value);
    sq_free(values);
    sq_free(types);
}

static void check_dataset(struct sq_hdf5_tree *tree, const struct sq_hdf5_dataset *d)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    check_name(d->name);
    require(d->name[0] && d->space.rank <= SQUALL_RANK_MAX && (d->type || d->unsupported));
    for (unsigned i = 0; i < d->space.rank; i++)
        require(d->space.shape[i] <= INT64_MAX);
    if (d->type)
        sq_hdf5_type_describe(d->type, &text);
    require(d->unsupported || !sq_hdf5_type_numpy(d->type, &text, NULL));
    check_attributes(tree, d->name, &d->attributes);
}

static void check_tree(struct sq_hdf5_tree *tree)
{
    require(tree->group_count > 0 && tree->groups[0].name[0] == 0);
    for (size_t i = 0; i < tree->group_count; i++) {
        check_name(tree->groups[i].name);
        check_attributes(tree, tree->groups[i].name, &tree->groups[i].attributes);
    }
    for (size_t i = 0; i < tree->dataset_count; i++)
        check_dataset(tree, &tree->datasets[i]);
    for (size_t i = 0; i < tree->problem_count; i++)
        require(!strncmp(tree->problems[i], "x.h5: ", 6) && sq_text_is_visible(tree->problems[i]));
}

static void check_variable(const struct sq_netcdf4_variable *v)
{
    const struct sq_hdf5_space *space = &v->dataset->space;
    uint64_t elements = 1;
    check_name(v->name);
    for (unsigned d = 0; d < space->rank; d++) {
        require(v->dims[d][0] && sq_text_is_visible(v->dims[d]) && !strchr(v->dims[d], '/') && v->shape[d] >= space->shape[d]);
        require(sq_mul_u64(elements, v->shape[d], &elements) && elements <= INT64_MAX);
    }
}

/* The same as NetCDF has it; the tree is less of its bookkeeping afterwards. */
static void check_conventions(struct sq_hdf5_tree *tree)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_netcdf4 shown;
    int status = sq_netcdf4_read(tree, &shown, &err);
    if (status) {
        check_status(status, &err);
        return;
    }
    require(shown.variable_count <= tree->dataset_count);
    for (size_t i = 0; i < shown.variable_count; i++)
        check_variable(&shown.variables[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_source *source;
    struct sq_hdf5_file *file;
    struct sq_hdf5_tree tree;
    if (sq_source_open_memory(data, size, "x.h5", &source, NULL))
        return 0;
    int status = sq_hdf5_file_open(source, &file, &err);
    if (status) {
        check_status(status, &err);
        return 0;
    }
    status = sq_hdf5_tree_read(file, &tree, &err);
    if (status) {
        check_status(status, &err);
    } else {
        check_tree(&tree);
        check_conventions(&tree);
        sq_hdf5_tree_done(&tree);
    }
    sq_hdf5_file_close(file);
    return 0;
}
