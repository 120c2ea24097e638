/*
 * PNG (data representation template 5.41): libdeflate inflates the whole stream at once, the rows are unfiltered here, and a row's
 * samples are packed bits like any others. The samples of one value are its bytes: 8 or 16 bits of grey, RGB as 24, RGB and
 * alpha as 32; 1, 2 and 4 bits of grey for narrow values. Chunk checksums are left alone: the stream has its own.
 */
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/grib/unpack.h"
#include <libdeflate.h>
#include <string.h>

enum {
    SIGNATURE_BYTES = 8,
    DEFLATE_BEST_RATIO = 1032, /* no deflate stream holds more bytes a byte (RFC 1951: 258 bytes in two bits) */
    GREY = 0,
    RGB = 2,
    RGB_ALPHA = 6,
};

#define CHUNK(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

struct image {
    uint32_t width, height;
    unsigned value_bits;
    size_t row_bytes;    /* without the filter's byte */
    unsigned step;       /* bytes to the sample's left neighbour, at least 1 */
    const uint8_t *zlib; /* the compressed stream in one piece */
    size_t zlib_bytes;
};

static int corrupt(const struct sq_grib_packed *packed, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "PNG data at byte %llu of the message: %s", (unsigned long long)packed->data_offset, what);
}

/* IHDR (PNG specification, 11.2.2). */
static int read_header(const struct sq_grib_packed *packed, struct sq_cursor *c, struct image *image, struct squall_error *err)
{
    uint32_t length = sq_u32be(c), type = sq_u32be(c);
    image->width = sq_u32be(c);
    image->height = sq_u32be(c);
    unsigned depth = sq_u8(c), colour = sq_u8(c), compression = sq_u8(c), filter = sq_u8(c), interlace = sq_u8(c);
    (void)sq_u32be(c); /* checksum */
    if (sq_cursor_failed(c) || length != 13 || type != CHUNK('I', 'H', 'D', 'R'))
        return corrupt(packed, "no image header", err);
    if (compression || filter || interlace)
        return corrupt(packed, "interlaced, or of an unknown compression or filter method", err);
    bool grey = colour == GREY && (depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16);
    if (!grey && !(depth == 8 && (colour == RGB || colour == RGB_ALPHA)))
        return corrupt(packed, "neither grey nor 8-bit RGB samples", err);
    image->value_bits = colour == RGB ? 24 : colour == RGB_ALPHA ? 32 : depth;
    image->step = image->value_bits < 8 ? 1 : image->value_bits / 8;
    unsigned bits = packed->packing.bits_per_value, whole = (bits + 7) / 8 * 8;
    if (image->value_bits != whole && !(image->value_bits < 8 && image->value_bits >= bits))
        return sq_error(err, SQUALL_ECORRUPT, "PNG data at byte %llu of the message: samples of %u bits for values of %u",
                        (unsigned long long)packed->data_offset, image->value_bits, bits);
    if ((uint64_t)image->width * image->height != packed->value_count)
        return sq_error(err, SQUALL_ECORRUPT, "PNG data at byte %llu of the message: %u × %u samples for %llu values",
                        (unsigned long long)packed->data_offset, image->width, image->height, (unsigned long long)packed->value_count);
    image->row_bytes = (size_t)(((uint64_t)image->width * image->value_bits + 7) / 8);
    return 0;
}

/* The IDAT chunks' contents: in place where there is one chunk, else joined. */
static int read_stream(const struct sq_grib_packed *packed, struct sq_cursor *c, struct sq_grib_buffer *joined, struct image *image,
                       struct squall_error *err)
{
    image->zlib = NULL;
    image->zlib_bytes = 0;
    unsigned parts = 0;
    for (;;) {
        uint32_t length = sq_u32be(c), type = sq_u32be(c);
        const uint8_t *content = sq_take(c, length);
        (void)sq_u32be(c); /* checksum */
        if (sq_cursor_failed(c))
            return corrupt(packed, "a chunk ends behind the data", err);
        if (type == CHUNK('I', 'E', 'N', 'D'))
            break;
        if (type != CHUNK('I', 'D', 'A', 'T'))
            continue;
        if (++parts == 1) {
            image->zlib = content;
        } else {
            if (parts == 2) {
                SQ_TRY(sq_grib_buffer_reserve(joined, packed->data_bytes, err));
                memcpy(joined->bytes, image->zlib, image->zlib_bytes);
                image->zlib = joined->bytes;
            }
            memcpy(joined->bytes + image->zlib_bytes, content, length);
        }
        image->zlib_bytes += length;
    }
    return parts ? 0 : corrupt(packed, "no image data", err);
}

static int inflate(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, const struct image *image,
                   struct squall_error *err)
{
    size_t rows_bytes, got;
    if (!sq_mul_size(image->row_bytes + 1, image->height, &rows_bytes) || rows_bytes / DEFLATE_BEST_RATIO > image->zlib_bytes)
        return corrupt(packed, "more rows than its compressed bytes can hold", err);
    if (!scratch->inflate)
        scratch->inflate = libdeflate_alloc_decompressor();
    if (!scratch->inflate)
        return sq_error_memory(err, 0);
    SQ_TRY(sq_grib_buffer_reserve(&scratch->inflated, rows_bytes + SQ_GRIB_SLACK, err));
    if (libdeflate_zlib_decompress(scratch->inflate, image->zlib, image->zlib_bytes, scratch->inflated.bytes, rows_bytes, &got) !=
            LIBDEFLATE_SUCCESS ||
        got != rows_bytes)
        return corrupt(packed, "the compressed stream is damaged", err);
    return 0;
}

int sq_grib_unpack_png(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                       struct squall_error *err)
{
    static const uint8_t signature[SIGNATURE_BYTES] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    struct sq_cursor c = sq_cursor(packed->data, packed->data_bytes);
    const uint8_t *start = sq_take(&c, SIGNATURE_BYTES);
    if (!start || memcmp(start, signature, SIGNATURE_BYTES) != 0)
        return corrupt(packed, "no PNG image begins there", err);
    struct image image = {0};
    SQ_TRY(read_header(packed, &c, &image, err));
    SQ_TRY(read_stream(packed, &c, &scratch->joined, &image, err));
    SQ_TRY(inflate(packed, scratch, &image, err));

    /* the row above the first is zero; the joined stream is done with and its buffer serves */
    SQ_TRY(sq_grib_buffer_reserve(&scratch->joined, image.row_bytes, err));
    memset(scratch->joined.bytes, 0, image.row_bytes);
    const uint8_t *above = scratch->joined.bytes, *end = scratch->inflated.bytes + (image.row_bytes + 1) * image.height;
    for (uint8_t *row = scratch->inflated.bytes; row < end; row += image.row_bytes + 1) {
        if (!sink->kernels->unfilter(row[0], row + 1, above, image.row_bytes, image.step))
            return corrupt(packed, "a row has an unknown filter", err);
        sq_grib_unpack_run(row + 1, (size_t)(end - row - 1), 0, image.value_bits, image.width, scratch, sink);
        above = row + 1;
    }
    return 0;
}
