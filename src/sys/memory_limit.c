/* See memory_limit.h. A job of a batch system has a cgroup of its own below others, and any of these may have the limit that counts. */
#include "sys/memory_limit.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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

/* Of the group "/a/b", of "/a" and of the root. Eats the group's name. */
static uint64_t least_limit(const char *root, const char *folder, char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s%s%s/%s", root, folder, group, file);
        uint64_t limit = length > 0 && (size_t)length < sizeof path ? limit_in(path) : UINT64_MAX;
        if (limit < least)
            least = limit;
    }
    return least;
}

uint64_t sq_cgroup_limit_bytes(const char *table, const char *root)
{
    FILE *f = fopen(table, "re");
    if (!f)
        return UINT64_MAX;
    uint64_t least = UINT64_MAX;
    char line[PATH_MAX];
    while (fgets(line, sizeof line, f)) { /* "4:memory,cpu:/group" of version 1, "0::/group" of version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        uint64_t limit = UINT64_MAX;
        if (controllers[1] == '\0')
            limit = least_limit(root, "", group, "memory.max");
        else if (strstr(controllers, "memory"))
            limit = least_limit(root, "/memory", group, "memory.limit_in_bytes");
        if (limit < least)
            least = limit;
    }
    fclose(f);
    return least;
}

uint64_t sq_memory_limit_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t machine = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_C(1) << 30;
    uint64_t cgroups = sq_cgroup_limit_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
    return cgroups < machine ? cgroups : machine;
}
