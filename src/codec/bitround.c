/*
 * bitround: only the first bits of a mantissa are kept, the rest is rounded to zeros, which compress well (numcodecs' rounding: to
 * nearest, ties to even). Of whole numbers the bits from the highest one that is set. NaN stays as it is, and from a chain that was made of words
 * the fill value, too: they say that something is missing. Nothing is left to do when reading.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/chain.h"
#include <string.h>

enum {
    OPTION_KEEPBITS,
    WIDTH,
    MANTISSA,
    HAS_FILL
}; /* derived: bytes of a number; its mantissa's bits, 0: whole numbers; is *state left alone? */

static const struct sq_stage_option options[] = {
    [OPTION_KEEPBITS] = {"keepbits", NULL, 0, 64, 0, .told = true, .required = true},
    {0},
};

static int mantissa_bits(enum squall_type type)
{
    switch (type) {
    case SQUALL_FLOAT16:
        return 10;
    case SQUALL_BFLOAT16:
        return 7;
    case SQUALL_FLOAT32:
    case SQUALL_COMPLEX64:
        return 23;
    case SQUALL_FLOAT64:
    case SQUALL_COMPLEX128:
        return 52;
    default:
        return 0;
    }
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    enum squall_type type = array->dtype.type;
    int bits = mantissa_bits(type);
    bool is_time = type == SQUALL_DATETIME64 || type == SQUALL_TIMEDELTA64;
    if (bits == 0 && !sq_type_is_integer(type) && !is_time)
        return sq_error(err, SQUALL_EUNSUPPORTED, "codec bitround: unsupported on %s", sq_type_name(type));
    if (bits && stage->value[OPTION_KEEPBITS] > bits)
        return sq_error(err, SQUALL_ECORRUPT, "codec bitround: \"keepbits\" is %d, more than the %d that %s has",
                        stage->value[OPTION_KEEPBITS], bits, sq_type_name(type));
    stage->value[WIDTH] = (int)array->dtype.order_bytes;
    stage->value[MANTISSA] = bits;
    if (!configuration && array->fill && bits) { /* the metadata's codec is numcodecs', which rounds it */
        if (!(stage->state = sq_alloc_zero(1, sizeof(uint64_t))))
            return sq_error_memory(err, sizeof(uint64_t));
        memcpy(stage->state, array->fill, array->dtype.order_bytes);
        stage->value[HAS_FILL] = true;
    }
    stage->decode_copies = true;
    stage->encode_copies = bits && stage->value[OPTION_KEEPBITS] == bits;
    return 0;
}

/* x without its lowest `cut` bits, cut ≥ 1. */
static uint64_t rounded(uint64_t x, int cut)
{
    uint64_t mask = cut >= 64 ? 0 : ~UINT64_C(0) << cut;
    uint64_t odd = cut >= 64 ? 0 : x >> cut & 1;
    return (x + odd + (UINT64_C(1) << (cut - 1)) - 1) & mask;
}

/* All bits of the exponent, and some of the mantissa. */
static bool is_nan(uint64_t x, int width_bits, int mantissa_bits)
{
    const uint64_t mantissa = (UINT64_C(1) << mantissa_bits) - 1, exponent = ((UINT64_C(1) << (width_bits - 1)) - 1) & ~mantissa;
    return (x & exponent) == exponent && (x & mantissa);
}

static uint64_t round_one(const struct sq_stage *stage, uint64_t x)
{
    int keep = stage->value[OPTION_KEEPBITS], bits = stage->value[MANTISSA];
    const uint64_t *fill = stage->state;
    if (bits && (is_nan(x, 8 * stage->value[WIDTH], bits) || (stage->value[HAS_FILL] && x == *fill)))
        return x;
    if (bits == 0)
        bits = x ? 64 - __builtin_clzll(x) : 0;
    return bits > keep ? rounded(x, bits - keep) : x;
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

#define ROUND_ALL(T)                                                                                                                       \
    for (size_t i = 0; i + sizeof(T) <= src_size; i += sizeof(T)) {                                                                        \
        T x;                                                                                                                               \
        memcpy(&x, src + i, sizeof x);                                                                                                     \
        x = (T)round_one(stage, x);                                                                                                        \
        memcpy(dst + i, &x, sizeof x);                                                                                                     \
    }

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    switch (stage->value[WIDTH]) {
    case 1:
        ROUND_ALL(uint8_t)
        break;
    case 2:
        ROUND_ALL(uint16_t)
        break;
    case 4:
        ROUND_ALL(uint32_t)
        break;
    default:
        ROUND_ALL(uint64_t)
    }
    *ret_size = src_size;
    return 0;
}

const struct sq_stage_ops sq_stage_bitround = {.name = "bitround",
                                               .name_v3 = "bitround",
                                               .kind = SQ_STAGE_ARRAY,
                                               .only_encodes = true,
                                               .fixed = true,
                                               .options = options,
                                               .bind = bind,
                                               .done = done,
                                               .bound = sq_stage_same_size,
                                               .encode = encode};

int sq_codec_chain_keepbits(const struct sq_codec_chain *chain)
{
    const struct sq_codec_shard *shard = sq_codec_chain_shard(chain);
    if (shard)
        return sq_codec_chain_keepbits(shard->inner);
    for (unsigned i = 0; i < chain->stage_count; i++)
        if (chain->stages[i].ops == &sq_stage_bitround)
            return chain->stages[i].value[OPTION_KEEPBITS];
    return -1;
}
