/* See open.h. */
#include "open.h"

#include <stdio.h>
#include <string.h>

bool joins_files(const struct arguments *a)
{
    return a->concat_dim || a->drift;
}

static enum squall_drift drift_of(const char *word)
{
    if (!word)
        return SQUALL_DRIFT_ERROR;
    return !strcmp(word, "warn") ? SQUALL_DRIFT_WARN : !strcmp(word, "first") ? SQUALL_DRIFT_FIRST : SQUALL_DRIFT_ERROR;
}

int refuse_joining(const struct arguments *a, const char *path, struct squall_error *err)
{
    err->status = SQUALL_EINVAL;
    snprintf(err->message, sizeof err->message,
             "%s: fields of GRIB tell themselves where they belong; --%s is for other files: leave it out", path,
             a->concat_dim ? "concat-dim" : "drift");
    return err->status;
}

int dataset_open(squall_context *ctx, const struct arguments *a, const char *const *paths, size_t count, squall_dataset **ret,
                 struct squall_error *err)
{
    const struct squall_many_options wanted = {.concat_dim = a->concat_dim, .drift = drift_of(a->drift)};
    squall_dataset *ds;
    const int status = count == 1 && !joins_files(a) ? squall_dataset_open(ctx, paths[0], &ds, err)
                                                     : squall_dataset_open_many(ctx, paths, count, &wanted, &ds, err);
    if (status)
        return status;
    if (joins_files(a) && !strcmp(squall_dataset_info(ds).format, "grib")) {
        squall_dataset_close(ds);
        return refuse_joining(a, paths[0], err);
    }
    *ret = ds;
    return 0;
}

bool is_within(const char *array, const char *group)
{
    const size_t length = strlen(group);
    return length > 0 && !strncmp(array, group, length) && array[length] == '/';
}

/* The nearest name; of names in groups the last part alone may be meant. NULL: none is near. */
static const char *nearest_name(const squall_dataset *ds, const char *wanted)
{
    enum { FAR = 3 };
    const char *best = NULL;
    unsigned least = FAR;
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++) {
        const char *name = squall_array_info(squall_dataset_array_at(ds, i)).name, *slash = strrchr(name, '/');
        const unsigned whole = edit_distance(wanted, name), last = slash ? edit_distance(wanted, slash + 1) : whole;
        const unsigned distance = whole < last ? whole : last;
        if (distance < least && distance < strlen(wanted)) {
            least = distance;
            best = name;
        }
    }
    return best;
}

int array_find(const squall_dataset *ds, const char *name, squall_array **ret, struct squall_error *err)
{
    const char *wanted = name + strspn(name, "/");
    const int status = squall_dataset_array(ds, wanted, ret, err);
    if (status != SQUALL_ENOTFOUND)
        return status;
    const size_t length = strlen(err->message);
    const char *near = nearest_name(ds, wanted);
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++) {
        const char *within = squall_array_info(squall_dataset_array_at(ds, i)).name;
        if (is_within(within, wanted)) {
            snprintf(err->message + length, sizeof err->message - length, "; %s is a group, in which %s lies", wanted, within);
            return status;
        }
    }
    if (near)
        snprintf(err->message + length, sizeof err->message - length, "; is %s meant?", near);
    return status;
}
