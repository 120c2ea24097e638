/* Do two fields with one full key hold the same data? */
#ifndef SQ_CUBE_DUPLICATES_H
#define SQ_CUBE_DUPLICATES_H

#include "format/grib/index.h"
#include <stdbool.h>

struct sq_duplicates; /* open files and buffers, for one thread */

struct sq_duplicates *sq_duplicates_new(const struct sq_grib_index *index); /* NULL: out of memory */
void sq_duplicates_free(struct sq_duplicates *d);

/* a, b: rows of the index. Errors: the files cannot be read any more. */
int sq_duplicates_same(struct sq_duplicates *d, uint32_t a, uint32_t b, bool *ret, struct squall_error *err) SQUALL_CHECK;

#endif
