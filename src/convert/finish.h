/* What remains to be done when all that was planned is written, by the last of the parts or by `squall convert --finish`. */
#ifndef SQ_CONVERT_FINISH_H
#define SQ_CONVERT_FINISH_H

#include "convert/sweep.h"

/* Flags of a unit with a record, whose run was killed before it set them. */
int sq_mend_flags(struct sq_store store, const struct sq_layout *layout, const struct sq_record_unit *record,
                  struct squall_error *err) SQUALL_CHECK;
/*
 * Flags, temporary files, journals. Nobody else is at work, and the lock is held. scope: part {0}, is_alone. records: what its records are, too; see
 * sq_journals_join.
 */
int sq_finish(const struct sq_sweeping *scope, struct sq_records *records, struct squall_error *err) SQUALL_CHECK;

#endif
