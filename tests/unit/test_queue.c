/* The queue between threads: nothing is lost or taken twice, order is kept, and the end waits for what was put. */
#include "support/unit.h"

#include "sys/mutex.h"
#include "sys/queue.h"
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { COUNT = 2000 };

struct thing {
    struct sq_queue_item item;
    size_t number;
    atomic_int worked_on;
};

static struct thing things[COUNT];

struct journey {
    struct sq_queue *back;
    struct sq_mutex lock;
    size_t inside, order[COUNT], count;
};

static void work(void *user, struct sq_queue_item *item)
{
    struct journey *j = user;
    struct thing *t = (struct thing *)item;
    atomic_fetch_add(&t->worked_on, 1);
    if (t->number % 7 == 0)
        sched_yield();
    sq_mutex_lock(&j->lock);
    assert_int_equal(j->inside++, 0);
    j->order[j->count++] = t->number;
    j->inside--;
    sq_mutex_unlock(&j->lock);
    sq_queue_put(j->back, item);
}

static void start(struct journey *j)
{
    memset(j, 0, sizeof *j);
    sq_mutex_init(&j->lock);
    assert_int_equal(sq_queue_new(&j->back, NULL), 0);
    for (size_t i = 0; i < COUNT; i++) {
        things[i].number = i;
        atomic_store(&things[i].worked_on, 0);
    }
}

static void done(struct journey *j)
{
    sq_queue_free(j->back);
    sq_mutex_done(&j->lock);
}

static void the_end_waits_for_all_that_was_put(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= SQ_QUEUE_THREADS_MAX; threads++) {
        struct journey j;
        struct sq_queue *q = NULL;
        start(&j);
        assert_int_equal(sq_queue_new(&q, NULL), 0);
        assert_int_equal(sq_queue_start(q, threads, work, &j, NULL), 0);
        for (size_t i = 0; i < COUNT; i++)
            sq_queue_put(q, &things[i].item);
        sq_queue_free(q);
        assert_int_equal(j.count, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(atomic_load(&things[i].worked_on), 1);
            assert_true(threads > 1 || j.order[i] == i);
        }
        done(&j);
    }
}

static void a_taker_waits_until_something_comes(void **state)
{
    (void)state;
    struct journey j;
    struct sq_queue *q = NULL;
    start(&j);
    assert_int_equal(sq_queue_new(&q, NULL), 0);
    assert_int_equal(sq_queue_start(q, 2, work, &j, NULL), 0);
    sq_queue_put(q, &things[0].item);
    for (size_t i = 0; i < COUNT; i++) { /* one thing, round and round */
        struct sq_queue_item *item = sq_queue_take(j.back);
        assert_ptr_equal(item, &things[0].item);
        if (i + 1 < COUNT)
            sq_queue_put(q, item);
    }
    sq_queue_free(q);
    assert_int_equal(atomic_load(&things[0].worked_on), COUNT);
    done(&j);
}

static void what_is_put_first_is_taken_first(void **state)
{
    (void)state;
    struct sq_queue *q = NULL;
    assert_int_equal(sq_queue_new(&q, NULL), 0);
    sq_queue_put_first(q, &things[1].item); /* into an empty one: also its end */
    sq_queue_put(q, &things[2].item);
    sq_queue_put_first(q, &things[0].item);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(sq_queue_take(q), &things[i].item);
    sq_queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_waits_for_all_that_was_put),
        cmocka_unit_test(a_taker_waits_until_something_comes),
        cmocka_unit_test(what_is_put_first_is_taken_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
