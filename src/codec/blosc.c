/*
 * Blosc: settings and decoding. Blocks of zstd, LZ4 and zlib are decoded here, each unshuffled straight into the destination, several
 * at a time where there are threads, and only those that a range touches; what is rare (BloscLZ, Snappy) goes to libblosc,
 * after the header has been checked. Nothing in the header is believed: sizes and offsets are checked against the bytes before
 * they are used.
 */
#include "codec/blosc.h"
#include "base/error_internal.h"
#include "codec/shuffle.h"
#include "sys/pool.h"
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

/* The decoders of one thread; only the format's own is set. */
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

/* A chunk in blocks, about to be decoded: all of it, or the bytes from `from` to `end`, which go to dst. */
struct decoding {
    struct header h;
    const uint8_t *src;
    uint8_t *dst;
    size_t from, end, first_block, block_count;
    bool bytes_shuffled, bits_shuffled;
    struct sq_codec_scratch *scratch;
};

static int begin(struct decoding *d, struct squall_error *err)
{
    const struct header *h = &d->h;
    d->block_count = (h->decoded_bytes + (size_t)h->block_bytes - 1) / h->block_bytes;
    if (SQ_BLOSC_HEADER_BYTES + 4 * d->block_count > h->chunk_bytes)
        return damaged(err, "it has no room for the table of its blocks");
    d->bytes_shuffled = (h->flags & SQ_BLOSC_SHUFFLED) && h->typesize > 1;
    d->bits_shuffled = !d->bytes_shuffled && (h->flags & SQ_BLOSC_BITSHUFFLED);
    return 0;
}

static int take_tools(const struct decoding *d, struct sq_codec_scratch *scratch, struct tools *ret, struct squall_error *err)
{
    *ret = (struct tools){.format = (enum sq_blosc_format)(d->h.flags >> 5)};
    if (ret->format == SQ_BLOSC_ZSTD && !(ret->zstd = sq_codec_zstd_decoder(scratch, err)))
        return SQUALL_ENOMEM;
    if (ret->format == SQ_BLOSC_ZLIB && !(ret->inflater = sq_codec_inflater(scratch, err)))
        return SQUALL_ENOMEM;
    return 0;
}

/* Block `index` → size bytes at `to`. */
static int decode_block_to(const struct decoding *d, const struct tools *tools, struct sq_codec_scratch *scratch, size_t index, uint8_t *to,
                           size_t size, struct squall_error *err)
{
    const struct header *h = &d->h;
    size_t at = sq_get_u32(d->src + SQ_BLOSC_HEADER_BYTES + 4 * index);
    if (at < SQ_BLOSC_HEADER_BYTES + 4 * d->block_count || at > h->chunk_bytes)
        return damaged(err, "a block begins outside the chunk");
    unsigned streams = size == h->block_bytes && !(h->flags & SQ_BLOSC_NOT_SPLIT) ? h->typesize : 1;
    bool unshuffle = d->bytes_shuffled || (d->bits_shuffled && size >= h->typesize);
    if (!unshuffle)
        return decode_streams(tools, d->src + at, h->chunk_bytes - at, streams, to, size, err);
    SQ_TRY(decode_streams(tools, d->src + at, h->chunk_bytes - at, streams, scratch->block.data, size, err));
    if (d->bytes_shuffled)
        sq_unshuffle(h->typesize, size, scratch->block.data, to);
    else
        sq_bitunshuffle(h->typesize, size, scratch->block.data, to);
    return 0;
}

/* What of block `index` is wanted. */
static int decode_block(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    const struct decoding *d = user;
    struct sq_codec_scratch *scratch = sq_codec_worker_scratch(d->scratch, worker);
    struct tools tools;
    SQ_TRY(take_tools(d, scratch, &tools, err));
    index += d->first_block;
    size_t begin_at = index * d->h.block_bytes, size = d->h.decoded_bytes - begin_at;
    if (size > d->h.block_bytes)
        size = d->h.block_bytes;
    if (begin_at >= d->from && begin_at + size <= d->end)
        return decode_block_to(d, &tools, scratch, index, d->dst + (begin_at - d->from), size, err);
    SQ_TRY(decode_block_to(d, &tools, scratch, index, d->scratch->whole.data, size, err));
    size_t from = begin_at < d->from ? d->from : begin_at;
    size_t end = begin_at + size < d->end ? begin_at + size : d->end;
    memcpy(d->dst + (from - d->from), d->scratch->whole.data + (from - begin_at), end - from);
    return 0;
}

static int decode_blocks(struct decoding *d, unsigned threads, size_t count, struct squall_error *err)
{
    bool shuffled = d->bytes_shuffled || d->bits_shuffled;
    if (threads > count)
        threads = (unsigned)count;
    if (threads == 0)
        threads = 1;
    SQ_TRY(sq_codec_helpers_ready(d->scratch, threads, err));
    for (unsigned i = 0; i < threads && shuffled; i++)
        SQ_TRY(sq_codec_reserve(&sq_codec_worker_scratch(d->scratch, i)->block, d->h.block_bytes, err));
    return sq_parallel(threads, count, decode_block, d, err);
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

/* The header → whether the chunk is decoded by ours; else (*ret_done) what there was to do for bytes [from, end) has been done. */
static int decode_simple(struct decoding *d, size_t src_size, bool *ret_done, struct squall_error *err)
{
    enum sq_blosc_format format = (enum sq_blosc_format)(d->h.flags >> 5);
    *ret_done = true;
    if (d->h.flags & SQ_BLOSC_COPIED) {
        if (d->h.decoded_bytes != src_size - SQ_BLOSC_HEADER_BYTES)
            return damaged(err, "the header's sizes contradict each other");
        memcpy(d->dst, d->src + SQ_BLOSC_HEADER_BYTES + d->from, d->end - d->from);
        return 0;
    }
    *ret_done = d->h.decoded_bytes == 0;
    if (*ret_done || format == SQ_BLOSC_ZSTD || format == SQ_BLOSC_LZ4 || format == SQ_BLOSC_ZLIB)
        return 0;
    *ret_done = true;
    if (d->from == 0 && d->end == d->h.decoded_bytes)
        return decode_by_libblosc(&d->h, d->src, d->dst, err);
    SQ_TRY(sq_codec_reserve(&d->scratch->whole, d->h.decoded_bytes, err));
    SQ_TRY(decode_by_libblosc(&d->h, d->src, d->scratch->whole.data, err));
    memcpy(d->dst, d->scratch->whole.data + d->from, d->end - d->from);
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage;
    struct decoding d = {.src = src, .dst = dst, .scratch = scratch};
    bool is_done;
    SQ_TRY(read_header(src, src_size, &d.h, err));
    if (d.h.decoded_bytes > capacity)
        return SQ_STAGE_NO_ROOM;
    d.end = d.h.decoded_bytes;
    SQ_TRY(decode_simple(&d, src_size, &is_done, err));
    if (!is_done) {
        SQ_TRY(begin(&d, err));
        SQ_TRY(decode_blocks(&d, threads, d.block_count, err));
    }
    *ret_size = d.h.decoded_bytes;
    return 0;
}

static int decode_range(const struct sq_stage *stage, struct sq_codec_scratch *scratch, const uint8_t *src, size_t src_size,
                        size_t chunk_bytes, size_t from_bytes, size_t count_bytes, uint8_t *dst, struct squall_error *err)
{
    (void)stage;
    struct decoding d = {.src = src, .dst = dst, .scratch = scratch, .from = from_bytes, .end = from_bytes + count_bytes};
    bool is_done;
    SQ_TRY(read_header(src, src_size, &d.h, err));
    if (d.h.decoded_bytes != chunk_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: the chunk decodes to %u bytes, the array's have %zu; %s", d.h.decoded_bytes,
                        chunk_bytes, "the file is damaged or from another array");
    SQ_TRY(decode_simple(&d, src_size, &is_done, err));
    if (is_done || count_bytes == 0)
        return 0;
    SQ_TRY(begin(&d, err));
    SQ_TRY(sq_codec_reserve(&scratch->whole, d.h.block_bytes, err));
    d.first_block = from_bytes / d.h.block_bytes;
    return decode_blocks(&d, 1, (d.end - 1) / d.h.block_bytes - d.first_block + 1, err);
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
                                            .decode_range = decode_range,
                                            .decoded_size = decoded_size,
                                            .bound = bound,
                                            .encode = sq_blosc_encode};
