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

/* What is told of GRIB files that one of these is given for. Returns the error's status. */
int refuse_joining(const struct arguments *a, const char *path, struct squall_error *err);

/* As squall_dataset_array; a slash may come first, as HDF5's tools write it, and of a name that is not there it is told what may be meant. */
int array_find(const squall_dataset *ds, const char *name, squall_array **ret, struct squall_error *err);
/* Does the array lie in the group? */
bool is_within(const char *array, const char *group);

#endif
