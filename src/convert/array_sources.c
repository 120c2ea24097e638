/* See array_sources.h. */
#include "convert/array_sources.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "convert/plan.h"
#include "cube/group.h"
#include "cube/many.h"
#include "cube/many_order.h"
#include "squall/many.h"
#include <string.h>

/* Of a Zarr store the identity is its root document's: that changes when arrays come and go, and not when chunks do. */
static int identify(const char *path, struct sq_file_identity *ret, bool *is_store, struct squall_error *err)
{
    static const char *const DOCUMENTS[] = {"zarr.json", ".zmetadata", ".zgroup", ".zarray"};
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(path, &kind, ret, err));
    *is_store = *is_store || kind == SQ_FILE_FOLDER;
    for (size_t i = 0; i < sizeof DOCUMENTS / sizeof *DOCUMENTS && kind == SQ_FILE_FOLDER; i++) {
        SQ_CLEANUP_FREE char *document = sq_path_join(path, DOCUMENTS[i]);
        if (!document)
            return sq_error_memory(err, strlen(path));
        SQ_TRY(sq_file_stat(document, &kind, ret, err));
        kind = kind == SQ_FILE_REGULAR ? kind : SQ_FILE_FOLDER;
    }
    return 0;
}

/* What the store was made of; of a new one what --group says. */
static int choose_group(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_json *schema = plan->state.complete ? plan->state.schema : NULL;
    const char *stored = sq_json_string(sq_json_get(schema, "group")), *asked = plan->settings.group;
    if (schema && asked && (!stored || strcmp(asked, stored) != 0))
        return sq_error(err, SQUALL_EREFUSED, "the store was made of %s%s of its sources, not of the group %s (--group)",
                        stored ? "the group " : "the root", stored ? stored : "", asked);
    plan->arrays.group = schema ? stored : asked;
    return 0;
}

static int identify_all(struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_array_sources *a = &plan->arrays;
    a->identities = sq_alloc_zero(plan->sources.count, sizeof *a->identities);
    if (!a->identities)
        return sq_error_memory(err, plan->sources.count * sizeof *a->identities);
    for (size_t i = 0; i < plan->sources.count; i++)
        SQ_TRY(identify(plan->sources.paths[i], &a->identities[i], &a->chunks_unseen, err));
    return 0;
}

static int refuse_dimension(const char *asked, const char *followed, struct squall_error *err)
{
    return sq_error(
        err, SQUALL_EINVAL,
        "--append-dim %s: the files follow each other along %s, and a store of several files grows as they do; leave the option "
        "out, or convert a single file",
        asked, followed);
}

/* Where files do not agree along the dimension that was asked for, they may along another, and the option is what is wrong. *err: why they do not. */
static int explain(const struct squall_convert_plan *plan, const char *const *paths, size_t count, int status, struct squall_error *err)
{
    const char *asked = plan->settings.append_dim;
    const struct squall_many_options options = {.drift = plan->settings.drift, .group = plan->arrays.group};
    struct squall_dataset *ds = NULL;
    if (status == SQUALL_EREFUSED && asked && !plan->settings.concat_dim &&
        !sq_open_many_to_store(plan->ctx, paths, count, &options, &ds, NULL) && strcmp(sq_many_dimension(ds), asked) != 0)
        status = refuse_dimension(asked, sq_many_dimension(ds), err);
    squall_dataset_close(ds);
    return status;
}

static int open_once(const struct squall_convert_plan *plan, const char *const *paths, size_t count, struct squall_dataset **ret,
                     struct squall_error *err)
{
    const struct sq_settings *s = &plan->settings;
    const struct squall_many_options options = {
        .concat_dim = s->concat_dim ? s->concat_dim : s->append_dim, .drift = s->drift, .group = plan->arrays.group};
    if (count == 1 && !s->concat_dim)
        return sq_open_group(plan->ctx, paths[0], plan->arrays.group, ret, err);
    int status = sq_open_many_to_store(plan->ctx, paths, count, &options, ret, err);
    return status ? explain(plan, paths, count, status, err) : 0;
}

/* What is wrong with a file by itself; NULL: nothing, or there was no memory to tell it. */
static char *fault_of(const struct squall_convert_plan *plan, const char *path)
{
    struct squall_dataset *ds = NULL;
    struct squall_error why = SQUALL_ERROR_INIT;
    if (!sq_holds_arrays(path))
        return sq_strdup("no HDF5, NetCDF or Zarr, as the other sources are");
    if (sq_open_group(plan->ctx, path, plan->arrays.group, &ds, &why))
        return sq_strdup(why.message);
    int status = 0;
    for (size_t i = 0; i < ds->array_count && !status; i++) {
        struct sq_many_part part = {0};
        if (sq_is_coordinate(ds->arrays[i]) && sq_values_are_compared(ds->arrays[i]))
            status = sq_many_part_read(ds->arrays[i], &part, &why);
        sq_many_part_done(&part);
    }
    squall_dataset_close(ds);
    return status ? sq_strdup(why.message) : NULL;
}

/*
 * Open them all; where that fails, those that cannot be opened by themselves are bad inputs, and the others are opened without them.
 * good: count places, for the paths that are left; *ret_count 0: none is.
 */
static int open_good(struct squall_convert_plan *plan, const char **good, uint32_t *numbers, size_t *ret_count, struct squall_error *err)
{
    struct sq_array_sources *a = &plan->arrays;
    struct squall_error first = SQUALL_ERROR_INIT;
    const size_t count = plan->sources.count;
    for (size_t i = 0; i < count; i++) {
        good[i] = plan->sources.paths[i];
        numbers[i] = (uint32_t)i;
    }
    *ret_count = count;
    int status = open_once(plan, good, count, &a->dataset, &first);
    if (!status)
        return 0;
    if (status == SQUALL_EINVAL) /* of the command, not of a file */
        return sq_error(err, status, "%s", first.message);
    size_t left = 0;
    for (size_t i = 0; i < count && status != SQUALL_ECANCELLED && status != SQUALL_ENOMEM; i++) {
        char *fault = fault_of(plan, plan->sources.paths[i]);
        if (fault) {
            int added = sq_input_add_damage(plan, (uint32_t)i, fault, err);
            sq_free(fault);
            SQ_TRY(added);
            continue;
        }
        good[left] = plan->sources.paths[i];
        numbers[left++] = (uint32_t)i;
    }
    if (left == 0 || plan->inputs.count == 0)
        return sq_error(err, status, "%s", first.message);
    *ret_count = left;
    return open_once(plan, good, left, &a->dataset, err);
}

/* Which file has which places along the dimension. numbers: of the files that were opened, in the plan's list. */
static int find_spans(struct squall_convert_plan *plan, const uint32_t *numbers, size_t count, struct squall_error *err)
{
    struct sq_array_sources *a = &plan->arrays;
    const char *dim = sq_many_dimension(a->dataset), *asked = plan->settings.append_dim;
    uint64_t at = 0;
    a->first_file = numbers[0];
    if (dim && asked && strcmp(dim, asked) != 0)
        return refuse_dimension(asked, dim, err);
    a->spans = sq_alloc_zero(count, sizeof *a->spans);
    if (!a->spans)
        return sq_error_memory(err, count * sizeof *a->spans);
    a->span_count = dim ? count : 1;
    a->spans[0].file = numbers[0];
    for (size_t i = 0; i < count && dim; i++) {
        a->spans[i].file = numbers[sq_many_file_at(a->dataset, i, &a->spans[i].count)];
        a->spans[i].begin = at;
        at += a->spans[i].count;
    }
    return 0;
}

/* By its name alone: files of archives are not opened twice. */
static bool looks_like_arrays(const char *path)
{
    static const char *const ENDINGS[] = {".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".zarr"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++)
        if (length > strlen(ENDINGS[i]) && !strcmp(path + length - strlen(ENDINGS[i]), ENDINGS[i]))
            return sq_holds_arrays(path);
    return false;
}

/* Arrays among GRIB; GRIB among arrays is refused when they are opened. */
static int refuse_arrays(const struct squall_convert_plan *plan, struct squall_error *err)
{
    const char *const *paths = (const char *const *)plan->sources.paths;
    for (size_t i = 1; i < plan->sources.count; i++)
        if (looks_like_arrays(paths[i]))
            return sq_error(err, SQUALL_EINVAL, "%s is GRIB and %s is HDF5, NetCDF or Zarr; convert them into two stores", paths[0],
                            paths[i]);
    return 0;
}

int sq_plan_open_arrays(struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_array_sources *a = &plan->arrays;
    const size_t count = plan->sources.count;
    size_t opened;
    if (count == 0 || !sq_holds_arrays(plan->sources.paths[0]))
        return refuse_arrays(plan, err);
    SQ_CLEANUP_FREE const char **good = sq_alloc(count, sizeof(char *));
    SQ_CLEANUP_FREE uint32_t *numbers = sq_alloc(count, sizeof *numbers);
    if (!good || !numbers)
        return sq_error_memory(err, count * sizeof *numbers);
    SQ_TRY(choose_group(plan, err));
    SQ_TRY(identify_all(plan, err));
    SQ_TRY(open_good(plan, good, numbers, &opened, err));
    SQ_TRY(find_spans(plan, numbers, opened, err));
    if (plan->state.complete)
        SQ_TRY(sq_open_path(plan->ctx, plan->target, &a->stored, err));
    return 0;
}

void sq_array_sources_done(struct sq_array_sources *a)
{
    squall_dataset_close(a->dataset);
    squall_dataset_close(a->stored);
    sq_free(a->identities);
    sq_free(a->spans);
    *a = (struct sq_array_sources){0};
}
