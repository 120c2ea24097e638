/*
 * A store whose init_time begins earlier than it did (--prepend), or has a finer step: every chunk of it gets another index.
 *
 * Renaming chunks in place would, for as long as it takes and whenever it is killed, show values at wrong times. So the store is made a second
 * time beside the first one, as FOLDER/.NAME.squall-moved: its chunks are the same files under second names (hard links, nothing is copied), its
 * coordinates, metadata, records and layout are written anew. When all of it is durable the two exchange names, in one step, and what then lies
 * beside the store goes. So readers, and every later run, find the store as it was or as it is to be, and nothing between. A killed run leaves
 * the store as it was, and a folder beside it that the next run removes.
 *
 * Where the file system cannot exchange names (NFS), the old store steps aside first, as FOLDER/.NAME.squall-old: for a moment there is none.
 * A run that was killed just then is known by that name, and the next one gives the store its own back before anything else.
 */
#ifndef SQ_CONVERT_REKEY_H
#define SQ_CONVERT_REKEY_H

#include "convert/lock.h"
#include "convert/plan.h"

/* Move what is stored as plan->unit_move says. *held: the store's lock, which is one of the moved store afterwards. The plan is to be made again. */
int sq_rekey(struct squall_convert_plan *plan, struct sq_lock **held, struct squall_error *err) SQUALL_CHECK;
/* SQUALL_EREFUSED: a killed run left the store under another name, which the message tells. */
int sq_rekey_look(const char *store, struct squall_error *err) SQUALL_CHECK;
/* Give a store that a killed run left under another name its own. SQUALL_EREFUSED: that run is alive; or something else is in its place. */
int sq_rekey_recover(const char *store, struct squall_error *err) SQUALL_CHECK;
/* Remove what a killed run left beside a store that is there. */
int sq_rekey_sweep(const char *store, struct squall_error *err) SQUALL_CHECK;

#endif
