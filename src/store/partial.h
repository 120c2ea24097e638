/*
 * NetCDF files that squall.create_many has begun and nobody has finished: .NAME.partial, and beside it the lists of those who write into it,
 * .NAME.partial.regions-*, a line of JSON for each region: {"variable": "t2m", "region": [[start, count, step], …]}.
 */
#ifndef SQ_STORE_PARTIAL_H
#define SQ_STORE_PARTIAL_H

#include "base/json.h"
#include "base/text.h"
#include "squall/context.h"

/*
 * Such files at path: NAME or .NAME.partial, or all in a folder. Sorted; sq_names_free.
 */
int sq_partial_find(const char *path, char ***ret_paths, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;

/* {"t2m": [[[start, stop], …], …]}: boxes of variables that no region has; no more than the file has variables are there. *ret: the caller's. */
int sq_partial_missing(squall_context *ctx, const char *partial, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;

#endif
