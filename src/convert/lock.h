/*
 * Who works on a store. One conversion of the whole at a time holds the file "lock" in the records' folder. Parts of one conversion
 * (--part I/N) work beside each other: each holds "lock-part-I-of-N" as long as it runs, and "lock" only while it prepares or finishes.
 * A lock tells its holder by host, process, the process's start and the machine's, so that what a killed process left behind on this
 * machine is known to be nobody's and is taken over.
 */
#ifndef SQ_CONVERT_LOCK_H
#define SQ_CONVERT_LOCK_H

#include "squall/context.h"
#include "squall/error.h"
#include <stdbool.h>

struct sq_lock;

/* Of the units of a store those whose number leaves number - 1 when divided by count. {0}: all of them. */
struct sq_part {
    unsigned number, count;
};

static inline bool sq_part_has(struct sq_part part, uint64_t unit)
{
    return part.count == 0 || unit % part.count == part.number - 1;
}

/* How long to wait for who holds a lock. NULL: not at all. */
struct sq_patience {
    const squall_context *ctx; /* cancelled: no longer */
    double until_s;            /* sq_clock_s */
};

/*
 * SQUALL_EREFUSED naming the holder, where one lives that the part (or the whole) cannot work beside and still does when patience ends; 0 where
 * there is none (the folder need not exist). SQUALL_ECANCELLED.
 */
int sq_lock_look(const char *records_folder, struct sq_part part, const struct sq_patience *patience,
                 struct squall_error *err) SQUALL_CHECK;
/* Take a part's own, or with {0} that of the whole. *ret: sq_lock_release. Errors as above. */
int sq_lock_take(const char *records_folder, struct sq_part part, const struct sq_patience *patience, struct sq_lock **ret,
                 struct squall_error *err) SQUALL_CHECK;
/*
 * Take "lock" for a part that holds its own, when those other parts that hold it are done. SQUALL_EREFUSED where a conversion of the whole
 * or a part of another count lives, or where a part elsewhere has not moved for long.
 */
int sq_lock_wait(const char *records_folder, struct sq_part part, const squall_context *ctx, struct sq_lock **ret,
                 struct squall_error *err) SQUALL_CHECK;
/* Does any other part hold its lock, dead ones on this machine aside? With "lock" held. */
int sq_lock_alone(const char *records_folder, struct sq_part part, bool *ret, struct squall_error *err) SQUALL_CHECK;
void sq_lock_release(struct sq_lock *lock); /* NULL is accepted */
/* The records' folder has another name now (its store was renamed): what is released is the lock there. */
int sq_lock_moved(struct sq_lock *lock, const char *records_folder, struct squall_error *err) SQUALL_CHECK;

#endif
