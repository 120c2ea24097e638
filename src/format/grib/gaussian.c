/*
 * See gaussian.h. ecCodes' doubles, bit by bit, so that a label of one program is found by the other: its first guess, its order of
 * operations, its stop. Newton's method on the three-term recurrence of the Legendre polynomials, for several zeros at once, whose lanes
 * hide the recurrence's latency.
 */
#include "format/grib/gaussian.h"

#include <math.h>

enum { LANES = 8, ITERATIONS_MAX = 12 };

/* Zeros of the Bessel function J0 as ecCodes has them: some last digits are off by one, and a last bit of a latitude depends on it. */
static const double BESSEL_ZEROS[] = {
    2.4048255577,   5.5200781103,   8.6537279129,   11.7915344391,  14.9309177086,  18.0710639679,  21.2116366299,  24.3524715308,
    27.4934791320,  30.6346064684,  33.7758202136,  36.9170983537,  40.0584257646,  43.1997917132,  46.3411883717,  49.4826098974,
    52.6240518411,  55.7655107550,  58.9069839261,  62.0484691902,  65.1899648002,  68.3314693299,  71.4729816036,  74.6145006437,
    77.7560256304,  80.8975558711,  84.0390907769,  87.1806298436,  90.3221726372,  93.4637187819,  96.6052679510,  99.7468198587,
    102.8883742542, 106.0299309165, 109.1714896498, 112.3130502805, 115.4546126537, 118.5961766309, 121.7377420880, 124.8793089132,
    128.0208770059, 131.1624462752, 134.3040166383, 137.4455880203, 140.5871603528, 143.7287335737, 146.8703076258, 150.0118824570,
    153.1534580192, 156.2950342685,
};
enum { ZERO_COUNT = sizeof BESSEL_ZEROS / sizeof *BESSEL_ZEROS };

/* First guesses of the sines of LANES successive rows */
static void guess(unsigned degree, uint32_t begin, double ret[LANES])
{
    const double middle = degree + 0.5, two_over_pi = 2 / M_PI;
    const double radius = sqrt(middle * middle + (1 - two_over_pi * two_over_pi * 0.25));
    double zero = BESSEL_ZEROS[ZERO_COUNT - 1];
    for (uint32_t row = ZERO_COUNT; row < begin; row++)
        zero += M_PI; /* rounds each time, as there */
    for (uint32_t l = 0; l < LANES; l++) {
        zero = begin + l < ZERO_COUNT ? BESSEL_ZEROS[begin + l] : zero + M_PI;
        ret[l] = cos(zero / radius);
    }
}

/* The polynomials of this degree and of the one below it, at LANES points x, both times x: as ecCodes begins, which rounds otherwise. */
static void legendre(unsigned degree, const double x[LANES], double ret[LANES], double ret_below[LANES])
{
    double above[LANES], p[LANES], below[LANES];
    for (int l = 0; l < LANES; l++) {
        below[l] = x[l];
        p[l] = x[l] * x[l];
    }
    for (unsigned k = 1; k < degree; k++) {
        for (int l = 0; l < LANES; l++) {
            above[l] = ((2.0 * k + 1) * x[l] * p[l] - k * below[l]) / (k + 1.0);
            below[l] = p[l];
            p[l] = above[l];
        }
    }
    for (int l = 0; l < LANES; l++) {
        ret[l] = p[l];
        ret_below[l] = below[l];
    }
}

static const double settled = 1e-14; /* a row whose step was smaller takes no further one */

/* Latitudes of LANES successive rows from `begin` on, in the northern half; rows beyond it are computed and of no use. */
static void northern_rows(unsigned degree, uint32_t begin, double ret[LANES])
{
    double x[LANES], p[LANES], below[LANES], last_step[LANES];
    bool moves = true;
    guess(degree, begin, x);
    for (int l = 0; l < LANES; l++)
        last_step[l] = 1;
    for (int i = 0; i < ITERATIONS_MAX && moves; i++) {
        legendre(degree, x, p, below);
        moves = false;
        for (uint32_t l = 0; l < LANES && begin + l < degree / 2; l++) {
            if (last_step[l] < settled)
                continue;
            double step = p[l] / (degree * (below[l] - x[l] * p[l]) / (1 - x[l] * x[l]));
            x[l] -= step;
            last_step[l] = fabs(step);
            moves |= last_step[l] >= settled;
        }
    }
    for (int l = 0; l < LANES; l++)
        ret[l] = asin(x[l]) * (180 / M_PI);
}

void sq_gaussian_latitudes(uint32_t parallels, uint32_t begin, uint32_t count, double *ret)
{
    double rows[LANES];
    uint32_t known_from = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = begin + i;
        bool southern = row >= parallels;
        uint32_t mirrored = southern ? 2 * parallels - 1 - row : row;
        if (southern && mirrored >= begin) {
            ret[i] = -ret[mirrored - begin];
            continue;
        }
        uint32_t block = mirrored / LANES * LANES;
        if (block != known_from) {
            northern_rows(2 * parallels, block, rows);
            known_from = block;
        }
        ret[i] = southern ? -rows[mirrored - block] : rows[mirrored - block];
    }
}

bool sq_gaussian_row(uint32_t parallels, double latitude, uint32_t *ret)
{
    double spacing = 180 / (2.0 * parallels + 0.5), guess = nearbyint((90 - latitude) / spacing - 0.75), at = NAN;
    if (!(guess >= 0 && guess < 2.0 * parallels))
        return false;
    sq_gaussian_latitudes(parallels, (uint32_t)guess, 1, &at);
    if (fabs(at - latitude) > spacing / 8)
        return false;
    *ret = (uint32_t)guess;
    return true;
}
