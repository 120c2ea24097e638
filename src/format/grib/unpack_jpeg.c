/*
 * JPEG 2000 (data representation template 5.40) by OpenJPEG. The code stream's markers are read first by ourselves: the library is only
 * asked for an image that has as many samples as the field has values, in tiles, layers and precincts whose bookkeeping cannot
 * take many times the memory of the samples.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/grib/unpack.h"
#include <openjpeg.h>
#include <string.h>

enum {
    START_OF_CODESTREAM = 0xff4f,
    SIZE_MARKER = 0xff51,
    CODING_STYLE = 0xff52,
    CODING_STYLE_COMPONENT = 0xff53,
    START_OF_TILE = 0xff90,
    START_OF_DATA = 0xff93,
    END_OF_CODESTREAM = 0xffd9,
    LEAST_TILE_BYTES = 14, /* a tile's start marker and its start of data */
    MOST_LAYERS = 255,
    LEAST_PRECINCT_EXPONENT = 5,
};

static int corrupt(const struct sq_grib_packed *packed, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "JPEG 2000 data at byte %llu of the message: %s", (unsigned long long)packed->data_offset, what);
}

/* ISO/IEC 15444-1, A.5.1. */
static int check_size(const struct sq_grib_packed *packed, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(packed->data, packed->data_bytes);
    unsigned start = sq_u16be(&c), marker = sq_u16be(&c);
    (void)sq_take(&c, 4); /* marker length, capabilities */
    uint64_t x1 = sq_u32be(&c), y1 = sq_u32be(&c), x0 = sq_u32be(&c), y0 = sq_u32be(&c);
    uint64_t tile_width = sq_u32be(&c), tile_height = sq_u32be(&c), tile_x0 = sq_u32be(&c), tile_y0 = sq_u32be(&c);
    unsigned components = sq_u16be(&c), depth = sq_u8(&c), step_x = sq_u8(&c), step_y = sq_u8(&c);
    if (sq_cursor_failed(&c) || start != START_OF_CODESTREAM || marker != SIZE_MARKER)
        return corrupt(packed, "no code stream begins there", err);
    if (components != 1 || depth & 0x80 || step_x != 1 || step_y != 1)
        return corrupt(packed, "not one component of unsigned samples", err);
    if (x1 <= x0 || y1 <= y0 || (x1 - x0) > packed->value_count || (x1 - x0) * (y1 - y0) != packed->value_count)
        return sq_error(err, SQUALL_ECORRUPT, "JPEG 2000 data at byte %llu of the message: %llu × %llu samples for %llu values",
                        (unsigned long long)packed->data_offset, (unsigned long long)(x1 - x0), (unsigned long long)(y1 - y0),
                        (unsigned long long)packed->value_count);
    if (!tile_width || !tile_height || tile_x0 > x0 || tile_y0 > y0)
        return corrupt(packed, "tiles of no size, or beside the image", err);
    uint64_t tiles_x = (x1 - tile_x0 + tile_width - 1) / tile_width, tiles_y = (y1 - tile_y0 + tile_height - 1) / tile_height;
    if (tiles_x > packed->data_bytes || tiles_x * tiles_y > packed->data_bytes / LEAST_TILE_BYTES)
        return corrupt(packed, "more tiles than the data can hold", err);
    return 0;
}

/* COD and COC from the number of decomposition levels on (A.6.1, A.6.2). */
static int check_precincts(const struct sq_grib_packed *packed, struct sq_cursor *c, bool has_precincts, struct squall_error *err)
{
    unsigned levels = sq_u8(c);
    (void)sq_take(c, 4); /* code-blocks and transformation */
    for (unsigned i = 0; i <= levels && has_precincts; i++) {
        unsigned size = sq_u8(c);
        if (!sq_cursor_failed(c) && ((size & 15) < LEAST_PRECINCT_EXPONENT || size >> 4 < LEAST_PRECINCT_EXPONENT))
            return sq_error(err, SQUALL_EUNSUPPORTED, "JPEG 2000 data at byte %llu of the message: precincts of %u × %u samples",
                            (unsigned long long)packed->data_offset, 1u << (size & 15), 1u << (size >> 4));
    }
    return sq_cursor_failed(c) ? corrupt(packed, "a marker segment is too short", err) : 0;
}

static int check_coding_style(const struct sq_grib_packed *packed, unsigned marker, const uint8_t *segment, size_t size,
                              struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(segment, size);
    if (marker == CODING_STYLE_COMPONENT)
        (void)sq_take(&c, 1); /* which component: there is one */
    bool has_precincts = sq_u8(&c) & 1;
    if (marker == CODING_STYLE) {
        (void)sq_take(&c, 1); /* order of progression */
        unsigned layers = sq_u16be(&c);
        (void)sq_take(&c, 1); /* transformation of components */
        if (layers > MOST_LAYERS)
            return sq_error(err, SQUALL_EUNSUPPORTED, "JPEG 2000 data at byte %llu of the message: %u layers",
                            (unsigned long long)packed->data_offset, layers);
    }
    return check_precincts(packed, &c, has_precincts, err);
}

/* All marker segments, of the main header and of every tile part's. What is cut off is left for the decoder to find. */
static int check_markers(const struct sq_grib_packed *packed, struct squall_error *err)
{
    size_t at = 2, tile_at = 0, tile_bytes = 0, size = packed->data_bytes;
    while (size - at >= 4) {
        struct sq_cursor c = sq_cursor(packed->data + at, size - at);
        unsigned marker = sq_u16be(&c);
        if (marker == END_OF_CODESTREAM)
            return 0;
        if (marker == START_OF_DATA) {
            if (tile_bytes == 0 || tile_bytes > size - tile_at)
                return 0;
            if (tile_at + tile_bytes <= at)
                return corrupt(packed, "a tile ends before its data", err);
            at = tile_at + tile_bytes;
            continue;
        }
        size_t length = sq_u16be(&c);
        const uint8_t *segment = length >= 2 ? sq_take(&c, length - 2) : NULL;
        if (!segment)
            return corrupt(packed, "a marker segment of impossible length", err);
        if (marker == START_OF_TILE && length == 10) {
            struct sq_cursor tile = sq_cursor(segment + 2, 4);
            tile_at = at;
            tile_bytes = sq_u32be(&tile);
        }
        if (marker == CODING_STYLE || marker == CODING_STYLE_COMPONENT)
            SQ_TRY(check_coding_style(packed, marker, segment, length - 2, err));
        at += 2 + length;
    }
    return 0;
}

struct input {
    const uint8_t *bytes;
    size_t size_bytes, at;
};

static OPJ_SIZE_T read_input(void *to, OPJ_SIZE_T count, void *user)
{
    struct input *in = user;
    size_t left = in->size_bytes - in->at;
    if (left == 0)
        return (OPJ_SIZE_T)-1;
    size_t part = count < left ? count : left;
    memcpy(to, in->bytes + in->at, part);
    in->at += part;
    return part;
}

static OPJ_OFF_T skip_input(OPJ_OFF_T count, void *user)
{
    struct input *in = user;
    size_t left = in->size_bytes - in->at;
    if (count < 0 || left == 0)
        return -1;
    size_t part = (uint64_t)count < left ? (size_t)count : left;
    in->at += part;
    return (OPJ_OFF_T)part;
}

static OPJ_BOOL seek_input(OPJ_OFF_T to, void *user)
{
    struct input *in = user;
    if (to < 0 || (uint64_t)to > in->size_bytes)
        return OPJ_FALSE;
    in->at = (size_t)to;
    return OPJ_TRUE;
}

static void forget(const char *message, void *user)
{
    (void)message, (void)user; /* the library prints nothing; our own message says where */
}

static int decode(const struct sq_grib_packed *packed, opj_codec_t *codec, opj_stream_t *stream, opj_image_t **image,
                  struct squall_error *err)
{
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_info_handler(codec, forget, NULL);
    opj_set_warning_handler(codec, forget, NULL);
    opj_set_error_handler(codec, forget, NULL);
    if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, image))
        return corrupt(packed, "the header is damaged", err);
    if (!opj_decode(codec, stream, *image))
        return corrupt(packed, "the code stream is damaged", err);
    const opj_image_comp_t *component = (*image)->comps;
    if ((*image)->numcomps != 1 || component->sgnd || component->prec > 31 || !component->data ||
        (uint64_t)component->w * component->h != packed->value_count)
        return corrupt(packed, "the image is not what its header says", err);
    return 0;
}

int sq_grib_unpack_jpeg(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                        struct squall_error *err)
{
    (void)scratch;
    SQ_TRY(check_size(packed, err));
    SQ_TRY(check_markers(packed, err));
    struct input in = {packed->data, packed->data_bytes, 0};
    opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_create(packed->data_bytes < 1 << 20 ? packed->data_bytes : 1 << 20, OPJ_TRUE);
    opj_image_t *image = NULL;
    int status;
    if (!codec || !stream) {
        status = sq_error_memory(err, packed->data_bytes);
        goto done;
    }
    opj_stream_set_user_data(stream, &in, NULL);
    opj_stream_set_user_data_length(stream, packed->data_bytes);
    opj_stream_set_read_function(stream, read_input);
    opj_stream_set_skip_function(stream, skip_input);
    opj_stream_set_seek_function(stream, seek_input);
    status = decode(packed, codec, stream, &image, err);
    if (status || !image)
        goto done;
    int32_t *samples = image->comps[0].data;
    int32_t mask = (int32_t)((UINT32_C(1) << image->comps[0].prec) - 1);
    for (uint64_t i = 0; i < packed->value_count; i++)
        samples[i] &= mask;
    sq_grib_sink_put(sink, SQ_GRIB_I32, samples, packed->value_count);
done:
    if (image)
        opj_image_destroy(image);
    if (stream)
        opj_stream_destroy(stream);
    if (codec)
        opj_destroy_codec(codec);
    return status;
}
