/* See times.h. Days are counted in eras of 400 years, so that no loop runs over years. */
#include "format/grib/times.h"
#include "base/checked.h"

enum { DAY_S = 86400, MONTHS_A_YEAR = 12, DAYS_AN_ERA = 146097, YEARS_AN_ERA = 400 };
#define STEP_LIMIT_S INT64_C(1000000000000)

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static unsigned days_in(int64_t year, unsigned month)
{
    static const uint8_t DAYS[MONTHS_A_YEAR] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return DAYS[month - 1] + (month == 2 && is_leap(year));
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970-01-01. The year is taken to begin in March, so that a leap day is its last. */
static int64_t day_number(int64_t year, unsigned month, unsigned day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    unsigned march_month = month > 2 ? month - 3 : month + 9;
    int64_t era = floor_divide(march_year, YEARS_AN_ERA);
    int64_t of_era = march_year - era * YEARS_AN_ERA;
    int64_t day_of_year = (153 * march_month + 2) / 5 + day - 1;
    const int64_t days_before_1970 = 719468; /* from 0000-03-01 */
    return era * DAYS_AN_ERA + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - days_before_1970;
}

static void date_of_day(int64_t number, int64_t *ret_year, unsigned *ret_month, unsigned *ret_day)
{
    int64_t z = number + 719468;
    int64_t era = floor_divide(z, DAYS_AN_ERA);
    int64_t of_era = z - era * DAYS_AN_ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned day_of_year = (unsigned)(of_era - (365 * year + year / 4 - year / 100));
    unsigned march_month = (5 * day_of_year + 2) / 153;
    *ret_day = day_of_year - (153 * march_month + 2) / 5 + 1;
    *ret_month = march_month < 10 ? march_month + 3 : march_month - 9;
    *ret_year = year + era * YEARS_AN_ERA + (*ret_month <= 2);
}

bool sq_grib_date_seconds(const struct sq_grib_date *d, int64_t *ret)
{
    if (d->year < 0 || d->year > 65535 || d->month < 1 || d->month > MONTHS_A_YEAR || d->day < 1 || d->day > days_in(d->year, d->month) ||
        d->hour > 24 || d->minute > 59 || d->second > 60)
        return false;
    *ret = day_number(d->year, d->month, d->day) * DAY_S + d->hour * 3600 + d->minute * 60 + d->second;
    return true;
}

static bool add_months(int64_t reference_s, int64_t months, int64_t *ret)
{
    int64_t year, day_count = floor_divide(reference_s, DAY_S);
    unsigned month, day;
    date_of_day(day_count, &year, &month, &day);
    int64_t total = year * MONTHS_A_YEAR + (month - 1) + months;
    int64_t to_year = floor_divide(total, MONTHS_A_YEAR);
    unsigned to_month = (unsigned)(total - to_year * MONTHS_A_YEAR) + 1;
    unsigned last = days_in(to_year, to_month);
    *ret = (day_number(to_year, to_month, day < last ? day : last) - day_count) * DAY_S;
    return true;
}

/* A unit as months or as seconds; both 0: the edition has no such unit. */
static void unit_of(uint8_t edition, uint8_t unit, int64_t *ret_months, int64_t *ret_seconds)
{
    static const int16_t MONTHS[8] = {0, 0, 0, 1, 12, 120, 360, 1200};
    static const int32_t SECONDS[13] = {60, 3600, DAY_S, 0, 0, 0, 0, 0, 0, 0, 3 * 3600, 6 * 3600, 12 * 3600};
    *ret_months = unit < 8 ? MONTHS[unit] : 0;
    *ret_seconds = unit < 13 ? SECONDS[unit] : 0;
    if (edition == 1 && (unit == 13 || unit == 14))
        *ret_seconds = unit == 13 ? 15 * 60 : 30 * 60;
    else if (unit == (edition == 1 ? 254 : 13))
        *ret_seconds = 1;
}

bool sq_grib_step_seconds(uint8_t edition, uint8_t unit, int64_t count, int64_t reference_s, int64_t *ret)
{
    int64_t months, seconds, step;
    unit_of(edition, unit, &months, &seconds);
    if (months != 0) {
        if (count > STEP_LIMIT_S / (28 * DAY_S) / months || count < -STEP_LIMIT_S / (28 * DAY_S) / months)
            return false;
        return add_months(reference_s, count * months, ret);
    }
    if (seconds == 0 || !sq_mul_i64(count, seconds, &step) || step > STEP_LIMIT_S || step < -STEP_LIMIT_S)
        return false;
    *ret = step;
    return true;
}
