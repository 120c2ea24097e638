/* See summary.h. */
#include "convert/summary.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "squall/date.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sq_time_text(int64_t seconds, const char *calendar, char ret[SQ_TIME_TEXT_BYTES])
{
    char date[SQUALL_DATE_BYTES];
    if (squall_date_of_count("seconds since 1970-01-01", calendar ? calendar : "proleptic_gregorian", (double)seconds, date, NULL)) {
        snprintf(ret, SQ_TIME_TEXT_BYTES, "%lld s", (long long)seconds);
        return;
    }
    const size_t length = strlen(date);
    snprintf(ret, SQ_TIME_TEXT_BYTES, "%.*s", (int)(seconds % 60 ? length : length - strlen(":00")), date);
}

void sq_size_text(uint64_t bytes, char ret[SQ_SIZE_TEXT_BYTES])
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof UNITS / sizeof *UNITS; unit++)
        value /= 1024;
    snprintf(ret, SQ_SIZE_TEXT_BYTES, unit ? "%.1f %s" : "%.0f %s", value, UNITS[unit]);
}

void sq_count_fields(const struct sq_records *records, uint64_t init_chunk, uint64_t init_count, uint32_t *counts)
{
    memset(counts, 0, init_count * sizeof *counts);
    for (size_t i = 0; i < records->unit_count; i++) {
        const struct sq_record_unit *unit = &records->units[i];
        for (size_t k = 0; k < unit->init_count && unit->valid; k++)
            if (unit->unit < init_count && unit->unit * init_chunk + k < init_count)
                counts[unit->unit * init_chunk + k] = unit->field_counts[k];
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* counts: they are sorted. */
static uint32_t commonest(uint32_t *counts, size_t count)
{
    uint32_t usual = 0;
    size_t often = 0;
    if (count)
        qsort(counts, count, sizeof *counts, by_number);
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && counts[end] == counts[i])
            end++;
        if (counts[i] > 0 && end - i >= often) {
            often = end - i;
            usual = counts[i];
        }
        i = end;
    }
    return usual;
}

static int by_init(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* From where on a store has had more; firsts: room for all, and the beginning. */
static size_t find_spans(const struct sq_json *grown, int64_t start_s, int64_t step_s, uint64_t count, uint64_t *firsts)
{
    size_t used = 0, kept = 1;
    firsts[used++] = 0;
    for (size_t i = 0; i < sq_json_count(grown); i++) {
        int64_t time_s;
        if (!sq_json_int(sq_json_at(grown, i), &time_s) || step_s <= 0 || time_s <= start_s)
            continue;
        const uint64_t first = ((uint64_t)time_s - (uint64_t)start_s + (uint64_t)step_s - 1) / (uint64_t)step_s;
        if (first < count)
            firsts[used++] = first;
    }
    qsort(firsts, used, sizeof *firsts, by_init);
    for (size_t i = 1; i < used; i++)
        if (firsts[i] != firsts[kept - 1])
            firsts[kept++] = firsts[i];
    return kept;
}

int sq_usual_make(const struct sq_json *schema, int64_t start_s, int64_t step_s, const uint32_t *counts, uint64_t count,
                  struct sq_usual *ret, struct squall_error *err)
{
    const struct sq_json *grown = sq_json_get(schema, "grown");
    const size_t most = sq_json_count(grown) + 1;
    SQ_CLEANUP_FREE uint32_t *sorted = sq_alloc(count, sizeof *sorted);
    struct sq_usual usual = {.firsts = sq_alloc(most, sizeof *usual.firsts), .fields = sq_alloc(most, sizeof *usual.fields)};
    if (!sorted || !usual.firsts || !usual.fields) {
        sq_usual_done(&usual);
        return sq_error_memory(err, count * sizeof *sorted);
    }
    usual.count = find_spans(grown, start_s, step_s, count, usual.firsts);
    memcpy(sorted, counts, count * sizeof *sorted);
    for (size_t i = 0; i < usual.count; i++) {
        const uint64_t first = usual.firsts[i], end = i + 1 < usual.count ? usual.firsts[i + 1] : count;
        usual.fields[i] = commonest(sorted + first, (size_t)(end - first));
    }
    *ret = usual;
    return 0;
}

void sq_usual_done(struct sq_usual *usual)
{
    sq_free(usual->firsts);
    sq_free(usual->fields);
    *usual = (struct sq_usual){0};
}

size_t sq_usual_span(const struct sq_usual *usual, uint64_t init)
{
    size_t span = usual->count - 1;
    while (span > 0 && init < usual->firsts[span])
        span--;
    return span;
}

uint32_t sq_usual_now(const struct sq_usual *usual)
{
    size_t span = usual->count - 1;
    while (span > 0 && usual->fields[span] == 0)
        span--;
    return usual->fields[span];
}

const char *sq_within_store(const char *store, const char *message)
{
    const size_t length = strlen(store);
    return !strncmp(message, store, length) && message[length] == '/' ? message + length + 1 : message;
}

/* Names in a report come from files: only its own line ends are left of control characters. */
char *sq_text_for_caller(const struct sq_text *text)
{
    char *copy = text->failed ? NULL : strdup(sq_text_string(text));
    for (char *at = copy; at && *at; at++)
        if (*at != '\n' && sq_text_control(at))
            memset(at, '?', sq_text_control(at));
    return copy;
}

int sq_json_for_caller(const struct sq_json *v, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_json_write(v, true, &text, err));
    sq_text_add(&text, "\n");
    char *copy = sq_text_for_caller(&text);
    if (!copy)
        return sq_error_memory(err, text.length);
    *ret = copy;
    return 0;
}
