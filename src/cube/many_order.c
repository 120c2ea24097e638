/* See many_order.h. */
#include "cube/many_order.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "cube/cf_time.h"
#include "engine/read.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int copy_text(const struct sq_json *attributes, const char *name, char **ret, struct squall_error *err)
{
    const char *text = sq_json_string(sq_json_get(attributes, name));
    if (text && !(*ret = sq_strdup(text)))
        return sq_error_memory(err, strlen(text));
    return 0;
}

bool sq_many_is_countable_type(enum squall_type type)
{
    return type != SQUALL_FLOAT16 && type != SQUALL_BFLOAT16 && sq_type_size(type) <= 8 &&
           (sq_type_is_float(type) || sq_type_is_integer(type));
}

bool sq_many_is_countable(const struct squall_array *a)
{
    return !a->info.unsupported && sq_many_is_countable_type(a->info.type);
}

int sq_many_part_read(struct squall_array *a, struct sq_many_part *ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    const struct squall_selection all = squall_selection_all(a);
    uint64_t bytes;
    ret->type = a->info.type;
    ret->length = 1;
    for (unsigned d = 0; d < a->info.rank; d++)
        if (!sq_mul_u64(ret->length, a->info.shape[d], &ret->length))
            return sq_error_memory(err, UINT64_MAX);
    if (!sq_mul_u64(ret->length, a->info.element_bytes, &bytes) || bytes > SIZE_MAX - 1 || !(ret->values = sq_alloc(1, (size_t)bytes + 1)))
        return sq_error_memory(err, ret->length);
    SQ_TRY(sq_array_read(a, &all, ret->values, NULL, 1, NULL, err));
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &attributes, err));
    SQ_TRY(copy_text(attributes, "units", &ret->units, err));
    return copy_text(attributes, "calendar", &ret->calendar, err);
}

void sq_many_part_done(struct sq_many_part *part)
{
    sq_free(part->values);
    sq_free(part->units);
    sq_free(part->calendar);
    *part = (struct sq_many_part){0};
}

/* ---- counted alike ---------------------------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* All parts as `to` counts, each in a copy. False: one has a value without exact counterpart, and *ret_failed says which. */
static int try_units(enum squall_type type, const struct sq_many_part *parts, size_t count, const struct sq_cf_time *from,
                     const struct sq_cf_time *to, void *values, size_t *ret_failed)
{
    const size_t element_bytes = squall_type_size(type);
    uint8_t *at = values;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, parts[i].values, (size_t)parts[i].length * element_bytes);
        if (!sq_cf_time_rebase(type, at, parts[i].length, &from[i], to)) {
            *ret_failed = i;
            return false;
        }
        at += parts[i].length * element_bytes;
    }
    return true;
}

/* Is there a type that widen_all makes of it, in which more numbers can be told? */
static bool has_wider(enum squall_type type)
{
    return squall_type_size(type) < 8 || type == SQUALL_UINT64;
}

/* A value in a type of eight bytes, int64 or float64; false: it has none there. */
static bool convert_value(enum squall_type from, const void *values, uint64_t i, enum squall_type to, void *wide)
{
    static const double EXACT_BELOW = 9007199254740992.0; /* 2^53: integers up to here are doubles, too */
    if (to == SQUALL_INT64) {
        ((int64_t *)wide)[i] = sq_integer_at(from, values, i);
        return from != SQUALL_UINT64 || ((const uint64_t *)values)[i] <= INT64_MAX;
    }
    const double number = sq_number_at(from, values, i);
    ((double *)wide)[i] = number;
    return sq_type_is_float(from) || (number <= EXACT_BELOW && number >= -EXACT_BELOW);
}

static int convert(struct sq_many_part *part, enum squall_type to, const char *name, const char *path, struct squall_error *err)
{
    void *wide = sq_alloc((size_t)part->length + 1, 8);
    if (!wide)
        return sq_error_memory(err, 8 * part->length);
    for (uint64_t i = 0; i < part->length; i++)
        if (!convert_value(part->type, part->values, i, to, wide)) {
            sq_free(wide);
            return sq_error(err, SQUALL_EREFUSED, "%s: %s has numbers that are too large to be told together with other files'", path,
                            name);
        }
    sq_free(part->values);
    part->values = wide;
    part->type = to;
    return 0;
}

/* The type in which all can be told: eight bytes wide. */
static int widen_all(struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, enum squall_type *ret,
                     struct squall_error *err)
{
    enum squall_type wide = SQUALL_INT64;
    for (size_t i = 0; i < count; i++)
        if (sq_type_is_float(parts[i].type))
            wide = SQUALL_FLOAT64;
    for (size_t i = 0; i < count; i++)
        SQ_TRY(convert(&parts[i], wide, name, paths[i], err));
    *ret = wide;
    return 0;
}

static int cannot_count(const char *name, const char *path, const char *units, const char *calendar, const struct sq_many_part *first,
                        const char *first_path, struct squall_error *err)
{
    return sq_error(err, SQUALL_EREFUSED,
                    "%s: %s counts \"%s\" (calendar %s), which cannot be told exactly together with %s, \"%s\" (calendar %s)", path, name,
                    units ? units : "", calendar ? calendar : "standard", first_path, first->units ? first->units : "",
                    first->calendar ? first->calendar : "standard");
}

/* A part that counts otherwise than part i. */
static size_t find_other(const struct sq_many_part *parts, size_t count, size_t i)
{
    size_t other = 0;
    while (other + 1 < count && same_text(parts[other].units, parts[i].units) && same_text(parts[other].calendar, parts[i].calendar))
        other++;
    return other;
}

static int no_time(const struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, size_t i,
                   struct squall_error *err)
{
    const struct sq_many_part *part = &parts[i], *other = &parts[find_other(parts, count, i)];
    return sq_error(err, SQUALL_EREFUSED,
                    "%s: %s counts \"%s\" (calendar %s), no unit of fixed length since a date which that calendar has; %s counts \"%s\" "
                    "(calendar %s), so the two cannot be told together",
                    paths[i], name, part->units ? part->units : "", part->calendar ? part->calendar : "standard", paths[other - parts],
                    other->units ? other->units : "", other->calendar ? other->calendar : "standard");
}

static int parse_all(const struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, struct sq_cf_time *from,
                     struct squall_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *units = parts[i].units, *calendar = parts[i].calendar;
        if (!units || !sq_cf_time_parse(units, calendar, &from[i]))
            return no_time(parts, paths, count, name, i, err);
        if (from[i].calendar != from[0].calendar)
            return cannot_count(name, paths[i], units, calendar, &parts[0], paths[0], err);
    }
    return 0;
}

/* Their units differ: count all as the first, else in the coarsest finer unit, else in a wider type. */
static int count_alike(struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, struct sq_many_coordinate *c,
                       struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_cf_time *from = sq_alloc(count, sizeof *from);
    size_t failed = 0;
    if (!from)
        return sq_error_memory(err, count * sizeof *from);
    SQ_TRY(parse_all(parts, paths, count, name, from, err));
    for (bool wide = false;; wide = true) {
        struct sq_cf_time to = from[0];
        do
            if (try_units(c->type, parts, count, from, &to, c->values, &failed)) {
                c->units = sq_cf_time_units(&to);
                return c->units ? 0 : sq_error_memory(err, 64);
            }
        while (sq_cf_time_refine(&to));
        if (wide || !has_wider(c->type)) {
            const size_t other = find_other(parts, count, failed);
            return cannot_count(name, paths[failed], parts[failed].units, parts[failed].calendar, &parts[other], paths[other], err);
        }
        SQ_TRY(widen_all(parts, paths, count, name, &c->type, err));
    }
}

/* ---- the order -------------------------------------------------------------------------------------------------------------------- */

struct place {
    double first, last;
    size_t file;
    uint64_t begin, length; /* of its values in the coordinate */
};

static int compare_places(const struct place *a, const struct place *b, int sign)
{
    if (a->length == 0 || b->length == 0 || a->first == b->first || isnan(a->first) || isnan(b->first))
        return a->file < b->file ? -1 : a->file > b->file;
    return a->first < b->first ? -sign : sign;
}

static int rising(const void *a, const void *b)
{
    return compare_places(a, b, 1);
}

static int falling(const void *a, const void *b)
{
    return compare_places(a, b, -1);
}

/* Does the coordinate of most files fall? The first that has two values says it. */
static bool does_fall(const struct place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (places[i].length > 1)
            return places[i].last < places[i].first;
    return false;
}

static int note_disorder(enum squall_type type, const void *values, const struct place *places, const char *const *paths, size_t count,
                         const char *name, double sign, struct sq_drift *drift, struct squall_error *err)
{
    const struct place *before = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct place *p = &places[i];
        bool in_order = true;
        for (uint64_t k = 1; k < p->length; k++)
            in_order = in_order && sign * (sq_number_at(type, values, p->begin + k) - sq_number_at(type, values, p->begin + k - 1)) > 0;
        if (!in_order)
            SQ_TRY(sq_drift_add(drift, err, "%s: %s does not go one way", paths[p->file], name));
        if (before && p->length > 0 && !(sign * (p->first - before->last) > 0))
            SQ_TRY(sq_drift_add(drift, err, "%s: %s begins at %.10g, but %s ends at %.10g: the files overlap or are in no order",
                                paths[p->file], name, p->first, paths[before->file], before->last));
        if (p->length > 0)
            before = p;
    }
    return 0;
}

static int put_in_order(struct sq_many_coordinate *c, struct place *places, size_t count, size_t *order, struct squall_error *err)
{
    const size_t element_bytes = squall_type_size(c->type);
    uint8_t *sorted = sq_alloc((size_t)c->length + 1, element_bytes);
    uint64_t at = 0;
    if (!sorted)
        return sq_error_memory(err, c->length * element_bytes);
    for (size_t i = 0; i < count; i++) {
        order[i] = places[i].file;
        memcpy(sorted + at * element_bytes, (const uint8_t *)c->values + places[i].begin * element_bytes,
               (size_t)places[i].length * element_bytes);
        places[i].begin = at;
        at += places[i].length;
    }
    sq_free(c->values);
    c->values = sorted;
    return 0;
}

static int find_order(const struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, enum squall_order how,
                      size_t *order, struct sq_drift *drift, struct sq_many_coordinate *c, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct place *places = sq_alloc_zero(count, sizeof *places);
    uint64_t at = 0;
    if (!places)
        return sq_error_memory(err, count * sizeof *places);
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){.file = i, .begin = at, .length = parts[i].length};
        if (parts[i].length > 0) {
            places[i].first = sq_number_at(c->type, c->values, at);
            places[i].last = sq_number_at(c->type, c->values, at + parts[i].length - 1);
        }
        at += parts[i].length;
    }
    const bool falls = does_fall(places, count);
    if (how == SQUALL_ORDER_COORDINATES)
        qsort(places, count, sizeof *places, falls ? falling : rising);
    SQ_TRY(put_in_order(c, places, count, order, err));
    return note_disorder(c->type, c->values, places, paths, count, name, falls ? -1 : 1, drift, err);
}

int sq_many_order(struct sq_many_part *parts, const char *const *paths, size_t count, const char *name, enum squall_order how,
                  size_t *order, struct sq_drift *drift, struct sq_many_coordinate *ret, struct squall_error *err)
{
    struct sq_many_coordinate c = {.type = parts[0].type};
    bool alike = true, one_type = true;
    for (size_t i = 0; i < count; i++) {
        alike = alike && same_text(parts[i].units, parts[0].units) && same_text(parts[i].calendar, parts[0].calendar);
        one_type = one_type && parts[i].type == parts[0].type;
        if (!sq_add_u64(c.length, parts[i].length, &c.length) || c.length > SIZE_MAX / 16)
            return sq_error_memory(err, c.length);
    }
    if (!one_type)
        SQ_TRY(widen_all(parts, paths, count, name, &c.type, err));
    if (!(c.values = sq_alloc((size_t)c.length + 1, 8))) /* room for the wider type */
        return sq_error_memory(err, 8 * c.length);
    int status = 0;
    uint8_t *at = c.values;
    for (size_t i = 0; i < count && alike; i++) {
        const size_t bytes = (size_t)parts[i].length * squall_type_size(c.type);
        memcpy(at, parts[i].values, bytes);
        at += bytes;
    }
    if (!alike)
        status = count_alike(parts, paths, count, name, &c, err);
    if (!status)
        status = find_order(parts, paths, count, name, how, order, drift, &c, err);
    if (status) {
        sq_free(c.values);
        sq_free(c.units);
        return status;
    }
    *ret = c;
    return 0;
}

int sq_many_count_bounds(struct sq_many_part *parts, const struct sq_many_part *times, const char *const *paths, size_t count,
                         const char *name, const char *units, struct sq_drift *drift, struct sq_many_coordinate *ret,
                         struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_cf_time *from = sq_alloc(count, sizeof *from);
    struct sq_many_coordinate c = {.type = parts[0].type};
    struct sq_cf_time to;
    size_t failed = 0;
    for (size_t i = 0; i < count; i++)
        c.length += parts[i].length; /* all of them are in memory */
    SQ_CLEANUP_FREE void *values = sq_alloc((size_t)c.length + 1, 8);
    if (!from || !values)
        return sq_error_memory(err, 8 * c.length);
    SQ_TRY(parse_all(times, paths, count, name, from, err));
    if (!sq_cf_time_parse(units, times[0].calendar, &to))
        return no_time(times, paths, count, name, 0, err);
    bool exact = try_units(c.type, parts, count, from, &to, values, &failed);
    if (!exact && has_wider(c.type)) {
        SQ_TRY(widen_all(parts, paths, count, name, &c.type, err));
        exact = try_units(c.type, parts, count, from, &to, values, &failed);
    }
    if (!exact)
        return sq_drift_add(drift, err, "%s: %s counts \"%s\" and cannot be told exactly in \"%s\" as other files' are; it is left out",
                            paths[failed], name, times[failed].units, units);
    c.values = values;
    values = NULL;
    *ret = c;
    return 0;
}
