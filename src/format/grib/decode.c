/*
 * The values of one field: what its sections say is checked against each other first, then one unpacker fills the sink, then the
 * points are put in order. See decode.h.
 */
#include "format/grib/decode.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/unpack.h"
#include <libdeflate.h>
#include <math.h>

enum {
    /* Edition 1 has no count of values: the section ends where they do, but for padding. Its length is a multiple of 120 in messages beyond 8 MiB. */
    EDITION1_PADDING_BYTES = 120,
    BITMAP_HEAD_BYTES = 6, /* both editions: the bits begin at octet 7 */
};

struct sq_grib_scratch *sq_grib_scratch_new(void)
{
    return sq_alloc_zero(1, sizeof(struct sq_grib_scratch));
}

void sq_grib_scratch_free(struct sq_grib_scratch *scratch)
{
    if (!scratch)
        return;
    if (scratch->inflate)
        libdeflate_free_decompressor(scratch->inflate);
    sq_pages_free(scratch->joined.bytes, scratch->joined.capacity_bytes);
    sq_pages_free(scratch->inflated.bytes, scratch->inflated.capacity_bytes);
    sq_pages_free(scratch->points.bytes, scratch->points.capacity_bytes);
    sq_free(scratch);
}

int sq_grib_buffer_reserve(struct sq_grib_buffer *buffer, size_t size_bytes, struct squall_error *err)
{
    if (size_bytes <= buffer->capacity_bytes)
        return 0;
    size_t wanted = size_bytes + size_bytes / 4; /* fields of a file differ a little */
    uint8_t *bytes = sq_pages_alloc(wanted);
    if (!bytes)
        return sq_error_memory(err, wanted);
    sq_pages_free(buffer->bytes, buffer->capacity_bytes);
    buffer->bytes = bytes;
    buffer->capacity_bytes = wanted;
    return 0;
}

static sq_grib_unpack *unpack_of(uint16_t template_number)
{
    switch (template_number) {
    case 0:
    case 1000:
        return sq_grib_unpack_simple;
    case 2:
    case 3:
        return sq_grib_unpack_complex;
    case 4:
        return sq_grib_unpack_ieee;
    case 40:
    case 40000:
        return sq_grib_unpack_jpeg;
    case 41:
    case 40010:
        return sq_grib_unpack_png;
    default:
        return sq_grib_unpack_ccsds;
    }
}

/* Packings whose values lie side by side, each in its bits. */
static bool is_plain(const struct sq_grib_packing *p)
{
    return p->template_number == 0 || p->template_number == 4 || p->template_number == 1000;
}

int sq_grib_decode_check(const struct sq_grib_packing *packing, const struct sq_grib_frame *frame, const struct sq_grib_grid *grid,
                         struct squall_error *err)
{
    unsigned long long points = grid->point_count, values = packing->value_count;
    uint64_t head_bytes = frame->edition == 1 ? 11 : 5, data_bytes = frame->section[7].size_bytes;
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
    if (is_plain(packing) && packing->bits_per_value && values * packing->bits_per_value > (data_bytes - head_bytes) * 8)
        return sq_error(err, SQUALL_ECORRUPT, "%llu values of %u bits in a data section of %llu bytes at byte %llu of the message", values,
                        packing->bits_per_value, (unsigned long long)data_bytes, (unsigned long long)frame->section[7].offset);
    if (packing->has_bitmap) {
        if (frame->section[6].size_bytes < BITMAP_HEAD_BYTES || points > (frame->section[6].size_bytes - BITMAP_HEAD_BYTES) * 8)
            return sq_error(err, SQUALL_ECORRUPT, "bitmap section at byte %llu of the message: %llu bytes for %llu points",
                            (unsigned long long)frame->section[6].offset, (unsigned long long)frame->section[6].size_bytes, points);
        return 0;
    }
    bool agree = frame->edition != 1 ? values == points : packing->bits_per_value == 0 || values >= points;
    if (!agree)
        return sq_error(err, SQUALL_ECORRUPT, "%llu values for the grid's %llu points, without a bitmap", values, points);
    return 0;
}

/* How many values the field must have: one a point, or one for each 1 of the bitmap. */
static uint64_t values_wanted(const struct sq_grib_kernels *kernels, const uint8_t *bitmap, uint64_t point_count)
{
    if (!bitmap)
        return point_count;
    uint64_t ones = kernels->count_ones(bitmap, (size_t)(point_count / 8));
    if (point_count % 8)
        ones += (uint64_t)__builtin_popcount((unsigned)bitmap[point_count / 8] >> (8 - point_count % 8));
    return ones;
}

static int check_values(const struct sq_grib_packed *packed, uint8_t edition, uint64_t wanted, struct squall_error *err)
{
    uint64_t held = packed->packing.value_count, bits = packed->packing.bits_per_value;
    bool agree;
    if (packed->all_missing || (edition == 1 && bits == 0))
        agree = true;
    else if (edition == 1)
        agree = held >= wanted && (held - wanted) * bits <= EDITION1_PADDING_BYTES * 8;
    else
        agree = held == wanted;
    if (!agree)
        return sq_error(err, SQUALL_ECORRUPT, "%llu values in the data section at byte %llu of the message, %llu wanted by %s",
                        (unsigned long long)held, (unsigned long long)packed->data_offset, (unsigned long long)wanted,
                        packed->packing.has_bitmap ? "the bitmap" : "the grid");
    return 0;
}

static int fill(const struct sq_grib_packed *packed, struct sq_grib_scratch *scratch, struct sq_grib_sink *sink, struct squall_error *err)
{
    const struct sq_grib_packing *p = &packed->packing;
    bool complex = p->template_number == 2 || p->template_number == 3;
    if (packed->all_missing) {
        sq_grib_sink_put_missing(sink);
        return 0;
    }
    if (packed->value_count == 0)
        return 0;
    if (p->bits_per_value == 0 && !complex) { /* R as it is, not scaled by D: so encoders write constant fields */
        sq_grib_sink_put_constant(sink, packed->scale.reference, packed->value_count);
        return 0;
    }
    return unpack_of(p->template_number)(packed, scratch, sink, err);
}

int sq_grib_decode(const uint8_t *message, size_t size, const struct sq_grib_frame *frame, const struct sq_grib_grid *grid, bool flip_rows,
                   struct sq_grib_scratch *scratch, enum sq_grib_output output, void *dst, struct squall_error *err)
{
    struct sq_grib_packed packed;
    SQ_TRY(sq_grib_packed_of(message, size, frame, &packed, err));
    SQ_TRY(sq_grib_decode_check(&packed.packing, frame, grid, err));
    struct sq_grib_sink sink = {
        .kernels = sq_grib_kernels(),
        .scale = packed.scale,
        .output = output,
        .dst = dst,
        .point_count = grid->point_count,
        .bitmap = packed.packing.has_bitmap ? message + frame->section[6].offset + BITMAP_HEAD_BYTES : NULL,
        .dense = scratch->dense,
    };
    uint64_t wanted = values_wanted(sink.kernels, sink.bitmap, grid->point_count);
    SQ_TRY(check_values(&packed, frame->edition, wanted, err));
    packed.value_count = wanted;
    if (grid->point_count == 0)
        return 0;

    size_t value_bytes = output == SQ_GRIB_FLOAT32 ? sizeof(float) : sizeof(double);
    bool columnar = grid->rectangular && sq_grib_scan_order_is_columnar(grid->scanning_mode);
    if (columnar) {
        SQ_TRY(sq_grib_buffer_reserve(&scratch->points, grid->point_count * value_bytes, err));
        sink.dst = scratch->points.bytes;
    }
    SQ_TRY(fill(&packed, scratch, &sink, err));
    sq_grib_sink_finish(&sink);
    if (grid->rectangular)
        sq_grib_scan_order_apply(grid->scanning_mode, flip_rows, grid->rows, grid->columns, value_bytes, scratch->points.bytes, dst);
    return 0;
}
