/*
 * Blosc: settings and decoding. Blocks of zstd, LZ4 and zlib are decoded here, each unshuffled straight into the destination; what
 * is rare (BloscLZ, Snappy) goes to libblosc, after the header has been checked. Nothing in the header is believed:
 * sizes and offsets are checked against the bytes before they are used.
 */
#include "codec/blosc.h"
#include "base/error_internal.h"
#include "codec/shuffle.h"
#include <blosc.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>

static const char *const cnames[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz", "snappy", NULL};
static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle", NULL};
static const char *const searches[] = {"full", "greedy", NULL};

static const struct sq_stage_option options[] = {
    [SQ_BLOSC_OPTION_TYPESIZE] = {"typesize", NULL, 0, INT_MAX, 0, .told = false},
    [SQ_BLOSC_OPTION_CNAME] = {"cname", cnames, 0, SQ_CNAME_SNAPPY, SQ_CNAME_ZSTD, .told = true},
    [SQ_BLOSC_OPTION_CLEVEL] = {"clevel", NULL, 0, 9, 5, .told = true},
    [SQ_BLOSC_OPTION_SHUFFLE] = {"shuffle", shuffles, SQ_SHUFFLE_AUTO, SQ_SHUFFLE_BITS, SQ_SHUFFLE_BYTES, .told = true},
    [SQ_BLOSC_OPTION_BLOCKSIZE] = {"blocksize", NULL, 0, INT_MAX, 0, .told = false},
    [SQ_BLOSC_OPTION_SEARCH] = {"search", searches, 0, SQ_SEARCH_GREEDY, SQ_SEARCH_FULL, .hidden = true},
    {0},
};

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    (void)configuration, (void)err;
    int *value = stage->value;
    if (value[SQ_BLOSC_OPTION_TYPESIZE] == 0)
        value[SQ_BLOSC_OPTION_TYPESIZE] = (int)array->dtype.element_bytes;
    if (value[SQ_BLOSC_OPTION_SHUFFLE] == SQ_SHUFFLE_AUTO) /* as numcodecs has it */
        value[SQ_BLOSC_OPTION_SHUFFLE] = value[SQ_BLOSC_OPTION_TYPESIZE] == 1 ? SQ_SHUFFLE_BITS : SQ_SHUFFLE_BYTES;
    return 0;
}

struct header {
    uint8_t version, flags, typesize;
    uint32_t decoded_bytes, block_bytes, chunk_bytes;
};

static int damaged(struct squall_error *err, const char *what)
{
    return sq_error(err, SQUALL_ECORRUPT, "blosc: %s; the chunk is damaged", what);
}

static int read_header(const uint8_t *src, size_t src_size, struct header *ret, struct squall_error *err)
{
    if (src_size < SQ_BLOSC_HEADER_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: %zu bytes are less than a header; the chunk is truncated", src_size);
    struct header h = {src[0], src[2], src[3], sq_get_u32(src + 4), sq_get_u32(src + 8), sq_get_u32(src + 12)};
    if (h.version != SQ_BLOSC_VERSION)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: format version %u, not %d", h.version, SQ_BLOSC_VERSION);
    if (h.chunk_bytes != src_size)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: the header says %u bytes, the chunk has %zu; it is truncated or damaged",
                        h.chunk_bytes, src_size);
    bool has_blocks = !(h.flags & SQ_BLOSC_COPIED) && h.decoded_bytes > 0;
    if (h.decoded_bytes > SQ_BLOSC_CHUNK_BYTES_MAX || h.typesize == 0 ||
        (has_blocks && (h.block_bytes == 0 || h.block_bytes > h.decoded_bytes)))
        return damaged(err, "a size in the header is impossible");
    *ret = h;
    return 0;
}

static size_t decoded_size(const uint8_t *src, size_t src_size)
{
    return src_size < SQ_BLOSC_HEADER_BYTES ? 0 : sq_get_u32(src + 4);
}

/* The decoders that a chunk's blocks share; only the format's own is set. */
struct tools {
    enum sq_blosc_format format;
    ZSTD_DCtx *zstd;
    struct libdeflate_decompressor *inflater;
};

static bool decode_stream(const struct tools *tools, const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size)
{
    switch (tools->format) {
    case SQ_BLOSC_ZSTD:
        return ZSTD_decompressDCtx(tools->zstd, dst, dst_size, src, src_size) == dst_size;
    case SQ_BLOSC_LZ4:
        return LZ4_decompress_safe((const char *)src, (char *)dst, (int)src_size, (int)dst_size) == (int)dst_size;
    default:
        return libdeflate_zlib_decompress(tools->inflater, src, src_size, dst, dst_size, NULL) == LIBDEFLATE_SUCCESS;
    }
}

/* The streams of one block, which begin at src and must end within left bytes → size bytes at dst. */
static int decode_streams(const struct tools *tools, const uint8_t *src, size_t left, unsigned streams, uint8_t *dst, size_t size,
                          struct squall_error *err)
{
    size_t each = size / streams;
    if (each * streams != size)
        return damaged(err, "a block does not fall into whole streams");
    for (unsigned k = 0; k < streams; k++) {
        if (left < 4)
            return damaged(err, "a block ends beyond the chunk");
        size_t stored = sq_get_u32(src);
        src += 4;
        left -= 4;
        if (stored > left)
            return damaged(err, "a stream ends beyond the chunk");
        if (stored == each)
            memcpy(dst, src, each);
        else if (!decode_stream(tools, src, stored, dst, each))
            return damaged(err, "a stream does not decode to its block");
        src += stored;
        left -= stored;
        dst += each;
    }
    return 0;
}

static int decode_blocks(const struct header *h, const struct tools *tools, struct sq_codec_scratch *scratch, const uint8_t *src,
                         uint8_t *dst, struct squall_error *err)
{
    size_t count = (h->decoded_bytes + (size_t)h->block_bytes - 1) / h->block_bytes;
    size_t data_at = SQ_BLOSC_HEADER_BYTES + 4 * count;
    if (data_at > h->chunk_bytes)
        return damaged(err, "it has no room for the table of its blocks");
    bool bytes_shuffled = (h->flags & SQ_BLOSC_SHUFFLED) && h->typesize > 1;
    bool bits_shuffled = !bytes_shuffled && (h->flags & SQ_BLOSC_BITSHUFFLED);
    if (bytes_shuffled || bits_shuffled)
        SQ_TRY(sq_codec_reserve(&scratch->block, h->block_bytes, err));
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = dst + i * h->block_bytes;
        size_t size = h->decoded_bytes - i * h->block_bytes;
        bool whole = size >= h->block_bytes;
        if (whole)
            size = h->block_bytes;
        size_t at = sq_get_u32(src + SQ_BLOSC_HEADER_BYTES + 4 * i);
        if (at < data_at || at > h->chunk_bytes)
            return damaged(err, "a block begins outside the chunk");
        unsigned streams = whole && !(h->flags & SQ_BLOSC_NOT_SPLIT) ? h->typesize : 1;
        bool unshuffle = bytes_shuffled || (bits_shuffled && size >= h->typesize);
        SQ_TRY(decode_streams(tools, src + at, h->chunk_bytes - at, streams, unshuffle ? scratch->block.data : to, size, err));
        if (bytes_shuffled)
            sq_unshuffle(h->typesize, size, scratch->block.data, to);
        else if (unshuffle)
            sq_bitunshuffle(h->typesize, size, scratch->block.data, to);
    }
    return 0;
}

static int decode_by_libblosc(const struct header *h, const uint8_t *src, uint8_t *dst, struct squall_error *err)
{
    unsigned format = h->flags >> 5;
    if (format > SQ_BLOSC_ZSTD)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: compressor number %u is not known", format);
    if (format == SQ_BLOSC_SNAPPY && blosc_compname_to_compcode(BLOSC_SNAPPY_COMPNAME) < 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: this libblosc was built without snappy");
    if (blosc_decompress_ctx(src, dst, h->decoded_bytes, 1) != (int)h->decoded_bytes)
        return damaged(err, "libblosc cannot decode it");
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage, (void)threads;
    struct header h = {0};
    SQ_TRY(read_header(src, src_size, &h, err));
    if (h.decoded_bytes > capacity)
        return SQ_STAGE_NO_ROOM;
    struct tools tools = {.format = (enum sq_blosc_format)(h.flags >> 5)};
    if (h.flags & SQ_BLOSC_COPIED) {
        if (h.decoded_bytes != src_size - SQ_BLOSC_HEADER_BYTES)
            return damaged(err, "the header's sizes contradict each other");
        memcpy(dst, src + SQ_BLOSC_HEADER_BYTES, h.decoded_bytes);
    } else if (h.decoded_bytes == 0) {
        ;
    } else if (tools.format == SQ_BLOSC_ZSTD || tools.format == SQ_BLOSC_LZ4 || tools.format == SQ_BLOSC_ZLIB) {
        if (tools.format == SQ_BLOSC_ZSTD && !(tools.zstd = sq_codec_zstd_decoder(scratch, err)))
            return SQUALL_ENOMEM;
        if (tools.format == SQ_BLOSC_ZLIB && !(tools.inflater = sq_codec_inflater(scratch, err)))
            return SQUALL_ENOMEM;
        SQ_TRY(decode_blocks(&h, &tools, scratch, src, dst, err));
    } else {
        SQ_TRY(decode_by_libblosc(&h, src, dst, err));
    }
    *ret_size = h.decoded_bytes;
    return 0;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage;
    return src_size + SQ_BLOSC_HEADER_BYTES;
}

const struct sq_stage_ops sq_stage_blosc = {.name = "blosc",
                                            .name_v3 = "blosc",
                                            .options = options,
                                            .limit_bytes = SQ_BLOSC_CHUNK_BYTES_MAX,
                                            .bind = bind,
                                            .decode = decode,
                                            .decoded_size = decoded_size,
                                            .bound = bound,
                                            .encode = sq_blosc_encode};
