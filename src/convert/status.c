/*
 * squall status: from the records and flags alone, a character a run, a row a day. What a store lacks is then seen at a
 * glance, and the command that goes on is the one that the last run was started with, for the store where it is now.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/layout.h"
#include "convert/lock.h"
#include "convert/partial_status.h"
#include "convert/rekey.h"
#include "convert/settings.h"
#include "convert/store_state.h"
#include "convert/summary.h"
#include "cube/folder.h"
#include "engine/context.h"
#include "squall/convert.h"
#include "store/partial.h"
#include "sys/file.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum run_state { RUN_MISSING, RUN_COMPLETE, RUN_PARTIAL, RUN_INTERRUPTED, RUN_DAMAGED, RUN_STATE_COUNT };

static const struct {
    const char *name;
    char mark;
} STATES[] = {[RUN_MISSING] = {"missing", '.'},
              [RUN_COMPLETE] = {"complete", '#'},
              [RUN_PARTIAL] = {"partial", '~'},
              [RUN_INTERRUPTED] = {"interrupted", '!'},
              [RUN_DAMAGED] = {"damaged", 'x'}};

/* A store may claim more runs than anybody wants to see, or than there is memory to tell of: of more than these the last ones are listed. */
static const uint64_t LISTED_LIMIT = 200000;

struct status {
    const char *store;
    struct sq_store_state state;
    uint8_t *runs; /* enum run_state of each init time */
    uint32_t *counts;
    struct sq_usual usual;
    uint64_t totals[RUN_STATE_COUNT];
    char *in_use;           /* NULL, or by whom */
    struct sq_text command; /* that goes on; empty: none is told */
};

static void status_done(struct status *s)
{
    sq_store_state_done(&s->state);
    sq_free(s->runs);
    sq_free(s->counts);
    sq_usual_done(&s->usual);
    sq_free(s->in_use);
    sq_text_done(&s->command);
}

/* ---- finding out ----------------------------------------------------------------------------------------------------------------- */

static enum run_state state_of(const struct status *s, uint64_t init, bool flag)
{
    assert(s->state.init_chunk > 0); /* store_state.c sees to it */
    const struct sq_record_unit *record = sq_records_unit(&s->state.records, init / s->state.init_chunk);
    if (record && !record->valid)
        return record->damage ? RUN_DAMAGED : RUN_INTERRUPTED;
    if (s->counts[init] == 0)
        return RUN_MISSING;
    const bool whole = !record || sq_layout_is_whole(s->state.of_arrays, record, (size_t)(init % s->state.init_chunk));
    if (!flag)
        return whole ? RUN_INTERRUPTED : RUN_PARTIAL;
    return s->counts[init] < s->usual.fields[sq_usual_span(&s->usual, init)] ? RUN_PARTIAL : RUN_COMPLETE;
}

static int look_at_runs(struct status *s, struct squall_error *err)
{
    uint64_t count = s->state.init_count;
    s->counts = sq_alloc(count, sizeof *s->counts);
    s->runs = sq_alloc(count, sizeof *s->runs);
    if (!s->counts || !s->runs)
        return sq_error_memory(err, count * sizeof *s->counts);
    sq_count_fields(&s->state.records, s->state.init_chunk, count, s->counts);
    SQ_TRY(sq_usual_make(s->state.schema, s->state.init_start_s, s->state.init_step_s, s->counts, count, &s->usual, err));
    const uint64_t chunk = s->state.flag_chunk, most = chunk < count ? chunk : count;
    assert(chunk > 0);
    SQ_CLEANUP_FREE struct sq_flag *flags = sq_alloc((size_t)most, sizeof *flags);
    if (!flags)
        return sq_error_memory(err, most * sizeof *flags);
    for (uint64_t first = 0; first < count; first += chunk) {
        const uint64_t left = count - first, here = left < chunk ? left : chunk;
        if (chunk > 1 || s->counts[first] > 0)
            SQ_TRY(sq_flags_get((struct sq_store){s->store, s->state.zarr_format}, chunk, first, flags, (size_t)here, err));
        for (uint64_t k = 0; k < here; k++) {
            s->runs[first + k] = (uint8_t)state_of(s, first + k, s->counts[first + k] > 0 && flags[k].exists);
            s->totals[s->runs[first + k]]++;
        }
    }
    return 0;
}

static int look(struct status *s, struct squall_error *err)
{
    enum sq_file_kind kind;
    struct squall_error holder = SQUALL_ERROR_INIT;
    SQ_TRY(sq_file_stat(s->store, &kind, NULL, err));
    SQ_TRY(sq_rekey_look(s->store, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: no such store or file", s->store);
    int status = sq_store_state_read(s->store, &s->state, err);
    if (status == SQUALL_EREFUSED || (!status && !s->state.exists))
        return sq_error(err, SQUALL_EINVAL,
                        "%s: neither a store that squall convert made (it has no records, chunk_exists/.squall) nor a NetCDF file of "
                        "squall.create_many",
                        s->store);
    SQ_TRY(status);
    if (sq_lock_look(s->state.records_folder, (struct sq_part){0}, NULL, &holder) && !(s->in_use = sq_strdup(holder.message)))
        return sq_error_memory(err, sizeof holder);
    if (s->state.records.command) {
        sq_text_add(&s->command, s->state.records.command);
        sq_settings_add_path(&s->command, s->store);
    }
    return s->command.failed ? sq_error_memory(err, s->command.length) : look_at_runs(s, err);
}

/* How many runs are not listed: those at the beginning. */
static uint64_t unlisted(const struct status *s)
{
    return s->state.init_count > LISTED_LIMIT ? s->state.init_count - LISTED_LIMIT : 0;
}

static const char *noun(const struct status *s)
{
    return s->state.of_arrays ? "variable" : "field";
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------ */

static int64_t second_of_day(int64_t time_s)
{
    return (time_s % 86400 + 86400) % 86400;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { COLUMN_LIMIT = 1440 };

/* The times of day at which runs start, ascending. */
static size_t find_columns(const struct status *s, int64_t *columns)
{
    size_t count = 0;
    for (uint64_t i = 0; i < s->state.init_count; i++) {
        int64_t second = second_of_day(sq_store_init_time(&s->state, i));
        size_t k = 0;
        while (k < count && columns[k] != second)
            k++;
        if (k < count) /* the times of day repeat from here on */
            break;
        if (count == COLUMN_LIMIT)
            break;
        columns[count++] = second;
    }
    qsort(columns, count, sizeof *columns, by_time);
    return count;
}

static void calendar_head(const int64_t *columns, size_t count, struct sq_text *out)
{
    sq_text_add(out, "          ");
    for (size_t k = 0; k < count; k++)
        sq_text_printf(out, " %02d:%02d", (int)(columns[k] / 3600), (int)(columns[k] / 60 % 60));
    sq_text_add(out, "\n");
}

/* One row; the runs of a day are neighbours. Returns the first run of the next day. */
static uint64_t calendar_row(const struct status *s, uint64_t init, const int64_t *columns, size_t column_count, struct sq_text *out)
{
    char day[SQ_TIME_TEXT_BYTES];
    int64_t midnight = sq_store_init_time(&s->state, init) - second_of_day(sq_store_init_time(&s->state, init));
    bool narrow = column_count > 24;
    sq_time_text(midnight, s->state.calendar, day);
    sq_text_printf(out, "%.*s", (int)strcspn(day, "T"), day);
    for (size_t k = 0; k < column_count; k++) {
        char mark = ' ';
        if (init < s->state.init_count && sq_store_init_time(&s->state, init) == midnight + columns[k])
            mark = STATES[s->runs[init++]].mark;
        sq_text_printf(out, narrow ? "%s%c" : "%s  %c   ", narrow && k == 0 ? " " : "", mark);
    }
    while (out->length && out->data[out->length - 1] == ' ')
        out->data[--out->length] = 0;
    sq_text_add(out, "\n");
    while (init < s->state.init_count && sq_store_init_time(&s->state, init) < midnight + 86400)
        init++;
    return init;
}

/* Of times that are not regular, and of what is no time: so many marks a row, and what the row begins with. */
static void add_rows(const struct status *s, struct sq_text *out)
{
    enum { ROW = 60 };
    char name[SQ_TIME_TEXT_BYTES];
    for (uint64_t init = unlisted(s); init < s->state.init_count; init += ROW) {
        sq_store_init_text(&s->state, init, name);
        sq_text_printf(out, "%-16s  ", name);
        for (uint64_t i = init; i < init + ROW && i < s->state.init_count; i++)
            sq_text_printf(out, "%c", STATES[s->runs[i]].mark);
        sq_text_add(out, "\n");
    }
}

static int add_calendar(const struct status *s, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_FREE int64_t *columns = sq_alloc(COLUMN_LIMIT, sizeof *columns);
    if (!columns)
        return sq_error_memory(err, COLUMN_LIMIT * sizeof *columns);
    const bool regular = s->state.has_times && !s->state.init_times_s;
    size_t count = regular ? find_columns(s, columns) : 0;
    if (regular && count <= 24)
        calendar_head(columns, count, out);
    if (unlisted(s)) {
        sq_text_add_count(out, unlisted(s), s->state.of_arrays ? "earlier place" : "earlier init time");
        sq_text_add(out, " left out\n");
    }
    if (!regular) {
        add_rows(s, out);
        return 0;
    }
    for (uint64_t init = unlisted(s); init < s->state.init_count;)
        init = calendar_row(s, init, columns, count, out);
    return 0;
}

/* "left: runs from 2022-01-01T06:00: why" */
static void unit_line(const struct status *s, const char *label, uint64_t unit, const char *why, struct sq_text *out)
{
    char time[SQ_TIME_TEXT_BYTES];
    if (unit > s->state.init_count / s->state.init_chunk)
        return;
    sq_store_init_text(&s->state, unit * s->state.init_chunk, time);
    sq_text_printf(out, "%s: %s%s %s: ", label, s->state.of_arrays ? s->state.append_dim : "run", s->state.init_chunk > 1 ? "s from" : "",
                   time);
    sq_text_add_visible(out, why);
    sq_text_add(out, "\n");
}

static void unit_lines(const struct status *s, struct sq_text *out)
{
    const struct sq_records *records = &s->state.records;
    for (size_t i = 0; i < records->left_count; i++)
        unit_line(s, "left", records->left[i].unit, records->left[i].why, out);
    for (size_t i = 0; i < records->unit_count; i++)
        if (records->units[i].damage && !sq_records_left(records, records->units[i].unit))
            unit_line(s, "damaged", records->units[i].unit, records->units[i].damage, out);
}

/* Variables that are written whole, and could not be read. */
static int failed_line(void *user, const char *name, const struct sq_json *v, struct squall_error *err)
{
    struct sq_text *out = user;
    const char *places = sq_json_string(sq_json_get(v, "places")), *why = sq_json_string(sq_json_get(v, "why"));
    (void)err;
    sq_text_add(out, "not read: ");
    sq_text_add_visible(out, name);
    if (places) {
        sq_text_add(out, ", places ");
        sq_text_add_visible(out, places);
    }
    sq_text_add(out, ": ");
    sq_text_add_visible(out, why ? why : "");
    sq_text_add(out, "\n");
    return 0;
}

static void last_run_line(const struct sq_record_run *run, struct sq_text *out)
{
    char ended[SQ_TIME_TEXT_BYTES], in[SQ_SIZE_TEXT_BYTES], written[SQ_SIZE_TEXT_BYTES];
    if (!run->units)
        return;
    const double seconds = run->milliseconds ? (double)run->milliseconds / 1000 : 0.001;
    sq_time_text(run->ended_s, NULL, ended);
    sq_size_text(run->bytes_in, in);
    sq_size_text(run->bytes_out, written);
    sq_text_add(out, "last run: ");
    sq_text_add_count(out, run->units, "unit");
    sq_text_printf(out, " in %.1f s, %.3g a second; %s read, %s written; ended %sZ\n", seconds, (double)run->units / seconds, in, written,
                   ended);
}

/* ", 15 before 2022-01-02T00:00": where the store has grown since. */
static void add_usual_before(const struct status *s, struct sq_text *out)
{
    char time[SQ_TIME_TEXT_BYTES];
    for (size_t span = s->usual.count; span-- > 1;) {
        if (s->usual.fields[span] == 0 || s->usual.fields[span - 1] == 0 || s->usual.fields[span] == s->usual.fields[span - 1])
            continue;
        sq_store_init_text(&s->state, s->usual.firsts[span], time);
        sq_text_printf(out, ", %u before %s", s->usual.fields[span - 1], time);
    }
}

static int write_text(const struct status *s, struct sq_text *out, struct squall_error *err)
{
    char first[SQ_TIME_TEXT_BYTES], last[SQ_TIME_TEXT_BYTES];
    const struct sq_records *records = &s->state.records;
    sq_store_init_text(&s->state, 0, first);
    sq_store_init_text(&s->state, s->state.init_count - 1, last);
    sq_text_printf(out, "%s: ", s->store);
    sq_text_add_count(out, s->state.init_count, s->state.of_arrays ? "place" : "init time");
    if (s->state.of_arrays) {
        sq_text_add(out, " along ");
        sq_text_add_visible(out, s->state.append_dim);
    }
    sq_text_printf(out, ", %s to %s, ", first, last);
    if (sq_usual_now(&s->usual)) {
        sq_text_add(out, "usually ");
        sq_text_add_count(out, sq_usual_now(&s->usual), noun(s));
        sq_text_add(out, " each");
        add_usual_before(s, out);
        sq_text_add(out, "\n");
    } else {
        sq_text_add(out, "none is stored yet\n");
    }
    SQ_TRY(add_calendar(s, out, err));
    for (size_t i = 0; i < RUN_STATE_COUNT; i++)
        sq_text_printf(out, "%s%c %s: %llu", i ? "   " : "", STATES[i].mark, STATES[i].name, (unsigned long long)s->totals[i]);
    sq_text_add(out, "\n");
    unit_lines(s, out);
    SQ_TRY(sq_json_each(sq_json_get(s->state.schema, "failed"), failed_line, out, err));
    if (records->input_count)
        sq_text_add(out, "bad or ignored inputs so far:\n");
    for (size_t i = 0; i < records->input_count; i++) {
        sq_text_add(out, "  ");
        sq_text_add_visible(out, records->inputs[i].file.name);
        sq_text_add(out, ": ");
        sq_text_add_visible(out, records->inputs[i].what);
        sq_text_add(out, "\n");
    }
    last_run_line(&records->last_run, out);
    if (s->in_use)
        sq_text_printf(out, "%s\n", s->in_use);
    if (s->command.length) {
        sq_text_add(out, "to go on: ");
        sq_text_add_visible(out, sq_text_string(&s->command));
        sq_text_add(out, "\n");
    }
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------ */

/* The keys of GRIB's runs, and of places along a dimension of arrays. */
struct words {
    const char *count, *usual, *step, *list, *left_out;
};
static const struct words OF_RUNS = {"fields", "usual_field_count", "cadence_seconds", "runs", "runs_left_out"};
static const struct words OF_PLACES = {"variables", "usual_variable_count", "step_seconds", "places", "places_left_out"};

static const struct words *words_of(const struct status *s)
{
    return s->state.of_arrays ? &OF_PLACES : &OF_RUNS;
}

/* When it is: a place has its index in any case. */
static int set_when(const struct status *s, uint64_t init, struct sq_json *v)
{
    char text[SQ_TIME_TEXT_BYTES];
    sq_store_init_text(&s->state, init, text);
    if (!s->state.of_arrays)
        return sq_json_set_string(v, "init_time", text);
    int status = sq_json_set(v, "place", sq_json_new_uint(init));
    return status || !s->state.has_times ? status : sq_json_set_string(v, "time", text);
}

static struct sq_json *run_json(const struct status *s, uint64_t init)
{
    struct sq_json *v = sq_json_new_object();
    const char *left = sq_records_left(&s->state.records, init / s->state.init_chunk);
    const struct sq_record_unit *record = sq_records_unit(&s->state.records, init / s->state.init_chunk);
    if (!v || set_when(s, init, v) || sq_json_set_string(v, "state", STATES[s->runs[init]].name) ||
        sq_json_set(v, words_of(s)->count, sq_json_new_uint(s->counts[init])) || (left && sq_json_set_string(v, "left", left)) ||
        (record && record->damage && sq_json_set_string(v, "damage", record->damage))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static struct sq_json *input_json(const struct sq_record_input *input)
{
    struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set_string(v, "file", input->file.name) || sq_json_set_string(v, "what", input->what)) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int set_lists(const struct status *s, struct sq_json *report)
{
    struct sq_json *runs = sq_json_new_array(), *inputs = sq_json_new_array();
    int status = runs && inputs ? 0 : SQUALL_ENOMEM;
    for (uint64_t i = unlisted(s); i < s->state.init_count && !status; i++)
        status = sq_json_append(runs, run_json(s, i));
    for (size_t i = 0; i < s->state.records.input_count && !status; i++)
        status = sq_json_append(inputs, input_json(&s->state.records.inputs[i]));
    if (status) {
        sq_json_free(runs);
        sq_json_free(inputs);
        return status;
    }
    int first = sq_json_set(report, words_of(s)->list, runs), second = sq_json_set(report, "inputs", inputs);
    return first ? first : second;
}

/* Of arrays without one step null: they need not be regular, or times at all. */
static int set_step(const struct status *s, struct sq_json *v)
{
    const bool none = s->state.of_arrays && s->state.init_step_s == 0;
    return sq_json_set(v, words_of(s)->step, none ? sq_json_new_null() : sq_json_new_int(s->state.init_step_s));
}

/* The runs from which on a store of fields has had more, and what is usual then. */
static int set_grown(const struct status *s, struct sq_json *v)
{
    struct sq_json *list = s->state.of_arrays ? NULL : sq_json_new_array();
    if (s->state.of_arrays)
        return 0;
    for (size_t span = 1; span < s->usual.count && list; span++) {
        struct sq_json *grown = sq_json_new_object();
        if (!grown || set_when(s, s->usual.firsts[span], grown) ||
            sq_json_set(grown, words_of(s)->usual, sq_json_new_uint(s->usual.fields[span]))) {
            sq_json_free(grown);
            sq_json_free(list);
            return SQUALL_ENOMEM;
        }
        if (sq_json_append(list, grown)) {
            sq_json_free(list);
            return SQUALL_ENOMEM;
        }
    }
    return sq_json_set(v, "grown", list);
}

static int set_last_run(const struct sq_record_run *run, struct sq_json *v)
{
    struct sq_json *told = run->units ? sq_json_new_object() : sq_json_new_null();
    char ended[SQ_TIME_TEXT_BYTES], ended_utc[SQ_TIME_TEXT_BYTES + 1];
    sq_time_text(run->ended_s, NULL, ended);
    snprintf(ended_utc, sizeof ended_utc, "%sZ", ended);
    if (sq_json_set(v, "last_run", told))
        return SQUALL_ENOMEM;
    return run->units &&
                   (sq_json_set(told, "ended", sq_json_new_string(ended_utc)) || sq_json_set(told, "units", sq_json_new_uint(run->units)) ||
                    sq_json_set(told, "seconds", sq_json_new_double((double)run->milliseconds / 1000)) ||
                    sq_json_set(told, "bytes_in", sq_json_new_uint(run->bytes_in)) ||
                    sq_json_set(told, "bytes_out", sq_json_new_uint(run->bytes_out)))
               ? SQUALL_ENOMEM
               : 0;
}

static int write_json(const struct status *s, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    const struct sq_json *failed = sq_json_get(s->state.schema, "failed");
    SQ_CLEANUP_JSON struct sq_json *variables = NULL;
    SQ_TRY(sq_completeness_json(&s->state.records, s->state.init_chunk, &s->usual, s->state.layout, &variables, err));
    int status = v ? sq_json_set_string(v, "store", s->store) : SQUALL_ENOMEM;
    for (size_t i = 0; i < RUN_STATE_COUNT && !status; i++)
        status = sq_json_set(v, STATES[i].name, sq_json_new_uint(s->totals[i]));
    if (status || (s->state.of_arrays && sq_json_set_string(v, "append_dim", s->state.append_dim)) ||
        sq_json_set(v, words_of(s)->usual, sq_json_new_uint(sq_usual_now(&s->usual))) || set_grown(s, v) || set_step(s, v) ||
        sq_json_set(v, "in_use", s->in_use ? sq_json_new_string(s->in_use) : sq_json_new_null()) ||
        sq_json_set(v, "command", s->command.length ? sq_json_new_string(sq_text_string(&s->command)) : sq_json_new_null()) ||
        set_last_run(&s->state.records.last_run, v) || sq_json_set(v, "not_read", failed ? sq_json_share(failed) : sq_json_new_object()) ||
        sq_json_set(v, "variables", sq_json_share(variables)) || sq_json_set(v, words_of(s)->left_out, sq_json_new_uint(unlisted(s))) ||
        set_lists(s, v))
        return sq_error_memory(err, sizeof(void *));
    return sq_json_for_caller(v, ret, err);
}

static int store_report(const char *store, char **ret_text, char **ret_json, struct squall_error *err)
{
    __attribute__((cleanup(status_done))) struct status s = {.store = store};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    char *copy = NULL;
    SQ_TRY(look(&s, err));
    if (ret_text) {
        SQ_TRY(write_text(&s, &text, err));
        if (!(copy = sq_text_for_caller(&text)))
            return sq_error_memory(err, text.length);
    }
    int status = ret_json ? write_json(&s, ret_json, err) : 0;
    if (status)
        free(copy);
    else if (ret_text)
        *ret_text = copy;
    return status;
}

int squall_status_report(squall_context *ctx, const char *store, char **ret_text, char **ret_json, size_t *ret_unfinished,
                         struct squall_error *err)
{
    char **partial = NULL;
    size_t count = 0;
    bool of_arrays = false;
    SQ_TRY(sq_partial_find(store, &partial, &count, err));
    int status = count ? 0 : sq_holds_array_files(store, &of_arrays, err);
    if (!status)
        status = count || of_arrays ? sq_partial_status(ctx, store, (const char *const *)partial, count, ret_text, ret_json, err)
                                    : store_report(store, ret_text, ret_json, err);
    sq_names_free(partial, count);
    if (!status && ret_unfinished)
        *ret_unfinished = count;
    return status;
}
