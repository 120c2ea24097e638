/*
 * Publish a file whole or not at all: unique temporary name (O_EXCL) in the same folder → full write → fdatasync → close
 * checked → rename. On any error the temporary file is removed and the target is as it was; fsync is never retried.
 */
#ifndef SQ_IO_ATOMIC_FILE_H
#define SQ_IO_ATOMIC_FILE_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>

enum sq_durability {
    SQ_DURABILITY_NONE, /* visible whole, no fsync */
    SQ_DURABILITY_DATA, /* the file's bytes are durable before the rename; the caller syncs the folder */
    SQ_DURABILITY_FULL, /* and the folder is synced after it */
};

/* path's folder must exist. Temporary names are ".NAME.MACHINE-PID-START-COUNTER.squall-tmp", the process's own on all machines. */
int sq_atomic_write(const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability,
                    struct squall_error *err) SQUALL_CHECK;
/*
 * The same, but never over a file that is there: *ret_made is false then, and the file as it was. Of several processes that
 * try at once exactly one makes it. Durable (SQ_DURABILITY_FULL).
 */
int sq_atomic_create(const char *path, const void *bytes, size_t size_bytes, bool *ret_made, struct squall_error *err) SQUALL_CHECK;
/*
 * A second name for a file, in the place of what has it already, in one step; the first one stays. Neither is durable: the caller syncs the folder. Where the
 * file system has no links the first name goes, as by a renaming.
 */
int sq_atomic_link(const char *from, const char *to, struct squall_error *err) SQUALL_CHECK;
/* Is this name in a folder one of a temporary file? And is it a dead process's, as far as can be known here? */
bool sq_atomic_is_temporary(const char *name);
bool sq_atomic_is_abandoned(const char *name);

#endif
