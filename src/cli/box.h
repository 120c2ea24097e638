/* From words to a box of an array: -s dim=3,dim=0:10:2 and --nearest lat=51.5. An index drops its dimension, as in numpy. */
#ifndef SQ_CLI_BOX_H
#define SQ_CLI_BOX_H

#include "options.h"
#include "squall/squall.h"
#include <stdbool.h>

struct box {
    struct squall_selection selection;
    bool dropped[SQUALL_RANK_MAX]; /* chosen by a single index */
    bool chosen[SQUALL_RANK_MAX];  /* named in either option */
};

enum { DIM_TEXT_BYTES = 16 };
/* One without a name is called as xarray calls it: dim_0, dim_1, … by its place. */
const char *dim_name(const struct squall_array_info *info, unsigned d, char buffer[DIM_TEXT_BYTES]);

/* Says on stderr what is wrong and returns false. */
bool box_parse(squall_dataset *ds, squall_array *a, const struct text_list *ranges, const struct text_list *nearest, struct box *ret);

#endif
