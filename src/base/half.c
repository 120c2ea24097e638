/* See half.h. Plain bit arithmetic; kernels that need speed use F16C themselves. */
#include "base/half.h"
#include <math.h>
#include <string.h>

uint16_t sq_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) /* NaN */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x477ff000) /* 65520, halfway between the greatest half and 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude >= 0x38800000) { /* 2^-14: normal */
        magnitude += 0xfff + (magnitude >> 13 & 1);
        return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
    }
    if (magnitude < 0x33000000) /* below 2^-25, half of the smallest subnormal */
        return (uint16_t)sign;
    uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    unsigned shift = 126 - (magnitude >> 23);
    uint32_t half = mantissa >> shift;
    uint32_t rest = mantissa & ((UINT32_C(1) << shift) - 1);
    uint32_t middle = UINT32_C(1) << (shift - 1);
    if (rest > middle || (rest == middle && (half & 1)))
        half++;
    return (uint16_t)(sign | half);
}

float sq_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31;
    uint32_t mantissa = half & 0x3ff;
    if (exponent == 0) {
        float tiny = (float)mantissa * 0x1p-24F;
        return sign ? -tiny : tiny;
    }
    uint32_t bits = exponent == 31 ? sign | 0x7f800000 | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
    if (exponent == 31 && mantissa)
        bits |= 0x400000;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float sq_float_to_odd(double value)
{
    float near = (float)value;
    uint32_t bits;
    if (!(fabs(value) < INFINITY) || (double)near == value)
        return near;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(value))
        bits--; /* towards zero */
    bits |= 1;
    memcpy(&near, &bits, sizeof near);
    return near;
}

uint16_t sq_half_from_double(double value)
{
    return sq_half_from_float(sq_float_to_odd(value));
}
