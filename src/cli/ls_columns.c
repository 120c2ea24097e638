/* The columns of squall ls: what a row says in each, as text and as JSON. */
#include "ls_internal.h"
#include "output.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define TEXT_CELL(name, expression)                                                                                                        \
    static void name(const struct row *r, char out[CELL_BYTES])                                                                            \
    {                                                                                                                                      \
        const char *text = (expression);                                                                                                   \
        snprintf(out, CELL_BYTES, "%s", text ? text : "-");                                                                                \
    }
#define NUMBER_CELL(name, expression)                                                                                                      \
    static void name(const struct row *r, char out[CELL_BYTES])                                                                            \
    {                                                                                                                                      \
        snprintf(out, CELL_BYTES, "%" PRId64, (int64_t)(expression));                                                                      \
    }

NUMBER_CELL(cell_number, r->number)
NUMBER_CELL(cell_offset, r->field->offset)
NUMBER_CELL(cell_size, r->field->size_bytes)
NUMBER_CELL(cell_param_id, r->field->param_id)
NUMBER_CELL(cell_centre, r->field->centre)
NUMBER_CELL(cell_edition, r->field->edition)
NUMBER_CELL(cell_bits, r->field->bits_per_value)
NUMBER_CELL(cell_points, r->field->point_count)
TEXT_CELL(cell_short_name, r->field->short_name)
TEXT_CELL(cell_name, r->field->name)
TEXT_CELL(cell_units, r->field->units)
TEXT_CELL(cell_cf_name, r->field->cf_name)
TEXT_CELL(cell_level_type, r->field->level_type)
TEXT_CELL(cell_step_type, r->field->step_type)
TEXT_CELL(cell_packing, r->field->packing)
TEXT_CELL(cell_grid, r->field->grid)
TEXT_CELL(cell_reason, r->field->unsupported)
/* Cells are cut where they are very long; JSON has them whole. */
#define WHOLE_TEXT(name, expression)                                                                                                       \
    TEXT_CELL(cell_##name, expression)                                                                                                     \
    static void json_##name(const struct row *r)                                                                                           \
    {                                                                                                                                      \
        print_json_string(stdout, (expression));                                                                                           \
    }
WHOLE_TEXT(path, r->path)
WHOLE_TEXT(array_name, r->array->name)
WHOLE_TEXT(array_codecs, r->array->codecs)
WHOLE_TEXT(array_reason, r->array->unsupported)
WHOLE_TEXT(array_type, r->array->type_name)

static void cell_member(const struct row *r, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, r->field->number < 0 ? "-" : "%d", (int)r->field->number);
}

/* 850, or 0-10 for a layer */
static void cell_level(const struct row *r, char out[CELL_BYTES])
{
    char top[SHORT_TEXT_BYTES], bottom[SHORT_TEXT_BYTES];
    if (isnan(r->field->level))
        snprintf(out, CELL_BYTES, "-");
    else if (isnan(r->field->level_bottom))
        snprintf(out, CELL_BYTES, "%s", number_text(r->field->level, top));
    else
        snprintf(out, CELL_BYTES, "%s-%s", number_text(r->field->level, top), number_text(r->field->level_bottom, bottom));
}

/* hours, minutes (90m) or seconds (10s); an interval as 0-6 */
static void cell_step(const struct row *r, char out[CELL_BYTES])
{
    char begin[SHORT_TEXT_BYTES], end[SHORT_TEXT_BYTES];
    duration_text(r->field->step_end_s, end);
    if (r->field->step_begin_s == r->field->step_end_s)
        snprintf(out, CELL_BYTES, "%s", end);
    else
        snprintf(out, CELL_BYTES, "%s-%s", duration_text(r->field->step_begin_s, begin), end);
}

/* The first surface, and the second of a layer. */
static void json_level(const struct row *r)
{
    print_json_double(stdout, r->field->level);
    fputs(", \"bottomLevel\": ", stdout);
    print_json_double(stdout, r->field->level_bottom);
}

/* Hours: of the end, as ecCodes' step is, and of the beginning. */
static void json_step(const struct row *r)
{
    print_json_double(stdout, (double)r->field->step_end_s / 3600);
    fputs(", \"startStep\": ", stdout);
    print_json_double(stdout, (double)r->field->step_begin_s / 3600);
}

static void json_member(const struct row *r)
{
    if (r->field->number < 0)
        fputs("null", stdout);
    else
        printf("%d", (int)r->field->number);
}

static void cell_date(const struct row *r, char out[CELL_BYTES])
{
    char text[SHORT_TEXT_BYTES];
    snprintf(out, CELL_BYTES, "%s", time_text(r->field->reference_time_s, text));
}

static void list_lengths(const uint64_t *lengths, const char *const *dims, unsigned rank, char out[CELL_BYTES])
{
    size_t at = (size_t)snprintf(out, CELL_BYTES, "(");
    for (unsigned d = 0; d < rank && at < CELL_BYTES; d++)
        at += (size_t)snprintf(out + at, CELL_BYTES - at, "%s%s%s%" PRIu64, d ? ", " : "", dims ? dims[d] : "",
                               dims && dims[d][0] ? "=" : "", lengths[d]);
    if (at < CELL_BYTES)
        snprintf(out + at, CELL_BYTES - at, ")");
}

static void cell_array_shape(const struct row *r, char out[CELL_BYTES])
{
    list_lengths(r->array->shape, r->array->dims, r->array->rank, out);
}

static void cell_array_chunks(const struct row *r, char out[CELL_BYTES])
{
    list_lengths(r->array->chunks, NULL, r->array->rank, out);
}

static void json_lengths(const uint64_t *lengths, unsigned rank)
{
    putchar('[');
    for (unsigned d = 0; d < rank; d++)
        printf("%s%" PRIu64, d ? ", " : "", lengths[d]);
    putchar(']');
}

/* With the names, which the text form has in the same column. */
static void json_array_shape(const struct row *r)
{
    json_lengths(r->array->shape, r->array->rank);
    fputs(", \"dims\": [", stdout);
    for (unsigned d = 0; d < r->array->rank; d++) {
        fputs(d ? ", " : "", stdout);
        print_json_string(stdout, r->array->dims[d]);
    }
    putchar(']');
}

static void json_array_chunks(const struct row *r)
{
    json_lengths(r->array->chunks, r->array->rank);
}

/* In memory; elements of variable length are not known until they are read. */
static bool array_bytes(const struct row *r, uint64_t *ret)
{
    uint64_t bytes = r->array->element_bytes;
    for (unsigned d = 0; d < r->array->rank; d++)
        bytes *= r->array->shape[d];
    *ret = bytes;
    return !r->array->unsupported && r->array->type != SQUALL_STRING && r->array->type != SQUALL_BYTES;
}

static void cell_array_size(const struct row *r, char out[CELL_BYTES])
{
    uint64_t bytes = 0;
    const bool known = array_bytes(r, &bytes);
    snprintf(out, CELL_BYTES, known ? "%" PRIu64 : "-", bytes);
}

static void cell_array_stored(const struct row *r, char out[CELL_BYTES])
{
    snprintf(out, CELL_BYTES, r->stored_is_known ? "%" PRIu64 : "-", r->stored_bytes);
}

/* How many bytes in memory a stored one becomes. */
static void cell_array_ratio(const struct row *r, char out[CELL_BYTES])
{
    uint64_t bytes = 0;
    const bool known = array_bytes(r, &bytes) && r->stored_is_known && r->stored_bytes > 0;
    snprintf(out, CELL_BYTES, known ? "%.2f" : "-", known ? (double)bytes / (double)r->stored_bytes : 0);
}

static const struct column OF_FIELDS[] = {
    {"number", 6, false, cell_number, NULL},
    {"offset", 10, false, cell_offset, NULL},
    {"size", 9, false, cell_size, NULL},
    {"shortName", -10, true, cell_short_name, NULL},
    {"typeOfLevel", -20, true, cell_level_type, NULL},
    {"level", 7, true, cell_level, json_level},
    {"step", 6, true, cell_step, json_step},
    {"stepType", -8, true, cell_step_type, NULL},
    {"date", -19, true, cell_date, NULL},
    {"member", 6, true, cell_member, json_member},
    {"packing", -12, true, cell_packing, NULL},
    {"bits", 4, false, cell_bits, NULL},
    {"grid", -10, true, cell_grid, NULL},
    {"reason", -1, true, cell_reason, NULL}, /* these by default, the rest on request */
    {"name", -30, true, cell_name, NULL},
    {"paramId", 7, false, cell_param_id, NULL},
    {"units", -12, true, cell_units, NULL},
    {"cfName", -30, true, cell_cf_name, NULL},
    {"centre", 6, false, cell_centre, NULL},
    {"edition", 7, false, cell_edition, NULL},
    {"points", 9, false, cell_points, NULL},
    {"path", -1, true, cell_path, json_path},
};
const struct ls_columns ls_field_columns = {OF_FIELDS, sizeof OF_FIELDS / sizeof *OF_FIELDS, 14};

static const struct column OF_ARRAYS[] = {
    {"name", -12, true, cell_array_name, json_array_name},
    {"type", -8, true, cell_array_type, json_array_type},
    {"shape", -20, true, cell_array_shape, json_array_shape},
    {"chunks", -12, true, cell_array_chunks, json_array_chunks},
    {"codecs", -12, true, cell_array_codecs, json_array_codecs},
    {"size", 9, false, cell_array_size, NULL},
    {"stored", 9, false, cell_array_stored, NULL},
    {"ratio", 6, false, cell_array_ratio, NULL},
    {"reason", -1, true, cell_array_reason, json_array_reason},
    {"path", -1, true, cell_path, json_path},
};
const struct ls_columns ls_array_columns = {OF_ARRAYS, sizeof OF_ARRAYS / sizeof *OF_ARRAYS, 9};
