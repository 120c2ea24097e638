/* See atomic_file.h. */
#include "io/atomic_file.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "sys/file.h"
#include "sys/process.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char TEMPORARY_SUFFIX[] = ".squall-tmp";

static atomic_ulong counter;

static int write_all(int fd, const char *path, const void *bytes, size_t size_bytes, struct squall_error *err)
{
    const char *at = bytes;
    size_t left = size_bytes;
    while (left > 0) {
        ssize_t put = write(fd, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return sq_error_errno(err, errno, "%s: writing %zu bytes", path, size_bytes);
        at += put;
        left -= (size_t)put;
    }
    return 0;
}

/* Write, sync and close; the descriptor is gone whatever comes of it. */
static int fill_and_close(int fd, const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability,
                          struct squall_error *err)
{
    int status = write_all(fd, path, bytes, size_bytes, err);
    if (!status && durability != SQ_DURABILITY_NONE)
        status = sq_file_make_durable(fd, path, err);
    if (close(fd) != 0 && !status)
        status = sq_error_errno(err, errno, "%s: closing it", path);
    return status;
}

/* In path's folder; sq_free. */
static char *temporary_name(const char *path)
{
    const int folder_length = (int)(sq_path_name(path) - path);
    const struct sq_process_tag me = sq_process_tag();
    return sq_format("%.*s.%s.%08" PRIx32 "-%" PRId64 "-%" PRIx64 "-%lu%s", folder_length, path, sq_path_name(path), me.machine, me.pid,
                     me.start_ticks, atomic_fetch_add(&counter, 1), TEMPORARY_SUFFIX);
}

/* The folder's path and a new temporary file in it, whole and closed. Both paths: the caller's, sq_free. */
static int make_temporary(const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability, char **ret_folder,
                          char **ret_temporary, struct squall_error *err)
{
    size_t folder_length = (size_t)(sq_path_name(path) - path);
    SQ_CLEANUP_FREE char *folder = folder_length ? sq_strndup(path, folder_length) : sq_strdup(".");
    SQ_CLEANUP_FREE char *temporary = temporary_name(path);
    if (!temporary || !folder)
        return sq_error_memory(err, strlen(path));
    int fd = SQ_UNINTERRUPTED(open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd < 0)
        return sq_error_errno(err, errno, "%s: creating it", path);
    int status = fill_and_close(fd, path, bytes, size_bytes, durability, err);
    if (status) {
        unlink(temporary);
        return status;
    }
    *ret_folder = folder;
    *ret_temporary = temporary;
    folder = temporary = NULL;
    return 0;
}

int sq_atomic_write(const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = NULL;
    SQ_CLEANUP_FREE char *temporary = NULL;
    SQ_TRY(make_temporary(path, bytes, size_bytes, durability, &folder, &temporary, err));
    int status = sq_file_rename(temporary, path, err);
    if (status) {
        unlink(temporary);
        return status;
    }
    return durability == SQ_DURABILITY_FULL ? sq_folder_sync(folder, err) : 0;
}

/* On NFS a link whose answer was lost is asked for again, and then found there already. */
static bool has_two_names(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_nlink == 2;
}

int sq_atomic_create(const char *path, const void *bytes, size_t size_bytes, bool *ret_made, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = NULL;
    SQ_CLEANUP_FREE char *temporary = NULL;
    SQ_TRY(make_temporary(path, bytes, size_bytes, SQ_DURABILITY_FULL, &folder, &temporary, err));
    int os_errno = link(temporary, path) == 0 ? 0 : errno;
    if (os_errno == EEXIST && has_two_names(temporary))
        os_errno = 0;
    unlink(temporary);
    if (os_errno && os_errno != EEXIST)
        return sq_error_errno(err, os_errno, "%s: creating it", path);
    if (!os_errno)
        SQ_TRY(sq_folder_sync(folder, err));
    *ret_made = !os_errno;
    return 0;
}

int sq_atomic_link(const char *from, const char *to, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *temporary = temporary_name(to);
    if (!temporary)
        return sq_error_memory(err, strlen(to));
    const int os_errno = link(from, temporary) == 0 ? 0 : errno;
    if (os_errno == EPERM || os_errno == EOPNOTSUPP || os_errno == EMLINK)
        return sq_file_rename(from, to, err);
    if (os_errno && os_errno != EEXIST) /* a name that no other process makes: on NFS, of an answer that was lost */
        return sq_error_errno(err, os_errno, "%s: giving it a second name, %s", from, to);
    int status = sq_file_rename(temporary, to, err);
    unlink(temporary); /* it is there where the renaming failed, or where both names were the file's already */
    return status;
}

/* By whom a name is, if it is a temporary file's. */
static bool read_name(const char *name, struct sq_process_tag *ret)
{
    const size_t length = strlen(name), suffix = sizeof TEMPORARY_SUFFIX - 1;
    if (name[0] != '.' || length <= suffix || strcmp(name + length - suffix, TEMPORARY_SUFFIX) != 0)
        return false;
    size_t dot = length - suffix; /* the last dot before the suffix begins MACHINE-PID-START-COUNTER */
    while (dot > 0 && name[dot - 1] != '.')
        dot--;
    int end = 0;
    return sscanf(name + dot, "%8" SCNx32 "-%18" SCNd64 "-%16" SCNx64 "-%*18[0-9]%n", &ret->machine, &ret->pid, &ret->start_ticks, &end) ==
               3 &&
           dot + (size_t)end == length - suffix && ret->pid > 0;
}

bool sq_atomic_is_temporary(const char *name)
{
    struct sq_process_tag by;
    return read_name(name, &by);
}

bool sq_atomic_is_abandoned(const char *name)
{
    struct sq_process_tag by;
    return read_name(name, &by) && sq_process_look_tag(&by) == SQ_PROCESS_DEAD;
}
