/*
 * The labels along a dimension: numbers, dates, spans of time or texts, by the array of the dimension's name and its units. Which of
 * them they are decides how a value is written in --nearest, so that a date is never taken for a number.
 */
#ifndef SQ_CLI_COORDINATE_H
#define SQ_CLI_COORDINATE_H

#include "output.h"
#include <stdbool.h>
#include <stdio.h>

enum coordinate_kind {
    COORDINATE_NONE,   /* no 1-D array of that name and length, or none that makes labels */
    COORDINATE_NUMBER, /* in whatever unit the array has */
    COORDINATE_TIME,   /* counted in units since a moment */
    COORDINATE_SPAN,   /* in seconds, minutes, hours or days */
    COORDINATE_TEXT,
};

enum { COORDINATE_UNITS_BYTES = 64 };

struct coordinate {
    enum coordinate_kind kind;
    uint64_t length;
    double *numbers;
    char **texts;
    double unit_s;                      /* of a span */
    char units[COORDINATE_UNITS_BYTES]; /* "" where the array has none */
    char calendar[COORDINATE_UNITS_BYTES];
    bool is_single;    /* the numbers are float32 */
    bool is_longitude; /* numbers that 360 apart mean the same */
};

/*
 * The labels along a dimension of the array called `of`: by the array that is called as the dimension, in the group of that one or in the
 * nearest group above. An array that is there and cannot be read is an error. *ret: coordinate_done.
 */
int coordinate_read(squall_dataset *ds, const char *of, const char *dim, uint64_t length, struct coordinate *ret, struct squall_error *err);
/* Of the elements only the first and the last, of a length of 2; texts are none. */
int coordinate_read_ends(squall_dataset *ds, const char *of, const char *dim, uint64_t length, struct coordinate *ret,
                         struct squall_error *err);
/* The array that coordinate_read takes. NULL: there is none. */
squall_array *coordinate_array(const squall_dataset *ds, const char *of, const char *dim, uint64_t length);
void coordinate_done(struct coordinate *c);

/*
 * The index that `text` means: of the nearest number, or of the equal text. Says on stderr what is wrong and returns false. Warns where the
 * nearest is further away than neighbours are from each other.
 */
bool coordinate_find(const struct coordinate *c, const char *dim, const char *text, uint64_t *ret);

/* For CSV: a date, a span with its unit ("6h", "90m"), a number, or the text as it is. All of them can be given to --nearest. */
const char *coordinate_label(const struct coordinate *c, uint64_t index, char buffer[SHORT_TEXT_BYTES]);

/* Do numbers of these units count time since a moment (CF's "hours since …")? */
bool is_time(const char *units, const char *calendar);

/* The difference of neighbours, in twelve digits; NaN where it is not the same all along. */
double even_spacing(const double *values, uint64_t count);
/* The same of numbers, spans and times as a text: "2.5", "6h", "1d"; "" where it is not the same. */
const char *coordinate_spacing(const struct coordinate *c, char buffer[SHORT_TEXT_BYTES]);

#endif
