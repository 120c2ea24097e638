/*
 * Replacing a unit that is stored. Its new chunks are written into a folder of their own, RECORDS/staged/UNIT; when all of them are durable, a line
 * of the journal says what they are, and then each takes the place of the old one. So at every moment all of the old unit or all of the new one is
 * on disk: what only the old one holds is never lost, whatever ends the run, and the next run goes on from that line.
 */
#ifndef SQ_CONVERT_STAGED_H
#define SQ_CONVERT_STAGED_H

#include "convert/journal.h"
#include "convert/layout.h"
#include "convert/lock.h"
#include "store/zarr_writer.h"

struct sq_staging {
    struct sq_store store;
    const char *records_folder;
    const struct sq_layout *layout;
    struct sq_journal *journal;
};

/* Where the unit's new chunks are written, as into a store. sq_free; NULL: out of memory. */
char *sq_staged_folder(const char *records_folder, uint64_t unit) __attribute__((warn_unused_result));
/* All chunks of the record are staged and durable: flags off → line → chunks in their places → record. The flags are the caller's. */
int sq_staged_replace(const struct sq_staging *s, const struct sq_record_unit *record, struct squall_error *err) SQUALL_CHECK;
/*
 * Go on where a run was killed behind that line, record.is_staged: as above, from the chunks on. *ret_why: the chunk that is neither staged
 * nor in its place, which no killed run leaves so; the unit then holds no longer, and its line says so. NULL: it is done. The caller's.
 */
int sq_staged_go_on(const struct sq_staging *s, struct sq_record_unit *record, char **ret_why, struct squall_error *err) SQUALL_CHECK;
/*
 * The same of all units of the records, by whoever needs their state alone: those whose chunks were lost have their damage in the records. A journal is made
 * where there is anything to do, and closed: s->journal is none; command: of its head. records->last_epoch becomes its own.
 */
int sq_staged_go_on_all(const struct sq_staging *s, const char *command, struct sq_records *records, struct squall_error *err) SQUALL_CHECK;
/* Remove what is staged of the part's units of which no line speaks. */
int sq_staged_sweep(const char *records_folder, struct sq_part part, const struct sq_records *records,
                    struct squall_error *err) SQUALL_CHECK;

#endif
