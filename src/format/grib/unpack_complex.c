/*
 * Complex packing (data representation templates 5.2 and 5.3): groups of values, each with a reference, a width and a length,
 * then, in 5.3, first or second differences along the field to be summed up.
 *
 * A block of values is unpacked into 32 bits, summed up in 64, and kept in 32 where all sums fit, as in every sane field. Where
 * they do not, or where a width is beyond 31 bits, the same block is done again in 64 bits throughout.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "format/grib/unpack.h"
#include <string.h>

enum {
    BATCH = 256, /* groups whose descriptions are unpacked at once */
    SPATIAL_DIFFERENCING = 3,
    WIDEST = 32,
};

struct layout {
    unsigned missing; /* missing value management: how many codes of a group mean "missing" */
    uint64_t group_count;
    unsigned reference_bits, width_bits, length_bits;
    uint32_t width_base, length_base, length_step, last_length;
    unsigned order, extra_bytes;                              /* of spatial differencing; 0: none */
    bool wide;                                                /* a group's values may take more than 31 bits */
    uint64_t references_at, widths_at, lengths_at, values_at; /* first bits in the data */
};

/* Where the sums stand, and the first values, which the header holds. */
struct sums {
    struct sq_grib_sums to;
    unsigned seen; /* how many of the first values have been placed */
    uint64_t first[2];
};

struct groups {
    uint64_t next;        /* group to unpack next */
    unsigned count, used; /* of the batch */
    uint32_t reference[BATCH + SQ_GRIB_SLACK], width[BATCH + SQ_GRIB_SLACK], length[BATCH + SQ_GRIB_SLACK];
    uint64_t left; /* values left of the current group */
};

static int corrupt(const struct sq_grib_packed *packed, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "complex packing at byte %llu of the message: %s", (unsigned long long)packed->data_offset, what);
}

static uint64_t whole_bytes(uint64_t bits)
{
    return (bits + 7) / 8 * 8;
}

/* Octets 22 to 49 of section 5 (templates 5.2, 5.3), and the offsets that follow from them. */
static int read_layout(const struct sq_grib_packed *packed, struct layout *l, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(packed->parameters, packed->parameter_bytes);
    (void)sq_take(&c, 2); /* type of the original values, splitting method: the groups say all that is needed */
    l->missing = sq_u8(&c);
    (void)sq_take(&c, 8); /* substitutes for missing values, as the encoder had them */
    l->group_count = sq_u32be(&c);
    l->reference_bits = packed->packing.bits_per_value;
    l->width_base = sq_u8(&c);
    l->width_bits = sq_u8(&c);
    l->length_base = sq_u32be(&c);
    l->length_step = sq_u8(&c);
    l->last_length = sq_u32be(&c);
    l->length_bits = sq_u8(&c);
    bool differenced = packed->packing.template_number == SPATIAL_DIFFERENCING;
    l->order = differenced ? sq_u8(&c) : 0;
    l->extra_bytes = differenced ? sq_u8(&c) : 0;
    if (sq_cursor_failed(&c))
        return corrupt(packed, "section 5 is too short for its template", err);
    if (l->group_count == 0)
        return 0; /* a constant field, whose other parameters may be anything */
    if (l->missing > 2 || l->order > 2)
        return sq_error(err, SQUALL_EUNSUPPORTED, "complex packing with missing value management %u and differences of order %u",
                        l->missing, l->order);
    if (l->reference_bits > WIDEST || l->width_bits > WIDEST || l->length_bits > WIDEST || l->extra_bytes > 8)
        return corrupt(packed, "a reference, width, length or first value of more bits than a number has", err);
    if (l->group_count > packed->value_count) /* groups need not take a bit, so that nothing else bounds them */
        return corrupt(packed, "more groups than values", err);
    l->wide = l->reference_bits >= WIDEST || l->width_base + (UINT64_C(1) << l->width_bits) > WIDEST;

    l->references_at = l->order ? (uint64_t)(l->order + 1) * l->extra_bytes * 8 : 0;
    l->widths_at = l->references_at + whole_bytes(l->group_count * l->reference_bits);
    l->lengths_at = l->widths_at + whole_bytes(l->group_count * l->width_bits);
    l->values_at = l->lengths_at + whole_bytes(l->group_count * l->length_bits);
    if (l->values_at > (uint64_t)packed->data_bytes * 8)
        return corrupt(packed, "the groups' descriptions end behind section 7", err);
    return 0;
}

static struct sums read_sums(const struct sq_grib_packed *packed, const struct layout *l)
{
    struct sums s = {.to.order = l->order};
    struct sq_cursor c = sq_cursor(packed->data, packed->data_bytes);
    for (unsigned k = 0; k < l->order; k++)
        s.first[k] = sq_uint_be(&c, l->extra_bytes);
    if (l->order && l->extra_bytes) {
        uint64_t raw = sq_uint_be(&c, l->extra_bytes), sign = UINT64_C(1) << (8 * l->extra_bytes - 1);
        s.to.bias = raw & sign ? 0 - (raw & (sign - 1)) : raw;
    }
    return s;
}

/* Are all values R, as nothing takes a bit? (References of 0 bits alone do not say so: all groups may begin at the same value.) */
static bool is_constant(const struct layout *l, const struct sums *s)
{
    return l->reference_bits == 0 && l->width_bits == 0 && l->width_base == 0 && !(s->first[0] | s->first[1] | s->to.bias);
}

static int next_batch(const struct sq_grib_packed *packed, const struct layout *l, const struct sq_grib_kernels *kernels, struct groups *g,
                      struct squall_error *err)
{
    uint64_t left = l->group_count - g->next;
    g->count = left < BATCH ? (unsigned)left : BATCH;
    g->used = 0;
    const struct sq_grib_piece references = {0, g->count, l->reference_bits}, widths = {l->width_base, g->count, l->width_bits},
                               lengths = {0, g->count, l->length_bits};
    kernels->unpack(packed->data, packed->data_bytes, l->references_at + g->next * l->reference_bits, &references, 1, 0, g->reference);
    kernels->unpack(packed->data, packed->data_bytes, l->widths_at + g->next * l->width_bits, &widths, 1, 0, g->width);
    kernels->unpack(packed->data, packed->data_bytes, l->lengths_at + g->next * l->length_bits, &lengths, 1, 0, g->length);
    uint32_t widest = 0;
    for (unsigned i = 0; i < g->count; i++)
        widest = g->width[i] > widest ? g->width[i] : widest;
    if (widest > WIDEST)
        return corrupt(packed, "a group's values have more than 32 bits", err);
    g->next += g->count;
    return 0;
}

static uint64_t group_length(const struct layout *l, const struct groups *g)
{
    bool last = g->next == l->group_count && g->used == g->count - 1;
    return last ? l->last_length : l->length_base + (uint64_t)g->length[g->used] * l->length_step;
}

/* A group without bits is missing as a whole where its reference is one of the highest. */
static uint32_t piece_base(const struct layout *l, uint32_t reference, uint32_t width)
{
    uint64_t highest = (UINT64_C(1) << l->reference_bits) - 1;
    bool gone = width == 0 && l->missing && (int64_t)reference > (int64_t)highest - (int64_t)l->missing;
    return gone ? SQ_GRIB_MISSING_U32 : reference;
}

/* The pieces of the next block: whole groups, and a part of the last one. */
struct block {
    struct sq_grib_piece pieces[SQ_GRIB_BLOCK];
    size_t piece_count, value_count;
    uint64_t bits;
};

static int next_block(const struct sq_grib_packed *packed, const struct layout *l, const struct sq_grib_kernels *kernels, struct groups *g,
                      uint64_t values_left, struct block *b, struct squall_error *err)
{
    size_t wanted = values_left < SQ_GRIB_BLOCK ? (size_t)values_left : SQ_GRIB_BLOCK;
    b->piece_count = b->value_count = 0;
    b->bits = 0;
    while (b->value_count < wanted) {
        if (g->left == 0) {
            if (g->used == g->count) {
                if (g->next == l->group_count)
                    return corrupt(packed, "the groups hold fewer values than the header says", err);
                SQ_TRY(next_batch(packed, l, kernels, g, err));
            }
            g->left = group_length(l, g);
            if (g->left > values_left - b->value_count)
                return corrupt(packed, "the groups hold more values than the header says", err);
        }
        size_t room = wanted - b->value_count;
        uint32_t part = g->left < room ? (uint32_t)g->left : (uint32_t)room, width = g->width[g->used];
        if (part) {
            b->pieces[b->piece_count++] = (struct sq_grib_piece){piece_base(l, g->reference[g->used], width), part, width};
            b->value_count += part;
            b->bits += (uint64_t)part * width;
            g->left -= part;
        }
        if (g->left == 0)
            g->used++;
    }
    return 0;
}

/* Place a first value, or sum up one difference. */
static uint64_t next_sum(struct sums *s, uint64_t x)
{
    struct sq_grib_sums *to = &s->to;
    if (s->seen < to->order) {
        uint64_t value = s->first[s->seen++];
        to->difference = value - to->last;
        to->last = value;
        return value;
    }
    if (to->order == 0)
        return x;
    to->difference = (to->order == 2 ? to->difference : 0) + x + to->bias;
    to->last += to->difference;
    return to->last;
}

/* A block in 64 bits: the reference, and what is left where 32 bits do not hold the values. */
static void sum_wide(const struct sq_grib_packed *packed, const struct layout *l, const struct block *b, uint64_t bit, struct sums *s,
                     int64_t *out)
{
    const uint8_t *data = packed->data;
    size_t size = packed->data_bytes;
    for (size_t k = 0; k < b->piece_count; k++) {
        const struct sq_grib_piece *piece = &b->pieces[k];
        int64_t highest = (INT64_C(1) << piece->width) - 1 - (int64_t)l->missing;
        bool gone = piece->width == 0 && l->missing && piece->base == SQ_GRIB_MISSING_U32;
        for (uint32_t i = 0; i < piece->count; i++, bit += piece->width) {
            size_t at = (size_t)(bit >> 3);
            struct sq_cursor c = sq_cursor(data + at, size - at);
            uint64_t word = 0;
            if (piece->width)
                word = size - at >= 8 ? sq_u64be(&c) : sq_uint_be(&c, (unsigned)(size - at)) << 8 * (8 - (size - at));
            uint64_t code = piece->width ? word << (bit & 7) >> (64 - piece->width) : 0;
            if (gone || (piece->width && (int64_t)code > highest))
                *out++ = INT64_MAX;
            else
                *out++ = (int64_t)next_sum(s, piece->base + code);
        }
    }
}

/* A block in 32 bits. False: it does not fit. */
static bool sum_narrow(const struct layout *l, const struct sq_grib_kernels *kernels, const uint32_t *x, size_t count, struct sums *s,
                       int32_t *out)
{
    size_t i = 0;
    for (; i < count && s->seen < s->to.order; i++) {
        if (l->missing && x[i] == SQ_GRIB_MISSING_U32) {
            out[i] = INT32_MIN;
            continue;
        }
        uint64_t value = next_sum(s, 0);
        if (value > INT32_MAX)
            return false;
        out[i] = (int32_t)value;
    }
    return kernels->sum_up(x + i, count - i, l->missing != 0, &s->to, out + i);
}

int sq_grib_unpack_complex(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink,
                           struct squall_error *err)
{
    struct layout l = {0};
    SQ_TRY(read_layout(packed, &l, err));
    struct sums sums = {0};
    if (l.group_count)
        sums = read_sums(packed, &l);
    if (l.group_count == 0 || is_constant(&l, &sums)) {
        sq_grib_sink_put_constant(sink, packed->scale.reference, packed->value_count);
        return 0;
    }
    struct groups groups = {0};
    struct block block;
    uint64_t bit = l.values_at;
    enum sq_grib_source narrow = l.missing ? SQ_GRIB_I32_MISSING : SQ_GRIB_I32;
    for (uint64_t left = packed->value_count; left; left -= block.value_count) {
        SQ_TRY(next_block(packed, &l, sink->kernels, &groups, left, &block, err));
        if (bit + block.bits > (uint64_t)packed->data_bytes * 8)
            return corrupt(packed, "the groups' values end behind section 7", err);
        struct sums before = sums;
        bool fits = !l.wide;
        if (fits) {
            sink->kernels->unpack(packed->data, packed->data_bytes, bit, block.pieces, block.piece_count, l.missing, scratch->block);
            fits = sum_narrow(&l, sink->kernels, scratch->block, block.value_count, &sums, scratch->sums);
        }
        if (fits) {
            sq_grib_sink_put(sink, narrow, scratch->sums, block.value_count);
        } else {
            sums = before;
            sum_wide(packed, &l, &block, bit, &sums, scratch->wide);
            sq_grib_sink_put(sink, SQ_GRIB_I64_MISSING, scratch->wide, block.value_count);
        }
        bit += block.bits;
    }
    return 0;
}
