/* See ordered.h. A task waits only for tasks before it, which have all been started, so that the lowest one can always go on. */
#include "sys/ordered.h"
#include "sys/pool.h"
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t moved; /* a result was placed, or something failed */
    sq_ordered_work *work;
    sq_ordered_place *place;
    void *user;
    size_t placed; /* results before this one are out */
    unsigned slots;
    bool ready[SQ_ORDERED_SLOTS_MAX];
    bool placing; /* a thread is at it */
    bool failed;
};

/* Place what is ready; with the lock held, which is released while a result is taken out. */
static int place_ready(struct queue *q, unsigned worker, struct squall_error *err)
{
    while (!q->placing && !q->failed && q->ready[q->placed % q->slots]) {
        size_t index = q->placed;
        unsigned slot = (unsigned)(index % q->slots);
        q->placing = true;
        pthread_mutex_unlock(&q->lock);
        int status = q->place(q->user, index, worker, slot, err);
        pthread_mutex_lock(&q->lock);
        q->placing = false;
        q->failed |= status != 0;
        q->ready[slot] = false;
        q->placed++;
        pthread_cond_broadcast(&q->moved);
        if (status)
            return status;
    }
    return 0;
}

static int run(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct queue *q = user;
    unsigned slot = (unsigned)(index % q->slots);
    pthread_mutex_lock(&q->lock);
    while (index >= q->placed + q->slots && !q->failed)
        pthread_cond_wait(&q->moved, &q->lock);
    bool failed = q->failed;
    pthread_mutex_unlock(&q->lock);
    if (failed)
        return 0; /* whoever failed says so */

    int status = q->work(q->user, index, worker, slot, err);
    pthread_mutex_lock(&q->lock);
    if (status) {
        q->failed = true;
        pthread_cond_broadcast(&q->moved);
    } else {
        q->ready[slot] = true;
        status = place_ready(q, worker, err);
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}

int sq_parallel_ordered(unsigned threads, size_t count, unsigned slots, sq_ordered_work *work, sq_ordered_place *place, void *user,
                        struct squall_error *err)
{
    assert(slots >= 1 && slots <= SQ_ORDERED_SLOTS_MAX);
    struct queue q = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER, .work = work, .place = place, .user = user, .slots = slots};
    int status = sq_parallel(threads, count, run, &q, err);
    pthread_cond_destroy(&q.moved);
    pthread_mutex_destroy(&q.lock);
    return status;
}
