/* See verify_note.h. */
#include "convert/verify_note.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/journal.h"
#include "convert/lock.h"
#include <string.h>

/* Is the unit still the one that was looked at? now: its record. */
static bool is_same(const struct sq_record_unit *now, const struct sq_damage *d)
{
    const struct sq_record_array *a = now && now->valid ? sq_record_array_of(now, d->array) : NULL;
    return a && d->chunk < a->chunk_count && a->chunks[d->chunk].size_bytes == d->record.size_bytes &&
           a->chunks[d->chunk].crc32c == d->record.crc32c;
}

static int note_units(const char *store, const struct sq_store_state *now, const struct sq_store_state *seen,
                      const struct sq_damage *damage, struct sq_journal *journal, uint64_t *ret_count, struct squall_error *err)
{
    for (size_t i = 0; i < seen->records.unit_count; i++) {
        const uint64_t unit = seen->records.units[i].unit;
        if (!damage[i].array || !is_same(sq_records_unit(&now->records, unit), &damage[i]))
            continue;
        SQ_TRY(sq_flags_clear((struct sq_store){store, now->zarr_format}, now->flag_chunk, unit * now->init_chunk, (size_t)now->init_chunk,
                              err));
        SQ_TRY(sq_journal_add_invalid(journal, unit, damage[i].what, err));
        ++*ret_count;
    }
    return 0;
}

/* The lock is held. */
static int note(const char *store, const struct sq_store_state *seen, const struct sq_damage *damage, uint64_t *ret_count,
                struct squall_error *err)
{
    struct sq_store_state now = {0};
    struct sq_journal *journal = NULL;
    SQ_TRY(sq_store_state_read(store, &now, err));
    const char *command = now.records.command; /* stays the one that goes on */
    int status = 0;
    if (now.exists)
        status = sq_journal_new(now.records_folder, (struct sq_record_source){now.records.last_epoch + 1, 0},
                                command ? command : "squall convert", &journal, err);
    if (journal)
        status = note_units(store, &now, seen, damage, journal, ret_count, err);
    sq_journal_close(journal);
    sq_store_state_done(&now);
    return status;
}

int sq_verify_note(const char *store, const struct sq_store_state *seen, const struct sq_damage *damage, uint64_t *ret_count,
                   struct squall_error *err)
{
    struct sq_lock *lock = NULL;
    bool any = false;
    *ret_count = 0;
    for (size_t i = 0; i < seen->records.unit_count; i++)
        any = any || (damage[i].array && seen->records.units[i].valid);
    if (!any)
        return 0;
    SQ_TRY(sq_lock_take(seen->records_folder, (struct sq_part){0}, NULL, &lock, err));
    int status = note(store, seen, damage, ret_count, err);
    sq_lock_release(lock);
    return status;
}
