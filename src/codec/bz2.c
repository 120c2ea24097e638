/* bzip2: streams one after another, as Python's bz2 reads and numcodecs writes them. libbz2 counts in 32 bits, so it is fed in pieces. */
#include "base/error_internal.h"
#include "codec/codec_internal.h"
#include <bzlib.h>
#include <limits.h>

enum { OPTION_LEVEL };

static const struct sq_stage_option options[] = {
    [OPTION_LEVEL] = {"level", NULL, 1, 9, 1, .told = true},
    {0},
};

static unsigned piece(size_t left)
{
    enum { PIECE_BYTES = 1 << 30 };
    return left < PIECE_BYTES ? (unsigned)left : PIECE_BYTES;
}

static int damaged(size_t at, const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "bz2: the stream at byte %zu %s", at, what);
}

/* One stream: from src + *at, to dst + *size. */
static int decode_stream(const uint8_t *src, size_t src_size, size_t *at, uint8_t *dst, size_t capacity, size_t *size,
                         struct squall_error *err)
{
    bz_stream z = {0};
    const size_t begin = *at;
    int status = BZ2_bzDecompressInit(&z, 0, 0) == BZ_OK ? 0 : sq_error(err, SQUALL_ENOMEM, "out of memory for a bz2 decoder");
    if (status)
        return status;
    for (;;) {
        unsigned in = piece(src_size - *at), out = piece(capacity - *size);
        char none = 0;
        z.next_in = (char *)(uintptr_t)(src + *at);
        z.avail_in = in;
        z.next_out = out ? (char *)dst + *size : &none;
        z.avail_out = out;
        int got = BZ2_bzDecompress(&z);
        size_t used = in - z.avail_in, made = out - z.avail_out;
        *at += used;
        *size += made;
        if (got == BZ_STREAM_END)
            break;
        if (got == BZ_MEM_ERROR)
            status = sq_error(err, SQUALL_ENOMEM, "out of memory for a bz2 decoder");
        else if (got != BZ_OK)
            status = damaged(begin, "is damaged", err);
        else if (used == 0 && made == 0)
            status = *at == src_size && *size < capacity ? damaged(begin, "is truncated", err) : SQ_STAGE_NO_ROOM;
        if (status)
            break;
    }
    BZ2_bzDecompressEnd(&z);
    return status;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)scratch, (void)threads;
    size_t at = 0, size = 0;
    do {
        if (src_size - at < 4 || src[at] != 'B' || src[at + 1] != 'Z')
            return damaged(at, "is none: it does not begin with BZ", err);
        SQ_TRY(decode_stream(src, src_size, &at, dst, capacity, &size, err));
    } while (at < src_size);
    *ret_size = size;
    return 0;
}

/* bzip2's manual: 1 % and 600 bytes more. */
static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + src_size / 100 + 601;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    bz_stream z = {0};
    size_t at = 0, size = 0;
    if (BZ2_bzCompressInit(&z, stage->value[OPTION_LEVEL], 0, 0) != BZ_OK)
        return sq_error(err, SQUALL_ENOMEM, "out of memory for a bz2 encoder");
    int got;
    do {
        unsigned in = piece(src_size - at), out = piece(capacity - size);
        z.next_in = (char *)(uintptr_t)(src + at);
        z.avail_in = in;
        z.next_out = (char *)dst + size;
        z.avail_out = out;
        got = BZ2_bzCompress(&z, at + in == src_size ? BZ_FINISH : BZ_RUN);
        at += in - z.avail_in;
        size += out - z.avail_out;
    } while (got == BZ_RUN_OK || got == BZ_FINISH_OK);
    BZ2_bzCompressEnd(&z);
    if (got != BZ_STREAM_END)
        return sq_error(err, SQUALL_EINVAL, "bz2: %zu bytes could not be encoded", src_size);
    *ret_size = size;
    return 0;
}

const struct sq_stage_ops sq_stage_bz2 = {
    .name = "bz2", .name_v3 = "numcodecs.bz2", .options = options, .decode = decode, .bound = bound, .encode = encode};
