/* See cgroup.h. */
#include "sys/cgroup.h"
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The limit that a group's own folder tells; UINT64_MAX: none. The two versions have files of other names, so either is looked for. */
typedef uint64_t limit_of_folder(const char *folder);

/* How many of at most two positive numbers a file begins with; none where it is not there, says "max" or -1. */
static int read_numbers(const char *folder, const char *name, int64_t numbers[2])
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    int count = fscanf(f, "%" SCNd64 " %" SCNd64, &numbers[0], &numbers[1]);
    fclose(f);
    for (int i = 0; i < count; i++)
        if (numbers[i] <= 0)
            return i;
    return count > 0 ? count : 0;
}

static uint64_t memory_of_folder(const char *folder)
{
    int64_t bytes[2];
    bool limited = read_numbers(folder, "memory.max", bytes) > 0 || read_numbers(folder, "memory.limit_in_bytes", bytes) > 0;
    return limited ? (uint64_t)bytes[0] : UINT64_MAX;
}

static uint64_t cpus_of_folder(const char *folder)
{
    int64_t time[2], period[2]; /* "quota period" in one file, or in one each */
    int count = read_numbers(folder, "cpu.max", time);
    if (count == 0 && read_numbers(folder, "cpu.cfs_quota_us", time) > 0 && read_numbers(folder, "cpu.cfs_period_us", period) > 0) {
        time[1] = period[0];
        count = 2;
    }
    return count == 2 ? ((uint64_t)time[0] + (uint64_t)time[1] - 1) / (uint64_t)time[1] : UINT64_MAX;
}

/* Of the group "/a/b", of "/a" and of the root. Eats the group's name. */
static uint64_t least_around(const char *root, const char *hierarchy, char *group, limit_of_folder *limit_of)
{
    uint64_t least = UINT64_MAX;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        char folder[PATH_MAX];
        int length = snprintf(folder, sizeof folder, "%s%s%s", root, hierarchy, group);
        uint64_t limit = length > 0 && (size_t)length < sizeof folder ? limit_of(folder) : UINT64_MAX;
        if (limit < least)
            least = limit;
    }
    return least;
}

/* "cpu" is in the list "cpu,cpuacct", and not in "cpuset". */
static bool is_in_list(const char *name, const char *list)
{
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

static uint64_t least_limit(const char *table, const char *root, const char *controller, limit_of_folder *limit_of)
{
    FILE *f = fopen(table, "re");
    if (!f)
        return UINT64_MAX;
    char hierarchy[32]; /* the folder of a controller of version 1 */
    (void)snprintf(hierarchy, sizeof hierarchy, "/%s", controller);
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
            limit = least_around(root, "", group, limit_of);
        else if (is_in_list(controller, controllers + 1))
            limit = least_around(root, hierarchy, group, limit_of);
        if (limit < least)
            least = limit;
    }
    fclose(f);
    return least;
}

uint64_t sq_cgroup_memory_bytes(const char *table, const char *root)
{
    return least_limit(table, root, "memory", memory_of_folder);
}

uint64_t sq_cgroup_cpus(const char *table, const char *root)
{
    return least_limit(table, root, "cpu", cpus_of_folder);
}
