/* See store_state.h. */
#include "convert/store_state.h"
#include "base/checked.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/layout.h"
#include "cube/cube.h"
#include "format/zarr/zarr.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const size_t LAYOUT_LIMIT_BYTES = (size_t)64 << 20;

/* The last init time is a time, and what is allocated by these numbers is bounded. */
static bool plausible(const struct sq_store_state *s)
{
    int64_t span, last;
    return s->init_count >= 1 && s->init_count <= SQ_INIT_COUNT_LIMIT && s->init_chunk >= 1 && s->init_chunk <= UINT32_MAX &&
           s->init_step_s >= 0 && sq_mul_i64((int64_t)s->init_count, s->init_step_s, &span) && sq_add_i64(s->init_start_s, span, &last) &&
           s->init_start_s > -(INT64_C(1) << 56) && last < INT64_C(1) << 56;
}

/* Of the value without its "crc32c", which a flipped digit of a time would else not show. */
static int checksum(const struct sq_json *v, uint32_t *ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *bare = sq_json_copy(v);
    if (!bare)
        return sq_error_memory(err, sizeof(void *));
    sq_json_remove(bare, "crc32c");
    SQ_TRY(sq_json_write(bare, false, &text, err));
    if (text.failed)
        return sq_error_memory(err, text.length);
    *ret = sq_crc32c(0, text.data, text.length);
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------------- */

/* Of arrays: the dimension, its calendar, and its times where they are not regular. */
static int read_append(const struct sq_json *dim, const struct sq_json *init, const char *path, struct sq_store_state *state,
                       struct squall_error *err)
{
    const char *name = dim ? sq_json_string(dim) : "init_time";
    const struct sq_json *times = sq_json_get(init, "times");
    bool good = name && (!times || sq_json_count(times) == state->init_count);
    state->of_arrays = dim != NULL;
    state->flag_chunk = sq_flag_chunk(state->of_arrays, state->init_chunk);
    state->has_times = !dim;
    if (good && dim)
        good = sq_json_bool(sq_json_get(init, "timed"), &state->has_times);
    const char *calendar = sq_json_string(sq_json_get(init, "calendar"));
    if (good && calendar && !(state->calendar = sq_strdup(calendar)))
        return sq_error_memory(err, strlen(calendar));
    if (good && !(state->append_dim = sq_strdup(name)))
        return sq_error_memory(err, strlen(name));
    if (good && times && !(state->init_times_s = sq_alloc((size_t)state->init_count, sizeof *state->init_times_s)))
        return sq_error_memory(err, state->init_count * sizeof *state->init_times_s);
    for (uint64_t i = 0; i < sq_json_count(times) && good; i++)
        good = sq_json_int(sq_json_at(times, (size_t)i), &state->init_times_s[i]);
    return good ? 0 : sq_error(err, SQUALL_ECORRUPT, "%s: the append dimension is not told; " SQ_RECORDS_DAMAGED, path);
}

/* The checksum first: numbers that cannot be are then told as what they are. Files of earlier versions have none. */
static int check_layout(const char *path, const struct sq_json *v, struct squall_error *err)
{
    const struct sq_json *told = sq_json_get(v, "crc32c");
    uint64_t expected = 0;
    uint32_t sum = 0;
    if (!told)
        return 0;
    SQ_TRY(checksum(v, &sum, err));
    return sq_json_uint(told, &expected) && expected == sum
               ? 0
               : sq_error(err, SQUALL_ECORRUPT, "%s: checksum does not match; " SQ_RECORDS_DAMAGED, path);
}

static int read_layout(const char *path, struct sq_store_state *state, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *text = NULL;
    struct sq_json *parsed = NULL;
    size_t size = 0;
    int64_t format;
    struct squall_error failure = SQUALL_ERROR_INIT;
    SQ_TRY(sq_file_read_all(path, LAYOUT_LIMIT_BYTES, &text, &size, err));
    int status = sq_json_parse(text, size, &parsed, &failure);
    if (status == SQUALL_ECORRUPT)
        return sq_error(err, status, "%s: %s; " SQ_RECORDS_DAMAGED, path, failure.message);
    if (status)
        return sq_error(err, status, "%s: %s", path, failure.message);
    SQ_CLEANUP_JSON struct sq_json *v = parsed;
    SQ_TRY(check_layout(path, v, err));
    if (!sq_json_int(sq_json_get(v, "format"), &format))
        return sq_error(err, SQUALL_ECORRUPT, "%s: it does not say its format; " SQ_RECORDS_DAMAGED, path);
    if (format != SQ_RECORD_FORMAT)
        return sq_error(err, SQUALL_EREFUSED, "%s: record format %lld is of another version of squall (this one's: %d)", path,
                        (long long)format, SQ_RECORD_FORMAT);
    const struct sq_json *layout = sq_json_get(v, "layout"), *schema = sq_json_get(v, "schema"), *init = sq_json_get(v, "init_time");
    if (sq_json_type(layout) != SQ_JSON_OBJECT || sq_json_type(schema) != SQ_JSON_OBJECT ||
        !sq_json_int(sq_json_get(init, "start"), &state->init_start_s) || !sq_json_int(sq_json_get(init, "step"), &state->init_step_s) ||
        !sq_json_uint(sq_json_get(init, "count"), &state->init_count) || !sq_json_uint(sq_json_get(init, "chunk"), &state->init_chunk) ||
        !plausible(state))
        return sq_error(err, SQUALL_ECORRUPT, "%s: layout, schema or init_time is missing; " SQ_RECORDS_DAMAGED, path);
    SQ_TRY(read_append(sq_json_get(init, "dim"), init, path, state, err));
    int64_t zarr_format = 3;
    if (sq_json_get(layout, "zarr_format") && (!sq_json_int(sq_json_get(layout, "zarr_format"), &zarr_format) || zarr_format != 2))
        return sq_error(err, SQUALL_EREFUSED, "%s: its Zarr format is of another version of squall", path);
    state->zarr_format = (int)zarr_format;
    state->layout = sq_json_share(layout);
    state->schema = sq_json_share(schema);
    state->exists = true;
    return 0;
}

/* Does the folder hold nothing but what a run makes before its first record? */
static int holds_nothing_else(const char *store, bool *ret, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list(store, &names, &count, err));
    *ret = count == 0 || (count == 1 && !strcmp(names[0], "chunk_exists"));
    sq_names_free(names, count);
    return 0;
}

static int refuse_folder(const char *store, struct squall_error *err)
{
    if (sq_zarr_is_store(store))
        return sq_error(err, SQUALL_EREFUSED,
                        "%s: a Zarr store without squall's records (chunk_exists/.squall), so nothing can be added to it; choose another "
                        "destination",
                        store);
    return sq_error(err, SQUALL_EREFUSED, "%s: a folder that holds other things; choose another destination", store);
}

/* Records of units that the layout has no place for would set flags of runs that they do not speak of. */
static int check_units(const struct sq_store_state *s, struct squall_error *err)
{
    for (size_t i = 0; i < s->records.unit_count; i++) {
        const struct sq_record_unit *unit = &s->records.units[i];
        if (unit->unit > (s->init_count - 1) / s->init_chunk || unit->init_count > s->init_chunk)
            return sq_error(err, SQUALL_ECORRUPT, "%s: the record of unit %llu does not fit layout.json; the records are damaged",
                            s->records_folder, (unsigned long long)unit->unit);
    }
    return 0;
}

/* A layout that is damaged is told of by whoever needs it. */
static int renumber(struct sq_store_state *state, struct squall_error *err)
{
    struct sq_layout layout;
    int status = sq_layout_recorded(state, &layout, NULL);
    if (status)
        return status == SQUALL_ENOMEM ? sq_error_memory(err, sizeof layout) : 0;
    status = sq_layout_renumber(&layout, &state->records, err);
    sq_layout_done(&layout);
    return status;
}

static int read_folder(const char *store, struct sq_store_state *state, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *layout = sq_path_join(state->records_folder, "layout.json");
    enum sq_file_kind kind;
    bool nothing_else;
    if (!layout)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(sq_file_stat(layout, &kind, NULL, err));
    if (kind != SQ_FILE_REGULAR) {
        SQ_TRY(holds_nothing_else(store, &nothing_else, err));
        if (nothing_else)
            return 0;
        SQ_TRY(sq_file_stat(layout, &kind, NULL, err)); /* another run may have begun between the two looks */
        if (kind != SQ_FILE_REGULAR)
            return refuse_folder(store, err);
    }
    SQ_TRY(
        sq_records_load(state->records_folder, &state->records, err)); /* first: the layout grows before there are records of more units */
    SQ_TRY(read_layout(layout, state, err));
    SQ_CLEANUP_FREE char *root = sq_path_join(store, sq_store_root_document(state->zarr_format));
    if (!root)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(sq_file_stat(root, &kind, NULL, err));
    state->complete = kind == SQ_FILE_REGULAR;
    SQ_TRY(check_units(state, err));
    return renumber(state, err);
}

int sq_store_state_read(const char *store, struct sq_store_state *ret, struct squall_error *err)
{
    struct sq_store_state state = {.records_folder = sq_records_folder(store)};
    enum sq_file_kind kind;
    int status = state.records_folder ? sq_file_stat(store, &kind, NULL, err) : sq_error_memory(err, strlen(store));
    if (!status && kind != SQ_FILE_NONE && kind != SQ_FILE_FOLDER)
        status = sq_error(err, SQUALL_EREFUSED, "%s: a file, where a folder for the store is to be; choose another destination", store);
    if (!status && kind == SQ_FILE_FOLDER)
        status = read_folder(store, &state, err);
    if (status) {
        sq_store_state_done(&state);
        return status;
    }
    *ret = state;
    return 0;
}

void sq_store_state_done(struct sq_store_state *state)
{
    sq_json_free(state->layout);
    sq_json_free(state->schema);
    sq_records_done(&state->records);
    sq_free(state->records_folder);
    sq_free(state->append_dim);
    sq_free(state->calendar);
    sq_free(state->init_times_s);
    *state = (struct sq_store_state){0};
}

bool sq_store_state_same(const struct sq_store_state *a, const struct sq_store_state *b)
{
    if (a->exists != b->exists || a->complete != b->complete)
        return false;
    if (!a->exists)
        return true;
    if (a->init_count != b->init_count || a->init_start_s != b->init_start_s || a->init_step_s != b->init_step_s ||
        a->init_chunk != b->init_chunk || (a->init_times_s != NULL) != (b->init_times_s != NULL))
        return false;
    return (!a->init_times_s || !memcmp(a->init_times_s, b->init_times_s, (size_t)a->init_count * sizeof *a->init_times_s)) &&
           sq_json_equal(a->layout, b->layout) && sq_json_equal(a->schema, b->schema);
}

void sq_store_state_move(struct sq_store_state *state, const struct sq_move *move)
{
    for (size_t i = 0; i < state->records.unit_count; i++)
        state->records.units[i].unit = sq_moved(move, state->records.units[i].unit);
    for (size_t i = 0; i < state->records.left_count; i++)
        state->records.left[i].unit = sq_moved(move, state->records.left[i].unit);
    state->records.planned.count = 0; /* of the parts that came before */
}

int64_t sq_store_init_time(const struct sq_store_state *state, uint64_t init)
{
    return state->init_times_s ? state->init_times_s[init] : state->init_start_s + (int64_t)init * state->init_step_s;
}

void sq_store_init_text(const struct sq_store_state *state, uint64_t init, char ret[SQ_TIME_TEXT_BYTES])
{
    if (state->has_times)
        sq_time_text(sq_store_init_time(state, init), state->calendar, ret);
    else
        snprintf(ret, SQ_TIME_TEXT_BYTES, "%" PRIu64, init);
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

int sq_store_make_folders(const char *store, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *records = sq_records_folder(store);
    return records ? sq_folder_make_durable(records, err) : sq_error_memory(err, strlen(store));
}

static bool is_regular(const struct sq_cube *cube)
{
    const int64_t *t = cube->init_times_s;
    for (size_t i = 2; i < cube->init_count; i++)
        if (t[i] - t[i - 1] != t[1] - t[0])
            return false;
    return cube->init_count < 2 || t[1] > t[0];
}

static struct sq_json *times_json(const struct sq_cube *cube)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < cube->init_count; i++)
        if (sq_json_append(v, sq_json_new_int(cube->init_times_s[i]))) {
            sq_json_free(v);
            return NULL;
        }
    return v;
}

static struct sq_json *init_json(const struct sq_cube *cube, uint64_t init_chunk)
{
    struct sq_json *v = sq_json_new_object();
    const int64_t *t = cube->init_times_s;
    const bool regular = t && is_regular(cube);
    int64_t step = regular && cube->init_count > 1 ? t[1] - t[0] : 0;
    if (!v || (cube->of_arrays && sq_json_set_string(v, "dim", cube->append_dim)) || sq_json_set_int(v, "start", t ? t[0] : 0) ||
        sq_json_set_int(v, "step", step) || sq_json_set(v, "count", sq_json_new_uint(cube->init_count)) ||
        sq_json_set(v, "chunk", sq_json_new_uint(init_chunk)) ||
        (cube->of_arrays && sq_json_set(v, "timed", sq_json_new_bool(t != NULL))) ||
        (cube->calendar && sq_json_set_string(v, "calendar", cube->calendar)) ||
        (t && !regular && sq_json_set(v, "times", times_json(cube)))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

int sq_store_state_write(const char *records_folder, const struct sq_json *layout, const char *layout_id, const struct sq_json *schema,
                         const struct sq_cube *cube, uint64_t init_chunk, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(records_folder, "layout.json");
    SQ_CLEANUP_FREE char *old = NULL;
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    size_t old_size = 0;
    if (!path || !v || sq_json_set_int(v, "format", SQ_RECORD_FORMAT) || sq_json_set_string(v, "layout_id", layout_id) ||
        sq_json_set(v, "layout", sq_json_share(layout)) || sq_json_set(v, "init_time", init_json(cube, init_chunk)) ||
        sq_json_set(v, "schema", sq_json_share(schema)))
        return sq_error_memory(err, sizeof(void *));
    uint32_t sum = 0;
    SQ_TRY(checksum(v, &sum, err));
    if (sq_json_set(v, "crc32c", sq_json_new_uint(sum)))
        return sq_error_memory(err, sizeof(void *));
    SQ_TRY(sq_json_write(v, true, &text, err));
    sq_text_add(&text, "\n");
    if (text.failed)
        return sq_error_memory(err, text.length);
    if (!sq_file_read_all(path, LAYOUT_LIMIT_BYTES, &old, &old_size, NULL) && old_size == text.length && !memcmp(old, text.data, old_size))
        return 0;
    return sq_atomic_write(path, text.data, text.length, SQ_DURABILITY_FULL, err);
}
