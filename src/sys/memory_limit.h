/* How much memory this process may fill: the machine's, or less where one of the cgroups that it is in says so. */
#ifndef SQ_SYS_MEMORY_LIMIT_H
#define SQ_SYS_MEMORY_LIMIT_H

#include <stdint.h>

uint64_t sq_memory_limit_bytes(void); /* > 0 */

/*
 * The least limit of the cgroups in a table such as /proc/self/cgroup, and of those that they lie in; UINT64_MAX: there is none. root is where the
 * cgroups' files are, /sys/fs/cgroup. Both versions: man 7 cgroups.
 */
uint64_t sq_cgroup_limit_bytes(const char *table, const char *root);

#endif
