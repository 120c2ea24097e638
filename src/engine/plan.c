/* See plan.h. */
#include "engine/plan.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include <inttypes.h>

static int check_selection(unsigned d, uint64_t length, const struct squall_selection *s, struct squall_error *err)
{
    uint64_t start = s->start[d], count = s->count[d], step = s->step[d], last = start;
    if (step == 0)
        return sq_error(err, SQUALL_EINVAL, "dimension %u: a step of 0", d);
    bool fits = count == 0 ? start <= length : sq_mul_u64(count - 1, step, &last) && sq_add_u64(start, last, &last) && last < length;
    if (!fits)
        return sq_error(err, SQUALL_EINVAL,
                        "dimension %u: %" PRIu64 " elements from %" PRIu64 " with step %" PRIu64 ", but its length is %" PRIu64, d, count,
                        start, step, length);
    return 0;
}

/* Segments along one dimension, count > 0. In a regular grid each of them holds an element. */
static uint64_t count_segments(const struct sq_axis *axis, uint64_t start, uint64_t count, uint64_t step)
{
    if (!axis->edges && step >= axis->chunk) /* every element lies in another chunk */
        return count;
    return sq_axis_chunk_of(axis, start + (count - 1) * step) - sq_axis_chunk_of(axis, start) + 1;
}

int sq_plan_init(unsigned rank, const struct sq_axis *axes, const struct squall_selection *selection, struct sq_plan *ret,
                 struct squall_error *err)
{
    struct sq_plan p = {.rank = rank, .selection = *selection};
    uint64_t items = 1;
    bool empty = false, fits = true;
    for (unsigned d = 0; d < rank; d++) {
        SQ_TRY(check_selection(d, axes[d].length, selection, err));
        p.axes[d] = axes[d];
        if (selection->count[d] == 0)
            empty = true;
        else
            p.segment_counts[d] = count_segments(&axes[d], selection->start[d], selection->count[d], selection->step[d]);
        fits = fits && sq_mul_u64(items, p.segment_counts[d], &items);
    }
    if (!empty && (!fits || items > SIZE_MAX))
        return sq_error(err, SQUALL_EINVAL, "the selection covers more chunks than can be counted");
    p.item_count = empty ? 0 : (size_t)items;
    *ret = p;
    return 0;
}

/* How many of start, start + step, … lie below end. */
static uint64_t elements_below(uint64_t start, uint64_t step, uint64_t end)
{
    return end <= start ? 0 : (end - start - 1) / step + 1;
}

bool sq_plan_item_at(const struct sq_plan *p, size_t index, struct sq_plan_item *ret)
{
    bool any = true;
    for (unsigned d = p->rank; d-- > 0;) {
        const struct sq_axis *axis = &p->axes[d];
        uint64_t segment = index % p->segment_counts[d];
        uint64_t start = p->selection.start[d], count = p->selection.count[d], step = p->selection.step[d];
        index /= p->segment_counts[d];
        if (!axis->edges && step >= axis->chunk) {
            uint64_t at = start + segment * step;
            ret->chunk[d] = at / axis->chunk;
            ret->extent[d] = sq_axis_extent(axis, ret->chunk[d]);
            ret->first[d] = at % axis->chunk;
            ret->count[d] = 1;
            ret->to[d] = segment;
            continue;
        }
        uint64_t chunk = sq_axis_chunk_of(axis, start) + segment, begin = sq_axis_begin(axis, chunk);
        uint64_t to = elements_below(start, step, begin), end = elements_below(start, step, begin + sq_axis_extent(axis, chunk));
        if (end > count)
            end = count;
        ret->chunk[d] = chunk;
        ret->extent[d] = sq_axis_extent(axis, chunk);
        ret->first[d] = start + to * step - begin;
        ret->count[d] = end > to ? end - to : 0;
        ret->to[d] = to;
        any = any && end > to;
    }
    return any;
}
