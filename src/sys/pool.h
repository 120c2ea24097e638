/*
 * One pool of threads for the process, shared by all callers. The calling thread works too, so a call makes progress when
 * every helper is busy, nested calls cannot deadlock, and a caller with one task pays nothing. A child after fork starts
 * a pool of its own when it first needs one.
 */
#ifndef SQ_SYS_POOL_H
#define SQ_SYS_POOL_H

#include "squall/error.h"
#include <stddef.h>

/* CPUs that this process may use: affinity and cgroup quota; at least 1. */
unsigned sq_cpu_count(void);

/*
 * index   which of the tasks
 * worker  below the call's thread count; no two tasks that run at the same time in one call share it, so it can index
 *         the caller's per-worker scratch
 */
typedef int sq_task(void *user, size_t index, unsigned worker, struct squall_error *err);

/*
 * Run task(user, i, …) for each i below count on at most `threads` threads (0: sq_cpu_count()), the caller among them;
 * tasks start in order of i. Returns after all have ended. The failure with the lowest index is the call's own; tasks not
 * yet started then are left out.
 */
int sq_parallel(unsigned threads, size_t count, sq_task *task, void *user, struct squall_error *err) SQUALL_CHECK;

#endif
