/*
 * The pool: helpers wait for calls that want hands. A call is a record on its caller's stack in a list; helpers join it while
 * it has room and tasks left, and the caller leaves only when no helper is inside. All under one mutex except the tasks.
 */
#include "sys/pool.h"
#include "base/memory.h"
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELPER_LIMIT = 255 };

struct call {
    struct call *next;
    sq_task *task;
    void *user;
    size_t count, started;
    unsigned seats, taken; /* threads that may work on it, and how many do or did (a seat is a worker number) */
    unsigned inside;       /* helpers at work on it now */
    size_t failed_index;   /* lowest task that failed; count: none */
    int failed_status;
    struct squall_error failure;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a call wants helpers */
    pthread_cond_t left; /* a helper left a call */
    struct call *calls;
    unsigned helpers; /* threads started */
    unsigned idle;
    bool fork_handler_set;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* The child has no helpers, and what the parent's threads held is void. */
static void reset_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.left, NULL);
    pool.calls = NULL;
    pool.helpers = 0;
    pool.idle = 0;
}

/* Work on a call from a seat until its tasks are used up. The lock is held on entry and on return. */
static void work_on(struct call *c, unsigned seat)
{
    while (c->started < c->count && c->failed_index == c->count) {
        size_t index = c->started++;
        pthread_mutex_unlock(&pool.lock);
        struct squall_error err = SQUALL_ERROR_INIT;
        int status = c->task(c->user, index, seat, &err);
        pthread_mutex_lock(&pool.lock);
        if (status && index < c->failed_index) {
            c->failed_index = index;
            c->failed_status = status;
            c->failure = err;
        }
    }
}

static struct call *call_with_a_seat(void)
{
    for (struct call *c = pool.calls; c; c = c->next)
        if (c->taken < c->seats && c->started < c->count && c->failed_index == c->count)
            return c;
    return NULL;
}

static void *help(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct call *c = call_with_a_seat();
        if (!c) {
            pool.idle++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.idle--;
            continue;
        }
        unsigned seat = c->taken++;
        c->inside++;
        work_on(c, seat);
        c->inside--;
        pthread_cond_broadcast(&pool.left);
    }
    return NULL;
}

/* Start helpers until `wanted` can be had; fewer are no failure, for the caller works itself. Lock held. */
static void start_helpers(unsigned wanted)
{
    if (!pool.fork_handler_set)
        pool.fork_handler_set = pthread_atfork(NULL, NULL, reset_in_child) == 0;
    if (wanted > HELPER_LIMIT)
        wanted = HELPER_LIMIT;
    while (pool.helpers < wanted) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, help, NULL);
        pthread_attr_destroy(&attributes);
        if (failed)
            return;
        pool.helpers++;
    }
}

static void remove_call(struct call *c)
{
    struct call **at = &pool.calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
}

static int run_alone(size_t count, sq_task *task, void *user, struct squall_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int status = task(user, i, 0, err);
        if (status)
            return status;
    }
    return 0;
}

int sq_parallel(unsigned threads, size_t count, sq_task *task, void *user, struct squall_error *err)
{
    if (threads == 0)
        threads = sq_cpu_count();
    if (threads > count)
        threads = (unsigned)count;
    if (threads <= 1)
        return run_alone(count, task, user, err);

    struct call c = {.task = task, .user = user, .count = count, .seats = threads, .taken = 1, .failed_index = count};
    pthread_mutex_lock(&pool.lock);
    start_helpers(threads - 1);
    c.next = pool.calls;
    pool.calls = &c;
    for (unsigned i = 1; i < threads; i++)
        pthread_cond_signal(&pool.work);
    work_on(&c, 0);
    remove_call(&c);
    while (c.inside > 0)
        pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    if (c.failed_index == count)
        return 0;
    if (err)
        *err = c.failure;
    return c.failed_status;
}

/* The cgroup's CPU quota, rounded up; 0 where there is none. */
static unsigned quota_of_cgroup(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!f)
        return 0;
    long quota = 0, period = 0;
    int got = fscanf(f, "%ld %ld", &quota, &period); /* "max 100000" where there is none */
    fclose(f);
    return got == 2 && quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

unsigned sq_cpu_count(void)
{
    cpu_set_t set;
    unsigned count = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    unsigned quota = quota_of_cgroup();
    if (quota > 0 && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}
