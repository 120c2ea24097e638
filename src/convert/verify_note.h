/* What verify found, in the records: so that readers no longer see the units in question, and the next conversion makes them anew. */
#ifndef SQ_CONVERT_VERIFY_NOTE_H
#define SQ_CONVERT_VERIFY_NOTE_H

#include "convert/store_state.h"

/* Of a unit, the first chunk that is not as recorded. */
struct sq_damage {
    const char *array; /* NULL: all are */
    uint64_t chunk;
    struct sq_record_chunk record;
    char *what; /* the file, within the store, and what is wrong with it */
};

/*
 * damage: of each of seen->records.units. Noted is what no other run has replaced meanwhile and no record tells of already: flags off, durable → a line of
 * a journal. *ret_count: how many units. Errors: the store is in use, or cannot be written; then nothing is noted, or the first ones.
 */
int sq_verify_note(const char *store, const struct sq_store_state *seen, const struct sq_damage *damage, uint64_t *ret_count,
                   struct squall_error *err) SQUALL_CHECK;

#endif
