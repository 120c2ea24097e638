/* The plan for a person and for a program: what would be written, what it takes, what is left out and why. */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "convert/report.h"
#include <string.h>

struct todo_counts {
    uint64_t of[SQ_TODO_ANOTHER + 1];
};

static struct todo_counts count_todo(const struct squall_convert_plan *plan)
{
    struct todo_counts n = {0};
    for (size_t i = 0; i < plan->unit_count; i++)
        n.of[plan->units[i].todo]++;
    return n;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------ */

static int set_uint(struct sq_json *object, const char *key, uint64_t value)
{
    return sq_json_set(object, key, sq_json_new_uint(value));
}

static int set_init(struct sq_json *object, const char *key, const struct squall_convert_plan *plan, uint64_t init)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_report_init_text(plan, init, &text);
    return text.failed ? SQUALL_ENOMEM : sq_json_set_string(object, key, sq_text_string(&text));
}

/* Of the chunks, in shards, too. */
static const char *codec_text(const struct sq_layout_array *a)
{
    const struct sq_codec_shard *shards = sq_codec_chain_shard(a->codecs);
    return sq_codec_chain_text(shards ? shards->inner : a->codecs);
}

static struct sq_json *array_json(const struct sq_layout_array *a, enum sq_overflow_outlook outlook)
{
    static const char *const OUTLOOKS[] = {
        [SQ_OUTLOOK_FITS] = "ruled out", [SQ_OUTLOOK_UNKNOWN] = "unknown", [SQ_OUTLOOK_OVERFLOWS] = "possible"};
    struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set_string(v, "name", a->name) || sq_json_set_string(v, "dtype", sq_type_name(a->type)) ||
        sq_json_set(v, "dims", sq_json_new_texts(a->dims, a->rank)) || sq_json_set(v, "shape", sq_json_new_uints(a->shape, a->rank)) ||
        sq_json_set(v, "chunks", sq_json_new_uints(a->sharded ? a->inner : a->chunks, a->rank)) ||
        (a->sharded && sq_json_set(v, "shards", sq_json_new_uints(a->chunks, a->rank))) || set_uint(v, "chunk_bytes", a->chunk_bytes) ||
        sq_json_set_string(v, "codec", codec_text(a)) ||
        (a->type == SQUALL_FLOAT16 && sq_json_set_string(v, "overflow", OUTLOOKS[outlook]))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

static int set_arrays(const struct squall_convert_plan *plan, struct sq_json *report)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < plan->layout.array_count; i++) {
        if (sq_json_append(v, array_json(&plan->layout.arrays[i], plan->outlooks[i]))) {
            sq_json_free(v);
            return SQUALL_ENOMEM;
        }
    }
    return sq_json_set(report, "arrays", v);
}

static int set_init_time(const struct squall_convert_plan *plan, struct sq_json *report)
{
    const struct sq_cube *cube = &plan->cube;
    struct sq_json *v = sq_json_new_object();
    if (!v || (cube->of_arrays && sq_json_set_string(v, "dim", cube->append_dim)) || set_init(v, "first", plan, 0) ||
        set_init(v, "last", plan, cube->init_count - 1) || set_uint(v, "count", cube->init_count) ||
        (!cube->of_arrays && sq_json_set_int(v, "cadence_seconds", cube->cadence_s))) {
        sq_json_free(v);
        return SQUALL_ENOMEM;
    }
    return sq_json_set(report, cube->of_arrays ? "append" : "init_time", v);
}

static int set_units(const struct squall_convert_plan *plan, struct sq_json *report)
{
    struct todo_counts n = count_todo(plan);
    struct sq_json *v = sq_json_new_object();
    if (!v || set_uint(v, "write", n.of[SQ_TODO_WRITE]) || set_uint(v, "redo", n.of[SQ_TODO_REDO]) ||
        set_uint(v, "done", n.of[SQ_TODO_NOTHING]) || set_uint(v, "left", n.of[SQ_TODO_KEEP] + n.of[SQ_TODO_STRICT]) ||
        (plan->settings.part.count && set_uint(v, "of_other_parts", n.of[SQ_TODO_ANOTHER]))) {
        sq_json_free(v);
        return SQUALL_ENOMEM;
    }
    return sq_json_set(report, "units", v);
}

static int set_all(const struct squall_convert_plan *plan, struct sq_json *v)
{
    const struct sq_cube *cube = &plan->cube;
    const char *kind = plan->replaced ? "replace" : plan->state.exists ? "append" : "new";
    if (sq_json_set_string(v, "destination", plan->settings.destination) || sq_json_set_string(v, "kind", kind) ||
        set_uint(v, "files", sq_plan_file_count(plan)) || sq_report_fields(plan, v) || set_init_time(plan, v) || set_arrays(plan, v) ||
        set_units(plan, v) || set_uint(v, "holes", cube->holes) || set_uint(v, "bytes_in", plan->bytes_in) ||
        set_uint(v, "bytes_out_decoded", plan->bytes_out) || set_uint(v, "peak_memory_bytes", plan->peak_bytes) ||
        (!cube->of_arrays && set_uint(v, "bands", plan->band_count)) || set_uint(v, "memory_budget_bytes", plan->ctx->memory_bytes) ||
        sq_json_set_string(v, "layout_id", plan->layout.id) || sq_report_inputs(plan, v) ||
        sq_json_set(v, "warnings", sq_json_new_texts((const char *const *)cube->warnings, cube->warning_count)) ||
        sq_json_set(v, "notes", sq_json_new_texts((const char *const *)cube->notes, cube->note_count)))
        return SQUALL_ENOMEM;
    return 0;
}

int squall_convert_plan_json(const squall_convert_plan *plan, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!v || set_all(plan, v))
        return sq_error_memory(err, sizeof(void *));
    return sq_json_for_caller(v, ret, err);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------ */

static void add_lengths(const uint64_t *lengths, unsigned rank, struct sq_text *out)
{
    for (unsigned d = 0; d < rank; d++)
        sq_text_printf(out, "%s%llu", d ? " × " : "", (unsigned long long)lengths[d]);
}

/* One line where they are all the same. */
static void codec_lines(const struct sq_layout *layout, struct sq_text *out)
{
    bool same = true;
    for (size_t i = 1; i < layout->array_count; i++)
        same = same && !strcmp(codec_text(&layout->arrays[i]), codec_text(&layout->arrays[0]));
    for (size_t i = 0; i < (same && layout->array_count ? 1 : layout->array_count); i++)
        sq_text_printf(out, "codec%s%s: %s\n", same ? "" : " of ", same ? "" : layout->arrays[i].name, codec_text(&layout->arrays[i]));
}

static void array_line(const struct sq_layout_array *a, enum sq_overflow_outlook outlook, struct sq_text *out)
{
    sq_text_printf(out, "  %s %s (", a->name, sq_type_name(a->type));
    for (unsigned d = 0; d < a->rank; d++)
        sq_text_printf(out, "%s%s %llu", d ? ", " : "", a->dims[d], (unsigned long long)a->shape[d]);
    sq_text_add(out, "), chunks ");
    add_lengths(a->sharded ? a->inner : a->chunks, a->rank, out);
    if (a->sharded) {
        sq_text_add(out, " in shards ");
        add_lengths(a->chunks, a->rank, out);
    }
    sq_text_add(out, outlook == SQ_OUTLOOK_OVERFLOWS ? " (some values may not fit float16)\n" : "\n");
}

static void unit_lines(const struct squall_convert_plan *plan, struct sq_text *out)
{
    struct todo_counts n = count_todo(plan);
    char in[SQ_SIZE_TEXT_BYTES], decoded[SQ_SIZE_TEXT_BYTES], memory[SQ_SIZE_TEXT_BYTES];
    sq_size_text(plan->bytes_in, in);
    sq_size_text(plan->bytes_out, decoded);
    sq_size_text(plan->peak_bytes, memory);
    sq_text_printf(out, "units: %llu to write, %llu to write again, %llu done already, %llu left as they are\n",
                   (unsigned long long)n.of[SQ_TODO_WRITE], (unsigned long long)n.of[SQ_TODO_REDO],
                   (unsigned long long)n.of[SQ_TODO_NOTHING], (unsigned long long)n.of[SQ_TODO_KEEP] + n.of[SQ_TODO_STRICT]);
    for (size_t i = 0; i < plan->unit_count; i++) {
        if (!plan->units[i].why)
            continue;
        sq_text_add(out, "  ");
        sq_report_unit_name(plan, plan->units[i].unit, out);
        sq_text_printf(out, ": %s\n", plan->units[i].why);
    }
    sq_text_printf(out, "%s of %s in, %s out before compression, at most %s of memory", in, plan->cube.of_arrays ? "values" : "GRIB",
                   decoded, memory);
    if (plan->band_count > 1)
        sq_text_printf(out, ", so that units are made in up to %llu bands", (unsigned long long)plan->band_count);
    sq_text_add(out, "\n");
}

int squall_convert_plan_text(const squall_convert_plan *plan, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    const struct sq_cube *cube = &plan->cube;
    struct sq_field_counts n = sq_report_field_counts(plan);
    sq_text_printf(&out, "%s (%s)\n", plan->settings.destination,
                   plan->replaced       ? "replaces the store that is there"
                   : plan->state.exists ? "is added to"
                                        : "new");
    sq_text_add_count(&out, n.found, sq_report_noun(plan));
    sq_text_add(&out, " in ");
    sq_text_add_count(&out, sq_plan_file_count(plan), "file");
    sq_text_printf(&out, ": %llu placed, %llu ignored, %llu there twice, %llu not selected\n", (unsigned long long)n.placed,
                   (unsigned long long)n.ignored, (unsigned long long)n.duplicates, (unsigned long long)n.not_selected);
    sq_text_printf(&out, "%s: %zu, ", cube->append_dim, cube->init_count);
    sq_report_init_text(plan, 0, &out);
    sq_text_add(&out, " to ");
    sq_report_init_text(plan, cube->init_count - 1, &out);
    sq_text_add(&out, "\n");
    for (size_t i = 0; i < plan->layout.array_count; i++)
        array_line(&plan->layout.arrays[i], plan->outlooks[i], &out);
    codec_lines(&plan->layout, &out);
    unit_lines(plan, &out);
    for (size_t i = 0; i < cube->warning_count; i++)
        sq_text_printf(&out, "%s\n", cube->warnings[i]);
    for (size_t i = 0; i < cube->note_count; i++)
        sq_text_printf(&out, "%s\n", cube->notes[i]);
    sq_report_input_lines(plan, &out);
    char *copy = sq_text_for_caller(&out);
    if (!copy)
        return sq_error_memory(err, out.length);
    *ret = copy;
    return 0;
}
