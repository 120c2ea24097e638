/* See ranges.h. */
#include "format/zarr/ranges.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

int sq_ranges_add(struct sq_ranges *set, uint64_t value, struct squall_error *err)
{
    struct sq_range *last = set->count ? &set->items[set->count - 1] : NULL;
    if (last && value <= last->last)
        return 0;
    if (last && value == last->last + 1) {
        last->last = value;
        return 0;
    }
    SQ_TRY(SQ_GROW(set->items, set->capacity, set->count + 1, err));
    set->items[set->count++] = (struct sq_range){value, value};
    return 0;
}

void sq_ranges_done(struct sq_ranges *set)
{
    sq_free(set->items);
    *set = (struct sq_ranges){0};
}

/* The first number from `at` on that is not in the set; *ret_free_until: the last of those behind it that are not either. */
static uint64_t skip_covered(const struct sq_ranges *set, uint64_t at, uint64_t *ret_free_until)
{
    *ret_free_until = UINT64_MAX;
    for (size_t i = 0; set && i < set->count; i++) {
        if (set->items[i].last < at)
            continue;
        if (set->items[i].first <= at) {
            at = set->items[i].last + 1;
            continue;
        }
        *ret_free_until = set->items[i].first - 1;
        break;
    }
    return at;
}

uint64_t sq_ranges_lacking(const struct sq_ranges *wanted, const struct sq_ranges *a, const struct sq_ranges *b)
{
    uint64_t lacking = 0;
    for (size_t i = 0; i < wanted->count; i++) {
        uint64_t at = wanted->items[i].first, end = wanted->items[i].last;
        while (at <= end) {
            uint64_t free_a, free_b, before;
            do {
                before = at;
                at = skip_covered(a, at, &free_a);
                at = skip_covered(b, at, &free_b);
            } while (at != before);
            if (at > end)
                break;
            uint64_t until = free_a < free_b ? free_a : free_b;
            until = until < end ? until : end;
            lacking += until - at + 1;
            at = until + 1;
        }
    }
    return lacking;
}

uint64_t sq_ranges_beyond(const struct sq_ranges *set, uint64_t limit)
{
    uint64_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        uint64_t first = set->items[i].first < limit ? limit : set->items[i].first;
        if (set->items[i].last >= first)
            count += set->items[i].last - first + 1;
    }
    return count;
}

void sq_ranges_write(const struct sq_ranges *set, struct sq_text *out)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct sq_range *r = &set->items[i];
        sq_text_printf(out, "%s%llu", i ? "," : "", (unsigned long long)r->first);
        if (r->last > r->first)
            sq_text_printf(out, "-%llu", (unsigned long long)r->last);
    }
}

/* Digits only, and small enough that sums of a few cannot overflow. */
static bool number(const char **at, uint64_t *ret)
{
    uint64_t value = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && value < (UINT64_C(1) << 56); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    bool any = p > *at;
    *at = p;
    *ret = value;
    return any && !(*p >= '0' && *p <= '9');
}

static int parse_into(const char *text, struct sq_ranges *set, struct squall_error *err)
{
    for (const char *at = text; *at;) {
        struct sq_range r;
        bool good = number(&at, &r.first);
        r.last = r.first;
        if (good && *at == '-') {
            at++;
            good = number(&at, &r.last) && r.last > r.first;
        }
        bool apart = set->count == 0 || r.first > set->items[set->count - 1].last + 1;
        if (!good || !apart || (*at && *at != ',') || (*at == ',' && !at[1]))
            return sq_error(err, SQUALL_ECORRUPT, "\"%.40s\" is no set of numbers", text);
        SQ_TRY(SQ_GROW(set->items, set->capacity, set->count + 1, err));
        set->items[set->count++] = r;
        at += *at == ',';
    }
    return 0;
}

int sq_ranges_parse(const char *text, struct sq_ranges *ret, struct squall_error *err)
{
    struct sq_ranges set = {0};
    int status = parse_into(text, &set, err);
    if (status) {
        sq_ranges_done(&set);
        return status;
    }
    *ret = set;
    return 0;
}
