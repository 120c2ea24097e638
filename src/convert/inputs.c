/*
 * Inputs that are bad or ignored: damage that the scan met, and fields that the cube left out, by file and reason. The records
 * remember them, so that an old damaged file does not make every run end as if something new had happened.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/plan.h"
#include "cube/array_damage.h"
#include <stdlib.h>
#include <string.h>

size_t sq_plan_file_count(const struct squall_convert_plan *plan)
{
    return plan->arrays.identities ? plan->sources.count : plan->index.file_count;
}

const char *sq_plan_file_path(const struct squall_convert_plan *plan, uint32_t file)
{
    return plan->arrays.identities ? plan->sources.paths[file] : plan->index.files[file].path;
}

struct sq_record_file sq_plan_record_file(const struct squall_convert_plan *plan, uint32_t file)
{
    const struct sq_file_identity *id = plan->arrays.identities ? &plan->arrays.identities[file] : &plan->index.files[file].identity;
    return (struct sq_record_file){sq_path_name(sq_plan_file_path(plan, file)), id->size_bytes, id->mtime_ns};
}

uint32_t sq_plan_file_of(const struct squall_convert_plan *plan, size_t field)
{
    return plan->arrays.identities ? (uint32_t)field : plan->index.fields[field].file;
}

int sq_input_add(struct squall_convert_plan *plan, struct sq_input input, struct squall_error *err)
{
    struct sq_input_list *list = &plan->inputs;
    struct sq_record_input record = {sq_plan_record_file(plan, input.file), input.what};
    int status = input.what ? SQ_GROW(list->items, list->capacity, list->count + 1, err) : sq_error_memory(err, sizeof input);
    if (status) {
        sq_free(input.what);
        return status;
    }
    input.known = sq_records_know_input(&plan->state.records, &record);
    list->items[list->count++] = input;
    return 0;
}

/* Where nobody listens the report tells it. */
static void say(struct squall_convert_plan *plan, struct sq_input *input)
{
    const bool warn = !input->known || plan->settings.strict;
    input->said = plan->events.message && warn;
    sq_plan_say(plan, warn ? SQUALL_CONVERT_WARNING : SQUALL_CONVERT_NOTE, "%s: %s", sq_plan_file_path(plan, input->file), input->what);
}

int sq_input_add_damage(struct squall_convert_plan *plan, uint32_t file, const char *message, struct squall_error *err)
{
    struct sq_input input = {.file = file, .is_bad = true, .what = sq_array_damage_text(sq_plan_file_path(plan, file), message)};
    for (size_t i = 0; input.what && i < plan->inputs.count; i++)
        if (plan->inputs.items[i].file == file &&
            !strcmp(plan->inputs.items[i].what, input.what)) { /* met at another index, or twice read */
            sq_free(input.what);
            return 0;
        }
    SQ_TRY(sq_input_add(plan, input, err));
    say(plan, &plan->inputs.items[plan->inputs.count - 1]);
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

static const char *text_of(const struct sq_cube_ignored *ignored)
{
    return ignored->what ? ignored->what : sq_cube_reason_text(ignored->reason);
}

static int by_file_and_reason(const void *a, const void *b, void *user)
{
    const struct sq_cube_ignored *x = a, *y = b;
    const struct squall_convert_plan *plan = user;
    uint32_t file_x = sq_plan_file_of(plan, x->field), file_y = sq_plan_file_of(plan, y->field);
    if (file_x != file_y)
        return file_x < file_y ? -1 : 1;
    if (x->reason != y->reason)
        return x->reason < y->reason ? -1 : 1;
    const int order = strcmp(text_of(x), text_of(y));
    if (order)
        return order;
    return (x->field > y->field) - (x->field < y->field);
}

/* Runs of the same file and words, in sorted order, become one input each. */
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
    qsort_r(sorted, count, sizeof *sorted, by_file_and_reason, plan);
    for (size_t i = 0; i < count;) {
        uint32_t file = sq_plan_file_of(plan, sorted[i].field);
        size_t end = i;
        while (end < count && sq_plan_file_of(plan, sorted[end].field) == file && !strcmp(text_of(&sorted[end]), text_of(&sorted[i])))
            end++;
        struct sq_input input = {.file = file, .what = sq_strdup(text_of(&sorted[i])), .field_count = end - i};
        SQ_TRY(sq_input_add(plan, input, err));
        i = end;
    }
    return 0;
}

int sq_plan_array_damage(struct squall_convert_plan *plan, struct squall_error *err)
{
    for (size_t i = 0; i < plan->cube.damage_count; i++)
        SQ_TRY(sq_input_add_damage(plan, plan->cube.damage[i].file, plan->cube.damage[i].what, err));
    return 0;
}

int sq_plan_damage(struct squall_convert_plan *plan, struct squall_error *err)
{
    for (size_t i = 0; i < plan->index.problem_count; i++) {
        const struct sq_grib_index_problem *p = &plan->index.problems[i];
        struct sq_input input = {.file = p->file, .is_bad = true};
        input.what = sq_strdup(p->message);
        SQ_TRY(sq_input_add(plan, input, err));
    }
    return 0;
}
