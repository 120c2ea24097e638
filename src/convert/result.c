/* What a run did: the numbers, and the report for a person and for a program. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/report.h"
#include "convert/write.h"
#include <stdlib.h>
#include <string.h>

struct partial {
    uint32_t *counts; /* fields stored of each init time, those of earlier runs too */
    struct sq_usual usual;
    uint64_t count;
};

static uint32_t usual_of(const struct partial *p, uint64_t init)
{
    return p->usual.fields[sq_usual_span(&p->usual, init)];
}

static bool is_partial(const struct partial *p, uint64_t init)
{
    return p->counts[init] > 0 && p->counts[init] < usual_of(p, init);
}

static int count_partial(const struct sq_run *run, struct partial *p, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    uint64_t init_count = plan->cube.init_count, init_chunk = plan->layout.init_chunk;
    const int64_t *times_s = plan->cube.of_arrays ? NULL : plan->cube.init_times_s;
    p->counts = sq_alloc(init_count, sizeof *p->counts);
    if (!p->counts)
        return sq_error_memory(err, init_count * sizeof *p->counts);
    sq_count_fields(&plan->state.records, init_chunk, init_count, p->counts);
    for (size_t i = 0; i < plan->unit_count; i++)
        for (size_t k = 0; run->records[i] && k < run->records[i]->init_count; k++)
            p->counts[plan->units[i].unit * init_chunk + k] = run->records[i]->field_counts[k];
    SQ_TRY(sq_usual_make(plan->cube.schema, times_s ? times_s[0] : 0, times_s && init_count > 1 ? times_s[1] - times_s[0] : 0, p->counts,
                         init_count, &p->usual, err));
    for (uint64_t i = 0; i < init_count; i++)
        p->count += is_partial(p, i);
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------ */

static int set_uint(struct sq_json *object, const char *key, uint64_t value)
{
    return sq_json_set(object, key, sq_json_new_uint(value));
}

/* Of a part: how many units are other parts', and whether these are written; null while others are at work. */
static int set_part(const struct sq_run *run, struct sq_json *units)
{
    int first = set_uint(units, "of_other_parts", run->totals.units_another);
    struct sq_json *left = run->others_work ? sq_json_new_null() : sq_json_new_uint(run->others_left);
    int second = sq_json_set(units, "left_by_other_parts", left);
    return first ? first : second;
}

static int set_units(const struct sq_run *run, struct sq_json *report)
{
    struct sq_json *v = sq_json_new_object();
    if (!v || set_uint(v, "done", run->totals.units_done) || set_uint(v, "skipped", run->totals.units_skipped) ||
        set_uint(v, "failed", run->totals.units_failed) || (run->plan->settings.part.count && set_part(run, v))) {
        sq_json_free(v);
        return SQUALL_ENOMEM;
    }
    return sq_json_set(report, "units", v);
}

static struct sq_json *failed_json(const struct sq_run *run, size_t which)
{
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    struct sq_json *v = sq_json_new_object();
    sq_report_unit_name(run->plan, run->plan->units[which].unit, &name);
    if (!v || sq_json_set_string(v, "unit", sq_text_string(&name)) || sq_json_set_string(v, "why", run->failures[which])) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int set_failed(const struct sq_run *run, struct sq_json *report)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < run->plan->unit_count; i++) {
        if (run->failures[i] && sq_json_append(v, failed_json(run, i))) {
            sq_json_free(v);
            return SQUALL_ENOMEM;
        }
    }
    return sq_json_set(report, "failed", v);
}

static struct sq_json *partial_json(const struct squall_convert_plan *plan, uint64_t init, uint32_t count)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    struct sq_json *v = sq_json_new_object();
    sq_report_init_text(plan, init, &text);
    if (!v || text.failed || sq_json_set_string(v, plan->cube.append_dim, sq_text_string(&text)) || set_uint(v, "fields", count)) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int set_partial(const struct sq_run *run, const struct partial *p, struct sq_json *report)
{
    struct sq_json *v = sq_json_new_array();
    for (uint64_t i = 0; v && i < run->plan->cube.init_count; i++) {
        if (is_partial(p, i) && sq_json_append(v, partial_json(run->plan, i, p->counts[i]))) {
            sq_json_free(v);
            return SQUALL_ENOMEM;
        }
    }
    int first = sq_json_set(report, "partial", v);
    return first ? first : set_uint(report, "usual_field_count", sq_usual_now(&p->usual));
}

static int report_json(const struct sq_run *run, const struct partial *p, bool news, char **ret, struct squall_error *err)
{
    const struct sq_cube *cube = &run->plan->cube;
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set_string(v, "destination", run->plan->settings.destination) || set_units(run, v) ||
        sq_report_fields(run->plan, v) || set_uint(v, "fields_written", run->totals.fields_written) ||
        set_uint(v, "fields_carried", run->totals.fields_carried) || set_uint(v, "bytes_in", run->totals.bytes_in) ||
        set_uint(v, "bytes_out", run->totals.bytes_out) || set_partial(run, p, v) || set_failed(run, v) || sq_report_inputs(run->plan, v) ||
        sq_json_set(v, "warnings", sq_json_new_texts((const char *const *)cube->warnings, cube->warning_count)) ||
        sq_json_set(v, "notes", sq_json_new_texts((const char *const *)cube->notes, cube->note_count)) ||
        sq_json_set(v, "news", sq_json_new_bool(news)))
        return sq_error_memory(err, sizeof(void *));
    return sq_json_for_caller(v, ret, err);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------ */

static void partial_lines(const struct sq_run *run, const struct partial *p, struct sq_text *out)
{
    enum { SHOWN = 10 };
    uint64_t shown = 0;
    if (p->count == 0)
        return;
    sq_text_printf(out, "partial, with fewer than the usual %u %ss:\n", sq_usual_now(&p->usual), sq_report_noun(run->plan));
    for (uint64_t i = 0; i < run->plan->cube.init_count && shown < SHOWN; i++) {
        if (!is_partial(p, i))
            continue;
        sq_text_printf(out, "  %s ", run->plan->cube.of_arrays ? run->plan->cube.append_dim : "run");
        sq_report_init_text(run->plan, i, out);
        sq_text_printf(out, ": %u", p->counts[i]);
        if (usual_of(p, i) != sq_usual_now(&p->usual))
            sq_text_printf(out, ", where %u were usual", usual_of(p, i));
        sq_text_add(out, "\n");
        shown++;
    }
    if (p->count > shown)
        sq_text_printf(out, "  and %llu more (squall status shows all)\n", (unsigned long long)(p->count - shown));
}

static void add_fields_left_out(const struct sq_field_counts *n, const char *noun, struct sq_text *out)
{
    const struct {
        uint64_t count;
        const char *what;
    } parts[] = {{n->ignored, "ignored"}, {n->duplicates, "there twice"}, {n->not_selected, "not selected"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].count == 0)
            continue;
        sq_text_add_count(out, parts[i].count, noun);
        sq_text_printf(out, " %s\n", parts[i].what);
    }
}

static void part_line(const struct sq_run *run, struct sq_text *out)
{
    const struct sq_part part = run->plan->settings.part;
    sq_text_printf(out, "part %u of %u; other parts have ", part.number, part.count);
    sq_text_add_count(out, run->totals.units_another, "unit");
    if (run->others_work)
        sq_text_add(out, ", and some of them are at work\n");
    else if (run->others_left)
        sq_text_printf(out, ", of which %llu are not written and nobody is at work\n", (unsigned long long)run->others_left);
    else
        sq_text_add(out, ", all of them written\n");
}

static int report_text(const struct sq_run *run, const struct partial *p, char **ret, struct squall_error *err)
{
    const struct sq_run_totals *t = &run->totals;
    struct sq_field_counts n = sq_report_field_counts(run->plan);
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    char in[SQ_SIZE_TEXT_BYTES], stored[SQ_SIZE_TEXT_BYTES];
    sq_size_text(t->bytes_in, in);
    sq_size_text(t->bytes_out, stored);
    sq_text_printf(&out, "%s: ", run->plan->settings.destination);
    if (t->units_done) {
        sq_text_add_count(&out, t->units_done, "unit");
        sq_text_add(&out, " written (");
        sq_text_add_count(&out, t->fields_written, sq_report_noun(run->plan));
        if (t->fields_carried)
            sq_text_printf(&out, " and %llu carried over", (unsigned long long)t->fields_carried);
        sq_text_printf(&out, ", %s of %s, %s of Zarr)", in, run->plan->cube.of_arrays ? "values" : "GRIB", stored);
    } else {
        sq_text_add(&out, "nothing new");
    }
    sq_text_printf(&out, ", %llu done before", (unsigned long long)t->units_skipped);
    if (t->units_failed)
        sq_text_printf(&out, ", %llu left", (unsigned long long)t->units_failed);
    sq_text_add(&out, "\n");
    if (run->plan->settings.part.count)
        part_line(run, &out);
    add_fields_left_out(&n, sq_report_noun(run->plan), &out);
    for (size_t i = 0; i < run->plan->unit_count; i++) {
        if (!run->failures[i])
            continue;
        sq_text_add(&out, "left: ");
        sq_report_unit_name(run->plan, run->plan->units[i].unit, &out);
        sq_text_add(&out, ": ");
        sq_text_add_visible(&out, run->failures[i]);
        sq_text_add(&out, "\n");
    }
    sq_report_input_lines(run->plan, &out);
    partial_lines(run, p, &out);
    char *copy = sq_text_for_caller(&out);
    if (!copy)
        return sq_error_memory(err, out.length);
    *ret = copy;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------------- */

static bool is_news(const struct sq_run *run)
{
    const struct squall_convert_plan *plan = run->plan;
    bool news = run->totals.units_failed > 0 || (plan->settings.strict && plan->inputs.count > 0);
    for (size_t i = 0; i < plan->inputs.count; i++)
        news = news || !plan->inputs.items[i].known;
    return news;
}

static struct squall_convert_result numbers(const struct sq_run *run, const struct partial *p)
{
    struct sq_field_counts n = sq_report_field_counts(run->plan);
    struct squall_convert_result r = {
        .units_done = run->totals.units_done,
        .units_skipped = run->totals.units_skipped,
        .units_failed = run->totals.units_failed,
        .fields_written = run->totals.fields_written,
        .fields_ignored = n.ignored,
        .fields_duplicate = n.duplicates,
        .bytes_in = run->totals.bytes_in,
        .bytes_out = run->totals.bytes_out,
        .partial_runs = p->count,
        .news = is_news(run),
    };
    for (size_t i = 0; i < run->plan->inputs.count; i++)
        r.bad_inputs += run->plan->inputs.items[i].is_bad;
    return r;
}

int sq_run_result(const struct sq_run *run, struct squall_convert_result *ret, struct squall_error *err)
{
    struct partial p = {0};
    struct squall_convert_result r = {0};
    int status = count_partial(run, &p, err);
    if (!status) {
        r = numbers(run, &p);
        status = report_json(run, &p, r.news != 0, &r.json, err);
    }
    if (!status)
        status = report_text(run, &p, &r.text, err);
    sq_free(p.counts);
    sq_usual_done(&p.usual);
    if (status) {
        squall_convert_result_done(&r);
        return status;
    }
    *ret = r;
    return 0;
}
