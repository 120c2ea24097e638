/* The shared pool: all tasks run once, seats are exclusive, nesting and forking do not hang, the first failure is the call's. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "squall/context.h"
#include "sys/pool.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 2000, SEATS = 8 };

struct tally {
    atomic_int runs[TASKS];
    atomic_int in_seat[SEATS];
    atomic_int clashes;
};

static int count_run(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)err;
    struct tally *t = user;
    if (worker >= SEATS || atomic_fetch_add(&t->in_seat[worker], 1) != 0)
        atomic_fetch_add(&t->clashes, 1);
    atomic_fetch_add(&t->runs[index], 1);
    atomic_fetch_sub(&t->in_seat[worker], 1);
    return 0;
}

static void every_task_runs_once_and_seats_are_exclusive(void **state)
{
    (void)state;
    static struct tally t;
    for (unsigned threads = 1; threads <= SEATS; threads++) {
        memset(&t, 0, sizeof t);
        assert_int_equal(sq_parallel(threads, TASKS, count_run, &t, NULL), 0);
        for (int i = 0; i < TASKS; i++)
            assert_int_equal(t.runs[i], 1);
        assert_int_equal(t.clashes, 0);
    }
}

static int fail_from_seven_on(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)user, (void)worker;
    return index < 7 ? 0 : sq_error(err, SQUALL_ECORRUPT, "task %zu", index);
}

static void the_lowest_failing_task_is_the_calls_failure(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(sq_parallel(threads, 100, fail_from_seven_on, NULL, &err), SQUALL_ECORRUPT);
        assert_string_equal(err.message, "task 7");
    }
}

static int nest(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)index, (void)worker;
    return sq_parallel(4, 50, count_run, user, err);
}

static void nested_calls_finish(void **state)
{
    (void)state;
    static struct tally tallies[6];
    memset(tallies, 0, sizeof tallies);
    for (int i = 0; i < 6; i++)
        assert_int_equal(sq_parallel(4, 3, nest, &tallies[i], NULL), 0);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 50; k++)
            assert_int_equal(tallies[i].runs[k], 3);
}

static void a_forked_child_has_a_pool_of_its_own(void **state)
{
    (void)state;
    static struct tally t;
    memset(&t, 0, sizeof t);
    assert_int_equal(sq_parallel(4, 10, count_run, &t, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        static struct tally own;
        alarm(20); /* a hang ends as a failure */
        _exit(sq_parallel(4, TASKS, count_run, &own, NULL) == 0 && own.runs[TASKS - 1] == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct split {
    atomic_bool helped, forked; /* a helper is within a task; the caller has forked meanwhile */
    pid_t child;                /* 0: this is the child */
};

static int fork_beside_a_helper(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)index, (void)err;
    struct split *s = user;
    if (worker > 0) {
        atomic_store(&s->helped, true);
        while (!atomic_load(&s->forked))
            usleep(100);
    } else if (!atomic_load(&s->forked)) {
        while (!atomic_load(&s->helped))
            usleep(100);
        s->child = fork();
        if (s->child == 0)
            alarm(20);
        atomic_store(&s->forked, true);
    }
    return 0;
}

static int fork_within(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)index, (void)worker;
    return sq_parallel(2, 10, fork_beside_a_helper, user, err);
}

/* As a handler of signals may do within a read: the parent goes on, the child has lost the task of the helper. */
static void a_child_that_is_forked_within_a_call_is_told_so(void **state)
{
    (void)state;
    for (size_t outer = 0; outer < 2; outer++) {
        struct split s = {.child = -1};
        struct squall_error err = SQUALL_ERROR_INIT;
        int result = outer > 0 ? sq_parallel(1, 1, fork_within, &s, &err) : sq_parallel(2, 10, fork_beside_a_helper, &s, &err);
        if (s.child == 0) {
            static struct tally own;
            bool told = result == SQUALL_ECANCELLED && strstr(err.message, "forked");
            _exit(told && sq_parallel(4, TASKS, count_run, &own, NULL) == 0 && own.runs[TASKS - 1] == 1 ? 0 : 1);
        }
        int status;
        assert_int_equal(result, 0);
        assert_int_equal(waitpid(s.child, &status, 0), s.child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

enum { CALLERS = 8 };

struct crowd {
    unsigned threads;
    int wanted;              /* the first tasks wait a while for so many to be at work */
    atomic_int now, most;    /* tasks at work */
    atomic_int begun, ended; /* callers that work, and that have ended */
    atomic_int late;         /* tasks that helpers began while all callers were at work */
    pthread_barrier_t gate;
};

struct seen {
    int most, late;
};

static int dwell(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)err;
    struct crowd *c = user;
    if (worker > 0 && atomic_load(&c->begun) == CALLERS && atomic_load(&c->ended) == 0)
        atomic_fetch_add(&c->late, 1);
    if (index == 0)
        atomic_fetch_add(&c->begun, 1);
    int now = atomic_fetch_add(&c->now, 1) + 1, most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now))
        continue;
    for (int ms = 0; ms < 2000 && atomic_load(&c->most) < c->wanted; ms++)
        usleep(1000);
    usleep(300);
    atomic_fetch_sub(&c->now, 1);
    return 0;
}

static void *call_once(void *user)
{
    struct crowd *c = user;
    pthread_barrier_wait(&c->gate);
    int status = sq_parallel(c->threads, 60, dwell, c, NULL);
    atomic_fetch_add(&c->ended, 1);
    return status ? c : NULL;
}

static struct seen crowd_of(unsigned callers, unsigned threads, unsigned wanted)
{
    struct crowd c = {.threads = threads, .wanted = (int)wanted};
    pthread_t started[CALLERS];
    assert_int_equal(pthread_barrier_init(&c.gate, NULL, callers), 0);
    for (unsigned i = 0; i < callers; i++)
        assert_int_equal(pthread_create(&started[i], NULL, call_once, &c), 0);
    for (unsigned i = 0; i < callers; i++) {
        void *failed;
        assert_int_equal(pthread_join(started[i], &failed), 0);
        assert_null(failed);
    }
    pthread_barrier_destroy(&c.gate);
    return (struct seen){atomic_load(&c.most), atomic_load(&c.late)};
}

static void callers_and_helpers_together_keep_to_the_slots(void **state)
{
    (void)state;
    for (unsigned slots = 1; slots <= 4; slots++) {
        squall_threads_set_limit(slots);
        assert_int_equal(crowd_of(1, 0, slots).most, slots);
        assert_in_range(crowd_of(2, 0, 2).most, 2, slots + 2); /* the second came while helpers were at tasks */
        /* where callers take all slots, each helper ends the task that it is at, and begins at most one that was its own by then */
        assert_in_range(crowd_of(CALLERS, 0, CALLERS).late, 0, slots - 1);
    }
    squall_threads_set_limit(2);
    assert_int_equal(crowd_of(1, 4, 4).most, 4); /* who asks for more has them */
    squall_threads_set_limit(0);
    assert_int_equal(sq_thread_count(), sq_cpu_count());
}

static int dwell_nested(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)index, (void)worker;
    return sq_parallel(0, 3, dwell, user, err);
}

static void nested_calls_work_in_their_callers_slots(void **state)
{
    (void)state;
    squall_threads_set_limit(3);
    struct crowd c = {.wanted = 3};
    assert_int_equal(sq_parallel(0, 20, dwell_nested, &c, NULL), 0);
    assert_int_equal(c.most, 3);
    squall_threads_set_limit(0);
}

static void *dwell_alone(void *user)
{
    return sq_parallel(1, 100, dwell, user, NULL) ? user : NULL;
}

static void threads_of_a_parent_hold_no_slots_of_its_child(void **state)
{
    (void)state;
    struct crowd c = {0};
    pthread_t started[2];
    squall_threads_set_limit(2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&started[i], NULL, dwell_alone, &c), 0);
    while (atomic_load(&c.now) < 2)
        usleep(100);
    pid_t child = fork();
    if (child == 0) {
        struct crowd own = {.wanted = 2};
        alarm(20);
        _exit(sq_parallel(2, 60, dwell, &own, NULL) == 0 ? own.most : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(started[i], NULL), 0);
    squall_threads_set_limit(0);
}

/* Helpers that gave their slots up take them again, in seats that nobody sits in. */
static void *count_beside_others(void *user)
{
    int status = 0;
    for (int i = 0; i < 200; i++)
        status |= sq_parallel(1, 20, count_run, user, NULL);
    return status ? user : NULL;
}

static void seats_stay_exclusive_where_helpers_come_and_go(void **state)
{
    (void)state;
    static struct tally t, others[4];
    memset(&t, 0, sizeof t);
    squall_threads_set_limit(3);
    pthread_t started[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&started[i], NULL, count_beside_others, &others[i]), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(sq_parallel(3, TASKS, count_run, &t, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(started[i], &failed), 0);
        assert_null(failed);
    }
    squall_threads_set_limit(0);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(t.runs[i], 50);
    assert_int_equal(t.clashes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_and_seats_are_exclusive),
        cmocka_unit_test(the_lowest_failing_task_is_the_calls_failure),
        cmocka_unit_test(nested_calls_finish),
        cmocka_unit_test(a_forked_child_has_a_pool_of_its_own),
        cmocka_unit_test(a_child_that_is_forked_within_a_call_is_told_so),
        cmocka_unit_test(callers_and_helpers_together_keep_to_the_slots),
        cmocka_unit_test(nested_calls_work_in_their_callers_slots),
        cmocka_unit_test(threads_of_a_parent_hold_no_slots_of_its_child),
        cmocka_unit_test(seats_stay_exclusive_where_helpers_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
