/*
 * CCSDS packing (data representation template 5.42, CCSDS 121.0-B) by libaec, which gives the integers in the machine's order and
 * in the smallest of 1, 2 and 4 bytes. It is drained block by block, so that the integers never leave the cache.
 */
#include "base/error_internal.h"
#include "format/grib/unpack.h"
#include <libaec.h>

enum { PARAMETER_BYTES = 4 }; /* octets 22 to 25: flags, block size, reference sample interval */

static int corrupt(const struct sq_grib_packed *packed, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "CCSDS data at byte %llu of the message: %s", (unsigned long long)packed->data_offset, what);
}

static unsigned sample_bytes(unsigned bits)
{
    return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

/* Is some integer wider than the header says? A sound encoder writes none, and what the packing allows is relied on. */
static bool any_above(const void *values, size_t count, unsigned bytes, unsigned bits)
{
    uint32_t all = 0;
    if (bytes == 1)
        for (size_t i = 0; i < count; i++)
            all |= ((const uint8_t *)values)[i];
    else if (bytes == 2)
        for (size_t i = 0; i < count; i++)
            all |= ((const uint16_t *)values)[i];
    else
        for (size_t i = 0; i < count; i++)
            all |= ((const uint32_t *)values)[i];
    return (uint64_t)all >> bits != 0;
}

static int drain(struct aec_stream *stream, const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                 struct squall_error *err)
{
    unsigned bits = packed->packing.bits_per_value, bytes = sample_bytes(bits);
    enum sq_grib_source source = bytes == 1 ? SQ_GRIB_U8 : bytes == 2 ? SQ_GRIB_U16 : bits < 32 ? SQ_GRIB_I32 : SQ_GRIB_U32;
    for (uint64_t left = packed->value_count; left;) {
        size_t count = left < SQ_GRIB_BLOCK ? (size_t)left : SQ_GRIB_BLOCK;
        stream->next_out = (unsigned char *)scratch->block;
        stream->avail_out = count * bytes;
        if (aec_decode(stream, AEC_FLUSH) != AEC_OK)
            return corrupt(packed, "the stream is damaged", err);
        if (stream->avail_out)
            return corrupt(packed, "the stream ends before the last value", err);
        if (any_above(scratch->block, count, bytes, bits))
            return corrupt(packed, "a value is wider than the bits per value", err);
        sq_grib_sink_put(sink, source, scratch->block, count);
        left -= count;
    }
    return 0;
}

int sq_grib_unpack_ccsds(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                         struct squall_error *err)
{
    if (packed->parameter_bytes < PARAMETER_BYTES + 1)
        return corrupt(packed, "section 5 is too short for its template", err);
    const uint8_t *p = packed->parameters + 1;
    struct aec_stream stream = {
        .next_in = packed->data,
        .avail_in = packed->data_bytes,
        .bits_per_sample = packed->packing.bits_per_value,
        .block_size = p[1],
        .rsi = (unsigned)(p[2] << 8 | p[3]),
        .flags = p[0] & ~(unsigned)(AEC_DATA_3BYTE | AEC_DATA_MSB),
    };
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    stream.flags |= AEC_DATA_MSB;
#endif
    if (aec_decode_init(&stream) != AEC_OK)
        return corrupt(packed, "block size, interval or flags make no sense", err);
    int status = drain(&stream, packed, scratch, sink, err);
    aec_decode_end(&stream);
    return status;
}
