/* See finish.h; and `squall convert --finish`, which needs none of the sources: records say what was planned, and what is stored. */
#include "convert/finish.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/rekey.h"
#include "convert/staged.h"
#include "convert/store_state.h"
#include "io/atomic_file.h"
#include "squall/convert.h"
#include "sys/clock.h"
#include <string.h>

int sq_mend_flags(struct sq_store store, const struct sq_layout *layout, const struct sq_record_unit *record, struct squall_error *err)
{
    const uint64_t chunk = layout->flag_chunk, first = record->unit * layout->init_chunk;
    if (!sq_layout_fits(layout->arrays, layout->array_count, layout->init_chunk, record))
        return 0;
    SQ_CLEANUP_FREE struct sq_flag *flags = sq_alloc(record->init_count + 1, 2 * sizeof *flags);
    bool same = true;
    if (!flags)
        return sq_error_memory(err, record->init_count * sizeof *flags);
    struct sq_flag *there = flags + record->init_count;
    SQ_TRY(sq_flags_get(store, chunk, first, there, record->init_count, err));
    for (size_t i = 0; i < record->init_count; i++) {
        flags[i] = sq_layout_flag(layout->of_arrays, record, i);
        same = same && (flags[i].field_count == 0 || (flags[i].exists == there[i].exists && flags[i].field_count == there[i].field_count));
    }
    return same ? 0 : sq_flags_set(store, chunk, first, flags, record->init_count, err);
}

int sq_finish(const struct sq_sweeping *scope, struct sq_records *records, struct squall_error *err)
{
    for (size_t i = 0; i < records->unit_count; i++)
        if (records->units[i].valid)
            SQ_TRY(sq_mend_flags(scope->store, scope->layout, &records->units[i], err));
    SQ_TRY(sq_sweep(scope, err));
    SQ_TRY(sq_staged_sweep(scope->records_folder, scope->part, records, err));
    return sq_journals_join(scope->records_folder, records, err);
}

/* ---- squall convert --finish ------------------------------------------------------------------------------------------------------ */

struct finishing {
    const char *store;
    struct sq_store_state state;
    struct sq_layout layout;
    char **names; /* of all in the store */
    size_t name_count;
    const char **coordinates;
    size_t coordinate_count;
    uint64_t planned, left; /* units of the parts' plan, and those of them that nobody has written */
    struct sq_lock *lock;
};

static void finishing_done(struct finishing *f)
{
    sq_lock_release(f->lock);
    sq_names_free(f->names, f->name_count);
    sq_free(f->coordinates);
    sq_layout_done(&f->layout);
    sq_store_state_done(&f->state);
}

static int take_lock(struct finishing *f, const squall_context *ctx, unsigned timeout_s, struct squall_error *err)
{
    const struct sq_patience patience = {ctx, sq_clock_s() + timeout_s};
    SQ_CLEANUP_FREE char *records = sq_records_folder(f->store);
    enum sq_file_kind kind;
    if (!records)
        return sq_error_memory(err, strlen(f->store));
    SQ_TRY(sq_rekey_recover(f->store, err));
    SQ_TRY(sq_file_stat(f->store, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: no such store", f->store);
    SQ_TRY(sq_file_stat(records, &kind, NULL, err));
    if (kind != SQ_FILE_FOLDER)
        return sq_error(err, SQUALL_EINVAL, "%s: no store that squall convert has begun (it has no records, chunk_exists/.squall)",
                        f->store);
    int status = sq_lock_take(records, (struct sq_part){0}, &patience, &f->lock, err);
    return status && status != SQUALL_ECANCELLED ? sq_error_within(err, status, "%s", f->store) : status;
}

static bool is_of_layout(const struct sq_layout *layout, const char *name)
{
    bool is = !strcmp(name, SQ_FLAG_EXISTS) || !strcmp(name, SQ_FLAG_COUNT);
    for (size_t i = 0; i < layout->array_count && !is; i++)
        is = !strcmp(name, layout->arrays[i].name);
    return is;
}

/* Whatever else lies in the store, as temporary files may be beside it. */
static int find_coordinates(struct finishing *f, struct squall_error *err)
{
    SQ_TRY(sq_folder_list(f->store, &f->names, &f->name_count, err));
    f->coordinates = sq_alloc(f->name_count + 1, sizeof *f->coordinates);
    if (!f->coordinates)
        return sq_error_memory(err, f->name_count * sizeof *f->coordinates);
    for (size_t i = 0; i < f->name_count; i++) {
        SQ_CLEANUP_FREE char *path = sq_path_join(f->store, f->names[i]);
        if (!path)
            return sq_error_memory(err, strlen(f->store));
        if (!is_of_layout(&f->layout, f->names[i]) && sq_folder_is_real(path))
            f->coordinates[f->coordinate_count++] = f->names[i];
    }
    return 0;
}

/* The records as they are now. A unit that was left is told of by whoever left it. */
static void count(struct finishing *f)
{
    const struct sq_records *records = &f->state.records;
    for (size_t i = 0; i < records->planned.count; i++)
        for (uint64_t unit = records->planned.items[i].first; unit <= records->planned.items[i].last; unit++) {
            const struct sq_record_unit *record = sq_records_unit(records, unit);
            f->planned++;
            f->left += !(record && record->valid) && !sq_records_left(records, unit);
        }
}

static int finish_store(struct finishing *f, struct squall_error *err)
{
    SQ_TRY(sq_store_state_read(f->store, &f->state, err));
    if (!f->state.exists)
        return sq_error(err, SQUALL_EINVAL, "%s: nothing of it has been written yet; start the parts, or convert without --part", f->store);
    if (sq_ranges_beyond(&f->state.records.planned, (f->state.init_count - 1) / f->state.init_chunk + 1))
        return sq_error(err, SQUALL_ECORRUPT, "%s: more units are planned than the store has; " SQ_RECORDS_DAMAGED, f->store);
    SQ_TRY(sq_layout_recorded(&f->state, &f->layout, err));
    SQ_TRY(find_coordinates(f, err));
    const char *command = f->state.records.command;
    const struct sq_staging staging = {{f->store, f->state.zarr_format}, f->state.records_folder, &f->layout, NULL};
    SQ_TRY(sq_staged_go_on_all(&staging, command ? command : "squall convert", &f->state.records, err));
    const struct sq_sweeping scope = {
        .store = staging.store,
        .records_folder = f->state.records_folder,
        .layout = &f->layout,
        .records = &f->state.records,
        .init_count = f->state.init_count,
        .coordinates = f->coordinates,
        .coordinate_count = f->coordinate_count,
        .is_alone = true,
    };
    count(f);
    SQ_TRY(sq_sweep_beside(f->store, true, err));
    return sq_finish(&scope, &f->state.records, err);
}

static int report(const struct finishing *f, struct squall_convert_result *ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    struct squall_convert_result r = {.units_skipped = f->planned - f->left, .units_failed = f->left, .news = f->left > 0};
    struct sq_json *units = sq_json_new_object();
    int failed = sq_json_set(v, "units", units);
    if (failed || sq_json_set_string(v, "destination", f->store) || sq_json_set(units, "planned", sq_json_new_uint(f->planned)) ||
        sq_json_set(units, "left", sq_json_new_uint(f->left)))
        return sq_error_memory(err, sizeof(void *));
    sq_text_printf(&text, "%s: finished", f->store);
    if (f->left) {
        sq_text_printf(&text, ", but for %llu of ", (unsigned long long)f->left);
        sq_text_add_count(&text, f->planned, "unit");
        sq_text_add(&text, " that the parts planned: start those parts again (squall status shows what is missing)");
    } else if (f->planned) {
        sq_text_add(&text, "; ");
        sq_text_add_count(&text, f->planned, "unit");
        sq_text_add(&text, " that the parts planned, all of them written");
    }
    sq_text_add(&text, "\n");
    if (!(r.text = sq_text_for_caller(&text)))
        return sq_error_memory(err, text.length);
    int status = sq_json_for_caller(v, &r.json, err);
    if (status)
        squall_convert_result_done(&r);
    else
        *ret = r;
    return status;
}

int squall_convert_finish(squall_context *ctx, const char *store, unsigned lock_timeout_s, struct squall_convert_result *ret,
                          struct squall_error *err)
{
    __attribute__((cleanup(finishing_done))) struct finishing f = {.store = store};
    SQ_TRY(take_lock(&f, ctx, lock_timeout_s, err));
    int status = finish_store(&f, err);
    return status ? status : report(&f, ret, err);
}
