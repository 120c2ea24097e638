/* What opens one path; many files: squall/many.h. */
#ifndef SQ_CUBE_MANY_H
#define SQ_CUBE_MANY_H

#include "engine/array.h"

/* Whatever is at the path, without trailing slashes; no pattern. *ret: squall_dataset_close. */
int sq_open_path(const struct squall_context *ctx, const char *path, struct squall_dataset **ret, struct squall_error *err) SQUALL_CHECK;

/* Is the path a shell's pattern (*, ?, [) that nothing is called like? */
int sq_is_pattern(const char *path, bool *ret, struct squall_error *err) SQUALL_CHECK;

#endif
