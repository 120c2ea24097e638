/* crc32c: four little-endian bytes of CRC-32C behind the data (numcodecs can also put them in front). */
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <string.h>

enum { CHECKSUM_BYTES = 4 };
enum { OPTION_LOCATION };
enum { LOCATION_START, LOCATION_END };

static const char *const locations[] = {"start", "end", NULL};

static const struct sq_stage_option options[] = {
    [OPTION_LOCATION] = {"location", locations, 0, 1, LOCATION_END, .hidden = true},
    {0},
};

static int decode_view(const struct sq_stage *stage, const uint8_t *src, size_t src_size, const uint8_t **ret, size_t *ret_size,
                       struct squall_error *err)
{
    if (src_size < CHECKSUM_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "crc32c: %zu bytes cannot hold a checksum; the chunk is truncated", src_size);
    size_t size = src_size - CHECKSUM_BYTES;
    bool in_front = stage->value[OPTION_LOCATION] == LOCATION_START;
    const uint8_t *data = in_front ? src + CHECKSUM_BYTES : src;
    const uint8_t *sum = in_front ? src : src + size;
    uint32_t stored = (uint32_t)sum[0] | (uint32_t)sum[1] << 8 | (uint32_t)sum[2] << 16 | (uint32_t)sum[3] << 24;
    uint32_t found = sq_crc32c(0, data, size);
    if (found != stored)
        return sq_error(err, SQUALL_ECORRUPT, "crc32c: the checksum is %08x, the bytes give %08x; the chunk is damaged", stored, found);
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
    uint32_t sum = sq_crc32c(0, src, src_size);
    const uint8_t bytes[CHECKSUM_BYTES] = {(uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16), (uint8_t)(sum >> 24)};
    memcpy(in_front ? dst + CHECKSUM_BYTES : dst, src, src_size);
    memcpy(in_front ? dst : dst + src_size, bytes, CHECKSUM_BYTES);
    *ret_size = src_size + CHECKSUM_BYTES;
    return 0;
}

const struct sq_stage_ops sq_stage_crc32c = {
    .name = "crc32c", .name_v3 = "crc32c", .fixed = true, .options = options, .decode_view = decode_view, .bound = bound, .encode = encode};
