/*
 * CCSDS packing (data representation template 5.42, CCSDS 121.0-B). Streams as the standard has them are decoded by our own kernel; libaec's
 * extensions (signed samples, other block sizes, padded segments) by libaec, which gives the integers in the machine's order. Either is drained block by block,
 * so that the integers never leave the cache.
 */
#include "base/error_internal.h"
#include "format/grib/unpack.h"
#include <libaec.h>
#include <string.h>

enum {
    PARAMETER_BYTES = 4, /* octets 22 to 25: flags, block size, reference sample interval */
    LONGEST_INTERVAL = 4096,
};

static int corrupt(const struct sq_grib_packed *packed, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "CCSDS data at byte %llu of the message: %s", (unsigned long long)packed->data_offset, what);
}

/* Is some integer wider than the header says? A sound encoder writes none, and what the packing allows is relied on. */
static bool any_above(const uint32_t *values, size_t count, unsigned bits)
{
    uint32_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= values[i];
    return (uint64_t)all >> bits != 0;
}

static int put(const struct sq_grib_packed *packed, const uint32_t *values, size_t count, struct sq_grib_sink *sink,
               struct squall_error *err)
{
    unsigned bits = packed->packing.bits_per_value;
    if (any_above(values, count, bits))
        return corrupt(packed, "a value is wider than the bits per value", err);
    sq_grib_sink_put(sink, bits < 32 ? SQ_GRIB_I32 : SQ_GRIB_U32, values, count);
    return 0;
}

static int unpack_standard(const struct sq_grib_packed *packed, struct sq_grib_ccsds *stream, struct sq_grib_scratch *scratch,
                           struct sq_grib_sink *sink, struct squall_error *err)
{
    for (uint64_t left = packed->value_count; left;) {
        size_t count = left < SQ_GRIB_BLOCK ? (size_t)left : SQ_GRIB_BLOCK;
        for (size_t i = 0; i < count; i += stream->block) /* blocks divide SQ_GRIB_BLOCK; the last may be in excess */
            if (!sink->kernels->ccsds_block(stream, scratch->block + i))
                return corrupt(packed, "the stream is damaged, or ends before the last value", err);
        SQ_TRY(put(packed, scratch->block, count, sink, err));
        left -= count;
    }
    return 0;
}

/* libaec's container of a sample, widened in place from behind. */
static void widen(uint32_t *values, size_t count, unsigned container_bytes)
{
    for (size_t i = count; i-- > 0 && container_bytes < 4;) {
        uint8_t *container = (uint8_t *)values + i * container_bytes;
        uint16_t two;
        memcpy(&two, container, sizeof two);
        values[i] = container_bytes == 1 ? container[0] : two;
    }
}

static int drain(struct aec_stream *stream, const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                 struct squall_error *err)
{
    unsigned bits = packed->packing.bits_per_value, bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
    for (uint64_t left = packed->value_count; left;) {
        size_t count = left < SQ_GRIB_BLOCK ? (size_t)left : SQ_GRIB_BLOCK;
        stream->next_out = (unsigned char *)scratch->block;
        stream->avail_out = count * bytes;
        if (aec_decode(stream, AEC_FLUSH) != AEC_OK)
            return corrupt(packed, "the stream is damaged", err);
        if (stream->avail_out)
            return corrupt(packed, "the stream ends before the last value", err);
        widen(scratch->block, count, bytes);
        SQ_TRY(put(packed, scratch->block, count, sink, err));
        left -= count;
    }
    return 0;
}

static int unpack_by_libaec(const struct sq_grib_packed *packed, unsigned flags, unsigned block, unsigned interval,
                            struct sq_grib_scratch *scratch, struct sq_grib_sink *sink, struct squall_error *err)
{
    struct aec_stream stream = {
        .next_in = packed->data,
        .avail_in = packed->data_bytes,
        .bits_per_sample = packed->packing.bits_per_value,
        .block_size = block,
        .rsi = interval,
        .flags = flags & ~(unsigned)(AEC_DATA_3BYTE | AEC_DATA_MSB),
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

/* Bits of a block's option (CCSDS 121.0-B, table 5-1); restricted: the short codes for samples of up to 4 bits. */
static unsigned option_bits(unsigned bits, bool restricted)
{
    if (restricted && bits <= 4)
        return bits <= 2 ? 1 : 2;
    return bits <= 8 ? 3 : bits <= 16 ? 4 : 5;
}

int sq_grib_unpack_ccsds(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                         struct squall_error *err)
{
    if (packed->parameter_bytes < PARAMETER_BYTES + 1)
        return corrupt(packed, "section 5 is too short for its template", err);
    const uint8_t *p = packed->parameters + 1;
    unsigned flags = p[0], block = p[1], interval = (unsigned)(p[2] << 8 | p[3]), bits = packed->packing.bits_per_value;
    bool standard_block = block == 8 || block == 16 || block == 32 || block == 64;
    bool restricted = flags & AEC_RESTRICTED;
    if (interval == 0 || interval > LONGEST_INTERVAL || (restricted && bits > 4) || block == 0 || block % 2 ||
        (!standard_block && !(flags & AEC_NOT_ENFORCE)))
        return corrupt(packed, "block size, interval or flags make no sense", err);
    if (!standard_block || flags & (AEC_DATA_SIGNED | AEC_PAD_RSI))
        return unpack_by_libaec(packed, flags, block, interval, scratch, sink, err);
    struct sq_grib_ccsds stream = {
        .bytes = packed->data,
        .size_bytes = packed->data_bytes,
        .bits = bits,
        .block = block,
        .interval = interval,
        .option_bits = option_bits(bits, restricted),
        .preprocessed = flags & AEC_DATA_PREPROCESS,
    };
    return unpack_standard(packed, &stream, scratch, sink, err);
}
