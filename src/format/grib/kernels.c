/* The plain kernels, which every processor runs and the others are measured against, and the choice between them. See kernels.h. */
#include "format/grib/kernels.h"
#include "sys/cpu.h"

#define VARIANT
#include "format/grib/kernels_loops.h"

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
    .to_float32 = SCALE_TABLE(float32),
    .to_float64 = SCALE_TABLE(float64),
    .count_ones = count_ones,
    .expand_float32 = expand_float32_plain,
    .expand_float64 = expand_float64,
};

const struct sq_grib_kernels *sq_grib_kernels(void)
{
    const struct sq_grib_kernels *wide = sq_grib_kernels_avx2();
    return wide && sq_cpu_features() & SQ_CPU_AVX2 ? wide : &sq_grib_kernels_plain;
}
