/* See process.h. Linux tells a process's start in /proc/PID/stat, field 22 (proc(5)). */
#include "sys/process.h"
#include "base/error_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A small file of /proc, NUL-terminated; 0 bytes where it cannot be read. */
static size_t read_small(const char *path, char *dst, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, dst, capacity - 1);
    close(fd);
    size_t length = got > 0 ? (size_t)got : 0;
    dst[length] = 0;
    return length;
}

/* 0 where there is no such process. */
static uint64_t start_of(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (!read_small(path, text, sizeof text))
        return 0;
    const char *at = strrchr(text, ')'); /* field 2 is the name in brackets, which may hold blanks and brackets */
    unsigned long long start = 0;
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at && sscanf(at, "%llu", &start) == 1 ? start : 0;
}

int sq_process_self(struct sq_process *ret, struct squall_error *err)
{
    struct sq_process self = {.pid = getpid()};
    if (gethostname(self.host, sizeof self.host - 1) != 0)
        return sq_error_errno(err, errno, "the name of this host");
    size_t length = read_small("/proc/sys/kernel/random/boot_id", self.boot, sizeof self.boot);
    while (length > 0 && self.boot[length - 1] == '\n')
        self.boot[--length] = 0;
    self.start_ticks = start_of(self.pid);
    *ret = self;
    return 0;
}

enum sq_process_state sq_process_look(const struct sq_process *other, const struct sq_process *self)
{
    if (strcmp(other->host, self->host) != 0)
        return SQ_PROCESS_ELSEWHERE;
    if (strcmp(other->boot, self->boot) != 0 || other->pid <= 0)
        return SQ_PROCESS_DEAD;
    if (kill((pid_t)other->pid, 0) != 0 && errno == ESRCH)
        return SQ_PROCESS_DEAD;
    uint64_t start = start_of(other->pid);
    return start != 0 && start != other->start_ticks ? SQ_PROCESS_DEAD : SQ_PROCESS_LIVES;
}

size_t sq_process_open_files_limit(void)
{
    enum { POSIX_LEAST = 20 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return POSIX_LEAST;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > SIZE_MAX)
        return SIZE_MAX;
    return limit.rlim_cur > 0 ? (size_t)limit.rlim_cur : 1;
}

bool sq_process_at_fork(void (*before)(void), void (*after_in_parent)(void), void (*after_in_child)(void))
{
    return pthread_atfork(before, after_in_parent, after_in_child) == 0;
}
