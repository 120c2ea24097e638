/* Times as CF writes them, "hours since 2020-01-01 00:00", and the same times counted from another moment or in another unit (CF conventions, 4.4). */
#ifndef SQ_CUBE_CF_TIME_H
#define SQ_CUBE_CF_TIME_H

#include "squall/array.h"
#include <stdbool.h>

enum sq_calendar {
    SQ_CALENDAR_STANDARD, /* Julian up to 1582-10-04, Gregorian from 1582-10-15 */
    SQ_CALENDAR_PROLEPTIC_GREGORIAN,
    SQ_CALENDAR_JULIAN,
    SQ_CALENDAR_NOLEAP,
    SQ_CALENDAR_ALL_LEAP,
    SQ_CALENDAR_360_DAY,
};

struct sq_cf_time {
    int64_t unit_ns;
    int64_t epoch_s;  /* since day 0 of the calendar's own count; only differences within a calendar mean anything */
    int64_t epoch_ns; /* and so many, below a second */
    enum sq_calendar calendar;
    char since[64]; /* what follows the unit: " since 2020-01-01 00:00" */
};

/* units, calendar: the attributes; calendar NULL: standard. false: no time in a calendar and unit of ours (months have no length), or since a day that
 * the calendar has not. */
bool sq_cf_time_parse(const char *units, const char *calendar, struct sq_cf_time *ret);

/*
 * values (count numbers of an integer or floating type, in memory) counted as `from` → as `to`, in place. False where one of them has no
 * exact counterpart in the type; values are undefined then. The calendars are the same.
 */
bool sq_cf_time_rebase(enum squall_type type, void *values, uint64_t count, const struct sq_cf_time *from, const struct sq_cf_time *to);

/* The next finer unit, in which more can be told exactly: day, hour, minute, second, milli-, micro-, nanosecond. False: there is none. */
bool sq_cf_time_refine(struct sq_cf_time *time);
/* Its units attribute, "seconds since 2020-01-01 00:00". NULL: out of memory; sq_free. */
char *sq_cf_time_units(const struct sq_cf_time *time);

#endif
