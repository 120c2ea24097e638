/* See memory_limit.h. */
#include "sys/memory_limit.h"
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* UINT64_MAX where the file is not there or says "max". */
static uint64_t limit_in(const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return UINT64_MAX;
    uint64_t limit;
    int got = fscanf(f, "%" SCNu64, &limit);
    fclose(f);
    return got == 1 && limit > 0 ? limit : UINT64_MAX;
}

uint64_t sq_memory_limit_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t limit = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_C(1) << 30;
    uint64_t cgroup2 = limit_in("/sys/fs/cgroup/memory.max"), cgroup1 = limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    if (cgroup2 < limit)
        limit = cgroup2;
    return cgroup1 < limit ? cgroup1 : limit;
}
