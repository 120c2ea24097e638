/* See append_file.h. fsync is never tried again on a descriptor that failed once: the kernel may have dropped the pages. */
#include "io/append_file.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "sys/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct sq_append_file {
    int fd;
    int failure; /* errno of the addition that failed; 0: none did */
    char *path;
};

static int sync_folder_of(const char *path, struct squall_error *err)
{
    size_t length = (size_t)(sq_path_name(path) - path);
    SQ_CLEANUP_FREE char *folder = length ? sq_strndup(path, length) : sq_strdup(".");
    return folder ? sq_folder_sync(folder, err) : sq_error_memory(err, length);
}

int sq_append_file_new(const char *path, struct sq_append_file **ret, struct squall_error *err)
{
    struct sq_append_file *file = sq_alloc_zero(1, sizeof *file);
    if (!file || !(file->path = sq_strdup(path))) {
        sq_free(file);
        return sq_error_memory(err, sizeof *file);
    }
    file->fd = SQ_UNINTERRUPTED(open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    int status = file->fd < 0 ? sq_error_errno(err, errno, "%s: creating it", path) : sync_folder_of(path, err);
    if (status) {
        sq_append_file_close(file);
        return status;
    }
    *ret = file;
    return 0;
}

int sq_append_file_add(struct sq_append_file *file, const void *bytes, size_t size_bytes, struct squall_error *err)
{
    const char *at = bytes;
    size_t left = size_bytes;
    if (file->failure)
        return sq_error_errno(err, file->failure, "%s: an earlier write", file->path);
    while (left > 0) {
        ssize_t put = write(file->fd, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            file->failure = errno;
            return sq_error_errno(err, file->failure, "%s: writing %zu bytes", file->path, size_bytes);
        }
        at += put;
        left -= (size_t)put;
    }
    const int result = SQ_UNINTERRUPTED(fdatasync(file->fd));
    if (result == 0)
        return 0;
    file->failure = errno;
    return sq_error_errno(err, file->failure, "%s: making it durable", file->path);
}

void sq_append_file_close(struct sq_append_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    sq_free(file->path);
    sq_free(file);
}
