/* What makes squall ls: ls.c (what the paths hold), ls_rows.c (choosing and printing), ls_columns.c (what a row says). */
#ifndef SQ_CLI_LS_INTERNAL_H
#define SQ_CLI_LS_INTERNAL_H

#include "commands.h"

enum { COLUMN_LIMIT = 40, CELL_BYTES = 256 };

/* One row: a field, or an array where array is set. */
struct row {
    const struct squall_grib_field *field;
    const struct squall_array_info *array;
    uint64_t stored_bytes; /* of the array */
    bool stored_is_known;
    const char *path;
    size_t number; /* from 1, within the file */
};

struct column {
    const char *key;
    int width; /* at least; negative: left-aligned */
    bool is_text;
    void (*cell)(const struct row *r, char out[CELL_BYTES]);
    void (*json)(const struct row *r); /* NULL: the cell */
};

/* The columns of a kind of rows; the first ones by default, the rest on request. */
struct ls_columns {
    const struct column *columns;
    size_t count, default_count;
};

extern const struct ls_columns ls_field_columns, ls_array_columns;

/* Rows are kept, as text, until the columns are as wide as they must be. */
struct listing {
    const struct arguments *arguments;
    struct text_list paths;                     /* those that were given, patterns expanded */
    const struct column *columns[COLUMN_LIMIT]; /* to print */
    size_t widths[COLUMN_LIMIT];
    size_t column_count;
    const struct ls_columns *known; /* to choose from */
    size_t rows;                    /* so far */
    char *kept;                     /* their cells, each with its \0 */
    size_t kept_bytes, kept_capacity, kept_rows;
};

/* Which columns to print, and whether every key of -w is one. */
bool ls_choose_columns(struct listing *l);
/* Is the column printed, or does -w compare it? */
bool ls_is_asked(const struct listing *l, const char *key);
/* false: out of memory */
bool ls_add_row(struct listing *l, const struct row *r);
/* Behind the last row. */
void ls_end_rows(struct listing *l);

#endif
