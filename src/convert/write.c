/*
 * See write.h. The threads decode a unit, then encode it; publishing happens beside them.
 */
#include "convert/write.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/report.h"
#include "store/zarr_writer.h"
#include "sys/pool.h"
#include <stdlib.h>
#include <string.h>

/* ---- records --------------------------------------------------------------------------------------------------------------------- */

/* Moves a set into the arena: records live until the run ends. */
static int keep_ranges(struct sq_arena *arena, struct sq_ranges *set, struct squall_error *err)
{
    size_t bytes = set->count * sizeof *set->items;
    struct sq_range *items = bytes ? sq_arena_copy(arena, set->items, bytes) : NULL;
    if (bytes && !items)
        return sq_error_memory(err, bytes);
    size_t count = set->count;
    sq_ranges_done(set);
    *set = (struct sq_ranges){.items = items, .count = count};
    return 0;
}

static bool is_bad(uint8_t state)
{
    return state == SQ_SLAB_BAD || state == SQ_SLAB_KEPT;
}

static int ranges_where(const uint8_t *slabs, uint64_t count, bool (*is)(uint8_t state), struct sq_arena *arena, struct sq_ranges *ret,
                        struct squall_error *err)
{
    struct sq_ranges set = {0};
    int status = 0;
    for (uint64_t s = 0; s < count && !status; s++)
        if (is(slabs[s]))
            status = sq_ranges_add(&set, s, err);
    if (!status)
        status = keep_ranges(arena, &set, err);
    if (status)
        sq_ranges_done(&set);
    else
        *ret = set;
    return status;
}

static int make_record_arrays(struct sq_run *run, struct sq_record_unit *record, struct squall_error *err)
{
    const struct sq_layout *layout = &run->plan->layout;
    record->array_count = layout->array_count;
    record->arrays = sq_arena_alloc(run->arena, (layout->array_count + 1) * sizeof *record->arrays);
    record->field_counts = sq_arena_alloc(run->arena, layout->init_chunk * sizeof *record->field_counts);
    if (!record->arrays || !record->field_counts)
        return sq_error_memory(err, layout->array_count * sizeof *record->arrays);
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_layout_array *a = &layout->arrays[i];
        struct sq_record_array *r = &record->arrays[i];
        r->name = a->name;
        r->length_count = a->outer_rank;
        if (!(r->lengths = sq_arena_copy(run->arena, a->shape + 1, a->outer_rank * sizeof *r->lengths)))
            return sq_error_memory(err, a->outer_rank * sizeof *r->lengths);
        r->chunk_count = a->chunks_per_unit;
        if (!(r->chunks = sq_arena_alloc(run->arena, (r->chunk_count + 1) * sizeof *r->chunks)))
            return sq_error_memory(err, r->chunk_count * sizeof *r->chunks);
    }
    return 0;
}

/* Files whose fields were carried over are known again, too; of one that was replaced, the new one. */
static void keep_files(struct sq_record_unit *record, const struct sq_record_unit *old)
{
    const size_t count = record->file_count;
    for (size_t i = 0; i < old->file_count; i++) {
        bool replaced = false;
        for (size_t k = 0; k < count && !replaced; k++)
            replaced = !strcmp(record->files[k].name, old->files[i].name);
        if (!replaced)
            record->files[record->file_count++] = old->files[i];
    }
}

int sq_run_record_slabs(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_record_unit *record,
                        const uint8_t *const *slabs_of, struct squall_error *err)
{
    const struct sq_layout *layout = &run->plan->layout;
    uint64_t stored = 0, carried = 0;
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_layout_array *a = &layout->arrays[i];
        struct sq_record_array *r = &record->arrays[i];
        const uint8_t *slabs = slabs_of[i];
        uint64_t count = a->slabs_per_init * layout->init_chunk;
        SQ_TRY(ranges_where(slabs, count, sq_slab_has_values, run->arena, &r->stored, err));
        SQ_TRY(ranges_where(slabs, count, is_bad, run->arena, &r->bad, err));
        for (uint64_t s = 0; s < count; s++) {
            record->field_counts[s / a->slabs_per_init] += sq_slab_has_values(slabs[s]);
            stored += slabs[s] == SQ_SLAB_STORED;
            carried += sq_slab_is_old(slabs[s]);
        }
    }
    run->totals.fields_written += stored;
    run->totals.fields_carried += carried;
    if (carried)
        keep_files(record, planned->record);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int record_files(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_record_unit *record, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    size_t count = planned->place_count;
    SQ_CLEANUP_FREE uint32_t *files = sq_alloc(count + 1, sizeof *files);
    if (!files)
        return sq_error_memory(err, count * sizeof *files);
    for (size_t i = 0; i < count; i++)
        files[i] = sq_plan_file_of(plan, plan->cube.places[planned->first_place + i].field);
    qsort(files, count, sizeof *files, by_number);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || files[i] != files[i - 1])
            files[distinct++] = files[i];
    const size_t old = planned->record ? planned->record->file_count : 0; /* room for those that are kept */
    if (!(record->files = sq_arena_alloc(run->arena, (distinct + old + 1) * sizeof *record->files)))
        return sq_error_memory(err, distinct * sizeof *record->files);
    for (size_t i = 0; i < distinct; i++)
        record->files[record->file_count++] = sq_plan_record_file(plan, files[i]);
    return 0;
}

int sq_run_record(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_record_unit **ret, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    struct sq_record_unit *record = sq_arena_alloc(run->arena, sizeof *record);
    uint64_t left = plan->cube.init_count - planned->unit * plan->layout.init_chunk;
    if (!record)
        return sq_error_memory(err, sizeof *record);
    record->unit = planned->unit;
    record->valid = true;
    record->init_count = left < plan->layout.init_chunk ? left : plan->layout.init_chunk;
    SQ_TRY(record_files(run, planned, record, err));
    SQ_TRY(make_record_arrays(run, record, err));
    *ret = record;
    return 0;
}

/* ---- encode ---------------------------------------------------------------------------------------------------------------------- */

struct chunk {
    size_t array;
    uint64_t chunk;
};

struct encoding {
    struct sq_run *run;
    const struct sq_planned_unit *planned;
    struct sq_pending *pending;
    struct chunk *chunks;
    size_t count;
    unsigned threads; /* inside one chunk */
};

static int encode(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct encoding *e = user;
    struct sq_run *run = e->run;
    const struct chunk *c = &e->chunks[index];
    const struct sq_layout_array *a = &run->plan->layout.arrays[c->array];
    struct sq_slot *slot;
    size_t size;
    if (sq_cancelled(run->plan->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    SQ_TRY(sq_publisher_slot(run->publisher, &slot, err));
    int status = sq_codec_encode(a->codecs, run->scratch[worker], e->threads, sq_unit_chunk(run->unit, c->array, c->chunk), a->chunk_bytes,
                                 slot->bytes, slot->capacity, &size, err);
    if (status) {
        sq_publisher_return(run->publisher, slot);
        return sq_error_within(err, status, "%s", a->name);
    }
    sq_publisher_put(run->publisher, e->pending, c->array, c->chunk, slot, size);
    return 0;
}

int sq_run_remove_chunk(const struct sq_run *run, const struct sq_planned_unit *planned, const struct sq_layout_array *a, uint64_t chunk,
                        struct squall_error *err)
{
    uint64_t index[SQ_LAYOUT_RANK_MAX];
    if (!run->plan->state.exists || planned->record)
        return 0;
    sq_layout_chunk_index(a, planned->unit, chunk, index);
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(sq_plan_store(run->plan), a->name, a->rank, index);
    return path ? sq_file_remove(path, err) : sq_error_memory(err, strlen(a->name));
}

/* A unit that is stored already takes its place at once; so does one that is made in bands, since any of them may find that it is to be left. */
static bool is_staged(const struct squall_convert_plan *plan, const struct sq_planned_unit *planned)
{
    return planned->record || plan->band_count > 1;
}

static int list_chunks(struct encoding *e, struct squall_error *err)
{
    const struct sq_layout *layout = &e->run->plan->layout;
    size_t capacity = 0;
    for (size_t i = 0; i < layout->array_count; i++) {
        for (uint64_t k = 0; k < layout->arrays[i].chunks_per_unit; k++) {
            if (!sq_unit_chunk(e->run->unit, i, k)) {
                if (!is_staged(e->run->plan, e->planned))
                    SQ_TRY(sq_run_remove_chunk(e->run, e->planned, &layout->arrays[i], k, err));
                continue;
            }
            SQ_TRY(SQ_GROW(e->chunks, capacity, e->count + 1, err));
            e->chunks[e->count++] = (struct chunk){i, k};
        }
    }
    return 0;
}

static int encode_unit(struct sq_run *run, const struct sq_planned_unit *planned, struct sq_pending *pending, struct squall_error *err)
{
    struct encoding e = {.run = run, .planned = planned, .pending = pending};
    unsigned threads = run->plan->ctx->threads;
    int status = list_chunks(&e, err);
    e.threads = run->plan->spread_chunks ? 1 : threads;
    if (!status)
        status = sq_parallel(run->plan->spread_chunks ? threads : 1, e.count, encode, &e, err);
    sq_free(e.chunks);
    return status;
}

/* ---- a unit ---------------------------------------------------------------------------------------------------------------------- */

int sq_run_leave(struct sq_run *run, size_t which, const char *why, struct squall_error *err)
{
    run->failures[which] = sq_arena_strdup(run->arena, why);
    run->totals.units_failed++;
    SQ_CLEANUP_TEXT struct sq_text name = SQ_TEXT_INIT;
    sq_report_unit_name(run->plan, run->plan->units[which].unit, &name);
    sq_plan_say(run->plan, SQUALL_CONVERT_WARNING, "%s: %s", sq_text_string(&name), why);
    return run->failures[which] ? 0 : sq_error_memory(err, strlen(why));
}

/* Fields that could not be decoded: told and remembered. */
static int note_bad_fields(struct sq_run *run, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    const struct sq_unit_bad *bad;
    size_t count = sq_unit_bad(run->unit, &bad);
    for (size_t i = 0; i < count; i++) {
        const struct sq_grib_field *field = &plan->index.fields[bad[i].place->field];
        struct sq_input input = {.file = field->file, .is_bad = true};
        input.what = sq_format("at byte %llu: %s", (unsigned long long)field->offset, bad[i].message);
        SQ_TRY(sq_input_add(plan, input, err));
        sq_plan_say(plan, SQUALL_CONVERT_WARNING, "%s: %s", plan->index.files[field->file].path,
                    plan->inputs.items[plan->inputs.count - 1].what);
    }
    return 0;
}

int sq_run_note_damage(const struct sq_run *run, size_t which, const char *what, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    const struct sq_planned_unit *planned = &plan->units[which];
    SQ_TRY(sq_flags_clear(sq_plan_store(plan), plan->layout.flag_chunk, planned->unit * plan->layout.init_chunk,
                          (size_t)plan->layout.init_chunk, err));
    return sq_journal_add_invalid(run->journal, planned->unit, sq_within_store(plan->target, what), err);
}

int sq_run_leave_damaged(struct sq_run *run, size_t which, const char *what, struct squall_error *err)
{
    const struct sq_planned_unit *planned = &run->plan->units[which];
    if (planned->record->valid && !planned->damage) /* else it is noted */
        SQ_TRY(sq_run_note_damage(run, which, what, err));
    SQ_CLEANUP_TEXT struct sq_text gone = SQ_TEXT_INIT;
    sq_plan_files_gone(run->plan, planned->record, &gone);
    SQ_CLEANUP_FREE char *why =
        sq_format("damaged: %s; so what the sources no longer hold cannot be carried over, and the unit is left, its flags off%s%s", what,
                  gone.length ? ": to write it anew, give also " : "", sq_text_string(&gone));
    return why ? sq_run_leave(run, which, why, err) : sq_error_memory(err, gone.length);
}

int sq_run_withdraw(const struct sq_run *run, const struct sq_planned_unit *planned, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    if (!plan->state.exists || planned->record)
        return 0;
    return sq_flags_clear(sq_plan_store(plan), plan->layout.flag_chunk, planned->unit * plan->layout.init_chunk,
                          (size_t)plan->layout.init_chunk, err);
}

/* What a unit is on its way. */
struct making {
    size_t which;
    struct sq_unit_fields fields;
    struct sq_carry carry;
    struct sq_record_unit *record;
    struct sq_pending *pending; /* NULL: nothing of it is encoded yet */
};

static int begin_unit(struct sq_run *run, struct making *m, struct squall_error *err)
{
    const struct sq_planned_unit *planned = &run->plan->units[m->which];
    const bool staged = is_staged(run->plan, planned);
    SQ_TRY(sq_run_record(run, planned, &m->record, err));
    if (!staged)
        SQ_TRY(sq_run_withdraw(run, planned, err));
    return sq_publisher_begin(run->publisher, m->record, staged, &m->pending, err);
}

/* Decode a band. *ret_left: it cannot be, or is not to be, and so the whole unit is left. */
static int load_band(struct sq_run *run, const struct making *m, bool last, bool *ret_left, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    struct squall_error failure = SQUALL_ERROR_INIT;
    const struct sq_unit_bad *bad;
    int status = sq_unit_load(run->unit, &m->fields, &failure);
    *ret_left = true;
    if (status == SQUALL_EIO)
        return sq_run_leave(run, m->which, failure.message, err);
    if (m->fields.carry && (status == SQUALL_ECORRUPT || status == SQUALL_ENOTFOUND))
        return sq_run_leave_damaged(run, m->which, failure.message, err);
    if (status) {
        if (err)
            *err = failure;
        return status;
    }
    sq_mutex_lock(&plan->say_lock);
    run->totals.bytes_in += sq_unit_bytes_read(run->unit);
    sq_mutex_unlock(&plan->say_lock);
    if (last)
        SQ_TRY(note_bad_fields(run, err));
    if (last && plan->settings.strict && sq_unit_bad(run->unit, &bad))
        return sq_run_leave(run, m->which, "has a field that cannot be decoded; left out (--strict)", err);
    *ret_left = false;
    return 0;
}

static int write_unit(struct sq_run *run, size_t which, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    const struct sq_planned_unit *planned = &plan->units[which];
    struct making m = {.which = which};
    m.fields = sq_plan_unit_fields(plan, planned, &m.carry);
    for (bool last = false, left = false; !last;) {
        uint64_t bytes;
        last = sq_unit_next_band(run->unit, &m.fields, plan->band_bytes, &bytes);
        SQ_TRY(load_band(run, &m, last, &left, err));
        if (left)
            return 0;
        if (!m.pending)
            SQ_TRY(begin_unit(run, &m, err));
        SQ_TRY(encode_unit(run, planned, m.pending, err));
    }
    for (size_t i = 0; i < plan->layout.array_count; i++)
        run->slabs[i] = sq_unit_slabs(run->unit, i);
    SQ_TRY(sq_run_record_slabs(run, planned, m.record, run->slabs, err));
    sq_publisher_seal(run->publisher, m.pending);
    run->records[which] = m.record;
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------------------------------------------- */

/* Under the publisher's lock. */
static void progress(void *user, uint64_t bytes, const struct sq_record_unit *complete)
{
    struct sq_run *run = user;
    struct squall_convert_plan *plan = run->plan;
    sq_mutex_lock(&plan->say_lock);
    run->totals.bytes_out += bytes;
    run->totals.units_done += complete != NULL;
    if (plan->events.progress)
        plan->events.progress(plan->events.user, run->totals.units_done, run->units_to_do, run->totals.bytes_in, run->totals.bytes_out);
    sq_mutex_unlock(&plan->say_lock);
}

static int start(struct sq_run *run, struct squall_error *err)
{
    struct squall_convert_plan *plan = run->plan;
    const struct sq_publisher_setting setting = {
        .store = {sq_plan_store(plan), plan->state.records_folder, &plan->layout, run->journal},
        .slot_count = plan->slot_count,
        .progress = progress,
        .user = run,
    };
    run->scratch = sq_alloc_zero(plan->ctx->threads, sizeof *run->scratch);
    if (!run->scratch)
        return sq_error_memory(err, plan->ctx->threads * sizeof *run->scratch);
    for (unsigned i = 0; i < plan->ctx->threads; i++)
        if (!(run->scratch[i] = sq_codec_scratch_new()))
            return sq_error_memory(err, sizeof(void *));
    if (!(run->slabs = sq_alloc(plan->layout.array_count + 1, sizeof *run->slabs)))
        return sq_error_memory(err, plan->layout.array_count * sizeof *run->slabs);
    if (!plan->arrays.dataset) {
        SQ_TRY(sq_unit_new(&plan->setting, &run->unit, err));
        SQ_TRY(sq_unit_reserve(run->unit, plan->unit_bytes, err));
    }
    return sq_publisher_start(&setting, &run->publisher, err);
}

static int write_all(struct sq_run *run, struct squall_error *err)
{
    const struct squall_convert_plan *plan = run->plan;
    size_t next = 0;
    for (size_t i = 0; i < plan->unit_count; i++) {
        if (!sq_is_to_do(&plan->units[i]))
            continue;
        for (next = i + 1; next < plan->unit_count && !sq_is_to_do(&plan->units[next]); next++)
            continue;
        if (next < plan->unit_count && plan->units[next].place_count)
            sq_unit_prefetch(&plan->setting, &plan->cube.places[plan->units[next].first_place], plan->units[next].place_count);
        SQ_TRY(write_unit(run, i, err));
    }
    return 0;
}

int sq_run_units(struct sq_run *run, struct squall_error *err)
{
    int status = start(run, err);
    progress(run, 0, NULL);
    if (!status)
        status = run->plan->arrays.dataset ? sq_run_array_units(run, err) : write_all(run, err);
    int finished = sq_publisher_finish(run->publisher, status ? NULL : err);
    run->publisher = NULL;
    sq_unit_free(run->unit);
    run->unit = NULL;
    sq_free(run->slabs);
    run->slabs = NULL;
    for (unsigned i = 0; run->scratch && i < run->plan->ctx->threads; i++)
        sq_codec_scratch_free(run->scratch[i]);
    sq_free(run->scratch);
    run->scratch = NULL;
    return status ? status : finished;
}
