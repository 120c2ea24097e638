/* Every array's own zarr.json against what the root's consolidated metadata says of it: readers go by the one or by the other. */
#ifndef SQ_CONVERT_VERIFY_METADATA_H
#define SQ_CONVERT_VERIFY_METADATA_H

#include "convert/store_state.h"

/* line: the file and what is wrong with it, the visitor's to free; NULL: out of memory, as it returns then. */
typedef int sq_metadata_finding(void *user, char *line, struct squall_error *err);

/*
 * A run that was killed before it came to the root leaves arrays as long as layout.json has them behind a root that does not know it yet: no damage.
 * A root that cannot be read, or has no such metadata, is passed over: whoever opens the store tells of it.
 */
int sq_verify_metadata(const char *store, const struct sq_store_state *state, sq_metadata_finding *found, void *user,
                       struct squall_error *err) SQUALL_CHECK;

#endif
