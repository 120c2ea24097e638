/*
 * Steps, members and levels of the open fields, and from them each field's place as one number: run × slabs of a run + slab, where the slabs of a run are
 * the variables' one after the other, each in C order of step, number, level. Fields of one place are duplicates.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Twelve digits are more than any level has, and hide that 44·10⁻² and 440·10⁻³ may differ in the last bit. */
static double rounded(double value)
{
    char text[40];
    if (isnan(value))
        return NAN;
    snprintf(text, sizeof text, "%.12g", value);
    double result = strtod(text, NULL);
    return result == 0 ? 0 : result; /* no negative zero */
}

int sq_cube_round_levels(struct sq_builder *b, struct squall_error *err)
{
    const struct sq_grib_index *index = b->index;
    b->product_levels = sq_alloc(index->product_count, sizeof *b->product_levels);
    if (!b->product_levels)
        return sq_error_memory(err, index->product_count * sizeof *b->product_levels);
    for (size_t i = 0; i < index->product_count; i++) {
        b->product_levels[i][0] = rounded(index->levels[i][0]);
        b->product_levels[i][1] = rounded(index->levels[i][1]);
    }
    return 0;
}

int sq_compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return a < b ? -1 : a > b;
}

int sq_compare_levels(const void *a, const void *b)
{
    const struct sq_level *x = a, *y = b;
    if (x->draft != y->draft)
        return x->draft < y->draft ? -1 : 1;
    int order = sq_compare_doubles(x->first, y->first);
    return order ? order : sq_compare_doubles(x->second, y->second);
}

static bool is_open(const struct sq_builder *b, size_t field)
{
    return b->fate[field] == SQ_FATE_OPEN && b->variable_of[field] != UINT32_MAX;
}

static int64_t bits_of(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? INT64_MAX : bits;
}

/* Levels are together by draft: first_level and level_count of each. */
void sq_cube_settle_levels(struct sq_builder *b)
{
    for (size_t i = 0; i < b->draft_count; i++)
        b->drafts[i].first_level = b->drafts[i].level_count = 0;
    for (size_t i = 0; i < b->level_count; i++) {
        struct sq_draft *draft = &b->drafts[b->levels[i].draft];
        if (draft->level_count++ == 0)
            draft->first_level = i;
    }
}

static int find_levels(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern table = sq_intern_make(3);
    size_t capacity = 0;
    sq_free(b->levels);
    b->levels = NULL;
    b->level_count = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (!is_open(b, i))
            continue;
        const double *pair = b->product_levels[b->index->fields[i].product];
        int64_t words[3] = {b->variable_of[i], bits_of(pair[0]), bits_of(pair[1])};
        uint32_t number;
        SQ_TRY(sq_intern_add(&table, words, &number, err));
        if (number < b->level_count)
            continue;
        SQ_TRY(SQ_GROW(b->levels, capacity, table.count, err));
        b->levels[b->level_count++] = (struct sq_level){b->variable_of[i], pair[0], pair[1]};
    }
    if (b->level_count)
        qsort(b->levels, b->level_count, sizeof *b->levels, sq_compare_levels);
    sq_cube_settle_levels(b);
    return 0;
}

/* Levels that came to a store later lie behind the sorted ones. */
static uint32_t level_index(const struct sq_builder *b, const struct sq_draft *draft, const double pair[2])
{
    const struct sq_level wanted = {(uint32_t)(draft - b->drafts), pair[0], pair[1]};
    const struct sq_level *levels = b->levels + draft->first_level;
    const size_t sorted = draft->made[SQ_GROWS_LEVELS] ? draft->made[SQ_GROWS_LEVELS] : draft->level_count;
    const struct sq_level *found = sorted ? bsearch(&wanted, levels, sorted, sizeof wanted, sq_compare_levels) : NULL;
    for (size_t i = sorted; i < draft->level_count && !found; i++)
        found = sq_compare_levels(&wanted, &levels[i]) == 0 ? &levels[i] : NULL;
    return found ? (uint32_t)(found - levels) : UINT32_MAX;
}

static int find_times(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_INTERN struct sq_intern runs = sq_intern_make(1), steps = sq_intern_make(1), members = sq_intern_make(1);
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        uint32_t number;
        if (!is_open(b, i))
            continue;
        int64_t member = times->number;
        SQ_TRY(sq_intern_add(&runs, &times->reference_time_s, &number, err));
        SQ_TRY(sq_intern_add(&steps, &times->step_end_s, &number, err));
        if (b->groups[b->drafts[b->variable_of[i]].group].key.kind == SQ_KIND_ENSEMBLE)
            SQ_TRY(sq_intern_add(&members, &member, &number, err));
    }
    SQ_TRY(sq_axis_from(&b->runs, &runs, err));
    if (b->options->schema)
        return 0;
    SQ_TRY(sq_axis_from(&b->steps, &steps, err));
    SQ_TRY(sq_axis_from(&b->members, &members, err));
    b->has_members = b->members.count > 1;
    return 0;
}

/* How many slabs a variable has in a run, as SIZE_MAX where that is no number. */
uint64_t sq_cube_slab_count(const struct sq_builder *b, const struct sq_draft *draft)
{
    uint64_t count = b->steps.count;
    uint64_t members = draft->has_members ? b->members.count : 1, levels = draft->level_count ? draft->level_count : 1;
    return sq_mul_u64(count, members, &count) && sq_mul_u64(count, levels, &count) ? count : UINT64_MAX;
}

static int lay_slabs(struct sq_builder *b, struct squall_error *err)
{
    uint64_t total = 0, runs = b->init_count ? b->init_count : b->runs.count, all;
    for (size_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        draft->has_members = b->has_members && b->groups[draft->group].key.kind == SQ_KIND_ENSEMBLE;
        draft->slab_offset = total;
        uint64_t slabs = sq_draft_in_cube(draft) ? sq_cube_slab_count(b, draft) : 0;
        if (slabs > UINT32_MAX || !sq_add_u64(total, slabs, &total))
            return sq_error(err, SQUALL_EUNSUPPORTED, "%s has more than %u fields a run (%u steps, %u members, %zu levels): --select fewer",
                            draft->name ? draft->name : "a variable", UINT32_MAX, b->steps.count, b->members.count, draft->level_count);
    }
    b->slabs_a_run = total;
    if (!sq_mul_u64(total, runs, &all))
        return sq_error(err, SQUALL_EUNSUPPORTED, "%llu runs of %llu fields are more than can be counted: --select fewer",
                        (unsigned long long)runs, (unsigned long long)total);
    return 0;
}

int sq_cube_find_axes(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->draft_count; i++)
        b->drafts[i].open_count = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (is_open(b, i))
            b->drafts[b->variable_of[i]].open_count++;
    }
    SQ_TRY(find_times(b, err));
    if (!b->options->schema)
        SQ_TRY(find_levels(b, err));
    return lay_slabs(b, err);
}

/* Where a field lies along the axes that it has; UINT32_MAX where an axis does not have it (only with a schema). */
struct sq_where sq_cube_where(const struct sq_builder *b, size_t field)
{
    const struct sq_grib_field *f = &b->index->fields[field];
    const struct sq_draft *draft = &b->drafts[b->variable_of[field]];
    return (struct sq_where){
        .step = sq_axis_index(&b->steps, f->times.step_end_s),
        .member =
            b->members.count && b->groups[draft->group].key.kind == SQ_KIND_ENSEMBLE ? sq_axis_index(&b->members, f->times.number) : 0,
        .level = level_index(b, draft, b->product_levels[f->product]),
    };
}

static uint64_t place_number(const struct sq_builder *b, size_t field)
{
    const struct sq_draft *draft = &b->drafts[b->variable_of[field]];
    int64_t reference_s = b->index->fields[field].times.reference_time_s;
    struct sq_where where = sq_cube_where(b, field);
    uint64_t run, slab;
    if (!b->init_count)
        run = sq_axis_index(&b->runs, reference_s);
    else
        run = b->spacing_s ? (uint64_t)(reference_s - b->start_s) / (uint64_t)b->spacing_s : 0;
    if (draft->entries)
        slab = (uint64_t)draft->entries[where.level] * b->steps.count + where.step;
    else
        slab = ((uint64_t)where.step * (draft->has_members ? b->members.count : 1) + where.member) * draft->level_count + where.level;
    return run * b->slabs_a_run + draft->slab_offset + slab;
}

bool sq_cube_is_later(const struct sq_builder *b, uint32_t a, uint32_t other)
{
    const struct sq_grib_field *x = &b->index->fields[a], *y = &b->index->fields[other];
    if (x->file != y->file)
        return b->file_rank[x->file] > b->file_rank[y->file];
    if (x->offset != y->offset)
        return x->offset > y->offset;
    return x->in_message > y->in_message;
}

static int compare_spots(const void *a, const void *b, void *builder)
{
    const struct sq_spot *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->field == y->field ? 0 : sq_cube_is_later(builder, x->field, y->field) ? 1 : -1;
}

int sq_cube_find_spots(struct sq_builder *b, struct sq_spot **ret, size_t *ret_count, struct squall_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < b->index->field_count; i++)
        count += is_open(b, i);
    struct sq_spot *spots = sq_alloc(count, sizeof *spots);
    if (!spots)
        return sq_error_memory(err, count * sizeof *spots);
    count = 0;
    for (size_t i = 0; i < b->index->field_count; i++) {
        if (is_open(b, i))
            spots[count++] = (struct sq_spot){place_number(b, i), (uint32_t)i};
    }
    qsort_r(spots, count, sizeof *spots, compare_spots, b);
    *ret = spots;
    *ret_count = count;
    return 0;
}
