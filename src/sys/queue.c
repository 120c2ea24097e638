/* See queue.h. */
#include "sys/queue.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <pthread.h>
#include <stdbool.h>

struct sq_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an item came, or the end */
    struct sq_queue_item *first, **last;
    bool ending;
    sq_queue_work *work;
    void *user;
    pthread_t threads[SQ_QUEUE_THREADS_MAX];
    unsigned thread_count;
};

int sq_queue_new(struct sq_queue **ret, struct squall_error *err)
{
    struct sq_queue *q = sq_alloc_zero(1, sizeof *q);
    if (!q)
        return sq_error_memory(err, sizeof *q);
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    *ret = q;
    return 0;
}

void sq_queue_free(struct sq_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    for (unsigned i = 0; i < q->thread_count; i++)
        pthread_join(q->threads[i], NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    sq_free(q);
}

void sq_queue_put(struct sq_queue *q, struct sq_queue_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->last = item;
    q->last = &item->next;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void sq_queue_put_first(struct sq_queue *q, struct sq_queue_item *item)
{
    pthread_mutex_lock(&q->lock);
    item->next = q->first;
    q->first = item;
    if (!item->next)
        q->last = &item->next;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* NULL: the queue is ending and empty. */
struct sq_queue_item *sq_queue_take(struct sq_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->ending)
        pthread_cond_wait(&q->changed, &q->lock);
    struct sq_queue_item *item = q->first;
    if (item) {
        q->first = item->next;
        if (!q->first)
            q->last = &q->first;
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}

static void *run(void *user)
{
    struct sq_queue *q = user;
    struct sq_queue_item *item;
    while ((item = sq_queue_take(q)))
        q->work(q->user, item);
    return NULL;
}

int sq_queue_start(struct sq_queue *q, unsigned threads, sq_queue_work *work, void *user, struct squall_error *err)
{
    q->work = work;
    q->user = user;
    int os_errno = 0;
    while (q->thread_count < threads && q->thread_count < SQ_QUEUE_THREADS_MAX && !os_errno) {
        os_errno = pthread_create(&q->threads[q->thread_count], NULL, run, q);
        q->thread_count += !os_errno;
    }
    return q->thread_count > 0 ? 0 : sq_error_errno(err, os_errno, "starting a thread");
}
