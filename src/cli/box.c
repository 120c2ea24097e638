/* See box.h. */
#include "box.h"

#include "output.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_BYTES = 64, VALUE_BYTES = 64 };

/* Take "name=value" from the front of a comma-separated list. */
static bool next_pair(const char **list, char name[NAME_BYTES], char value[VALUE_BYTES])
{
    size_t length = strcspn(*list, ","), key = strcspn(*list, "=");
    if (key >= length || key >= NAME_BYTES || length - key - 1 >= VALUE_BYTES)
        return complain("squall get: %.*s: NAME=VALUE is wanted", (int)length, *list);
    memcpy(name, *list, key);
    name[key] = 0;
    memcpy(value, *list + key + 1, length - key - 1);
    value[length - key - 1] = 0;
    *list += length + ((*list)[length] == ',');
    return true;
}

static bool find_dim(const struct squall_array_info *info, const char *name, unsigned *ret)
{
    for (unsigned d = 0; d < info->rank; d++)
        if (!strcmp(info->dims[d], name)) {
            *ret = d;
            return true;
        }
    fprintf(stderr, "squall get: %s has no dimension %s; it has", info->name, name);
    for (unsigned d = 0; d < info->rank; d++)
        fprintf(stderr, " %s", info->dims[d]);
    fputc('\n', stderr);
    return false;
}

static bool parse_index(const char *text, uint64_t length, int64_t *ret)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end)
        return false;
    *ret = value < 0 ? value + (int64_t)length : value;
    return true;
}

/* "a:b:c" with parts left out, clipped to the length as numpy does. */
static bool parse_range(char *text, uint64_t length, struct box *box, unsigned d)
{
    char *first = text, *second = strchr(first, ':'), *third = NULL;
    *second++ = 0;
    if ((third = strchr(second, ':')))
        *third++ = 0;
    int64_t start = 0, stop = (int64_t)length, step = 1;
    if ((*first && !parse_index(first, length, &start)) || (*second && !parse_index(second, length, &stop)) ||
        (third && *third && (!parse_index(third, 0, &step) || step < 1)))
        return false;
    start = start < 0 ? 0 : start > (int64_t)length ? (int64_t)length : start;
    stop = stop < 0 ? 0 : stop > (int64_t)length ? (int64_t)length : stop;
    box->selection.start[d] = (uint64_t)start;
    box->selection.step[d] = (uint64_t)step;
    box->selection.count[d] = stop > start ? (uint64_t)((stop - start + step - 1) / step) : 0;
    return true;
}

static void choose_index(struct box *box, unsigned d, uint64_t index)
{
    box->selection.start[d] = index;
    box->selection.count[d] = 1;
    box->selection.step[d] = 1;
    box->dropped[d] = true;
}

static bool parse_selection(const struct squall_array_info *info, const char *list, struct box *box)
{
    char name[NAME_BYTES], value[VALUE_BYTES];
    unsigned d = 0;
    int64_t index = 0;
    while (*list) {
        if (!next_pair(&list, name, value) || !find_dim(info, name, &d))
            return false;
        uint64_t length = info->shape[d];
        if (strchr(value, ':')) {
            if (!parse_range(value, length, box, d))
                return complain("squall get: %s: a range is START:STOP or START:STOP:STEP with STEP ≥ 1", name);
        } else if (!parse_index(value, length, &index)) {
            return complain("squall get: %s=%s: an index or a range is wanted", name, value);
        } else if (index < 0 || index >= (int64_t)length) {
            return complain("squall get: %s=%s: outside 0 to %llu", name, value, (unsigned long long)length - 1);
        } else {
            choose_index(box, d, (uint64_t)index);
        }
    }
    return true;
}

static bool is_1d_numeric(const struct squall_array_info *info, uint64_t length)
{
    return info->rank == 1 && info->shape[0] == length && info->type != SQUALL_STRING && info->type != SQUALL_FLOAT16 &&
           info->type != SQUALL_BOOL;
}

static double element(const void *values, enum squall_type type, size_t i)
{
    switch (type) {
    case SQUALL_INT8:
        return ((const int8_t *)values)[i];
    case SQUALL_UINT8:
        return ((const uint8_t *)values)[i];
    case SQUALL_INT16:
        return ((const int16_t *)values)[i];
    case SQUALL_UINT16:
        return ((const uint16_t *)values)[i];
    case SQUALL_INT32:
        return ((const int32_t *)values)[i];
    case SQUALL_UINT32:
        return ((const uint32_t *)values)[i];
    case SQUALL_INT64:
        return (double)((const int64_t *)values)[i];
    case SQUALL_UINT64:
        return (double)((const uint64_t *)values)[i];
    case SQUALL_FLOAT32:
        return (double)((const float *)values)[i];
    default:
        return ((const double *)values)[i];
    }
}

double *coordinate_values(squall_dataset *ds, const char *dim, uint64_t length)
{
    squall_array *a;
    if (squall_dataset_array(ds, dim, &a, NULL))
        return NULL;
    struct squall_array_info info = squall_array_info(a);
    if (!is_1d_numeric(&info, length))
        return NULL;
    struct squall_selection all = squall_selection_all(a);
    void *raw = malloc(length * squall_type_size(info.type) + 1);
    double *values = calloc(length + 1, sizeof *values);
    if (raw && values && squall_array_read(a, &all, raw, NULL, NULL) == 0) {
        for (size_t i = 0; i < length; i++)
            values[i] = element(raw, info.type, i);
    } else {
        free(values);
        values = NULL;
    }
    free(raw);
    return values;
}

bool coordinate_is_time(squall_dataset *ds, const char *dim)
{
    squall_array *a;
    return squall_dataset_array(ds, dim, &a, NULL) == 0 && strstr(squall_array_info(a).attributes, "seconds since 1970-01-01") != NULL;
}

/* A number; 6h, 90m, 2d in seconds; a date as seconds since 1970. */
static bool parse_value(const char *text, double *ret)
{
    char *end;
    struct tm when = {0};
    double value = strtod(text, &end);
    if (end != text && !*end) {
        *ret = value;
        return true;
    }
    static const struct {
        const char *unit;
        double seconds;
    } UNITS[] = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    for (size_t i = 0; end != text && i < sizeof UNITS / sizeof *UNITS; i++)
        if (!strcmp(end, UNITS[i].unit)) {
            *ret = value * UNITS[i].seconds;
            return true;
        }
    static const char *const FORMS[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        const char *left = strptime(text, FORMS[i], &when);
        if (left && !*left) {
            *ret = (double)timegm(&when);
            return true;
        }
        when = (struct tm){0};
    }
    return false;
}

static size_t nearest_index(const double *values, size_t length, double wanted, bool is_longitude)
{
    size_t best = 0;
    double least = INFINITY;
    for (size_t i = 0; i < length; i++) {
        double distance = fabs(values[i] - wanted);
        if (is_longitude) {
            distance = fmod(distance, 360);
            distance = distance > 180 ? 360 - distance : distance;
        }
        if (distance < least) {
            least = distance;
            best = i;
        }
    }
    return best;
}

static bool parse_nearest(squall_dataset *ds, const struct squall_array_info *info, const char *list, struct box *box)
{
    char name[NAME_BYTES], value[VALUE_BYTES];
    unsigned d = 0;
    double wanted = 0;
    while (*list) {
        if (!next_pair(&list, name, value))
            return false;
        const char *dim = !strcmp(name, "lat") ? "latitude" : !strcmp(name, "lon") ? "longitude" : name;
        if (!find_dim(info, dim, &d))
            return false;
        if (!parse_value(value, &wanted))
            return complain("squall get: %s=%s: a number, a duration (6h) or a date is wanted", name, value);
        double *values = coordinate_values(ds, dim, info->shape[d]);
        if (!values || !info->shape[d]) {
            free(values);
            return complain("squall get: %s has no coordinate values to be near to; use -s %s=INDEX", dim, dim);
        }
        choose_index(box, d, nearest_index(values, info->shape[d], wanted, !strcmp(dim, "longitude")));
        free(values);
    }
    return true;
}

bool box_parse(squall_dataset *ds, squall_array *a, const char *ranges, const char *nearest, struct box *ret)
{
    struct squall_array_info info = squall_array_info(a);
    *ret = (struct box){.selection = squall_selection_all(a)};
    return (!ranges || parse_selection(&info, ranges, ret)) && (!nearest || parse_nearest(ds, &info, nearest, ret));
}
