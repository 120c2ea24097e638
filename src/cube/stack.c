/*
 * --stack variable: the variables of one grid as one array, an entry for each, or for each of its levels where it has several. Deterministic ones only, unless
 * --select says what is wanted; members have a dimension of their own and fit no stack.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct sq_key *key_of(const struct sq_builder *b, const struct sq_draft *draft)
{
    return &b->groups[draft->group].key;
}

static bool may_be_stacked(const struct sq_builder *b, const struct sq_draft *draft)
{
    enum sq_kind kind = key_of(b, draft)->kind;
    return kind == SQ_KIND_DETERMINISTIC || (b->options->select_count && kind != SQ_KIND_ENSEMBLE);
}

/* The grid with most fields that may be stacked; of equal ones the lower number. UINT32_MAX: none */
static int commonest_grid(struct sq_builder *b, uint32_t *ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE size_t *counts = sq_alloc_zero(b->points_count, sizeof *counts);
    uint32_t best = UINT32_MAX;
    if (!counts)
        return sq_error_memory(err, b->points_count * sizeof *counts);
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_draft *draft = b->fate[i] == SQ_FATE_OPEN && b->variable_of[i] != UINT32_MAX ? &b->drafts[b->variable_of[i]] : NULL;
        if (draft && may_be_stacked(b, draft))
            counts[key_of(b, draft)->grid]++;
    }
    for (uint32_t i = 0; i < b->points_count; i++) {
        if (counts[i] &&
            (best == UINT32_MAX || counts[i] > counts[best] || (counts[i] == counts[best] && b->points[i].number < b->points[best].number)))
            best = i;
    }
    *ret = best;
    return 0;
}

int sq_cube_choose_stack(struct sq_builder *b, struct squall_error *err)
{
    uint32_t grid = UINT32_MAX;
    if (!b->options->schema) {
        SQ_TRY(commonest_grid(b, &grid, err));
        for (size_t i = 0; i < b->draft_count; i++)
            b->drafts[i].stored = may_be_stacked(b, &b->drafts[i]) && key_of(b, &b->drafts[i])->grid == grid;
    }
    for (size_t i = 0; i < b->index->field_count; i++) {
        uint32_t variable = b->variable_of[i];
        if (b->fate[i] == SQ_FATE_OPEN && variable != UINT32_MAX && !b->drafts[variable].stored)
            b->fate[i] = SQ_FATE_NOT_IN_STACK;
    }
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct sq_entry *)a)->name, ((const struct sq_entry *)b)->name);
}

/* "t", or "t_heightAboveGround_0" where t has several levels */
static char *entry_name(struct sq_builder *b, const struct sq_draft *draft, uint32_t level)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const struct sq_level *surfaces = &b->levels[draft->first_level + level];
    sq_text_add(&text, sq_cube_renamed(b, draft->name));
    if (draft->level_count > 1) {
        sq_text_printf(&text, "_%s", key_of(b, draft)->level_type);
        if (!isnan(surfaces->first)) {
            sq_text_add(&text, "_");
            sq_text_add_number(&text, surfaces->first);
        }
        if (!isnan(surfaces->second)) {
            sq_text_add(&text, "_");
            sq_text_add_number(&text, surfaces->second);
        }
    }
    return text.failed ? NULL : sq_arena_strdup(b->arena, sq_text_string(&text));
}

int sq_cube_lay_stack(struct sq_builder *b, struct squall_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < b->draft_count; i++)
        count += sq_draft_in_cube(&b->drafts[i]) ? b->drafts[i].level_count : 0;
    b->entries = sq_alloc(count, sizeof *b->entries);
    if (!b->entries)
        return sq_error_memory(err, count * sizeof *b->entries);
    for (uint32_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        if (!sq_draft_in_cube(draft))
            continue;
        draft->entries = sq_arena_alloc(b->arena, draft->level_count * sizeof *draft->entries);
        if (!draft->entries)
            return sq_error_memory(err, draft->level_count * sizeof *draft->entries);
        for (uint32_t level = 0; level < draft->level_count; level++) {
            struct sq_entry *entry = &b->entries[b->entry_count++];
            *entry = (struct sq_entry){entry_name(b, draft, level), i, level};
            if (!entry->name)
                return sq_error_memory(err, 0);
        }
        draft->slab_offset = 0;
        draft->cube_row = 0;
    }
    qsort(b->entries, b->entry_count, sizeof *b->entries, compare_entries);
    for (uint32_t i = 0; i < b->entry_count; i++) {
        if (i && compare_entries(&b->entries[i - 1], &b->entries[i]) == 0)
            return sq_error(err, SQUALL_EINVAL, "two variables of the stack would be called \"%s\": --rename one of them to another name",
                            b->entries[i].name);
        b->drafts[b->entries[i].draft].entries[b->entries[i].level] = i;
    }
    b->slabs_a_run = (uint64_t)b->entry_count * b->steps.count;
    return 0;
}
