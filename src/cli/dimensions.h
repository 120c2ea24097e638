/* The dimensions of a dataset, each with the range of its coordinate: dates for times. Only coordinates are read, of long ones the two ends. */
#ifndef SQ_CLI_DIMENSIONS_H
#define SQ_CLI_DIMENSIONS_H

#include "grid.h"
#include "output.h"

struct dimension {
    const char *array; /* the first that has it, whose group it is in; the dataset's */
    const char *name;  /* the dataset's */
    uint64_t length;
    int group_length; /* of the array's name: its group with the slash behind; 0: the root, or a name that only this dimension has */
    /* of its coordinate; "" where there is none, or it is none of numbers and times */
    char first[SHORT_TEXT_BYTES], last[SHORT_TEXT_BYTES];
    char spacing[SHORT_TEXT_BYTES]; /* "" where it is not even, or not known */
    char units[GRID_TEXT_BYTES];    /* of numbers */
    bool is_quoted;                 /* first and last are no numbers */
};

struct dimension_list {
    struct dimension *dimensions;
    size_t count;
    struct squall_error problem; /* of the first coordinate that cannot be read; its message is "" where all can be */
};

/* Distinct ones, in the order in which arrays name them first; without those of grids, which tell their own ranges. *ret: dimension_list_done. */
int dimension_list_make(squall_dataset *ds, const struct grid_list *grids, struct dimension_list *ret, struct squall_error *err);
void dimension_list_done(struct dimension_list *list);

#endif
