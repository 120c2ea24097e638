/*
 * Carrying a plan out: lock → sweep → prepare → units → records of bad inputs → (to replace a store: swap). Whatever ends it,
 * what is durable stays, and the same command goes on from there. What is different for one of several parts is in part.c.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/finish.h"
#include "convert/flags.h"
#include "convert/lock.h"
#include "convert/rekey.h"
#include "convert/report.h"
#include "convert/write.h"
#include "sys/clock.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- locks ----------------------------------------------------------------------------------------------------------------------- */

struct locks {
    struct sq_lock *target, *replaced;
    struct sq_lock *brief; /* of a part: while it begins */
};

static void release(struct locks *locks)
{
    sq_lock_release(locks->brief);
    sq_lock_release(locks->target);
    sq_lock_release(locks->replaced);
}

static int take_lock(const struct squall_convert_plan *plan, const char *records_folder, struct sq_lock **ret, struct squall_error *err)
{
    int status = sq_lock_take(records_folder, (struct sq_part){0}, &plan->patience, ret, err);
    return status && status != SQUALL_ECANCELLED ? sq_error_within(err, status, "%s", plan->settings.destination) : status;
}

static int take_locks(const struct squall_convert_plan *plan, struct locks *locks, struct squall_error *err)
{
    if (plan->replaced) {
        SQ_CLEANUP_FREE char *records = sq_records_folder(plan->replaced);
        if (!records)
            return sq_error_memory(err, strlen(plan->replaced));
        SQ_TRY(take_lock(plan, records, &locks->replaced, err));
        SQ_TRY(sq_tree_remove(plan->target, err)); /* of an earlier run that was killed */
    }
    SQ_TRY(sq_store_make_folders(plan->target, err));
    return take_lock(plan, plan->state.records_folder, &locks->target, err);
}

/* Is the work what was planned? Records of other parts' units are theirs. */
static bool holds(const struct squall_convert_plan *plan, const struct sq_store_state *now)
{
    if (!sq_store_state_same(&plan->state, now))
        return false;
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_record_unit *then = plan->units[i].record;
        const struct sq_record_unit *there = sq_records_unit(&now->records, plan->units[i].unit);
        if (plan->units[i].todo == SQ_TODO_ANOTHER)
            continue;
        if (!then != !there)
            return false;
        if (then && (then->valid != there->valid || then->source.epoch != there->source.epoch || then->source.part != there->source.part))
            return false;
    }
    return true;
}

static int check(struct squall_convert_plan *plan, bool *ret_holds, struct squall_error *err)
{
    struct sq_store_state now;
    SQ_TRY(sq_store_state_read(plan->target, &now, err));
    *ret_holds = holds(plan, &now);
    plan->state.records.last_epoch = now.records.last_epoch;
    sq_store_state_done(&now);
    return 0;
}

/* What others have written between planning and the lock is planned on. */
int sq_plan_on(struct squall_convert_plan *plan, struct squall_error *err)
{
    bool same;
    SQ_TRY(check(plan, &same, err));
    if (same)
        return 0;
    SQ_TRY(sq_plan_again(plan, err));
    return squall_convert_plan_check(plan, err);
}

/* ---- replacing a store ----------------------------------------------------------------------------------------------------------- */

/* The new store takes the old one's place in one step where the file system can; the old one goes when it is out of the way. */
static int swap(const struct squall_convert_plan *plan, struct locks *locks, struct squall_error *err)
{
    const char *destination = plan->replaced;
    SQ_CLEANUP_FREE char *aside = sq_format("%s.squall-old", plan->target);
    SQ_CLEANUP_FREE char *records = sq_records_folder(destination);
    SQ_CLEANUP_FREE char *folder = sq_path_folder(destination);
    const char *old;
    if (!aside || !records || !folder)
        return sq_error_memory(err, strlen(destination));
    SQ_TRY(sq_tree_exchange(plan->target, destination, aside, &old, err));
    SQ_TRY(sq_lock_moved(locks->target, records, err));
    SQ_TRY(sq_folder_sync(folder, err));
    return sq_tree_remove(old, err);
}

/* ---- records --------------------------------------------------------------------------------------------------------------------- */

static bool has_new_input(const struct squall_convert_plan *plan)
{
    for (size_t i = 0; i < plan->inputs.count; i++)
        if (!plan->inputs.items[i].known)
            return true;
    return false;
}

static int record_inputs(const struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    SQ_CLEANUP_FREE struct sq_record_input *news = sq_alloc(plan->inputs.count + 1, sizeof *news);
    size_t count = 0;
    if (!news)
        return sq_error_memory(err, plan->inputs.count * sizeof *news);
    for (size_t i = 0; i < plan->inputs.count; i++) {
        const struct sq_input *input = &plan->inputs.items[i];
        if (!input->known)
            news[count++] = (struct sq_record_input){sq_plan_record_file(plan, input->file), input->what};
    }
    return sq_journal_add_inputs(run->journal, news, count, err);
}

/* Why units were left, where the records do not say the same already. */
static bool is_new_failure(const struct sq_run *run, size_t which)
{
    const char *before = run->failures[which] ? sq_records_left(&run->plan->state.records, run->plan->units[which].unit) : NULL;
    return run->failures[which] && (!before || strcmp(before, run->failures[which]) != 0);
}

static bool has_new_failure(const struct sq_run *run)
{
    for (size_t i = 0; i < run->plan->unit_count; i++)
        if (is_new_failure(run, i))
            return true;
    return false;
}

static int record_failures(const struct sq_run *run, struct squall_error *err)
{
    for (size_t i = 0; i < run->plan->unit_count; i++)
        if (is_new_failure(run, i))
            SQ_TRY(sq_journal_add_left(run->journal, run->plan->units[i].unit, run->failures[i], err));
    return 0;
}

/* A run that was killed between a unit's record and its flags; units that are written now, and those of other parts, get theirs then. */
static int mend_flags(const struct squall_convert_plan *plan, struct squall_error *err)
{
    size_t next = 0;
    for (size_t i = 0; i < plan->state.records.unit_count; i++) {
        const struct sq_record_unit *record = &plan->state.records.units[i];
        while (next < plan->unit_count && plan->units[next].unit < record->unit)
            next++;
        bool planned = next < plan->unit_count && plan->units[next].unit == record->unit;
        if (record->valid && sq_plan_has_unit(plan, record->unit) && !(planned && plan->units[next].todo != SQ_TODO_NOTHING))
            SQ_TRY(sq_mend_flags(sq_plan_store(plan), &plan->layout, record, err));
    }
    return 0;
}

/* ---- the run --------------------------------------------------------------------------------------------------------------------- */

static int count_units(struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    run->records = sq_arena_alloc(run->arena, (plan->unit_count + 1) * sizeof *run->records);
    run->failures = sq_arena_alloc(run->arena, (plan->unit_count + 1) * sizeof *run->failures);
    if (!run->records || !run->failures)
        return sq_error_memory(err, plan->unit_count * sizeof *run->records);
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *unit = &plan->units[i];
        run->units_to_do += sq_is_to_do(unit);
        run->totals.units_skipped += unit->todo == SQ_TODO_NOTHING;
        run->totals.units_another += unit->todo == SQ_TODO_ANOTHER;
        if (unit->todo != SQ_TODO_KEEP && unit->todo != SQ_TODO_STRICT)
            continue;
        run->totals.units_failed++;
        run->failures[i] = unit->why;
    }
    return 0;
}

/* The first unit's files are read by the system while the store is prepared. */
static void prefetch_first(const struct squall_convert_plan *plan)
{
    for (size_t i = 0; i < plan->unit_count; i++)
        if (sq_is_to_do(&plan->units[i]) && plan->units[i].place_count) {
            sq_unit_prefetch(&plan->setting, &plan->cube.places[plan->units[i].first_place], plan->units[i].place_count);
            return;
        }
}

/* It begins at once where `squall status` would name another command; else a run that adds nothing leaves none. */
static int open_journal(struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    const struct sq_records *records = &plan->state.records;
    const char *command = plan->settings.command;
    const struct sq_record_source source = {records->last_epoch + 1, plan->settings.part.number};
    SQ_TRY(sq_journal_new(plan->state.records_folder, source, command, &run->journal, err));
    return records->command && !strcmp(records->command, command) ? 0 : sq_journal_begin(run->journal, err);
}

/* The unit that was to be put into its place is not whole: it is left for the next run. */
static int leave_unplaced(struct squall_convert_plan *plan, uint64_t number, const char *why, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    sq_report_unit_name(plan, number, &name);
    sq_plan_say(plan, SQUALL_CONVERT_WARNING, "%s: damaged: %s", sq_text_string(&name), why);
    for (size_t i = 0; i < plan->unit_count; i++) {
        struct sq_planned_unit *unit = &plan->units[i];
        if (unit->unit != number || unit->todo != SQ_TODO_NOTHING)
            continue;
        unit->todo = SQ_TODO_KEEP;
        if (!(unit->why = sq_format("damaged: %s; the same command writes it anew", why)))
            return sq_error_memory(err, strlen(why));
    }
    return 0;
}

/* Runs that were killed while the chunks of a unit took their places; and what they had not come to. */
static int go_on_with_staged(struct sq_run *run, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    for (size_t i = 0; i < plan->state.records.unit_count; i++) {
        struct sq_record_unit *record = &plan->state.records.units[i];
        char *told = NULL;
        if (!record->is_staged || !sq_plan_has_unit(plan, record->unit))
            continue;
        if (!run->journal)
            SQ_TRY(open_journal(run, err));
        const struct sq_staging staging = {sq_plan_store(plan), plan->state.records_folder, &plan->layout, run->journal};
        SQ_TRY(sq_staged_go_on(&staging, record, &told, err));
        SQ_CLEANUP_FREE char *why = told;
        if (why)
            SQ_TRY(leave_unplaced(plan, record->unit, why, err));
    }
    return sq_staged_sweep(plan->state.records_folder, plan->settings.part, &plan->state.records, err);
}

/* Where everything of the plan's lies, for whoever cleans up. *ret_names: sq_free. */
static int scope_of(const struct squall_convert_plan *plan, const struct sq_records *records, struct sq_sweeping *ret,
                    const char ***ret_names, struct squall_error *err)
{
    const char **names = sq_alloc(plan->cube.coordinate_count + 1, sizeof *names);
    if (!names)
        return sq_error_memory(err, plan->cube.coordinate_count * sizeof *names);
    for (size_t i = 0; i < plan->cube.coordinate_count; i++)
        names[i] = plan->cube.coordinates[i].name;
    *ret_names = names;
    *ret = (struct sq_sweeping){
        .store = sq_plan_store(plan),
        .records_folder = plan->state.records_folder,
        .layout = plan->state.exists ? &plan->layout : NULL,
        .records = records,
        .init_count = plan->cube.init_count,
        .coordinates = names,
        .coordinate_count = plan->cube.coordinate_count,
    };
    return 0;
}

/* Of a part: what it may remove when it begins. */
static int sweep(const struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_sweeping scope;
    const char **names = NULL;
    SQ_TRY(scope_of(plan, &plan->state.records, &scope, &names, err));
    scope.part = plan->settings.part;
    scope.is_alone = scope.part.count == 0;
    int status = sq_sweep(&scope, err);
    sq_free(names);
    return status;
}

int sq_plan_finish(const struct squall_convert_plan *plan, struct sq_records *records, struct squall_error *err)
{
    struct sq_sweeping scope;
    const char **names = NULL;
    SQ_TRY(scope_of(plan, records, &scope, &names, err));
    scope.layout = &plan->layout;
    scope.is_alone = true;
    int status = sq_finish(&scope, records, err);
    sq_free(names);
    return status;
}

/* What planning met of it, of a run that may end before the unit is anew. */
static int note_damage(struct sq_run *run, struct squall_error *err)
{
    for (size_t i = 0; i < run->plan->unit_count; i++) {
        const struct sq_planned_unit *unit = &run->plan->units[i];
        if (!unit->damage)
            continue;
        if (!run->journal)
            SQ_TRY(open_journal(run, err));
        SQ_TRY(sq_run_note_damage(run, i, unit->damage, err));
    }
    return 0;
}

/* Others are locked out, but for parts that are at work. */
static int prepare(struct sq_run *run, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    if (plan->settings.part.count == 0 && !plan->replaced)
        SQ_TRY(sq_sweep_beside(plan->target, plan->state.exists, err));
    SQ_TRY(sweep(plan, err));
    if (plan->settings.part.count == 0)
        SQ_TRY(sq_journals_join(plan->state.records_folder, &plan->state.records, err));
    SQ_TRY(go_on_with_staged(run, err));
    SQ_TRY(count_units(run, err));
    SQ_TRY(note_damage(run, err));
    SQ_TRY(sq_plan_prepare(plan, err));
    return mend_flags(plan, err);
}

/* What is stored moves first; then the early runs are as late ones, of which the store has the places. */
static int move(struct squall_convert_plan *plan, struct locks *locks, struct squall_error *err)
{
    if (!sq_moves(&plan->unit_move))
        return 0;
    SQ_TRY(sq_rekey(plan, &locks->target, err));
    SQ_TRY(sq_plan_again(plan, err));
    return squall_convert_plan_check(plan, err);
}

static int begin(struct sq_run *run, struct locks *locks, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    if (plan->settings.part.count) {
        SQ_TRY(sq_part_begin(plan, &locks->target, &locks->brief, err));
    } else {
        SQ_TRY(take_locks(plan, locks, err));
        SQ_TRY(sq_plan_on(plan, err));
        SQ_TRY(move(plan, locks, err));
    }
    SQ_TRY(prepare(run, err));
    sq_lock_release(locks->brief);
    locks->brief = NULL;
    return 0;
}

/* So that --finish knows what all parts together were to write. */
static int record_planned(const struct sq_run *run, struct squall_error *err)
{
    struct sq_ranges units = {0};
    int status = 0;
    for (size_t i = 0; i < run->plan->unit_count && !status; i++)
        status = sq_ranges_add(&units, run->plan->units[i].unit, err);
    if (!status)
        status = sq_journal_add_planned(run->journal, &units, err);
    sq_ranges_done(&units);
    return status;
}

/* For squall status; of a run that was ended before, nothing is told. */
static int record_run(const struct sq_run *run, double since_s, struct squall_error *err)
{
    const struct sq_run_totals *t = &run->totals;
    if (t->units_done == 0)
        return 0;
    const struct sq_record_run told = {.units = t->units_done,
                                       .bytes_in = t->bytes_in,
                                       .bytes_out = t->bytes_out,
                                       .milliseconds = (uint64_t)((sq_clock_s() - since_s) * 1000),
                                       .ended_s = (int64_t)time(NULL)};
    return sq_journal_add_run(run->journal, &told, err);
}

static int carry_out(struct sq_run *run, struct locks *locks, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    const double since_s = sq_clock_s();
    if (!plan->arrays.dataset)
        prefetch_first(plan);
    SQ_TRY(begin(run, locks, err));
    if (!run->journal && (run->units_to_do > 0 || has_new_input(plan) || has_new_failure(run)))
        SQ_TRY(open_journal(run, err));
    if (run->units_to_do > 0 && plan->settings.part.count)
        SQ_TRY(record_planned(run, err));
    if (run->units_to_do > 0)
        SQ_TRY(sq_run_units(run, err));
    if (has_new_input(plan))
        SQ_TRY(record_inputs(run, err));
    if (has_new_failure(run))
        SQ_TRY(record_failures(run, err));
    SQ_TRY(record_run(run, since_s, err));
    if (plan->settings.part.count)
        return sq_part_end(run, &locks->target, err);
    return plan->replaced ? swap(plan, locks, err) : 0;
}

/* What an interrupted run has left, for whoever interrupted it. */
static int tell_interruption(const struct squall_convert_plan *plan, struct squall_error *err)
{
    const char *store = plan->settings.destination;
    if (plan->replaced)
        return sq_error(err, SQUALL_ECANCELLED, "%s is as it was; the store that was to replace it is begun again next time", store);
    return sq_error(err, SQUALL_ECANCELLED, "%s is whole as far as it goes; the same command%s goes on where this one stopped", store,
                    plan->settings.overwrite ? " without --overwrite" : "");
}

int squall_convert_run(squall_convert_plan *plan, struct squall_convert_result *ret, struct squall_error *err)
{
    struct sq_run run = {.plan = plan};
    struct locks locks = {0};
    if (plan->carried_out)
        return sq_error(err, SQUALL_EINVAL, "a plan is carried out once; make another");
    SQ_TRY(squall_convert_plan_check(plan, err));
    plan->carried_out = true;
    run.arena = sq_arena_new();
    int status = run.arena ? carry_out(&run, &locks, err) : sq_error_memory(err, sizeof run);
    if (!status)
        status = sq_run_result(&run, ret, err);
    if (status == SQUALL_ECANCELLED)
        status = tell_interruption(plan, err);
    sq_journal_close(run.journal);
    release(&locks);
    sq_arena_free(run.arena);
    return status;
}

void squall_convert_result_done(struct squall_convert_result *result)
{
    free(result->json);
    free(result->text);
    *result = (struct squall_convert_result){0};
}
