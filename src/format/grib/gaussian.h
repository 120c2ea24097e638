/* Latitudes of Gaussian grids: the zeros of the Legendre polynomial of degree 2N, N rows between a pole and the equator. */
#ifndef SQ_FORMAT_GRIB_GAUSSIAN_H
#define SQ_FORMAT_GRIB_GAUSSIAN_H

#include <stdbool.h>
#include <stdint.h>

enum { SQ_GAUSSIAN_PARALLELS_MAX = 16384 }; /* 600 m; bounds the work that a header can ask for */

/* Degrees of rows begin … begin + count − 1, of 2 × parallels rows numbered from the northernmost, 0. */
void sq_gaussian_latitudes(uint32_t parallels, uint32_t begin, uint32_t count, double *ret);

/* The row at this latitude; false where it lies off every row by more than an eighth of their distance. */
bool sq_gaussian_row(uint32_t parallels, double latitude, uint32_t *ret);

#endif
