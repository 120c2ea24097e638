/* See sweep.h. */
#include "convert/sweep.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/plan.h"
#include "convert/rekey.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include <string.h>

enum { DEEP = 1, SHARED = 2 /* others may be at work there */ };

/* Of whom locks are made nobody knows before they are: their temporary files are left where their process may live. */
static bool may_live(const char *name, int how)
{
    const bool of_lock = !strncmp(name, ".lock", 5);
    return (how & SHARED || of_lock) && !sq_atomic_is_abandoned(name);
}

/* A folder that is not there is clean. */
static int sweep_folder(const char *folder, int how, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list_if_there(folder, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        bool temporary = sq_atomic_is_temporary(names[i]);
        if (temporary ? may_live(names[i], how) : !(how & DEEP))
            continue;
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, names[i]);
        if (!path)
            status = sq_error_memory(err, strlen(folder));
        else if (temporary)
            status = sq_file_remove(path, err);
        else if (sq_folder_is_real(path))
            status = sweep_folder(path, how, err);
    }
    sq_names_free(names, count);
    return status;
}

static int sweep_below(const char *store, const char *name, int how, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(store, name);
    return path ? sweep_folder(path, how, err) : sq_error_memory(err, strlen(store));
}

/* An array whose chunks are files of one folder: nobody looks whether each of them is a folder, of which there may be 100,000. */
static int sweep_flags(struct sq_store store, const char *name, int how, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *chunks = sq_store_chunk_folder(store, name);
    SQ_TRY(sweep_below(store.folder, name, how, err));
    return chunks ? sweep_folder(chunks, how, err) : sq_error_memory(err, strlen(name));
}

static int sweep_array(const struct sq_sweeping *s, const char *name, int how, struct squall_error *err)
{
    const uint64_t chunk = s->layout->init_chunk, units = (s->init_count + chunk - 1) / chunk;
    SQ_TRY(sweep_below(s->store.folder, name, how, err));
    for (uint64_t unit = 0; unit < units; unit++) {
        const struct sq_record_unit *record = sq_records_unit(s->records, unit);
        if ((record && record->valid) || (how & SHARED && !sq_part_has(s->part, unit)))
            continue;
        SQ_CLEANUP_FREE char *path = sq_store_chunk_path(s->store, name, 1, &unit);
        if (!path)
            return sq_error_memory(err, strlen(name));
        SQ_TRY(sweep_folder(path, DEEP, err));
    }
    return 0;
}

int sq_sweep(const struct sq_sweeping *s, struct squall_error *err)
{
    const int shared = s->is_alone ? 0 : SHARED;
    SQ_TRY(sweep_flags(s->store, SQ_FLAG_EXISTS, shared, err));
    SQ_TRY(sweep_folder(s->records_folder, DEEP | shared, err));
    if (!s->layout)
        return 0;
    SQ_TRY(sweep_folder(s->store.folder, shared, err));
    SQ_TRY(sweep_flags(s->store, SQ_FLAG_COUNT, shared, err));
    for (size_t i = 0; i < s->coordinate_count; i++)
        SQ_TRY(sweep_below(s->store.folder, s->coordinates[i], DEEP | shared, err));
    for (size_t i = 0; i < s->layout->array_count; i++)
        SQ_TRY(sweep_array(s, s->layout->arrays[i].name, shared, err));
    return 0;
}

/* The new store that a killed --overwrite had begun, or the old one that it had replaced. And the same of rekey.h. */
int sq_sweep_beside(const char *store, bool exists, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *beside = sq_plan_beside(store, "new");
    if (!beside)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(sq_tree_remove(beside, err));
    return exists ? sq_rekey_sweep(store, err) : 0;
}
