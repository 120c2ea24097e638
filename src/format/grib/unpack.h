/*
 * What the unpackers share. Each packing has one function, which turns a field's packed bytes into integers block by block and
 * hands the blocks to the sink; the sink scales them, spreads them over the bitmap and writes them where they belong.
 */
#ifndef SQ_FORMAT_GRIB_UNPACK_H
#define SQ_FORMAT_GRIB_UNPACK_H

#include "format/grib/decode.h"
#include "format/grib/kernels.h"

enum { SQ_GRIB_BITMAP_HEAD_BYTES = 6 }; /* both editions: the bits begin at octet 7 */

struct sq_grib_packed;
struct sq_grib_scratch;
struct sq_grib_sink;
/* Put every value of the field into the sink, or fail. Constant fields come here of complex packing only. */
typedef int sq_grib_unpack(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                           struct squall_error *err);
sq_grib_unpack sq_grib_unpack_simple, sq_grib_unpack_complex, sq_grib_unpack_ieee, sq_grib_unpack_png, sq_grib_unpack_jpeg,
    sq_grib_unpack_ccsds;

/* One field's packed data, its sections' bounds checked. */
struct sq_grib_packed {
    struct sq_grib_packing packing;
    struct sq_grib_scale scale;
    const uint8_t *parameters; /* section 5 from octet 21 on: what the template adds to 5.0's octets (edition 2) */
    size_t parameter_bytes;
    const uint8_t *data; /* section 7 behind its head */
    size_t data_bytes;
    uint64_t data_offset; /* of data in the message, for errors */
    uint64_t value_count; /* to be unpacked */
    sq_grib_unpack *unpack;
    bool is_constant; /* all values are R as it is */
    bool all_missing; /* edition 1: a field without values, marked by E = -32767 */
};

/* The values that one block holds: it and its scaled copy stay in the first cache. */
enum { SQ_GRIB_BLOCK = 2048 };

/* Where scaled values go. Filled in order of the file; scan_order.c puts them right where that is not the output's order. */
struct sq_grib_sink {
    const struct sq_grib_kernels *kernels;
    struct sq_grib_scale scale;
    enum sq_grib_output output;
    uint8_t *dst;
    size_t point_count;
    size_t at;             /* points done */
    const uint8_t *bitmap; /* one bit a point, NULL: every point has a value */
    void *dense;           /* with a bitmap: scaled values that wait for their points, SQ_GRIB_BLOCK + SQ_GRIB_SLACK of them */
    size_t dense_count;
};

/* The next count values. All calls together give exactly as many as there are points, or ones in the bitmap. */
void sq_grib_sink_put(struct sq_grib_sink *sink, enum sq_grib_source source, const void *values, size_t count);
void sq_grib_sink_put_constant(struct sq_grib_sink *sink, double value, size_t count);
/* All points missing, whatever the bitmap. */
void sq_grib_sink_put_missing(struct sq_grib_sink *sink);
/* Write what still waits. */
void sq_grib_sink_finish(struct sq_grib_sink *sink);

struct libdeflate_decompressor;
struct sq_grib_scratch {
    uint32_t block[SQ_GRIB_BLOCK + SQ_GRIB_SLACK];
    int32_t sums[SQ_GRIB_BLOCK + SQ_GRIB_SLACK];
    int64_t wide[SQ_GRIB_BLOCK + SQ_GRIB_SLACK];
    double dense[SQ_GRIB_BLOCK + SQ_GRIB_SLACK];
    struct libdeflate_decompressor *inflate; /* made when first needed */
    struct sq_grib_buffer {
        uint8_t *bytes;
        size_t capacity_bytes;
    } joined, inflated, points; /* PNG: the compressed stream in one piece, the filtered rows; a field in the file's own order */
};

/* At least size_bytes in the buffer; what was in it is lost. */
int sq_grib_buffer_reserve(struct sq_grib_buffer *buffer, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;

/* Values of one width from a bit on, straight through: simple packing, and a row of a PNG image. All bits lie inside size_bytes. */
void sq_grib_unpack_run(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, unsigned width, uint64_t count,
                        struct sq_grib_scratch *scratch, struct sq_grib_sink *sink);

/*
 * Bring a rectangular field from the file's order into the output's (i ascending, rows in the file's order or reversed), in place.
 * scanning_mode: flag table 3.4. Column-major order needs the field in `columnar`, else NULL.
 */
void sq_grib_scan_order_apply(uint8_t scanning_mode, bool flip_rows, size_t rows, size_t columns, size_t value_bytes, const void *columnar,
                              void *dst);
static inline bool sq_grib_scan_order_is_columnar(uint8_t scanning_mode)
{
    return scanning_mode & 0x20;
}

/* The field's packed data and parameters, checked against the sections' lengths. */
int sq_grib_packed_of(const uint8_t *message, size_t size, const struct sq_grib_frame *frame, struct sq_grib_packed *ret,
                      struct squall_error *err) SQUALL_CHECK;

#endif
