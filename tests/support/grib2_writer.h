/*
 * A writer of GRIB edition 2 for tests and the demo: fields on a grid like the UK Met Office UKV model's, in simple, complex and
 * CCSDS packing. It knows no more of GRIB than it takes to make such fields, and shares no code with the reader.
 */
#ifndef SQ_TESTS_SUPPORT_GRIB2_WRITER_H
#define SQ_TESTS_SUPPORT_GRIB2_WRITER_H

#include "base/text.h"
#include <time.h>

enum grib2_packing {
    GRIB2_SIMPLE,         /* template 5.0 */
    GRIB2_COMPLEX,        /* 5.2 */
    GRIB2_COMPLEX_FIRST,  /* 5.3, first differences */
    GRIB2_COMPLEX_SECOND, /* 5.3, second differences */
    GRIB2_CCSDS,          /* 5.42 */
};

struct grib2_field {
    unsigned discipline, category, number;
    unsigned surface_type, level; /* code table 4.5; whole units */
    time_t reference_time;        /* UTC */
    unsigned step_minutes;
    int is_probability; /* product template 4.5: of values below 1000, instead of 4.0 */
    unsigned nx, ny;
    const double *values; /* ny × nx, in the order in which they are stored; NaN: missing, which makes a bitmap */
    enum grib2_packing packing;
    int decimal_scale;
    unsigned bits; /* 1 to 24 */
};

/* Append one message; out->failed tells when memory ran out. */
void grib2_write(const struct grib2_field *field, struct sq_text *out);

#endif
