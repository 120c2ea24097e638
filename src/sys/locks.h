/*
 * Locks by number, for the threads of this process: who holds one keeps others with the same number waiting. There are few, so that different
 * numbers may share one: never hold two at a time. A child after fork begins with none held.
 */
#ifndef SQ_SYS_LOCKS_H
#define SQ_SYS_LOCKS_H

#include <stdint.h>

void sq_locks_hold(uint64_t number);
void sq_locks_release(uint64_t number);

#endif
