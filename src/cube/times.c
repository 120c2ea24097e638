/*
 * Runs, cadence, strays (docs/cubes.md, "Time"). init_time is regular and contiguous from the first run on; what is not on the cadence gets no coordinate.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The commonest of the values, the smallest of equally common ones; sorts them. count ≥ 1 */
static int64_t commonest(int64_t *values, size_t count)
{
    size_t best_count = 0;
    int64_t best = values[0];
    qsort(values, count, sizeof *values, compare_values);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && values[end] == values[i]; end++)
            ;
        if (end - i > best_count) {
            best_count = end - i;
            best = values[i];
        }
    }
    return best;
}

static int64_t phase_of(int64_t time_s, int64_t cadence_s)
{
    int64_t phase = time_s % cadence_s;
    return phase < 0 ? phase + cadence_s : phase;
}

/* The commonest difference of neighbouring runs; count ≥ 2 */
static int find_cadence(const struct sq_axis *runs, int64_t *ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE int64_t *differences = sq_alloc(runs->count, sizeof *differences);
    if (!differences)
        return sq_error_memory(err, runs->count * sizeof *differences);
    for (uint32_t i = 1; i < runs->count; i++)
        differences[i - 1] = runs->values[i] - runs->values[i - 1];
    *ret = commonest(differences, runs->count - 1);
    return 0;
}

/* The first run of those that most runs are in step with (of equally many: with the earliest), so that a stray at the very beginning costs itself only. */
static int find_start(const struct sq_axis *runs, int64_t cadence_s, int64_t *ret, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern phases = sq_intern_make(1);
    SQ_CLEANUP_FREE uint32_t *counts = sq_alloc_zero(runs->count, sizeof *counts);
    uint32_t number, best = 0;
    if (!counts)
        return sq_error_memory(err, runs->count * sizeof *counts);
    for (uint32_t i = 0; i < runs->count; i++) {
        int64_t phase = phase_of(runs->values[i], cadence_s);
        SQ_TRY(sq_intern_add(&phases, &phase, &number, err));
        counts[number]++;
    }
    for (uint32_t i = 1; i < phases.count; i++)
        best = counts[i] > counts[best] ? i : best;
    for (uint32_t i = runs->count; i-- > 0;) {
        if (phase_of(runs->values[i], cadence_s) == *sq_intern_key(&phases, best))
            *ret = runs->values[i];
    }
    return 0;
}

/* The runs of the store and those that are new; those before the store's first only where they are to be added. */
static int join_runs(const struct sq_builder *b, struct sq_axis *ret, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(1);
    uint32_t number;
    for (uint64_t i = 0; i < b->known_init_count; i++) {
        int64_t time_s = b->start_s + (int64_t)i * b->spacing_s;
        SQ_TRY(sq_intern_add(&table, &time_s, &number, err));
    }
    for (uint32_t i = 0; i < b->runs.count; i++) {
        if (b->runs.values[i] >= b->start_s || b->options->prepend)
            SQ_TRY(sq_intern_add(&table, &b->runs.values[i], &number, err));
    }
    return sq_axis_from(ret, &table, err);
}

static int refuse_spacing(const struct sq_builder *b, int64_t wanted_s, const char *why, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text have = SQ_TEXT_INIT, want = SQ_TEXT_INIT, every = SQ_TEXT_INIT;
    sq_text_add_duration(&have, b->spacing_s);
    sq_text_add_duration(&want, wanted_s);
    sq_text_add_compact_duration(&every, wanted_s);
    return sq_error(err, SQUALL_EREFUSED,
                    "the store's init_time runs in steps of %s, %s %s: its coordinates would have to move; make the store anew "
                    "(--overwrite) or another one, with --every %s",
                    sq_text_string(&have), why, sq_text_string(&want), sq_text_string(&every));
}

/* The step is to be another one. Where the store's is a multiple of it, and still open, the store's runs move apart; else it is refused. */
static int respace(struct sq_builder *b, int64_t wanted_s, const char *why, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text step = SQ_TEXT_INIT;
    uint64_t count;
    if (b->cadence_s || !b->options->respace || b->spacing_s % wanted_s != 0)
        return refuse_spacing(b, wanted_s, why, err);
    b->move.stretch = (uint64_t)(b->spacing_s / wanted_s);
    if (!sq_mul_u64(b->known_init_count - 1, b->move.stretch, &count) || count >= SQ_INIT_COUNT_LIMIT)
        return refuse_spacing(b, wanted_s, why, err);
    b->known_init_count = count + 1;
    b->spacing_s = wanted_s;
    sq_text_add_duration(&step, wanted_s);
    return step.failed
               ? sq_error_memory(err, step.length)
               : sq_cube_note(b, false, err, "init_time runs in steps of %s now; what is stored gets other places", sq_text_string(&step));
}

/* Cadence of a store that exists: start_s, spacing_s, cadence_s and known_init_count are the schema's. */
static int extend_cadence(struct sq_builder *b, struct squall_error *err)
{
    __attribute__((cleanup(sq_axis_done))) struct sq_axis all = {0};
    int64_t every_s = b->options->every_s;
    if (every_s) {
        if (b->spacing_s && b->spacing_s != every_s)
            SQ_TRY(respace(b, every_s, "--every says", err));
        b->cadence_s = b->spacing_s = every_s;
    }
    if (b->cadence_s)
        return 0;
    SQ_TRY(join_runs(b, &all, err));
    if (all.count < 2)
        return 0;
    int64_t found_s = 0;
    SQ_TRY(find_cadence(&all, &found_s, err));
    if (b->spacing_s && b->spacing_s != found_s)
        SQ_TRY(respace(b, found_s, "with the new runs the commonest difference is", err));
    b->spacing_s = found_s;
    b->cadence_s = all.count >= 3 ? found_s : 0;
    return 0;
}

/* Where the first run on the cadence lies before the store's, init_time begins there, or as much earlier as makes it a multiple of options->prepend. */
static int prepend_runs(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const uint64_t unit = b->options->prepend;
    uint64_t before = 0;
    int64_t span_s;
    for (uint32_t i = 0; i < b->runs.count && b->spacing_s; i++) {
        const int64_t by_s = b->start_s - b->runs.values[i];
        if (by_s > 0 && by_s % b->spacing_s == 0 && (uint64_t)(by_s / b->spacing_s) > before)
            before = (uint64_t)(by_s / b->spacing_s);
    }
    if (!before)
        return 0;
    b->move.by = (before + unit - 1) / unit * unit;
    if (b->move.by > SQ_INIT_COUNT_LIMIT || !sq_mul_i64((int64_t)b->move.by, b->spacing_s, &span_s) ||
        span_s > SQ_TIME_LIMIT_S + b->start_s)
        return sq_error(err, SQUALL_EUNSUPPORTED,
                        "init_time would begin %llu places earlier: a run lies far before the others; convert without it",
                        (unsigned long long)b->move.by);
    b->start_s -= span_s;
    b->known_init_count += b->move.by;
    sq_text_add(&text, "init_time begins at ");
    sq_text_add_time(&text, b->start_s);
    sq_text_printf(&text, " now, %llu before the store's first", (unsigned long long)b->move.by);
    if (b->move.by > before)
        sq_text_printf(&text, "; %llu of these have no run, and are there because %llu are stored together",
                       (unsigned long long)(b->move.by - before), (unsigned long long)unit);
    return text.failed ? sq_error_memory(err, text.length) : sq_cube_note(b, false, err, "%s", sq_text_string(&text));
}

static int extend_runs(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(extend_cadence(b, err));
    return b->options->prepend ? prepend_runs(b, err) : 0;
}

static int nothing_left(const struct sq_builder *b, struct squall_error *err)
{
    size_t files = b->index->file_count, fields = b->index->field_count;
    const char *plural = fields == 1 ? "" : "s";
    if (!fields && files == 1)
        return sq_error(err, SQUALL_ENOTFOUND, "%s holds no GRIB message", b->index->files[0].path);
    if (!fields)
        return sq_error(err, SQUALL_ENOTFOUND, "none of %zu files holds a GRIB message; the first is %s", files, b->index->files[0].path);
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (b->fate[i] == SQ_FATE_UNSUPPORTED)
            return sq_error(err, SQUALL_ENOTFOUND, "no variable can be made of %zu field%s: %s at byte %llu is not read yet (%s)", fields,
                            plural, b->index->files[b->index->fields[i].file].path, (unsigned long long)b->index->fields[i].offset,
                            sq_cube_unsupported_reason(b, i));
    }
    return sq_error(err, SQUALL_ENOTFOUND, "nothing is left to convert of %zu field%s%s", fields, plural,
                    b->options->stack ? ": --stack variable takes no members, and probabilities only where --select names them" : "");
}

static int begin_runs(struct sq_builder *b, struct squall_error *err)
{
    if (!b->runs.count)
        return nothing_left(b, err);
    b->start_s = b->runs.values[0];
    b->cadence_s = b->options->every_s;
    if (!b->cadence_s && b->runs.count >= 3)
        SQ_TRY(find_cadence(&b->runs, &b->cadence_s, err));
    b->spacing_s = b->cadence_s;
    if (b->cadence_s)
        return find_start(&b->runs, b->cadence_s, &b->start_s, err);
    if (b->runs.count == 2)
        b->spacing_s = b->runs.values[1] - b->runs.values[0];
    return 0;
}

static enum sq_fate fate_of_run(const struct sq_builder *b, int64_t time_s)
{
    int64_t since_start_s = time_s - b->start_s;
    if (since_start_s != 0 && (!b->spacing_s || since_start_s % b->spacing_s != 0))
        return b->options->schema && !b->cadence_s && since_start_s < 0 ? SQ_FATE_BEFORE_START : SQ_FATE_OFF_CADENCE;
    return since_start_s < 0 ? SQ_FATE_BEFORE_START : SQ_FATE_OPEN;
}

void sq_cube_leave_strays(struct sq_builder *b)
{
    for (size_t i = 0; i < b->index->field_count && b->cadence_s; i++) {
        bool stray = fate_of_run(b, b->index->fields[i].times.reference_time_s) == SQ_FATE_OFF_CADENCE;
        if (stray && b->fate[i] == SQ_FATE_OPEN)
            b->fate[i] = SQ_FATE_OFF_CADENCE;
    }
}

int sq_cube_find_runs(struct sq_builder *b, struct squall_error *err)
{
    SQ_TRY(b->options->schema ? extend_runs(b, err) : begin_runs(b, err));
    b->init_count = b->known_init_count;
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (b->fate[i] != SQ_FATE_OPEN)
            continue;
        int64_t time_s = b->index->fields[i].times.reference_time_s;
        b->fate[i] = (uint8_t)fate_of_run(b, time_s);
        if (b->fate[i] != SQ_FATE_OPEN)
            continue;
        uint64_t at = b->spacing_s ? (uint64_t)(time_s - b->start_s) / (uint64_t)b->spacing_s : 0;
        if (at >= b->init_count)
            b->init_count = at + 1;
    }
    if (b->init_count > SQ_INIT_COUNT_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED,
                        "init_time would have %llu values: a run lies far from the others; convert without it, or name a longer --every",
                        (unsigned long long)b->init_count);
    return 0;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Runs on the first of each month have no cadence, but are all on days. Where many runs are off the cadence, and one that takes them all would not make
 * init_time much longer than it has runs, the line says how to ask for it. A few strays are no reason.
 */
int sq_cube_advise_cadence(struct sq_builder *b, struct squall_error *err)
{
    enum { PLACES_A_RUN = 40, RUNS_A_STRAY = 4 };
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const struct sq_axis *runs = &b->runs;
    int64_t common_s = 0;
    size_t off = 0;
    for (uint32_t i = 0; i < runs->count; i++) {
        off += fate_of_run(b, runs->values[i]) == SQ_FATE_OFF_CADENCE;
        common_s = i ? common_divisor(common_s, runs->values[i] - runs->values[i - 1]) : 0;
    }
    if (b->options->schema || b->options->every_s || !common_s || off * RUNS_A_STRAY < runs->count)
        return 0;
    if ((runs->values[runs->count - 1] - runs->values[0]) / common_s >= (int64_t)PLACES_A_RUN * runs->count)
        return 0;
    sq_text_printf(&text, "%zu of %u runs are off the cadence of ", off, runs->count);
    sq_text_add_duration(&text, b->spacing_s);
    sq_text_add(&text, "; --every ");
    sq_text_add_compact_duration(&text, common_s);
    sq_text_add(&text, " takes every run");
    if (text.failed)
        return sq_error_memory(err, text.length);
    return sq_cube_note(b, true, err, "%s", sq_text_string(&text));
}
