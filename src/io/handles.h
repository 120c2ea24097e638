/*
 * The process's open files. A handle stands for one file as it was first seen; its descriptor is open only as long as there is room. Who
 * reads pins the handle, so that it stays open meanwhile: an atomic addition where the file is open already.
 */
#ifndef SQ_IO_HANDLES_H
#define SQ_IO_HANDLES_H

#include "squall/error.h"
#include "sys/file.h"
#include <stdatomic.h>

struct sq_handle {
    const char *path; /* the owner's */
    struct sq_file_identity identity;
    atomic_uint state; /* 1: fd is open; and 2 for each that has it pinned */
    atomic_bool used;  /* since eviction last came by */
    atomic_uint_fast64_t hits;
    int fd;
    struct sq_handle *next, *previous; /* in the ring of those that are open */
};

/* A file that must be there, found to be what it is; it is open afterwards. path must outlive the handle. Whatever comes of it: sq_handle_done. */
int sq_handle_open(struct sq_handle *h, const char *path, struct squall_error *err) SQUALL_CHECK;
/* A file known from earlier; it is opened when it is first needed. */
void sq_handle_init(struct sq_handle *h, const char *path, const struct sq_file_identity *identity);
void sq_handle_done(struct sq_handle *h); /* nobody has it pinned */

/*
 * *ret_fd stays open until sq_handle_unpin. SQUALL_EIO "FILE changed since it was opened" where another file lies at the path by
 * now, or none, and this one had been closed.
 */
int sq_handle_pin(struct sq_handle *h, int *ret_fd, struct squall_error *err) SQUALL_CHECK;
void sq_handle_unpin(struct sq_handle *h);

/* Close some that nobody reads: another open failed for want of descriptors. false: there is none. */
bool sq_handles_make_room(void);

#endif
