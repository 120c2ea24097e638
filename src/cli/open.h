/* Opening what a command line names, with its options on several files. */
#ifndef SQ_CLI_OPEN_H
#define SQ_CLI_OPEN_H

#include "options.h"
#include "squall/squall.h"

/* One path as it is; a pattern or several paths as one dataset, by --concat-dim and --drift. *ret: squall_dataset_close. */
int dataset_open(squall_context *ctx, const struct arguments *a, const char *const *paths, size_t count, squall_dataset **ret,
                 struct squall_error *err);

/* Is one of the options given that are about several files as one dataset? */
bool joins_files(const struct arguments *a);

#endif
