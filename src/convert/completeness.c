/* How complete each variable of a store is, by the records alone. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/summary.h"

/* What the runs of a span (summary.h) have. */
struct span {
    uint64_t runs;         /* with any field */
    uint64_t stored, best; /* of one variable: its fields, and how many of them the best unit has a run */
};

/* What one variable has. A run that has any field should have as many of this variable as the best unit of its span has a run. */
struct completeness {
    const struct sq_records *records;
    const struct sq_usual *usual;
    uint64_t init_chunk;
    struct sq_json *list;
    struct span *spans;
};

static struct span *span_of(const struct completeness *c, const struct sq_record_unit *unit)
{
    return &c->spans[sq_usual_span(c->usual, unit->unit * c->init_chunk)];
}

static uint64_t runs_of(const struct sq_record_unit *unit)
{
    uint64_t count = 0;
    for (size_t i = 0; i < unit->init_count; i++)
        count += unit->field_counts[i] > 0;
    return count;
}

static int set_variable(struct sq_json *v, const char *name, uint64_t stored, uint64_t expected)
{
    if (!v || sq_json_set_string(v, "name", name) || sq_json_set(v, "stored", sq_json_new_uint(stored)) ||
        sq_json_set(v, "expected", sq_json_new_uint(expected)))
        return SQUALL_ENOMEM;
    return 0;
}

static int add_variable(void *user, const char *name, const struct sq_json *layout, struct squall_error *err)
{
    struct completeness *c = user;
    uint64_t stored = 0, expected = 0;
    (void)layout;
    for (size_t i = 0; i < c->usual->count; i++)
        c->spans[i].stored = c->spans[i].best = 0;
    for (size_t i = 0; i < c->records->unit_count; i++) {
        const struct sq_record_unit *unit = &c->records->units[i];
        const struct sq_record_array *a = unit->valid ? sq_record_array_of(unit, name) : NULL;
        const uint64_t count = a ? sq_ranges_beyond(&a->stored, 0) : 0, runs = count ? runs_of(unit) : 0;
        struct span *span = span_of(c, unit);
        span->stored += count;
        if (runs && count / runs > span->best)
            span->best = count / runs;
    }
    for (size_t i = 0; i < c->usual->count; i++) {
        const struct span *span = &c->spans[i];
        stored += span->stored;
        expected += span->best * span->runs > span->stored ? span->best * span->runs : span->stored;
    }
    struct sq_json *v = sq_json_new_object();
    if (set_variable(v, name, stored, expected)) {
        sq_json_free(v);
        return sq_error_memory(err, sizeof(void *));
    }
    return sq_json_append(c->list, v) ? sq_error_memory(err, sizeof(void *)) : 0;
}

int sq_completeness_json(const struct sq_records *records, uint64_t init_chunk, const struct sq_usual *usual, const struct sq_json *layout,
                         struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct span *spans = sq_alloc_zero(usual->count, sizeof *spans);
    struct completeness c = {records, usual, init_chunk, spans ? sq_json_new_array() : NULL, spans};
    if (!c.list)
        return sq_error_memory(err, usual->count * sizeof *spans);
    for (size_t i = 0; i < records->unit_count; i++)
        span_of(&c, &records->units[i])->runs += records->units[i].valid ? runs_of(&records->units[i]) : 0;
    int status = sq_json_each(sq_json_get(layout, "arrays"), add_variable, &c, err);
    if (status) {
        sq_json_free(c.list);
        return status;
    }
    *ret = c.list;
    return 0;
}
