/* See grid_lines.h. All counts are below 2^33 and their products with a number of points stay exact in a double for any real grid. */
#include "format/grib/grid_lines.h"

#include <math.h>

enum {
    CORNER_ERROR = 2,    /* angle units by which two rounded corners may miss their distance … */
    PARTS_OF_STEP = 4,   /* … and never more than this part of a step: units can be as coarse as the grid */
    STEPS_TO_TRUST = 32, /* with fewer, a rounded increment agrees with the corners by chance */
};

static double circle(const struct sq_grid_definition *g)
{
    return 360.0 * (double)g->unit_denominator / (double)g->unit_numerator;
}

double sq_grid_line_at(const struct sq_grid_definition *g, const struct sq_grid_line *line, uint32_t k)
{
    double count = line->first * line->divisor + line->span * k;
    return count * (double)g->unit_numerator / (line->divisor * (double)g->unit_denominator);
}

static double rounding(double step)
{
    return fmin(CORNER_ERROR, fabs(step) / PARTS_OF_STEP);
}

/*
 * Corners carry an error of one unit, an increment one that grows with the number of points. Where both agree the increment is
 * exact, and the better of the two: 0.01 and not 0.0099999997 where one corner was rounded carelessly.
 */
static double settle_span(double span, int64_t step, uint32_t intervals)
{
    double by_step = (double)step * intervals;
    if (step == SQ_GRID_STEP_MISSING || intervals < STEPS_TO_TRUST || fabs(fabs(span) - by_step) > rounding((double)step))
        return span;
    return span < 0 ? -by_step : by_step;
}

struct sq_grid_line sq_grid_latitudes(const struct sq_grid_definition *g)
{
    struct sq_grid_line line = {(double)g->latitude_first, 0, 1, g->nj};
    if (g->nj > 1) {
        line.divisor = g->nj - 1;
        line.span = settle_span((double)(g->latitude_last - g->latitude_first), g->j_step, g->nj - 1);
    }
    return line;
}

/* Degrees eastward from west to east, in units: within a circle, or a whole one where the header says 0 to 360. */
static double eastward(double west, double east, double whole)
{
    double span = fmod(east - west, whole);
    if (span < 0)
        span += whole;
    return span == 0 && east > west ? whole : span;
}

/* An area that ends where it begins, or goes round more than once: the increment decides. */
static double choose_turns(double span, double whole, const struct sq_grid_definition *g, uint32_t intervals)
{
    if (g->i_step == SQ_GRID_STEP_MISSING)
        return span == 0 ? whole * intervals / (intervals + 1.0) : span;
    double by_step = (double)g->i_step * intervals;
    if (span == 0)
        return by_step;
    return fabs(span + whole - by_step) <= rounding((double)g->i_step) ? span + whole : span;
}

/* Longitudes beyond 360 degrees are the same points a turn earlier. */
static double turn_back(double west, double span, double step, double whole)
{
    west = fmod(west, whole);
    return west + span > whole + rounding(step) ? west - whole : west;
}

struct sq_grid_line sq_grid_longitudes(const struct sq_grid_definition *g)
{
    bool westward = g->scanning_mode & SQ_GRID_I_NEGATIVE;
    double whole = circle(g), west = (double)(westward ? g->longitude_last : g->longitude_first);
    double east = (double)(westward ? g->longitude_first : g->longitude_last);
    struct sq_grid_line line = {west, 0, 1, g->ni};
    if (g->ni < 2)
        return line;

    uint32_t intervals = g->ni - 1;
    line.span = choose_turns(eastward(west, east, whole), whole, g, intervals);
    line.divisor = intervals;
    double step = line.span / intervals;
    line.first = turn_back(west, line.span, step, whole);
    if (fabs(step * g->ni - whole) <= rounding(step)) {
        line.span = whole; /* all round: the circle, divided */
        line.divisor = g->ni;
    } else {
        line.span = settle_span(line.span, g->i_step, intervals);
    }
    return line;
}

/* ---- reduced grids ---- */

static void count_rows(const struct sq_grid_definition *g, uint64_t *ret_sum, uint32_t *ret_longest)
{
    uint64_t sum = 0;
    uint32_t longest = 1;
    for (uint32_t n = 0; n < g->row_count; n++) {
        uint32_t length = sq_grid_row_length(g, n);
        sum += length;
        longest = length > longest ? length : longest;
    }
    *ret_sum = sum;
    *ret_longest = longest;
}

struct sq_grid_reduced sq_grid_reduced_of(const struct sq_grid_definition *g)
{
    uint64_t sum;
    uint32_t longest;
    count_rows(g, &sum, &longest);
    double unit = (double)g->unit_numerator / (double)g->unit_denominator;
    double west = sq_grid_degrees(g, g->longitude_first), east = sq_grid_degrees(g, g->longitude_last);
    struct sq_grid_reduced r = {SQ_REDUCED_WHOLE, west, eastward(west, east, 360),
                                fmin(CORNER_ERROR * unit, 360.0 / longest / PARTS_OF_STEP), sum};
    if (r.span + 360.0 / longest >= 360 - r.tolerance)
        return r;
    /* Part of the globe: the list either counts the points between the corners, or those of the whole circle (MARS sub-areas). */
    if (g->kind == SQ_GRID_REDUCED_LL || sum == g->point_count) {
        r.rows = SQ_REDUCED_BETWEEN;
        return r;
    }
    r.rows = SQ_REDUCED_PART;
    r.point_count = 0;
    for (uint32_t n = 0; n < g->row_count; n++)
        r.point_count += sq_grid_reduced_row(g, &r, n).count;
    return r;
}

struct sq_grid_reduced_row sq_grid_reduced_row(const struct sq_grid_definition *g, const struct sq_grid_reduced *r, uint32_t n)
{
    uint32_t length = sq_grid_row_length(g, n);
    struct sq_grid_reduced_row row = {length, r->west, 0};
    if (length == 0)
        return row;
    if (r->rows == SQ_REDUCED_BETWEEN) {
        row.step = length > 1 ? r->span / (length - 1) : 0;
        return row;
    }
    row.step = 360.0 / length;
    if (r->rows == SQ_REDUCED_PART) {
        double begin = ceil((r->west - r->tolerance) / row.step), end = floor((r->west + r->span + r->tolerance) / row.step);
        row.count = end < begin ? 0 : end - begin + 1 < length ? (uint32_t)(end - begin + 1) : length;
        row.first = begin * row.step;
    }
    return row;
}
