/*
 * Preloaded into the command (LD_PRELOAD), this writes down every call that changes a file system, in the order in which they happen: one at a
 * time, for threads wait for each other. tests/python/power_loss.py makes of it what a disk may hold when the power fails.
 *     SQUALL_RECORD=FILE    a line a call, fields apart by tabs: what, path, second path or -, number, bytes as hexadecimal digits
 * Paths are absolute, or are not written down.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* void * → function pointer, which C does not convert */
#define REAL(name, ...)                                                                                                                    \
    ({                                                                                                                                     \
        __typeof__(&name) real;                                                                                                            \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                                                            \
        memcpy(&real, &symbol, sizeof real);                                                                                               \
        real(__VA_ARGS__);                                                                                                                 \
    })

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static FILE *record;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SQUALL_RECORD");
    record = path ? fopen(path, "w") : NULL;
}

/* With the turn held. */
static void say(const char *what, const char *path, const char *second, long number, const void *bytes, size_t count)
{
    if (!record || path[0] != '/')
        return;
    fprintf(record, "%s\t%s\t%s\t%ld\t", what, path, second, number);
    for (size_t i = 0; i < count; i++)
        fprintf(record, "%02x", ((const unsigned char *)bytes)[i]);
    fputc('\n', record);
    fflush(record);
}

/* As say, of an open file. */
static void say_of(const char *what, int fd, long number, const void *bytes, size_t count)
{
    char name[40], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = 0;
    say(what, path, "-", number, bytes, count);
}

/* What is done and, where it succeeded, written down, in one turn. */
#define IN_TURN(call, good, statement)                                                                                                     \
    ({                                                                                                                                     \
        pthread_mutex_lock(&turn);                                                                                                         \
        const __typeof__(call) result = call;                                                                                              \
        if (good)                                                                                                                          \
            statement;                                                                                                                     \
        pthread_mutex_unlock(&turn);                                                                                                       \
        result;                                                                                                                            \
    })

EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
    if (fd <= 2 || (record && fd == fileno(record)))
        return REAL(write, fd, bytes, count);
    return IN_TURN(REAL(write, fd, bytes, count), result > 0,
                   say_of("write", fd, (long)(lseek(fd, 0, SEEK_CUR) - result), bytes, (size_t)result));
}

EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset)
{
    return IN_TURN(REAL(pwrite64, fd, bytes, count, offset), result > 0, say_of("write", fd, (long)offset, bytes, (size_t)result));
}

EXPORT int ftruncate64(int fd, off_t size_bytes)
{
    return IN_TURN(REAL(ftruncate64, fd, size_bytes), result == 0, say_of("truncate", fd, (long)size_bytes, NULL, 0));
}

EXPORT int fsync(int fd)
{
    return IN_TURN(REAL(fsync, fd), result == 0, say_of("sync", fd, 0, NULL, 0));
}

EXPORT int fdatasync(int fd)
{
    return IN_TURN(REAL(fdatasync, fd), result == 0, say_of("sync", fd, 0, NULL, 0));
}

EXPORT int syncfs(int fd)
{
    return IN_TURN(REAL(syncfs, fd), result == 0, say_of("sync all", fd, 0, NULL, 0));
}

EXPORT int rename(const char *from, const char *to)
{
    return IN_TURN(REAL(rename, from, to), result == 0, say("rename", from, to, 0, NULL, 0));
}

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return IN_TURN(REAL(renameat2, from_folder, from, to_folder, to, flags), result == 0,
                   say(flags & RENAME_EXCHANGE ? "exchange" : "rename", from, to, 0, NULL, 0));
}

EXPORT int link(const char *from, const char *to)
{
    return IN_TURN(REAL(link, from, to), result == 0, say("link", from, to, 0, NULL, 0));
}

EXPORT int unlink(const char *path)
{
    return IN_TURN(REAL(unlink, path), result == 0, say("remove", path, "-", 0, NULL, 0));
}

EXPORT int rmdir(const char *path)
{
    return IN_TURN(REAL(rmdir, path), result == 0, say("remove", path, "-", 0, NULL, 0));
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return IN_TURN(REAL(mkdir, path, mode), result == 0, say("folder", path, "-", 0, NULL, 0));
}

EXPORT int open(const char *path, int flags, ...)
{
    if (!(flags & O_CREAT))
        return REAL(open, path, flags);
    va_list args;
    va_start(args, flags);
    const mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return IN_TURN(REAL(open, path, flags, mode), result >= 0, say("file", path, "-", 0, NULL, 0));
}
