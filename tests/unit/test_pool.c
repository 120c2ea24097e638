/* The shared pool: all tasks run once, seats are exclusive, nesting and forking do not hang, the first failure is the call's. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "sys/pool.h"
#include <stdatomic.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_and_seats_are_exclusive),
        cmocka_unit_test(the_lowest_failing_task_is_the_calls_failure),
        cmocka_unit_test(nested_calls_finish),
        cmocka_unit_test(a_forked_child_has_a_pool_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
