/* Scaled values on their way to the destination, through the bitmap where there is one. See unpack.h. */
#include "format/grib/unpack.h"
#include <math.h>
#include <string.h>

static const size_t source_bytes[SQ_GRIB_SOURCE_COUNT] = {
    [SQ_GRIB_U8] = 1,          [SQ_GRIB_U16] = 2,         [SQ_GRIB_U32] = 4,         [SQ_GRIB_I32] = 4,
    [SQ_GRIB_I32_MISSING] = 4, [SQ_GRIB_I64_MISSING] = 8, [SQ_GRIB_BIG_FLOAT32] = 4, [SQ_GRIB_BIG_FLOAT64] = 8,
};

static size_t value_bytes(const struct sq_grib_sink *sink)
{
    return sink->output == SQ_GRIB_FLOAT32 ? sizeof(float) : sizeof(double);
}

static void scale(const struct sq_grib_sink *sink, enum sq_grib_source source, const void *values, size_t count, void *dst)
{
    if (sink->output == SQ_GRIB_FLOAT32 && sink->scale.float_exact && sink->kernels->to_float32_exact[source])
        sink->kernels->to_float32_exact[source](values, count, &sink->scale, dst);
    else if (sink->output == SQ_GRIB_FLOAT32)
        sink->kernels->to_float32[source](values, count, &sink->scale, dst);
    else
        sink->kernels->to_float64[source](values, count, &sink->scale, dst);
}

static void fill(const struct sq_grib_sink *sink, double value, size_t count, void *dst)
{
    if (sink->output == SQ_GRIB_FLOAT32)
        for (size_t i = 0; i < count; i++)
            ((float *)dst)[i] = (float)value;
    else
        for (size_t i = 0; i < count; i++)
            ((double *)dst)[i] = value;
}

/* Spread the dense values over whole bytes of the bitmap; fewer than eight stay behind. */
static void expand(struct sq_grib_sink *sink)
{
    size_t width = value_bytes(sink), used;
    const uint8_t *bitmap = sink->bitmap + sink->at / 8;
    size_t bytes = (sink->point_count - sink->at) / 8;
    if (bytes == 0)
        return; /* a field without points has no destination either */
    void *dst = sink->dst + sink->at * width;
    size_t done;
    if (sink->output == SQ_GRIB_FLOAT32)
        done = sink->kernels->expand_float32(bitmap, bytes, sink->dense, sink->dense_count, dst, &used);
    else
        done = sink->kernels->expand_float64(bitmap, bytes, sink->dense, sink->dense_count, dst, &used);
    sink->at += 8 * done;
    sink->dense_count -= used;
    memmove(sink->dense, (uint8_t *)sink->dense + used * width, sink->dense_count * width);
}

void sq_grib_sink_put(struct sq_grib_sink *sink, enum sq_grib_source source, const void *values, size_t count)
{
    size_t width = value_bytes(sink);
    if (!sink->bitmap) {
        scale(sink, source, values, count, sink->dst + sink->at * width);
        sink->at += count;
        return;
    }
    const uint8_t *next = values;
    while (count) {
        size_t room = SQ_GRIB_BLOCK - sink->dense_count;
        size_t part = count < room ? count : room;
        scale(sink, source, next, part, (uint8_t *)sink->dense + sink->dense_count * width);
        sink->dense_count += part;
        expand(sink);
        next += part * source_bytes[source];
        count -= part;
    }
}

void sq_grib_sink_put_constant(struct sq_grib_sink *sink, double value, size_t count)
{
    size_t width = value_bytes(sink);
    if (!sink->bitmap) {
        fill(sink, value, count, sink->dst + sink->at * width);
        sink->at += count;
        return;
    }
    while (count) {
        size_t room = SQ_GRIB_BLOCK - sink->dense_count;
        size_t part = count < room ? count : room;
        fill(sink, value, part, (uint8_t *)sink->dense + sink->dense_count * width);
        sink->dense_count += part;
        expand(sink);
        count -= part;
    }
}

void sq_grib_sink_put_missing(struct sq_grib_sink *sink)
{
    fill(sink, NAN, sink->point_count, sink->dst);
    sink->at = sink->point_count;
}

void sq_grib_sink_finish(struct sq_grib_sink *sink)
{
    if (!sink->bitmap)
        return;
    const float nan32 = NAN, *dense32 = sink->dense;
    const double nan64 = (double)NAN, *dense64 = sink->dense;
    size_t width = value_bytes(sink), used = 0;
    /* a byte's worth of values that no point takes, so that the expansion goes on to the last whole byte */
    memset((uint8_t *)sink->dense + sink->dense_count * width, 0, 8 * width);
    sink->dense_count += 8;
    expand(sink);
    for (; sink->at < sink->point_count; sink->at++) {
        bool has_value = sink->bitmap[sink->at / 8] >> (7 - sink->at % 8) & 1;
        const void *value =
            width == sizeof nan32 ? (has_value ? &dense32[used] : &nan32) : (const void *)(has_value ? &dense64[used] : &nan64);
        memcpy(sink->dst + sink->at * width, value, width);
        used += has_value;
    }
}
