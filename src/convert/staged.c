/* See staged.h. */
#include "convert/staged.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/carry.h"
#include "convert/flags.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *folder_of_all(const char *records_folder)
{
    return sq_path_join(records_folder, "staged");
}

char *sq_staged_folder(const char *records_folder, uint64_t unit)
{
    return sq_format("%s/staged/%llu", records_folder, (unsigned long long)unit);
}

/* ---- chunks take their places ---------------------------------------------------------------------------------------------------- */

struct placing {
    const struct sq_staging *s;
    const struct sq_record_unit *record;
    char *staged;    /* the unit's folder */
    char *folder;    /* in which names have changed and are not durable yet; NULL: none */
    bool is_checked; /* each chunk is compared with its record first */
    char *why;       /* the first that is nowhere; the others take their places all the same, since what is staged goes */
};

static void placing_done(struct placing *p)
{
    sq_free(p->staged);
    sq_free(p->folder);
    sq_free(p->why);
}

static int sync_folder(struct placing *p, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = p->folder;
    p->folder = NULL;
    return folder ? sq_folder_sync(folder, err) : 0;
}

/* Names in path's folder are about to change. */
static int enter_folder(struct placing *p, const char *path, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = sq_path_folder(path);
    if (!folder)
        return sq_error_memory(err, strlen(path));
    if (p->folder && !strcmp(p->folder, folder))
        return 0;
    SQ_TRY(sync_folder(p, err));
    SQ_TRY(sq_folder_make_durable(folder, err));
    p->folder = folder;
    folder = NULL;
    return 0;
}

static int remove_chunk(struct placing *p, const char *path, struct squall_error *err)
{
    bool exists;
    SQ_TRY(sq_file_exists(path, &exists, err));
    if (!exists)
        return 0;
    SQ_TRY(enter_folder(p, path, err));
    return sq_file_remove(path, err);
}

/* Does the file hold what the record says? */
static int check(struct placing *p, const char *path, const struct sq_record_chunk *chunk, bool *ret_good, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    char *bytes = NULL;
    int status = sq_carry_read(path, chunk, &bytes, &failure);
    sq_free(bytes);
    *ret_good = !status;
    if (status && status != SQUALL_ECORRUPT && status != SQUALL_ENOTFOUND) {
        if (err)
            *err = failure;
        return status;
    }
    if (status && !p->why && !(p->why = sq_strdup(failure.message)))
        return sq_error_memory(err, sizeof failure);
    return 0;
}

static int place_chunk(struct placing *p, const struct sq_layout_array *a, const struct sq_record_chunk *chunk, size_t number,
                       struct squall_error *err)
{
    uint64_t index[SQ_LAYOUT_RANK_MAX];
    bool exists, is_good = true;
    sq_layout_chunk_index(a, p->record->unit, number, index);
    SQ_CLEANUP_FREE char *to = sq_store_chunk_path(p->s->store, a->name, a->rank, index);
    SQ_CLEANUP_FREE char *from = sq_store_chunk_path((struct sq_store){p->staged, p->s->store.zarr_format}, a->name, a->rank, index);
    if (!to || !from)
        return sq_error_memory(err, strlen(a->name));
    if (chunk->size_bytes == 0)
        return remove_chunk(p, to, err);
    SQ_TRY(sq_file_exists(from, &exists, err));
    if (p->is_checked)
        SQ_TRY(check(p, exists ? from : to, chunk, &is_good, err));
    if (!exists || !is_good)
        return 0;
    SQ_TRY(enter_folder(p, to, err));
    return sq_atomic_link(from, to, err); /* what is renamed from folder to folder may be in neither after a power cut */
}

static int place_chunks(struct placing *p, struct squall_error *err)
{
    const struct sq_layout *layout = p->s->layout;
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_record_array *r = sq_record_array_of(p->record, layout->arrays[i].name);
        for (size_t k = 0; r && k < r->chunk_count; k++)
            SQ_TRY(place_chunk(p, &layout->arrays[i], &r->chunks[k], k, err));
    }
    return sync_folder(p, err);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------- */

int sq_staged_replace(const struct sq_staging *s, const struct sq_record_unit *record, struct squall_error *err)
{
    __attribute__((cleanup(placing_done))) struct placing p = {.s = s, .record = record};
    if (!(p.staged = sq_staged_folder(s->records_folder, record->unit)))
        return sq_error_memory(err, strlen(s->records_folder));
    SQ_TRY(sq_flags_clear(s->store, s->layout->flag_chunk, record->unit * s->layout->init_chunk, (size_t)s->layout->init_chunk, err));
    SQ_TRY(sq_journal_add_staged(s->journal, record, err));
    SQ_TRY(place_chunks(&p, err));
    SQ_TRY(sq_journal_add_unit(s->journal, record, err));
    return sq_tree_remove(p.staged, err);
}

int sq_staged_go_on(const struct sq_staging *s, struct sq_record_unit *record, char **ret_why, struct squall_error *err)
{
    __attribute__((cleanup(placing_done))) struct placing p = {.s = s, .record = record, .is_checked = true};
    *ret_why = NULL;
    if (!(p.staged = sq_staged_folder(s->records_folder, record->unit)))
        return sq_error_memory(err, strlen(s->records_folder));
    if (!sq_layout_fits(s->layout->arrays, s->layout->array_count, s->layout->init_chunk, record))
        p.why = sq_strdup("its record does not fit the layout");
    else
        SQ_TRY(place_chunks(&p, err));
    record->is_staged = false;
    record->valid = !p.why;
    if (record->valid) {
        SQ_TRY(sq_journal_add_unit(s->journal, record, err));
        return sq_tree_remove(p.staged, err);
    }
    *ret_why = p.why;
    p.why = NULL;
    return sq_journal_add_invalid(s->journal, record->unit, *ret_why, err);
}

static int go_on_with(const struct sq_staging *s, struct sq_records *records, struct sq_record_unit *record, struct squall_error *err)
{
    char *told = NULL;
    SQ_TRY(sq_staged_go_on(s, record, &told, err));
    SQ_CLEANUP_FREE char *why = told;
    return !why || (record->damage = sq_arena_strdup(records->arena, why)) ? 0 : sq_error_memory(err, strlen(why));
}

int sq_staged_go_on_all(const struct sq_staging *s, const char *command, struct sq_records *records, struct squall_error *err)
{
    struct sq_staging own = *s;
    int status = 0;
    for (size_t i = 0; i < records->unit_count && !status; i++) {
        if (!records->units[i].is_staged)
            continue;
        if (!own.journal)
            status =
                sq_journal_new(s->records_folder, (struct sq_record_source){.epoch = ++records->last_epoch}, command, &own.journal, err);
        if (!status)
            status = go_on_with(&own, records, &records->units[i], err);
    }
    sq_journal_close(own.journal);
    return status;
}

int sq_staged_sweep(const char *records_folder, struct sq_part part, const struct sq_records *records, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *all = folder_of_all(records_folder);
    char **names;
    size_t count;
    if (!all)
        return sq_error_memory(err, strlen(records_folder));
    if (!sq_folder_is_real(all)) /* of a link, what it leads to is not this store's */
        return sq_file_remove(all, err);
    SQ_TRY(sq_folder_list(all, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        char *end;
        const uint64_t unit = strtoull(names[i], &end, 10);
        const struct sq_record_unit *record = sq_records_unit(records, unit);
        if (!*end && ((record && record->is_staged) || !sq_part_has(part, unit)))
            continue;
        SQ_CLEANUP_FREE char *path = sq_path_join(all, names[i]);
        status = path ? sq_tree_remove(path, err) : sq_error_memory(err, strlen(all));
    }
    sq_names_free(names, count);
    return status;
}
