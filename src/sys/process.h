/* Processes: enough to tell, from another one or after a reboot, whether the one that wrote a lock still lives; this one's limits and forks. */
#ifndef SQ_SYS_PROCESS_H
#define SQ_SYS_PROCESS_H

#include "squall/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_process {
    char host[256];
    char boot[40];          /* changes with every start of the machine; "" where the system does not tell */
    char pid_namespace[40]; /* in which pid counts: containers have their own; "" where the system does not tell */
    int64_t pid;
    uint64_t start_ticks; /* when it began, in clock ticks since boot: tells it from a later process with its pid */
};

int sq_process_self(struct sq_process *ret, struct squall_error *err) SQUALL_CHECK;

/* Elsewhere: on another host or an earlier start of one, or in another container; nobody here can know. */
enum sq_process_state { SQ_PROCESS_LIVES, SQ_PROCESS_DEAD, SQ_PROCESS_ELSEWHERE };

/* `self` is the asking process. */
enum sq_process_state sq_process_look(const struct sq_process *other, const struct sq_process *self);

/* The same in few characters, for the names of files. */
struct sq_process_tag {
    uint32_t machine; /* a checksum of host, boot and namespace */
    int64_t pid;
    uint64_t start_ticks;
};
struct sq_process_tag sq_process_tag(void); /* of this process */
enum sq_process_state sq_process_look_tag(const struct sq_process_tag *other);

/* How many files this process may have open; never 0. */
size_t sq_process_open_files_limit(void);

/* From now on, around each fork. Locks that are held across it keep what they guard whole for the child. false: the system refused. */
bool sq_process_at_fork(void (*before)(void), void (*after_in_parent)(void), void (*after_in_child)(void));

#endif
