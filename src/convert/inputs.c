/*
 * Inputs that are bad or ignored: damage that the scan met, and fields that the cube left out, by file and reason. The records
 * remember them, so that an old damaged file does not make every run end as if something new had happened.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/plan.h"
#include <stdlib.h>
#include <string.h>

struct sq_record_file sq_record_file_of(const struct sq_grib_file *file)
{
    return (struct sq_record_file){sq_path_name(file->path), file->identity.size_bytes, file->identity.mtime_ns};
}

int sq_input_add(struct sq_input_list *list, const struct sq_records *records, const struct sq_grib_index *index, struct sq_input input,
                 struct squall_error *err)
{
    struct sq_record_input record = {sq_record_file_of(&index->files[input.file]), input.what};
    int status = input.what ? SQ_GROW(list->items, list->capacity, list->count + 1, err) : sq_error_memory(err, sizeof input);
    if (status) {
        sq_free(input.what);
        return status;
    }
    input.known = sq_records_know_input(records, &record);
    list->items[list->count++] = input;
    return 0;
}

void sq_input_list_done(struct sq_input_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sq_free(list->items[i].what);
    sq_free(list->items);
    *list = (struct sq_input_list){0};
}

/* What was chosen to be left out, or is there twice alike, is no bad input. */
static bool counts_as_input(enum sq_cube_reason reason)
{
    return reason != SQ_CUBE_IDENTICAL_DUPLICATE && reason != SQ_CUBE_NOT_SELECTED;
}

static int by_file_and_reason(const void *a, const void *b, void *user)
{
    const struct sq_cube_ignored *x = a, *y = b;
    const struct sq_grib_index *index = user;
    uint32_t file_x = index->fields[x->field].file, file_y = index->fields[y->field].file;
    if (file_x != file_y)
        return file_x < file_y ? -1 : 1;
    if (x->reason != y->reason)
        return x->reason < y->reason ? -1 : 1;
    return (x->field > y->field) - (x->field < y->field);
}

/* Runs of the same file and reason, in sorted order, become one input each. */
int sq_plan_ignored(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_cube *cube = &plan->cube;
    SQ_CLEANUP_FREE struct sq_cube_ignored *sorted = sq_alloc(cube->ignored_count + 1, sizeof *sorted);
    if (!sorted)
        return sq_error_memory(err, cube->ignored_count * sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < cube->ignored_count; i++)
        if (counts_as_input(cube->ignored[i].reason))
            sorted[count++] = cube->ignored[i];
    qsort_r(sorted, count, sizeof *sorted, by_file_and_reason, &plan->index);
    for (size_t i = 0; i < count;) {
        uint32_t file = plan->index.fields[sorted[i].field].file;
        size_t end = i;
        while (end < count && sorted[end].reason == sorted[i].reason && plan->index.fields[sorted[end].field].file == file)
            end++;
        struct sq_input input = {.file = file, .what = sq_strdup(sq_cube_reason_text(sorted[i].reason)), .field_count = end - i};
        SQ_TRY(sq_input_add(&plan->inputs, &plan->state.records, &plan->index, input, err));
        i = end;
    }
    return 0;
}

int sq_plan_damage(struct squall_convert_plan *plan, struct squall_error *err)
{
    for (size_t i = 0; i < plan->index.problem_count; i++) {
        const struct sq_grib_index_problem *p = &plan->index.problems[i];
        struct sq_input input = {.file = p->file, .is_bad = true};
        input.what = sq_strdup(p->message);
        SQ_TRY(sq_input_add(&plan->inputs, &plan->state.records, &plan->index, input, err));
    }
    return 0;
}
