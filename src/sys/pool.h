/*
 * One pool of threads for the process, shared by all callers. The calling thread works too, so a call makes progress when
 * every helper is busy, and nested calls cannot deadlock. A child after fork starts a pool of its own when it first needs one.
 *
 * The process has a number of slots, as many as CPUs that it may use. A caller takes one, nested calls none; helpers work only while a slot is free,
 * and leave between two tasks when callers have come that take them. So many callers at the same time (Dask's threads) are
 * not more threads than so many callers.
 */
#ifndef SQ_SYS_POOL_H
#define SQ_SYS_POOL_H

#include "squall/error.h"
#include <stddef.h>

/* CPUs that this process may use: affinity and cgroup quota; at least 1. */
unsigned sq_cpu_count(void);

/* The slots: what squall_threads_set_limit said, else sq_cpu_count(). */
unsigned sq_thread_count(void);

/*
 * index   which of the tasks
 * worker  below the call's thread count; no two tasks that run at the same time in one call share it, so it can index
 *         the caller's per-worker scratch
 */
typedef int sq_task(void *user, size_t index, unsigned worker, struct squall_error *err);

/*
 * Run task(user, i, …) for each i below count on at most `threads` threads (0: sq_thread_count()), the caller among them;
 * more than there are slots are had while no others are at work. Tasks start in order of i. Returns after all have ended. The failure with the lowest index is the call's own; tasks not
 * yet started then are left out.
 */
int sq_parallel(unsigned threads, size_t count, sq_task *task, void *user, struct squall_error *err) SQUALL_CHECK;

#endif
