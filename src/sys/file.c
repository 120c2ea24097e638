/* See file.h. */
#include "sys/file.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

int flock(int fd, int operation); /* of the system's <sys/file.h>, whose name is that of ours */

static struct sq_file_identity identity_of(const struct stat *s)
{
    return (struct sq_file_identity){
        .device = s->st_dev,
        .inode = s->st_ino,
        .size_bytes = (uint64_t)s->st_size,
        .mtime_ns = (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)s->st_ctim.tv_sec * 1000000000 + s->st_ctim.tv_nsec,
    };
}

int sq_file_stat(const char *path, enum sq_file_kind *ret_kind, struct sq_file_identity *ret_identity, struct squall_error *err)
{
    struct stat s;
    if (stat(path, &s) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return sq_error_errno(err, errno, "%s", path);
        *ret_kind = SQ_FILE_NONE;
        return 0;
    }
    *ret_kind = S_ISREG(s.st_mode) ? SQ_FILE_REGULAR : S_ISDIR(s.st_mode) ? SQ_FILE_FOLDER : SQ_FILE_OTHER;
    if (ret_identity)
        *ret_identity = identity_of(&s);
    return 0;
}

int sq_file_exists(const char *path, bool *ret_exists, struct squall_error *err)
{
    struct stat s;
    bool exists = lstat(path, &s) == 0;
    if (!exists && errno != ENOENT)
        return sq_error_errno(err, errno, "%s", path);
    *ret_exists = exists;
    return 0;
}

bool sq_folder_is_real(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

int sq_file_open(const char *path, int *ret_fd, struct sq_file_identity *ret_identity, struct squall_error *err)
{
    int fd = SQ_UNINTERRUPTED(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); /* O_NONBLOCK: a FIFO must not hang us */
    if (fd < 0)
        return sq_error_errno(err, errno, "%s", path);
    struct stat s;
    if (fstat(fd, &s) != 0) {
        int status = sq_error_errno(err, errno, "%s", path);
        close(fd);
        return status;
    }
    if (!S_ISREG(s.st_mode)) {
        close(fd);
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: %s, not a file", path, S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    }
    if (ret_identity)
        *ret_identity = identity_of(&s);
    *ret_fd = fd;
    return 0;
}

void sq_file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

int sq_file_read_at(int fd, const char *path, uint64_t offset, void *dst, size_t size_bytes, struct squall_error *err)
{
    uint8_t *at = dst;
    size_t left = size_bytes;
    if (offset > INT64_MAX - size_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: offset %llu is beyond any file", path, (unsigned long long)offset);
    while (left > 0) {
        ssize_t got = pread(fd, at, left, (off_t)(offset + (size_bytes - left)));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sq_error_errno(err, errno, "%s: reading %zu bytes at %llu", path, size_bytes, (unsigned long long)offset);
        if (got == 0)
            return sq_error(err, SQUALL_ECORRUPT, "%s: ends at byte %llu, but %zu bytes are wanted at %llu; the file is truncated", path,
                            (unsigned long long)(offset + (size_bytes - left)), size_bytes, (unsigned long long)offset);
        at += got;
        left -= (size_t)got;
    }
    return 0;
}

/* ---- writing in place ------------------------------------------------------------------------------------------------------------- */

int sq_file_open_to_write(const char *path, int *ret_fd, struct sq_file_identity *ret_identity, struct squall_error *err)
{
    struct stat s;
    int fd = SQ_UNINTERRUPTED(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return sq_error_errno(err, errno, "%s: opening it for writing", path);
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        close(fd);
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: no file", path);
    }
    *ret_identity = identity_of(&s);
    *ret_fd = fd;
    return 0;
}

int sq_file_write_at(int fd, const char *path, uint64_t offset, const void *src, size_t size_bytes, struct squall_error *err)
{
    const uint8_t *at = src;
    size_t left = size_bytes;
    while (left > 0) {
        ssize_t put = pwrite(fd, at, left, (off_t)(offset + (size_bytes - left)));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return sq_error_errno(err, errno, "%s: writing %zu bytes at %llu", path, size_bytes, (unsigned long long)offset);
        at += put;
        left -= (size_t)put;
    }
    return 0;
}

int sq_file_set_size(int fd, const char *path, uint64_t size_bytes, struct squall_error *err)
{
    const int result = SQ_UNINTERRUPTED(ftruncate(fd, (off_t)size_bytes));
    return result ? sq_error_errno(err, errno, "%s: giving it %llu bytes", path, (unsigned long long)size_bytes) : 0;
}

int sq_file_make_durable(int fd, const char *path, struct squall_error *err)
{
    const int result = SQ_UNINTERRUPTED(fdatasync(fd));
    return result ? sq_error_errno(err, errno, "%s: making it durable", path) : 0;
}

int sq_file_close_written(int fd, const char *path, struct squall_error *err)
{
    return close(fd) == 0 ? 0 : sq_error_errno(err, errno, "%s: closing it", path);
}

bool sq_file_is_remote(int fd)
{
    static const unsigned long KINDS[] = {0x6969 /* NFS */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */, 0x517b /* SMB */};
    struct statfs s;
    if (fstatfs(fd, &s) != 0)
        return true; /* a lock too many does no harm */
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (((unsigned long)s.f_type & 0xffffffff) == KINDS[i])
            return true;
    return false;
}

static int lock_pages(int fd, const char *path, short type, uint64_t offset, uint64_t size_bytes, struct squall_error *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = offset - offset % page;
    const uint64_t end = (offset + size_bytes + page - 1) / page * page;
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)begin, .l_len = (off_t)(end - begin)};
    while (fcntl(fd, F_OFD_SETLKW, &range) != 0)
        if (errno != EINTR)
            return sq_error_errno(err, errno, "%s: locking bytes %llu to %llu, which this file system needs where several processes write",
                                  path, (unsigned long long)begin, (unsigned long long)end);
    return 0;
}

int sq_file_hold_pages(int fd, const char *path, uint64_t offset, uint64_t size_bytes, struct squall_error *err)
{
    return lock_pages(fd, path, F_WRLCK, offset, size_bytes, err);
}

int sq_file_release_pages(int fd, const char *path, uint64_t offset, uint64_t size_bytes, struct squall_error *err)
{
    return lock_pages(fd, path, F_UNLCK, offset, size_bytes, err);
}

int sq_file_create(const char *path, const void *bytes, size_t count, uint64_t size_bytes, struct squall_error *err)
{
    int fd = SQ_UNINTERRUPTED(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd < 0 && errno == EEXIST)
        return sq_error(err, SQUALL_EREFUSED, "%s is there already", path);
    if (fd < 0)
        return sq_error_errno(err, errno, "%s: creating it", path);
    int status = sq_file_write_at(fd, path, 0, bytes, count, err);
    if (!status)
        status = sq_file_set_size(fd, path, size_bytes, err);
    if (close(fd) != 0 && !status)
        status = sq_error_errno(err, errno, "%s: closing it", path);
    if (status)
        unlink(path);
    return status;
}

int sq_file_read_all(const char *path, size_t limit_bytes, char **ret, size_t *ret_size, struct squall_error *err)
{
    int fd = -1;
    struct sq_file_identity identity = {0};
    SQ_TRY(sq_file_open(path, &fd, &identity, err));
    int status = 0;
    char *text = NULL;
    if (identity.size_bytes > limit_bytes)
        status = sq_error(err, SQUALL_ECORRUPT, "%s: %llu bytes, more than the %zu that such a file may have", path,
                          (unsigned long long)identity.size_bytes, limit_bytes);
    else if (!(text = sq_alloc((size_t)identity.size_bytes + 1, 1)))
        status = sq_error_memory(err, identity.size_bytes);
    else
        status = sq_file_read_at(fd, path, 0, text, (size_t)identity.size_bytes, err);
    sq_file_close(fd);
    if (status) {
        sq_free(text);
        return status;
    }
    text[identity.size_bytes] = 0;
    *ret = text;
    *ret_size = (size_t)identity.size_bytes;
    return 0;
}

int sq_folder_make(const char *path, struct squall_error *err)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    int os_errno = errno;
    struct stat s;
    if (os_errno == EEXIST && stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        return 0;
    if (os_errno == EEXIST && lstat(path, &s) == 0 && S_ISLNK(s.st_mode))
        return sq_error(err, SQUALL_EIO, "%s: a link that leads nowhere, where a folder is to be; make the folder that it names", path);
    return sq_error_errno(err, os_errno, "%s: making the folder", path);
}

int sq_folder_sync(const char *path, struct squall_error *err)
{
    int fd = SQ_UNINTERRUPTED(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return sq_error_errno(err, errno, "%s", path);
    const int result = SQ_UNINTERRUPTED(fsync(fd));
    const int os_errno = result ? errno : 0;
    close(fd);
    /* some network file systems cannot sync a folder, and say so */
    return os_errno && os_errno != EINVAL ? sq_error_errno(err, os_errno, "%s: making its names durable", path) : 0;
}

int sq_folder_make_durable(const char *path, struct squall_error *err)
{
    bool holds;
    SQ_TRY(sq_folder_holds(path, &holds, err));
    if (holds)
        return 0;
    SQ_CLEANUP_FREE char *parent = sq_path_folder(path);
    if (!parent)
        return sq_error_memory(err, strlen(path));
    if (strcmp(parent, path) != 0) /* "." and "/" are there */
        SQ_TRY(sq_folder_make_durable(parent, err));
    SQ_TRY(sq_folder_make(path, err));
    return sq_folder_sync(parent, err);
}

int sq_file_remove(const char *path, struct squall_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return sq_error_errno(err, errno, "%s: removing it", path);
}

int sq_tree_remove(const char *path, struct squall_error *err)
{
    struct stat s;
    if (lstat(path, &s) != 0)
        return errno == ENOENT ? 0 : sq_error_errno(err, errno, "%s: removing it", path);
    if (!S_ISDIR(s.st_mode))
        return sq_file_remove(path, err);
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list(path, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        SQ_CLEANUP_FREE char *child = sq_path_join(path, names[i]);
        status = child ? sq_tree_remove(child, err) : sq_error_memory(err, strlen(path));
    }
    sq_names_free(names, count);
    if (!status && rmdir(path) != 0)
        status = sq_error_errno(err, errno, "%s: removing it", path);
    return status;
}

int sq_file_rename(const char *from, const char *to, struct squall_error *err)
{
    return rename(from, to) == 0 ? 0 : sq_error_errno(err, errno, "%s: renaming it to %s", from, to);
}

int sq_file_link(const char *path, const char *name, struct squall_error *err)
{
    return link(path, name) == 0 ? 0 : sq_error_errno(err, errno, "%s: giving it a second name, %s", path, name);
}

int sq_file_system_sync(const char *path, struct squall_error *err)
{
    int fd = SQ_UNINTERRUPTED(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return sq_error_errno(err, errno, "%s", path);
    const int result = SQ_UNINTERRUPTED(syncfs(fd));
    const int os_errno = result ? errno : 0;
    close(fd);
    return os_errno ? sq_error_errno(err, os_errno, "%s: making what it holds durable", path) : 0;
}

/* *ret_done false: the file system cannot. */
static int swap_names(const char *a, const char *b, bool *ret_done, struct squall_error *err)
{
    *ret_done = renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0;
    if (*ret_done || errno == EINVAL || errno == ENOSYS)
        return 0;
    return sq_error_errno(err, errno, "%s: swapping it with %s", a, b);
}

int sq_tree_exchange(const char *made, const char *path, const char *aside, const char **ret_old, struct squall_error *err)
{
    bool done;
    SQ_TRY(swap_names(made, path, &done, err));
    *ret_old = made;
    if (done)
        return 0;
    SQ_TRY(sq_tree_remove(aside, err));
    SQ_TRY(sq_file_rename(path, aside, err));
    int status = sq_file_rename(made, path, err);
    if (status) {
        int stays = sq_file_rename(aside, path, NULL); /* then it lies aside */
        (void)stays;
        return status;
    }
    *ret_old = aside;
    return 0;
}

int sq_file_hold(const char *path, int *ret_fd, struct squall_error *err)
{
    int fd =
        SQ_UNINTERRUPTED(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666)); /* a link would make a file elsewhere */
    if (fd < 0)
        return sq_error_errno(err, errno, "%s", path);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(fd, F_OFD_SETLKW, &whole) != 0 && errno == EINTR)
        continue;
    *ret_fd = fd;
    return 0;
}

int sq_folder_hold(const char *path, int *ret_fd, struct squall_error *err)
{
    int fd = SQ_UNINTERRUPTED(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return sq_error_errno(err, errno, "%s", path);
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    *ret_fd = fd;
    return 0;
}

void sq_folder_release(int fd)
{
    if (fd < 0)
        return;
    (void)flock(fd, LOCK_UN);
    close(fd);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int sq_folder_list(const char *path, char ***ret_names, size_t *ret_count, struct squall_error *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return sq_error_errno(err, errno, "%s", path);
    char **names = NULL;
    size_t count = 0, capacity = 0;
    int status = 0;
    while (!status) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) {
            status = errno ? sq_error_errno(err, errno, "%s: listing it", path) : 0;
            break;
        }
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        status = SQ_GROW(names, capacity, count + 1, err);
        if (!status && !(names[count] = sq_strdup(entry->d_name)))
            status = sq_error_memory(err, strlen(entry->d_name));
        if (!status)
            count++;
    }
    closedir(folder);
    if (status) {
        sq_names_free(names, count);
        return status;
    }
    if (count)
        qsort(names, count, sizeof *names, by_bytes);
    *ret_names = names;
    *ret_count = count;
    return 0;
}

int sq_folder_list_if_there(const char *path, char ***ret_names, size_t *ret_count, struct squall_error *err)
{
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_FOLDER)
        return sq_folder_list(path, ret_names, ret_count, err);
    *ret_names = NULL;
    *ret_count = 0;
    return 0;
}

int sq_paths_matching(const char *pattern, char ***ret_paths, size_t *ret_count, struct squall_error *err)
{
    glob_t found;
    int how = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (how == GLOB_NOMATCH)
        found.gl_pathc = 0;
    else if (how != 0)
        return how == GLOB_NOSPACE ? sq_error_memory(err, strlen(pattern)) : sq_error_errno(err, errno ? errno : EIO, "%s", pattern);
    char **paths = sq_alloc(found.gl_pathc + 1, sizeof *paths);
    size_t count = 0;
    bool complete = paths != NULL;
    while (complete && count < found.gl_pathc)
        if ((complete = (paths[count] = sq_strdup(found.gl_pathv[count])) != NULL))
            count++;
    if (how == 0)
        globfree(&found);
    if (!complete) {
        sq_names_free(paths, count);
        return sq_error_memory(err, strlen(pattern));
    }
    qsort(paths, count, sizeof *paths, by_bytes);
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

int sq_folder_holds(const char *path, bool *ret_holds, struct squall_error *err)
{
    DIR *folder = opendir(path);
    if (!folder && errno != ENOENT)
        return sq_error_errno(err, errno, "%s", path);
    bool holds = false;
    int os_errno = 0;
    while (folder && !holds) {
        errno = 0;
        struct dirent *entry = readdir(folder);
        if (!entry) {
            os_errno = errno;
            break;
        }
        holds = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (folder)
        closedir(folder);
    if (os_errno)
        return sq_error_errno(err, os_errno, "%s: listing it", path);
    *ret_holds = holds;
    return 0;
}

void sq_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sq_free(names[i]);
    sq_free(names);
}

char *sq_path_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    return sq_format("%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
}

char *sq_path_absolute(const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0); /* malloc'ed by the C library */
    char *made = here ? sq_path_join(here, path) : sq_strdup(path);
    free(here);
    return made;
}

int sq_path_resolve(const char *path, char **ret, struct squall_error *err)
{
    char *resolved = realpath(path, NULL);
    if (!resolved)
        return sq_error_errno(err, errno, "%s", path);
    char *copy = sq_strdup(resolved);
    free(resolved);
    if (!copy)
        return sq_error_memory(err, strlen(path));
    *ret = copy;
    return 0;
}

const char *sq_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *sq_path_folder(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length ? sq_strndup(path, length) : sq_strdup(".");
}
