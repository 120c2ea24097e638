/* See coordinate.h. */
#include "coordinate.h"

#include "attributes.h"
#include "element.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };
_Static_assert((int)SQUALL_DATE_BYTES <= (int)SHORT_TEXT_BYTES, "a date is a short text");

static const struct {
    const char *name;
    double seconds;
} SPAN_UNITS[] = {{"seconds", 1}, {"minutes", 60}, {"hours", 3600}, {"days", 86400}};

static const struct {
    const char *suffix;
    double seconds;
} SUFFIXES[] = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};

#define COUNT(table) (sizeof(table) / sizeof *(table))

bool is_time(const char *units, const char *calendar)
{
    char text[SQUALL_DATE_BYTES];
    return strstr(units, "since") && !squall_date_of_count(units, calendar, 0, text, NULL);
}

static void find_kind(struct coordinate *c)
{
    c->kind = COORDINATE_NUMBER;
    if (is_time(c->units, c->calendar))
        c->kind = COORDINATE_TIME;
    for (size_t i = 0; i < COUNT(SPAN_UNITS); i++)
        if (!strcmp(c->units, SPAN_UNITS[i].name)) {
            c->kind = COORDINATE_SPAN;
            c->unit_s = SPAN_UNITS[i].seconds;
        }
}

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, list[i]))
            return true;
    return false;
}

/* By its units as CF spells them; or by a name, unless the units are others than degrees. */
static bool says_longitude(const char *attributes, const char *dim, const char *units)
{
    static const char *const EAST[] = {"degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"};
    static const char *const NAMES[] = {"longitude", "lon"}, *const DEGREES[] = {"", "degrees", "degree"};
    char standard_name[COORDINATE_UNITS_BYTES];
    if (is_one_of(units, EAST, COUNT(EAST)))
        return true;
    attribute_text(attributes, "standard_name", standard_name, sizeof standard_name);
    return (is_one_of(dim, NAMES, COUNT(NAMES)) || !strcmp(standard_name, "longitude")) && is_one_of(units, DEGREES, COUNT(DEGREES));
}

/* c->length of them, every step-th. */
static int read_numbers(squall_array *a, uint64_t step, struct coordinate *c, struct squall_error *err)
{
    struct squall_selection all = squall_selection_all(a);
    all.count[0] = c->length;
    all.step[0] = step;
    const struct squall_array_info info = squall_array_info(a);
    const bool counts_time = info.type == SQUALL_DATETIME64 || info.type == SQUALL_TIMEDELTA64;
    const double unit_s = counts_time ? element_unit_s(&info) : 1;
    void *raw = malloc(c->length * info.element_bytes + 1);
    c->numbers = calloc(c->length + 1, sizeof *c->numbers);
    int status = raw && c->numbers ? squall_array_read(a, &all, raw, NULL, err) : SQUALL_ENOMEM;
    for (size_t i = 0; !status && i < c->length; i++) {
        element_number(&info, raw, i, &c->numbers[i]);
        c->numbers[i] = counts_time && ((const int64_t *)raw)[i] == INT64_MIN ? (double)NAN : c->numbers[i] * unit_s;
    }
    free(raw);
    return status;
}

static int read_texts(squall_array *a, struct coordinate *c, struct squall_error *err)
{
    struct squall_selection all = squall_selection_all(a);
    struct squall_bytes *texts = calloc(c->length + 1, sizeof *texts);
    c->texts = calloc(c->length + 1, sizeof *c->texts);
    int status = texts && c->texts ? squall_array_read(a, &all, texts, NULL, err) : SQUALL_ENOMEM;
    for (size_t i = 0; !status && i < c->length; i++)
        c->texts[i] = texts[i].data;
    free(texts);
    return status;
}

/* Texts of a fixed length. */
static int read_fixed_texts(squall_array *a, struct coordinate *c, struct squall_error *err)
{
    const struct squall_array_info info = squall_array_info(a);
    struct squall_selection all = squall_selection_all(a);
    void *raw = malloc(c->length * info.element_bytes + 1);
    c->texts = calloc(c->length + 1, sizeof *c->texts);
    int status = raw && c->texts ? squall_array_read(a, &all, raw, NULL, err) : SQUALL_ENOMEM;
    for (size_t i = 0; !status && i < c->length; i++)
        if (!(c->texts[i] = element_text(&info, raw, i)))
            status = SQUALL_ENOMEM;
    free(raw);
    return status;
}

/* How the array's elements label a dimension; COORDINATE_NONE: not at all. */
static enum coordinate_kind kind_of(const struct squall_array_info *info, struct coordinate *c)
{
    switch (info->type) {
    case SQUALL_STRING:
    case SQUALL_TEXT:
        return COORDINATE_TEXT;
    case SQUALL_RAW:
        return !strncmp(info->numpy_type, "|S", 2) ? COORDINATE_TEXT : COORDINATE_NONE;
    case SQUALL_DATETIME64:
        snprintf(c->units, sizeof c->units, "seconds since 1970-01-01");
        snprintf(c->calendar, sizeof c->calendar, "proleptic_gregorian");
        return element_unit_s(info) > 0 ? COORDINATE_TIME : COORDINATE_NONE;
    case SQUALL_TIMEDELTA64:
        c->unit_s = 1;
        return element_unit_s(info) > 0 ? COORDINATE_SPAN : COORDINATE_NONE;
    default:
        break;
    }
    if (info->type == SQUALL_BOOL || info->type == SQUALL_FLOAT16 || info->type > SQUALL_FLOAT64)
        return COORDINATE_NONE;
    find_kind(c);
    return c->kind;
}

squall_array *coordinate_array(const squall_dataset *ds, const char *of, const char *dim, uint64_t length)
{
    squall_array *found = NULL;
    char path[PATH_BYTES];
    size_t group = strlen(of);
    while (dim[0] && !found && group > 0) {
        while (group > 0 && of[group - 1] != '/')
            group--;
        const int wanted = snprintf(path, sizeof path, "%.*s%s", (int)group, of, dim);
        if (wanted < 0 || (size_t)wanted >= sizeof path || squall_dataset_array(ds, path, &found, NULL))
            found = NULL;
        group -= group > 0;
        if (found) {
            const struct squall_array_info info = squall_array_info(found);
            found = info.rank == 1 && info.shape[0] == length && !info.unsupported ? found : NULL;
        }
    }
    return found;
}

/* ends: the first and the last element only. */
static int read_labels(squall_dataset *ds, const char *of, const char *dim, uint64_t length, bool ends, struct coordinate *ret,
                       struct squall_error *err)
{
    struct coordinate c = {.length = ends && length > 1 ? 2 : length};
    const uint64_t step = ends && length > 1 ? length - 1 : 1;
    squall_array *a = coordinate_array(ds, of, dim, length);
    *ret = (struct coordinate){0};
    if (!a)
        return 0;
    struct squall_array_info info = squall_array_info(a);
    attribute_text(info.attributes, "units", c.units, sizeof c.units); /* one that is cut is none that a rule here knows */
    attribute_text(info.attributes, "calendar", c.calendar, sizeof c.calendar);
    c.kind = kind_of(&info, &c);
    c.is_single = info.type == SQUALL_FLOAT32;
    c.is_longitude = c.kind == COORDINATE_NUMBER && says_longitude(info.attributes, dim, c.units);
    if (c.kind == COORDINATE_NONE || (ends && c.kind == COORDINATE_TEXT))
        return 0;
    int status = info.type == SQUALL_STRING  ? read_texts(a, &c, err)
                 : c.kind == COORDINATE_TEXT ? read_fixed_texts(a, &c, err)
                                             : read_numbers(a, step, &c, err);
    if (status) {
        if (status == SQUALL_ENOMEM && !err->message[0])
            *err = (struct squall_error){SQUALL_ENOMEM, 0, "out of memory"};
        coordinate_done(&c);
        return status;
    }
    *ret = c;
    return 0;
}

int coordinate_read(squall_dataset *ds, const char *of, const char *dim, uint64_t length, struct coordinate *ret, struct squall_error *err)
{
    return read_labels(ds, of, dim, length, false, ret, err);
}

int coordinate_read_ends(squall_dataset *ds, const char *of, const char *dim, uint64_t length, struct coordinate *ret,
                         struct squall_error *err)
{
    return read_labels(ds, of, dim, length, true, ret, err);
}

void coordinate_done(struct coordinate *c)
{
    for (uint64_t i = 0; c->texts && i < c->length; i++)
        free(c->texts[i]);
    free(c->texts);
    free(c->numbers);
    *c = (struct coordinate){0};
}

/* Nothing is no span: 0 needs no unit, all else does. */
static bool parse_span(const char *text, double *ret_s)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text)
        return false;
    *ret_s = 0;
    if (!*end)
        return value == 0;
    for (size_t i = 0; i < COUNT(SUFFIXES); i++)
        if (!strcmp(end, SUFFIXES[i].suffix)) {
            *ret_s = value * SUFFIXES[i].seconds;
            return true;
        }
    return false;
}

static bool parse_number(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return end != text && !*end && !isnan(*ret);
}

static bool parse_value(const struct coordinate *c, const char *dim, const char *text, double *ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    switch (c->kind) {
    case COORDINATE_TIME:
        return !squall_count_of_date(c->units, c->calendar, text, ret, &err) ||
               complain("squall get: %s=%s: a date is wanted, such as 2022-01-01T06:00: %s", dim, text, err.message);
    case COORDINATE_SPAN:
        if (!parse_span(text, ret))
            return complain("squall get: %s=%s: a time with its unit is wanted, such as 6h or 90min", dim, text);
        *ret /= c->unit_s;
        return true;
    default:
        return parse_number(text, ret) || complain("squall get: %s=%s: a number is wanted%s%s%s", dim, text, c->units[0] ? " (" : "",
                                                   c->units, c->units[0] ? ")" : "");
    }
}

static double distance_of(const struct coordinate *c, double a, double b)
{
    double distance = fabs(a - b);
    if (c->is_longitude) {
        distance = fmod(distance, 360);
        distance = distance > 180 ? 360 - distance : distance;
    }
    return distance;
}

static uint64_t nearest_index(const struct coordinate *c, double wanted)
{
    uint64_t best = 0;
    double least = INFINITY;
    for (uint64_t i = 0; i < c->length; i++) {
        double distance = distance_of(c, c->numbers[i], wanted);
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}

/* Further from its nearest than any two neighbours are from each other: that is outside. */
static void warn_if_outside(const struct coordinate *c, const char *dim, const char *text, double wanted, uint64_t taken)
{
    char first[SHORT_TEXT_BYTES], last[SHORT_TEXT_BYTES], near[SHORT_TEXT_BYTES];
    double step = 0;
    for (uint64_t i = 1; i < c->length; i++)
        step = fmax(step, distance_of(c, c->numbers[i], c->numbers[i - 1]));
    if (step > 0 && distance_of(c, c->numbers[taken], wanted) > step)
        warn_line("%s=%s lies outside its coordinate, %s to %s; %s is taken", dim, text, coordinate_label(c, 0, first),
                  coordinate_label(c, c->length - 1, last), coordinate_label(c, taken, near));
}

static bool equal_text(const struct coordinate *c, const char *dim, const char *text, uint64_t *ret)
{
    for (uint64_t i = 0; i < c->length; i++)
        if (!strcmp(c->texts[i], text)) {
            *ret = i;
            return true;
        }
    return complain("squall get: %s=%s: there is none of that name (squall get PATH %s lists them)", dim, text, dim);
}

bool coordinate_find(const struct coordinate *c, const char *dim, const char *text, uint64_t *ret)
{
    double wanted = 0;
    if (c->kind == COORDINATE_NONE || c->length == 0)
        return complain("squall get: %s has no coordinate values to be near to; use -s %s=INDEX", dim, dim);
    if (c->kind == COORDINATE_TEXT)
        return equal_text(c, dim, text, ret);
    if (!parse_value(c, dim, text, &wanted))
        return false;
    *ret = nearest_index(c, wanted);
    warn_if_outside(c, dim, text, wanted, *ret);
    return true;
}

/* In the greatest unit of which it is a whole number; days only where they are wanted. */
static const char *span_text(double seconds, bool in_days, char buffer[SHORT_TEXT_BYTES])
{
    static const struct {
        char letter;
        double seconds;
    } UNITS[] = {{'d', 86400}, {'h', 3600}, {'m', 60}};
    char text[SHORT_TEXT_BYTES];
    for (size_t i = in_days ? 0 : 1; i < COUNT(UNITS); i++)
        if (fmod(seconds, UNITS[i].seconds) == 0) {
            snprintf(buffer, SHORT_TEXT_BYTES, "%s%c", number_text(seconds / UNITS[i].seconds, text), UNITS[i].letter);
            return buffer;
        }
    snprintf(buffer, SHORT_TEXT_BYTES, isfinite(seconds) ? "%.50ss" : "%.50s", number_text(seconds, text));
    return buffer;
}

const char *coordinate_label(const struct coordinate *c, uint64_t index, char buffer[SHORT_TEXT_BYTES])
{
    if ((c->kind == COORDINATE_TIME || c->kind == COORDINATE_SPAN) && isnan(c->numbers[index]))
        return "NaT";
    switch (c->kind) {
    case COORDINATE_TEXT:
        return c->texts[index];
    case COORDINATE_TIME:
        return squall_date_of_count(c->units, c->calendar, c->numbers[index], buffer, NULL) ? number_text(c->numbers[index], buffer)
                                                                                            : buffer;
    case COORDINATE_SPAN:
        return span_text(c->numbers[index] * c->unit_s, c->unit_s == 86400, buffer);
    default:
        return c->is_single ? single_text((float)c->numbers[index], buffer) : number_text(c->numbers[index], buffer);
    }
}

double even_spacing(const double *values, uint64_t count)
{
    char text[32];
    if (count < 2)
        return (double)NAN;
    double spacing = (values[count - 1] - values[0]) / (double)(count - 1);
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs(values[i] - (values[0] + (double)i * spacing)) <= 1e-4 * fabs(spacing)))
            return (double)NAN;
    snprintf(text, sizeof text, "%.12g", spacing);
    return strtod(text, NULL);
}

/* One unit of a time. */
static double unit_seconds(const struct coordinate *c)
{
    double first, second;
    if (squall_count_of_date(c->units, c->calendar, "2000-01-01", &first, NULL) ||
        squall_count_of_date(c->units, c->calendar, "2000-01-02", &second, NULL))
        return (double)NAN;
    return 86400 / (second - first);
}

const char *coordinate_spacing(const struct coordinate *c, char buffer[SHORT_TEXT_BYTES])
{
    const double spacing = even_spacing(c->numbers, c->length);
    buffer[0] = 0;
    if (isnan(spacing))
        return buffer;
    if (c->kind == COORDINATE_TIME)
        return span_text(spacing * unit_seconds(c), true, buffer);
    if (c->kind == COORDINATE_SPAN)
        return span_text(spacing * c->unit_s, c->unit_s == 86400, buffer);
    return c->is_single ? single_text((float)spacing, buffer) : number_text(spacing, buffer);
}
