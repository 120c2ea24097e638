/* Who runs: enough to tell, from another process or after a reboot, whether the one that wrote a lock still lives. */
#ifndef SQ_SYS_PROCESS_H
#define SQ_SYS_PROCESS_H

#include "squall/error.h"
#include <stdbool.h>
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

#endif
