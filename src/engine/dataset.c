/* Datasets: arrays of any format under one roof, what was wrong with the rest, and the look-ups that the public interface offers. */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "engine/array.h"
#include "engine/worker.h"
#include <string.h>

struct squall_dataset *sq_dataset_new(const struct squall_context *ctx, const char *path, const char *format, struct squall_error *err)
{
    struct squall_dataset *ds = sq_alloc_zero(1, sizeof *ds);
    char *path_copy = sq_strdup(path);
    if (!ds || !path_copy) {
        sq_free(ds);
        sq_free(path_copy);
        (void)sq_error_memory(err, sizeof *ds);
        return NULL;
    }
    ds->ctx = ctx;
    ds->path = path_copy;
    ds->format = format;
    ds->file_count = 1;
    ds->workers_of = ds;
    return ds;
}

static int make_regular_grid(struct squall_array *a, struct squall_error *err)
{
    const uint64_t *chunks = a->info.shards ? a->info.shards : a->info.chunks;
    a->grid = sq_alloc(a->info.rank + 1, sizeof *a->grid);
    if (!a->grid)
        return sq_error_memory(err, sizeof *a->grid);
    for (unsigned d = 0; d < a->info.rank; d++)
        a->grid[d] = (struct sq_axis){.length = a->info.shape[d], .chunk = chunks[d]};
    return 0;
}

static void array_free(struct squall_array *a)
{
    sq_free(a->grid);
    a->ops->free(a);
}

int sq_dataset_add(struct squall_dataset *ds, struct squall_array *a, struct squall_error *err)
{
    int status = SQ_GROW(ds->arrays, ds->array_capacity, ds->array_count + 1, err);
    if (a->info.element_bytes == 0)
        a->info.element_bytes = squall_type_size(a->info.type);
    if (!status && !a->grid)
        status = make_regular_grid(a, err);
    if (status) {
        array_free(a);
        return status;
    }
    a->dataset = ds;
    ds->arrays[ds->array_count++] = a;
    return 0;
}

static void take_out(struct squall_dataset *ds, size_t index)
{
    ds->array_count--;
    memmove(ds->arrays + index, ds->arrays + index + 1, (ds->array_count - index) * sizeof(struct squall_array *));
}

int sq_dataset_move(struct squall_dataset *from, size_t index, struct squall_dataset *to, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(to->arrays, to->array_capacity, to->array_count + 1, err));
    to->arrays[to->array_count++] = from->arrays[index];
    from->arrays[index]->dataset = to;
    take_out(from, index);
    return 0;
}

void sq_dataset_drop(struct squall_dataset *ds, size_t index)
{
    array_free(ds->arrays[index]);
    take_out(ds, index);
}

int sq_dataset_add_group(struct squall_dataset *ds, const char *name, char *attributes, char *attribute_types, struct squall_error *err)
{
    char *copy = sq_strdup(name);
    int status = copy ? SQ_GROW(ds->groups, ds->group_capacity, ds->group_count + 1, err) : sq_error_memory(err, strlen(name));
    if (status) {
        sq_free(copy);
        sq_free(attributes);
        sq_free(attribute_types);
        return status;
    }
    ds->groups[ds->group_count++] = (struct squall_group_info){copy, attributes, attribute_types};
    return 0;
}

int sq_dataset_add_problem(struct squall_dataset *ds, const char *line, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(ds->problems, ds->problem_capacity, ds->problem_count + 1, err));
    if (!(ds->problems[ds->problem_count] = sq_strdup(line)))
        return sq_error_memory(err, strlen(line));
    ds->problem_count++;
    return 0;
}

void squall_dataset_close(squall_dataset *ds)
{
    if (!ds)
        return;
    sq_workers_free(ds->idle_workers);
    for (size_t i = 0; i < ds->array_count; i++)
        array_free(ds->arrays[i]);
    sq_free(ds->arrays);
    if (ds->format_data_free)
        ds->format_data_free(ds->format_data);
    for (size_t i = 0; i < ds->group_count; i++) {
        sq_free((char *)(uintptr_t)ds->groups[i].name);
        sq_free((char *)(uintptr_t)ds->groups[i].attributes);
        sq_free((char *)(uintptr_t)ds->groups[i].attribute_types);
    }
    sq_free(ds->groups);
    for (size_t i = 0; i < ds->problem_count; i++)
        sq_free(ds->problems[i]);
    sq_free(ds->problems);
    sq_free(ds->attributes);
    sq_free(ds->attribute_types);
    sq_free(ds->path);
    sq_free(ds);
}

struct squall_dataset_info squall_dataset_info(const squall_dataset *ds)
{
    return (struct squall_dataset_info){
        .format = ds->format,
        .attributes = ds->attributes ? ds->attributes : "{}",
        .attribute_types = ds->attribute_types,
        .is_array = ds->is_array,
        .file_count = ds->file_count,
        .array_count = ds->array_count,
        .group_count = ds->group_count,
        .problem_count = ds->problem_count,
    };
}

squall_array *squall_dataset_array_at(const squall_dataset *ds, size_t index)
{
    return ds->arrays[index];
}

struct squall_group_info squall_dataset_group(const squall_dataset *ds, size_t index)
{
    return ds->groups[index];
}

const char *squall_dataset_problem(const squall_dataset *ds, size_t index)
{
    return ds->problems[index];
}

int squall_dataset_array(const squall_dataset *ds, const char *name, squall_array **ret, struct squall_error *err)
{
    enum { NAMES_SHOWN = 20 };
    for (size_t i = 0; i < ds->array_count; i++)
        if (!strcmp(ds->arrays[i]->info.name, name)) {
            *ret = ds->arrays[i];
            return 0;
        }
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    for (size_t i = 0; i < ds->array_count && i < NAMES_SHOWN; i++)
        sq_text_printf(&names, "%s%s", i ? ", " : "", ds->arrays[i]->info.name);
    if (ds->array_count > NAMES_SHOWN)
        sq_text_printf(&names, " and %zu more", ds->array_count - NAMES_SHOWN);
    return sq_error(err, SQUALL_ENOTFOUND, "%s: no array %s; there is %s", ds->path, name,
                    ds->array_count ? sq_text_string(&names) : "no array at all");
}

struct squall_array_info squall_array_info(const squall_array *a)
{
    struct squall_array_info info = a->info;
    info.fill = info.unsupported ? NULL : a->fill;
    return info;
}

struct squall_selection squall_selection_all(const squall_array *a)
{
    struct squall_selection s;
    memset(&s, 0, sizeof s);
    for (unsigned d = 0; d < a->info.rank; d++) {
        s.count[d] = a->info.shape[d];
        s.step[d] = 1;
    }
    return s;
}

int squall_array_storage(const squall_array *a, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (a->ops->storage)
        SQ_TRY(a->ops->storage(a, &text, err));
    else
        sq_text_add(&text, "{}");
    char *released = sq_text_release(&text);
    if (!released)
        return sq_error_memory(err, 1);
    *ret = released;
    return 0;
}

int squall_array_stored_bytes(const squall_array *a, uint64_t *ret, struct squall_error *err)
{
    if (a->ops->stored_bytes)
        return a->ops->stored_bytes(a, ret, err);
    *ret = 0;
    return 0;
}
