/* See texts.h. */
#include "cube/texts.h"
#include <math.h>
#include <string.h>

/* Days since 1970-01-01 to the proleptic Gregorian calendar; years begin in March, so that the leap day is a year's last. */
static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * march_month + 2) / 5 + 1);
    *month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

void sq_text_add_time(struct sq_text *out, int64_t seconds_since_1970)
{
    int64_t days = seconds_since_1970 / 86400, of_day = seconds_since_1970 % 86400, year;
    if (of_day < 0) {
        of_day += 86400;
        days--;
    }
    int month, day, second = (int)(of_day % 60);
    date_of(days, &year, &month, &day);
    sq_text_printf(out, "%04lld-%02d-%02dT%02d:%02d", (long long)year, month, day, (int)(of_day / 3600), (int)(of_day / 60 % 60));
    if (second)
        sq_text_printf(out, ":%02d", second);
}

void sq_text_add_duration(struct sq_text *out, int64_t seconds)
{
    long long n = seconds;
    if (n % 3600 == 0)
        sq_text_printf(out, "%lld h", n / 3600);
    else if (n % 60 == 0)
        sq_text_printf(out, "%lld min", n / 60);
    else
        sq_text_printf(out, "%lld s", n);
}

void sq_text_add_compact_duration(struct sq_text *out, int64_t seconds)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    sq_text_add_duration(&text, seconds);
    for (const char *p = sq_text_string(&text); *p; p++) {
        if (*p != ' ')
            sq_text_add_bytes(out, p, 1);
    }
    out->failed |= text.failed;
}

void sq_text_add_number(struct sq_text *out, double value)
{
    sq_text_printf(out, "%.12g", value); /* as many digits as a level keeps */
}

void sq_text_add_level(struct sq_text *out, const char *level_type, const double pair[2])
{
    const char *units = sq_grib_level_attributes(level_type)->units;
    bool plain = strcmp(units, "1") == 0;
    if (isnan(pair[0]) || (plain && pair[0] == 0 && isnan(pair[1]))) {
        sq_text_add(out, level_type);
        return;
    }
    if (plain)
        sq_text_printf(out, "%s ", level_type);
    sq_text_add_number(out, pair[0]);
    if (!isnan(pair[1])) {
        sq_text_add(out, " to ");
        sq_text_add_number(out, pair[1]);
    }
    if (!plain)
        sq_text_printf(out, " %s", units);
}
