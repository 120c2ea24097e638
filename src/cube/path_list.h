/* Paths as a user gives them, among them patterns that a shell did not replace. */
#ifndef SQ_CUBE_PATH_LIST_H
#define SQ_CUBE_PATH_LIST_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>

struct sq_path_list {
    char **paths;
    size_t count, capacity;
};

/* Is the path a shell's pattern (*, ?, [) that nothing is called like? */
int sq_is_pattern(const char *path, bool *ret, struct squall_error *err) SQUALL_CHECK;
/* Add paths, and for patterns those that match, sorted by bytes; SQUALL_ENOTFOUND: none matches. */
int sq_path_list_add(struct sq_path_list *list, const char *const *paths, size_t count, struct squall_error *err) SQUALL_CHECK;
void sq_path_list_done(struct sq_path_list *list);

#endif
