/*
 * Edition 2: section 4 by its template (code table 4.0). Templates are made of parts in a fixed order, so that one table row says where everything
 * lies; a template that is not understood yet still gives what its parts say.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/grib/product_parts.h"
#include "format/grib/times.h"
#include <math.h>
#include <string.h>

/* In the order in which they lie in a section. */
enum part {
    PROCESS, /* generating process, cut-off, unit and forecast time */
    SURFACES,
    AREA, /* statistical processing over space */
    ENSEMBLE,
    DERIVED,
    PROBABILITY,
    PERCENTILE,
    VERSION, /* date of the model version of a reforecast */
    INTERVAL,
    PART_COUNT,
};

static const uint8_t PART_BYTES[PART_COUNT] = {11, 12, 3, 3, 2, 13, 1, 7, 12};

enum {
    PARTS_AT = 11, /* behind category and number */
    RANGE_BYTES = 12,
    HAS_POINT = 1 << PROCESS | 1 << SURFACES,
    HAS_INTERVAL = HAS_POINT | 1 << INTERVAL,
    RUNS_INCREMENTED = 1, /* code table 4.11 */
    STEPS_INCREMENTED = 2,
    HOUR = 1, /* code table 4.4 */
};

struct template
{
    uint16_t number;
    uint16_t parts;             /* 1 << enum part */
    uint8_t shift;              /* bytes before the parts: constituent, aerosol, … */
    const char *not_understood; /* NULL: understood; else what it is */
};

static const struct template TEMPLATES[] = {
    {0, HAS_POINT, 0, NULL},
    {8, HAS_INTERVAL, 0, NULL},
    {1, HAS_POINT | 1 << ENSEMBLE, 0, NULL},
    {11, HAS_INTERVAL | 1 << ENSEMBLE, 0, NULL},
    {2, HAS_POINT | 1 << DERIVED, 0, NULL},
    {12, HAS_INTERVAL | 1 << DERIVED, 0, NULL},
    {5, HAS_POINT | 1 << PROBABILITY, 0, NULL},
    {9, HAS_INTERVAL | 1 << PROBABILITY, 0, NULL},
    {6, HAS_POINT | 1 << PERCENTILE, 0, NULL},
    {10, HAS_INTERVAL | 1 << PERCENTILE, 0, NULL},
    {7, HAS_POINT, 0, NULL},
    {15, HAS_POINT | 1 << AREA, 0, NULL},
    {3, HAS_POINT, 0, "product definition template 4.3 (cluster of ensemble members over a rectangle)"},
    {4, HAS_POINT, 0, "product definition template 4.4 (cluster of ensemble members over a circle)"},
    {13, HAS_POINT, 0, "product definition template 4.13 (cluster of ensemble members over a rectangle, in an interval)"},
    {14, HAS_POINT, 0, "product definition template 4.14 (cluster of ensemble members over a circle, in an interval)"},
    {20, 0, 0, "product definition template 4.20 (radar)"},
    {30, 0, 0, "product definition template 4.30 (satellite, deprecated)"},
    {31, 0, 0, "product definition template 4.31 (satellite)"},
    {32, 1 << PROCESS, 0, "product definition template 4.32 (simulated satellite data)"},
    {33, 1 << PROCESS, 0, "product definition template 4.33 (simulated satellite data, ensemble)"},
    {34, 1 << PROCESS, 0, "product definition template 4.34 (simulated satellite data, ensemble, in an interval)"},
    {40, HAS_POINT, 2, "product definition template 4.40 (chemical constituents)"},
    {41, HAS_POINT | 1 << ENSEMBLE, 2, "product definition template 4.41 (chemical constituents, ensemble)"},
    {42, HAS_INTERVAL, 2, "product definition template 4.42 (chemical constituents, in an interval)"},
    {43, HAS_INTERVAL | 1 << ENSEMBLE, 2, "product definition template 4.43 (chemical constituents, ensemble, in an interval)"},
    {44, 0, 0, "product definition template 4.44 (aerosol)"},
    {45, HAS_POINT | 1 << ENSEMBLE, 13, "product definition template 4.45 (aerosol, ensemble)"},
    {46, HAS_INTERVAL, 13, "product definition template 4.46 (aerosol, in an interval)"},
    {47, HAS_INTERVAL | 1 << ENSEMBLE, 13, "product definition template 4.47 (aerosol, ensemble, in an interval)"},
    {48, HAS_POINT, 24, "product definition template 4.48 (optical properties of aerosol)"},
    {49, HAS_POINT | 1 << ENSEMBLE, 24, "product definition template 4.49 (optical properties of aerosol, ensemble)"},
    {51, 0, 0, "product definition template 4.51 (categorical forecast)"},
    {60, HAS_POINT | 1 << ENSEMBLE | 1 << VERSION, 0, "product definition template 4.60 (ensemble reforecast)"},
    {61, HAS_INTERVAL | 1 << ENSEMBLE | 1 << VERSION, 0, "product definition template 4.61 (ensemble reforecast, in an interval)"},
    {70, HAS_POINT, 5, "product definition template 4.70 (post-processed)"},
    {71, HAS_POINT | 1 << ENSEMBLE, 5, "product definition template 4.71 (post-processed, ensemble)"},
    {72, HAS_INTERVAL, 5, "product definition template 4.72 (post-processed, in an interval)"},
    {73, HAS_INTERVAL | 1 << ENSEMBLE, 5, "product definition template 4.73 (post-processed, ensemble, in an interval)"},
    {254, 0, 0, "product definition template 4.254 (characters)"},
};

static const struct template UNKNOWN = {UINT16_MAX, 0, 0, "a product definition template (code table 4.0) that is not known"};

static const struct template *template_of(const uint8_t *section4)
{
    unsigned number = (unsigned)section4[7] << 8 | section4[8];
    for (size_t i = 0; i < sizeof TEMPLATES / sizeof *TEMPLATES; i++)
        if (TEMPLATES[i].number == number)
            return &TEMPLATES[i];
    return &UNKNOWN;
}

/* Where each part of a template lies in the section; returns its bytes, with the time ranges. 0: it does not have the part. */
static size_t place_parts(const struct template *t, const uint8_t *section4, size_t size, uint16_t ret[PART_COUNT])
{
    size_t at = PARTS_AT + t->shift;
    for (unsigned part = 0; part < PART_COUNT; part++) {
        bool has = t->parts & 1u << part;
        ret[part] = has ? (uint16_t)at : 0;
        at += has ? PART_BYTES[part] : 0;
    }
    if (ret[INTERVAL] && at <= size)
        at += (size_t)section4[ret[INTERVAL] + 7] * RANGE_BYTES;
    return at;
}

static uint64_t be(const uint8_t *p, unsigned size_bytes)
{
    struct sq_cursor c = sq_cursor(p, size_bytes);
    return sq_uint_be(&c, size_bytes);
}

/* A number of one to four bytes as sign and magnitude (regulation 92.1.5). */
static int32_t signed_be(const uint8_t *p, unsigned size_bytes)
{
    struct sq_cursor c = sq_cursor(p, size_bytes);
    return sq_sign_magnitude_be(&c, size_bytes);
}

static bool date_at(const uint8_t *p, int64_t *ret)
{
    struct sq_grib_date date = {(int64_t)be(p, 2), p[2], p[3], p[4], p[5], p[6]};
    return sq_grib_date_seconds(&date, ret);
}

/* The time ranges of an interval: NULL, or the one that says how long it is in steps. */
static const uint8_t *steps_range(const uint8_t *interval)
{
    unsigned count = interval[7];
    const uint8_t *ranges = interval + PART_BYTES[INTERVAL];
    for (unsigned i = 0; i < count; i++)
        if (ranges[i * RANGE_BYTES + 1] == STEPS_INCREMENTED)
            return ranges + i * RANGE_BYTES;
    for (unsigned i = 0; i < count; i++)
        if (ranges[i * RANGE_BYTES + 1] != RUNS_INCREMENTED)
            return ranges + i * RANGE_BYTES;
    return NULL;
}

/* How long a range is, in seconds; false where it does not say, or what cannot be. */
static bool range_length(const uint8_t *range, int64_t start_s, int64_t *ret)
{
    uint32_t length = (uint32_t)be(range + 3, 4);
    return length != 0 && length != UINT32_MAX && sq_grib_step_seconds(2, range[2], length, start_s, ret);
}

/*
 * The end of the interval, in seconds from the reference time: by the length of its range, as users of ecCodes know it; by the date of the end where the
 * range gives none.
 */
static void interval_end(const uint8_t *interval, struct sq_grib_times *t)
{
    const uint8_t *range = steps_range(interval);
    if (!range && interval[7] > 0)
        return; /* an average over runs has one step */
    int64_t end_s, length_s, start_s = t->reference_time_s + t->step_begin_s;
    if (range && range_length(range, start_s, &length_s))
        t->step_end_s = t->step_begin_s + length_s;
    else if (date_at(interval, &end_s) && end_s >= start_s)
        t->step_end_s = end_s - t->reference_time_s;
}

static bool read_times(const uint8_t *section1, const uint8_t *section4, const struct template *t, const uint16_t at[PART_COUNT],
                       struct sq_grib_times *times)
{
    if (!date_at(section1 + 12, &times->reference_time_s))
        return false;
    if (!at[PROCESS])
        return t->not_understood && t != &UNKNOWN;
    const uint8_t *process = section4 + at[PROCESS];
    bool missing = be(process + 7, 4) == UINT32_MAX;
    int64_t step = missing ? 0 : signed_be(process + 7, 4);
    if (!(missing && process[6] == 255) && !sq_grib_step_seconds(2, process[6], step, times->reference_time_s, &times->step_begin_s))
        return false;
    times->step_end_s = times->step_begin_s;
    if (at[INTERVAL])
        interval_end(section4 + at[INTERVAL], times);
    return true;
}

/* The length of an interval in steps is one of the times; it stays only as a number of hours that names parameters. */
static void blank_interval(uint8_t *interval, int64_t length_s)
{
    const uint8_t *steps = steps_range(interval);
    memset(interval, 0, 7);
    memset(interval + 8, 0, 4);
    if (!steps)
        return;
    uint8_t *range = interval + (steps - interval);
    bool names = length_s == 3600 || length_s == 3 * 3600 || length_s == 6 * 3600 || length_s == 24 * 3600;
    range[2] = HOUR;
    memset(range + 3, 0, 4);
    range[6] = names ? (uint8_t)(length_s / 3600) : 0;
}

static void blank_section4(uint8_t *section4, const uint16_t at[PART_COUNT], const struct sq_grib_times *times)
{
    if (at[PROCESS])
        memset(section4 + at[PROCESS] + 6, 0, 5);
    if (at[ENSEMBLE])
        section4[at[ENSEMBLE] + 1] = 0;
    if (at[INTERVAL])
        blank_interval(section4 + at[INTERVAL], times->step_end_s - times->step_begin_s);
}

/* DWD's local sections 253 and 254 say when the message was written. */
static void blank_section2(const uint8_t *section1, uint8_t *section2, size_t size)
{
    unsigned centre = (unsigned)be(section1 + 5, 2), kind = size >= 7 ? (unsigned)be(section2 + 5, 2) : 0;
    bool consortium = centre == 78 || centre == 80 || centre == 215 || centre == 250; /* DWD, Italy, MeteoSwiss, COSMO */
    if (consortium && (kind == 253 || kind == 254) && size >= 15)
        memset(section2 + 8, 0, 7);
}

int sq_grib2_part(const struct sq_grib_found *found, uint8_t *section1, uint8_t *section2, uint8_t *section4, struct sq_grib_times *ret,
                  bool *ret_dated, struct squall_error *err)
{
    size_t size4 = (size_t)found->frame.section[4].size_bytes;
    const struct template *t = template_of(section4);
    uint16_t at[PART_COUNT];
    size_t need = place_parts(t, section4, size4, at);
    if (need > size4)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: section 4 of %zu bytes, where template 4.%u has %zu",
                        (unsigned long long)found->frame.section[4].offset, size4, t->number, need);
    struct sq_grib_times times = {.number = at[ENSEMBLE] ? section4[at[ENSEMBLE] + 1] : -1};
    bool dated = read_times(section1, section4, t, at, &times);
    if (dated) {
        memset(section1 + 12, 0, 7);
        blank_section4(section4, at, &times);
        if (section2)
            blank_section2(section1, section2, (size_t)found->frame.section[2].size_bytes);
    } else {
        times.step_begin_s = times.step_end_s = 0;
    }
    *ret = times;
    *ret_dated = dated;
    return 0;
}

static struct sq_grib_surface surface_at(const uint8_t *p)
{
    struct sq_grib_surface s = {.type = p[0], .scale = (int8_t)signed_be(p + 1, 1)};
    s.has_value = s.type != 255 && s.scale != -127 && be(p + 2, 4) != UINT32_MAX;
    s.value = s.has_value ? signed_be(p + 2, 4) : 0;
    return s;
}

static double limit_at(const uint8_t *p)
{
    if (p[0] == 255 || be(p + 1, 4) == UINT32_MAX)
        return NAN;
    int scale = signed_be(p, 1);
    return scale > 0 ? signed_be(p + 1, 4) / pow(10, scale) : signed_be(p + 1, 4) * pow(10, -scale);
}

/* Code table 4.10. */
static enum sq_grib_step_type step_type_of(uint8_t process)
{
    static const uint8_t TYPES[12] = {SQ_GRIB_AVG, SQ_GRIB_ACCUM, SQ_GRIB_MAX,   SQ_GRIB_MIN,   SQ_GRIB_DIFF,    SQ_GRIB_RMS,
                                      SQ_GRIB_SD,  SQ_GRIB_COV,   SQ_GRIB_SDIFF, SQ_GRIB_RATIO, SQ_GRIB_STDANOM, SQ_GRIB_SUM};
    if (process < sizeof TYPES)
        return (enum sq_grib_step_type)TYPES[process];
    switch (process) {
    case 100:
        return SQ_GRIB_SEVERITY;
    case 101:
        return SQ_GRIB_MODE;
    case 255:
        return SQ_GRIB_INSTANT; /* not said, as in some of NCEP's */
    default:
        return SQ_GRIB_OTHER_STATISTIC;
    }
}

/* Of several processes the last one counts, which is the one that was done first, over the steps. */
static void read_interval(const uint8_t *interval, struct sq_grib_product *p)
{
    unsigned count = interval[7];
    if (count == 0)
        return;
    const uint8_t *last = interval + PART_BYTES[INTERVAL] + (count - 1) * RANGE_BYTES;
    p->statistical_process = last[0];
    p->step_type = step_type_of(last[0]);
    if (count == 1 && last[0] == 0 && last[1] == RUNS_INCREMENTED)
        p->step_type = SQ_GRIB_AVGD;
}

void sq_grib2_product_of(struct sq_arena *arena, struct sq_grib_product *p)
{
    const uint8_t *s1 = p->raw.section1, *s4 = p->raw.section4;
    const struct template *t = template_of(s4);
    uint16_t at[PART_COUNT];
    place_parts(t, s4, p->raw.section4_bytes, at);
    p->centre = (uint16_t)be(s1 + 5, 2);
    p->subcentre = (uint16_t)be(s1 + 7, 2);
    p->template_number = (uint16_t)be(s4 + 7, 2);
    p->unsupported = t == &UNKNOWN ? sq_grib_numbered(arena, t->not_understood, p->template_number) : t->not_understood;
    p->category = s4[9];
    p->number = s4[10];
    if (at[PROCESS])
        p->generating_process = s4[at[PROCESS]];
    if (at[SURFACES]) {
        p->first = surface_at(s4 + at[SURFACES]);
        p->second = surface_at(s4 + at[SURFACES] + 6);
    }
    if (at[AREA])
        p->statistical_process = s4[at[AREA]];
    if (at[ENSEMBLE])
        p->ensemble_kind = s4[at[ENSEMBLE]];
    if (at[DERIVED])
        p->derived_forecast = s4[at[DERIVED]];
    if (at[PROBABILITY]) {
        p->probability_type = s4[at[PROBABILITY] + 2];
        p->lower_limit = limit_at(s4 + at[PROBABILITY] + 3);
        p->upper_limit = limit_at(s4 + at[PROBABILITY] + 8);
    }
    if (at[PERCENTILE])
        p->percentile = s4[at[PERCENTILE]];
    if (at[INTERVAL])
        read_interval(s4 + at[INTERVAL], p);
}
