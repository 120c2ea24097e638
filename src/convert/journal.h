/* Adding to the records of a store. */
#ifndef SQ_CONVERT_JOURNAL_H
#define SQ_CONVERT_JOURNAL_H

#include "format/zarr/records.h"

/* Every addition is durable when it returns; the functions may be called from several threads. */
struct sq_journal;
/*
 * part: 0 for a run of the whole. command: how to start this run again, without the store, for `squall status`. The file is made with the
 * first addition. *ret: sq_journal_close.
 */
int sq_journal_new(const char *folder, struct sq_record_source source, const char *command, struct sq_journal **ret,
                   struct squall_error *err) SQUALL_CHECK;
int sq_journal_begin(struct sq_journal *journal, struct squall_error *err) SQUALL_CHECK; /* make the file at once, for its command */
int sq_journal_add_unit(struct sq_journal *journal, const struct sq_record_unit *unit, struct squall_error *err) SQUALL_CHECK;
/* All of the unit is durable, and its chunks are about to take their places. */
int sq_journal_add_staged(struct sq_journal *journal, const struct sq_record_unit *unit, struct squall_error *err) SQUALL_CHECK;
/* What is on disk of the unit is not what its record says; damage: the first chunk of which that is so. */
int sq_journal_add_invalid(struct sq_journal *journal, uint64_t unit, const char *damage, struct squall_error *err) SQUALL_CHECK;
int sq_journal_add_left(struct sq_journal *journal, uint64_t unit, const char *why, struct squall_error *err) SQUALL_CHECK;
int sq_journal_add_inputs(struct sq_journal *journal, const struct sq_record_input *inputs, size_t count,
                          struct squall_error *err) SQUALL_CHECK;
/* Of a part: the units that the sources hold, whichever part's they are. */
int sq_journal_add_planned(struct sq_journal *journal, const struct sq_ranges *units, struct squall_error *err) SQUALL_CHECK;
int sq_journal_add_run(struct sq_journal *journal, const struct sq_record_run *run, struct squall_error *err) SQUALL_CHECK;
void sq_journal_close(struct sq_journal *journal); /* NULL is accepted */

/*
 * Where there are many journals, or most of their lines no longer hold: all into one, which is durable before the others go. Only where nobody else
 * writes. records: what they say; last_epoch becomes the new one's.
 */
int sq_journals_join(const char *folder, struct sq_records *records, struct squall_error *err) SQUALL_CHECK;
/* All that the records say, into one journal of another store's folder, which has none yet. */
int sq_journals_copy(const char *folder, const struct sq_records *records, struct squall_error *err) SQUALL_CHECK;

#endif
