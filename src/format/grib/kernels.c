/* The plain kernels, which every processor runs and the others are measured against, and the choice between them. See kernels.h. */
#include "format/grib/kernels.h"
#include "sys/cpu.h"

#define VARIANT
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "format/grib/kernels_loops.h"

#define UNPACK_PIECE(bytes, end, bit, piece, out) unpack_piece_plain(bytes, end, bit, piece, highest_value((piece)->width, 0), out)
#define INTEGRATE(s, out)                         integrate_plain(s, out)
static void integrate_plain(struct sq_grib_ccsds *s, uint32_t *restrict out);
#include "format/grib/kernels_ccsds.h"

static void unpack_plain(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, const struct sq_grib_piece *pieces,
                         size_t piece_count, unsigned missing, uint32_t *out)
{
    for (size_t i = 0; i < piece_count; i++) {
        const struct sq_grib_piece *piece = &pieces[i];
        unpack_piece_plain(bytes, bytes + size_bytes, first_bit, piece, highest_value(piece->width, missing), out);
        first_bit += (uint64_t)piece->width * piece->count;
        out += piece->count;
    }
}

const struct sq_grib_kernels sq_grib_kernels_plain = {
    .unpack = unpack_plain,
    .sum_up = sum_up_plain,
    .to_float32 = SCALE_TABLE(float32),
    .to_float64 = SCALE_TABLE(float64),
    .count_ones = count_ones,
    .expand_float32 = expand_float32_plain,
    .expand_float64 = expand_float64,
    .unfilter = unfilter_plain,
    .ccsds_block = ccsds_block,
};

/* n to the power of s as a chain of products or quotients: other ways to the same power differ in the last bit. */
static double power(double n, int s)
{
    double value = 1;
    for (; s > 0; s--)
        value *= n;
    for (; s < 0; s++)
        value /= n;
    return value;
}

/* Where all bits of X·2^E + R lie within the 53 of a double, for X of up to 24 bits, which float holds too. */
static bool is_float_exact(double reference, int binary_scale, unsigned bits)
{
    enum { FLOAT_BITS = 24, DOUBLE_BITS = 53, FLOAT_E_LEAST = -126, FLOAT_E_MOST = 127 };
    if (bits == 0 || bits > FLOAT_BITS || binary_scale < FLOAT_E_LEAST || binary_scale > FLOAT_E_MOST)
        return false;
    if (reference == 0)
        return true;
    if (!isfinite(reference) || (double)(float)reference != reference)
        return false;
    int exponent; /* |reference| < 2^exponent, and all its bits are in the FLOAT_BITS below */
    (void)frexp(reference, &exponent);
    int lowest = exponent - FLOAT_BITS < binary_scale ? exponent - FLOAT_BITS : binary_scale;
    int highest = binary_scale + (int)bits > exponent ? binary_scale + (int)bits : exponent;
    return highest + 1 - lowest <= DOUBLE_BITS;
}

struct sq_grib_scale sq_grib_scale_of(double reference, int binary_scale, int decimal_scale, unsigned bits)
{
    return (struct sq_grib_scale){
        .reference = reference,
        .binary = power(2, binary_scale),
        .decimal = power(10, -decimal_scale),
        .float_exact = decimal_scale == 0 && is_float_exact(reference, binary_scale, bits),
    };
}

const struct sq_grib_kernels *sq_grib_kernels(void)
{
    const struct sq_grib_kernels *wide = sq_grib_kernels_avx2();
    return wide && sq_cpu_features() & SQ_CPU_AVX2 ? wide : &sq_grib_kernels_plain;
}
