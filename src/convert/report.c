/* See report.h. */
#include "convert/report.h"
#include <string.h>

enum { LINES_OF_EACH = 10 };

const char *sq_report_noun(const struct squall_convert_plan *plan)
{
    return plan->cube.of_arrays ? "slab" : "field";
}

struct sq_field_counts sq_report_field_counts(const struct squall_convert_plan *plan)
{
    const struct sq_cube *cube = &plan->cube;
    struct sq_field_counts n = {.found = plan->index.field_count, .placed = cube->place_count};
    if (cube->of_arrays)
        n.found = cube->place_count + cube->ignored_count;
    for (size_t i = 0; i < plan->cube.ignored_count; i++) {
        enum sq_cube_reason reason = plan->cube.ignored[i].reason;
        if (reason == SQ_CUBE_NOT_SELECTED)
            n.not_selected++;
        else if (reason == SQ_CUBE_IDENTICAL_DUPLICATE || reason == SQ_CUBE_CONFLICTING_DUPLICATE)
            n.duplicates++;
        else
            n.ignored++;
    }
    return n;
}

static int set_uint(struct sq_json *object, const char *key, uint64_t value)
{
    return sq_json_set(object, key, sq_json_new_uint(value));
}

int sq_report_fields(const struct squall_convert_plan *plan, struct sq_json *report)
{
    struct sq_field_counts n = sq_report_field_counts(plan);
    struct sq_json *v = sq_json_new_object();
    if (!v || set_uint(v, "found", n.found) || set_uint(v, "placed", n.placed) || set_uint(v, "ignored", n.ignored) ||
        set_uint(v, "duplicates", n.duplicates) || set_uint(v, "not_selected", n.not_selected)) {
        sq_json_free(v);
        return SQUALL_ENOMEM;
    }
    return sq_json_set(report, "fields", v);
}

static struct sq_json *input_json(const struct squall_convert_plan *plan, const struct sq_input *input)
{
    struct sq_json *v = sq_json_new_object();
    if (!v || sq_json_set_string(v, "file", sq_plan_file_path(plan, input->file)) || sq_json_set_string(v, "what", input->what) ||
        (!input->is_bad && set_uint(v, "fields", input->field_count)) || sq_json_set(v, "known", sq_json_new_bool(input->known))) {
        sq_json_free(v);
        return NULL;
    }
    return v;
}

int sq_report_inputs(const struct squall_convert_plan *plan, struct sq_json *report)
{
    struct sq_json *bad = sq_json_new_array(), *ignored = sq_json_new_array();
    int status = bad && ignored ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < plan->inputs.count && !status; i++) {
        const struct sq_input *input = &plan->inputs.items[i];
        status = sq_json_append(input->is_bad ? bad : ignored, input_json(plan, input));
    }
    if (status) {
        sq_json_free(bad);
        sq_json_free(ignored);
        return status;
    }
    int first = sq_json_set(report, "bad", bad), second = sq_json_set(report, "ignored", ignored);
    return first ? first : second;
}

void sq_report_init_text(const struct squall_convert_plan *plan, uint64_t init, struct sq_text *out)
{
    char text[SQ_TIME_TEXT_BYTES];
    if (!plan->cube.init_times_s) {
        sq_text_printf(out, "%llu", (unsigned long long)init);
        return;
    }
    sq_time_text(plan->cube.init_times_s[init], plan->cube.calendar, text);
    sq_text_add(out, text);
}

void sq_report_unit_name(const struct squall_convert_plan *plan, uint64_t unit, struct sq_text *out)
{
    uint64_t begin = unit * plan->layout.init_chunk, end = begin + plan->layout.init_chunk;
    if (end > plan->cube.init_count)
        end = plan->cube.init_count;
    if (plan->cube.of_arrays)
        sq_text_printf(out, "%s ", plan->cube.append_dim);
    else
        sq_text_add(out, end - begin == 1 ? "run " : "runs ");
    sq_report_init_text(plan, begin, out);
    if (end - begin == 1)
        return;
    sq_text_add(out, " to ");
    sq_report_init_text(plan, end - 1, out);
}

static void input_lines(const struct squall_convert_plan *plan, bool bad, const char *title, struct sq_text *out)
{
    size_t count = 0, said = 0;
    for (size_t i = 0; i < plan->inputs.count; i++) {
        count += plan->inputs.items[i].is_bad == bad && !plan->inputs.items[i].said;
        said += plan->inputs.items[i].is_bad == bad && plan->inputs.items[i].said;
    }
    if (said > 0)
        sq_text_printf(out, "%s: %zu, named in the warnings\n", title, said);
    if (count == 0)
        return;
    sq_text_printf(out, "%s%s:\n", title, said ? ", others" : "");
    size_t shown = 0;
    for (size_t i = 0; i < plan->inputs.count && shown < LINES_OF_EACH; i++) {
        const struct sq_input *input = &plan->inputs.items[i];
        if (input->is_bad != bad || input->said)
            continue;
        sq_text_add(out, "  "); /* a name may hold the end of a line */
        sq_text_add_visible(out, sq_plan_file_path(plan, input->file));
        sq_text_add(out, ": ");
        sq_text_add_visible(out, input->what);
        if (!bad) {
            sq_text_add(out, " (");
            sq_text_add_count(out, input->field_count, sq_report_noun(plan));
            sq_text_add(out, ")");
        }
        sq_text_add(out, input->known ? ", known already\n" : "\n");
        shown++;
    }
    if (count > shown)
        sq_text_printf(out, "  and %zu more (--json lists all)\n", count - shown);
}

void sq_report_input_lines(const struct squall_convert_plan *plan, struct sq_text *out)
{
    input_lines(plan, true, "could not be read", out);
    input_lines(plan, false, "ignored", out);
}
