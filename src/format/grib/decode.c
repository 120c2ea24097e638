/*
 * The values of one field: what its sections say is checked against each other first, then one unpacker fills the sink, then the
 * points are put in order. See decode.h.
 */
#include "format/grib/decode.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/unpack.h"
#include <libdeflate.h>

enum {
    /* Edition 1 has no count of values: the section ends where they do, but for padding. Its length is a multiple of 120 in messages beyond 8 MiB. */
    EDITION1_PADDING_BYTES = 120,
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
    if (packed->all_missing) {
        sq_grib_sink_put_missing(sink);
        return 0;
    }
    if (packed->value_count == 0)
        return 0;
    if (packed->is_constant) { /* R as it is, not scaled by D: so encoders write constant fields */
        sq_grib_sink_put_constant(sink, packed->scale.reference, packed->value_count);
        return 0;
    }
    return packed->unpack(packed, scratch, sink, err);
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
        .bitmap = packed.packing.has_bitmap ? message + frame->section[6].offset + SQ_GRIB_BITMAP_HEAD_BYTES : NULL,
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
