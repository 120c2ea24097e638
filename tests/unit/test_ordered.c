/* Ordered hand-over: results come out once each, in order, whatever the threads do; failures end it and come through. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "sys/ordered.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct job {
    size_t in_slot[SQ_ORDERED_SLOTS_MAX];
    size_t next; /* to be placed */
    size_t fail_work, fail_place;
    atomic_int placing;
};

static int work(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct job *job = user;
    (void)worker;
    for (size_t i = 0; i < index * 7 % 5; i++)
        sched_yield();
    if (index == job->fail_work)
        return sq_error(err, SQUALL_ERANGE, "work %zu failed", index);
    job->in_slot[slot] = index + 1000;
    return 0;
}

static int place(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    struct job *job = user;
    (void)worker;
    assert_int_equal(atomic_fetch_add(&job->placing, 1), 0);
    assert_int_equal(index, job->next);
    assert_int_equal(job->in_slot[slot], index + 1000);
    job->next++;
    atomic_fetch_sub(&job->placing, 1);
    return index == job->fail_place ? sq_error(err, SQUALL_EIO, "place %zu failed", index) : 0;
}

static void results_come_out_in_order(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads++) {
        for (unsigned slots = 1; slots <= SQ_ORDERED_SLOTS_MAX; slots = slots * 2 + 1) {
            for (size_t count = 0; count < 300; count = count * 3 + 1) {
                struct job job = {.fail_work = SIZE_MAX, .fail_place = SIZE_MAX};
                assert_int_equal(sq_parallel_ordered(threads, count, slots, work, place, &job, NULL), 0);
                assert_int_equal(job.next, count);
            }
        }
    }
}

static void a_failure_ends_it_and_is_told(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 8; threads++) {
        for (size_t at = 0; at < 40; at += 13) {
            struct squall_error err = SQUALL_ERROR_INIT;
            char expected[40];
            struct job job = {.fail_work = at, .fail_place = SIZE_MAX};
            assert_int_equal(sq_parallel_ordered(threads, 100, 4, work, place, &job, &err), SQUALL_ERANGE);
            snprintf(expected, sizeof expected, "work %zu failed", at);
            assert_string_equal(err.message, expected);
            assert_true(job.next <= at);
            struct job other = {.fail_work = SIZE_MAX, .fail_place = at};
            assert_int_equal(sq_parallel_ordered(threads, 100, 4, work, place, &other, &err), SQUALL_EIO);
            snprintf(expected, sizeof expected, "place %zu failed", at);
            assert_string_equal(err.message, expected);
            assert_int_equal(other.next, at + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_out_in_order),
        cmocka_unit_test(a_failure_ends_it_and_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
