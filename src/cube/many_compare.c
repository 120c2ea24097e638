/* See many_compare.h. Attributes that describe, such as history or comment, may differ; those that say what the numbers mean may not. */
#include "cube/many_compare.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/many_order.h"
#include "engine/read.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Coordinates that are larger are not read when files are opened. */
enum { COMPARED_BYTES = 1 << 20 };

void sq_drift_done(struct sq_drift *drift)
{
    for (size_t i = 0; i < drift->count; i++)
        sq_free(drift->lines[i]);
    sq_free(drift->lines);
    *drift = (struct sq_drift){0};
}

int sq_drift_add(struct sq_drift *drift, struct squall_error *err, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    SQ_TRY(SQ_GROW(drift->lines, drift->capacity, drift->count + 1, err));
    if (!(drift->lines[drift->count] = sq_strdup(line)))
        return sq_error_memory(err, sizeof line);
    drift->count++;
    return 0;
}

struct squall_array *sq_find_array(const struct squall_dataset *ds, const char *name, size_t hint)
{
    if (hint < ds->array_count && !strcmp(ds->arrays[hint]->info.name, name))
        return ds->arrays[hint];
    for (size_t i = 0; i < ds->array_count; i++)
        if (!strcmp(ds->arrays[i]->info.name, name))
            return ds->arrays[i];
    return NULL;
}

int sq_dimension_of(const struct squall_array *a, const char *dim)
{
    for (unsigned d = 0; d < a->info.rank; d++)
        if (!strcmp(a->info.dims[d], dim))
            return (int)d;
    return -1;
}

bool sq_is_coordinate(const struct squall_array *a)
{
    const char *slash = strrchr(a->info.name, '/'), *last = slash ? slash + 1 : a->info.name;
    return a->info.rank == 1 && !strcmp(a->info.dims[0], last);
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------- */

static int json_of(const struct sq_json *value, struct sq_text *out, struct squall_error *err)
{
    if (value)
        return sq_json_write(value, false, out, err);
    sq_text_add(out, "none");
    return 0;
}

struct two {
    const struct squall_array *first, *other, *counted;
    const char *first_path, *other_path;
    struct sq_drift *drift;
};

static bool is_packing(const char *attribute)
{
    static const char *const NAMES[] = {"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(attribute, NAMES[i]))
            return true;
    return false;
}

static int compare_attribute(const struct two *t, const char *name, const struct sq_json *first, const struct sq_json *other,
                             struct squall_error *err)
{
    if ((!first && !other) || (first && other && sq_json_equal(first, other)))
        return 0;
    SQ_CLEANUP_TEXT struct sq_text one = SQ_TEXT_INIT, two = SQ_TEXT_INIT;
    SQ_TRY(json_of(first, &one, err));
    SQ_TRY(json_of(other, &two, err));
    if (is_packing(name) && !t->drift->packing) {
        t->drift->packing = true;
        t->drift->packing_line = t->drift->count;
    }
    return sq_drift_add(t->drift, err, "%s: %s of %s is %s, in %s it is %s", t->other_path, name, t->other->info.name, sq_text_string(&two),
                        t->first_path, sq_text_string(&one));
}

static int compare_attributes(const struct two *t, bool but_time, struct squall_error *err)
{
    static const char *const MEANING[] = {"scale_factor", "add_offset",    "_FillValue",    "missing_value", "_Unsigned",    "valid_min",
                                          "valid_max",    "valid_range",   "standard_name", "positive",      "cell_methods", "grid_mapping",
                                          "flag_values",  "flag_meanings", "flag_masks",    "bounds",        "climatology"};
    const char *a = t->first->info.attributes, *b = t->other->info.attributes;
    if (!strcmp(a, b))
        return 0;
    SQ_CLEANUP_JSON struct sq_json *first = NULL, *other = NULL;
    SQ_TRY(sq_json_parse(a, strlen(a), &first, err));
    SQ_TRY(sq_json_parse(b, strlen(b), &other, err));
    for (unsigned i = 0; i < 2 && !but_time; i++) {
        static const char *const TIME[] = {"units", "calendar"};
        SQ_TRY(compare_attribute(t, TIME[i], sq_json_get(first, TIME[i]), sq_json_get(other, TIME[i]), err));
    }
    for (size_t i = 0; i < sizeof MEANING / sizeof *MEANING; i++)
        SQ_TRY(compare_attribute(t, MEANING[i], sq_json_get(first, MEANING[i]), sq_json_get(other, MEANING[i]), err));
    return 0;
}

/* What an enumeration's numbers are called. */
static int compare_names(const struct two *t, struct squall_error *err)
{
    const char *a = t->first->info.enum_names, *b = t->other->info.enum_names;
    SQ_CLEANUP_JSON struct sq_json *first = NULL, *other = NULL;
    if (a)
        SQ_TRY(sq_json_parse(a, strlen(a), &first, err));
    if (b)
        SQ_TRY(sq_json_parse(b, strlen(b), &other, err));
    return compare_attribute(t, "the enumeration", first, other, err);
}

/* ---- arrays ----------------------------------------------------------------------------------------------------------------------- */

static void shape_text(const struct squall_array *a, struct sq_text *out)
{
    for (unsigned d = 0; d < a->info.rank; d++)
        sq_text_printf(out, "%s%s=%" PRIu64, d ? ", " : "", a->info.dims[d][0] ? a->info.dims[d] : "?", a->info.shape[d]);
}

/* They may differ along the axis on which they are joined, the first one that has dim; a matrix may have it twice. */
static bool shapes_agree(const struct squall_array *a, const struct squall_array *b, const char *dim)
{
    const int axis = sq_dimension_of(a, dim);
    bool same = a->info.rank == b->info.rank;
    for (unsigned d = 0; same && d < a->info.rank; d++)
        same = !strcmp(a->info.dims[d], b->info.dims[d]) && ((int)d == axis || a->info.shape[d] == b->info.shape[d]);
    return same;
}

static int fatal(struct sq_drift *drift)
{
    if (!drift->fatal)
        drift->fatal_line = drift->count - 1;
    drift->fatal = true;
    return 0;
}

bool sq_values_are_compared(const struct squall_array *a)
{
    const uint64_t length = a->info.shape[0];
    return !a->info.unsupported && !sq_type_is_variable(a->info.type) && length > 0 && length <= COMPARED_BYTES &&
           length * a->info.element_bytes <= COMPARED_BYTES;
}

int sq_values_differ(struct squall_array *a, struct squall_array *b, bool *ret, struct squall_error *err)
{
    const uint64_t bytes = a->info.shape[0] * a->info.element_bytes;
    const struct squall_selection all = squall_selection_all(a);
    SQ_CLEANUP_FREE char *values = sq_alloc(2, (size_t)bytes);
    if (!values)
        return sq_error_memory(err, 2 * bytes);
    SQ_TRY(sq_array_read(a, &all, values, NULL, 1, NULL, err));
    SQ_TRY(sq_array_read(b, &all, values + bytes, NULL, 1, NULL, err));
    *ret = memcmp(values, values + bytes, (size_t)bytes) != 0;
    return 0;
}

static int compare_values(const struct two *t, struct squall_error *err)
{
    struct squall_array *a = (struct squall_array *)(uintptr_t)t->first, *b = (struct squall_array *)(uintptr_t)t->other;
    bool differ;
    if (!sq_values_are_compared(t->first))
        return 0;
    SQ_TRY(sq_values_differ(a, b, &differ, err));
    if (!differ)
        return 0;
    return sq_drift_add(t->drift, err, "%s: the values of %s are others than in %s", t->other_path, a->info.name, t->first_path);
}

static const char *sequences_of(const struct squall_array_info *info)
{
    return info->sequence_type ? info->sequence_type : "bytes";
}

static int compare_arrays(const struct two *t, const char *dim, struct squall_error *err)
{
    const struct squall_array_info *a = &t->first->info, *b = &t->other->info;
    const bool is_dim = !strcmp(a->name, dim);
    const bool counted = t->first == t->counted && sq_many_is_countable(t->other);
    if (!counted && (strcmp(a->numpy_type, b->numpy_type) != 0 || a->type != b->type)) {
        SQ_TRY(
            sq_drift_add(t->drift, err, "%s: %s is %s, in %s it is %s", t->other_path, b->name, b->type_name, t->first_path, a->type_name));
        return fatal(t->drift);
    }
    if (strcmp(sequences_of(a), sequences_of(b)) != 0) {
        SQ_TRY(sq_drift_add(t->drift, err, "%s: %s holds sequences of %s, in %s of %s", t->other_path, b->name, sequences_of(b),
                            t->first_path, sequences_of(a)));
        return fatal(t->drift);
    }
    if (!shapes_agree(t->first, t->other, dim)) {
        SQ_CLEANUP_TEXT struct sq_text first = SQ_TEXT_INIT, other = SQ_TEXT_INIT;
        shape_text(t->first, &first);
        shape_text(t->other, &other);
        SQ_TRY(sq_drift_add(t->drift, err, "%s: %s has the shape (%s), in %s it is (%s)", t->other_path, b->name, sq_text_string(&other),
                            t->first_path, sq_text_string(&first)));
        return fatal(t->drift);
    }
    SQ_TRY(compare_names(t, err));
    SQ_TRY(compare_attributes(t, t->first == t->counted, err));
    if (!counted && strcmp(a->fill_value, b->fill_value) != 0)
        SQ_TRY(sq_drift_add(t->drift, err, "%s: the fill value of %s is %s, in %s it is %s", t->other_path, b->name, b->fill_value,
                            t->first_path, a->fill_value));
    return !is_dim && sq_is_coordinate(t->first) && strcmp(a->dims[0], dim) != 0 ? compare_values(t, err) : 0;
}

int sq_compare_datasets(const struct squall_dataset *first, const struct squall_dataset *other, const char *dim,
                        const struct squall_array *counted, struct sq_drift *ret, struct squall_error *err)
{
    struct two t = {.counted = counted, .first_path = first->path, .other_path = other->path, .drift = ret};
    for (size_t i = 0; i < first->array_count; i++) {
        t.first = first->arrays[i];
        t.other = sq_find_array(other, t.first->info.name, i);
        if (t.other)
            SQ_TRY(compare_arrays(&t, dim, err));
        else
            SQ_TRY(sq_drift_add(ret, err, "%s: there is no %s, in %s there is", other->path, t.first->info.name, first->path));
    }
    for (size_t i = 0; i < other->array_count; i++)
        if (!sq_find_array(first, other->arrays[i]->info.name, i))
            SQ_TRY(sq_drift_add(ret, err, "%s: there is a %s, in %s there is none", other->path, other->arrays[i]->info.name, first->path));
    return 0;
}
