/* Open files. What reads files keeps none open by right: a process-wide cache closes those used least recently, and opens them again when they are needed. */
#ifndef SQUALL_HANDLES_H
#define SQUALL_HANDLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct squall_handles {
    size_t open;      /* files that are open now */
    size_t limit;     /* at most so many stay open; more only while as many are being read at one moment */
    uint64_t hits;    /* reads that found their file open */
    uint64_t opened;  /* files opened, again or for the first time */
    uint64_t evicted; /* files closed to make room for others */
};

/* Of this process, since it began or was forked off. */
struct squall_handles squall_handles(void);

/*
 * From now on at most so many files stay open. 0: the limit that holds at the start, half of what the system lets the process open (RLIMIT_NOFILE),
 * at most 4096. More than the system's limit less 16 counts as that. Returns the limit that holds now.
 */
size_t squall_handles_set_limit(size_t limit);

#ifdef __cplusplus
}
#endif
#endif
