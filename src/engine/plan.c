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

int sq_plan_init(unsigned rank, const uint64_t *shape, const uint64_t *chunks, const struct squall_selection *selection,
                 struct sq_plan *ret, struct squall_error *err)
{
    struct sq_plan p = {.rank = rank, .selection = *selection};
    uint64_t items = 1;
    bool empty = false, fits = true;
    for (unsigned d = 0; d < rank; d++) {
        SQ_TRY(check_selection(d, shape[d], selection, err));
        uint64_t start = selection->start[d], count = selection->count[d], step = selection->step[d];
        p.chunks[d] = chunks[d];
        if (count == 0)
            empty = true;
        else if (step >= chunks[d]) /* every element lies in another chunk */
            p.segment_counts[d] = count;
        else
            p.segment_counts[d] = (start + (count - 1) * step) / chunks[d] - start / chunks[d] + 1;
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

void sq_plan_item_at(const struct sq_plan *p, size_t index, struct sq_plan_item *ret)
{
    for (unsigned d = p->rank; d-- > 0;) {
        uint64_t segment = index % p->segment_counts[d];
        uint64_t start = p->selection.start[d], count = p->selection.count[d], step = p->selection.step[d], length = p->chunks[d];
        index /= p->segment_counts[d];
        if (step >= length) {
            uint64_t at = start + segment * step;
            ret->chunk[d] = at / length;
            ret->first[d] = at % length;
            ret->count[d] = 1;
            ret->to[d] = segment;
            continue;
        }
        uint64_t chunk = start / length + segment, begin = chunk * length; /* begin + length may lie behind the array, within uint64 */
        uint64_t to = elements_below(start, step, begin), end = elements_below(start, step, begin + length);
        ret->chunk[d] = chunk;
        ret->first[d] = start + to * step - begin;
        ret->count[d] = (end < count ? end : count) - to;
        ret->to[d] = to;
    }
}
