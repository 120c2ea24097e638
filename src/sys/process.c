/* See process.h. Linux tells a process's start in /proc/PID/stat, field 22 (proc(5)). */
#include "sys/process.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "sys/file.h"
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
    int fd = SQ_UNINTERRUPTED(open(path, O_RDONLY | O_CLOEXEC));
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
    const ssize_t got = readlink("/proc/self/ns/pid", self.pid_namespace, sizeof self.pid_namespace - 1);
    self.pid_namespace[got > 0 ? got : 0] = 0;
    self.start_ticks = start_of(self.pid);
    *ret = self;
    return 0;
}

/* Of a process whose pid counts here. */
static enum sq_process_state look_here(int64_t pid, uint64_t start_ticks)
{
    if (pid <= 0 || pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
        return SQ_PROCESS_DEAD;
    const uint64_t start = start_of(pid);
    return start != 0 && start != start_ticks ? SQ_PROCESS_DEAD : SQ_PROCESS_LIVES;
}

enum sq_process_state sq_process_look(const struct sq_process *other, const struct sq_process *self)
{
    if (strcmp(other->host, self->host) != 0 || strcmp(other->boot, self->boot) != 0 ||
        strcmp(other->pid_namespace, self->pid_namespace) != 0)
        return SQ_PROCESS_ELSEWHERE;
    return look_here(other->pid, other->start_ticks);
}

struct sq_process_tag sq_process_tag(void)
{
    static _Thread_local struct sq_process_tag own; /* without a lock, which a fork might find held */
    struct sq_process self;
    if (own.pid == getpid())
        return own;
    if (sq_process_self(&self, NULL))
        return (struct sq_process_tag){.pid = getpid()};
    own.machine = sq_crc32c(0, self.host, strlen(self.host) + 1);
    own.machine = sq_crc32c(own.machine, self.boot, strlen(self.boot) + 1);
    own.machine = sq_crc32c(own.machine, self.pid_namespace, strlen(self.pid_namespace));
    own.pid = self.pid;
    own.start_ticks = self.start_ticks;
    return own;
}

enum sq_process_state sq_process_look_tag(const struct sq_process_tag *other)
{
    return other->machine == sq_process_tag().machine ? look_here(other->pid, other->start_ticks) : SQ_PROCESS_ELSEWHERE;
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
