/*
 * Temporary files of runs that were killed. They lie where a run writes: beside metadata, coordinates, flags and records, and
 * in the folders of units that have no record. Where nobody else is at work every one of them is a dead one's. A part that begins is alone with
 * its units; in the folders that it shares it removes what dead processes of this machine left, and leaves the rest to the last of the parts.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/rekey.h"
#include "convert/write.h"
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

/* An array whose chunks are files of its folder "c": nobody looks whether each of them is a folder, of which there may be 100,000. */
static int sweep_flags(const char *store, const char *name, int how, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *chunks = sq_format("%s/%s/c", store, name);
    SQ_TRY(sweep_below(store, name, how, err));
    return chunks ? sweep_folder(chunks, how, err) : sq_error_memory(err, strlen(store));
}

static int sweep_array(const struct squall_convert_plan *plan, const char *name, int how, struct squall_error *err)
{
    uint64_t units = (plan->cube.init_count + plan->layout.init_chunk - 1) / plan->layout.init_chunk;
    SQ_TRY(sweep_below(plan->target, name, how, err));
    for (uint64_t unit = 0; unit < units; unit++) {
        const struct sq_record_unit *record = sq_records_unit(&plan->state.records, unit);
        if ((record && record->valid) || (how & SHARED && !sq_plan_has_unit(plan, unit)))
            continue;
        SQ_CLEANUP_FREE char *path = sq_store_chunk_path(plan->target, name, 1, &unit);
        if (!path)
            return sq_error_memory(err, strlen(name));
        SQ_TRY(sweep_folder(path, DEEP, err));
    }
    return 0;
}

/* What a killed --overwrite left beside the store: the new one that it had begun, or the old one that it had replaced. And the same of rekey.h. */
static int remove_beside(const struct squall_convert_plan *plan, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *beside = sq_plan_beside(plan->target, "new");
    if (!beside)
        return sq_error_memory(err, strlen(plan->target));
    SQ_TRY(sq_tree_remove(beside, err));
    return plan->state.exists ? sq_rekey_sweep(plan->target, err) : 0;
}

int sq_sweep(const struct squall_convert_plan *plan, bool alone, struct squall_error *err)
{
    const int shared = alone ? 0 : SHARED;
    if (!plan->replaced && plan->settings.part.count == 0)
        SQ_TRY(remove_beside(plan, err));
    SQ_TRY(sweep_flags(plan->target, SQ_FLAG_EXISTS, shared, err));
    SQ_TRY(sweep_folder(plan->state.records_folder, DEEP | shared, err));
    if (!plan->state.exists) /* nothing else has been begun */
        return 0;
    SQ_TRY(sweep_folder(plan->target, shared, err));
    SQ_TRY(sweep_flags(plan->target, SQ_FLAG_COUNT, shared, err));
    for (size_t i = 0; i < plan->cube.coordinate_count; i++)
        SQ_TRY(sweep_below(plan->target, plan->cube.coordinates[i].name, DEEP | shared, err));
    for (size_t i = 0; i < plan->layout.array_count; i++)
        SQ_TRY(sweep_array(plan, plan->layout.arrays[i].name, shared, err));
    return 0;
}
