/*
 * squall verify: every chunk that a record tells of, by length and checksum, in parallel; what has no record, the coordinates and the
 * metadata, is read. A path without records (a Zarr store of others, HDF5 and NetCDF files) is decoded instead (verify_decode.c).
 */
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/layout.h"
#include "convert/rekey.h"
#include "convert/store_state.h"
#include "convert/verify_internal.h"
#include "convert/verify_metadata.h"
#include "convert/verify_note.h"
#include "cube/array_damage.h"
#include "engine/array.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 20 };

/* What a record says of one chunk. */
struct expected {
    const struct sq_layout_array *array;
    size_t which; /* of the records' units */
    uint64_t unit, chunk;
    struct sq_record_chunk record;
};

struct recorded {
    struct sq_verify *v;
    struct sq_layout layout; /* sq_layout_recorded */
    const struct sq_json *schema;
    struct expected *chunks;
    size_t chunk_count, chunk_capacity;
    void **pieces;            /* of a file, of each worker */
    struct sq_damage *damage; /* of each unit; under the lock of verify */
    size_t unit_count;
};

static void recorded_done(struct recorded *r)
{
    for (unsigned i = 0; r->pieces && i < r->v->ctx->threads; i++)
        sq_free(r->pieces[i]);
    for (size_t i = 0; r->damage && i < r->unit_count; i++)
        sq_free(r->damage[i].what);
    sq_free(r->damage);
    sq_free(r->pieces);
    sq_free(r->chunks);
    sq_layout_done(&r->layout);
}

static const struct sq_layout_array *array_named(const struct recorded *r, const char *name)
{
    for (size_t i = 0; i < r->layout.array_count; i++)
        if (!strcmp(r->layout.arrays[i].name, name))
            return &r->layout.arrays[i];
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_in_question(const struct sq_verify *v, uint64_t unit)
{
    return !v->units || (v->unit_count && bsearch(&unit, v->units, v->unit_count, sizeof *v->units, by_number));
}

static int list_unit(struct recorded *r, const struct sq_record_unit *unit, size_t which, struct squall_error *err)
{
    if (!sq_layout_fits(r->layout.arrays, r->layout.array_count, r->layout.init_chunk, unit))
        return sq_verify_add(r->v, &r->v->bad, 0,
                             sq_format("%s: the record of unit %llu does not fit the layout", r->v->store, (unsigned long long)unit->unit),
                             err);
    for (size_t i = 0; i < unit->array_count && is_in_question(r->v, unit->unit); i++) {
        const struct sq_record_array *stored = &unit->arrays[i];
        const struct sq_layout_array *a = array_named(r, stored->name);
        for (size_t k = 0; k < stored->chunk_count; k++) {
            if (!a || stored->chunks[k].size_bytes == 0)
                continue;
            SQ_TRY(SQ_GROW(r->chunks, r->chunk_capacity, r->chunk_count + 1, err));
            r->chunks[r->chunk_count++] = (struct expected){a, which, unit->unit, k, stored->chunks[k]};
        }
    }
    return 0;
}

/* What is wrong with the file; *ret_line NULL: nothing. One that cannot be opened may be whole: *ret_unread. */
static int compare(struct recorded *r, const struct expected *e, const char *path, unsigned worker, char **ret_line, bool *ret_unread,
                   struct squall_error *err)
{
    enum sq_file_kind kind;
    struct sq_file_identity identity;
    struct squall_error failure = SQUALL_ERROR_INIT;
    int fd = -1;
    *ret_line = NULL;
    int status = sq_file_stat(path, &kind, &identity, &failure);
    *ret_unread = status != 0;
    if (!status && kind == SQ_FILE_NONE)
        status = sq_error(&failure, SQUALL_ENOTFOUND, "%s: missing", path);
    else if (!status && (kind != SQ_FILE_REGULAR || identity.size_bytes != e->record.size_bytes))
        status = sq_error(&failure, SQUALL_ECORRUPT, "%s: %llu bytes, its record says %llu", path, (unsigned long long)identity.size_bytes,
                          (unsigned long long)e->record.size_bytes);
    if (!status && !r->pieces[worker] && !(r->pieces[worker] = sq_alloc(PIECE_BYTES, 1)))
        return sq_error_memory(err, PIECE_BYTES);
    if (!status) {
        status = sq_file_open(path, &fd, NULL, &failure);
        *ret_unread = status != 0;
    }
    uint32_t crc = 0;
    for (uint64_t at = 0; at < e->record.size_bytes && !status; at += PIECE_BYTES) {
        uint64_t left = e->record.size_bytes - at;
        size_t bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        status = sq_file_read_at(fd, path, at, r->pieces[worker], bytes, &failure);
        if (!status)
            crc = sq_crc32c(crc, r->pieces[worker], bytes);
        if (sq_cancelled(r->v->ctx))
            break; /* the caller sees it too */
    }
    sq_file_close(fd);
    if (!status && crc != e->record.crc32c && !sq_cancelled(r->v->ctx))
        status = sq_error(&failure, SQUALL_ECORRUPT, "%s: its bytes do not match their checksum", path);
    if (status && !(*ret_line = sq_strdup(failure.message)))
        return sq_error_memory(err, sizeof failure);
    return 0;
}

/* line: the finding. */
static int note_damage(struct recorded *r, const struct expected *e, const char *line, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    struct sq_damage *d = &r->damage[e->which];
    sq_mutex_lock(&v->lock);
    const bool first = !d->array || strcmp(e->array->name, d->array) < 0 || (!strcmp(e->array->name, d->array) && e->chunk < d->chunk);
    char *what = first ? sq_strdup(sq_within_store(v->store, line)) : NULL; /* the first, whichever thread finds it when */
    if (what) {
        sq_free(d->what);
        *d = (struct sq_damage){e->array->name, e->chunk, e->record, what};
    }
    sq_mutex_unlock(&v->lock);
    return first && !what ? sq_error_memory(err, strlen(line)) : 0;
}

static int check_chunk(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct recorded *r = user;
    const struct expected *e = &r->chunks[index];
    uint64_t place[SQ_LAYOUT_RANK_MAX];
    char *line;
    bool unread = false;
    if (sq_cancelled(r->v->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    sq_layout_chunk_index(e->array, e->unit, e->chunk, place);
    SQ_CLEANUP_FREE char *path =
        sq_store_chunk_path((struct sq_store){r->v->store, r->layout.zarr_format}, e->array->name, e->array->rank, place);
    if (!path)
        return sq_error_memory(err, strlen(r->v->store));
    SQ_TRY(compare(r, e, path, worker, &line, &unread, err));
    int status = line && !unread ? note_damage(r, e, line, err) : 0;
    if (line && !status)
        status = sq_verify_add(r->v, &r->v->bad, index, line, err);
    else
        sq_free(line);
    SQ_TRY(status);
    sq_verify_chunk_done(r->v, e->record.size_bytes);
    return 0;
}

/* What the flags of an init time are to say by its record; neither where it has none. */
static struct sq_flag flag_by_record(const struct recorded *r, const struct sq_store_state *state, uint64_t init)
{
    const struct sq_record_unit *record = sq_records_unit(&state->records, init / state->init_chunk);
    const size_t within = (size_t)(init % state->init_chunk);
    if (!record || !record->valid || within >= record->init_count ||
        !sq_layout_fits(r->layout.arrays, r->layout.array_count, r->layout.init_chunk, record)) /* list_unit tells of that */
        return (struct sq_flag){0};
    return sq_layout_flag(r->layout.of_arrays, record, within);
}

/* "STORE/field_count/c/3: field_count is 5 for run 2022-01-01T18:00, but its record says 12" */
static int add_flag(struct sq_verify *v, const struct sq_store_state *state, const char *array, uint64_t init, const char *is,
                    const char *but, struct squall_error *err)
{
    char time[SQ_TIME_TEXT_BYTES];
    const uint64_t number = init / state->flag_chunk;
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path((struct sq_store){v->store, state->zarr_format}, array, 1, &number);
    if (!path)
        return sq_error_memory(err, strlen(v->store));
    sq_store_init_text(state, init, time);
    return sq_verify_add(
        v, &v->bad, SIZE_MAX,
        sq_format("%s: %s is %s for %s %s, but %s", path, array, is, state->of_arrays ? state->append_dim : "run", time, but), err);
}

static int check_flag(struct recorded *r, const struct sq_store_state *state, uint64_t init, const struct sq_flag *flag,
                      struct squall_error *err)
{
    const struct sq_flag expected = flag_by_record(r, state, init);
    char is[16], but[40];
    if (!flag->exists && state->zarr_format == 2) /* its file is there from the beginning */
        return 0;
    if (flag->exists && expected.field_count == 0)
        return add_flag(r->v, state, SQ_FLAG_EXISTS, init, "true", "no record says so", err);
    if (flag->exists != expected.exists)
        return add_flag(r->v, state, SQ_FLAG_EXISTS, init, flag->exists ? "true" : "not true",
                        flag->exists ? "its record says that it is not whole" : "its record says that it is whole", err);
    if (!flag->exists || flag->field_count == expected.field_count)
        return 0;
    snprintf(is, sizeof is, "%" PRIu32, flag->field_count);
    snprintf(but, sizeof but, "its record says %" PRIu32, expected.field_count);
    return add_flag(r->v, state, SQ_FLAG_COUNT, init, is, but, err);
}

/* flags: as many as a chunk has, of which the file of chunk_exists is there: it was written when the record was. */
static int check_chunk_of_flags(struct recorded *r, const struct sq_store_state *state, uint64_t first, struct sq_flag *flags,
                                struct squall_error *err)
{
    const uint64_t chunk = state->flag_chunk, left = state->init_count - first, count = left < chunk ? left : chunk;
    SQ_TRY(sq_flags_get((struct sq_store){r->v->store, state->zarr_format}, chunk, first, flags, (size_t)count, err));
    for (uint64_t i = 0; i < count; i++)
        SQ_TRY(check_flag(r, state, first + i, &flags[i], err));
    return 0;
}

/* A file that is not there is no damage: a run that was killed before its flags leaves none. */
static int check_flags(struct recorded *r, const struct sq_store_state *state, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    SQ_CLEANUP_FREE char *folder = sq_store_chunk_folder((struct sq_store){v->store, state->zarr_format}, SQ_FLAG_EXISTS);
    char **names = NULL;
    size_t name_count = 0;
    const uint64_t chunk = state->flag_chunk;
    SQ_CLEANUP_FREE struct sq_flag *flags = sq_alloc((size_t)(chunk < state->init_count ? chunk : state->init_count), sizeof *flags);
    if (!folder || !flags)
        return sq_error_memory(err, strlen(v->store));
    int status = sq_folder_list_if_there(folder, &names, &name_count, err); /* where it is not, no run is stored yet */
    for (size_t i = 0; i < name_count && !status; i++) {
        uint64_t number;
        if (sq_store_is_index(names[i], &number) && number < (state->init_count + chunk - 1) / chunk)
            status = check_chunk_of_flags(r, state, number * chunk, flags, err);
    }
    sq_names_free(names, name_count);
    return status;
}

/* ---- what the records do not tell of --------------------------------------------------------------------------------------------- */

static bool is_flag(const char *name)
{
    return !strcmp(name, SQ_FLAG_EXISTS) || !strcmp(name, SQ_FLAG_COUNT);
}

/* What the schema says could not be read when it was to be written. */
static int add_failed(void *user, const char *name, const struct sq_json *v, struct squall_error *err)
{
    struct recorded *r = user;
    const char *places = sq_json_string(sq_json_get(v, "places")), *why = sq_json_string(sq_json_get(v, "why"));
    return sq_verify_add(r->v, &r->v->bad, SIZE_MAX,
                         sq_format("%s: %s%s%s could not be read from the sources: %s", r->v->store, name, places ? ", places " : "",
                                   places ? places : "", why ? why : ""),
                         err);
}

/* The coordinates, which are written anew by every run, decode and are all there; the flags are check_flags' business. */
static int check_coordinates(struct recorded *r, const squall_dataset *ds, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    uint64_t recorded = v->chunk_count;
    size_t order = r->chunk_count, chunks;
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++) {
        squall_array *a = squall_dataset_array_at(ds, i);
        const char *name = squall_array_info(a).name;
        const bool left = sq_schema_failed(r->schema, name) && !sq_schema_failed_places(r->schema, name); /* add_failed tells */
        if (array_named(r, name) || is_flag(name) || left)
            continue;
        SQ_TRY(sq_verify_decode_array(v, a, true, order, &chunks, err));
        order += chunks + 1;
    }
    v->chunk_count = recorded;
    return 0;
}

static bool has_chunks(const struct recorded *r, const struct sq_layout_array *array)
{
    for (size_t i = 0; i < r->chunk_count; i++)
        if (r->chunks[i].array == array)
            return true;
    return false;
}

static int add_metadata(void *user, char *line, struct squall_error *err)
{
    struct sq_verify *v = user;
    return sq_verify_add(v, &v->bad, SIZE_MAX, line, err);
}

/* Would a reader see this store, with all that the records tell of? */
static int check_rest(squall_context *ctx, struct recorded *r, const struct sq_store_state *state, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    struct squall_error failure = SQUALL_ERROR_INIT;
    squall_dataset *ds;
    int status = squall_dataset_open(ctx, v->store, &ds, &failure);
    if (status == SQUALL_ENOMEM || status == SQUALL_ECANCELLED) {
        if (err)
            *err = failure;
        return status;
    }
    if (status)
        return sq_verify_add(v, &v->bad, SIZE_MAX, sq_strdup(failure.message), err); /* it names the file */
    for (size_t i = 0; i < r->layout.array_count && !status; i++) {
        squall_array *a;
        if (squall_dataset_array(ds, r->layout.arrays[i].name, &a, NULL) &&
            has_chunks(r, &r->layout.arrays[i])) /* else a run was to make it */
            status =
                sq_verify_add(v, &v->bad, SIZE_MAX, sq_format("%s: its metadata has no array %s", v->store, r->layout.arrays[i].name), err);
    }
    if (!status)
        status = check_coordinates(r, ds, err);
    if (!status)
        status = sq_verify_metadata(v->store, state, add_metadata, v, err);
    squall_dataset_close(ds);
    return status;
}

/* Units whose damage is noted, and whose chunks are as recorded again: they are not shown until a conversion has come. */
static int tell_noted(struct recorded *r, const struct sq_store_state *state, struct squall_error *err)
{
    for (size_t i = 0; i < state->records.unit_count; i++) {
        const struct sq_record_unit *unit = &state->records.units[i];
        char time[SQ_TIME_TEXT_BYTES];
        if (!unit->damage || r->damage[i].array)
            continue;
        sq_store_init_text(state, unit->unit * state->init_chunk, time);
        SQ_TRY(sq_verify_add(r->v, &r->v->bad, SIZE_MAX,
                             sq_format("%s: noted as damaged from %s %s on, and not written since: %s", r->v->store,
                                       state->of_arrays ? state->append_dim : "run", time, unit->damage),
                             err));
    }
    return 0;
}

/* What cannot be noted is told; it is no error. */
static int note_all(struct recorded *r, const struct sq_store_state *state, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    struct squall_error failure = SQUALL_ERROR_INIT;
    uint64_t noted = 0;
    int status = sq_verify_note(v->store, state, r->damage, &noted, &failure);
    v->noted += noted;
    if (status || noted || v->bad.total == 0) { /* else an earlier look's failure still holds */
        sq_free(v->not_noted);
        v->not_noted = NULL;
    }
    if (!status)
        return 0;
    if (status == SQUALL_ENOMEM)
        return sq_error(err, status, "%s", failure.message);
    return (v->not_noted = sq_strdup(failure.message)) ? 0 : sq_error_memory(err, sizeof failure);
}

/* For a further look: the units of which something was found. */
static int keep_in_question(const struct recorded *r, const struct sq_store_state *state, struct squall_error *err)
{
    struct sq_verify *v = r->v;
    SQ_CLEANUP_FREE uint64_t *units = sq_alloc(v->bad.count + 1, sizeof *units);
    size_t count = 0;
    if (!units)
        return sq_error_memory(err, v->bad.count * sizeof *units);
    for (size_t i = 0; i < v->bad.count; i++) /* of chunks: what else was found is looked for again */
        if (v->bad.items[i].order < r->chunk_count)
            units[count++] = r->chunks[v->bad.items[i].order].unit;
    for (size_t i = 0; i < state->records.unit_count && count < v->bad.count; i++)
        if (state->records.units[i].damage && is_in_question(v, state->records.units[i].unit))
            units[count++] = state->records.units[i].unit;
    if (count)
        qsort(units, count, sizeof *units, by_number);
    sq_free(v->units);
    v->units = units;
    v->unit_count = count;
    units = NULL;
    return 0;
}

static int by_records(squall_context *ctx, struct sq_verify *v, const struct sq_store_state *state, struct squall_error *err)
{
    __attribute__((cleanup(recorded_done))) struct recorded r = {.v = v, .schema = state->schema};
    SQ_TRY(sq_layout_recorded(state, &r.layout, err));
    r.pieces = sq_alloc_zero(v->ctx->threads, sizeof *r.pieces);
    r.unit_count = state->records.unit_count;
    r.damage = sq_alloc_zero(r.unit_count + 1, sizeof *r.damage);
    if (!r.pieces || !r.damage)
        return sq_error_memory(err, v->ctx->threads * sizeof *r.pieces);
    for (size_t i = 0; i < r.unit_count; i++)
        if (state->records.units[i].valid || state->records.units[i].damage)
            SQ_TRY(list_unit(&r, &state->records.units[i], i, err));
    v->chunk_count = r.chunk_count;
    SQ_TRY(sq_parallel(v->ctx->threads, r.chunk_count, check_chunk, &r, err));
    SQ_TRY(keep_in_question(&r, state, err));
    SQ_TRY(tell_noted(&r, state, err));
    SQ_TRY(note_all(&r, state, err));
    v->at_the_rest = true;
    SQ_TRY(check_flags(&r, state, err));
    SQ_TRY(sq_json_each(sq_json_get(state->schema, "failed"), add_failed, &r, err));
    if (state->complete)
        return check_rest(ctx, &r, state, err);
    if (state->records.unit_count == 0) /* a run was stopped before readers could see anything */
        return 0;
    return sq_verify_add(v, &v->bad, SIZE_MAX, sq_format("%s/%s: missing", v->store, sq_store_root_document(state->zarr_format)), err);
}

/* Has squall made this store? An unreadable layout.json is an error; none is none. */
static int read_state(const char *store, struct sq_store_state *state, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = sq_store_state_read(store, state, &failure);
    if (status == SQUALL_EREFUSED) /* another thing than a store of squall's: what it is comes out when it is opened */
        return 0;
    if (status && err)
        *err = failure;
    return status;
}

/* Has a run written something since the state was read? *now: of the store as it is; the caller's either way. */
static int has_changed(const char *store, const struct sq_store_state *then, struct sq_store_state *ret_now, bool *ret,
                       struct squall_error *err)
{
    SQ_TRY(read_state(store, ret_now, err));
    const struct sq_records *a = &then->records, *b = &ret_now->records;
    *ret = !sq_store_state_same(then, ret_now) || a->line_count != b->line_count || a->journal_count != b->journal_count ||
           a->last_epoch != b->last_epoch;
    return 0;
}

/*
 * What is not as the records had it when they were read may be what a run has written since. So where something was found, and the records are other ones by
 * now, the units in question are compared with those, and the rest is looked at again.
 */
static int by_newest_records(squall_context *ctx, struct sq_verify *v, struct sq_store_state *state, struct squall_error *err)
{
    enum { LOOKS = 5 };
    v->is_deferred = true;
    SQ_TRY(by_records(ctx, v, state, err));
    const uint64_t chunks = v->chunk_count, bytes = v->bytes;
    for (int i = 1; i < LOOKS && v->bad.total > 0 && v->bad.total == v->bad.count; i++) {
        struct sq_store_state now = {0};
        bool changed;
        SQ_TRY(has_changed(v->store, state, &now, &changed, err));
        sq_store_state_done(state);
        *state = now;
        if (!changed || !now.exists)
            break;
        sq_verify_forget(v);
        SQ_TRY(by_records(ctx, v, state, err));
    }
    v->chunk_count = chunks;
    v->bytes = bytes;
    sq_verify_tell(v);
    return 0;
}

int squall_verify_report(squall_context *ctx, const char *store, const struct squall_convert_events *events,
                         struct squall_verify_result *ret, struct squall_error *err)
{
    __attribute__((cleanup(sq_verify_done))) struct sq_verify v = {.ctx = ctx, .store = store};
    struct sq_store_state state = {0};
    char *text = NULL, *json = NULL;
    sq_mutex_init(&v.lock);
    if (events)
        v.events = *events;
    SQ_TRY(sq_rekey_look(store, err));
    SQ_TRY(read_state(store, &state, err));
    bool recorded = state.exists;
    int status = recorded ? by_newest_records(ctx, &v, &state, err) : sq_verify_by_decoding(ctx, &v, err);
    sq_store_state_done(&state);
    SQ_TRY(status);
    SQ_TRY(sq_verify_write_report(&v, recorded, &text, &json, err));
    *ret = (struct squall_verify_result){v.bad.total, v.absent.total, v.unchecked.total, text, json};
    return 0;
}
