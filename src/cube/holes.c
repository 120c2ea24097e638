/*
 * Places that no field fills, over the runs that have any: counted, and named by variable, run and steps. Places are sorted, so one walk along
 * them finds every gap; only the first few of a variable are looked at closely.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include "cube/texts.h"
#include <string.h>

enum { EXAMPLE_LIMIT = 3, LINE_LIMIT = 20 };

/* The slabs of a run that one line tells of: a variable, or an entry of a stack. */
struct strip {
    const char *name;
    uint64_t offset, count;
    uint64_t step_slabs; /* slabs of one step */
    uint64_t missing;
    size_t run_count; /* runs with gaps */
    struct sq_text examples;
};

static void free_strips(struct strip **strips, size_t count)
{
    for (size_t i = 0; *strips && i < count; i++)
        sq_text_done(&(*strips)[i].examples);
    sq_free(*strips);
}

static size_t make_strips(struct sq_builder *b, struct strip *strips)
{
    size_t count = 0;
    for (size_t i = 0; i < b->entry_count; i++)
        strips[count++] = (struct strip){b->entries[i].name, i * b->steps.count, b->steps.count, 1, 0, 0, SQ_TEXT_INIT};
    for (size_t i = 0; !b->options->stack && i < b->draft_count; i++) {
        const struct sq_draft *draft = &b->drafts[i];
        uint64_t slabs = sq_draft_in_cube(draft) ? sq_cube_slab_count(b, draft) : 0;
        if (slabs)
            strips[count++] =
                (struct strip){sq_cube_renamed(b, draft->name), draft->slab_offset, slabs, slabs / b->steps.count, 0, 0, SQ_TEXT_INIT};
    }
    return count;
}

static uint64_t number_in_run(const struct sq_builder *b, const struct sq_cube_place *place)
{
    return (b->options->stack ? 0 : b->row_offsets[place->variable]) + place->slab;
}

/* "2022-01-01T00:00 at 1 h to 6 h": the steps of one run that lack something. placed: the strip's places in the run. */
static int add_example(const struct sq_builder *b, struct strip *strip, const struct sq_cube_place *placed, size_t placed_count,
                       uint32_t init, struct squall_error *err)
{
    SQ_CLEANUP_FREE bool *lacks = sq_alloc_zero(b->steps.count, sizeof *lacks);
    size_t at = 0;
    if (!lacks)
        return sq_error_memory(err, b->steps.count);
    for (uint64_t slab = 0; slab < strip->count; slab++) {
        if (at < placed_count && number_in_run(b, &placed[at]) == strip->offset + slab)
            at++;
        else
            lacks[slab / strip->step_slabs] = true;
    }
    sq_text_add(&strip->examples, strip->examples.length ? "; " : "");
    sq_text_add_time(&strip->examples, b->cube->init_times_s[init]);
    const char *between = " at ";
    for (uint32_t s = 0, end; s < b->steps.count; s = end) {
        for (end = s + 1; end < b->steps.count && lacks[end] == lacks[s]; end++)
            ;
        if (!lacks[s] || strip->examples.length > 400)
            continue;
        sq_text_add(&strip->examples, between);
        sq_text_add_duration(&strip->examples, b->steps.values[s]);
        if (end - s > 1) {
            sq_text_add(&strip->examples, " to ");
            sq_text_add_duration(&strip->examples, b->steps.values[end - 1]);
        }
        between = ", ";
    }
    return 0;
}

static int count_run(struct sq_builder *b, struct strip *strips, size_t strip_count, const struct sq_cube_place *places, size_t count,
                     struct squall_error *err)
{
    size_t at = 0;
    for (size_t i = 0; i < strip_count; i++) {
        struct strip *strip = &strips[i];
        size_t begin = at;
        while (at < count && number_in_run(b, &places[at]) < strip->offset + strip->count)
            at++;
        uint64_t missing = strip->count - (at - begin);
        strip->missing += missing;
        if (missing && strip->run_count++ < EXAMPLE_LIMIT)
            SQ_TRY(add_example(b, strip, places + begin, at - begin, places[0].init, err));
    }
    return 0;
}

static int tell(struct sq_builder *b, struct strip *strips, size_t count, uint64_t runs, struct squall_error *err)
{
    size_t lines = 0, rest = 0;
    uint64_t rest_holes = 0;
    for (size_t i = 0; i < count; i++) {
        struct strip *strip = &strips[i];
        b->cube->holes += strip->missing;
        if (!strip->missing)
            continue;
        if (lines++ >= LINE_LIMIT) {
            rest++;
            rest_holes += strip->missing;
            continue;
        }
        if (strip->run_count > EXAMPLE_LIMIT)
            sq_text_printf(&strip->examples, "; and in %zu more runs", strip->run_count - EXAMPLE_LIMIT);
        if (strip->examples.failed)
            return sq_error_memory(err, strip->examples.length);
        SQ_TRY(sq_cube_note(b, false, err, "%s: no field for %llu of %llu places: %s", strip->name, (unsigned long long)strip->missing,
                            (unsigned long long)(strip->count * runs), sq_text_string(&strip->examples)));
    }
    return rest ? sq_cube_note(b, false, err, "%zu more variables have no field for %llu places", rest, (unsigned long long)rest_holes) : 0;
}

int sq_cube_count_holes(struct sq_builder *b, struct squall_error *err)
{
    const struct sq_cube *cube = b->cube;
    size_t most = b->entry_count + b->draft_count, runs = 0;
    int status = 0;
    struct strip *strips = sq_alloc_zero(most, sizeof *strips);
    if (!strips)
        return sq_error_memory(err, most * sizeof *strips);
    size_t count = make_strips(b, strips);
    for (size_t i = 0, end; i < cube->place_count && !status; i = end, runs++) {
        for (end = i + 1; end < cube->place_count && cube->places[end].init == cube->places[i].init; end++)
            ;
        status = count_run(b, strips, count, cube->places + i, end - i, err);
    }
    status = status ? status : tell(b, strips, count, runs, err);
    free_strips(&strips, count);
    return status;
}
