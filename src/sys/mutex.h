/* One thread at a time. Waiting for something to happen is sys/queue.h's, working in parallel sys/pool.h's. */
#ifndef SQ_SYS_MUTEX_H
#define SQ_SYS_MUTEX_H

#include <pthread.h>

struct sq_mutex {
    pthread_mutex_t system;
};

#define SQ_MUTEX_INIT                                                                                                                      \
    {                                                                                                                                      \
        PTHREAD_MUTEX_INITIALIZER                                                                                                          \
    }

static inline void sq_mutex_init(struct sq_mutex *mutex)
{
    pthread_mutex_init(&mutex->system, NULL);
}

static inline void sq_mutex_done(struct sq_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->system);
}

static inline void sq_mutex_lock(struct sq_mutex *mutex)
{
    pthread_mutex_lock(&mutex->system);
}

static inline void sq_mutex_unlock(struct sq_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->system);
}

#endif
