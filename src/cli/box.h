/* From words to a box of an array: -s dim=3,dim=0:10:2 and --nearest lat=51.5. An index drops its dimension, as in numpy. */
#ifndef SQ_CLI_BOX_H
#define SQ_CLI_BOX_H

#include "squall/squall.h"
#include <stdbool.h>

struct box {
    struct squall_selection selection;
    bool dropped[SQUALL_RANK_MAX]; /* chosen by a single index */
};

/* Both texts may be NULL. Says on stderr what is wrong and returns false. */
bool box_parse(squall_dataset *ds, squall_array *a, const char *ranges, const char *nearest, struct box *ret);

/* The 1-D coordinate of a dimension as doubles, malloc'ed; NULL where there is none. */
double *coordinate_values(squall_dataset *ds, const char *dim, uint64_t length);
/* Does the coordinate hold times or durations in seconds since 1970? */
bool coordinate_is_time(squall_dataset *ds, const char *dim);

#endif
