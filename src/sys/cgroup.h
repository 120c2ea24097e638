/*
 * What the cgroups of a process let it have: the least limit of the groups that it is in and of those around them; a job of a batch system has a
 * group of its own below others, and any of these may have the limit that counts. Both versions of cgroups: man 7 cgroups.
 *
 * table   which groups it is in: /proc/self/cgroup
 * root    where the groups' files are: /sys/fs/cgroup
 */
#ifndef SQ_SYS_CGROUP_H
#define SQ_SYS_CGROUP_H

#include <stdint.h>

#define SQ_OWN_CGROUPS "/proc/self/cgroup", "/sys/fs/cgroup"

uint64_t sq_cgroup_memory_bytes(const char *table, const char *root); /* UINT64_MAX: no limit */
uint64_t sq_cgroup_cpus(const char *table, const char *root);         /* the quota in CPUs, rounded up; UINT64_MAX: none */

#endif
