/* See grib2_writer.h. WMO FM 92 GRIB edition 2; section and octet numbers in the comments are its own. */
#include "support/grib2_writer.h"
#include <libaec.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes and bits --------------------------------------------------------------------------------------------------------------- */

static void put_uint(struct sq_text *out, uint64_t value, unsigned size_bytes)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * (size_bytes - 1 - i));
    sq_text_add_bytes(out, bytes, size_bytes);
}

/* Negative numbers are sign and magnitude (regulation 92.1.5). */
static void put_int(struct sq_text *out, int64_t value, unsigned size_bytes)
{
    uint64_t sign = UINT64_C(1) << (8 * size_bytes - 1);
    put_uint(out, value < 0 ? sign | (uint64_t)-value : (uint64_t)value, size_bytes);
}

static void put_missing(struct sq_text *out, unsigned size_bytes)
{
    put_uint(out, UINT64_MAX, size_bytes);
}

static void put_float(struct sq_text *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_uint(out, bits, 4);
}

/* Values of any width one behind another, the first in the highest bits; ended at a whole byte. */
struct bit_writer {
    struct sq_text *out;
    uint64_t waiting; /* the lowest `count` bits have not been written */
    unsigned count;
    uint8_t buffer[512];
    size_t used;
};

static void flush_bytes(struct bit_writer *w)
{
    sq_text_add_bytes(w->out, w->buffer, w->used);
    w->used = 0;
}

static void put_bits(struct bit_writer *w, uint64_t value, unsigned width)
{
    w->waiting = w->waiting << width | value;
    w->count += width;
    while (w->count >= 8) {
        w->count -= 8;
        w->buffer[w->used++] = (uint8_t)(w->waiting >> w->count);
        if (w->used == sizeof w->buffer)
            flush_bytes(w);
    }
}

static void end_bits(struct bit_writer *w)
{
    if (w->count > 0)
        put_bits(w, 0, 8 - w->count);
    flush_bytes(w);
}

static unsigned width_of(uint64_t value)
{
    unsigned width = 0;
    for (; value > 0; value >>= 1)
        width++;
    return width;
}

static size_t begin_section(struct sq_text *out, unsigned number)
{
    size_t start = out->length;
    put_uint(out, 0, 4);
    put_uint(out, number, 1);
    return start;
}

/* Put size_bytes of length where they were left out. */
static void set_length(struct sq_text *out, size_t at, size_t length, unsigned size_bytes)
{
    for (unsigned i = 0; i < size_bytes && !out->failed; i++)
        out->data[at + i] = (char)(length >> 8 * (size_bytes - 1 - i));
}

static void end_section(struct sq_text *out, size_t start)
{
    set_length(out, start, out->length - start, 4);
}

/* ---- what is told of the field ---------------------------------------------------------------------------------------------------- */

static void put_identification(const struct grib2_field *f, struct sq_text *out)
{
    enum { CENTRE_EXETER = 74, TABLES_VERSION = 4, START_OF_FORECAST = 1, FORECAST_PRODUCT = 1 };
    struct tm t;
    gmtime_r(&f->reference_time, &t);
    size_t start = begin_section(out, 1);
    put_uint(out, CENTRE_EXETER, 2);
    put_uint(out, 0, 2);
    put_uint(out, TABLES_VERSION, 1);
    put_uint(out, 0, 1);
    put_uint(out, START_OF_FORECAST, 1);
    put_uint(out, (uint64_t)t.tm_year + 1900, 2);
    put_uint(out, (uint64_t)t.tm_mon + 1, 1);
    put_uint(out, (uint64_t)t.tm_mday, 1);
    put_uint(out, (uint64_t)t.tm_hour, 1);
    put_uint(out, (uint64_t)t.tm_min, 1);
    put_uint(out, (uint64_t)t.tm_sec, 1);
    put_uint(out, 0, 1); /* operational */
    put_uint(out, FORECAST_PRODUCT, 1);
    end_section(out, start);
}

/*
 * Template 3.12 as the real model's files fill it in, oddities kept: the reference point in degrees where micro-degrees
 * belong, a scale factor of 0, and rows that run south by their corners but north by the scanning mode.
 */
static void put_grid(const struct grib2_field *f, struct sq_text *out)
{
    enum { AIRY_SPHEROID_GIVEN = 3, INCREMENTS_GIVEN = 0x30, ROWS_NORTHWARD = 0x40 };
    enum { STEP_CM = 200000, X1_CM = -23800000, Y1_CM = 122200000 };
    size_t start = begin_section(out, 3);
    put_uint(out, 0, 1);
    put_uint(out, (uint64_t)f->nx * f->ny, 4);
    put_uint(out, 0, 2);
    put_uint(out, 12, 2);
    put_uint(out, AIRY_SPHEROID_GIVEN, 1);
    put_missing(out, 5);
    put_uint(out, 5, 1);
    put_uint(out, 637756340, 4); /* Airy 1830, in units of 10^-5 km */
    put_uint(out, 5, 1);
    put_uint(out, 635625691, 4);
    put_uint(out, f->nx, 4);
    put_uint(out, f->ny, 4);
    put_int(out, 49, 4);
    put_int(out, -2, 4);
    put_uint(out, INCREMENTS_GIVEN, 1);
    put_float(out, 0);
    put_int(out, 40000000, 4);
    put_int(out, -10000000, 4);
    put_uint(out, ROWS_NORTHWARD, 1);
    put_uint(out, STEP_CM, 4);
    put_uint(out, STEP_CM, 4);
    put_int(out, X1_CM, 4);
    put_int(out, Y1_CM, 4);
    put_int(out, X1_CM + (int64_t)STEP_CM * (f->nx - 1), 4);
    put_int(out, Y1_CM - (int64_t)STEP_CM * (f->ny - 1), 4);
    end_section(out, start);
}

static void put_product(const struct grib2_field *f, struct sq_text *out)
{
    enum { MINUTES = 0, NO_SURFACE = 255, BELOW_LOWER_LIMIT = 0 };
    size_t start = begin_section(out, 4);
    put_uint(out, 0, 2);
    put_uint(out, f->is_probability ? 5 : 0, 2);
    put_uint(out, f->category, 1);
    put_uint(out, f->number, 1);
    put_uint(out, 0, 1);   /* analysis, as the model's files have it for every step */
    put_uint(out, 255, 1); /* background process */
    put_uint(out, 1, 1);
    put_uint(out, 0, 3); /* cut-off */
    put_uint(out, MINUTES, 1);
    put_uint(out, f->step_minutes, 4);
    put_uint(out, f->surface_type, 1);
    put_uint(out, 0, 1);
    put_uint(out, f->level, 4);
    put_uint(out, NO_SURFACE, 1);
    put_missing(out, 5);
    if (f->is_probability) {
        put_uint(out, 0, 1);
        put_uint(out, 1, 1);
        put_uint(out, BELOW_LOWER_LIMIT, 1);
        put_uint(out, 0, 1);
        put_uint(out, 1000, 4);
        put_missing(out, 5);
    }
    end_section(out, start);
}

/* ---- packing ---------------------------------------------------------------------------------------------------------------------- */

/* The values that are there, as whole numbers: value = (reference + code · 2^binary_scale) · 10^-decimal_scale. */
struct codes {
    uint32_t *code;
    size_t count;
    float reference;
    int binary_scale;
    unsigned bits; /* 0: all values are the reference */
};

static struct codes quantize(const struct grib2_field *f)
{
    size_t points = (size_t)f->nx * f->ny;
    struct codes c = {.code = malloc(points * sizeof *c.code)};
    double scale = pow(10, f->decimal_scale);
    double least = INFINITY, greatest = -INFINITY;
    for (size_t i = 0; i < points; i++) {
        if (isnan(f->values[i]))
            continue;
        least = fmin(least, f->values[i] * scale);
        greatest = fmax(greatest, f->values[i] * scale);
        c.count++;
    }
    if (!c.code || c.count == 0)
        return c;
    c.reference = (float)least;
    if ((double)c.reference > least)
        c.reference = nextafterf(c.reference, -INFINITY);
    c.bits = greatest > least ? f->bits : 0;
    double limit = ldexp(1, (int)f->bits) - 1;
    if (c.bits)
        c.binary_scale = (int)ceil(log2((greatest - (double)c.reference) / limit));
    double unit = ldexp(1, -c.binary_scale);
    size_t at = 0;
    for (size_t i = 0; i < points; i++)
        if (!isnan(f->values[i]))
            c.code[at++] = c.bits ? (uint32_t)lrint(fmin((f->values[i] * scale - (double)c.reference) * unit, limit)) : 0;
    return c;
}

/* Octets 6 to 21 of section 5: what every template begins with. */
static size_t begin_representation(const struct grib2_field *f, const struct codes *c, unsigned template, unsigned bits,
                                   struct sq_text *out)
{
    size_t start = begin_section(out, 5);
    put_uint(out, c->count, 4);
    put_uint(out, template, 2);
    put_float(out, c->reference);
    put_int(out, c->binary_scale, 2);
    put_int(out, f->decimal_scale, 2);
    put_uint(out, bits, 1);
    put_uint(out, 0, 1); /* the values were floating-point numbers */
    return start;
}

static void put_bitmap(const struct grib2_field *f, size_t present, struct sq_text *out)
{
    enum { HERE = 0, NONE = 255 };
    size_t points = (size_t)f->nx * f->ny;
    size_t start = begin_section(out, 6);
    put_uint(out, present == points ? NONE : HERE, 1);
    struct bit_writer w = {.out = out};
    for (size_t i = 0; i < points && present != points; i++)
        put_bits(&w, !isnan(f->values[i]), 1);
    end_bits(&w);
    end_section(out, start);
}

static void put_simple(const struct grib2_field *f, const struct codes *c, struct sq_text *out)
{
    end_section(out, begin_representation(f, c, 0, c->bits, out));
    put_bitmap(f, c->count, out);
    size_t start = begin_section(out, 7);
    struct bit_writer w = {.out = out};
    for (size_t i = 0; i < c->count && c->bits; i++)
        put_bits(&w, c->code[i], c->bits);
    end_bits(&w);
    end_section(out, start);
}

static void put_ccsds(const struct grib2_field *f, const struct codes *c, struct sq_text *out)
{
    enum { BLOCK = 32, INTERVAL = 128, FLAGS = AEC_DATA_3BYTE | AEC_DATA_MSB | AEC_DATA_PREPROCESS };
    size_t start = begin_representation(f, c, 42, c->bits, out);
    put_uint(out, FLAGS, 1);
    put_uint(out, BLOCK, 1);
    put_uint(out, INTERVAL, 2);
    end_section(out, start);
    put_bitmap(f, c->count, out);
    start = begin_section(out, 7);
    unsigned size_bytes = (c->bits + 7) / 8;
    struct sq_text samples = SQ_TEXT_INIT;
    for (size_t i = 0; i < c->count && c->bits; i++)
        put_uint(&samples, c->code[i], size_bytes);
    size_t room = samples.length + samples.length / 2 + 1024;
    uint8_t *packed = malloc(room);
    struct aec_stream s = {.next_in = (const unsigned char *)samples.data,
                           .avail_in = samples.length,
                           .next_out = packed,
                           .avail_out = room,
                           .bits_per_sample = c->bits,
                           .block_size = BLOCK,
                           .rsi = INTERVAL,
                           .flags = FLAGS};
    if (samples.failed || !packed || (c->bits && aec_buffer_encode(&s) != AEC_OK))
        out->failed = true;
    else if (c->bits)
        sq_text_add_bytes(out, packed, s.total_out);
    free(packed);
    sq_text_done(&samples);
    end_section(out, start);
}

/* ---- complex packing -------------------------------------------------------------------------------------------------------------- */

struct group {
    size_t begin, length;
    uint32_t least;
    unsigned width;
};

struct grouping {
    struct group *group;
    size_t count, longest;
    unsigned reference_bits, widest, length_bits;
};

/* Sixteen values to a group, and neighbours of one width together where that costs no bit, so that lengths differ. */
static struct grouping group_values(const uint32_t *value, size_t count)
{
    enum { SHORT = 16, LONG = 128 };
    struct grouping g = {.group = malloc((count / SHORT + 1) * sizeof *g.group)};
    uint32_t greatest_reference = 0;
    for (size_t at = 0; g.group && at < count; at += SHORT) {
        size_t length = count - at < SHORT ? count - at : SHORT;
        uint32_t least = UINT32_MAX, greatest = 0;
        for (size_t i = at; i < at + length; i++) {
            least = value[i] < least ? value[i] : least;
            greatest = value[i] > greatest ? value[i] : greatest;
        }
        struct group *last = g.count ? &g.group[g.count - 1] : NULL;
        unsigned width = width_of(greatest - least);
        if (last && last->least <= least && width_of(greatest - last->least) == last->width && width == last->width &&
            last->length + length <= LONG)
            last->length += length;
        else
            g.group[g.count++] = (struct group){at, length, least, width};
    }
    for (size_t i = 0; i < g.count; i++) {
        greatest_reference = g.group[i].least > greatest_reference ? g.group[i].least : greatest_reference;
        g.widest = g.group[i].width > g.widest ? g.group[i].width : g.widest;
        g.longest = g.group[i].length > g.longest ? g.group[i].length : g.longest;
    }
    g.reference_bits = width_of(greatest_reference);
    g.length_bits = width_of(g.longest);
    return g;
}

/* Differences of the codes in place, made positive by taking off the least, which is returned. The first `order` become 0. */
static int64_t difference(uint32_t *code, size_t count, unsigned order)
{
    int64_t least = INT64_MAX;
    int64_t *d = malloc(count * sizeof *d);
    for (size_t i = order; d && i < count; i++) {
        d[i] = (int64_t)code[i] - code[i - 1];
        if (order == 2)
            d[i] -= (int64_t)code[i - 1] - code[i - 2];
        least = d[i] < least ? d[i] : least;
    }
    for (size_t i = 0; d && i < count; i++)
        code[i] = i < order ? 0 : (uint32_t)(d[i] - least);
    free(d);
    return least;
}

static void put_complex(const struct grib2_field *f, const struct codes *c, unsigned order, struct sq_text *out)
{
    enum { GENERAL_SPLITTING = 1, DESCRIPTOR_BYTES = 4 };
    if (c->count <= order)
        order = 0;
    const uint32_t first[2] = {c->count ? c->code[0] : 0, order == 2 ? c->code[1] : 0};
    int64_t least = order ? difference(c->code, c->count, order) : 0;
    struct grouping g = group_values(c->code, c->count);
    if (!g.group) {
        out->failed = true;
        return;
    }
    unsigned width_bits = width_of(g.widest);
    size_t start = begin_representation(f, c, order ? 3 : 2, g.reference_bits, out);
    put_uint(out, GENERAL_SPLITTING, 1);
    put_uint(out, 0, 1); /* missing values are in the bitmap */
    put_missing(out, 8);
    put_uint(out, g.count, 4);
    put_uint(out, 0, 1);
    put_uint(out, width_bits, 1);
    put_uint(out, 0, 4);
    put_uint(out, 1, 1);
    put_uint(out, g.count ? g.group[g.count - 1].length : 0, 4);
    put_uint(out, g.length_bits, 1);
    if (order) {
        put_uint(out, order, 1);
        put_uint(out, DESCRIPTOR_BYTES, 1);
    }
    end_section(out, start);
    put_bitmap(f, c->count, out);

    start = begin_section(out, 7);
    for (unsigned i = 0; i < order; i++)
        put_int(out, first[i], DESCRIPTOR_BYTES);
    if (order)
        put_int(out, least, DESCRIPTOR_BYTES);
    struct bit_writer w = {.out = out};
    for (size_t i = 0; i < g.count; i++)
        put_bits(&w, g.group[i].least, g.reference_bits);
    end_bits(&w);
    for (size_t i = 0; i < g.count; i++)
        put_bits(&w, g.group[i].width, width_bits);
    end_bits(&w);
    for (size_t i = 0; i < g.count; i++)
        put_bits(&w, g.group[i].length, g.length_bits);
    end_bits(&w);
    for (size_t i = 0; i < g.count; i++)
        for (size_t k = 0; k < g.group[i].length; k++)
            put_bits(&w, c->code[g.group[i].begin + k] - g.group[i].least, g.group[i].width);
    end_bits(&w);
    end_section(out, start);
    free(g.group);
}

void grib2_write(const struct grib2_field *f, struct sq_text *out)
{
    enum { LENGTH_AT = 8, LENGTH_BYTES = 8 };
    size_t start = out->length;
    struct codes c = quantize(f);
    if (!c.code) {
        out->failed = true;
        return;
    }
    sq_text_add(out, "GRIB");
    put_missing(out, 2);
    put_uint(out, f->discipline, 1);
    put_uint(out, 2, 1);
    put_uint(out, 0, LENGTH_BYTES);
    put_identification(f, out);
    put_grid(f, out);
    put_product(f, out);
    if (f->packing == GRIB2_SIMPLE || c.bits == 0)
        put_simple(f, &c, out);
    else if (f->packing == GRIB2_CCSDS)
        put_ccsds(f, &c, out);
    else
        put_complex(f, &c, f->packing - GRIB2_COMPLEX, out);
    sq_text_add(out, "7777");
    set_length(out, start + LENGTH_AT, out->length - start, LENGTH_BYTES);
    free(c.code);
}
