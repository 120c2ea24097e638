/* See cf_time.h. */
#include "cube/cf_time.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "squall/date.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t ns;
    const char *names; /* the first is the one that is written */
} UNITS[] = {
    {INT64_C(86400000000000), "days day d"},
    {INT64_C(3600000000000), "hours hour hr hrs h"},
    {INT64_C(60000000000), "minutes minute min mins"},
    {INT64_C(1000000000), "seconds second sec secs s"},
    {1000000, "milliseconds millisecond millisec millisecs msec msecs ms"},
    {1000, "microseconds microsecond microsec microsecs us"},
    {1, "nanoseconds nanosecond nanosec nanosecs ns"},
};
enum { UNIT_COUNT = sizeof UNITS / sizeof *UNITS };

/* Is the word among those of a list between blanks? Letters' case does not count. */
static bool is_among(const char *word, size_t length, const char *list)
{
    while (*list) {
        size_t entry = strcspn(list, " ");
        if (entry == length && !strncasecmp(word, list, length))
            return true;
        list += entry;
        list += *list == ' ';
    }
    return false;
}

static bool parse_calendar(const char *name, enum sq_calendar *ret)
{
    static const char *const NAMES[] = {"standard gregorian", "proleptic_gregorian", "julian",
                                        "noleap 365_day",     "all_leap 366_day",    "360_day"};
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!name || is_among(name, strlen(name), NAMES[i])) {
            *ret = (enum sq_calendar)i;
            return true;
        }
    return false;
}

/* ---- dates ------------------------------------------------------------------------------------------------------------------------ */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Years begin in March here, so that the leap day is a year's last: days before month m (March: 0) of such a year. */
static int64_t days_before_march_month(int64_t m)
{
    return (153 * m + 2) / 5;
}

static int64_t leap_days(int64_t year, enum sq_calendar calendar)
{
    switch (calendar) {
    case SQ_CALENDAR_JULIAN:
        return floor_div(year, 4) - 2; /* so that both count alike from the year 200 to the year 300 */
    case SQ_CALENDAR_ALL_LEAP:
        return year;
    case SQ_CALENDAR_PROLEPTIC_GREGORIAN:
        return floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400);
    default:
        return 0;
    }
}

static bool is_gregorian(int64_t year, int64_t month, int64_t day)
{
    return year > 1582 || (year == 1582 && (month > 10 || (month == 10 && day >= 15)));
}

static int64_t day_number(int64_t year, int64_t month, int64_t day, enum sq_calendar calendar)
{
    if (calendar == SQ_CALENDAR_360_DAY)
        return year * 360 + (month - 1) * 30 + day - 1;
    if (calendar == SQ_CALENDAR_STANDARD)
        calendar = is_gregorian(year, month, day) ? SQ_CALENDAR_PROLEPTIC_GREGORIAN : SQ_CALENDAR_JULIAN;
    if (month < 3) {
        year--;
        month += 12;
    }
    return year * 365 + leap_days(year, calendar) + days_before_march_month(month - 3) + day - 1;
}

static bool is_leap(int64_t year, enum sq_calendar calendar)
{
    switch (calendar) {
    case SQ_CALENDAR_STANDARD:
    case SQ_CALENDAR_JULIAN:
        return year % 4 == 0 && (calendar == SQ_CALENDAR_JULIAN || year <= 1582 || year % 100 != 0 || year % 400 == 0);
    case SQ_CALENDAR_PROLEPTIC_GREGORIAN:
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    default:
        return calendar == SQ_CALENDAR_ALL_LEAP;
    }
}

/* Does the calendar have this day? month: 1 to 12 */
static bool has_day(int64_t year, int64_t month, int64_t day, enum sq_calendar calendar)
{
    static const int8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (calendar == SQ_CALENDAR_360_DAY)
        return day >= 1 && day <= 30;
    if (calendar == SQ_CALENDAR_STANDARD && year == 1582 && month == 10 && day > 4 && day < 15)
        return false;
    return day >= 1 && day <= DAYS[month - 1] + (month == 2 && is_leap(year, calendar));
}

/* A number of at most `digits` digits; -1: there is none. */
static int64_t take_number(const char **at, unsigned digits)
{
    int64_t value = -1;
    for (; digits > 0 && isdigit((unsigned char)**at); digits--, (*at)++)
        value = (value < 0 ? 0 : value) * 10 + (**at - '0');
    return value;
}

static bool take_date(const char **at, enum sq_calendar calendar, int64_t *ret_day)
{
    const bool negative = **at == '-';
    *at += negative;
    int64_t year = take_number(at, 6), month = 1, day = 1;
    if (year < 0)
        return false;
    if (**at == '-') {
        (*at)++;
        month = take_number(at, 2);
        if (month < 1 || month > 12)
            return false;
    }
    if (**at == '-') {
        (*at)++;
        day = take_number(at, 2);
    }
    year = negative ? -year : year;
    *ret_day = day_number(year, month, day, calendar);
    return has_day(year, month, day, calendar);
}

/* ":mm" and the like; what is not there is 0. */
static bool take_part(const char **at, int64_t limit, int64_t *ret)
{
    *ret = 0;
    if (**at != ':')
        return true;
    (*at)++;
    *ret = take_number(at, 2);
    return *ret >= 0 && *ret < limit;
}

static bool take_clock(const char **at, int64_t *ret_s, int64_t *ret_ns)
{
    int64_t hour = take_number(at, 2), minute, second, scale = 1000000000;
    if (hour < 0 || hour > 24 || !take_part(at, 60, &minute) || !take_part(at, 61, &second))
        return false;
    *ret_s = hour * 3600 + minute * 60 + second;
    *ret_ns = 0;
    if (**at != '.')
        return true;
    for ((*at)++; isdigit((unsigned char)**at); (*at)++)
        if (scale > 1)
            *ret_ns += (**at - '0') * (scale /= 10);
    return true;
}

/* "Z", "UTC", "+02:00", "-3"; nothing is UTC. */
static bool take_zone(const char **at, int64_t *ret_s)
{
    const char sign = **at;
    *ret_s = 0;
    if (sign == '+' || sign == '-') {
        (*at)++;
        int64_t hours = take_number(at, 2), minutes = 0;
        if (**at == ':')
            (*at)++;
        if (isdigit((unsigned char)**at))
            minutes = take_number(at, 2);
        *ret_s = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
        return hours >= 0;
    }
    const size_t length = strcspn(*at, " ");
    if (length > 0 && !is_among(*at, length, "z utc gmt"))
        return false;
    *at += length;
    return true;
}

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " ");
}

static bool parse_moment(const char *text, struct sq_cf_time *t)
{
    int64_t day, seconds = 0, zone = 0;
    if (!take_date(&text, t->calendar, &day))
        return false;
    if (*text == 'T' || *text == 't')
        text++;
    skip_blanks(&text);
    if (isdigit((unsigned char)*text) && !take_clock(&text, &seconds, &t->epoch_ns))
        return false;
    skip_blanks(&text);
    if (!take_zone(&text, &zone))
        return false;
    skip_blanks(&text);
    t->epoch_s = day * 86400 + seconds - zone;
    return *text == '\0';
}

bool sq_cf_time_parse(const char *units, const char *calendar, struct sq_cf_time *ret)
{
    struct sq_cf_time t = {0};
    skip_blanks(&units);
    const size_t length = strcspn(units, " ");
    for (unsigned i = 0; i < UNIT_COUNT; i++)
        if (is_among(units, length, UNITS[i].names))
            t.unit_ns = UNITS[i].ns;
    const char *since = units + length, *moment = since;
    skip_blanks(&moment);
    if (t.unit_ns == 0 || strncasecmp(moment, "since ", 6) != 0 || strlen(since) >= sizeof t.since ||
        !parse_calendar(calendar, &t.calendar))
        return false;
    memcpy(t.since, since, strlen(since) + 1);
    moment += 6;
    skip_blanks(&moment);
    if (!parse_moment(moment, &t))
        return false;
    *ret = t;
    return true;
}

/* ---- from one count to another ---------------------------------------------------------------------------------------------------- */

static __int128 epoch_of(const struct sq_cf_time *t)
{
    return (__int128)t->epoch_s * 1000000000 + t->epoch_ns;
}

static bool rebase_integer(__int128 value, __int128 shift_ns, const struct sq_cf_time *from, const struct sq_cf_time *to, __int128 *ret)
{
    const __int128 ns = value * from->unit_ns + shift_ns;
    *ret = ns / to->unit_ns;
    return ns % to->unit_ns == 0;
}

/* Exact where the way back leads to the same number. */
static bool rebase_real(double value, __int128 shift_ns, const struct sq_cf_time *from, const struct sq_cf_time *to, double *ret)
{
    const double ratio = (double)from->unit_ns / (double)to->unit_ns, shift = (double)shift_ns / (double)to->unit_ns;
    *ret = value * ratio + shift;
    return isnan(value) || ((__int128)shift * to->unit_ns == shift_ns && *ret - shift == value * ratio && value * ratio / ratio == value);
}

#define INTEGERS(c_type)                                                                                                                   \
    for (uint64_t i = 0; i < count; i++) {                                                                                                 \
        __int128 number;                                                                                                                   \
        if (!rebase_integer(((c_type *)values)[i], shift, from, to, &number) || (__int128)(c_type)number != number)                        \
            return false;                                                                                                                  \
        ((c_type *)values)[i] = (c_type)number;                                                                                            \
    }                                                                                                                                      \
    return true

#define REALS(c_type)                                                                                                                      \
    for (uint64_t i = 0; i < count; i++) {                                                                                                 \
        double number;                                                                                                                     \
        if (!rebase_real((double)((c_type *)values)[i], shift, from, to, &number) || (!isnan(number) && (double)(c_type)number != number)) \
            return false;                                                                                                                  \
        ((c_type *)values)[i] = (c_type)number;                                                                                            \
    }                                                                                                                                      \
    return true

bool sq_cf_time_rebase(enum squall_type type, void *values, uint64_t count, const struct sq_cf_time *from, const struct sq_cf_time *to)
{
    const __int128 shift = epoch_of(from) - epoch_of(to);
    switch (type) {
    case SQUALL_INT8:
        INTEGERS(int8_t);
    case SQUALL_UINT8:
        INTEGERS(uint8_t);
    case SQUALL_INT16:
        INTEGERS(int16_t);
    case SQUALL_INT32:
        INTEGERS(int32_t);
    case SQUALL_INT64:
        INTEGERS(int64_t);
    case SQUALL_UINT16:
        INTEGERS(uint16_t);
    case SQUALL_UINT32:
        INTEGERS(uint32_t);
    case SQUALL_UINT64:
        INTEGERS(uint64_t);
    case SQUALL_FLOAT32:
        REALS(float);
    case SQUALL_FLOAT64:
        REALS(double);
    default:
        return false;
    }
}

bool sq_cf_time_refine(struct sq_cf_time *t)
{
    for (unsigned i = 0; i + 1 < UNIT_COUNT; i++)
        if (UNITS[i].ns == t->unit_ns) {
            t->unit_ns = UNITS[i + 1].ns;
            return true;
        }
    return false;
}

char *sq_cf_time_units(const struct sq_cf_time *t)
{
    for (unsigned i = 0; i < UNIT_COUNT; i++)
        if (UNITS[i].ns == t->unit_ns)
            return sq_format("%.*s%s", (int)strcspn(UNITS[i].names, " "), UNITS[i].names, t->since);
    return NULL;
}

/* ---- dates of counts -------------------------------------------------------------------------------------------------------------- */

enum { NS_PER_S = 1000000000, SECONDS_PER_DAY = 86400 };
static const int64_t DAYS_MOST = INT64_C(366) * 1000000;

struct day {
    int64_t year, month, day;
};

/* The day of a number, as day_number counts. */
static struct day day_of_number(int64_t number, enum sq_calendar calendar)
{
    if (calendar == SQ_CALENDAR_360_DAY) {
        const int64_t year = floor_div(number, 360), rest = number - year * 360;
        return (struct day){year, rest / 30 + 1, rest % 30 + 1};
    }
    if (calendar == SQ_CALENDAR_STANDARD)
        calendar =
            number >= day_number(1582, 10, 15, SQ_CALENDAR_PROLEPTIC_GREGORIAN) ? SQ_CALENDAR_PROLEPTIC_GREGORIAN : SQ_CALENDAR_JULIAN;
    int64_t year = floor_div(number, 366); /* the years begin in March; none is further away than the days that leap years have more */
    while ((year + 1) * 365 + leap_days(year + 1, calendar) <= number)
        year += 1 + (number - (year + 1) * 365 - leap_days(year + 1, calendar)) / 366;
    while (year * 365 + leap_days(year, calendar) > number)
        year--;
    const int64_t rest = number - year * 365 - leap_days(year, calendar), march_month = (5 * rest + 2) / 153;
    const int64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
    return (struct day){year + (month < 3), month, rest - days_before_march_month(march_month) + 1};
}

static double count_of(const struct sq_cf_time *t, __int128 ns)
{
    const __int128 since = ns - epoch_of(t), whole = since / t->unit_ns;
    return (double)whole + (double)(since % t->unit_ns) / (double)t->unit_ns;
}

static __int128 floor_to(__int128 ns, int64_t step)
{
    const __int128 rest = ns % step;
    return ns - rest - (rest < 0 ? step : 0);
}

/* In the fewest digits that read back as the same count. */
static void print_moment(const struct sq_cf_time *t, __int128 ns, double count, char ret[SQUALL_DATE_BYTES])
{
    int64_t step = NS_PER_S;
    int digits = 0;
    __int128 rounded = floor_to(ns + step / 2, step);
    for (; digits < 9 && count_of(t, rounded) != count; rounded = floor_to(ns + step / 2, step)) {
        digits += 3;
        step /= 1000;
    }
    const __int128 whole = floor_to(rounded, NS_PER_S);
    const int64_t seconds = (int64_t)(whole / NS_PER_S), day_count = floor_div(seconds, SECONDS_PER_DAY),
                  second = seconds - day_count * SECONDS_PER_DAY;
    const struct day day = day_of_number(day_count, t->calendar);
    const int at = snprintf(ret, SQUALL_DATE_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d", (int)day.year, (int)day.month, (int)day.day,
                            (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60));
    if (digits > 0)
        snprintf(ret + at, SQUALL_DATE_BYTES - (size_t)at, ".%0*d", digits, (int)((rounded - whole) / step));
}

static int parse_units(const char *units, const char *calendar, struct sq_cf_time *ret, struct squall_error *err)
{
    return sq_cf_time_parse(units, calendar && calendar[0] ? calendar : NULL, ret)
               ? 0
               : sq_error(err, SQUALL_EINVAL, "\"%s\", calendar \"%s\", is no time since a moment", units,
                          calendar ? calendar : "standard");
}

int squall_date_of_count(const char *units, const char *calendar, double count, char ret[SQUALL_DATE_BYTES], struct squall_error *err)
{
    struct sq_cf_time t;
    SQ_TRY(parse_units(units, calendar, &t, err));
    const double limit = (double)DAYS_MOST * SECONDS_PER_DAY * ((double)NS_PER_S / (double)t.unit_ns);
    if (!(fabs(count) < limit) || !(fabs(count) < 9e18))
        return sq_error(err, SQUALL_ERANGE, "%g %s is no date", count, units);
    const int64_t whole = (int64_t)floor(count);
    const __int128 ns = epoch_of(&t) + (__int128)whole * t.unit_ns + llround((count - (double)whole) * (double)t.unit_ns);
    print_moment(&t, ns, count, ret);
    return 0;
}

int squall_count_of_date(const char *units, const char *calendar, const char *date, double *ret, struct squall_error *err)
{
    struct sq_cf_time t;
    SQ_TRY(parse_units(units, calendar, &t, err));
    struct sq_cf_time moment = {.calendar = t.calendar};
    const bool only_a_year = date[0] == '\0' || !strchr(date + 1, '-'); /* a number is never taken for a date */
    if (only_a_year || !parse_moment(date, &moment))
        return sq_error(err, SQUALL_EINVAL, "%s is no date of the calendar (%s)", date, calendar && calendar[0] ? calendar : "standard");
    *ret = count_of(&t, epoch_of(&moment));
    return 0;
}
