/* See open.h. */
#include "open.h"

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

int dataset_open(squall_context *ctx, const struct arguments *a, const char *const *paths, size_t count, squall_dataset **ret,
                 struct squall_error *err)
{
    const struct squall_many_options wanted = {.concat_dim = a->concat_dim, .drift = drift_of(a->drift)};
    return count == 1 && !joins_files(a) ? squall_dataset_open(ctx, paths[0], ret, err)
                                         : squall_dataset_open_many(ctx, paths, count, &wanted, ret, err);
}
