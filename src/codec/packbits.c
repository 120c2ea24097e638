/*
 * Two codecs of one name. numcodecs' (v2; "numcodecs.packbits") makes of bools an array of bytes: how many bits are padding, then eight bools
 * a byte, the first one the highest bit. v3's makes bytes of elements of any number of bits, from the lowest bit of each byte on.
 */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <string.h>

static int wrong_padding(size_t said, size_t padding, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT,
                    "packbits: the chunk says %zu bits of padding, the array's have %zu; it is damaged or from another array", said,
                    padding);
}

/* Eight bools from a byte, the first one its highest or its lowest bit; dst takes `count` of them. */
static void spread(uint8_t byte, bool highest_first, uint8_t *dst, size_t count)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t each = byte * ones & (highest_first ? 0x0102040810204080 : 0x8040201008040201); /* a bit of its own to every byte */
    uint64_t bools = (each + 0x7f * ones) >> 7 & ones;
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        bools = __builtin_bswap64(bools);
    memcpy(dst, &bools, count);
}

static void spread_all(const uint8_t *src, bool highest_first, uint8_t *dst, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        spread(src[i / 8], highest_first, dst + i, 8);
    if (i < count)
        spread(src[i / 8], highest_first, dst + i, count - i);
}

/* ---- numcodecs ---------------------------------------------------------------------------------------------------------------------- */

static int bind_bools(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    (void)configuration;
    if (array->dtype.type != SQUALL_BOOL)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec packbits: unsupported on %s", sq_type_name(array->dtype.type));
    uint64_t count = 1;
    for (unsigned d = 0; d < array->rank; d++)
        count *= array->shape[d];
    array->rank = 1;
    array->shape[0] = stage->ops->bound(stage, count);
    array->dtype = sq_dtype_of(SQUALL_UINT8);
    stage->resizes = true;
    return 0;
}

static size_t bools_bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return 1 + src_size / 8 + (src_size % 8 != 0);
}

static int decode_bools(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                        size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    if (src_size != stage->ops->bound(stage, capacity))
        return SQ_STAGE_NO_ROOM;
    if (src[0] != (8 - capacity % 8) % 8)
        return wrong_padding(src[0], (8 - capacity % 8) % 8, err);
    spread_all(src + 1, true, dst, capacity);
    *ret_size = capacity;
    return 0;
}

static int encode_bools(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src,
                        size_t src_size, uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    size_t size = stage->ops->bound(stage, src_size);
    memset(dst, 0, size);
    dst[0] = (uint8_t)((8 - src_size % 8) % 8);
    for (size_t i = 0; i < src_size; i++)
        dst[1 + i / 8] |= (uint8_t)((src[i] != 0) << (7 - i % 8));
    *ret_size = size;
    return 0;
}

const struct sq_stage_ops sq_stage_packbits_numcodecs = {.name = "packbits",
                                                         .name_v3 = "numcodecs.packbits",
                                                         .kind = SQ_STAGE_ARRAY,
                                                         .fixed = true,
                                                         .bind = bind_bools,
                                                         .decode = decode_bools,
                                                         .bound = bools_bound,
                                                         .encode = encode_bools};

/* ---- v3 --------------------------------------------------------------------------------------------------------------------------- */

enum { OPTION_PADDING, OPTION_FIRST, OPTION_LAST, WIDTH, BITS, IS_SIGNED }; /* the last three are derived */
enum { PADDING_NONE, PADDING_FIRST_BYTE, PADDING_LAST_BYTE };
enum { TO_THE_LAST = -1 };

static const char *const paddings[] = {"none", "first_byte", "last_byte", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_PADDING] = {"padding_encoding", paddings, 0, 0, PADDING_NONE, .told = false},
    [OPTION_FIRST] = {"first_bit", NULL, 0, 63, 0, .told = false},
    [OPTION_LAST] = {"last_bit", NULL, 0, 63, TO_THE_LAST, .told = false},
    {0},
};

static int bits_of(const struct sq_dtype *dtype)
{
    switch (dtype->type) {
    case SQUALL_BOOL:
        return 1;
    case SQUALL_INT2:
    case SQUALL_UINT2:
        return 2;
    case SQUALL_INT4:
    case SQUALL_UINT4:
        return 4;
    case SQUALL_RAW:
    case SQUALL_TEXT:
    case SQUALL_STRING:
    case SQUALL_BYTES:
        return 0;
    default:
        return 8 * (int)dtype->order_bytes;
    }
}

static bool is_signed(enum squall_type type)
{
    return type == SQUALL_INT2 || type == SQUALL_INT4 || (type >= SQUALL_INT8 && type <= SQUALL_INT64);
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    (void)configuration;
    int bits = bits_of(&array->dtype), *value = stage->value;
    if (bits == 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec packbits: unsupported on %s", sq_type_name(array->dtype.type));
    if (value[OPTION_LAST] == TO_THE_LAST)
        value[OPTION_LAST] = bits - 1;
    if (value[OPTION_LAST] >= bits || value[OPTION_FIRST] > value[OPTION_LAST])
        return sq_error(err, SQUALL_ECORRUPT, "codec packbits: bits %d to %d of a number of %d", value[OPTION_FIRST], value[OPTION_LAST],
                        bits);
    value[WIDTH] = (int)array->dtype.order_bytes;
    value[BITS] = value[OPTION_LAST] - value[OPTION_FIRST] + 1;
    value[IS_SIGNED] = is_signed(array->dtype.type);
    array->dtype = sq_dtype_of(SQUALL_UINT8);
    return 0;
}

static size_t packed_bits(const struct sq_stage *stage, size_t size)
{
    return size / (size_t)stage->value[WIDTH] * (size_t)stage->value[BITS];
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    size_t bits = packed_bits(stage, src_size);
    return bits / 8 + (bits % 8 != 0) + (stage->value[OPTION_PADDING] != PADDING_NONE);
}

/* Numbers are in the machine's order, at most eight bytes. */
static uint64_t load(const uint8_t *src, size_t width)
{
    uint64_t x = 0;
    for (size_t i = 0; i < width; i++)
        x |= (uint64_t)src[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : width - 1 - i] << 8 * i;
    return x;
}

static void store(uint64_t x, uint8_t *dst, size_t width)
{
    for (size_t i = 0; i < width; i++)
        dst[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : width - 1 - i] = (uint8_t)(x >> 8 * i);
}

static uint64_t take_bits(const uint8_t *src, size_t at, unsigned bits)
{
    uint64_t x = 0;
    for (unsigned got = 0; got < bits;) {
        unsigned shift = at % 8, more = 8 - shift;
        x |= (uint64_t)(src[at / 8] >> shift) << got;
        got += more;
        at += more;
    }
    return bits < 64 ? x & ((UINT64_C(1) << bits) - 1) : x;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    size_t width = (size_t)stage->value[WIDTH], total = packed_bits(stage, capacity), padding = (8 - total % 8) % 8;
    unsigned bits = (unsigned)stage->value[BITS], first = (unsigned)stage->value[OPTION_FIRST];
    int said = stage->value[OPTION_PADDING];
    if (src_size != bound(stage, capacity))
        return sq_error(err, SQUALL_ECORRUPT,
                        "packbits: the chunk has %zu bytes, the array's have %zu; it is truncated or from another array", src_size,
                        bound(stage, capacity));
    if (said != PADDING_NONE && src[said == PADDING_FIRST_BYTE ? 0 : src_size - 1] != padding)
        return wrong_padding(src[said == PADDING_FIRST_BYTE ? 0 : src_size - 1], padding, err);
    src += said == PADDING_FIRST_BYTE;
    *ret_size = capacity;
    if (width == 1 && bits == 1 && first == 0 && !stage->value[IS_SIGNED]) {
        spread_all(src, false, dst, capacity);
        return 0;
    }
    for (size_t i = 0; i < capacity / width; i++) {
        uint64_t x = take_bits(src, i * bits, bits) << first;
        if (stage->value[IS_SIGNED] && bits + first < 64 && x >> (bits + first - 1) & 1)
            x |= ~UINT64_C(0) << (bits + first);
        store(x, dst + i * width, width);
    }
    return 0;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    size_t width = (size_t)stage->value[WIDTH], size = bound(stage, src_size), total = packed_bits(stage, src_size);
    unsigned bits = (unsigned)stage->value[BITS];
    uint8_t *packed = dst + (stage->value[OPTION_PADDING] == PADDING_FIRST_BYTE);
    memset(dst, 0, size);
    for (size_t i = 0, at = 0; i < src_size / width; i++) {
        uint64_t x = load(src + i * width, width) >> stage->value[OPTION_FIRST];
        for (unsigned done = 0; done < bits;) {
            unsigned shift = at % 8, more = 8 - shift < bits - done ? 8 - shift : bits - done;
            packed[at / 8] |= (uint8_t)((x >> done & ((1U << more) - 1)) << shift);
            done += more;
            at += more;
        }
    }
    if (stage->value[OPTION_PADDING] != PADDING_NONE)
        dst[stage->value[OPTION_PADDING] == PADDING_FIRST_BYTE ? 0 : size - 1] = (uint8_t)((8 - total % 8) % 8);
    *ret_size = size;
    return 0;
}

const struct sq_stage_ops sq_stage_packbits = {.name = "packbits",
                                               .name_v3 = "packbits",
                                               .kind = SQ_STAGE_TO_BYTES,
                                               .only_v3 = true,
                                               .keeps_configuration = true,
                                               .fixed = true,
                                               .options = options,
                                               .bind = bind,
                                               .decode = decode,
                                               .bound = bound,
                                               .encode = encode};
