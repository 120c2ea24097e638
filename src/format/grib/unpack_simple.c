/* Simple packing (data representation template 5.0, and edition 1's): values of one width, one after the other. */
#include "format/grib/unpack.h"

void sq_grib_unpack_run(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, unsigned width, uint64_t count,
                        struct sq_grib_scratch *scratch, struct sq_grib_sink *sink)
{
    enum sq_grib_source source = width < 32 ? SQ_GRIB_I32 : SQ_GRIB_U32;
    while (count) {
        struct sq_grib_piece piece = {0, count < SQ_GRIB_BLOCK ? (uint32_t)count : SQ_GRIB_BLOCK, width};
        sink->kernels->unpack(bytes, size_bytes, first_bit, &piece, 1, 0, scratch->block);
        sq_grib_sink_put(sink, source, scratch->block, piece.count);
        first_bit += (uint64_t)width * piece.count;
        count -= piece.count;
    }
}

int sq_grib_unpack_simple(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                          struct squall_error *err)
{
    (void)err; /* the values were found to lie inside the section when it was parsed */
    sq_grib_unpack_run(packed->data, packed->data_bytes, 0, packed->packing.bits_per_value, packed->value_count, scratch, sink);
    return 0;
}
