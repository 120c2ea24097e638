/* See box.h. */
#include "box.h"

#include "coordinate.h"
#include "output.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *dim_name(const struct squall_array_info *info, unsigned d, char buffer[DIM_TEXT_BYTES])
{
    if (info->dims[d][0])
        return info->dims[d];
    snprintf(buffer, DIM_TEXT_BYTES, "dim_%u", d);
    return buffer;
}

/* lat and lon are short for the long names, whichever of them the array has. */
static bool is_called(const char *has, const char *name)
{
    static const char *const ALIKE[][2] = {{"lat", "latitude"}, {"lon", "longitude"}};
    for (size_t i = 0; i < sizeof ALIKE / sizeof *ALIKE; i++)
        for (size_t k = 0; k < 2; k++)
            if (!strcmp(name, ALIKE[i][k]) && !strcmp(has, ALIKE[i][1 - k]))
                return true;
    return !strcmp(has, name);
}

static bool no_such_dim(const struct squall_array_info *info, const char *dim)
{
    const bool is_degrees = is_called("latitude", dim) || is_called("longitude", dim);
    char text[DIM_TEXT_BYTES];
    bool is_projected = false;
    fprintf(stderr, "squall get: %s has no dimension %s; it has", info->name, dim);
    for (unsigned d = 0; d < info->rank; d++) {
        fprintf(stderr, " %s", dim_name(info, d, text));
        is_projected = is_projected || !strcmp(info->dims[d], "y");
    }
    fputs(is_projected && is_degrees ? " (y and x are in the units of the grid's projection)\n" : "\n", stderr);
    return false;
}

/* By name, or by place: "0" is the first. */
static bool is_dim(const struct squall_array_info *info, unsigned d, const char *name, bool by_place)
{
    char text[DIM_TEXT_BYTES];
    if (!by_place)
        return is_called(dim_name(info, d, text), name);
    snprintf(text, sizeof text, "%u", d);
    return !strcmp(text, name);
}

/* Which dimension is meant; each may be chosen from once. */
static bool find_dim(const struct squall_array_info *info, const char *name, struct box *box, unsigned *ret)
{
    char text[DIM_TEXT_BYTES];
    for (int by_place = 0; by_place < 2; by_place++)
        for (unsigned d = 0; d < info->rank; d++) {
            if (!is_dim(info, d, name, by_place))
                continue;
            if (box->chosen[d])
                return complain("squall get: %s is chosen from twice", dim_name(info, d, text));
            box->chosen[d] = true;
            *ret = d;
            return true;
        }
    return no_such_dim(info, name);
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
        if (!next_pair(&list, name, value) || !find_dim(info, name, box, &d))
            return false;
        uint64_t length = info->shape[d];
        if (strchr(value, ':')) {
            if (!parse_range(value, length, box, d))
                return complain("squall get: %s: a range of indices is START:STOP or START:STOP:STEP with STEP ≥ 1; by values: --nearest "
                                "%s=VALUE",
                                name, name);
        } else if (!parse_index(value, length, &index)) {
            return complain("squall get: %s=%s: an index or a range of indices is wanted; by values: --nearest %s=%s", name, value, name,
                            value);
        } else if (index < 0 || index >= (int64_t)length) {
            return length ? complain("squall get: %s=%s: the index lies outside 0 to %llu", name, value, (unsigned long long)length - 1)
                          : complain("squall get: %s=%s: the dimension has no elements", name, value);
        } else {
            choose_index(box, d, (uint64_t)index);
        }
    }
    return true;
}

static bool parse_nearest(squall_dataset *ds, const struct squall_array_info *info, const char *list, struct box *box)
{
    char name[NAME_BYTES], value[VALUE_BYTES], text[DIM_TEXT_BYTES];
    unsigned d = 0;
    while (*list) {
        struct squall_error err = SQUALL_ERROR_INIT;
        struct coordinate c;
        uint64_t index;
        if (!next_pair(&list, name, value) || !find_dim(info, name, box, &d))
            return false;
        const char *dim = dim_name(info, d, text);
        if (coordinate_read(ds, info->name, info->dims[d], info->shape[d], &c, &err))
            return complain("squall get: %s: %s", dim, err.message);
        bool found = coordinate_find(&c, dim, value, &index);
        coordinate_done(&c);
        if (!found)
            return false;
        choose_index(box, d, index);
    }
    return true;
}

bool box_parse(squall_dataset *ds, squall_array *a, const struct text_list *ranges, const struct text_list *nearest, struct box *ret)
{
    struct squall_array_info info = squall_array_info(a);
    *ret = (struct box){.selection = squall_selection_all(a)};
    for (size_t i = 0; i < ranges->count; i++)
        if (!parse_selection(&info, ranges->items[i], ret))
            return false;
    for (size_t i = 0; i < nearest->count; i++)
        if (!parse_nearest(ds, &info, nearest->items[i], ret))
            return false;
    return true;
}
