/*
 * Things that pass from thread to thread: who takes waits until there is one. A queue may have threads of its own that work
 * on what is put into it; they are for work that waits, for a disk say, and so must not hold up the pool (sys/pool.h).
 */
#ifndef SQ_SYS_QUEUE_H
#define SQ_SYS_QUEUE_H

#include "squall/error.h"

/* The first member of whatever is queued; an item is in one queue at a time. */
struct sq_queue_item {
    struct sq_queue_item *next;
};

struct sq_queue;

/* *ret: sq_queue_free. */
int sq_queue_new(struct sq_queue **ret, struct squall_error *err) SQUALL_CHECK;
/* End the threads when all that was put is worked on. Nobody else may be waiting. NULL is accepted; items are their owner's. */
void sq_queue_free(struct sq_queue *queue);

void sq_queue_put(struct sq_queue *queue, struct sq_queue_item *item);       /* behind all others */
void sq_queue_put_first(struct sq_queue *queue, struct sq_queue_item *item); /* the next to be taken */
struct sq_queue_item *sq_queue_take(struct sq_queue *queue);                 /* waits for one */

typedef void sq_queue_work(void *user, struct sq_queue_item *item);

enum { SQ_QUEUE_THREADS_MAX = 8 };

/* Start threads that take and work, once for a queue. Fewer than are asked for are no failure, none is. */
int sq_queue_start(struct sq_queue *queue, unsigned threads, sq_queue_work *work, void *user, struct squall_error *err) SQUALL_CHECK;

#endif
