/*
 * Files as the library uses them: whole reads, names, folders, with errors told in words. How files are written safely is
 * told in io/atomic_file.h and io/append_file.h.
 */
#ifndef SQ_SYS_FILE_H
#define SQ_SYS_FILE_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call that gives -1, again and again while a signal interrupts it. Not for close, after which the descriptor is gone. */
#define SQ_UNINTERRUPTED(call)                                                                                                             \
    ({                                                                                                                                     \
        __typeof__(call) sq_result_;                                                                                                       \
        do                                                                                                                                 \
            sq_result_ = (call);                                                                                                           \
        while (sq_result_ == -1 && errno == EINTR);                                                                                        \
        sq_result_;                                                                                                                        \
    })

/* Which file this is; another identity under the same path is another file. */
struct sq_file_identity {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_ns; /* since 1970 */
    int64_t ctime_ns; /* of the inode: links and modes change it, too, so that the same file may have another one */
};

/* In place of a time of change: the file is written to while it is known, and stays the same whatever its size and time are. */
#define SQ_FILE_CHANGES INT64_MIN

static inline bool sq_file_identity_same(const struct sq_file_identity *a, const struct sq_file_identity *b)
{
    if (a->mtime_ns == SQ_FILE_CHANGES || b->mtime_ns == SQ_FILE_CHANGES)
        return a->device == b->device && a->inode == b->inode;
    return a->device == b->device && a->inode == b->inode && a->size_bytes == b->size_bytes && a->mtime_ns == b->mtime_ns;
}

enum sq_file_kind { SQ_FILE_NONE, SQ_FILE_REGULAR, SQ_FILE_FOLDER, SQ_FILE_OTHER };

/* What is at path (links followed); SQ_FILE_NONE and 0 where nothing is. identity may be NULL. */
int sq_file_stat(const char *path, enum sq_file_kind *ret_kind, struct sq_file_identity *ret_identity,
                 struct squall_error *err) SQUALL_CHECK;

/* Is there an entry of this name? Links are not followed: a link that leads nowhere is an entry. */
int sq_file_exists(const char *path, bool *ret_exists, struct squall_error *err) SQUALL_CHECK;

/* A folder, and no link to one: what walks a tree stays in it, and comes to an end. */
bool sq_folder_is_real(const char *path);

/* *ret_fd: close with sq_file_close. A folder, device or pipe is refused (SQUALL_EUNSUPPORTED). ret_identity may be NULL. */
int sq_file_open(const char *path, int *ret_fd, struct sq_file_identity *ret_identity, struct squall_error *err) SQUALL_CHECK;
void sq_file_close(int fd); /* for descriptors only read from; -1 is accepted */

/* Exactly size_bytes at offset, or an error: "PATH: ends at byte N, M bytes wanted at K". */
int sq_file_read_at(int fd, const char *path, uint64_t offset, void *dst, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/* A small file whole, NUL-terminated (the NUL is not counted); more than limit_bytes is SQUALL_ECORRUPT. *ret: sq_free. */
int sq_file_read_all(const char *path, size_t limit_bytes, char **ret, size_t *ret_size, struct squall_error *err) SQUALL_CHECK;

/*
 * Writing into a file that is there, at any place and by any number of threads: *ret_fd of a regular file, whose close (sq_file_close_written) may
 * tell of a write that failed.
 */
int sq_file_open_to_write(const char *path, int *ret_fd, struct sq_file_identity *ret_identity, struct squall_error *err) SQUALL_CHECK;
int sq_file_write_at(int fd, const char *path, uint64_t offset, const void *src, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
int sq_file_set_size(int fd, const char *path, uint64_t size_bytes, struct squall_error *err) SQUALL_CHECK;
int sq_file_make_durable(int fd, const char *path, struct squall_error *err) SQUALL_CHECK; /* what was written, not the name */
int sq_file_close_written(int fd, const char *path, struct squall_error *err) SQUALL_CHECK;
/*
 * Does the file system write back whole pages that it cached, so that machines which write into one page overwrite each other's bytes: NFS, SMB?
 */
bool sq_file_is_remote(int fd);
/*
 * Wait until no other descriptor holds any of the pages that the range lies in, then hold them until the descriptor is closed or they
 * are released. For descriptors of one thread.
 */
int sq_file_hold_pages(int fd, const char *path, uint64_t offset, uint64_t size_bytes, struct squall_error *err) SQUALL_CHECK;
int sq_file_release_pages(int fd, const char *path, uint64_t offset, uint64_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/* A new file of size_bytes that begins with these bytes, and is 0 behind them; SQUALL_EREFUSED where something is there already. */
int sq_file_create(const char *path, const void *bytes, size_t count, uint64_t size_bytes, struct squall_error *err) SQUALL_CHECK;

int sq_folder_make(const char *path, struct squall_error *err) SQUALL_CHECK; /* one level; an existing folder is fine */
/*
 * And its parents, so that all their names are durable. The rule that makes this cheap: nothing is put into a folder before the folder's own
 * name is durable. So one that holds something needs no sync, whichever thread or process made it.
 */
int sq_folder_make_durable(const char *path, struct squall_error *err) SQUALL_CHECK;
int sq_folder_sync(const char *path, struct squall_error *err) SQUALL_CHECK; /* names made or renamed in it are durable after this */
/* Of the whole file system that the folder lies in: for so many names that a sync of each folder takes too long. */
int sq_file_system_sync(const char *path, struct squall_error *err) SQUALL_CHECK;
int sq_file_remove(const char *path, struct squall_error *err) SQUALL_CHECK; /* a missing one is fine */
int sq_tree_remove(const char *path,
                   struct squall_error *err) SQUALL_CHECK; /* a file, or a folder and all in it; links are removed, not followed */
int sq_file_rename(const char *from, const char *to, struct squall_error *err) SQUALL_CHECK;
int sq_file_link(const char *path, const char *name, struct squall_error *err) SQUALL_CHECK; /* name: a second one of the same file */
/*
 * `made` takes the name of what lies at `path`: in one step, so that it is never missing; where the file system cannot, that goes to `aside` first,
 * and comes back if made cannot follow. *ret_old: where it lies then, made or aside.
 */
int sq_tree_exchange(const char *made, const char *path, const char *aside, const char **ret_old, struct squall_error *err) SQUALL_CHECK;

/*
 * Wait until nobody else holds this file (it is made where it is not there), then hold it until *ret_fd is closed
 * (sq_file_close) or the process ends. For short critical sections; where the file system has no locks, nothing is held.
 */
int sq_file_hold(const char *path, int *ret_fd, struct squall_error *err) SQUALL_CHECK;

/*
 * The same for a folder that is there, in which no file is made for it: *ret_fd is closed with sq_folder_release, which ends the holding even where
 * a child of a fork has a copy of it.
 */
int sq_folder_hold(const char *path, int *ret_fd, struct squall_error *err) SQUALL_CHECK;
void sq_folder_release(int fd); /* -1 is accepted */

/* Is path a folder with something in it? false and 0 also where nothing is there. */
int sq_folder_holds(const char *path, bool *ret_holds, struct squall_error *err) SQUALL_CHECK;
/* Names in a folder, sorted by bytes, without . and .. ; free with sq_names_free. */
int sq_folder_list(const char *path, char ***ret_names, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;
/* The same, and none where no folder is there. */
int sq_folder_list_if_there(const char *path, char ***ret_names, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;
void sq_names_free(char **names, size_t count);

/* The paths that match a shell's pattern, sorted by bytes; sq_names_free. A pattern that matches nothing gives none. */
int sq_paths_matching(const char *pattern, char ***ret_paths, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;

/* From the root on, as it is now; the path itself where the folder that it is in cannot be told. NULL: out of memory. sq_free. */
char *sq_path_absolute(const char *path) __attribute__((warn_unused_result));
/* "folder/name"; NULL: out of memory. sq_free. */
char *sq_path_join(const char *folder, const char *name) __attribute__((warn_unused_result));
/* The path without links in it; what it names must be there. *ret: sq_free. */
int sq_path_resolve(const char *path, char **ret, struct squall_error *err) SQUALL_CHECK;
const char *sq_path_name(const char *path); /* the part behind the last slash */
/* What it lies in, without a slash at the end; "." where it says nothing. NULL: out of memory; sq_free. */
char *sq_path_folder(const char *path) __attribute__((warn_unused_result));

#endif
