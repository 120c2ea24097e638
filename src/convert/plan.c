/*
 * Planning: settings → what is at the destination → scan → assemble → layout → units. The cheap refusals come first, so that a
 * wrong option or a store of another layout costs no scan.
 */
#include "convert/plan.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/rekey.h"
#include "convert/report.h"
#include "cube/array_attributes.h"
#include "cube/many.h"
#include "sys/clock.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sq_plan_say(struct squall_convert_plan *plan, enum squall_convert_event kind, const char *format, ...)
{
    char line[1024];
    va_list args;
    if (!plan->events.message)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sq_text_make_visible(line);
    sq_mutex_lock(&plan->say_lock);
    plan->events.message(plan->events.user, kind, line);
    sq_mutex_unlock(&plan->say_lock);
}

/* ---- the destination ------------------------------------------------------------------------------------------------------------- */

char *sq_plan_beside(const char *store, const char *what)
{
    const char *name = sq_path_name(store);
    return sq_format("%.*s.%s.squall-%s", (int)(name - store), store, name, what);
}

static int wait_for_holder(struct squall_convert_plan *plan, const char *records, struct squall_error *err)
{
    struct squall_error holder = SQUALL_ERROR_INIT;
    int status = sq_lock_look(records, plan->settings.part, NULL, &holder);
    if (status != SQUALL_EREFUSED || !plan->settings.lock_timeout_s) {
        if (status && err)
            *err = holder;
        return status;
    }
    sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%s; waiting for it, %u s at most", holder.message, plan->settings.lock_timeout_s);
    return sq_lock_look(records, plan->settings.part, &plan->patience, err);
}

/* --overwrite may replace a store whose records are damaged: it takes nothing from them. */
static int read_state(struct squall_convert_plan *plan, struct squall_error *err)
{
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = sq_store_state_read(plan->settings.destination, &plan->state, &failure);
    if (status == SQUALL_ECORRUPT && plan->settings.overwrite) {
        sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%s", failure.message);
        plan->state.exists = true;
        return 0;
    }
    return status ? sq_error(err, status, "%s", failure.message) : 0;
}

/* --overwrite: only a store of squall's is replaced, by one that begins from nothing. */
static int look_at_destination(struct squall_convert_plan *plan, struct squall_error *err)
{
    const char *destination = plan->settings.destination;
    SQ_CLEANUP_FREE char *records = sq_records_folder(destination);
    if (!records)
        return sq_error_memory(err, strlen(destination));
    int status = wait_for_holder(plan, records, err); /* before anything is read that a holder changes */
    if (status)
        return status == SQUALL_ECANCELLED ? status : sq_error_within(err, status, "%s", destination);
    SQ_TRY(sq_rekey_recover(destination, err));
    SQ_TRY(read_state(plan, err));
    if (!plan->settings.overwrite || !plan->state.exists) {
        plan->target = sq_strdup(destination);
        return plan->target ? 0 : sq_error_memory(err, strlen(destination));
    }
    sq_store_state_done(&plan->state);
    SQ_TRY(sq_path_resolve(destination, &plan->replaced, err));
    plan->target = sq_plan_beside(plan->replaced, "new");
    plan->state.records_folder = plan->target ? sq_records_folder(plan->target) : NULL;
    return plan->state.records_folder ? 0 : sq_error_memory(err, strlen(destination));
}

/* The settings alone, before any source is read. */
static int compare_settings(const struct squall_convert_plan *plan, struct squall_error *err)
{
    struct sq_json *asked = NULL;
    if (!plan->state.exists)
        return 0;
    SQ_TRY(sq_layout_describe_settings(&plan->settings, &asked, err));
    int status = sq_layout_compare(plan->state.layout, asked, false, err);
    sq_json_free(asked);
    return status;
}

/* ---- scan and assemble ----------------------------------------------------------------------------------------------------------- */

static int scan_fields(struct squall_convert_plan *plan, struct squall_error *err)
{
    SQ_TRY(sq_grib_index_build((const char *const *)plan->sources.paths, plan->sources.count, plan->ctx->threads, plan->ctx->cancelled,
                               plan->ctx->user, &plan->index, err));
    sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%zu fields in %zu files", plan->index.field_count, plan->index.file_count);
    return sq_plan_damage(plan, err);
}

static int scan(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_settings *s = &plan->settings;
    SQ_TRY(sq_source_list_make(s->sources, s->source_count, s->destination, &plan->sources, err));
    if (plan->sources.passed_over)
        sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%zu files and folders passed over (hidden, Zarr stores, side files)",
                    plan->sources.passed_over);
    SQ_TRY(sq_plan_open_arrays(plan, err));
    if (plan->arrays.dataset)
        sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%zu arrays in %zu files", plan->arrays.dataset->array_count, plan->sources.count);
    else
        SQ_TRY(scan_fields(plan, err));
    for (size_t i = 0; i < plan->inputs.count && !plan->arrays.dataset; i++) {
        const struct sq_input *input = &plan->inputs.items[i];
        sq_plan_say(plan, input->known ? SQUALL_CONVERT_NOTE : SQUALL_CONVERT_WARNING, "%s: %s", sq_plan_file_path(plan, input->file),
                    input->what);
    }
    return 0;
}

/* The store's schema takes new variables before anything is placed. */
static int grow_schema(struct squall_convert_plan *plan, struct sq_cube_options *options, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    struct sq_json *grown = NULL;
    if (plan->settings.schema != SQ_SCHEMA_GROW || !options->schema)
        return 0;
    SQ_TRY(sq_cube_schema_grow(&plan->index, options, &grown, &names, err));
    sq_json_free(plan->state.schema);
    plan->state.schema = grown;
    options->schema = grown;
    options->grow = !options->stack;
    if (names.length)
        sq_plan_say(plan, SQUALL_CONVERT_NOTE, "new in the store: %s", sq_text_string(&names));
    return 0;
}

static int assemble_fields(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_settings *s = &plan->settings;
    struct sq_cube_options options = {
        .select = s->select,
        .select_count = s->select_count,
        .rename = s->rename,
        .rename_count = s->rename_count,
        .every_s = s->every_s,
        .stack = s->stack,
        .stack_name = s->stack_name,
        .y_order = s->y_order,
        .coarsen_y = s->coarsen_y,
        .coarsen_x = s->coarsen_x,
        .schema = plan->state.schema,
        .prepend = s->prepend ? plan->state.init_chunk : 0,
        .respace = plan->state.init_chunk == 1 && s->part.count == 0, /* else chunks would not move as wholes; or parts of others' */
    };
    SQ_TRY(grow_schema(plan, &options, err));
    return sq_cube_build(&plan->index, &options, &plan->cube, err);
}

/* Options that say something of GRIB fields only. */
static int refuse_field_options(const struct sq_settings *s, struct squall_error *err)
{
    const struct {
        bool given;
        const char *name;
    } options[] = {{s->stack, "--stack"},
                   {s->every_s != 0, "--every"},
                   {s->coarsen_y > 1 || s->coarsen_x > 1, "--coarsen"},
                   {s->y_order != SQ_Y_AS_IT_IS, "--y-order"},
                   {s->prepend, "--prepend"},
                   {s->schema == SQ_SCHEMA_GROW, "--schema grow"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given)
            return sq_error(err, SQUALL_EINVAL, "%s is for GRIB sources; these are HDF5, NetCDF or Zarr", options[i].name);
    return 0;
}

static int assemble_arrays(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_settings *s = &plan->settings;
    const struct sq_array_sources *a = &plan->arrays;
    const char *dim = sq_many_dimension(a->dataset);
    const struct sq_array_cube_options options = {
        .sources = a->dataset,
        .paths = (const char *const *)plan->sources.paths,
        .spans = a->spans,
        .span_count = a->span_count,
        .first_file = a->first_file,
        .strict = s->strict,
        .append_dim = dim ? dim : s->append_dim,
        .group = a->group,
        .select = s->select,
        .select_count = s->select_count,
        .rename = s->rename,
        .rename_count = s->rename_count,
        .stored = a->stored,
        .schema = a->stored ? plan->state.schema : NULL,
        .stored_count = plan->state.init_count,
        .stored_chunk = plan->state.init_chunk,
    };
    SQ_TRY(refuse_field_options(s, err));
    for (size_t i = 0; i < a->dataset->problem_count; i++)
        sq_plan_say(plan, SQUALL_CONVERT_WARNING, "%s", a->dataset->problems[i]);
    return sq_array_cube_build(&options, &plan->cube, err);
}

static int refuse_arrays(const struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_settings *s = &plan->settings;
    const char *kind = sq_json_string(sq_json_get(plan->state.schema, "kind"));
    if (kind && !strcmp(kind, "arrays"))
        return sq_error(err, SQUALL_EREFUSED, "the store was made of HDF5, NetCDF or Zarr arrays; convert GRIB into another one");
    const bool grows_as_grib = s->append_dim && !strcmp(s->append_dim, "init_time");
    const char *option = s->append_dim && !grows_as_grib ? "--append-dim"
                         : s->concat_dim                 ? "--concat-dim"
                         : s->drift                      ? "--drift"
                         : s->group                      ? "--group"
                                                         : NULL;
    if (!option)
        return 0;
    return sq_error(err, SQUALL_EINVAL, "%s is for HDF5, NetCDF and Zarr sources; those of GRIB grow along init_time", option);
}

/* Nothing of arrays is stored yet, though an earlier run may have left a plan of its own. */
static bool begins_anew(const struct squall_convert_plan *plan)
{
    return plan->arrays.dataset && !plan->arrays.stored;
}

/* What is stored gets other numbers: the records as they will be. */
static void move_records(struct squall_convert_plan *plan)
{
    const struct sq_move *move = &plan->cube.move;
    plan->unit_move = (struct sq_move){1, 0};
    if (plan->cube.of_arrays || !plan->state.exists)
        return;
    plan->unit_move = (struct sq_move){move->stretch, move->by / plan->state.init_chunk};
    sq_store_state_move(&plan->state, &plan->unit_move);
}

/* --schema strict */
static int refuse_outside(const struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_cube *cube = &plan->cube;
    for (size_t i = 0; i < cube->ignored_count && plan->settings.schema == SQ_SCHEMA_STRICT; i++) {
        const struct sq_cube_ignored *out = &cube->ignored[i];
        if (out->reason != SQ_CUBE_OUTSIDE_SCHEMA && out->reason != SQ_CUBE_OUTSIDE_VARIABLES)
            continue;
        SQ_CLEANUP_TEXT struct sq_text what = SQ_TEXT_INIT;
        if (cube->of_arrays)
            sq_text_add(&what, out->what ? out->what : "");
        else
            SQ_TRY(sq_cube_field_text(&plan->index, out->field, &what, err));
        return sq_error(err, SQUALL_EREFUSED,
                        "%s: the store was made without %s (--schema strict); nothing was written. --schema ignore leaves it out%s",
                        sq_plan_file_path(plan, sq_plan_file_of(plan, out->field)), sq_text_string(&what),
                        cube->of_arrays ? "" : ", grow adds what is new");
    }
    return 0;
}

static int assemble(struct squall_convert_plan *plan, struct squall_error *err)
{
    if (!plan->arrays.dataset)
        SQ_TRY(refuse_arrays(plan, err));
    SQ_TRY(plan->arrays.dataset ? assemble_arrays(plan, err) : assemble_fields(plan, err));
    SQ_TRY(refuse_outside(plan, err));
    move_records(plan);
    const bool begins = begins_anew(plan);
    if (!begins && plan->cube.init_count < plan->state.init_count)
        return sq_error(err, SQUALL_EREFUSED, "the store has %llu init times, and the sources would make it %zu",
                        (unsigned long long)plan->state.init_count, plan->cube.init_count);
    size_t damage = plan->inputs.count;
    bool news = false;
    SQ_TRY(sq_plan_ignored(plan, err));
    for (size_t i = damage; i < plan->inputs.count; i++)
        news = news || !plan->inputs.items[i].known;
    for (size_t i = damage; i < plan->inputs.count && plan->cube.of_arrays; i++) /* by the warnings that follow */
        plan->inputs.items[i].said = plan->events.message && (news || begins);
    SQ_TRY(sq_plan_array_damage(plan, err));
    for (size_t i = 0; i < plan->cube.warning_count; i++)
        sq_plan_say(plan, news || begins ? SQUALL_CONVERT_WARNING : SQUALL_CONVERT_NOTE, "%s", plan->cube.warnings[i]);
    for (size_t i = 0; i < plan->cube.note_count && !plan->cube.of_arrays; i++) /* those of arrays are told as soon as they are open */
        sq_plan_say(plan, SQUALL_CONVERT_NOTE, "%s", plan->cube.notes[i]);
    return 0;
}

static int lay_out(struct squall_convert_plan *plan, struct squall_error *err)
{
    const bool begins = begins_anew(plan);
    SQ_TRY(sq_layout_make(&plan->settings, &plan->cube, begins ? 0 : plan->state.init_chunk, &plan->layout, err));
    if (plan->state.exists && !begins)
        SQ_TRY(sq_layout_compare(plan->state.layout, plan->layout.description, plan->settings.schema == SQ_SCHEMA_GROW, err));
    SQ_TRY(sq_layout_renumber(&plan->layout, &plan->state.records, err));
    for (size_t i = 0; i < plan->layout.array_count && plan->cube.of_arrays; i++) {
        struct sq_cube_variable *v = &plan->cube.variables[i];
        if (plan->layout.arrays[i].type == v->source_type)
            continue;
        sq_array_drop_missing(v->attributes); /* what is cast says NaN where something is missing */
        if (sq_type_is_integer(v->source_type))
            sq_array_drop_packing(v->attributes);
    }
    plan->setting = (struct sq_unit_setting){
        .ctx = plan->ctx,
        .index = &plan->index,
        .cube = &plan->cube,
        .layout = &plan->layout,
        .overflow = plan->settings.overflow,
        .coarsen_y = plan->settings.coarsen_y,
        .coarsen_x = plan->settings.coarsen_x,
    };
    return 0;
}

/* A message of several fields is read once. */
static int add_up_bytes(struct squall_convert_plan *plan, struct squall_error *err)
{
    const struct sq_grib_field *fields = plan->index.fields, *last = NULL;
    SQ_CLEANUP_FREE bool *wanted = sq_alloc_zero(plan->index.field_count, sizeof *wanted);
    if (!wanted)
        return sq_error_memory(err, plan->index.field_count * sizeof *wanted);
    for (size_t i = 0; i < plan->unit_count; i++) {
        const struct sq_planned_unit *unit = &plan->units[i];
        if (!sq_is_to_do(unit))
            continue;
        for (size_t k = 0; k < unit->place_count; k++)
            wanted[plan->cube.places[unit->first_place + k].field] = true;
    }
    for (size_t i = 0; i < plan->index.field_count; i++) {
        if (!wanted[i])
            continue;
        if (!last || last->file != fields[i].file || last->offset != fields[i].offset)
            plan->bytes_in += fields[i].size_bytes;
        last = &fields[i];
    }
    return 0;
}

static void say_unit(struct squall_convert_plan *plan, const struct sq_planned_unit *unit)
{
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    sq_report_unit_name(plan, unit->unit, &name);
    sq_plan_say(plan, SQUALL_CONVERT_WARNING, "%s: %s", sq_text_string(&name), unit->why);
}

/* The sources are known. */
static int plan_units(struct squall_convert_plan *plan, struct squall_error *err)
{
    SQ_TRY(assemble(plan, err));
    SQ_TRY(lay_out(plan, err));
    SQ_TRY(sq_plan_units(plan, err));
    for (size_t i = 0; i < plan->unit_count; i++)
        if (plan->units[i].todo == SQ_TODO_KEEP || plan->units[i].todo == SQ_TODO_STRICT)
            say_unit(plan, &plan->units[i]);
    if (plan->arrays.dataset)
        return sq_plan_array_units(plan, err);
    SQ_TRY(add_up_bytes(plan, err));
    SQ_TRY(sq_plan_overflow(plan, err));
    return sq_plan_memory(plan, err);
}

static int make_plan(struct squall_convert_plan *plan, const struct squall_convert_options *options, struct squall_error *err)
{
    SQ_TRY(sq_settings_parse(options, &plan->settings, err));
    plan->patience = (struct sq_patience){plan->ctx, sq_clock_s() + plan->settings.lock_timeout_s};
    SQ_TRY(look_at_destination(plan, err));
    SQ_TRY(compare_settings(plan, err));
    SQ_TRY(scan(plan, err));
    return plan_units(plan, err);
}

/* All that follows from the destination. */
static void forget(struct squall_convert_plan *plan)
{
    for (size_t i = 0; i < plan->unit_count; i++) {
        sq_free(plan->units[i].why);
        sq_free(plan->units[i].damage);
    }
    sq_free(plan->units);
    sq_free(plan->outlooks);
    sq_free(plan->bricks);
    plan->units = NULL;
    plan->outlooks = NULL;
    plan->bricks = NULL;
    plan->unit_count = 0;
    plan->bytes_in = plan->bytes_out = plan->unit_bytes = plan->peak_bytes = plan->batch_units = 0;
    sq_input_list_done(&plan->inputs);
    sq_layout_done(&plan->layout);
    sq_cube_done(&plan->cube);
    plan->cube = (struct sq_cube){0};
    sq_array_sources_done(&plan->arrays);
    sq_store_state_done(&plan->state);
}

int sq_plan_again(struct squall_convert_plan *plan, struct squall_error *err)
{
    void (*const message)(void *, enum squall_convert_event, const char *) = plan->events.message;
    const bool of_arrays = plan->arrays.dataset != NULL;
    forget(plan);
    SQ_TRY(sq_store_state_read(plan->target, &plan->state, err));
    SQ_TRY(compare_settings(plan, err));
    plan->events.message = NULL; /* all was told the first time */
    int status = of_arrays ? sq_plan_open_arrays(plan, err) : sq_plan_damage(plan, err);
    if (!status)
        status = plan_units(plan, err);
    plan->events.message = message;
    return status;
}

int squall_convert_plan_new(squall_context *ctx, const struct squall_convert_options *options, const struct squall_convert_events *events,
                            squall_convert_plan **ret, struct squall_error *err)
{
    struct squall_convert_plan *plan = sq_alloc_zero(1, sizeof *plan);
    if (!plan)
        return sq_error_memory(err, sizeof *plan);
    plan->ctx = ctx;
    sq_mutex_init(&plan->say_lock);
    if (events)
        plan->events = *events;
    int status = make_plan(plan, options, err);
    if (status) {
        squall_convert_plan_free(plan);
        return status;
    }
    *ret = plan;
    return 0;
}

void squall_convert_plan_free(squall_convert_plan *plan)
{
    if (!plan)
        return;
    forget(plan);
    sq_grib_index_done(&plan->index);
    sq_source_list_done(&plan->sources);
    sq_settings_done(&plan->settings);
    sq_free(plan->target);
    sq_free(plan->replaced);
    sq_mutex_done(&plan->say_lock);
    sq_free(plan);
}
