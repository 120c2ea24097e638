/*
 * How a field is packed, from the heads of its sections: one table of the packings that are known, and the parameters that they
 * share (WMO FM 92: section 5 and code table 5.0; edition 1: the BDS, and D in the PDS). See decode.h and unpack.h.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/grib/scan.h"
#include "format/grib/unpack.h"
#include <math.h>
#include <string.h>

enum {
    COMPLEX = 2,
    SPATIAL_DIFFERENCING = 3,
    IEEE = 4,
    SIMPLE_1 = 1000, /* edition 1 */
    SECOND_ORDER_1 = 1001,
    OTHER_1 = 1002,
    SECTION5_LEAST_BYTES = 11, /* edition 2: to the template number */
    PARAMETERS_AT = 20,        /* octet 21: behind R, E, D and the bits per value */
    SECTION7_HEAD_BYTES = 5,
    BDS_HEAD_BYTES = 11,
    PDS_D_AT = 26,
    E_MISSING = -32767,
    WIDEST_BITS = 32,
};

/* What bounds X, the packed integers. */
enum bound { NOTHING, BITS, WHOLE_BYTES };

struct kind {
    uint16_t template_number;
    const char *name;
    sq_grib_unpack *unpack;  /* NULL: see unsupported */
    enum bound bound;        /* of X: the image of a JPEG has its own depth, sums of complex packing have no bound */
    bool side_by_side;       /* values lie one behind the other, each in its bits */
    const char *unsupported; /* why it is not read */
};

static const struct kind kinds[] = {
    {0, "grid_simple", sq_grib_unpack_simple, BITS, true, NULL},
    {1, "grid_simple_matrix", NULL, NOTHING, false, "a matrix of values at each point"},
    {COMPLEX, "grid_complex", sq_grib_unpack_complex, NOTHING, false, NULL},
    {SPATIAL_DIFFERENCING, "grid_complex_spatial_differencing", sq_grib_unpack_complex, NOTHING, false, NULL},
    {IEEE, "grid_ieee", sq_grib_unpack_ieee, NOTHING, true, NULL},
    {40, "grid_jpeg", sq_grib_unpack_jpeg, NOTHING, false, NULL},
    {40000, "grid_jpeg", sq_grib_unpack_jpeg, NOTHING, false, NULL},
    {41, "grid_png", sq_grib_unpack_png, WHOLE_BYTES, false, NULL},
    {40010, "grid_png", sq_grib_unpack_png, WHOLE_BYTES, false, NULL},
    {42, "grid_ccsds", sq_grib_unpack_ccsds, BITS, false, NULL},
    {50, "spectral_simple", NULL, NOTHING, false, "spectral coefficients"},
    {51, "spectral_complex", NULL, NOTHING, false, "spectral coefficients"},
    {53, "bifourier_complex", NULL, NOTHING, false, "bi-Fourier coefficients"},
    {61, "grid_simple_log_preprocessing", NULL, NOTHING, false, "logarithmic pre-processing"},
    {200, "grid_run_length", NULL, NOTHING, false, "run length packing with level values"},
    {SIMPLE_1, "grid_simple", sq_grib_unpack_simple, BITS, true, NULL},
    {50000, "spectral_ieee", NULL, NOTHING, false, "spectral coefficients"},
    {50001, "grid_second_order", NULL, NOTHING, false, "second-order packing"},
    {50002, "grid_second_order", NULL, NOTHING, false, "second-order packing"},
};

static const struct kind *kind_of(uint16_t template_number)
{
    static const struct kind unknown = {UINT16_MAX, "unknown", NULL, NOTHING, false, "an unknown data representation template"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].template_number == template_number)
            return &kinds[i];
    return &unknown;
}

static int parse_edition2(const uint8_t *section5, size_t size, struct sq_grib_packing *p, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(section5, size);
    (void)sq_take(&c, 5);
    p->value_count = sq_u32be(&c);
    p->template_number = sq_u16be(&c);
    if (sq_cursor_failed(&c))
        return sq_error(err, SQUALL_ECORRUPT, "section 5 of %zu bytes, where %d are the least", size, SECTION5_LEAST_BYTES);
    const struct kind *kind = kind_of(p->template_number);
    p->name = kind->name;
    p->unsupported = kind->unsupported;
    if (p->unsupported)
        return 0;
    if (p->template_number == IEEE) {
        unsigned precision = sq_u8(&c); /* code table 5.7 */
        p->bits_per_value = precision == 1 ? 32 : 64;
        p->is_float64 = precision == 2;
        if (precision != 1 && precision != 2)
            p->unsupported = "IEEE floating point of neither 32 nor 64 bits";
    } else {
        uint32_t bits = sq_u32be(&c);
        float reference;
        memcpy(&reference, &bits, sizeof reference);
        p->reference_value = (double)reference;
        p->binary_scale = (int16_t)sq_sign_magnitude_be(&c, 2);
        p->decimal_scale = (int16_t)sq_sign_magnitude_be(&c, 2);
        p->bits_per_value = sq_u8(&c);
        if (p->bits_per_value > WIDEST_BITS)
            p->unsupported = "more than 32 bits per value";
    }
    if (sq_cursor_failed(&c))
        return sq_error(err, SQUALL_ECORRUPT, "section 5 of %zu bytes is too short for template 5.%u", size, p->template_number);
    return 0;
}

/* A System/360 number: sign, exponent of 16 with bias 64, 24 bits of fraction. */
static double ibm_number(uint32_t bits)
{
    double magnitude = ldexp((double)(bits & 0xffffff), 4 * ((int)(bits >> 24 & 0x7f) - 64) - 24);
    return bits >> 31 ? -magnitude : magnitude;
}

static void name_edition1(unsigned flags, struct sq_grib_packing *p)
{
    bool harmonics = flags & 0x80, second_order = flags & 0x40, more_flags = flags & 0x10;
    p->template_number = harmonics ? OTHER_1 : second_order ? SECOND_ORDER_1 : more_flags ? OTHER_1 : SIMPLE_1;
    if (harmonics) {
        p->name = second_order ? "spectral_complex" : "spectral_simple";
        p->unsupported = "spectral coefficients";
    } else if (second_order) {
        p->name = "grid_second_order";
        p->unsupported = "second-order packing";
    } else if (more_flags) {
        p->name = "grid_simple_matrix";
        p->unsupported = "a matrix of values at each point";
    } else {
        p->name = "grid_simple";
    }
}

/* bds: the head of section 7, size: as much of it as is at hand; bds_bytes: the section's length. */
static int parse_edition1(const uint8_t *pds, size_t pds_bytes, const uint8_t *bds, size_t size, uint64_t bds_bytes,
                          struct sq_grib_packing *p, struct squall_error *err)
{
    if (pds_bytes < PDS_D_AT + 2 || size < BDS_HEAD_BYTES || bds_bytes < BDS_HEAD_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "a PDS of %zu bytes and a BDS of %llu, where %d and %d are the least", pds_bytes,
                        (unsigned long long)bds_bytes, PDS_D_AT + 2, BDS_HEAD_BYTES);
    struct sq_cursor d = sq_cursor(pds + PDS_D_AT, 2), c = sq_cursor(bds + 3, BDS_HEAD_BYTES - 3);
    p->decimal_scale = (int16_t)sq_sign_magnitude_be(&d, 2);
    unsigned flags = sq_u8(&c), unused_bits = flags & 0x0f;
    p->binary_scale = (int16_t)sq_sign_magnitude_be(&c, 2);
    p->reference_value = ibm_number(sq_u32be(&c));
    p->bits_per_value = sq_u8(&c);
    name_edition1(flags, p);
    uint64_t data_bits = (bds_bytes - BDS_HEAD_BYTES) * 8;
    if (p->bits_per_value > WIDEST_BITS && !p->unsupported)
        p->unsupported = "more than 32 bits per value";
    if (p->bits_per_value && data_bits >= unused_bits)
        p->value_count = (data_bits - unused_bits) / p->bits_per_value;
    return 0;
}

/* The bitmap's indicator decides, not the section's presence. size: bytes at hand. */
static void parse_bitmap(uint8_t edition, const uint8_t *section6, size_t size, struct sq_grib_packing *p)
{
    if (size < 6)
        return;
    unsigned indicator = edition == 1 ? (unsigned)(section6[4] << 8 | section6[5]) : section6[5];
    p->has_bitmap = edition == 1 || indicator != 255;
    if (p->has_bitmap && indicator != 0 && !p->unsupported)
        p->unsupported = "a bitmap that its centre predefined";
}

int sq_grib_packing_of(const struct sq_grib_found *found, struct sq_grib_packing *ret, struct squall_error *err)
{
    enum { HEAD_BYTES = 16 }; /* of sections 6 and 7 are there at least, where the sections have them */
    const struct sq_grib_frame *frame = &found->frame;
    struct sq_grib_packing p = {0};
    uint64_t bytes6 = found->section[6] ? frame->section[6].size_bytes : 0;
    uint64_t bytes7 = found->section[7] ? frame->section[7].size_bytes : 0;
    if (frame->edition == 1)
        SQ_TRY(parse_edition1(found->section[1], found->section[1] ? frame->section[1].size_bytes : 0, found->section[7],
                              bytes7 < HEAD_BYTES ? bytes7 : HEAD_BYTES, bytes7, &p, err));
    else
        SQ_TRY(parse_edition2(found->section[5], found->section[5] ? frame->section[5].size_bytes : 0, &p, err));
    parse_bitmap(frame->edition, found->section[6], bytes6 < HEAD_BYTES ? bytes6 : HEAD_BYTES, &p);
    *ret = p;
    return 0;
}

/* The bits that no X exceeds; 0: that is not known. */
static unsigned bits_of(const struct sq_grib_packing *p)
{
    switch (kind_of(p->template_number)->bound) {
    case BITS:
        return p->bits_per_value;
    case WHOLE_BYTES:
        return (p->bits_per_value + 7u) / 8 * 8;
    default:
        return 0;
    }
}

static bool is_complex(const struct sq_grib_packing *p)
{
    return p->template_number == COMPLEX || p->template_number == SPATIAL_DIFFERENCING;
}

static struct sq_grib_scale scale_of(const struct sq_grib_packing *p)
{
    return sq_grib_scale_of(p->reference_value, p->binary_scale, p->decimal_scale, bits_of(p));
}

bool sq_grib_packing_range(const struct sq_grib_packing *packing, double *ret_least, double *ret_greatest)
{
    unsigned bits = bits_of(packing);
    bool constant = packing->bits_per_value == 0 && !is_complex(packing);
    if (packing->unsupported || (bits == 0 && !constant))
        return false;
    struct sq_grib_scale s = scale_of(packing);
    *ret_least = constant ? s.reference : s.reference * s.decimal;
    *ret_greatest = constant ? s.reference : ((double)((UINT64_C(1) << bits) - 1) * s.binary + s.reference) * s.decimal;
    return true;
}

/* A section's bytes, or NULL where the frame has none; an error where it ends behind the message. */
static int section_of(const uint8_t *message, size_t size, const struct sq_grib_frame *frame, unsigned number, const uint8_t **ret,
                      size_t *ret_bytes, struct squall_error *err)
{
    const struct sq_grib_section *s = &frame->section[number];
    if (s->offset > size || s->size_bytes > size - s->offset)
        return sq_error(err, SQUALL_ECORRUPT, "section %u at byte %llu of the message: ends behind the message", number,
                        (unsigned long long)s->offset);
    *ret = message + s->offset;
    *ret_bytes = (size_t)s->size_bytes;
    return 0;
}

int sq_grib_packed_of(const uint8_t *message, size_t size, const struct sq_grib_frame *frame, struct sq_grib_packed *ret,
                      struct squall_error *err)
{
    struct sq_grib_packed p = {0};
    const uint8_t *first = NULL, *section6 = NULL, *section7 = NULL; /* first: what holds the parameters */
    size_t first_bytes = 0, section6_bytes = 0, section7_bytes = 0;
    SQ_TRY(section_of(message, size, frame, frame->edition == 1 ? 1 : 5, &first, &first_bytes, err));
    SQ_TRY(section_of(message, size, frame, 6, &section6, &section6_bytes, err));
    SQ_TRY(section_of(message, size, frame, 7, &section7, &section7_bytes, err));
    size_t head_bytes = frame->edition == 1 ? BDS_HEAD_BYTES : SECTION7_HEAD_BYTES;
    if (frame->edition == 1)
        SQ_TRY(parse_edition1(first, first_bytes, section7, section7_bytes, section7_bytes, &p.packing, err));
    else
        SQ_TRY(parse_edition2(first, first_bytes, &p.packing, err));
    parse_bitmap(frame->edition, section6, section6_bytes, &p.packing);
    if (section7_bytes < head_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "data section at byte %llu of the message: %zu bytes",
                        (unsigned long long)frame->section[7].offset, section7_bytes);
    if (frame->edition != 1 && first_bytes > PARAMETERS_AT) {
        p.parameters = first + PARAMETERS_AT;
        p.parameter_bytes = first_bytes - PARAMETERS_AT;
    }
    p.data = section7 + head_bytes;
    p.data_bytes = section7_bytes - head_bytes;
    p.data_offset = frame->section[7].offset + head_bytes;
    p.scale = scale_of(&p.packing);
    p.value_count = p.packing.value_count;
    p.unpack = kind_of(p.packing.template_number)->unpack;
    p.is_constant = p.packing.bits_per_value == 0 && !is_complex(&p.packing);
    p.all_missing = frame->edition == 1 && p.packing.binary_scale == E_MISSING;
    *ret = p;
    return 0;
}

int sq_grib_decode_check(const struct sq_grib_packing *packing, const struct sq_grib_frame *frame, const struct sq_grib_grid *grid,
                         struct squall_error *err)
{
    unsigned long long points = grid->point_count, values = packing->value_count;
    uint64_t head_bytes = frame->edition == 1 ? BDS_HEAD_BYTES : SECTION7_HEAD_BYTES, data_bytes = frame->section[7].size_bytes;
    if (packing->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "packing %s (%s%u): %s", packing->name,
                        frame->edition == 1 ? "edition 1, " : "template 5.", packing->template_number, packing->unsupported);
    if (grid->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "grid %s: %s", grid->type_name, grid->unsupported);
    if (points > SQ_GRIB_POINT_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%llu points in one field; %llu are the most", points,
                        (unsigned long long)SQ_GRIB_POINT_LIMIT);
    if (grid->rectangular && (uint64_t)grid->rows * grid->columns != points)
        return sq_error(err, SQUALL_ECORRUPT, "grid of %u × %u, but %llu points", grid->rows, grid->columns, points);
    if (packing->bits_per_value && !isfinite(packing->reference_value))
        return sq_error(err, SQUALL_ECORRUPT, "a reference value that is not finite, for %llu values", values);
    if (data_bytes < head_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "data section at byte %llu of the message: %llu bytes",
                        (unsigned long long)frame->section[7].offset, (unsigned long long)data_bytes);
    if (kind_of(packing->template_number)->side_by_side && packing->bits_per_value &&
        values * packing->bits_per_value > (data_bytes - head_bytes) * 8)
        return sq_error(err, SQUALL_ECORRUPT, "%llu values of %u bits in a data section of %llu bytes at byte %llu of the message", values,
                        packing->bits_per_value, (unsigned long long)data_bytes, (unsigned long long)frame->section[7].offset);
    if (packing->has_bitmap) {
        if (frame->section[6].size_bytes < SQ_GRIB_BITMAP_HEAD_BYTES ||
            points > (frame->section[6].size_bytes - SQ_GRIB_BITMAP_HEAD_BYTES) * 8)
            return sq_error(err, SQUALL_ECORRUPT, "bitmap section at byte %llu of the message: %llu bytes for %llu points",
                            (unsigned long long)frame->section[6].offset, (unsigned long long)frame->section[6].size_bytes, points);
        return 0;
    }
    bool agree = frame->edition != 1 ? values == points : packing->bits_per_value == 0 || values >= points;
    if (!agree)
        return sq_error(err, SQUALL_ECORRUPT, "%llu values for the grid's %llu points, without a bitmap", values, points);
    return 0;
}
