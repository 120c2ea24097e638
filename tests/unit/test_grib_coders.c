/* CCSDS, PNG and JPEG 2000: integers encoded by other people's libraries (libaec, libpng, OpenJPEG) come back. */
#include "support/unit.h"

#include "base/memory.h"
#include "support/field.h"
#include "sys/cpu.h"
#include <libaec.h>
#include <math.h>
#include <openjpeg.h>
#include <png.h>

static struct sq_grib_scratch *scratch;

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

static void bytes_add(struct bytes *b, const void *data, size_t size)
{
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = realloc(b->data, b->capacity);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

/* R 100, E -1, D 0 */
static double value_of(uint32_t x)
{
    return (double)x / 2 + 100;
}

static struct field field_of(uint16_t template_number, uint32_t rows, uint32_t columns, uint8_t bits, const void *more, size_t more_bytes,
                             const uint8_t *data, size_t size)
{
    struct field f = field_make(2, rows, columns);
    field_add5(&f, rows * columns, template_number, 100, -1, 0, bits, more, more_bytes);
    field_add6(&f, NULL, 0);
    field_add7(&f, data, size);
    return f;
}

static void check_decode(const struct field *f, const uint32_t *x, const char *what)
{
    size_t count = f->grid.point_count;
    float *narrow = malloc(count * sizeof *narrow + 1);
    double *wide = malloc(count * sizeof *wide + 1);
    struct squall_error err = SQUALL_ERROR_INIT;
    for (unsigned features = 0; features < 2; features++) {
        sq_cpu_limit(features ? ~0u : 0);
        if (field_decode(f, false, scratch, SQ_GRIB_FLOAT32, narrow, &err) || field_decode(f, false, scratch, SQ_GRIB_FLOAT64, wide, &err))
            fail_msg("%s: %s", what, err.message);
        for (size_t i = 0; i < count; i++)
            if (wide[i] != value_of(x[i]) || narrow[i] != (float)value_of(x[i]))
                fail_msg("%s: value %zu is %.17g, where %.17g is right", what, i, wide[i], value_of(x[i]));
    }
    free(narrow);
    free(wide);
}

static void check_refused(const struct field *f, const char *message)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    float *dst = malloc(f->grid.point_count * sizeof *dst + 1);
    int status = field_decode(f, false, scratch, SQ_GRIB_FLOAT32, dst, &err);
    if (status != SQUALL_ECORRUPT || !strstr(err.message, message))
        fail_msg("%d \"%s\", where \"%s\" is right", status, err.message, message);
    free(dst);
}

/* Fields that bring out each of the coders' ways: smooth, runs of one value, noise, small numbers, jumps from end to end. */
enum { SMOOTH, RUNS, NOISE, SMALL, JUMPS, KIND_COUNT };

static void make_values(uint32_t *x, size_t count, unsigned kind, unsigned bits, uint64_t *seed)
{
    uint32_t most = (uint32_t)((UINT64_C(1) << bits) - 1), at = most / 2;
    for (size_t i = 0; i < count; i++) {
        uint32_t noise = (uint32_t)random_next(seed);
        if (kind == SMOOTH)
            at += noise % 5 - 2;
        else if (kind == RUNS)
            at = i % 700 == 0 ? noise : at;
        else if (kind == NOISE)
            at = noise;
        else if (kind == SMALL)
            at = noise % 7 ? 0 : noise / 7 % 3;
        else
            at = noise % 3 == 0 ? 0 : noise % 3 == 1 ? most : noise;
        x[i] = at &= most;
    }
}

static uint8_t *aec_encoded(const uint32_t *x, size_t count, unsigned bits, unsigned block, unsigned interval, unsigned flags,
                            size_t *ret_size)
{
    unsigned container = bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
    uint8_t *in = malloc(count * 4 + 1), *out = malloc(count * 8 + 4096);
    for (size_t i = 0; i < count; i++)
        memcpy(in + i * container, &x[i], container); /* the machine is little-endian */
    struct aec_stream stream = {.next_in = in,
                                .avail_in = count * container,
                                .next_out = out,
                                .avail_out = count * 8 + 4096,
                                .bits_per_sample = bits,
                                .block_size = block,
                                .rsi = interval,
                                .flags = flags};
    if (aec_buffer_encode(&stream) != AEC_OK)
        fail_msg("libaec does not encode %u bits in blocks of %u", bits, block);
    *ret_size = stream.total_out;
    free(in);
    return out;
}

static struct field ccsds_make(const uint32_t *x, uint32_t count, unsigned bits, unsigned block, unsigned interval, unsigned flags)
{
    size_t size;
    uint8_t *data = aec_encoded(x, count, bits, block, interval, flags, &size);
    const uint8_t more[5] = {0, (uint8_t)(flags | AEC_DATA_MSB | AEC_DATA_3BYTE), (uint8_t)block, (uint8_t)(interval >> 8),
                             (uint8_t)interval};
    struct field f = field_of(42, 1, count, (uint8_t)bits, more, sizeof more, data, size);
    free(data);
    return f;
}

static void check_ccsds(const uint32_t *x, uint32_t count, unsigned bits, unsigned block, unsigned interval, unsigned flags)
{
    char what[99];
    snprintf(what, sizeof what, "%u values of %u bits, block %u, interval %u, flags %u", count, bits, block, interval, flags);
    struct field f = ccsds_make(x, count, bits, block, interval, flags);
    check_decode(&f, x, what);
    field_done(&f);
}

static void ccsds_streams_of_every_width_and_block_come_back(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static uint32_t x[COUNT];
    uint64_t seed = 1;
    const unsigned blocks[] = {8, 16, 32, 64}, intervals[] = {128, 1, 3, 4096};
    for (unsigned bits = 1; bits <= 32; bits++)
        for (unsigned b = 0; b < 4; b++)
            for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
                make_values(x, COUNT, kind, bits, &seed);
                unsigned interval = intervals[(bits + b + kind) % 4];
                uint32_t count = COUNT - (uint32_t)(random_next(&seed) % 200);
                check_ccsds(x, count, bits, blocks[b], interval, AEC_DATA_PREPROCESS);
                check_ccsds(x, count, bits, blocks[b], interval, 0);
                if (bits <= 4)
                    check_ccsds(x, count, bits, blocks[b], interval, AEC_DATA_PREPROCESS | AEC_RESTRICTED);
            }
}

static void ccsds_fields_of_few_values_come_back(void **state)
{
    (void)state;
    static uint32_t x[200];
    uint64_t seed = 2;
    for (uint32_t count = 1; count < 200; count++) {
        make_values(x, count, count % KIND_COUNT, 12, &seed);
        check_ccsds(x, count, 12, 32, 2, AEC_DATA_PREPROCESS);
    }
}

/* Runs of zero blocks end with the 64 blocks, with the segment, and with the field. */
static void ccsds_runs_of_equal_values_come_back(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static uint32_t x[COUNT];
    const unsigned intervals[] = {1, 2, 63, 64, 65, 128, 300};
    for (uint32_t start = 0; start < 5000; start = 3 * start + 7)
        for (unsigned i = 0; i < 7; i++) {
            for (uint32_t k = 0; k < COUNT; k++)
                x[k] = k < start ? k % 5 : 77;
            check_ccsds(x, COUNT, 10, 8, intervals[i], AEC_DATA_PREPROCESS);
        }
}

static void what_libaec_adds_to_the_standard_comes_back(void **state)
{
    (void)state;
    static uint32_t x[3000];
    uint64_t seed = 3;
    const unsigned widths[] = {4, 8, 9, 16, 17, 25, 32};
    for (unsigned w = 0; w < 7; w++)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
            make_values(x, 3000, kind, widths[w] - 1, &seed); /* not negative as signed numbers */
            check_ccsds(x, 3000, widths[w], 16, 100, AEC_DATA_PREPROCESS | AEC_DATA_SIGNED);
            check_ccsds(x, 3000, widths[w], 12, 100, AEC_DATA_PREPROCESS | AEC_NOT_ENFORCE);
        }
}

static void damaged_ccsds_streams_are_refused(void **state)
{
    (void)state;
    static uint32_t x[400];
    uint64_t seed = 4;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        for (unsigned standard = 0; standard < 2; standard++) {
            make_values(x, 400, kind, 14, &seed);
            struct field f = ccsds_make(x, 400, 14, standard ? 32 : 20, 7, AEC_DATA_PREPROCESS | (standard ? 0 : AEC_NOT_ENFORCE));
            size_t whole = f.frame.section[7].size_bytes;
            for (size_t size = 5; size + 1 < whole; size++) {
                f.frame.section[7].size_bytes = size;
                check_refused(&f, "CCSDS data at byte 36 of the message: the stream");
            }
            field_done(&f);
        }
    make_values(x, 400, NOISE, 14, &seed);
    struct field f = ccsds_make(x, 400, 14, 32, 7, AEC_DATA_PREPROCESS);
    f.bytes[19] = 13; /* the widths differ from here on */
    check_refused(&f, "");
    f.bytes[22] = 33; /* block */
    check_refused(&f, "make no sense");
    field_done(&f);
    f = field_of(42, 1, 4, 8, "\0\10\40\0", 4, (const uint8_t *)"abcd", 4);
    check_refused(&f, "section 5 is too short");
    field_done(&f);
}

/* Without preprocessing a stream may hold more than its bits: 1 << 12 in 12 bits. */
static void ccsds_values_beyond_their_bits_are_refused(void **state)
{
    (void)state;
    uint8_t data[64] = {0};
    uint64_t bit = 0;
    put_bits(data, &bit, 13, 4); /* 12 low bits */
    for (unsigned i = 0; i < 8; i++)
        put_bits(data, &bit, 1, i == 5 ? 2 : 1);
    const uint8_t more[5] = {0, 0, 8, 0, 1};
    struct field f = field_of(42, 1, 8, 12, more, sizeof more, data, sizeof data);
    check_refused(&f, "wider than the bits per value");
    field_done(&f);
}

static void png_write(png_structp png, png_bytep data, png_size_t size)
{
    bytes_add(png_get_io_ptr(png), data, size);
}

static void png_flush(png_structp png)
{
    (void)png;
}

/* x as the samples of an image, all of whose rows have one filter (-1: libpng's choice). */
static struct bytes png_encoded(const uint32_t *x, uint32_t rows, uint32_t columns, unsigned value_bits, int filter)
{
    struct bytes out = {0};
    size_t row_bytes = ((size_t)columns * value_bits + 7) / 8;
    uint8_t *row = malloc(row_bytes);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    int colour = value_bits == 24 ? PNG_COLOR_TYPE_RGB : value_bits == 32 ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_GRAY;
    png_set_write_fn(png, &out, png_write, png_flush);
    png_set_IHDR(png, info, columns, rows, value_bits > 16 ? 8 : (int)value_bits, colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_buffer_size(png, 700); /* several IDAT chunks */
    png_set_filter(png, 0, filter < 0 ? PNG_ALL_FILTERS : PNG_FILTER_NONE << filter);
    png_write_info(png, info);
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t bit = 0;
        memset(row, 0, row_bytes);
        for (uint32_t c = 0; c < columns; c++)
            put_bits(row, &bit, x[(size_t)r * columns + c], value_bits);
        png_write_row(png, row);
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(row);
    return out;
}

static struct field png_make(const uint32_t *x, uint32_t rows, uint32_t columns, unsigned value_bits, uint8_t bits, int filter)
{
    struct bytes image = png_encoded(x, rows, columns, value_bits, filter);
    struct field f = field_of(41, rows, columns, bits, "", 1, image.data, image.size);
    free(image.data);
    return f;
}

static void images_of_every_depth_and_filter_come_back(void **state)
{
    (void)state;
    static uint32_t x[6000];
    uint64_t seed = 5;
    const unsigned depths[] = {1, 2, 4, 8, 16, 24, 32};
    const uint32_t shapes[][2] = {{1, 1}, {1, 3000}, {71, 83}, {300, 20}, {5, 3}};
    for (unsigned d = 0; d < 7; d++)
        for (unsigned s = 0; s < 5; s++)
            for (int filter = -1; filter < 5; filter++) {
                unsigned depth = depths[d], bits = depth >= 8 ? depth - (unsigned)(random_next(&seed) % 8) : depth;
                char what[60];
                snprintf(what, sizeof what, "depth %u, filter %d, shape %u", depth, filter, s);
                make_values(x, 6000, (unsigned)(filter + 1) % KIND_COUNT, bits, &seed);
                struct field f = png_make(x, shapes[s][0], shapes[s][1], depth, (uint8_t)bits, filter);
                check_decode(&f, x, what);
                field_done(&f);
            }
}

static void images_that_do_not_fit_their_field_are_refused(void **state)
{
    (void)state;
    static uint32_t x[600];
    uint64_t seed = 6;
    make_values(x, 600, NOISE, 16, &seed);
    struct field f = png_make(x, 20, 30, 16, 8, -1);
    check_refused(&f, "PNG data at byte 32 of the message: samples of 16 bits for values of 8");
    field_done(&f);
    f = png_make(x, 20, 30, 16, 16, -1);
    put_be(f.bytes + 5, 570, 4);
    f.grid.rows = 19;
    f.grid.point_count = 570;
    check_refused(&f, "30 × 20 samples for 570 values");
    f.grid.rows = 20;
    f.grid.point_count = 600;
    put_be(f.bytes + 5, 600, 4);
    uint8_t *image = f.bytes + f.frame.section[7].offset + 5;
    const struct {
        size_t at;
        uint8_t value;
        const char *message;
    } cases[] = {{0, 0, "no PNG image begins there"}, {12, 'J', "no image header"},    {25, 3, "neither grey nor 8-bit RGB"},
                 {24, 3, "neither grey nor 8-bit"},   {28, 1, "interlaced"},           {26, 1, "unknown compression"},
                 {37, 'J', "no image data"},          {50, 0x55, "stream is damaged"}, {33, 0xff, "ends behind the data"},
                 {60, 0xaa, "stream is damaged"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t kept = image[cases[i].at];
        image[cases[i].at] = cases[i].value;
        if (cases[i].at == 37) { /* the second chunk too */
            struct field one = png_make(x, 2, 3, 16, 16, 0);
            one.bytes[one.frame.section[7].offset + 5 + 37] = 'J';
            check_refused(&one, cases[i].message);
            field_done(&one);
        } else {
            check_refused(&f, cases[i].message);
        }
        image[cases[i].at] = kept;
    }
    size_t whole = f.frame.section[7].size_bytes;
    for (size_t size = 5; size < whole; size++) {
        f.frame.section[7].size_bytes = size;
        check_refused(&f, "PNG data");
    }
    field_done(&f);
}

/* A header of 4,000 × 4,000 over a few bytes of deflate must not have 32 MB reserved for it. */
static void an_image_that_its_bytes_cannot_hold_is_refused_before_memory_is_asked_for(void **state)
{
    (void)state;
    const uint32_t x[6] = {0};
    struct field f = png_make(x, 2, 3, 16, 16, 0);
    put_be(f.bytes + f.frame.section[7].offset + 5 + 16, 4000, 4);
    put_be(f.bytes + f.frame.section[7].offset + 5 + 20, 4000, 4);
    put_be(f.bytes + 5, 16000000, 4);
    f.grid.rows = f.grid.columns = 4000;
    f.grid.point_count = 16000000;
    unsigned long before = sq_allocation_count();
    check_refused(&f, "more rows than its compressed bytes can hold");
    assert_int_equal(sq_allocation_count(), before);
    field_done(&f);
}

static void images_need_memory_once(void **state)
{
    (void)state;
    static uint32_t x[600];
    float dst[600];
    uint64_t seed = 9;
    make_values(x, 600, NOISE, 16, &seed);
    struct field f = png_make(x, 20, 30, 16, 16, -1);
    struct sq_grib_scratch *own = sq_grib_scratch_new();
    for (long after = 0; after < 2; after++) { /* the joined stream; it, and then the rows */
        sq_fail_allocation(after);
        assert_int_equal(field_decode(&f, false, own, SQ_GRIB_FLOAT32, dst, NULL), SQUALL_ENOMEM);
    }
    sq_fail_allocation(-1);
    assert_int_equal(field_decode(&f, false, own, SQ_GRIB_FLOAT32, dst, NULL), 0);
    unsigned long before = sq_allocation_count();
    assert_int_equal(field_decode(&f, false, own, SQ_GRIB_FLOAT32, dst, NULL), 0);
    assert_int_equal(sq_allocation_count(), before);
    sq_grib_scratch_free(own);
    field_done(&f);
}

static void an_unknown_row_filter_is_refused(void **state)
{
    (void)state;
    /* one row of one 8-bit sample in a stored deflate block: filter 5, value 0 */
    const uint8_t image[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,   0,   0,    13,   'I', 'H', 'D', 'R',  0, 0,
                             0,    1,   0,   0,   0,    1,    8,    0,    0,   0,   0,    0,    0,   0,   0,   0,    0, 0,
                             13,   'I', 'D', 'A', 'T',  0x78, 1,    1,    2,   0,   0xfd, 0xff, 5,   0,   0,   0x0b, 0, 6,
                             0,    0,   0,   0,   0,    0,    0,    0,    'I', 'E', 'N',  'D',  0,   0,   0,   0};
    struct field f = field_of(41, 1, 1, 8, "", 1, image, sizeof image);
    check_refused(&f, "");
    field_done(&f);
}

struct sink {
    struct bytes bytes;
    size_t at;
};

static OPJ_SIZE_T sink_write(void *data, OPJ_SIZE_T size, void *user)
{
    struct sink *s = user;
    while (s->bytes.size < s->at + size)
        bytes_add(&s->bytes, "", 1);
    memcpy(s->bytes.data + s->at, data, size);
    s->at += size;
    return size;
}

static OPJ_BOOL sink_seek(OPJ_OFF_T to, void *user)
{
    ((struct sink *)user)->at = (size_t)to;
    return OPJ_TRUE;
}

static OPJ_OFF_T sink_skip(OPJ_OFF_T count, void *user)
{
    ((struct sink *)user)->at += (size_t)count;
    return count;
}

/* change: what the test wants else, done to the parameters; NULL: nothing. */
static struct bytes jpeg_encoded(const uint32_t *x, uint32_t rows, uint32_t columns, unsigned bits, unsigned components,
                                 void (*change)(opj_cparameters_t *))
{
    opj_cparameters_t p;
    opj_set_default_encoder_parameters(&p);
    p.tcp_numlayers = 1;
    p.cp_disto_alloc = 1;
    p.numresolution = 1;
    if (change)
        change(&p);
    opj_image_cmptparm_t c = {.prec = bits, .dx = 1, .dy = 1, .w = columns, .h = rows};
    opj_image_cmptparm_t both[2] = {c, c};
    opj_image_t *image = opj_image_create(components, both, OPJ_CLRSPC_GRAY);
    image->x1 = columns;
    image->y1 = rows;
    for (unsigned k = 0; k < components; k++)
        for (size_t i = 0; i < (size_t)rows * columns; i++)
            image->comps[k].data[i] = (int32_t)x[i];
    struct sink sink = {0};
    opj_codec_t *codec = opj_create_compress(OPJ_CODEC_J2K);
    opj_stream_t *stream = opj_stream_default_create(OPJ_FALSE);
    opj_stream_set_user_data(stream, &sink, NULL);
    opj_stream_set_write_function(stream, sink_write);
    opj_stream_set_seek_function(stream, sink_seek);
    opj_stream_set_skip_function(stream, sink_skip);
    if (!opj_setup_encoder(codec, &p, image) || !opj_start_compress(codec, image, stream) || !opj_encode(codec, stream) ||
        !opj_end_compress(codec, stream))
        fail_msg("OpenJPEG does not encode %u × %u samples of %u bits", columns, rows, bits);
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    opj_image_destroy(image);
    return sink.bytes;
}

static struct field jpeg_make(const uint32_t *x, uint32_t rows, uint32_t columns, unsigned bits, unsigned components,
                              void (*change)(opj_cparameters_t *))
{
    struct bytes image = jpeg_encoded(x, rows, columns, bits, components, change);
    struct field f = field_of(40, rows, columns, (uint8_t)bits, "\0\0\377", 3, image.data, image.size);
    free(image.data);
    return f;
}

static void in_tiles(opj_cparameters_t *p)
{
    p->tile_size_on = OPJ_TRUE;
    p->cp_tdx = 16;
    p->cp_tdy = 8;
}

static void in_precincts(opj_cparameters_t *p, int size)
{
    p->csty |= 1;
    p->res_spec = 1;
    p->prcw_init[0] = p->prch_init[0] = size;
}

static void in_large_precincts(opj_cparameters_t *p)
{
    in_precincts(p, 32);
}

static void in_small_precincts(opj_cparameters_t *p)
{
    in_precincts(p, 16);
}

static void in_layers(opj_cparameters_t *p)
{
    p->tcp_numlayers = 3;
    p->tcp_rates[0] = 8;
    p->tcp_rates[1] = 3;
    p->tcp_rates[2] = 1;
}

static void jpeg_2000_images_of_every_depth_come_back(void **state)
{
    (void)state;
    static uint32_t x[4000];
    uint64_t seed = 7;
    const uint32_t shapes[][2] = {{1, 1}, {1, 900}, {41, 57}, {60, 3}};
    for (unsigned bits = 1; bits <= 24; bits++)
        for (unsigned s = 0; s < 4; s++) {
            char what[60];
            snprintf(what, sizeof what, "%u bits, shape %u", bits, s);
            make_values(x, 4000, (bits + s) % KIND_COUNT, bits, &seed);
            void (*const changes[])(opj_cparameters_t *) = {NULL, in_tiles, in_large_precincts, in_layers};
            struct field f = jpeg_make(x, shapes[s][0], shapes[s][1], bits, 1, s == 2 ? changes[bits % 4] : NULL);
            check_decode(&f, x, what);
            field_done(&f);
        }
}

static void jpeg_2000_images_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static uint32_t x[2337];
    uint64_t seed = 8;
    make_values(x, 2337, NOISE, 9, &seed);
    struct field f = jpeg_make(x, 41, 57, 9, 2, NULL);
    check_refused(&f, "JPEG 2000 data at byte 34 of the message: not one component of unsigned samples");
    field_done(&f);
    f = jpeg_make(x, 41, 57, 9, 1, NULL);
    uint8_t *image = f.bytes + f.frame.section[7].offset + 5;
    image[11]--; /* width */
    check_refused(&f, "56 × 41 samples for 2337 values");
    image[11]++;
    image[0] = 0;
    check_refused(&f, "no code stream begins there");
    image[0] = 0xff;
    put_be(image + 24, 1, 4); /* tiles of one sample */
    put_be(image + 28, 1, 4);
    check_refused(&f, "more tiles than the data can hold");
    put_be(image + 24, 57, 4);
    put_be(image + 28, 41, 4);
    check_decode(&f, x, "put right again");
    size_t whole = f.frame.section[7].size_bytes;
    for (size_t size = 5; size < whole - 40; size += size < 200 ? 1 : 37) {
        f.frame.section[7].size_bytes = size;
        check_refused(&f, "JPEG 2000 data");
    }
    field_done(&f);
}

/* A code stream's bookkeeping may take hundreds of times the memory of its samples; these are refused by name. */
static void jpeg_2000_images_of_tiny_precincts_or_many_layers_are_refused(void **state)
{
    (void)state;
    static uint32_t x[2337];
    float dst[2337];
    struct squall_error err = SQUALL_ERROR_INIT;
    struct field f = jpeg_make(x, 41, 57, 9, 1, in_small_precincts);
    assert_int_equal(field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, dst, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "precincts of 16 × 16 samples"));
    field_done(&f);
    f = jpeg_make(x, 41, 57, 9, 1, in_layers);
    uint8_t *image = f.bytes + f.frame.section[7].offset + 5;
    assert_int_equal(image[45] << 8 | image[46], 0xff52); /* behind SOC and a SIZ of 41 bytes */
    put_be(image + 51, 256, 2);
    assert_int_equal(field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, dst, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "256 layers"));
    field_done(&f);
}

int main(void)
{
    scratch = sq_grib_scratch_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ccsds_streams_of_every_width_and_block_come_back),
        cmocka_unit_test(ccsds_fields_of_few_values_come_back),
        cmocka_unit_test(ccsds_runs_of_equal_values_come_back),
        cmocka_unit_test(what_libaec_adds_to_the_standard_comes_back),
        cmocka_unit_test(damaged_ccsds_streams_are_refused),
        cmocka_unit_test(ccsds_values_beyond_their_bits_are_refused),
        cmocka_unit_test(images_of_every_depth_and_filter_come_back),
        cmocka_unit_test(images_that_do_not_fit_their_field_are_refused),
        cmocka_unit_test(an_image_that_its_bytes_cannot_hold_is_refused_before_memory_is_asked_for),
        cmocka_unit_test(images_need_memory_once),
        cmocka_unit_test(an_unknown_row_filter_is_refused),
        cmocka_unit_test(jpeg_2000_images_of_every_depth_come_back),
        cmocka_unit_test(jpeg_2000_images_that_do_not_fit_are_refused),
        cmocka_unit_test(jpeg_2000_images_of_tiny_precincts_or_many_layers_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sq_grib_scratch_free(scratch);
    return failed;
}
