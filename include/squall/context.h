/* A context: the limits under which the library works, and where it tells what it is doing. */
#ifndef SQUALL_CONTEXT_H
#define SQUALL_CONTEXT_H

#include "squall/error.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct squall_context squall_context;

struct squall_context_options {
    unsigned threads;      /* 0: as many as this process may use */
    uint64_t memory_bytes; /* 0: half of the machine's, or of the cgroup's limit */
    /* Asked between pieces of work, from any thread; non-zero ends the work with SQUALL_ECANCELLED. NULL: never. */
    int (*cancelled)(void *user);
    void *user;
    /*
     * Where squall_dataset_open_many keeps what it found in the headers of files, so that they open faster again: a folder, made when it is first
     * needed, which any number of processes share. NULL: nowhere. Copied. The command and the Python package take $XDG_CACHE_HOME/squall.
     */
    const char *cache_folder;
};

/* options may be NULL (the defaults). *ret: squall_context_free. */
int squall_context_new(const struct squall_context_options *options, squall_context **ret, struct squall_error *err) SQUALL_CHECK;
void squall_context_free(squall_context *ctx);

/*
 * Threads of this process that work for the library at the same time, in all calls together and callers included; 0: as many as CPUs that the
 * process may use (affinity, the cgroup's quota), which holds at the start. Callers work at once even where they are more. It is the default
 * of `threads` in contexts that are made from now on; a call whose context says more may use that many.
 */
void squall_threads_set_limit(unsigned limit);

#ifdef __cplusplus
}
#endif
#endif
