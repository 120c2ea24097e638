/*
 * The pool: helpers wait for calls that want hands. A call is a record on its caller's stack in a list; helpers join it while
 * it has room and tasks left and the process has a slot free, and leave it between two tasks when callers have taken all slots. The caller
 * leaves only when no helper is inside. All under one mutex except the tasks, and the count of threads at work.
 */
#include "sys/pool.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "squall/context.h"
#include "sys/cgroup.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HELPER_LIMIT = 255 };

struct call {
    struct call *next, *outer; /* outer: the one that the same thread is in around this one */
    sq_task *task;
    void *user;
    size_t count, started;
    unsigned threads;      /* that it asked for: may work although the process has fewer slots */
    unsigned seats, taken; /* threads that may work on it, and how many do or did (a seat is a worker number) */
    unsigned inside;       /* helpers at work on it now */
    unsigned free_count;   /* seats whose helpers left */
    uint8_t free_seats[HELPER_LIMIT];
    size_t failed_index; /* lowest task that failed; count: none */
    int failed_status;
    struct squall_error failure;
    bool lost_helpers; /* in a child: some were at work on it in the parent */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* a call wants helpers */
    pthread_cond_t left; /* a helper left a call */
    struct call *calls;
    unsigned helpers;       /* threads started */
    atomic_uint call_count; /* in the list */
    atomic_uint working;    /* threads with a slot: callers, and helpers inside a call */
    atomic_uint slots;      /* 0: not yet counted */
    atomic_uint limit;      /* squall_threads_set_limit */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

static _Thread_local unsigned depth;         /* calls that this thread is in, one within the other; of a helper at least 1 */
static _Thread_local struct call *own_calls; /* those with seats for helpers, the innermost first */

/* The child may have been forked within calls, by a task that runs a handler of signals. They go on where no helper was at work on them. */
static void keep_own_calls(void)
{
    pool.calls = NULL;
    unsigned count = 0;
    for (struct call *c = own_calls; c; c = c->outer, count++) {
        c->lost_helpers = c->lost_helpers || c->inside > 0;
        if (c->lost_helpers)
            c->failed_index = 0; /* no task begins any more */
        c->inside = 0;
        c->next = pool.calls;
        pool.calls = c;
    }
    atomic_store(&pool.call_count, count);
}

/* The child has no helpers, and what the parent's threads held is void. */
static void reset_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.left, NULL);
    keep_own_calls();
    pool.helpers = 0;
    atomic_store(&pool.working, depth > 0);
    atomic_store(&pool.slots, 0);
}

static pthread_once_t fork_handler_set = PTHREAD_ONCE_INIT;

static void set_fork_handler(void)
{
    (void)pthread_atfork(NULL, NULL, reset_in_child);
}

unsigned sq_thread_count(void)
{
    unsigned limit = atomic_load(&pool.limit);
    unsigned slots = limit ? limit : sq_cpu_count();
    atomic_store(&pool.slots, slots);
    return slots;
}

void squall_threads_set_limit(unsigned limit)
{
    atomic_store(&pool.limit, limit);
    atomic_store(&pool.slots, 0);
}

static unsigned slot_count(void)
{
    unsigned slots = atomic_load(&pool.slots);
    return slots ? slots : sq_thread_count();
}

/* A caller works at once, whatever the slots. */
static void take_slot(void)
{
    if (depth++ > 0)
        return;
    pthread_once(&fork_handler_set, set_fork_handler);
    atomic_fetch_add(&pool.working, 1);
}

static void give_slot_back(void)
{
    if (--depth > 0)
        return;
    unsigned before = atomic_fetch_sub(&pool.working, 1);
    if (before > atomic_load(&pool.slots) || atomic_load(&pool.call_count) == 0)
        return;
    pthread_mutex_lock(&pool.lock); /* a helper that saw no slot free waits by now */
    pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

static unsigned threads_allowed(const struct call *c)
{
    unsigned slots = slot_count();
    return c->threads > slots ? c->threads : slots;
}

static bool has_tasks(const struct call *c)
{
    return c->started < c->count && c->failed_index == c->count;
}

/* Work on a call from a seat until its tasks are used up; helpers, until their slots are wanted. The lock is held on entry and on return. */
static void work_on(struct call *c, unsigned seat)
{
    while (has_tasks(c) && (seat == 0 || atomic_load(&pool.working) <= threads_allowed(c))) {
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
        if (has_tasks(c) && (c->taken < c->seats || c->free_count > 0) && atomic_load(&pool.working) < threads_allowed(c))
            return c;
    return NULL;
}

static void *help(void *unused)
{
    (void)unused;
    depth = 1; /* what it calls within a task runs in its slot */
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct call *c = call_with_a_seat();
        if (!c) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        unsigned seat = c->free_count > 0 ? c->free_seats[--c->free_count] : c->taken++;
        c->inside++;
        atomic_fetch_add(&pool.working, 1);
        work_on(c, seat);
        atomic_fetch_sub(&pool.working, 1);
        c->free_seats[c->free_count++] = (uint8_t)seat;
        c->inside--;
        pthread_cond_broadcast(&pool.left);
    }
    return NULL;
}

/* Start helpers until `wanted` can be had; fewer are no failure, for the caller works itself. Lock held. */
static void start_helpers(unsigned wanted)
{
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
    atomic_fetch_sub(&pool.call_count, 1);
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

static int run_together(unsigned threads, size_t count, sq_task *task, void *user, struct squall_error *err)
{
    const unsigned seats = threads > count ? (unsigned)count : threads;
    struct call c;
    c.task = task;
    c.user = user;
    c.count = c.failed_index = count;
    c.started = 0;
    c.threads = threads;
    c.seats = seats;
    c.taken = 1;
    c.inside = c.free_count = 0;
    c.lost_helpers = false;
    c.outer = own_calls;
    own_calls = &c;
    pthread_mutex_lock(&pool.lock);
    start_helpers(seats - 1);
    c.next = pool.calls;
    pool.calls = &c;
    atomic_fetch_add(&pool.call_count, 1);
    const unsigned allowed = threads_allowed(&c), working = atomic_load(&pool.working);
    for (unsigned i = 1; i < seats && working + i <= allowed; i++)
        pthread_cond_signal(&pool.work);
    work_on(&c, 0);
    remove_call(&c);
    while (c.inside > 0)
        pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    own_calls = c.outer;
    if (c.lost_helpers)
        return sq_error(err, SQUALL_ECANCELLED,
                        "this process was forked within the call, and what other threads were doing for it is lost: call again");
    if (c.failed_index == count)
        return 0;
    if (err)
        *err = c.failure;
    return c.failed_status;
}

int sq_parallel(unsigned threads, size_t count, sq_task *task, void *user, struct squall_error *err)
{
    if (threads == 0)
        threads = sq_thread_count();
    take_slot();
    int status = threads <= 1 || count <= 1 ? run_alone(count, task, user, err) : run_together(threads, count, task, user, err);
    give_slot_back();
    return status;
}

unsigned sq_cpu_count(void)
{
    cpu_set_t set;
    unsigned count = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    uint64_t quota = sq_cgroup_cpus(SQ_OWN_CGROUPS);
    if (quota < count)
        count = (unsigned)quota;
    return count > 0 ? count : 1;
}
