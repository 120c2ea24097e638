/*
 * The interval that ends at each step, for variables whose fields stand for one. Variables share a table where theirs agree: an unknown interval (no
 * field has come yet) agrees with any.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <stdlib.h>
#include <string.h>

static int add_table(struct sq_builder *b, struct sq_draft *draft, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(b->bounds, b->bounds_capacity, b->bounds_count + 1, err));
    struct sq_bounds *table = &b->bounds[b->bounds_count];
    SQ_CLEANUP_FREE char *name = sq_format("step_bounds_%s", draft->name);
    *table = (struct sq_bounds){.name = name ? sq_arena_strdup(b->arena, name) : NULL,
                                .begins = sq_arena_alloc(b->arena, b->steps.count * sizeof *table->begins)};
    if (!table->name || !table->begins)
        return sq_error_memory(err, b->steps.count * sizeof *table->begins);
    for (uint32_t s = 0; s < b->steps.count; s++)
        table->begins[s] = SQ_BEGIN_UNKNOWN;
    draft->bounds = (uint32_t)b->bounds_count++;
    return 0;
}

/* Takes what `from` knows into `into` where they agree. */
static bool join(int64_t *into, const int64_t *from, uint32_t count)
{
    for (uint32_t s = 0; s < count; s++) {
        if (into[s] != from[s] && into[s] != SQ_BEGIN_UNKNOWN && from[s] != SQ_BEGIN_UNKNOWN)
            return false;
    }
    for (uint32_t s = 0; s < count; s++)
        into[s] = into[s] == SQ_BEGIN_UNKNOWN ? from[s] : into[s];
    return true;
}

/* Each variable's own table, before tables are shared. */
static int own_tables(struct sq_builder *b, struct squall_error *err)
{
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        struct sq_draft *draft = b->fate[i] == SQ_FATE_PLACED ? &b->drafts[b->variable_of[i]] : NULL;
        if (draft && draft->bounds == UINT32_MAX && times->step_begin_s != times->step_end_s)
            SQ_TRY(add_table(b, draft, err));
    }
    for (size_t i = 0; i < b->index->field_count; i++) {
        const struct sq_grib_times *times = &b->index->fields[i].times;
        const struct sq_draft *draft = b->fate[i] == SQ_FATE_PLACED ? &b->drafts[b->variable_of[i]] : NULL;
        if (draft && draft->bounds != UINT32_MAX)
            b->bounds[draft->bounds].begins[sq_axis_index(&b->steps, times->step_end_s)] = times->step_begin_s;
    }
    return 0;
}

/* In the order of names each variable joins the first table that agrees. The table that most share is plain "step_bounds". */
int sq_cube_find_bounds(struct sq_builder *b, struct squall_error *err)
{
    size_t kept = 0, plain = 0;
    if (b->options->schema)
        return 0;
    SQ_TRY(own_tables(b, err));
    SQ_CLEANUP_FREE struct sq_bounds *own = b->bounds;
    b->bounds = sq_alloc(b->bounds_count, sizeof *b->bounds);
    if (!b->bounds)
        return sq_error_memory(err, b->bounds_count * sizeof *b->bounds);
    for (size_t i = 0; i < b->draft_count; i++) {
        struct sq_draft *draft = &b->drafts[i];
        size_t row = 0;
        if (draft->bounds == UINT32_MAX)
            continue;
        while (row < kept && !join(b->bounds[row].begins, own[draft->bounds].begins, b->steps.count))
            row++;
        if (row == kept)
            b->bounds[kept++] = own[draft->bounds];
        b->bounds[row].user_count++;
        draft->bounds = (uint32_t)row;
        plain = b->bounds[row].user_count > b->bounds[plain].user_count ? row : plain;
    }
    b->bounds_count = b->bounds_capacity = kept;
    if (kept)
        b->bounds[plain].name = "step_bounds";
    return 0;
}

int sq_cube_extend_bounds(struct sq_builder *b, uint32_t count, struct squall_error *err)
{
    for (size_t i = 0; i < b->bounds_count; i++) {
        int64_t *begins = sq_arena_alloc(b->arena, b->steps.count * sizeof *begins);
        if (!begins)
            return sq_error_memory(err, b->steps.count * sizeof *begins);
        for (uint32_t s = 0; s < b->steps.count; s++)
            begins[s] = s < count ? b->bounds[i].begins[s] : SQ_BEGIN_UNKNOWN;
        b->bounds[i].begins = begins;
    }
    return 0;
}

/* With a schema: does the field's interval agree with what the store has for the step? A step without one takes it. */
int sq_cube_check_bounds(struct sq_builder *b, size_t field, uint32_t step, bool *ret, struct squall_error *err)
{
    const struct sq_grib_times *times = &b->index->fields[field].times;
    struct sq_draft *draft = &b->drafts[b->variable_of[field]];
    if (draft->bounds == UINT32_MAX && times->step_begin_s != times->step_end_s)
        SQ_TRY(add_table(b, draft, err));
    int64_t *begin = draft->bounds == UINT32_MAX ? NULL : &b->bounds[draft->bounds].begins[step];
    if (begin && *begin == SQ_BEGIN_UNKNOWN)
        *begin = times->step_begin_s;
    *ret = !begin || *begin == times->step_begin_s;
    return 0;
}
