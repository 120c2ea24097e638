/*
 * What there is to do, unit by unit: the sources' fields and files against the store's records. A unit is done again where the
 * sources hold a field or a file that its record does not; a file that is only gone is no reason. And never may a redo turn a
 * stored value into fill: what the sources no longer hold is carried over.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "convert/plan.h"
#include "store/zarr_writer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Slabs of each array for which the sources hold a field. */
struct wanted {
    struct sq_ranges *arrays;
    size_t array_count;
};

static void wanted_done(struct wanted *w)
{
    for (size_t i = 0; i < w->array_count; i++)
        sq_ranges_done(&w->arrays[i]);
    sq_free(w->arrays);
}

static int find_wanted(const struct squall_convert_plan *plan, const struct sq_planned_unit *unit, struct wanted *w,
                       struct squall_error *err)
{
    w->arrays = sq_alloc_zero(plan->layout.array_count + 1, sizeof *w->arrays);
    if (!w->arrays)
        return sq_error_memory(err, plan->layout.array_count * sizeof *w->arrays);
    w->array_count = plan->layout.array_count;
    for (size_t i = 0; i < unit->place_count; i++) {
        const struct sq_cube_place *p = &plan->cube.places[unit->first_place + i];
        uint64_t within = p->init % plan->layout.init_chunk;
        SQ_TRY(sq_ranges_add(&w->arrays[p->variable], within * plan->layout.arrays[p->variable].slabs_per_init + p->slab, err));
    }
    return 0;
}

static uint64_t slab_count(const struct sq_layout *layout, size_t array)
{
    return layout->arrays[array].slabs_per_init * layout->init_chunk;
}

/*
 * Of the fields that the record has stored, how many `w` lacks. A record that does not fit may tell of more by its field counts than
 * by its arrays, and of some that there is no place for.
 */
static uint64_t count_lost(const struct sq_record_unit *record, const struct sq_layout *layout, const struct wanted *w)
{
    uint64_t lost = 0, told = 0, held = 0, places = 0;
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_record_array *stored = sq_record_array_of(record, layout->arrays[i].name);
        held += sq_ranges_beyond(&w->arrays[i], 0);
        places += slab_count(layout, i);
        if (stored)
            lost += sq_ranges_lacking(&stored->stored, &w->arrays[i], NULL) - sq_ranges_beyond(&stored->stored, slab_count(layout, i));
    }
    for (size_t i = 0; i < record->init_count; i++)
        told += record->field_counts[i];
    told = told < places ? told : places;
    return told > held && told - held > lost ? told - held : lost;
}

static uint64_t count_new(const struct sq_record_unit *record, const struct sq_layout *layout, const struct wanted *w)
{
    uint64_t fresh = 0;
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_record_array *stored = sq_record_array_of(record, layout->arrays[i].name);
        fresh += sq_ranges_lacking(&w->arrays[i], stored ? &stored->stored : NULL, stored ? &stored->bad : NULL);
    }
    return fresh;
}

/* The first source file of the unit that its record does not know; NULL: none. */
static const char *new_file(const struct squall_convert_plan *plan, const struct sq_planned_unit *unit)
{
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < unit->place_count; i++) {
        uint32_t file = sq_plan_file_of(plan, plan->cube.places[unit->first_place + i].field);
        struct sq_record_file as_recorded = sq_plan_record_file(plan, file);
        if (file != last && !sq_record_has_file(unit->record, &as_recorded))
            return sq_plan_file_path(plan, file);
        last = file;
    }
    return NULL;
}

/* *ret_path: the first chunk whose file is not there or has another length; NULL: none. The caller's. */
static int missing_chunk(const struct squall_convert_plan *plan, const struct sq_record_unit *record, char **ret_path,
                         struct squall_error *err)
{
    for (size_t i = 0; i < plan->layout.array_count; i++) {
        const struct sq_layout_array *a = &plan->layout.arrays[i];
        const struct sq_record_array *stored = sq_record_array_of(record, a->name);
        for (size_t k = 0; stored && k < stored->chunk_count; k++) {
            uint64_t index[SQ_LAYOUT_RANK_MAX];
            struct sq_file_identity identity;
            enum sq_file_kind kind;
            if (stored->chunks[k].size_bytes == 0)
                continue;
            uint64_t stored_as;
            if (!sq_move_back(&plan->unit_move, record->unit, &stored_as))
                return 0;
            sq_layout_chunk_index(a, stored_as, k, index);
            SQ_CLEANUP_FREE char *path = sq_store_chunk_path(sq_plan_store(plan), a->name, a->rank, index);
            if (!path)
                return sq_error_memory(err, strlen(plan->target));
            SQ_TRY(sq_file_stat(path, &kind, &identity, err));
            if (kind == SQ_FILE_REGULAR && identity.size_bytes == stored->chunks[k].size_bytes)
                continue;
            *ret_path = path;
            path = NULL;
            return 0;
        }
    }
    return 0;
}

static bool has_bad(const struct sq_record_unit *record)
{
    for (size_t i = 0; i < record->array_count; i++)
        if (record->arrays[i].bad.count)
            return true;
    return false;
}

/* Why a recorded unit is to be done again; *ret_why NULL: it is not. Sets unit->damage. */
static int why_again(const struct squall_convert_plan *plan, struct sq_planned_unit *unit, const struct wanted *w, bool fits,
                     char **ret_why, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *missing = NULL;
    const char *file = new_file(plan, unit);
    uint64_t fresh = count_new(unit->record, &plan->layout, w);
    if (fits && !unit->record->is_staged) /* the run looks for the chunks of one that is, before all else */
        SQ_TRY(missing_chunk(plan, unit->record, &missing, err));
    *ret_why = NULL;
    if (missing && unit->record->valid && !(unit->damage = sq_format("%s is missing or has another length", missing)))
        return sq_error_memory(err, strlen(missing));
    const bool retry = fits && plan->arrays.chunks_unseen && has_bad(unit->record);
    if (unit->record->damage)
        *ret_why = sq_format("it is damaged: %s", unit->record->damage);
    else if (!unit->record->valid && !unit->record->is_staged)
        *ret_why = sq_strdup("an earlier run was interrupted while it replaced the data");
    else if (!fits)
        *ret_why = sq_strdup("its record does not fit the layout");
    else if (file)
        *ret_why = sq_format("%s is new or has changed", file);
    else if (fresh)
        *ret_why = sq_format("%llu fields are new", (unsigned long long)fresh);
    else if (missing)
        *ret_why = sq_format("%s is missing or has another length", missing);
    else if (retry)
        *ret_why = sq_strdup("a part of it could not be read last time");
    else
        return 0;
    return *ret_why ? 0 : sq_error_memory(err, strlen(plan->target));
}

static bool is_gone(const struct squall_convert_plan *plan, const char *name)
{
    for (size_t i = 0; i < sq_plan_file_count(plan); i++)
        if (!strcmp(sq_path_name(sq_plan_file_path(plan, (uint32_t)i)), name))
            return false;
    return true;
}

void sq_plan_files_gone(const struct squall_convert_plan *plan, const struct sq_record_unit *record, struct sq_text *out)
{
    enum { SHOWN = 3 };
    size_t gone = 0;
    for (size_t i = 0; i < record->file_count; i++) {
        if (!is_gone(plan, record->files[i].name) || ++gone > SHOWN)
            continue;
        sq_text_add(out, gone > 1 ? ", " : "");
        sq_text_add_visible(out, record->files[i].name);
    }
    if (gone > SHOWN)
        sq_text_printf(out, " and %zu more", gone - SHOWN);
}

/* The whole reason, and what becomes of the fields that the sources lack. */
static int tell_why(const struct squall_convert_plan *plan, struct sq_planned_unit *unit, const char *why, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text gone = SQ_TEXT_INIT;
    if (unit->carried == 0) {
        unit->why = sq_strdup(why);
    } else if (unit->todo == SQ_TODO_REDO) {
        unit->why = sq_format("%s; %llu of the fields that are stored, which the sources no longer hold, are carried over", why,
                              (unsigned long long)unit->carried);
    } else {
        sq_plan_files_gone(plan, unit->record, &gone);
        unit->why = sq_format("%s, but the sources no longer hold %llu of the fields that are stored%s%s; left as it is", why,
                              (unsigned long long)unit->carried, gone.length ? ": give them together with " : "", sq_text_string(&gone));
    }
    return unit->why ? 0 : sq_error_memory(err, strlen(why));
}

/* A recorded unit against what the sources hold. */
static int weigh(const struct squall_convert_plan *plan, struct sq_planned_unit *unit, struct squall_error *err)
{
    __attribute__((cleanup(wanted_done))) struct wanted w = {0};
    SQ_CLEANUP_FREE char *why = NULL;
    const bool fits = sq_layout_fits(plan->layout.arrays, plan->layout.array_count, plan->layout.init_chunk, unit->record);
    SQ_TRY(find_wanted(plan, unit, &w, err));
    SQ_TRY(why_again(plan, unit, &w, fits, &why, err));
    unit->todo = SQ_TODO_NOTHING;
    if (!why)
        return 0;
    unit->carries = fits;
    unit->carried = count_lost(unit->record, &plan->layout, &w);
    unit->todo = unit->carried && !fits ? SQ_TODO_KEEP : SQ_TODO_REDO;
    return tell_why(plan, unit, why, err);
}

struct sq_unit_fields sq_plan_unit_fields(const struct squall_convert_plan *plan, const struct sq_planned_unit *unit,
                                          struct sq_carry *carry)
{
    *carry = (struct sq_carry){sq_plan_store(plan), &plan->layout, unit->record};
    return (struct sq_unit_fields){
        .places = plan->cube.places + unit->first_place,
        .place_count = unit->place_count,
        .carry = unit->carries ? carry : NULL,
    };
}

/* Is one of the unit's files damaged, or has it fields that were ignored? bad_files: of each file. */
static bool has_bad_input(const struct squall_convert_plan *plan, const struct sq_planned_unit *unit, const bool *bad_files)
{
    for (size_t i = 0; i < unit->place_count; i++)
        if (bad_files[sq_plan_file_of(plan, plan->cube.places[unit->first_place + i].field)])
            return true;
    return false;
}

/* first, last: the files of its flags. */
static int lost_record(int zarr_format, uint64_t first, uint64_t last, char **ret_why, struct squall_error *err)
{
    char to[32] = "";
    if (last > first)
        snprintf(to, sizeof to, " to %" PRIu64, last);
    *ret_why = sq_format("chunk_exists says that it is stored, but its record is lost; left as it is. To write it from the sources, "
                         "remove chunk_exists/%s%" PRIu64 "%s",
                         zarr_format == 2 ? "" : "c/", first, to);
    return *ret_why ? 0 : sq_error_memory(err, sizeof to);
}

/*
 * A unit without a record: it is new, unless a flag says that it is stored. A record is durable before its flags are, so such a
 * record has been lost, and with it what must not become fill.
 */
static int weigh_unrecorded(const struct squall_convert_plan *plan, struct sq_planned_unit *unit, struct squall_error *err)
{
    uint64_t stored_as;
    const bool is_there = sq_move_back(&plan->unit_move, unit->unit, &stored_as);
    const uint64_t first = stored_as * plan->layout.init_chunk;
    const uint64_t left = is_there && plan->state.init_count > first ? plan->state.init_count - first : 0;
    const size_t count = (size_t)(left < plan->layout.init_chunk ? left : plan->layout.init_chunk);
    SQ_CLEANUP_FREE struct sq_flag *flags = sq_alloc(count + 1, sizeof *flags);
    if (!flags)
        return sq_error_memory(err, count * sizeof *flags);
    unit->todo = SQ_TODO_WRITE;
    SQ_TRY(sq_flags_get(sq_plan_store(plan), plan->layout.flag_chunk, first, flags, count, err));
    for (size_t i = 0; i < count; i++) {
        if (!flags[i].exists)
            continue;
        unit->todo = SQ_TODO_KEEP;
        return lost_record(plan->layout.zarr_format, first / plan->layout.flag_chunk, (first + count - 1) / plan->layout.flag_chunk,
                           &unit->why, err);
    }
    return 0;
}

static int decide(const struct squall_convert_plan *plan, const bool *bad_files, struct sq_planned_unit *unit, struct squall_error *err)
{
    unit->record = sq_records_unit(&plan->state.records, unit->unit);
    if (!sq_plan_has_unit(plan, unit->unit)) {
        unit->todo = SQ_TODO_ANOTHER;
        return 0;
    }
    SQ_TRY(unit->record ? weigh(plan, unit, err) : weigh_unrecorded(plan, unit, err));
    if (!plan->settings.strict || !sq_is_to_do(unit) || !has_bad_input(plan, unit, bad_files))
        return 0;
    sq_free(unit->why);
    unit->todo = SQ_TODO_STRICT;
    unit->why = sq_strdup("has a bad or ignored input; not written (--strict)");
    return unit->why ? 0 : sq_error_memory(err, sizeof *unit);
}

/* Of the place, or past all units behind the last one. */
static uint64_t unit_of(const struct squall_convert_plan *plan, size_t place)
{
    return place < plan->cube.place_count ? plan->cube.places[place].init / plan->layout.init_chunk : UINT64_MAX;
}

/* From *record on, the first unit that is to be mended whether or not the sources hold anything of it; past all units: none. */
static uint64_t next_to_mend(const struct sq_records *records, size_t *record)
{
    while (*record < records->unit_count && (records->units[*record].valid || records->units[*record].is_staged))
        ++*record;
    return *record < records->unit_count ? records->units[*record].unit : UINT64_MAX;
}

int sq_plan_units(struct squall_convert_plan *plan, struct squall_error *err)
{
    size_t capacity = 0, record = 0;
    SQ_CLEANUP_FREE bool *bad_files = sq_alloc_zero(sq_plan_file_count(plan) + 1, sizeof *bad_files);
    if (!bad_files)
        return sq_error_memory(err, sq_plan_file_count(plan));
    for (size_t i = 0; i < plan->inputs.count; i++)
        bad_files[plan->inputs.items[i].file] = true;
    for (size_t first = 0;;) {
        const uint64_t with_fields = unit_of(plan, first), to_mend = next_to_mend(&plan->state.records, &record);
        struct sq_planned_unit unit = {.unit = with_fields < to_mend ? with_fields : to_mend, .first_place = first};
        if (unit.unit == UINT64_MAX)
            return 0;
        record += to_mend == unit.unit;
        while (unit_of(plan, first) == unit.unit)
            first++;
        unit.place_count = first - unit.first_place;
        SQ_TRY(SQ_GROW(plan->units, capacity, plan->unit_count + 1, err));
        plan->units[plan->unit_count++] = unit;
        SQ_TRY(decide(plan, bad_files, &plan->units[plan->unit_count - 1], err));
    }
}

int sq_plan_count_left(const struct squall_convert_plan *plan, const struct sq_records *now, uint64_t *ret, struct squall_error *err)
{
    *ret = 0;
    for (size_t i = 0; i < plan->unit_count; i++) {
        struct sq_planned_unit unit = plan->units[i];
        if (unit.todo != SQ_TODO_ANOTHER)
            continue;
        unit.todo = SQ_TODO_WRITE;
        unit.record = sq_records_unit(now, unit.unit);
        if (unit.record)
            SQ_TRY(weigh(plan, &unit, err));
        sq_free(unit.why);
        sq_free(unit.damage);
        *ret += (unit.record && unit.record->is_staged) || (sq_is_to_do(&unit) && !sq_records_left(now, unit.unit));
    }
    return 0;
}

bool sq_plan_loses(const struct sq_record_unit *record, const struct sq_layout *layout, const uint8_t *const *slabs_of)
{
    for (size_t i = 0; i < layout->array_count; i++) {
        const struct sq_record_array *stored = sq_record_array_of(record, layout->arrays[i].name);
        const uint8_t *slabs = slabs_of[i];
        const uint64_t count = slab_count(layout, i);
        for (size_t k = 0; stored && k < stored->stored.count; k++)
            for (uint64_t s = stored->stored.items[k].first; s <= stored->stored.items[k].last && s < count; s++)
                if (!sq_slab_has_values(slabs[s]))
                    return true;
    }
    return false;
}
