/* Dates of numbers as CF counts time: "hours since 2020-01-01" in a calendar (CF conventions, 4.4). */
#ifndef SQUALL_DATE_H
#define SQUALL_DATE_H

#include "squall/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SQUALL_DATE_BYTES = 40 };

/*
 * The date of a count: "2020-01-03T06:00:00", and as many digits of a second's fraction (0, 3, 6 or 9) as tell this count from its neighbours.
 *
 * units     "days since 1850-01-01": days down to nanoseconds since any moment; months and years have no length
 * calendar  any of CF's; NULL or "": standard
 *
 * Errors: SQUALL_EINVAL (no units of time, no such calendar), SQUALL_ERANGE (no number, or further than a million years away).
 */
int squall_date_of_count(const char *units, const char *calendar, double count, char ret[SQUALL_DATE_BYTES],
                         struct squall_error *err) SQUALL_CHECK;

/* The count of a date, "2020-01-03T06:00", "2020-01-03 06:00:00.5Z", "2020-01-03" or "2020-01". */
int squall_count_of_date(const char *units, const char *calendar, const char *date, double *ret, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
