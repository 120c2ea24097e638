/*
 * Edition 1: the PDS. What edition 2 says by templates, edition 1 says by one octet, the time range indicator (code table 5), and by local extensions
 * behind octet 40. Levels (code table 3) are put into edition 2's surfaces.
 */
#include "base/error_internal.h"
#include "format/grib/product_parts.h"
#include "format/grib/times.h"
#include <string.h>

/* Octets of the PDS, from 0. */
enum {
    TABLE = 3,
    CENTRE = 4,
    PROCESS = 5,
    GRID = 6,
    SECTIONS = 7,
    PARAMETER = 8,
    LEVEL_TYPE = 9,
    LEVEL = 10,
    YEAR_OF_CENTURY = 12,
    UNIT = 17,
    P1 = 18,
    P2 = 19,
    TIME_RANGE = 20,
    INCLUDED = 21,
    MISSING = 23,
    CENTURY = 24,
    SUBCENTRE = 25,
    DECIMAL_SCALE = 26,
    LOCAL = 40,
    MARS_TYPE = 42,
    LOCAL_NUMBER = 49,
};

enum { ECMWF = 98, NCEP = 7, HAS_GRID_SECTION = 0x80 };
enum { MARS_CONTROL = 10, MARS_PERTURBED = 11, MARS_MEAN = 17, MARS_SPREAD = 18 };

/* How P1 and P2 make a step or an interval. */
enum span {
    AT_P1,
    AT_LONG_P1, /* both octets */
    P1_TO_P2,
    BEFORE_P1_TO_P2, /* both before the reference time */
    AROUND,          /* P1 before, P2 behind it */
    SERIES,          /* from P1 on, the included ones P2 apart */
    RUNS,            /* each at P1 of its own run; the runs are P2 apart */
};

struct time_range {
    uint8_t indicator;
    uint8_t centre; /* 0: any */
    uint8_t span;
    uint8_t step_type;
};

/* The first that fits holds. ECMWF writes extremes, which code table 5 lacks, as 2, 118 and 119. */
static const struct time_range TIME_RANGES[] = {
    {0, 0, AT_P1, SQ_GRIB_INSTANT},      {10, 0, AT_LONG_P1, SQ_GRIB_INSTANT}, {1, 0, AT_P1, SQ_GRIB_INSTANT},
    {2, ECMWF, P1_TO_P2, SQ_GRIB_MAX},   {2, 0, P1_TO_P2, SQ_GRIB_ACCUM},      {3, 0, P1_TO_P2, SQ_GRIB_AVG},
    {4, 0, P1_TO_P2, SQ_GRIB_ACCUM},     {5, 0, P1_TO_P2, SQ_GRIB_DIFF},       {6, 0, BEFORE_P1_TO_P2, SQ_GRIB_AVG},
    {7, 0, AROUND, SQ_GRIB_AVG},         {11, 0, AT_P1, SQ_GRIB_INSTANT},      {13, 0, AT_P1, SQ_GRIB_INSTANT},
    {14, 0, AT_P1, SQ_GRIB_INSTANT},     {51, 0, RUNS, SQ_GRIB_AVG},           {113, 0, RUNS, SQ_GRIB_AVGFC},
    {114, 0, RUNS, SQ_GRIB_ACCUM},       {115, 0, SERIES, SQ_GRIB_AVG},        {116, 0, SERIES, SQ_GRIB_ACCUM},
    {117, 0, RUNS, SQ_GRIB_AVG},         {118, ECMWF, P1_TO_P2, SQ_GRIB_MAX},  {118, 0, RUNS, SQ_GRIB_COV},
    {119, ECMWF, P1_TO_P2, SQ_GRIB_MIN}, {119, 0, SERIES, SQ_GRIB_SD},         {120, 0, P1_TO_P2, SQ_GRIB_RMS},
    {121, 0, P1_TO_P2, SQ_GRIB_SD},      {122, 0, P1_TO_P2, SQ_GRIB_COV},      {123, 0, RUNS, SQ_GRIB_AVGUA},
    {124, 0, RUNS, SQ_GRIB_AVGIA},       {125, 0, SERIES, SQ_GRIB_SD},         {128, 0, P1_TO_P2, SQ_GRIB_AVGAS},
    {129, 0, P1_TO_P2, SQ_GRIB_VARAS},   {130, 0, P1_TO_P2, SQ_GRIB_AVGAD},    {131, 0, P1_TO_P2, SQ_GRIB_VARAD},
    {132, 0, RUNS, SQ_GRIB_VARINS},      {133, 0, P1_TO_P2, SQ_GRIB_AVGID},
};

static const struct time_range *time_range_of(const uint8_t *pds)
{
    for (size_t i = 0; i < sizeof TIME_RANGES / sizeof *TIME_RANGES; i++)
        if (TIME_RANGES[i].indicator == pds[TIME_RANGE] && (TIME_RANGES[i].centre == 0 || TIME_RANGES[i].centre == pds[CENTRE]))
            return &TIME_RANGES[i];
    return NULL;
}

static bool read_times(const uint8_t *pds, struct sq_grib_times *t)
{
    const struct sq_grib_date date = {
        .year = (pds[CENTURY] - 1) * 100 + pds[YEAR_OF_CENTURY],
        .month = pds[YEAR_OF_CENTURY + 1],
        .day = pds[YEAR_OF_CENTURY + 2],
        .hour = pds[YEAR_OF_CENTURY + 3],
        .minute = pds[YEAR_OF_CENTURY + 4],
    };
    const struct time_range *range = time_range_of(pds);
    if (!sq_grib_date_seconds(&date, &t->reference_time_s) || !range)
        return false;
    int64_t p1 = pds[P1], p2 = pds[P2], begin = p1, end = p1;
    int64_t included = pds[INCLUDED] << 8 | pds[INCLUDED + 1];
    switch (range->span) {
    case AT_LONG_P1:
        begin = end = p1 << 8 | p2;
        break;
    case P1_TO_P2:
        end = p2;
        break;
    case BEFORE_P1_TO_P2:
        begin = -p1;
        end = -p2;
        break;
    case AROUND:
        begin = -p1;
        end = p2;
        break;
    case SERIES:
        end = included > 0 ? p1 + (included - 1) * p2 : p1;
        break;
    }
    return sq_grib_step_seconds(1, pds[UNIT], begin, t->reference_time_s, &t->step_begin_s) &&
           sq_grib_step_seconds(1, pds[UNIT], end, t->reference_time_s, &t->step_end_s);
}

/* Where an ECMWF local definition (octet 41) keeps the member number and how many members there are, and what in it is a date of the run. */
struct local {
    uint8_t definition;
    uint8_t number_bytes; /* from octet 50 on */
    uint8_t count_at;     /* octet from 0, as long as the number; 0: always an ensemble */
    uint8_t date_at, date_bytes;
};

static const struct local LOCALS[] = {
    {1, 1, 50, 0, 0},  {12, 2, 0, 55, 4}, {13, 1, 50, 0, 0}, {14, 1, 50, 0, 0},  {15, 2, 0, 0, 0},   {16, 2, 0, 55, 7},  {17, 1, 50, 51, 3},
    {18, 1, 50, 0, 0}, {23, 2, 0, 55, 7}, {26, 1, 50, 0, 0}, {27, 1, 50, 55, 6}, {28, 1, 50, 51, 6}, {30, 1, 50, 55, 6}, {31, 1, 50, 51, 6},
    {36, 1, 50, 0, 0}, {37, 1, 50, 0, 0}, {40, 1, 50, 0, 0}, {49, 1, 50, 0, 0},  {50, 1, 50, 0, 0},
};

static const struct local *local_of(const uint8_t *pds, size_t size)
{
    if (size <= LOCAL_NUMBER + 1 || (pds[CENTRE] != ECMWF && pds[SUBCENTRE] != ECMWF))
        return NULL;
    for (size_t i = 0; i < sizeof LOCALS / sizeof *LOCALS; i++)
        if (LOCALS[i].definition == pds[LOCAL])
            return (size_t)LOCALS[i].date_at + LOCALS[i].date_bytes <= size ? &LOCALS[i] : NULL;
    return NULL;
}

/* NCEP's extension: octet 41 is 1 for an ensemble, 42 the kind of member, 43 its number. */
static bool is_ncep_ensemble(const uint8_t *pds, size_t size)
{
    return pds[CENTRE] == NCEP && size >= LOCAL + 5 && pds[LOCAL] == 1 && pds[LOCAL + 1] >= 1 && pds[LOCAL + 1] <= 3;
}

/* Is the field one member of an ensemble, by this local definition? */
static bool is_member(const struct local *local, const uint8_t *pds)
{
    return local && pds[MARS_TYPE] != MARS_MEAN && pds[MARS_TYPE] != MARS_SPREAD && (local->count_at == 0 || pds[local->count_at] != 0);
}

static int32_t number_of(const struct local *local, const uint8_t *pds)
{
    return local->number_bytes == 1 ? pds[LOCAL_NUMBER] : pds[LOCAL_NUMBER] << 8 | pds[LOCAL_NUMBER + 1];
}

struct sq_grib1_ensemble sq_grib1_ensemble_of(const struct sq_grib_raw *raw)
{
    const struct local *local = local_of(raw->section1, raw->section1_bytes);
    struct sq_grib1_ensemble ensemble = {-1, -1};
    if (local) {
        ensemble.number = number_of(local, raw->section1);
        ensemble.count = local->count_at > 0 ? raw->section1[local->count_at] : 0;
    }
    return ensemble;
}

/* Grid and packing are told elsewhere: which sections follow, decimal scale, the number of a grid that is described. */
static void blank_packing(uint8_t *pds)
{
    if (pds[SECTIONS] & HAS_GRID_SECTION)
        pds[GRID] = 0;
    pds[SECTIONS] = 0;
    memset(pds + DECIMAL_SCALE, 0, 2);
}

static void blank_times(uint8_t *pds)
{
    const struct time_range *range = time_range_of(pds);
    memset(pds + YEAR_OF_CENTURY, 0, 5);
    pds[CENTURY] = pds[UNIT] = pds[P1] = pds[MISSING] = 0;
    if (range->span != RUNS) {
        pds[P2] = 0;
        memset(pds + INCLUDED, 0, 2);
    }
}

int sq_grib1_part(const struct sq_grib_found *found, uint8_t *pds, struct sq_grib_times *ret, bool *ret_dated, struct squall_error *err)
{
    (void)err; /* the frame has made sure of the PDS' fixed part */
    size_t size = (size_t)found->frame.section[1].size_bytes;
    struct sq_grib_times times = {.number = -1};
    bool dated = read_times(pds, &times);
    const struct local *local = local_of(pds, size);
    if (is_member(local, pds)) {
        times.number = number_of(local, pds);
        memset(pds + LOCAL_NUMBER, 0, local->number_bytes);
    } else if (is_ncep_ensemble(pds, size)) {
        times.number = pds[LOCAL + 2];
        pds[LOCAL + 2] = 0;
    }
    blank_packing(pds);
    if (dated) {
        blank_times(pds);
        if (local)
            memset(pds + local->date_at, 0, local->date_bytes);
    } else {
        times.step_begin_s = times.step_end_s = 0;
    }
    *ret = times;
    *ret_dated = dated;
    return 0;
}

/* A level or layer of code table 3 in the terms of code table 4.5. */
struct level {
    uint8_t type; /* table 3 */
    uint8_t surface;
    int8_t scale;
    uint8_t layer; /* two octets are two surfaces */
    int16_t from;  /* the value counts down from here: from − value; 0: it is the value itself */
    int8_t scale2; /* of a layer's second surface */
    int16_t from2;
};

enum { LEVEL_ONLY, LAYER };

static const struct level LEVELS[] = {
    {100, 100, -2, LEVEL_ONLY, 0, 0, 0}, {101, 100, -3, LAYER, 0, -3, 0},       {103, 102, 0, LEVEL_ONLY, 0, 0, 0},
    {104, 102, -2, LAYER, 0, -2, 0},     {105, 103, 0, LEVEL_ONLY, 0, 0, 0},    {106, 103, -2, LAYER, 0, -2, 0},
    {107, 104, 4, LEVEL_ONLY, 0, 0, 0},  {108, 104, 2, LAYER, 0, 2, 0},         {109, 105, 0, LEVEL_ONLY, 0, 0, 0},
    {110, 105, 0, LAYER, 0, 0, 0},       {111, 106, 2, LEVEL_ONLY, 0, 0, 0},    {112, 106, 2, LAYER, 0, 2, 0},
    {113, 107, 0, LEVEL_ONLY, 0, 0, 0},  {114, 107, 0, LAYER, 475, 0, 475},     {115, 108, -2, LEVEL_ONLY, 0, 0, 0},
    {116, 108, -2, LAYER, 0, -2, 0},     {117, 109, 9, LEVEL_ONLY, 0, 0, 0},    {119, 111, 4, LEVEL_ONLY, 0, 0, 0},
    {120, 111, 2, LAYER, 0, 2, 0},       {121, 100, -2, LAYER, 1100, -2, 1100}, {125, 103, 2, LEVEL_ONLY, 0, 0, 0},
    {128, 104, 3, LAYER, 1100, 3, 1100}, {141, 100, -3, LAYER, 0, -2, 1100},    {160, 160, 0, LEVEL_ONLY, 0, 0, 0},
    {20, 20, 2, LEVEL_ONLY, 0, 0, 0},    {210, 100, 0, LEVEL_ONLY, 0, 0, 0},    {126, 100, 0, LEVEL_ONLY, 0, 0, 0},
    {236, 160, -1, LAYER, 0, -1, 0},     {235, 235, 1, LEVEL_ONLY, 0, 0, 0},
};

/* Types without a value, where edition 2 has another number for them. */
static uint8_t plain_surface(uint8_t type)
{
    return type == 102 ? 101 : type == 200 ? 10 : type;
}

/* Octets of all ones are a value that is missing. */
static struct sq_grib_surface surface_of(uint8_t type, int8_t scale, int16_t from, unsigned octets, unsigned missing)
{
    struct sq_grib_surface surface = {.type = type};
    if (octets != missing)
        surface = (struct sq_grib_surface){type, scale, true, from ? from - (int32_t)octets : (int32_t)octets};
    return surface;
}

static void read_level(const uint8_t *pds, struct sq_grib_product *p)
{
    unsigned top = pds[LEVEL], bottom = pds[LEVEL + 1];
    for (size_t i = 0; i < sizeof LEVELS / sizeof *LEVELS; i++) {
        const struct level *l = &LEVELS[i];
        if (l->type != pds[LEVEL_TYPE])
            continue;
        if (l->layer) {
            p->first = surface_of(l->surface, l->scale, l->from, top, UINT8_MAX);
            p->second = surface_of(l->surface, l->scale2, l->from2, bottom, UINT8_MAX);
        } else {
            p->first = surface_of(l->surface, l->scale, l->from, top << 8 | bottom, UINT16_MAX);
        }
        return;
    }
    p->first.type = plain_surface(pds[LEVEL_TYPE]);
}

static uint8_t process_of(enum sq_grib_step_type type)
{
    static const uint8_t PROCESSES[] = {
        [SQ_GRIB_INSTANT] = 255, [SQ_GRIB_AVG] = 0,   [SQ_GRIB_ACCUM] = 1, [SQ_GRIB_MAX] = 2,   [SQ_GRIB_MIN] = 3,   [SQ_GRIB_DIFF] = 4,
        [SQ_GRIB_RMS] = 5,       [SQ_GRIB_SD] = 6,    [SQ_GRIB_COV] = 7,   [SQ_GRIB_AVGFC] = 0, [SQ_GRIB_AVGUA] = 0, [SQ_GRIB_AVGIA] = 0,
        [SQ_GRIB_AVGAS] = 0,     [SQ_GRIB_AVGAD] = 0, [SQ_GRIB_AVGID] = 0, [SQ_GRIB_VARAS] = 7, [SQ_GRIB_VARAD] = 7, [SQ_GRIB_VARINS] = 7,
    };
    return PROCESSES[type];
}

static enum sq_grib_step_type step_type_of(const uint8_t *pds, const struct time_range *range)
{
    /* NCEP and others write extreme temperatures as 2 too; the parameter says which */
    if (range->indicator == 2 && pds[TABLE] < 128 && (pds[PARAMETER] == 15 || pds[PARAMETER] == 16))
        return pds[PARAMETER] == 15 ? SQ_GRIB_MAX : SQ_GRIB_MIN;
    return (enum sq_grib_step_type)range->step_type;
}

static void read_ensemble(const struct sq_grib_raw *raw, struct sq_grib_product *p)
{
    const uint8_t *pds = raw->section1;
    const struct local *local = local_of(pds, raw->section1_bytes);
    if (is_member(local, pds)) {
        p->ensemble_kind = pds[MARS_TYPE] == MARS_CONTROL ? 1 : pds[MARS_TYPE] == MARS_PERTURBED ? 3 : 255;
    } else if (local && (pds[MARS_TYPE] == MARS_MEAN || pds[MARS_TYPE] == MARS_SPREAD)) {
        p->derived_forecast = pds[MARS_TYPE] == MARS_MEAN ? 0 : 4;
    } else if (is_ncep_ensemble(pds, raw->section1_bytes)) {
        p->ensemble_kind = pds[LOCAL + 1];
    }
}

void sq_grib1_product_of(struct sq_arena *arena, struct sq_grib_product *p)
{
    const uint8_t *pds = p->raw.section1;
    const struct time_range *range = time_range_of(pds);
    p->centre = pds[CENTRE];
    p->subcentre = pds[SUBCENTRE];
    p->template_number = UINT16_MAX;
    p->category = pds[TABLE];
    p->number = pds[PARAMETER];
    p->generating_process = pds[PROCESS];
    p->step_type = range ? step_type_of(pds, range) : SQ_GRIB_OTHER_STATISTIC;
    if (range)
        p->statistical_process = process_of(p->step_type);
    else
        p->unsupported = sq_grib_numbered(arena, "a time range indicator (code table 5) that is not known", pds[TIME_RANGE]);
    read_level(pds, p);
    read_ensemble(&p->raw, p);
}
