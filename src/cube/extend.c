/*
 * Steps, members and levels that a store was made without (--schema grow). A dimension takes them at its end, where no chunk that is stored has
 * to move: steps only behind the last one, so that they stay sorted; members and levels in the order in which they come to the store, those that
 * come together ascending. A level joins all variables that share its dimension. What has no dimension (one level, one member) cannot get one.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <stdlib.h>
#include <string.h>

/* What is new along dimensions of one kind, and the first run that has it. */
struct news {
    struct sq_intern table;
    int64_t *since_s;
    size_t capacity;
};

static void news_done(struct news *n)
{
    sq_intern_done(&n->table);
    sq_free(n->since_s);
}
#define CLEANUP_NEWS __attribute__((cleanup(news_done)))

static int take(struct news *n, const int64_t *key, int64_t time_s, struct squall_error *err)
{
    const uint32_t known = n->table.count;
    uint32_t number;
    SQ_TRY(sq_intern_add(&n->table, key, &number, err));
    SQ_TRY(SQ_GROW(n->since_s, n->capacity, n->table.count, err));
    if (number == known || time_s < n->since_s[number])
        n->since_s[number] = time_s;
    return 0;
}

/* The schema tells from which runs on there is more, so that nobody expects it of those before. */
static int tell_since(struct sq_builder *b, const struct news *n, struct squall_error *err)
{
    if (!b->grown && !(b->grown = sq_json_new_array()))
        return sq_error_memory(err, sizeof(void *));
    for (uint32_t i = 0; n->since_s && i < n->table.count; i++) {
        int64_t there_s;
        bool told = false;
        for (size_t k = 0; k < sq_json_count(b->grown); k++)
            told = told || (sq_json_int(sq_json_at(b->grown, k), &there_s) && there_s == n->since_s[i]);
        if (!told && sq_json_append(b->grown, sq_json_new_int(n->since_s[i])))
            return sq_error_memory(err, sizeof(int64_t));
    }
    return 0;
}

/* ---- what a field brings --------------------------------------------------------------------------------------------------------- */

static bool takes_part(const struct sq_builder *b, size_t field)
{
    const uint32_t variable = b->variable_of[field];
    return b->fate[field] == SQ_FATE_OPEN && variable != UINT32_MAX && b->drafts[variable].stored &&
           (b->options->prepend || b->index->fields[field].times.reference_time_s >= b->start_s);
}

static bool has_step(const struct sq_builder *b, size_t field)
{
    return sq_cube_where(b, field).step != UINT32_MAX;
}

/* Could the store have a place for it but for its step? */
static bool may_have_member(const struct sq_builder *b, size_t field)
{
    return b->has_members || sq_cube_where(b, field).member != UINT32_MAX;
}

static bool may_have_level(const struct sq_builder *b, size_t field)
{
    return b->drafts[b->variable_of[field]].level_dim || sq_cube_where(b, field).level != UINT32_MAX;
}

static int find_steps(const struct sq_builder *b, struct news *n, struct squall_error *err)
{
    const int64_t last_s = b->steps.values[b->steps.count - 1];
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        if (takes_part(b, i) && times->step_end_s > last_s && may_have_member(b, i) && may_have_level(b, i))
            SQ_TRY(take(n, &times->step_end_s, times->reference_time_s, err));
    }
    return 0;
}

static int find_members(const struct sq_builder *b, struct news *n, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count && b->has_members; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        const int64_t member = times->number;
        if (takes_part(b, i) && sq_cube_where(b, i).member == UINT32_MAX && has_step(b, i) && may_have_level(b, i))
            SQ_TRY(take(n, &member, times->reference_time_s, err));
    }
    return 0;
}

/* The first variable that has the draft's dimension of levels. */
static uint32_t owner_of(const struct sq_builder *b, uint32_t draft)
{
    uint32_t owner = 0;
    while (!b->drafts[owner].level_dim || strcmp(b->drafts[owner].level_dim, b->drafts[draft].level_dim) != 0)
        owner++;
    return owner;
}

/* Keys: the owner of the dimension, and the surfaces' bits. */
static int find_levels(const struct sq_builder *b, struct news *n, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_field *f = &b->index->fields[i];
        int64_t key[3];
        if (!takes_part(b, i) || !b->drafts[b->variable_of[i]].level_dim)
            continue;
        const struct sq_where where = sq_cube_where(b, i);
        if (where.level != UINT32_MAX || where.step == UINT32_MAX || where.member == UINT32_MAX)
            continue;
        key[0] = owner_of(b, b->variable_of[i]);
        memcpy(key + 1, b->product_levels[f->product], sizeof(double[2]));
        SQ_TRY(take(n, key, f->times.reference_time_s, err));
    }
    return 0;
}

/* ---- dimensions grow ------------------------------------------------------------------------------------------------------------- */

/* Remember how long it was when the variable came into the store. */
static void set_made(struct sq_draft *draft, enum sq_growing which, size_t length)
{
    if (!draft->made[which] && draft->stored)
        draft->made[which] = (uint32_t)length;
}

static int append(struct sq_builder *b, struct sq_axis *axis, enum sq_growing which, const struct news *n, struct squall_error *err)
{
    SQ_CLEANUP_FREE int64_t *values = sq_alloc((size_t)axis->count + n->table.count, sizeof *values);
    int64_t *sorted = NULL;
    if (!values)
        return sq_error_memory(err, axis->count * sizeof *values);
    SQ_TRY(sq_intern_sorted(&n->table, &sorted, err));
    memcpy(values, axis->values, axis->count * sizeof *values);
    memcpy(values + axis->count, sorted, n->table.count * sizeof *values);
    sq_free(sorted);
    for (size_t i = 0; i < b->draft_count; i++)
        if (!b->drafts[i].joins)
            set_made(&b->drafts[i], which, axis->count);
    return sq_axis_take(axis, values, axis->count + n->table.count, err);
}

static int extend_steps(struct sq_builder *b, struct sq_text *told, struct squall_error *err)
{
    CLEANUP_NEWS struct news n = {.table = sq_intern_make(1)};
    const uint32_t before = b->steps.count;
    SQ_TRY(find_steps(b, &n, err));
    if (!n.table.count)
        return 0;
    SQ_TRY(append(b, &b->steps, SQ_GROWS_STEPS, &n, err));
    for (uint32_t s = before; s < b->steps.count; s++) {
        sq_text_add(told, s == before ? "; step " : ", ");
        sq_text_add_duration(told, b->steps.values[s]);
    }
    SQ_TRY(sq_cube_extend_bounds(b, before, err));
    return tell_since(b, &n, err);
}

static int extend_members(struct sq_builder *b, struct sq_text *told, struct squall_error *err)
{
    CLEANUP_NEWS struct news n = {.table = sq_intern_make(1)};
    const uint32_t before = b->members.count;
    SQ_TRY(find_members(b, &n, err));
    if (!n.table.count)
        return 0;
    SQ_TRY(append(b, &b->members, SQ_GROWS_MEMBERS, &n, err));
    for (uint32_t m = before; m < b->members.count; m++)
        sq_text_printf(told, "%s%lld", m == before ? "; number " : ", ", (long long)b->members.values[m]);
    return tell_since(b, &n, err);
}

/* Those of the dimension behind the draft's own. */
static void append_levels(const struct sq_level *news, size_t count, uint32_t owner, uint32_t draft, struct sq_level *levels, size_t *used)
{
    for (size_t i = 0; i < count; i++) {
        if (news[i].draft != owner)
            continue;
        levels[*used] = news[i];
        levels[(*used)++].draft = draft;
    }
}

static int join_levels(struct sq_builder *b, const struct sq_level *news, size_t count, struct squall_error *err)
{
    const size_t most = b->level_count + count * b->draft_count;
    struct sq_level *levels = sq_alloc(most, sizeof *levels);
    size_t used = 0;
    if (!levels)
        return sq_error_memory(err, most * sizeof *levels);
    for (uint32_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        for (size_t k = 0; k < draft->level_count; k++)
            levels[used++] = b->levels[draft->first_level + k];
        const size_t before = used;
        if (draft->level_dim)
            append_levels(news, count, owner_of(b, i), i, levels, &used);
        if (used > before)
            set_made(draft, SQ_GROWS_LEVELS, draft->level_count);
    }
    sq_free(b->levels);
    b->levels = levels;
    b->level_count = used;
    sq_cube_settle_levels(b);
    return 0;
}

static int extend_levels(struct sq_builder *b, struct sq_text *told, struct squall_error *err)
{
    CLEANUP_NEWS struct news n = {.table = sq_intern_make(3)};
    SQ_TRY(find_levels(b, &n, err));
    if (!n.table.count)
        return 0;
    SQ_CLEANUP_FREE struct sq_level *levels = sq_alloc(n.table.count, sizeof *levels);
    if (!levels)
        return sq_error_memory(err, n.table.count * sizeof *levels);
    for (uint32_t i = 0; i < n.table.count; i++) {
        const int64_t *key = sq_intern_key(&n.table, i);
        levels[i].draft = (uint32_t)key[0];
        memcpy(&levels[i].first, key + 1, sizeof levels[i].first);
        memcpy(&levels[i].second, key + 2, sizeof levels[i].second);
    }
    qsort(levels, n.table.count, sizeof *levels, sq_compare_levels);
    for (uint32_t i = 0; i < n.table.count; i++) {
        if (i == 0 || levels[i].draft != levels[i - 1].draft)
            sq_text_printf(told, "; %s %g", sq_cube_renamed(b, b->drafts[levels[i].draft].level_dim), levels[i].first);
        else
            sq_text_printf(told, ", %g", levels[i].first);
    }
    SQ_TRY(join_levels(b, levels, n.table.count, err));
    return tell_since(b, &n, err);
}

/* Variables that have just joined the schema are new from their first run on. */
static int tell_joined(struct sq_builder *b, struct squall_error *err)
{
    CLEANUP_NEWS struct news n = {.table = sq_intern_make(1)};
    for (size_t i = 0; i < b->index->field_count; i++) {
        const int64_t variable = b->variable_of[i];
        if (takes_part(b, i) && b->drafts[variable].joins)
            SQ_TRY(take(&n, &variable, b->index->fields[i].times.reference_time_s, err));
    }
    return n.table.count ? tell_since(b, &n, err) : 0;
}

int sq_cube_extend(struct sq_builder *b, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text told = SQ_TEXT_INIT;
    SQ_TRY(extend_steps(b, &told, err));
    SQ_TRY(extend_members(b, &told, err));
    SQ_TRY(extend_levels(b, &told, err));
    SQ_TRY(tell_joined(b, err));
    if (told.failed)
        return sq_error_memory(err, told.length);
    return told.length ? sq_cube_note(b, false, err, "new in the store: %s", sq_text_string(&told) + strlen("; ")) : 0;
}
