/* See memory_limit.h. */
#include "sys/memory_limit.h"
#include "sys/cgroup.h"
#include <unistd.h>

uint64_t sq_memory_limit_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_C(1) << 30;
    uint64_t cgroups = sq_cgroup_memory_bytes(SQ_OWN_CGROUPS);
    return cgroups < machine ? cgroups : machine;
}
