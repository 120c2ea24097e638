/*
 * LZF as h5py's filter stores it: one stream without a header. A first byte below 32 announces so many literal bytes and one; any other
 * holds a length in its upper three bits (7: a further byte adds to it) and the upper five of a distance, whose lower eight
 * follow.
 */
#include "base/error_internal.h"
#include "codec/hdf5_stages.h"
#include <string.h>

enum { LITERALS_MAX = 32, LENGTH_GOES_ON = 7, LENGTH_LEAST = 2 };

static int damaged(size_t at, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "lzf: the stream %s at byte %zu; the chunk is damaged", what, at);
}

/* Copies may reach into what they write: that is how LZF repeats. */
static void repeat(uint8_t *dst, size_t distance, size_t length)
{
    const uint8_t *from = dst - distance;
    if (distance >= length) {
        memcpy(dst, from, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        dst[i] = from[i];
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)scratch, (void)threads;
    size_t at = 0, size = 0;
    while (at < src_size) {
        size_t first = src[at++], length = first + 1;
        if (first < LITERALS_MAX) {
            if (length > src_size - at)
                return damaged(at, "ends within literal bytes", err);
            if (length > capacity - size)
                return SQ_STAGE_NO_ROOM;
            memcpy(dst + size, src + at, length);
            at += length;
        } else {
            length = first >> 5;
            if (src_size - at < (length == LENGTH_GOES_ON ? 2U : 1U))
                return damaged(at, "ends within a repetition", err);
            if (length == LENGTH_GOES_ON)
                length += src[at++];
            length += LENGTH_LEAST;
            size_t distance = ((first & 31) << 8 | src[at++]) + 1;
            if (distance > size)
                return damaged(at, "repeats what is before its beginning", err);
            if (length > capacity - size)
                return SQ_STAGE_NO_ROOM;
            repeat(dst + size, distance, length);
        }
        size += length;
    }
    *ret_size = size;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + src_size / LITERALS_MAX + 1;
}

const struct sq_stage_ops sq_stage_lzf = {.name = "lzf", .decode = decode, .bound = bound};
