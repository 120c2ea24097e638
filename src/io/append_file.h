/* A file that only grows, whose every addition is durable before the call returns: what journals are written with. */
#ifndef SQ_IO_APPEND_FILE_H
#define SQ_IO_APPEND_FILE_H

#include "squall/error.h"
#include <stddef.h>

struct sq_append_file;

/* A new file; one that is there already is an error. Its name is durable. *ret: sq_append_file_close. */
int sq_append_file_new(const char *path, struct sq_append_file **ret, struct squall_error *err) SQUALL_CHECK;
/*
 * Write all the bytes and make them durable. After an error the file's end is unknown, and every further addition fails:
 * what is to be said then goes into a new file.
 */
int sq_append_file_add(struct sq_append_file *file, const void *bytes, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
void sq_append_file_close(struct sq_append_file *file); /* NULL is accepted */

#endif
