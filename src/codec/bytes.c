/* "bytes": elements as they lie in memory, in the byte order that the metadata says; in v2 that goes without saying. */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include "codec/swap.h"
#include <string.h>

enum { OPTION_ENDIAN };
enum { ENDIAN_LITTLE, ENDIAN_BIG };

static const char *const orders[] = {"little", "big", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_ENDIAN] = {"endian", orders, 0, 0, ENDIAN_LITTLE, .told = false}, /* no numbers for them */
    {0},
};

/* In value[]: bytes that are turned together, 0: none; bits of a byte that count, 0: all; whether the first of those is a sign */
enum { ELEMENT_SWAP = 1, LOW_BITS, LOW_SIGNED };

static int low_bits(enum squall_type type)
{
    if (type == SQUALL_INT2 || type == SQUALL_UINT2)
        return 2;
    return type == SQUALL_INT4 || type == SQUALL_UINT4 ? 4 : 0;
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    bool machine_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    (void)configuration;
    if (sq_type_is_variable(array->dtype.type))
        return sq_error(err, SQUALL_ECORRUPT, "codec bytes on an array of %s, whose elements have no fixed length",
                        sq_type_name(array->dtype.type));
    if (array->big_endian)
        stage->value[OPTION_ENDIAN] = ENDIAN_BIG;
    array->big_endian = stage->value[OPTION_ENDIAN] == ENDIAN_BIG;
    bool turned = array->big_endian != machine_is_big && array->dtype.order_bytes > 1;
    stage->value[ELEMENT_SWAP] = turned ? (int)array->dtype.order_bytes : 0;
    stage->value[LOW_BITS] = low_bits(array->dtype.type);
    stage->value[LOW_SIGNED] = array->dtype.type == SQUALL_INT2 || array->dtype.type == SQUALL_INT4;
    stage->decode_copies = !turned && !stage->value[LOW_BITS];
    stage->encode_copies = !turned;
    return 0;
}

/* What writers leave in the other bits is arbitrary (zarr-extensions, int4: "the upper bits are ignored"). src may be dst */
static void extend(const struct sq_stage *stage, const uint8_t *src, uint8_t *dst, size_t size_bytes)
{
    const unsigned bits = (unsigned)stage->value[LOW_BITS], sign = stage->value[LOW_SIGNED] ? 1U << (bits - 1) : 0;
    for (size_t i = 0; i < size_bytes; i++)
        dst[i] = (uint8_t)(((src[i] & ((1U << bits) - 1)) ^ sign) - sign);
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    size_t width = (size_t)stage->value[ELEMENT_SWAP];
    if (src_size > capacity)
        return SQ_STAGE_NO_ROOM;
    *ret_size = src_size;
    if (stage->value[LOW_BITS]) {
        extend(stage, src, dst, src_size);
        return 0;
    }
    if (src_size % width != 0)
        return sq_error(err, SQUALL_ECORRUPT,
                        "bytes: %zu bytes are not whole numbers of %zu; the chunk is truncated, or from another array", src_size, width);
    sq_swap(dst, src, src_size, (unsigned)width);
    return 0;
}

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    (void)src;
    return src_size;
}

static void decode_in_place(const struct sq_stage *stage, uint8_t *data, size_t size)
{
    if (stage->value[LOW_BITS])
        extend(stage, data, data, size);
    else
        sq_swap(data, data, size, (unsigned)stage->value[ELEMENT_SWAP]);
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    sq_swap(dst, src, src_size, (unsigned)stage->value[ELEMENT_SWAP]);
    *ret_size = src_size;
    return 0;
}

const struct sq_stage_ops sq_stage_bytes = {.name = "bytes",
                                            .name_v3 = "bytes",
                                            .kind = SQ_STAGE_TO_BYTES,
                                            .only_v3 = true,
                                            .fixed = true,
                                            .options = options,
                                            .bind = bind,
                                            .decode = decode,
                                            .decode_in_place = decode_in_place,
                                            .decoded_size = decoded_size,
                                            .bound = sq_stage_same_size,
                                            .encode = encode};
