/*
 * Work in parallel whose results go out one after another. Each task leaves its result in one of a few slots; results are
 * placed in the order of the tasks, one at a time, by whichever thread finds the next one ready, while the others go on.
 */
#ifndef SQ_SYS_ORDERED_H
#define SQ_SYS_ORDERED_H

#include "squall/error.h"
#include <stddef.h>

enum { SQ_ORDERED_SLOTS_MAX = 64 };

/* Make result `index` in the slot; worker as in sq_parallel. */
typedef int sq_ordered_work(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err);
/* Take result `index` out of the slot; worker is the thread that does it. */
typedef int sq_ordered_place(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err);

/*
 * slots   how many results may wait (1 to SQ_ORDERED_SLOTS_MAX): several times the threads, where tasks differ in length
 *
 * A non-zero return of work or place ends the call and is returned; results not yet placed are dropped.
 */
int sq_parallel_ordered(unsigned threads, size_t count, unsigned slots, sq_ordered_work *work, sq_ordered_place *place, void *user,
                        struct squall_error *err) SQUALL_CHECK;

#endif
