/* See rekey.h. */
#include "convert/rekey.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/staged.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <inttypes.h>
#include <string.h>

/* ---- chunks ---------------------------------------------------------------------------------------------------------------------- */

static int link_entry(const char *from, const char *to, struct squall_error *err);

/* All in the folder; or what is an index there, as it moves, and nothing else. */
static int link_folder(const char *from, const char *to, const struct sq_move *move, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_make(to, err));
    SQ_TRY(sq_folder_list(from, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        uint64_t index;
        const bool moves = move && sq_store_is_index(names[i], &index);
        if (sq_atomic_is_temporary(names[i]) || (move && !moves))
            continue;
        SQ_CLEANUP_FREE char *source = sq_path_join(from, names[i]);
        SQ_CLEANUP_FREE char *target = moves ? sq_format("%s/%" PRIu64, to, sq_moved(move, index)) : sq_path_join(to, names[i]);
        status = source && target ? link_entry(source, target, err) : sq_error_memory(err, strlen(from));
    }
    sq_names_free(names, count);
    return status;
}

static int link_entry(const char *from, const char *to, struct squall_error *err)
{
    return sq_folder_is_real(from) ? link_folder(from, to, NULL, err) : sq_file_link(from, to, err);
}

/* Chunks lie in a folder, by their index along init_time; the array's metadata is written anew. */
static int link_array(struct sq_store from, struct sq_store to, const char *name, const struct sq_move *move, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *array = sq_path_join(to.folder, name);
    SQ_CLEANUP_FREE char *source = sq_store_chunk_folder(from, name);
    SQ_CLEANUP_FREE char *target = sq_store_chunk_folder(to, name);
    enum sq_file_kind kind;
    if (!array || !source || !target)
        return sq_error_memory(err, strlen(name));
    SQ_TRY(sq_folder_make(array, err));
    SQ_TRY(sq_file_stat(source, &kind, NULL, err));
    return kind == SQ_FILE_FOLDER ? link_folder(source, target, move, err) : 0;
}

static bool is_flag(const char *name)
{
    return !strcmp(name, SQ_FLAG_EXISTS) || !strcmp(name, SQ_FLAG_COUNT);
}

static bool is_variable(const struct squall_convert_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->layout.array_count; i++)
        if (!strcmp(plan->layout.arrays[i].name, name))
            return true;
    return false;
}

static bool is_coordinate(const struct squall_convert_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->cube.coordinate_count; i++)
        if (!strcmp(plan->cube.coordinates[i].name, name))
            return true;
    return false;
}

/* An entry of the store's own folder. What is none of squall's goes along as it is. */
static int link_member(const struct squall_convert_plan *plan, const char *store, const char *moved, const char *name,
                       struct squall_error *err)
{
    SQ_CLEANUP_FREE char *from = sq_path_join(store, name);
    SQ_CLEANUP_FREE char *to = sq_path_join(moved, name);
    if (!from || !to)
        return sq_error_memory(err, strlen(store));
    const int zarr_format = plan->layout.zarr_format;
    const struct sq_store old = {store, zarr_format}, new = {moved, zarr_format};
    if (sq_atomic_is_temporary(name) || sq_store_is_document(name) || is_coordinate(plan, name))
        return 0;
    if (is_flag(name)) /* of fields: an element a chunk */
        return link_array(old, new, name, &plan->cube.move, err);
    return is_variable(plan, name) ? link_array(old, new, name, &plan->unit_move, err) : link_entry(from, to, err);
}

static int link_members(const struct squall_convert_plan *plan, const char *store, const char *moved, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list(store, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++)
        status = link_member(plan, store, moved, names[i], err);
    sq_names_free(names, count);
    return status;
}

/* ---- records --------------------------------------------------------------------------------------------------------------------- */

/* Units that a killed run was about to replace take their places where they still are. */
static int write_records(const struct squall_convert_plan *plan, const char *folder, struct squall_error *err)
{
    struct sq_store_state state;
    SQ_TRY(sq_store_state_read(plan->target, &state, err));
    const struct sq_staging staging = {sq_plan_store(plan), state.records_folder, &plan->layout, NULL};
    int status = sq_layout_renumber(&plan->layout, &state.records, err);
    if (!status)
        status = sq_staged_go_on_all(&staging, plan->settings.command, &state.records, err);
    sq_store_state_move(&state, &plan->unit_move);
    if (!status)
        status = sq_journals_copy(folder, &state.records, err);
    sq_store_state_done(&state);
    return status;
}

/* ---- the moved store ------------------------------------------------------------------------------------------------------------- */

struct rekeying {
    char *store; /* no link to it */
    char *moved;
    char *records; /* of the moved store */
    bool is_exchanged;
    struct sq_lock *lock; /* the same */
};

static void rekeying_done(struct rekeying *r)
{
    sq_lock_release(r->lock);
    sq_free(r->store);
    sq_free(r->moved);
    sq_free(r->records);
}

/* layout.json, coordinates and metadata, as of any store that a run prepares. */
static int prepare_moved(struct squall_convert_plan *plan, const struct rekeying *r, struct squall_error *err)
{
    char *const target = plan->target, *const records = plan->state.records_folder;
    plan->target = r->moved;
    plan->state.records_folder = r->records;
    int status = sq_plan_prepare(plan, err);
    plan->target = target;
    plan->state.records_folder = records;
    return status;
}

/* The records come first, since units that are staged still take their places then. */
static int make_moved(struct squall_convert_plan *plan, struct rekeying *r, struct squall_error *err)
{
    SQ_TRY(sq_tree_remove(r->moved, err));
    SQ_TRY(sq_store_make_folders(r->moved, err));
    SQ_TRY(sq_lock_take(r->records, (struct sq_part){0}, NULL, &r->lock, err));
    SQ_TRY(write_records(plan, r->records, err));
    SQ_TRY(link_members(plan, r->store, r->moved, err));
    SQ_TRY(prepare_moved(plan, r, err));
    return sq_file_system_sync(r->moved, err);
}

/* Each lock goes with its store. */
static int exchange_locks(struct squall_convert_plan *plan, struct rekeying *r, const char *old, struct sq_lock **held,
                          struct squall_error *err)
{
    struct sq_lock *moved = r->lock;
    SQ_CLEANUP_FREE char *records = sq_records_folder(old);
    if (!records)
        return sq_error_memory(err, strlen(old));
    r->lock = *held;
    *held = moved;
    SQ_TRY(sq_lock_moved(r->lock, records, err));
    return sq_lock_moved(*held, plan->state.records_folder, err);
}

static int rekey(struct squall_convert_plan *plan, struct rekeying *r, struct sq_lock **held, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *aside = sq_plan_beside(r->store, "old");
    SQ_CLEANUP_FREE char *folder = sq_path_folder(r->store);
    const char *old;
    if (!aside || !folder)
        return sq_error_memory(err, strlen(r->store));
    SQ_TRY(make_moved(plan, r, err));
    SQ_TRY(sq_tree_exchange(r->moved, r->store, aside, &old, err));
    r->is_exchanged = true;
    SQ_TRY(exchange_locks(plan, r, old, held, err));
    SQ_TRY(sq_folder_sync(folder, err));
    return sq_tree_remove(old, err);
}

int sq_rekey(struct squall_convert_plan *plan, struct sq_lock **held, struct squall_error *err)
{
    __attribute__((cleanup(rekeying_done))) struct rekeying r = {0};
    SQ_TRY(sq_path_resolve(plan->target, &r.store, err));
    r.moved = sq_plan_beside(r.store, "moved");
    r.records = r.moved ? sq_records_folder(r.moved) : NULL;
    if (!r.records)
        return sq_error_memory(err, strlen(r.store));
    int status = rekey(plan, &r, held, err);
    if (status && !r.is_exchanged) {
        int stays = sq_tree_remove(r.moved, NULL); /* else the next run does that */
        (void)stays;
    }
    return status;
}

/* ---- what killed runs leave ------------------------------------------------------------------------------------------------------ */

/* *ret: where it lies; NULL: it is where it should be, or was never there. sq_free. */
static int find_left(const char *store, char **ret, struct squall_error *err)
{
    size_t length = strlen(store);
    while (length > 1 && store[length - 1] == '/')
        length--;
    SQ_CLEANUP_FREE char *plain = sq_strndup(store, length);
    SQ_CLEANUP_FREE char *old = plain ? sq_plan_beside(plain, "old") : NULL;
    SQ_CLEANUP_FREE char *layout = sq_format("%s/chunk_exists/.squall/layout.json", old ? old : "");
    SQ_CLEANUP_FREE char *own = sq_format("%s/chunk_exists/.squall/layout.json", store);
    enum sq_file_kind left, there;
    *ret = NULL;
    if (!old || !layout || !own)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(sq_file_stat(layout, &left, NULL, err));
    SQ_TRY(sq_file_stat(own, &there, NULL, err));
    if (left == SQ_FILE_NONE || there != SQ_FILE_NONE)
        return 0;
    *ret = old;
    old = NULL;
    return 0;
}

int sq_rekey_look(const char *store, struct squall_error *err)
{
    char *found = NULL;
    SQ_TRY(find_left(store, &found, err));
    SQ_CLEANUP_FREE char *old = found;
    return old ? sq_error(err, SQUALL_EREFUSED, "%s: an interrupted run has left the store as %s; `squall convert` gives it its name back",
                          store, old)
               : 0;
}

int sq_rekey_recover(const char *store, struct squall_error *err)
{
    char *found = NULL;
    bool is_taken;
    SQ_TRY(find_left(store, &found, err));
    SQ_CLEANUP_FREE char *old = found;
    if (!old)
        return 0;
    SQ_CLEANUP_FREE char *records = sq_records_folder(old);
    SQ_CLEANUP_FREE char *folder = sq_path_folder(store);
    if (!records || !folder)
        return sq_error_memory(err, strlen(store));
    int status = sq_lock_look(records, (struct sq_part){0}, NULL, err);
    if (status)
        return sq_error_within(err, status, "%s", store);
    SQ_TRY(sq_file_exists(store, &is_taken, err));
    if (is_taken)
        return sq_error(err, SQUALL_EREFUSED,
                        "%s: an interrupted run has left the store as %s; remove what is in its place, and start again", store, old);
    SQ_TRY(sq_file_rename(old, store, err));
    return sq_folder_sync(folder, err);
}

int sq_rekey_sweep(const char *store, struct squall_error *err)
{
    static const char *const NAMES[] = {"moved", "old"};
    char *real = NULL;
    SQ_TRY(sq_path_resolve(store, &real, err));
    SQ_CLEANUP_FREE char *path = real;
    SQ_CLEANUP_FREE char *folder = sq_path_folder(path);
    if (!folder)
        return sq_error_memory(err, strlen(path));
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        SQ_CLEANUP_FREE char *beside = sq_plan_beside(path, NAMES[i]);
        bool is_left;
        if (!beside)
            return sq_error_memory(err, strlen(path));
        SQ_TRY(sq_file_exists(beside, &is_left, err));
        if (!is_left)
            continue;
        SQ_TRY(sq_folder_sync(folder, err)); /* that the store has its name is durable before the other one goes */
        SQ_TRY(sq_tree_remove(beside, err));
    }
    return 0;
}
