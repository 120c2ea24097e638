/*
 * One of several parts that write a store at once (--part I/N), each in a process of its own, on any machine. Which units are a part's own follows
 * from their numbers, so nothing is shared but the store itself. What concerns all of it is done while "lock" is held, which no other part has then:
 * preparing it when a part begins, and what remains when the last one ends.
 */
#include "base/error_internal.h"
#include "convert/write.h"

int sq_part_begin(struct squall_convert_plan *plan, struct sq_lock **ret_own, struct sq_lock **ret_brief, struct squall_error *err)
{
    const char *records = plan->state.records_folder;
    SQ_TRY(sq_store_make_folders(plan->target, err));
    int status = sq_lock_take(records, plan->settings.part, &plan->patience, ret_own, err);
    if (!status)
        status = sq_lock_wait(records, plan->settings.part, plan->ctx, ret_brief, err);
    if (status)
        return status == SQUALL_ECANCELLED ? status : sq_error_within(err, status, "%s", plan->settings.destination);
    return sq_plan_on(plan, err);
}

/* Nobody else is at work, and nobody can begin. */
static int finish(struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    struct sq_records now;
    SQ_TRY(sq_records_load(plan->state.records_folder, &now, err));
    int status = sq_layout_renumber(&plan->layout, &now, err);
    if (!status)
        status = sq_plan_count_left(plan, &now, &run->others_left, err);
    if (!status && run->others_left == 0)
        status = sq_plan_finish(plan, &now, err);
    sq_records_done(&now);
    return status;
}

/* Its own lock goes while "lock" is held: so of two that end at the same time the second is the last one. */
int sq_part_end(struct sq_run *run, struct sq_lock **own, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    struct sq_lock *brief = NULL;
    bool alone;
    sq_journal_close(run->journal);
    run->journal = NULL;
    SQ_TRY(sq_lock_wait(plan->state.records_folder, plan->settings.part, plan->ctx, &brief, err));
    int status = sq_lock_alone(plan->state.records_folder, plan->settings.part, &alone, err);
    run->others_work = !status && !alone;
    if (!status && alone)
        status = finish(run, err);
    sq_lock_release(*own);
    *own = NULL;
    sq_lock_release(brief);
    return status;
}
