/* See locks.h. */
#include "sys/locks.h"
#include <pthread.h>

enum { LOCK_COUNT = 64 };

static pthread_mutex_t locks[LOCK_COUNT] = {[0 ... LOCK_COUNT - 1] = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t fork_handler_set = PTHREAD_ONCE_INIT;

/* What the parent's other threads held is void. */
static void reset_in_child(void)
{
    for (unsigned i = 0; i < LOCK_COUNT; i++)
        pthread_mutex_init(&locks[i], NULL);
}

static void set_fork_handler(void)
{
    (void)pthread_atfork(NULL, NULL, reset_in_child);
}

static pthread_mutex_t *lock_of(uint64_t number)
{
    return &locks[(number * UINT64_C(0x9e3779b97f4a7c15)) >> 58]; /* the upper 6 bits of the product: all of the number's count */
}

void sq_locks_hold(uint64_t number)
{
    pthread_once(&fork_handler_set, set_fork_handler);
    pthread_mutex_lock(lock_of(number));
}

void sq_locks_release(uint64_t number)
{
    pthread_mutex_unlock(lock_of(number));
}
