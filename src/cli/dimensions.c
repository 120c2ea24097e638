/* See dimensions.h. */
#include "dimensions.h"

#include "coordinate.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Those are read whole; of longer ones, and where it would take many reads, the ends are. */
enum { WHOLE_LENGTH_MOST = 1 << 20, WHOLE_CHUNKS_MOST = 256 };

static bool is_grids(const struct grid_list *grids, const char *name)
{
    for (size_t i = 0; i < grids->count; i++)
        for (unsigned d = 0; d < grids->grids[i].rank; d++)
            if (!strcmp(grids->grids[i].dims[d], name))
                return true;
    return false;
}

static void describe(struct dimension *d, const struct coordinate *c, bool whole)
{
    const uint64_t last = c->length - 1;
    char text[SHORT_TEXT_BYTES];
    snprintf(d->first, sizeof d->first, "%s", coordinate_label(c, 0, text));
    snprintf(d->last, sizeof d->last, "%s", coordinate_label(c, last, text));
    d->is_quoted = c->kind != COORDINATE_NUMBER || !isfinite(c->numbers[0]) || !isfinite(c->numbers[last]);
    if (whole)
        coordinate_spacing(c, d->spacing);
    if (c->kind == COORDINATE_NUMBER)
        snprintf(d->units, sizeof d->units, "%s", c->units);
}

/* A coordinate that cannot be read costs only its range. */
static int find_range(struct dimension_list *list, squall_dataset *ds, struct dimension *d, struct squall_error *err)
{
    squall_array *a = coordinate_array(ds, d->array, d->name, d->length);
    struct squall_error why = SQUALL_ERROR_INIT;
    struct coordinate c = {0};
    if (!a || d->length == 0)
        return 0;
    const uint64_t chunk = squall_array_info(a).chunks[0];
    const bool whole = d->length <= WHOLE_LENGTH_MOST && d->length / (chunk ? chunk : 1) <= WHOLE_CHUNKS_MOST;
    const int status = (whole ? coordinate_read : coordinate_read_ends)(ds, d->array, d->name, d->length, &c, &why);
    if (status == SQUALL_ENOMEM || status == SQUALL_ECANCELLED) {
        *err = why;
        return status;
    }
    if (status && !list->problem.message[0])
        list->problem = why;
    if (!status && c.kind != COORDINATE_NONE && c.kind != COORDINATE_TEXT)
        describe(d, &c, whole);
    if (!status)
        coordinate_done(&c);
    return 0;
}

static int group_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (int)(slash - name) + 1 : 0;
}

/* By name and length; then by the group: what is known comes first. */
static int by_name(const void *a, const void *b)
{
    const struct dimension *x = *(const struct dimension *const *)a, *y = *(const struct dimension *const *)b;
    const int order = strcmp(x->name, y->name);
    if (order)
        return order;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Of equal name and length only the first stays; where lengths differ, the groups tell which is which. all: count of them, in the dataset's order. */
static bool drop_repeated(struct dimension *all, size_t *count)
{
    struct dimension **sorted = malloc((*count + 1) * sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < *count; i++)
        sorted[i] = &all[i];
    qsort(sorted, *count, sizeof *sorted, by_name);
    struct dimension *before = NULL;
    for (size_t i = 0; i < *count; i++) {
        const bool same_name = before && !strcmp(before->name, sorted[i]->name);
        if (same_name && before->length == sorted[i]->length) {
            sorted[i]->array = NULL;
            continue;
        }
        if (same_name) {
            before->group_length = group_length(before->array);
            sorted[i]->group_length = group_length(sorted[i]->array);
        }
        before = sorted[i];
    }
    free(sorted);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (all[i].array)
            all[kept++] = all[i];
    *count = kept;
    return true;
}

/* Dimensions that have no name in the file are called phony_dim_0, …, as netCDF calls them; there may be many, and they say nothing. */
static bool has_name(const char *dim)
{
    return dim[0] && strncmp(dim, "phony_dim_", 10) != 0;
}

static size_t collect(squall_dataset *ds, struct dimension *to)
{
    size_t count = 0;
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++) {
        const struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, i));
        for (unsigned d = 0; d < info.rank; d++) {
            if (!has_name(info.dims[d]))
                continue;
            if (to)
                to[count] = (struct dimension){.array = info.name, .name = info.dims[d], .length = info.shape[d]};
            count++;
        }
    }
    return count;
}

int dimension_list_make(squall_dataset *ds, const struct grid_list *grids, struct dimension_list *ret, struct squall_error *err)
{
    struct dimension_list list = {.count = collect(ds, NULL)};
    list.dimensions = calloc(list.count + 1, sizeof *list.dimensions);
    if (list.dimensions)
        collect(ds, list.dimensions);
    if (!list.dimensions || !drop_repeated(list.dimensions, &list.count)) {
        free(list.dimensions);
        *err = (struct squall_error){SQUALL_ENOMEM, 0, "out of memory"};
        return SQUALL_ENOMEM;
    }
    for (size_t i = 0; i < list.count; i++) {
        const int status = is_grids(grids, list.dimensions[i].name) ? 0 : find_range(&list, ds, &list.dimensions[i], err);
        if (status) {
            dimension_list_done(&list);
            return status;
        }
    }
    *ret = list;
    return 0;
}

void dimension_list_done(struct dimension_list *list)
{
    free(list->dimensions);
    *list = (struct dimension_list){0};
}
