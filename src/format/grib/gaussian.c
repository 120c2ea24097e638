/*
 * See gaussian.h. Newton's method on the three-term recurrence of the Legendre polynomials, for several zeros at once: the coefficients
 * are shared by them and the lanes hide the recurrence's latency.
 */
#include "format/grib/gaussian.h"

#include <math.h>

enum { LANES = 8, ITERATIONS_MAX = 8 };

/* The polynomials of this degree and of the one below it, at LANES points */
static void legendre(unsigned degree, const double x[LANES], double ret[LANES], double ret_below[LANES])
{
    double above[LANES], p[LANES], below[LANES];
    for (int l = 0; l < LANES; l++) {
        below[l] = 1;
        p[l] = x[l];
    }
    for (unsigned k = 1; k < degree; k++) {
        double a = (2.0 * k + 1) / (k + 1.0), b = k / (k + 1.0);
        for (int l = 0; l < LANES; l++) {
            above[l] = a * x[l] * p[l] - b * below[l];
            below[l] = p[l];
            p[l] = above[l];
        }
    }
    for (int l = 0; l < LANES; l++) {
        ret[l] = p[l];
        ret_below[l] = below[l];
    }
}

static const double settled = 1e-13; /* the error after a step is its square times at most degree squared */

/* Latitudes of LANES successive rows from `begin` on, in the northern half; rows beyond it are computed and of no use. */
static void northern_rows(unsigned degree, uint32_t begin, double ret[LANES])
{
    double x[LANES], p[LANES], below[LANES], largest_step = 1;
    for (int l = 0; l < LANES; l++) /* Tricomi's first guess, good to degree^-4 */
        x[l] = (1 - (degree - 1.0) / (8.0 * degree * degree * degree)) * cos(M_PI * (begin + l + 0.75) / (degree + 0.5));
    for (int i = 0; i < ITERATIONS_MAX && largest_step > settled; i++) {
        legendre(degree, x, p, below);
        largest_step = 0;
        for (int l = 0; l < LANES; l++) {
            double slope = degree * (below[l] - x[l] * p[l]) / (1 - x[l] * x[l]);
            double step = p[l] / slope;
            x[l] -= step;
            if (begin + l < degree / 2)
                largest_step = fmax(largest_step, fabs(step));
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
