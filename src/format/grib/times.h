/* Dates and steps as GRIB writes them → seconds. */
#ifndef SQ_FORMAT_GRIB_TIMES_H
#define SQ_FORMAT_GRIB_TIMES_H

#include <stdbool.h>
#include <stdint.h>

struct sq_grib_date {
    int64_t year;
    unsigned month, day, hour, minute, second;
};

/* Seconds since 1970-01-01T00:00:00, proleptic Gregorian; false where this is no date (hour 24 and second 60 are taken for what they mean). */
bool sq_grib_date_seconds(const struct sq_grib_date *date, int64_t *ret);

/*
 * count units of time from reference_s on, in seconds. Months and longer units follow the calendar (31 January + 1 month is the last day of February).
 *
 * unit     code table 4.4; of edition 1: code table 4
 * Returns false for a unit that the edition does not have, or a step beyond some 30,000 years.
 */
bool sq_grib_step_seconds(uint8_t edition, uint8_t unit, int64_t count, int64_t reference_s, int64_t *ret);

#endif
