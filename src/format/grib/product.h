/*
 * What a field is: parameter, level, times, ensemble, statistics. A product row is all of that but for the times and the member number, so that
 * an archive of millions of fields has some hundred rows. Its raw bytes are the sections with those places set to zero:
 * two fields are the same product exactly when their bytes are, and nothing of a definition is lost.
 */
#ifndef SQ_FORMAT_GRIB_PRODUCT_H
#define SQ_FORMAT_GRIB_PRODUCT_H

#include "format/grib/scan.h"
#include <stdbool.h>
#include <stdint.h>

/* A fixed surface: value × 10^-scale, in the unit of code table 4.5 (edition 1: already translated, see product.c). */
struct sq_grib_surface {
    uint8_t type; /* 255: missing */
    int8_t scale; /* -127: missing */
    bool has_value;
    int32_t value;
};

/* Sections 1 (identification), 2 (local), 4 (product) of edition 2; the PDS as section 1 of edition 1. */
struct sq_grib_raw {
    uint8_t edition;
    uint8_t discipline;
    uint8_t grid_reference; /* numberOfGridInReference of a section 3 with template 101 (ICON's centres, edges, vertices); else 0 */
    const uint8_t *section1, *section2, *section4; /* NULL: not there */
    uint32_t section1_bytes, section2_bytes, section4_bytes;
};

enum sq_grib_step_type {
    SQ_GRIB_INSTANT,
    SQ_GRIB_AVG,
    SQ_GRIB_ACCUM,
    SQ_GRIB_MAX,
    SQ_GRIB_MIN,
    SQ_GRIB_DIFF,
    SQ_GRIB_RMS,
    SQ_GRIB_SD,
    SQ_GRIB_COV,
    SQ_GRIB_RATIO,
    SQ_GRIB_OTHER_STATISTIC, /* code in statistical_process */
};

struct sq_grib_product {
    struct sq_grib_raw raw; /* with times and member number zeroed; in the index's arena */
    uint16_t centre, subcentre;
    uint16_t template_number;   /* edition 1: 65535 */
    uint8_t category, number;   /* edition 1: table2Version, indicatorOfParameter */
    uint8_t generating_process; /* typeOfGeneratingProcess */
    enum sq_grib_step_type step_type;
    uint8_t statistical_process; /* code table 4.10; 255: none */
    struct sq_grib_surface first, second;
    int16_t ensemble_kind;           /* code table 4.6; -1: no ensemble */
    int16_t derived_forecast;        /* code table 4.7; -1: none */
    int16_t probability_type;        /* code table 4.9; -1: none */
    double lower_limit, upper_limit; /* of a probability; NaN: none */
    int16_t percentile;              /* -1: none */
    bool from_run_start;             /* the interval begins at the run's start (so its length grows with the step) */
    int32_t interval_s;              /* length of the interval; 0: instant or from_run_start */
    const char *unsupported;         /* NULL, or why this product is not understood (its name in words); static */
};

/* What is left per field. */
struct sq_grib_times {
    int64_t reference_time_s;         /* seconds since 1970 */
    int64_t step_begin_s, step_end_s; /* from the reference time; equal for an instant */
    int32_t number;                   /* ensemble member (perturbationNumber); -1: none */
};

const char *sq_grib_step_type_name(enum sq_grib_step_type type); /* ecCodes' stepType: "instant", "accum", … */

#endif
