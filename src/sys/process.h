/* Processes: enough to tell, from another one or after a reboot, whether the one that wrote a lock still lives; this one's limits and forks. */
#ifndef SQ_SYS_PROCESS_H
#define SQ_SYS_PROCESS_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_process {
    char host[256];
    char boot[40]; /* changes with every start of the machine; "" where the system does not tell */
    int64_t pid;
    uint64_t start_ticks; /* when it began, in clock ticks since boot: tells it from a later process with its pid */
};

int sq_process_self(struct sq_process *ret, struct squall_error *err) SQUALL_CHECK;

enum sq_process_state { SQ_PROCESS_LIVES, SQ_PROCESS_DEAD, SQ_PROCESS_ELSEWHERE /* on another host: nobody here can know */ };

/* `self` is the asking process. */
enum sq_process_state sq_process_look(const struct sq_process *other, const struct sq_process *self);

/* How many files this process may have open; never 0. */
size_t sq_process_open_files_limit(void);

/* From now on, around each fork. Locks that are held across it keep what they guard whole for the child. false: the system refused. */
bool sq_process_at_fork(void (*before)(void), void (*after_in_parent)(void), void (*after_in_child)(void));

#endif
