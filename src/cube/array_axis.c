/*
 * See array_axis.h. Values are compared as int64 where both sides are integers, else as float64, after the sources' times are counted as
 * the store counts them. A store only grows at its end: what lies before that and is not there has no place.
 */
#include "cube/array_axis.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "cube/array_attributes.h"
#include "cube/cube.h"
#include "cube/many_compare.h"
#include "cube/many_order.h"
#include <math.h>
#include <string.h>

/* Values of one side, as they are compared. */
struct numbers {
    enum squall_type type; /* INT64 or FLOAT64 */
    void *values;
    uint64_t count;
};

static bool is_counted_as_integer(enum squall_type type)
{
    return sq_type_is_integer(type) && type != SQUALL_UINT64;
}

static int widen(const struct sq_many_part *part, enum squall_type type, struct numbers *ret, struct squall_error *err)
{
    *ret = (struct numbers){.type = type, .count = part->length, .values = sq_alloc((size_t)part->length + 1, 8)};
    if (!ret->values)
        return sq_error_memory(err, 8 * part->length);
    for (uint64_t i = 0; i < part->length; i++)
        if (type == SQUALL_INT64)
            ((int64_t *)ret->values)[i] = sq_integer_at(part->type, part->values, i);
        else
            ((double *)ret->values)[i] = sq_number_at(part->type, part->values, i);
    return 0;
}

/* An element in the coordinate's own type; false: it has no exact counterpart there. */
static bool narrow(const struct numbers *n, uint64_t i, enum squall_type type, void *values, uint64_t at)
{
    const bool integer = n->type == SQUALL_INT64;
    const int64_t whole = integer ? ((const int64_t *)n->values)[i] : 0;
    const double real = integer ? (double)whole : ((const double *)n->values)[i];
    switch (type) {
#define CASE(squall, c_type)                                                                                                               \
    case squall:                                                                                                                           \
        if (!integer && !(real >= -9.2e18 && real <= 9.2e18))                                                                              \
            return false;                                                                                                                  \
        ((c_type *)values)[at] = integer ? (c_type)whole : (c_type)(int64_t)real;                                                          \
        return integer ? (int64_t)((c_type *)values)[at] == whole : (double)((c_type *)values)[at] == real
        CASE(SQUALL_INT8, int8_t);
        CASE(SQUALL_INT16, int16_t);
        CASE(SQUALL_INT32, int32_t);
        CASE(SQUALL_INT64, int64_t);
        CASE(SQUALL_UINT8, uint8_t);
        CASE(SQUALL_UINT16, uint16_t);
        CASE(SQUALL_UINT32, uint32_t);
        CASE(SQUALL_UINT64, uint64_t);
#undef CASE
    case SQUALL_FLOAT32:
        ((float *)values)[at] = (float)real;
        return (double)(float)real == real;
    case SQUALL_FLOAT64:
        ((double *)values)[at] = real;
        return !integer || (int64_t)real == whole;
    default:
        return false;
    }
}

/* < 0, 0, > 0; a value that is not a number is behind all. */
static int compare(const struct numbers *a, uint64_t i, const struct numbers *b, uint64_t k)
{
    if (a->type == SQUALL_INT64) {
        const int64_t x = ((const int64_t *)a->values)[i], y = ((const int64_t *)b->values)[k];
        return (x > y) - (x < y);
    }
    const double x = ((const double *)a->values)[i], y = ((const double *)b->values)[k];
    if (isnan(x) || isnan(y))
        return (int)isnan(x) - (int)isnan(y);
    return (x > y) - (x < y);
}

/* 1: rising, -1: falling, 0: neither. */
static int direction(const struct numbers *n)
{
    int sign = n->count > 1 ? compare(n, 1, n, 0) : 1;
    for (uint64_t i = 1; i < n->count && sign; i++)
        if (compare(n, i, n, i - 1) * sign <= 0)
            sign = 0;
    return sign;
}

static bool is_same(const struct numbers *a, const struct numbers *b)
{
    bool same = a->count == b->count;
    for (uint64_t i = 0; i < a->count && same; i++)
        same = compare(a, i, b, i) == 0;
    return same;
}

/* ---- counted alike ---------------------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int count_as(struct sq_array_axis *axis, struct numbers *n, const struct sq_many_part *from, const struct sq_many_part *to,
                    const char *dim, struct squall_error *err)
{
    struct sq_cf_time *a = &axis->counted, *b = &axis->stored;
    if (same_text(from->units, to->units) && same_text(from->calendar, to->calendar))
        return 0;
    const bool times = from->units && to->units && sq_cf_time_parse(from->units, from->calendar, a) &&
                       sq_cf_time_parse(to->units, to->calendar, b) && a->calendar == b->calendar;
    if (!times)
        return sq_error(err, SQUALL_EREFUSED, "%s is counted in \"%s\" (%s), and in the store in \"%s\" (%s)", dim,
                        from->units ? from->units : "", from->calendar ? from->calendar : "standard", to->units ? to->units : "",
                        to->calendar ? to->calendar : "standard");
    if (!sq_cf_time_rebase(n->type, n->values, n->count, a, b))
        return sq_error(err, SQUALL_EREFUSED, "%s in \"%s\" has values that cannot be told exactly in \"%s\", as the store counts them",
                        dim, from->units, to->units);
    axis->recounted = true;
    return 0;
}

/* ---- places ----------------------------------------------------------------------------------------------------------------------- */

/* Where a value is in the store, or SQ_CUBE_NOWHERE. */
static uint64_t find(const struct numbers *stored, int sign, const struct numbers *n, uint64_t i)
{
    uint64_t low = 0, high = stored->count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const int order = compare(stored, middle, n, i) * sign;
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SQ_CUBE_NOWHERE;
}

static int place(struct sq_array_axis *axis, const struct numbers *stored, const struct numbers *added, const char *dim,
                 struct squall_error *err)
{
    int sign = direction(stored);
    if (is_same(stored, added)) {
        for (uint64_t i = 0; i < added->count; i++)
            axis->init_of[i] = i;
        return 0;
    }
    if (sign == 0)
        return sq_error(err, SQUALL_EREFUSED, "%s of the store does not go one way, so nothing can be added to it", dim);
    if (stored->count == 1 && added->count > 1)
        sign = direction(added);
    if (sign == 0)
        return sq_error(err, SQUALL_EREFUSED, "%s of the sources does not go one way; only such can be added to a store", dim);
    uint64_t last = SQ_CUBE_NOWHERE; /* of the sources, that was added */
    for (uint64_t i = 0; i < added->count; i++) {
        axis->init_of[i] = find(stored, sign, added, i);
        if (axis->init_of[i] != SQ_CUBE_NOWHERE)
            continue;
        const int order = last == SQ_CUBE_NOWHERE ? compare(added, i, stored, stored->count - 1) : compare(added, i, added, last);
        if (order * sign <= 0)
            continue;
        axis->init_of[i] = axis->count++;
        last = i;
    }
    return 0;
}

/* The coordinate as it is to be: what the store has, and behind it what is added. */
static int join(struct sq_array_axis *axis, const struct sq_many_part *stored, const struct numbers *added, const char *dim,
                struct squall_error *err)
{
    const size_t element_bytes = squall_type_size(stored->type);
    axis->type = stored->type;
    axis->values = sq_alloc((size_t)axis->count + 1, element_bytes);
    if (!axis->values)
        return sq_error_memory(err, axis->count * element_bytes);
    memcpy(axis->values, stored->values, (size_t)stored->length * element_bytes);
    for (uint64_t i = 0; i < added->count; i++)
        if (axis->init_of[i] != SQ_CUBE_NOWHERE && axis->init_of[i] >= stored->length &&
            !narrow(added, i, axis->type, axis->values, axis->init_of[i]))
            return sq_error(err, SQUALL_EREFUSED, "%s of the sources has values that the store's %s cannot tell exactly", dim,
                            sq_type_name(axis->type));
    return 0;
}

static int append(struct sq_array_axis *axis, const struct sq_many_part *stored, const struct sq_many_part *added, const char *dim,
                  struct squall_error *err)
{
    const enum squall_type type = is_counted_as_integer(stored->type) && is_counted_as_integer(added->type) ? SQUALL_INT64 : SQUALL_FLOAT64;
    struct numbers old = {0}, new = {0};
    int status = widen(stored, type, &old, err);
    if (!status)
        status = widen(added, type, &new, err);
    if (!status)
        status = count_as(axis, &new, added, stored, dim, err);
    axis->count = stored->length;
    if (!status && stored->length > 0)
        status = place(axis, &old, &new, dim, err);
    for (uint64_t i = 0; i < added->length && stored->length == 0; i++)
        axis->init_of[i] = axis->count++;
    if (!status)
        status = join(axis, stored, &new, dim, err);
    sq_free(old.values);
    sq_free(new.values);
    return status;
}

/* ---- times ------------------------------------------------------------------------------------------------------------------------ */

/* What a store's records take for a time. */
static const int64_t TIME_LIMIT_S = (int64_t)1 << 50;

/* What the values are in seconds since 1970; values that are no whole seconds leave NULL. */
static int find_times(struct sq_array_axis *axis, const struct sq_many_part *part, struct squall_error *err)
{
    struct sq_cf_time from, to;
    const enum squall_type type = is_counted_as_integer(axis->type) ? SQUALL_INT64 : SQUALL_FLOAT64;
    struct numbers n;
    if (!part->units || !sq_cf_time_parse(part->units, part->calendar, &from) ||
        !sq_cf_time_parse("seconds since 1970-01-01", part->calendar, &to))
        return 0;
    const struct sq_many_part all = {.type = axis->type, .values = axis->values, .length = axis->count};
    SQ_TRY(widen(&all, type, &n, err));
    bool whole = sq_cf_time_rebase(type, n.values, n.count, &from, &to);
    for (uint64_t i = 0; i < n.count && whole && type == SQUALL_FLOAT64; i++) {
        const double value = ((double *)n.values)[i];
        whole = fabs(value) < 1e15 && value == floor(value); /* far beyond any time that means something */
        ((int64_t *)n.values)[i] = whole ? (int64_t)value : 0;
    }
    for (uint64_t i = 0; i < n.count && whole; i++)
        whole = ((int64_t *)n.values)[i] > -TIME_LIMIT_S && ((int64_t *)n.values)[i] < TIME_LIMIT_S;
    if (!whole) {
        sq_free(n.values);
        return 0;
    }
    axis->times_s = n.values;
    axis->calendar = sq_strdup(part->calendar ? part->calendar : "standard");
    return axis->calendar ? 0 : sq_error_memory(err, 1);
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------------- */

static struct squall_array *coordinate_of(const struct squall_dataset *ds, const char *dim)
{
    struct squall_array *a = ds ? sq_find_array(ds, dim, 0) : NULL;
    return a && sq_is_coordinate(a) && sq_many_is_countable(a) ? a : NULL;
}

static int look_at_order(struct sq_array_axis *axis, const struct sq_many_part *part, struct squall_error *err)
{
    struct numbers n;
    SQ_TRY(widen(part, is_counted_as_integer(part->type) ? SQUALL_INT64 : SQUALL_FLOAT64, &n, err));
    axis->is_unordered = direction(&n) == 0;
    sq_free(n.values);
    return 0;
}

static int take_coordinate(struct sq_array_axis *axis, struct squall_array *of_sources, struct squall_array *of_store, uint64_t length,
                           const char *dim, struct squall_error *err)
{
    struct sq_many_part added = {0}, stored = {0};
    const struct squall_array *told_by = of_store ? of_store : of_sources;
    int status = sq_many_part_read(of_sources, &added, err);
    if (!status && of_store)
        status = sq_many_part_read(of_store, &stored, err);
    if (!status && added.length != length)
        status = sq_error(err, SQUALL_EREFUSED, "%s has %llu values for %llu places", dim, (unsigned long long)added.length,
                          (unsigned long long)length);
    if (!status && of_store)
        status = append(axis, &stored, &added, dim, err);
    if (!status && !of_store)
        status = look_at_order(axis, &added, err);
    if (!status && !of_store) {
        axis->type = added.type;
        axis->values = added.values;
        added.values = NULL;
    }
    if (!status)
        status = find_times(axis, of_store ? &stored : &added, err);
    if (!status)
        status = sq_array_attributes(told_by, &axis->attributes, err);
    sq_many_part_done(&added);
    sq_many_part_done(&stored);
    return status;
}

static int make(const struct squall_dataset *sources, const struct squall_dataset *stored, const char *dim, uint64_t length,
                uint64_t stored_length, struct sq_array_axis *axis, struct squall_error *err)
{
    struct squall_array *of_sources = coordinate_of(sources, dim), *of_store = coordinate_of(stored, dim);
    axis->init_of = sq_alloc((size_t)length + 1, sizeof *axis->init_of);
    if (!axis->init_of)
        return sq_error_memory(err, length * sizeof *axis->init_of);
    if (of_store && !of_sources)
        return sq_error(err, SQUALL_EREFUSED, "the sources have no %s of numbers, which tells where in the store their values belong", dim);
    if (stored && of_sources && !of_store)
        return sq_error(err, SQUALL_EREFUSED, "the store has no %s of numbers, and the sources have; convert them into another store", dim);
    axis->count = length > stored_length ? length : stored_length;
    for (uint64_t i = 0; i < length; i++)
        axis->init_of[i] = i;
    if (of_sources)
        SQ_TRY(take_coordinate(axis, of_sources, of_store, length, dim, err));
    axis->source_index = sq_alloc((size_t)axis->count + 1, sizeof *axis->source_index);
    if (!axis->source_index)
        return sq_error_memory(err, axis->count * sizeof *axis->source_index);
    for (uint64_t i = 0; i < axis->count; i++)
        axis->source_index[i] = SQ_CUBE_NOWHERE;
    for (uint64_t i = 0; i < length; i++)
        if (axis->init_of[i] != SQ_CUBE_NOWHERE)
            axis->source_index[axis->init_of[i]] = i;
    return 0;
}

int sq_array_axis_make(const struct squall_dataset *sources, const struct squall_dataset *stored, const char *dim, uint64_t length,
                       uint64_t stored_length, struct sq_array_axis *ret, struct squall_error *err)
{
    struct sq_array_axis axis = {0};
    int status = make(sources, stored, dim, length, stored_length, &axis, err);
    if (status)
        sq_array_axis_done(&axis);
    else
        *ret = axis;
    return status;
}

void sq_array_axis_done(struct sq_array_axis *axis)
{
    sq_free(axis->values);
    sq_json_free(axis->attributes);
    sq_free(axis->init_of);
    sq_free(axis->source_index);
    sq_free(axis->times_s);
    sq_free(axis->calendar);
    *axis = (struct sq_array_axis){0};
}
