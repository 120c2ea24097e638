/*
 * Checksums: four little-endian bytes before or behind the data. crc32c is v3's own; adler32, crc32 and fletcher32 are numcodecs',
 * the last one as HDF5's filter has it.
 */
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <string.h>

enum { CHECKSUM_BYTES = 4 };
enum { OPTION_LOCATION };
enum { LOCATION_START, LOCATION_END };

static const char *const locations[] = {"start", "end", NULL};

/* v3's crc32c has no such setting, and none is written where it is the usual one. */
static const struct sq_stage_option options_end[] = {
    [OPTION_LOCATION] = {"location", locations, 0, 1, LOCATION_END, .hidden = true},
    {0},
};
static const struct sq_stage_option options_start[] = {
    [OPTION_LOCATION] = {"location", locations, 0, 1, LOCATION_START, .told = false},
    {0},
};

/* HDF5's (H5_checksum_fletcher32): 16-bit words, high byte first, each sum folded to 16 bits; an odd byte is a high one. */
static uint32_t fletcher32(const uint8_t *bytes, size_t size)
{
    enum { WORDS_BEFORE_FOLDING = 360 }; /* as many as cannot overflow 32 bits */
    uint32_t sum1 = 0, sum2 = 0;
    size_t words = size / 2;
    while (words > 0) {
        size_t n = words < WORDS_BEFORE_FOLDING ? words : WORDS_BEFORE_FOLDING;
        words -= n;
        for (; n > 0; n--, bytes += 2) {
            sum1 += (uint32_t)bytes[0] << 8 | bytes[1];
            sum2 += sum1;
        }
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    if (size % 2) {
        sum1 += (uint32_t)*bytes << 8;
        sum2 += sum1;
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    return sum2 << 16 | sum1;
}

static uint32_t checksum(const struct sq_stage *stage, const uint8_t *bytes, size_t size)
{
    if (stage->ops == &sq_stage_crc32c)
        return sq_crc32c(0, bytes, size);
    if (stage->ops == &sq_stage_crc32)
        return libdeflate_crc32(0, bytes, size);
    return stage->ops == &sq_stage_adler32 ? libdeflate_adler32(1, bytes, size) : fletcher32(bytes, size);
}

/* HDF5 before 1.6.3 wrote both halves of a Fletcher-32 with their bytes swapped. */
static uint32_t as_old_hdf5(uint32_t sum)
{
    return (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
}

static int decode_view(const struct sq_stage *stage, const uint8_t *src, size_t src_size, const uint8_t **ret, size_t *ret_size,
                       struct squall_error *err)
{
    const char *name = stage->ops->name;
    if (src_size < CHECKSUM_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes cannot hold a checksum; the chunk is truncated", name, src_size);
    size_t size = src_size - CHECKSUM_BYTES;
    bool in_front = stage->value[OPTION_LOCATION] == LOCATION_START;
    const uint8_t *data = in_front ? src + CHECKSUM_BYTES : src;
    uint32_t stored = sq_get_u32(in_front ? src : src + size), found = checksum(stage, data, size);
    if (found != stored && !(stage->ops == &sq_stage_fletcher32 && as_old_hdf5(found) == stored))
        return sq_error(err, SQUALL_ECORRUPT, "%s: the checksum is %08x, the bytes give %08x; the chunk is damaged", name, stored, found);
    *ret = data;
    *ret_size = size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + CHECKSUM_BYTES;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    bool in_front = stage->value[OPTION_LOCATION] == LOCATION_START;
    memcpy(in_front ? dst + CHECKSUM_BYTES : dst, src, src_size);
    sq_put_u32(in_front ? dst : dst + src_size, checksum(stage, src, src_size));
    *ret_size = src_size + CHECKSUM_BYTES;
    return 0;
}

static int bind_fletcher32(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array,
                           struct squall_error *err)
{
    (void)configuration, (void)array, (void)err;
    stage->value[OPTION_LOCATION] = LOCATION_END; /* it has no choice */
    return 0;
}

#define CHECKSUM(id, id_v3, settings, how)                                                                                                 \
    {                                                                                                                                      \
        .name = (id), .name_v3 = (id_v3), .fixed = true, .options = (settings), .bind = (how), .decode_view = decode_view, .bound = bound, \
        .encode = encode                                                                                                                   \
    }

const struct sq_stage_ops sq_stage_crc32c = CHECKSUM("crc32c", "crc32c", options_end, NULL);
const struct sq_stage_ops sq_stage_crc32 = CHECKSUM("crc32", "numcodecs.crc32", options_start, NULL);
const struct sq_stage_ops sq_stage_adler32 = CHECKSUM("adler32", "numcodecs.adler32", options_start, NULL);
const struct sq_stage_ops sq_stage_fletcher32 = CHECKSUM("fletcher32", "numcodecs.fletcher32", NULL, bind_fletcher32);
