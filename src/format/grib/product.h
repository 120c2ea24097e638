/*
 * What a field is: parameter, level, times, ensemble, statistics. A product row is all of that but for the times and the member number, so that
 * an archive of millions of fields has some hundred rows. Its raw bytes are the sections with what differs along time and members set to
 * zero; two fields are the same product exactly when their bytes are, and nothing else of a definition is lost:
 *
 *   edition 2   reference time; forecast time with its unit; perturbation number; end of the interval; count of missing values; the length of the interval.
 *               A length of 1, 3, 6 or 24 hours stays (as hours), because some parameters are named after it ("mx2t6");
 *               so does the length where the successive times are runs (type of time increment 1), for it is no step.
 *   edition 1   reference time, unit, P1, P2 and the count of what was averaged (P2 and the count stay where the average is over runs);
 *               and what the PDS says of grid, bitmap and packing
 *   both        member numbers and run dates in the local parts that are known (ECMWF, DWD, NCEP)
 */
#ifndef SQ_FORMAT_GRIB_PRODUCT_H
#define SQ_FORMAT_GRIB_PRODUCT_H

#include "base/arena.h"
#include "base/text.h"
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
    bool undated;           /* the times make no sense, and are left in place */
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
    SQ_GRIB_SDIFF, /* start minus end */
    SQ_GRIB_STDANOM,
    SQ_GRIB_SUM,
    SQ_GRIB_SEVERITY,
    SQ_GRIB_MODE,
    /* averages over runs, and over analyses, as MARS tells them apart */
    SQ_GRIB_AVGD,
    SQ_GRIB_AVGFC,
    SQ_GRIB_AVGUA,
    SQ_GRIB_AVGIA,
    SQ_GRIB_AVGAS,
    SQ_GRIB_AVGAD,
    SQ_GRIB_AVGID,
    SQ_GRIB_VARAS,
    SQ_GRIB_VARAD,
    SQ_GRIB_VARINS,
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
    int16_t ensemble_kind;           /* code table 4.6 (255: of a kind that is not said); -1: no ensemble */
    int16_t derived_forecast;        /* code table 4.7; -1: none */
    int16_t probability_type;        /* code table 4.9; -1: none */
    double lower_limit, upper_limit; /* of a probability; NaN: none */
    int16_t percentile;              /* -1: none */
    const char *unsupported;         /* NULL, or what of it is not understood, in a few words; static, or in the arena */
};

/*
 * What is left per field. The length of an interval is here and not in the product: a total since the run's start (begin 0) and one since the
 * last step are told apart by their begins.
 */
struct sq_grib_times {
    int64_t reference_time_s;         /* seconds since 1970 */
    int64_t step_begin_s, step_end_s; /* from the reference time; equal for an instant */
    int32_t number;                   /* ensemble member (perturbationNumber); -1: none */
};

/*
 * Part a field into the product that it shares with others and its own times. `key` is emptied and filled with bytes that are equal exactly where the
 * products are.
 * Errors: SQUALL_ECORRUPT where a section is too short for its template. Times that make no sense, and templates that are not known, are none:
 * then the raw sections keep all they have, and sq_grib_product_of says so in `unsupported`.
 */
int sq_grib_product_part(const struct sq_grib_found *found, struct sq_text *key, struct sq_grib_times *ret,
                         struct squall_error *err) SQUALL_CHECK;

/*
 * What a key's product means; raw points into the key.
 * arena: for the text that says the number of a template that is not known; NULL, or out of memory: the text is without it
 */
void sq_grib_product_of(const void *key, struct sq_arena *arena, struct sq_grib_product *ret);

const char *sq_grib_step_type_name(enum sq_grib_step_type type); /* ecCodes' stepType: "instant", "accum", … */

#endif
