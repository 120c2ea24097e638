/* Carrying out the units of a plan: load → encode → publish, and what has come of it. */
#ifndef SQ_CONVERT_WRITE_H
#define SQ_CONVERT_WRITE_H

#include "convert/plan.h"
#include "convert/publish.h"

struct sq_run_totals {
    uint64_t units_done, units_skipped, units_failed;
    uint64_t units_another; /* other parts' */
    uint64_t fields_written, fields_carried;
    uint64_t bytes_in, bytes_out;
};

struct sq_run {
    struct squall_convert_plan *plan;
    struct sq_journal *journal; /* NULL: until there is something to write */
    struct sq_publisher *publisher;
    struct sq_unit *unit;              /* of GRIB */
    const uint8_t **slabs;             /* of each array: enum sq_slab_state of the unit at hand */
    struct sq_codec_scratch **scratch; /* of each worker */
    struct sq_run_totals totals;
    struct sq_record_unit **records; /* of each planned unit: what was written now; NULL: nothing */
    char **failures;                 /* of each planned unit: why it was left; NULL: it was not */
    struct sq_arena *arena;
    uint64_t units_to_do;
    bool others_work;     /* of a part: others are still at work */
    uint64_t others_left; /* else: how many of the others' units are not written */
};

/* Write every unit that the plan has to do. Returns when all of them are durable, or with what stopped it. */
int sq_run_units(struct sq_run *run, struct squall_error *err) SQUALL_CHECK;

/* array_write.c: the same for units made of arrays, several at a time. */
int sq_run_array_units(struct sq_run *run, struct squall_error *err) SQUALL_CHECK;

/* Parts of writing a unit, whatever it is made of. A record, its slabs still unknown; then the slabs, of each array. */
int sq_run_record(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_record_unit **ret,
                  struct squall_error *err) SQUALL_CHECK;
int sq_run_record_slabs(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_record_unit *record,
                        const uint8_t *const *slabs_of, struct squall_error *err) SQUALL_CHECK;
/* What readers see of the unit goes before its chunks are written; of one that is stored, later (staged.h). */
int sq_run_withdraw(const struct sq_run *run, const struct sq_planned_unit *planned, struct squall_error *err) SQUALL_CHECK;
/* A chunk that nothing touches is not stored; a killed run may have left one there. Of a unit that is stored it goes later. */
int sq_run_remove_chunk(const struct sq_run *run, const struct sq_planned_unit *planned, const struct sq_layout_array *a, uint64_t chunk,
                        struct squall_error *err) SQUALL_CHECK;
/* A chunk of the unit is not what its record says: flags off, durable → a line of the journal, as verify_note.h does. The journal is open. */
int sq_run_note_damage(const struct sq_run *run, size_t which, const char *what, struct squall_error *err) SQUALL_CHECK;
/* An old chunk cannot be carried over: the unit is left, and its damage is noted. */
int sq_run_leave_damaged(struct sq_run *run, size_t which, const char *what, struct squall_error *err) SQUALL_CHECK;
/* The unit is not written; the run goes on. which: of the plan's */
int sq_run_leave(struct sq_run *run, size_t which, const char *why, struct squall_error *err) SQUALL_CHECK;

/* run.c: when all units are written and nobody else is at work, with the lock held: finish.h. */
int sq_plan_finish(const struct squall_convert_plan *plan, struct sq_records *records, struct squall_error *err) SQUALL_CHECK;

/* run.c: with the lock held: the plan is made again where the store is no longer as it was planned for. */
int sq_plan_on(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;

/* part.c: a part's beginning: its own lock, and "lock"; the plan is fit for the store as it is. *ret_own, *ret_brief: sq_lock_release. */
int sq_part_begin(struct squall_convert_plan *plan, struct sq_lock **ret_own, struct sq_lock **ret_brief,
                  struct squall_error *err) SQUALL_CHECK;
/* Its end, when its units are written: the journal is closed, and the last part does what concerns the whole. *own goes. */
int sq_part_end(struct sq_run *run, struct sq_lock **own, struct squall_error *err) SQUALL_CHECK;

/* result.c: the report, as JSON and as text. *ret: squall_convert_result_done. */
int sq_run_result(const struct sq_run *run, struct squall_convert_result *ret, struct squall_error *err) SQUALL_CHECK;

#endif
