/*
 * The status of a store as a page that stands alone, for a web server that shows what cron has done: the calendar in colours, how
 * complete each variable is, and what the text says. Made of the JSON report, so that all three say the same.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/summary.h"
#include "engine/context.h"
#include "squall/convert.h"
#include <stdlib.h>
#include <string.h>

static const char STYLE[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222;background:#fff}"
    "h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin-top:2rem}"
    "table{border-collapse:collapse}td,th{padding:.1rem .7rem .1rem 0;text-align:left;vertical-align:top;font-weight:normal}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}"
    ".cal td{padding:1px}.cal th{vertical-align:middle;font-size:.8rem;color:#555;padding:0 .4rem 0 0}"
    "i{display:inline-block;width:1.1rem;height:1.1rem;border-radius:3px;margin:1px;vertical-align:middle}"
    ".complete{background:#2e7d32}.partial{background:#f9a825}.missing{background:#e4e4e4}.interrupted{background:#c62828}"
    ".damaged{background:#6a1b9a}"
    ".bar{width:12rem;height:.7rem;background:#e4e4e4;border-radius:3px;margin-top:.45rem}.bar b{display:block;height:100%;"
    "background:#2e7d32;border-radius:3px}"
    "code{background:#f2f2f2;padding:.2rem .4rem;border-radius:3px;overflow-wrap:anywhere}.legend span{margin-right:1.5rem}";

/* The names of the states in the order of the legend; each is a class of the style, and a member of the report. */
static const char *const STATES[] = {"complete", "partial", "missing", "interrupted", "damaged"};

static void add_escaped(struct sq_text *out, const char *text)
{
    SQ_CLEANUP_TEXT struct sq_text visible = SQ_TEXT_INIT;
    sq_text_add_visible(&visible, text ? text : "");
    for (const char *p = sq_text_string(&visible); *p; p++) {
        const char *escape = *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : *p == '>' ? "&gt;" : *p == '"' ? "&quot;" : NULL;
        if (escape)
            sq_text_add(out, escape);
        else
            sq_text_add_bytes(out, p, 1);
    }
    out->failed = out->failed || visible.failed;
}

static const char *text_of(const struct sq_json *v, const char *key)
{
    const char *text = sq_json_string(sq_json_get(v, key));
    return text ? text : "";
}

static uint64_t number_of(const struct sq_json *v, const char *key)
{
    uint64_t n = 0;
    return sq_json_uint(sq_json_get(v, key), &n) ? n : 0;
}

/* ---- the calendar ---------------------------------------------------------------------------------------------------------------- */

/* "2022-01-01T06:00": when a run is; "" where places are no times. */
static const char *when(const struct sq_json *run)
{
    const char *init = text_of(run, "init_time");
    return *init ? init : text_of(run, "time");
}

static size_t day_length(const char *time)
{
    return strcspn(time, "T");
}

static bool same_day(const char *a, const char *b)
{
    return day_length(a) == day_length(b) && !memcmp(a, b, day_length(a));
}

static void add_cell(struct sq_text *out, const struct sq_json *run)
{
    const char *fields = sq_json_get(run, "fields") ? "fields" : "variables", *left = text_of(run, "left");
    sq_text_printf(out, "<i class=%s title=\"", text_of(run, "state"));
    if (*when(run))
        add_escaped(out, when(run));
    else
        sq_text_printf(out, "%llu", (unsigned long long)number_of(run, "place"));
    sq_text_printf(out, ": %s, %llu %s", text_of(run, "state"), (unsigned long long)number_of(run, fields), fields);
    if (*left) {
        sq_text_add(out, "; ");
        add_escaped(out, left);
    }
    sq_text_add(out, "\"></i>");
}

enum { COLUMN_LIMIT = 24 };

/* The times of day in their order; 0: places are no times, or have more of them than columns. */
static size_t find_columns(const struct sq_json *runs, const char *columns[COLUMN_LIMIT])
{
    size_t count = 0;
    for (size_t i = 0; i < sq_json_count(runs); i++) {
        const char *time = when(sq_json_at(runs, i)), *of_day = time + day_length(time);
        size_t k = 0;
        while (k < count && strcmp(columns[k], of_day) < 0)
            k++;
        if (k < count && !strcmp(columns[k], of_day))
            continue;
        if (!*of_day || count == COLUMN_LIMIT)
            return 0;
        memmove(&columns[k + 1], &columns[k], (count - k) * sizeof *columns);
        columns[k] = of_day;
        count++;
    }
    return count;
}

static void add_days(struct sq_text *out, const struct sq_json *runs, const char *const *columns, size_t column_count)
{
    sq_text_add(out, "<table class=cal><tr><th>");
    for (size_t k = 0; k < column_count; k++) {
        sq_text_add(out, "<th>");
        add_escaped(out, columns[k] + 1);
    }
    sq_text_add(out, "\n");
    for (size_t i = 0; i < sq_json_count(runs);) {
        const char *day = when(sq_json_at(runs, i));
        SQ_CLEANUP_FREE char *name = sq_strndup(day, day_length(day));
        sq_text_add(out, "<tr><th>");
        add_escaped(out, name);
        for (size_t k = 0; k < column_count; k++) {
            const struct sq_json *run = i < sq_json_count(runs) ? sq_json_at(runs, i) : NULL;
            sq_text_add(out, "<td>");
            if (!run || !same_day(when(run), day) || strcmp(when(run) + day_length(day), columns[k]) != 0)
                continue;
            add_cell(out, run);
            i++;
        }
        sq_text_add(out, "\n");
        while (i < sq_json_count(runs) && same_day(when(sq_json_at(runs, i)), day)) /* out of order: none is lost */
            add_cell(out, sq_json_at(runs, i++));
    }
    sq_text_add(out, "</table>\n");
}

static void add_calendar(struct sq_text *out, const struct sq_json *report)
{
    const struct sq_json *runs = sq_json_get(report, "runs") ? sq_json_get(report, "runs") : sq_json_get(report, "places");
    const uint64_t left_out = number_of(report, "runs_left_out") + number_of(report, "places_left_out");
    const char *columns[COLUMN_LIMIT];
    const size_t column_count = find_columns(runs, columns);
    sq_text_add(out, "<p class=legend>");
    for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
        if (sq_json_get(report, STATES[i]))
            sq_text_printf(out, "<span><i class=%s></i> %s: %llu</span>", STATES[i], STATES[i],
                           (unsigned long long)number_of(report, STATES[i]));
    sq_text_add(out, "</p>\n");
    if (left_out)
        sq_text_printf(out, "<p>%llu earlier ones are not shown.</p>\n", (unsigned long long)left_out);
    if (column_count) {
        add_days(out, runs, columns, column_count);
        return;
    }
    sq_text_add(out, "<p>");
    for (size_t i = 0; i < sq_json_count(runs); i++)
        add_cell(out, sq_json_at(runs, i));
    sq_text_add(out, "</p>\n");
}

/* ---- the rest -------------------------------------------------------------------------------------------------------------------- */

static void add_variables(struct sq_text *out, const struct sq_json *variables)
{
    sq_text_add(out, "<h2>Variables</h2>\n<table><tr><th>name<th class=n>stored<th class=n>expected<th>\n");
    for (size_t i = 0; i < sq_json_count(variables); i++) {
        const struct sq_json *v = sq_json_at(variables, i);
        const uint64_t stored = number_of(v, "stored"), expected = number_of(v, "expected");
        sq_text_add(out, "<tr><td>");
        add_escaped(out, text_of(v, "name"));
        sq_text_printf(out, "<td class=n>%llu<td class=n>%llu<td><div class=bar><b style=\"width:%.2f%%\"></b></div>\n",
                       (unsigned long long)stored, (unsigned long long)expected, expected ? 100.0 * (double)stored / (double)expected : 0);
    }
    sq_text_add(out, "</table>\n");
}

static void add_row(struct sq_text *out, const char *name, const char *why)
{
    sq_text_add(out, "<tr><td>");
    add_escaped(out, name);
    sq_text_add(out, "<td>");
    add_escaped(out, why);
    sq_text_add(out, "\n");
}

static int add_failed(void *user, const char *name, const struct sq_json *v, struct squall_error *err)
{
    (void)err;
    add_row(user, name, text_of(v, "why"));
    return 0;
}

static void add_problems(struct sq_text *out, const struct sq_json *report)
{
    const struct sq_json *inputs = sq_json_get(report, "inputs"), *failed = sq_json_get(report, "not_read");
    if (sq_json_count(inputs)) {
        sq_text_add(out, "<h2>Bad or ignored inputs so far</h2>\n<table>\n");
        for (size_t i = 0; i < sq_json_count(inputs); i++)
            add_row(out, text_of(sq_json_at(inputs, i), "file"), text_of(sq_json_at(inputs, i), "what"));
        sq_text_add(out, "</table>\n");
    }
    if (sq_json_count(failed)) {
        sq_text_add(out, "<h2>Not read</h2>\n<table>\n");
        int status = sq_json_each(failed, add_failed, out, NULL); /* which never fails */
        out->failed = out->failed || status;
        sq_text_add(out, "</table>\n");
    }
}

static void add_last_run(struct sq_text *out, const struct sq_json *run)
{
    char in[SQ_SIZE_TEXT_BYTES], written[SQ_SIZE_TEXT_BYTES];
    double seconds;
    if (!sq_json_double(sq_json_get(run, "seconds"), &seconds))
        return;
    sq_size_text(number_of(run, "bytes_in"), in);
    sq_size_text(number_of(run, "bytes_out"), written);
    sq_text_add(out, "<p>Last run: ");
    sq_text_add_count(out, number_of(run, "units"), "unit");
    sq_text_printf(out, " in %.1f s; %s read, %s written; ended %s</p>\n", seconds, in, written, text_of(run, "ended"));
}

static void add_page(struct sq_text *out, const struct sq_json *report)
{
    const char *store = text_of(report, "store");
    sq_text_printf(out, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\n<title>");
    add_escaped(out, store);
    sq_text_printf(out, "</title>\n<style>%s</style>\n<h1>", STYLE);
    add_escaped(out, store);
    sq_text_add(out, "</h1>\n");
    if (*text_of(report, "in_use")) {
        sq_text_add(out, "<p>");
        add_escaped(out, text_of(report, "in_use"));
        sq_text_add(out, "</p>\n");
    }
    add_calendar(out, report);
    add_last_run(out, sq_json_get(report, "last_run"));
    if (*text_of(report, "command")) {
        sq_text_add(out, "<p>To go on: <code>");
        add_escaped(out, text_of(report, "command"));
        sq_text_add(out, "</code></p>\n");
    }
    add_variables(out, sq_json_get(report, "variables"));
    add_problems(out, report);
    sq_text_add(out, "</html>\n");
}

int squall_status_html(squall_context *ctx, const char *store, char **ret, struct squall_error *err)
{
    char *json = NULL;
    struct sq_json *parsed = NULL;
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    SQ_TRY(squall_status_report(ctx, store, NULL, &json, NULL, err));
    int status = sq_json_parse(json, strlen(json), &parsed, err);
    free(json);
    SQ_TRY(status);
    SQ_CLEANUP_JSON struct sq_json *report = parsed;
    if (!sq_json_get(report, "variables"))
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a page is made of a store, and this is none; squall status tells of it", store);
    add_page(&out, report);
    if (out.failed || !(*ret = strdup(sq_text_string(&out))))
        return sq_error_memory(err, out.length);
    return 0;
}
