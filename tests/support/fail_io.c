/*
 * Preloaded into the command (LD_PRELOAD), this makes the N-th call that changes a file system fail, or the process die there:
 *     SQUALL_FAULT=N:kill | N:ENOSPC | N:EIO …    counted from 1 over all threads
 *     SQUALL_FAULT=N:short                        it writes (or reads) half of what it was given, if that is more than a byte
 *     SQUALL_FAULT_READS=1                        of the calls that read one: opening for reading, listing a folder, pread
 *     SQUALL_FAULT_COUNT=PATH                     at the end, how many such calls there were
 *     SQUALL_FAULT_EXCHANGE=1                     swapping two names always fails, as on a file system that cannot
 *     SQUALL_FAULT_READ=PART                      reading a file whose path ends so fails with EIO behind its first 100 bytes
 * A sweep of N over the whole count is a proof, where dying at random moments is a hope.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static const char *unreadable;
static long fault_at;
static int fault_errno; /* 0: kill */
static int is_short, counts_reads;

static const struct {
    const char *name;
    int number;
} ERRORS[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},     {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
              {"ENOMEM", ENOMEM}, {"EINTR", EINTR}, {"EACCES", EACCES}};

#define EXPORT __attribute__((visibility("default")))

EXPORT void squall_fault_begin(const char *order);

/* Count from 1 again: for a process that forks one for each call that is to fail. */
void squall_fault_begin(const char *order)
{
    char action[16] = "";
    calls = 0;
    fault_errno = 0;
    if (sscanf(order, "%ld:%15s", &fault_at, action) != 2)
        return;
    is_short = !strcmp(action, "short");
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (!strcmp(action, ERRORS[i].name))
            fault_errno = ERRORS[i].number;
    if (!fault_errno && !is_short && strcmp(action, "kill") != 0)
        abort(); /* a test that asks for what is not there */
}

__attribute__((constructor)) static void read_orders(void)
{
    const char *order = getenv("SQUALL_FAULT");
    unreadable = getenv("SQUALL_FAULT_READ");
    counts_reads = getenv("SQUALL_FAULT_READS") != NULL;
    if (order)
        squall_fault_begin(order);
}

__attribute__((destructor)) static void write_count(void)
{
    const char *path = getenv("SQUALL_FAULT_COUNT");
    long count = atomic_load(&calls);
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", count);
        fclose(f);
    }
}

static int is_the_one(void)
{
    return atomic_fetch_add(&calls, 1) + 1 == fault_at;
}

/* Is this the call that fails? errno is set then. can_be_interrupted: by a signal, says POSIX */
static int fails_now(int can_be_interrupted)
{
    if (!is_the_one() || is_short || (fault_errno == EINTR && !can_be_interrupted))
        return 0;
    if (!fault_errno)
        raise(SIGKILL);
    errno = fault_errno;
    return 1;
}

static int fails(void)
{
    return !counts_reads && fails_now(0);
}

static int fails_or_is_interrupted(void)
{
    return !counts_reads && fails_now(1);
}

/* How much of a transfer is done; -1: it fails. */
static ssize_t done_of(size_t count)
{
    if (!is_short)
        return fails_now(1) ? -1 : (ssize_t)count;
    return (ssize_t)(is_the_one() && count > 1 ? count / 2 : count);
}

/* void * → function pointer, which C does not convert */
#define REAL(name, ...)                                                                                                                    \
    ({                                                                                                                                     \
        __typeof__(&name) real;                                                                                                            \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                                                            \
        memcpy(&real, &symbol, sizeof real);                                                                                               \
        real(__VA_ARGS__);                                                                                                                 \
    })

EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
    const ssize_t part = fd > 2 && !counts_reads ? done_of(count) : (ssize_t)count;
    return part < 0 ? -1 : REAL(write, fd, bytes, (size_t)part);
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset)
{
    const ssize_t part = counts_reads ? (ssize_t)count : done_of(count);
    return part < 0 ? -1 : REAL(pwrite64, fd, bytes, (size_t)part, offset);
}

EXPORT int ftruncate64(int fd, off_t size_bytes)
{
    return fails_or_is_interrupted() ? -1 : REAL(ftruncate64, fd, size_bytes);
}

/* Is it that file, and does the read reach the bad bytes? */
static int is_unreadable(int fd, size_t count, off_t offset)
{
    char link[40], path[4096];
    if (!unreadable || offset + (off_t)count <= 100)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path);
    const size_t part = strlen(unreadable);
    return length >= (ssize_t)part && memcmp(path + length - part, unreadable, part) == 0;
}

EXPORT ssize_t pread64(int fd, void *bytes, size_t count, off_t offset)
{
    if (!is_unreadable(fd, count, offset)) {
        const ssize_t part = counts_reads ? done_of(count) : (ssize_t)count;
        return part < 0 ? -1 : REAL(pread64, fd, bytes, (size_t)part, offset);
    }
    errno = EIO;
    return -1;
}

EXPORT int fsync(int fd)
{
    return fails_or_is_interrupted() ? -1 : REAL(fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    return fails_or_is_interrupted() ? -1 : REAL(fdatasync, fd);
}

EXPORT int syncfs(int fd)
{
    return fails_or_is_interrupted() ? -1 : REAL(syncfs, fd);
}

EXPORT int rename(const char *from, const char *to)
{
    return fails() ? -1 : REAL(rename, from, to);
}

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (getenv("SQUALL_FAULT_EXCHANGE")) {
        errno = EINVAL;
        return -1;
    }
    return fails() ? -1 : REAL(renameat2, from_folder, from, to_folder, to, flags);
}

EXPORT int link(const char *from, const char *to)
{
    return fails() ? -1 : REAL(link, from, to);
}

EXPORT int unlink(const char *path)
{
    return fails() ? -1 : REAL(unlink, path);
}

EXPORT int rmdir(const char *path)
{
    return fails() ? -1 : REAL(rmdir, path);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return fails() ? -1 : REAL(mkdir, path, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
        if (fails_or_is_interrupted())
            return -1;
    } else if (counts_reads && fails_now(1)) {
        return -1;
    }
    return REAL(open, path, flags, mode);
}

EXPORT DIR *opendir(const char *path)
{
    return counts_reads && fails_now(0) ? NULL : REAL(opendir, path);
}
