/* IEEE 754 half precision, in 16 bits: rounded to nearest, ties to even. */
#ifndef SQ_BASE_HALF_H
#define SQ_BASE_HALF_H

#include <stdint.h>

uint16_t sq_half_from_float(float value);
uint16_t sq_half_from_double(double value); /* rounded once */
float sq_half_to_float(uint16_t half);
/* The float that keeps what rounding to a shorter type needs: cut, and its last bit set where something was cut off. */
float sq_float_to_odd(double value);

#endif
