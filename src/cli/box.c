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

static bool no_such_dim(const struct squall_array_info *info, const char *dim, bool is_degrees)
{
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

/* Which dimension is meant, lat and lon being short for the long names; each may be chosen from once. */
static bool find_dim(const struct squall_array_info *info, const char *name, struct box *box, unsigned *ret)
{
    const char *dim = !strcmp(name, "lat") ? "latitude" : !strcmp(name, "lon") ? "longitude" : name;
    char text[DIM_TEXT_BYTES];
    for (unsigned d = 0; d < info->rank; d++) {
        const char *has = dim_name(info, d, text);
        if (strcmp(has, dim) != 0 && strcmp(has, name) != 0)
            continue;
        if (box->chosen[d])
            return complain("squall get: %s is chosen from twice", has);
        box->chosen[d] = true;
        *ret = d;
        return true;
    }
    return no_such_dim(info, dim, !strcmp(dim, "latitude") || !strcmp(dim, "longitude"));
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
