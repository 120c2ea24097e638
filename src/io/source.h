/*
 * A byte source: something of known size that is read by ranges. Files by pread (never mmap), through the process's open files (handles.h),
 * so that thousands of sources need no more descriptors than there are; memory, later HTTP and S3.
 */
#ifndef SQ_IO_SOURCE_H
#define SQ_IO_SOURCE_H

#include "squall/error.h"
#include "sys/file.h"
#include <stddef.h>
#include <stdint.h>

struct sq_source;

/* *ret: close with sq_source_close. Safe for reads from several threads at once. */
int sq_source_open_file(const char *path, struct sq_source **ret, struct squall_error *err) SQUALL_CHECK;
/* A file that was opened before and known by this identity; it is opened when it is first read. NULL: out of memory. */
struct sq_source *sq_source_of_file(const char *path, const struct sq_file_identity *identity);
/* The bytes stay the caller's and must outlive the source; name is for messages. */
int sq_source_open_memory(const void *bytes, size_t size_bytes, const char *name, struct sq_source **ret,
                          struct squall_error *err) SQUALL_CHECK;
void sq_source_close(struct sq_source *s); /* NULL is accepted */

uint64_t sq_source_size(const struct sq_source *s);
const char *sq_source_name(const struct sq_source *s);
struct sq_file_identity sq_source_identity(const struct sq_source *s); /* of a memory source: zero but for the size */

/* Exactly size_bytes, or an error that names source and offset. */
int sq_source_read(struct sq_source *s, uint64_t offset, void *dst, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/* Tell the system that this range is wanted soon; a hint that cannot fail. */
void sq_source_prefetch(struct sq_source *s, uint64_t offset, uint64_t size_bytes);
/* The file is going to be written to: it counts as changed only where another one lies at its path. Before it is read by several threads. */
void sq_source_expect_changes(struct sq_source *s);
/* We made the file longer, or shorter again. Not while it is read. */
void sq_source_set_size(struct sq_source *s, uint64_t size_bytes);
/* After a read: SQUALL_EIO "PATH changed since it was opened" where the file's identity is another one now, or that it is gone. */
int sq_source_check_unchanged(struct sq_source *s, struct squall_error *err) SQUALL_CHECK;

#endif
