/*
 * One conversion at a time: a file "lock" in the records' folder says who works on the store. It says it by host, process,
 * the process's start and the machine's, so that what a killed run left behind is known to be nobody's and is taken over.
 */
#ifndef SQ_CONVERT_LOCK_H
#define SQ_CONVERT_LOCK_H

#include "squall/error.h"

struct sq_lock;

/* SQUALL_EREFUSED naming the holder, where one lives; 0 where nobody holds the store (its folder need not exist). */
int sq_lock_look(const char *records_folder, struct squall_error *err) SQUALL_CHECK;
/* Take it. *ret: sq_lock_release. SQUALL_EREFUSED as above. */
int sq_lock_take(const char *records_folder, struct sq_lock **ret, struct squall_error *err) SQUALL_CHECK;
void sq_lock_release(struct sq_lock *lock); /* NULL is accepted */
/* The records' folder has another name now (its store was renamed): what is released is the lock there. */
int sq_lock_moved(struct sq_lock *lock, const char *records_folder, struct squall_error *err) SQUALL_CHECK;

#endif
