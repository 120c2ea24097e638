/*
 * HDF5's filter 6: numbers less the least of them, in as few bits as they take. A chunk is that number of bits (four bytes), the least
 * number (its length in a byte, then eight bytes), and from byte 21 on the bits, the highest of each number first. Floats were made
 * whole numbers before, by a power of ten. The number whose bits are all set stands for the fill value, where there is one.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/hdf5_stages.h"
#include <math.h>
#include <string.h>

enum { SCALE_DECIMAL, SCALE_EXPONENT, SCALE_INTEGER };
enum { HEADER_BYTES = 21 };

struct scaling {
    size_t element_count;
    unsigned width; /* bytes */
    bool is_float, big_endian, has_fill;
    float power_single; /* of ten, by which floats were multiplied; reckoned in the precision of their type, as the library does */
    double power;
    uint64_t fill; /* as bits */
};

/* Values: way of scaling, its factor, elements of a chunk, class, bytes, sign and order of a number, whether there is a fill value, and it. */
int sq_hdf5_scaleoffset_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    enum { VALUE_WAY, VALUE_FACTOR, VALUE_ELEMENTS, VALUE_CLASS, VALUE_BYTES, VALUE_SIGN, VALUE_ORDER, VALUE_HAS_FILL, VALUE_FILL };
    const uint32_t *v = filter->values;
    struct scaling *s = stage->state = sq_alloc_zero(1, sizeof *s);
    if (!s)
        return sq_error_memory(err, sizeof *s);
    if (filter->value_count < VALUE_FILL + 2)
        return sq_error(err, SQUALL_ECORRUPT, "filter scaleoffset: %u values are too few", filter->value_count);
    *s = (struct scaling){.element_count = v[VALUE_ELEMENTS],
                          .width = v[VALUE_BYTES],
                          .is_float = v[VALUE_CLASS] == 1,
                          .big_endian = v[VALUE_ORDER] == 1,
                          .has_fill = v[VALUE_HAS_FILL] == 1,
                          .power_single = powf(10.0F, (float)(int32_t)v[VALUE_FACTOR]),
                          .power = pow(10.0, (int32_t)v[VALUE_FACTOR]),
                          .fill = (uint64_t)v[VALUE_FILL + 1] << 32 | v[VALUE_FILL]};
    if (v[VALUE_WAY] == SCALE_EXPONENT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "filter scaleoffset: unsupported scaling by exponents");
    bool whole = s->width == 1 || s->width == 2 || s->width == 4 || s->width == 8;
    if (v[VALUE_CLASS] > 1 || v[VALUE_ORDER] > 1 || !whole || (s->is_float && s->width < 4) ||
        v[VALUE_WAY] != (s->is_float ? SCALE_DECIMAL : SCALE_INTEGER))
        return sq_error(err, SQUALL_ECORRUPT, "filter scaleoffset: way %u of scaling numbers of class %u and %u bytes makes no sense",
                        v[VALUE_WAY], v[VALUE_CLASS], s->width);
    if (!s->is_float && v[VALUE_FACTOR] > 8 * s->width)
        return sq_error(err, SQUALL_ECORRUPT, "filter scaleoffset: %u bits for numbers of %u bytes", v[VALUE_FACTOR], s->width);
    stage->decode_copies = !s->is_float && v[VALUE_FACTOR] == 8 * s->width; /* bits that the writer asked for: all, so none is packed */
    if (s->width < 8)
        s->fill &= (UINT64_C(1) << (8 * s->width)) - 1;
    return 0;
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------------------- */

static inline void store(const struct scaling *s, uint64_t bits, uint8_t *dst)
{
    for (unsigned b = 0; b < s->width; b++)
        dst[s->big_endian ? s->width - 1 - b : b] = (uint8_t)(bits >> (8 * b));
}

/* The bits of a float that was made a whole number. */
static uint64_t float_of(const struct scaling *s, uint64_t whole, uint64_t least)
{
    if (s->width == 4) {
        uint32_t bits = (uint32_t)least;
        float least_float, value;
        memcpy(&least_float, &bits, sizeof least_float);
        value = (float)(int32_t)(uint32_t)whole / s->power_single + least_float;
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    double least_double, value;
    uint64_t bits;
    memcpy(&least_double, &least, sizeof least_double);
    value = (double)(int64_t)whole / s->power + least_double;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* src: element_count numbers of `count` bits < 8 × width; there are that many. */
static void unpack(const struct scaling *s, const uint8_t *src, unsigned count, uint64_t least, uint8_t *dst)
{
    const uint64_t all_set = (UINT64_C(1) << count) - 1;
    unsigned held = 0; /* bits of *src that are used up */
    for (size_t i = 0; i < s->element_count; i++, dst += s->width) {
        uint64_t number = 0;
        for (unsigned left = count; left > 0;) {
            unsigned n = 8 - held < left ? 8 - held : left;
            number = number << n | ((unsigned)*src >> (8 - held - n) & ((1U << n) - 1));
            left -= n;
            held += n;
            src += held / 8;
            held %= 8;
        }
        if (s->has_fill && number == all_set)
            store(s, s->fill, dst);
        else
            store(s, s->is_float ? float_of(s, number, least) : number + least, dst);
    }
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    const struct scaling *s = stage->state;
    struct sq_cursor c = sq_cursor(src, src_size);
    uint32_t count = sq_u32le(&c);
    uint8_t least_bytes = sq_u8(&c);
    uint64_t least = sq_u64le(&c);
    if (src_size < HEADER_BYTES || count > 8 * s->width || least_bytes == 0)
        return sq_error(err, SQUALL_ECORRUPT, "scaleoffset: the chunk's header makes no sense: it is damaged or truncated");
    if (least_bytes < sizeof least)
        least &= (UINT64_C(1) << (8 * least_bytes)) - 1;
    if (s->element_count > capacity / s->width)
        return SQ_STAGE_NO_ROOM;
    size_t size = s->element_count * s->width, left = src_size - HEADER_BYTES;
    if (left < ((uint64_t)s->element_count * count + 7) / 8)
        return sq_error(err, SQUALL_ECORRUPT, "scaleoffset: %zu bytes do not hold %zu numbers of %u bits; the chunk is truncated", left,
                        s->element_count, count);
    if (count < 8 * s->width)
        unpack(s, src + HEADER_BYTES, count, least, dst);
    for (size_t i = 0; i < s->element_count && count == 8 * s->width; i++) { /* nothing was gained: the numbers as they were */
        uint64_t bits = 0;
        for (unsigned b = 0; b < s->width; b++)
            bits |= (uint64_t)src[HEADER_BYTES + i * s->width + b] << (8 * b);
        store(s, bits, dst + i * s->width);
    }
    *ret_size = size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + HEADER_BYTES;
}

const struct sq_stage_ops sq_stage_hdf5_scaleoffset = {.name = "scaleoffset", .done = done, .decode = decode, .bound = bound};
