/* One group of a dataset as a dataset of its own. */
#ifndef SQ_CUBE_GROUP_H
#define SQ_CUBE_GROUP_H

#include "engine/array.h"

/*
 * As sq_open_path; of what is there the group only ("forecast", "model/surface"; NULL: all of it): its arrays under their names within it, its
 * attributes and groups, and of the groups above the coordinates along its arrays' dimensions. Its arrays are no longer found by their names in the file.
 * SQUALL_ENOTFOUND names the groups that there are.
 */
int sq_open_group(const struct squall_context *ctx, const char *path, const char *group, struct squall_dataset **ret,
                  struct squall_error *err) SQUALL_CHECK;

#endif
