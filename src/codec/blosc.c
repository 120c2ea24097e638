/*
 * Blosc: settings and decoding. Blocks of zstd, LZ4 and zlib are decoded here, each unshuffled straight into the destination, several
 * at a time where there are threads, and only those that a range touches; where the chunk is not in memory, each is fetched when its
 * turn comes. What is rare (BloscLZ, Snappy) goes to libblosc, after the header has been checked. Nothing in the header is believed:
 * sizes and offsets are checked against the bytes before they are used.
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

/* size_bytes of what is stored, from byte `at` on: where they are in memory already, or fetched into the buffer. */
static int take(const struct sq_codec_input *input, size_t at, size_t size_bytes, struct sq_codec_buffer *buffer, const uint8_t **ret,
                struct squall_error *err)
{
    if (!input->fetch) {
        *ret = input->bytes + at;
        return 0;
    }
    SQ_TRY(sq_codec_reserve(buffer, size_bytes, err));
    SQ_TRY(input->fetch(input->user, at, buffer->data, size_bytes, err));
    *ret = buffer->data;
    return 0;
}

static int read_header(const struct sq_codec_input *input, struct sq_codec_scratch *scratch, struct header *ret, struct squall_error *err)
{
    const uint8_t *src;
    if (input->size_bytes < SQ_BLOSC_HEADER_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: %zu bytes are less than a header; the chunk is truncated", input->size_bytes);
    SQ_TRY(take(input, 0, SQ_BLOSC_HEADER_BYTES, &scratch->stored, &src, err));
    struct header h = {src[0], src[2], src[3], sq_get_u32(src + 4), sq_get_u32(src + 8), sq_get_u32(src + 12)};
    if (h.version != SQ_BLOSC_VERSION)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: format version %u, not %d", h.version, SQ_BLOSC_VERSION);
    if (h.chunk_bytes != input->size_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: the header says %u bytes, the chunk has %zu; it is truncated or damaged",
                        h.chunk_bytes, input->size_bytes);
    bool has_blocks = !(h.flags & SQ_BLOSC_COPIED) && h.decoded_bytes > 0;
    if (has_blocks && src[1] != SQ_BLOSC_FORMAT_VERSION)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: version %u of a compressor's format, not %d", src[1], SQ_BLOSC_FORMAT_VERSION);
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
            return damaged(err, "a stream ends beyond its block");
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

/* A chunk about to be decoded: its bytes from `from` to `end`, which go to dst. */
struct decoding {
    struct header h;
    const struct sq_codec_input *input;
    uint8_t *dst;
    size_t from, end, first_block, block_count;
    const uint8_t *starts; /* of blocks, from first_block on */
    bool bytes_shuffled, bits_shuffled, stays_shuffled;
    struct sq_codec_scratch *scratch;
};

/* Which blocks are touched, and where these, and what follows them, begin. */
static int begin(struct decoding *d, size_t *ret_touched, struct squall_error *err)
{
    const struct header *h = &d->h;
    d->block_count = (h->decoded_bytes + (size_t)h->block_bytes - 1) / h->block_bytes;
    if (SQ_BLOSC_HEADER_BYTES + 4 * d->block_count > h->chunk_bytes)
        return damaged(err, "it has no room for the table of its blocks");
    d->bytes_shuffled = (h->flags & SQ_BLOSC_SHUFFLED) && h->typesize > 1;
    d->bits_shuffled = !d->bytes_shuffled && (h->flags & SQ_BLOSC_BITSHUFFLED);
    d->first_block = d->from / h->block_bytes;
    *ret_touched = (d->end - 1) / h->block_bytes - d->first_block + 1;
    size_t listed = *ret_touched + (d->first_block + *ret_touched < d->block_count);
    return take(d->input, SQ_BLOSC_HEADER_BYTES + 4 * d->first_block, 4 * listed, &d->scratch->index, &d->starts, err);
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

/* Where block `index`, which decodes to `most` bytes at most and its streams' lengths, is stored. */
static int find_block(const struct decoding *d, size_t index, size_t most, size_t *ret_at, size_t *ret_size, struct squall_error *err)
{
    const struct header *h = &d->h;
    const uint8_t *start = d->starts + 4 * (index - d->first_block);
    size_t at = sq_get_u32(start), next = index + 1 < d->block_count ? sq_get_u32(start + 4) : h->chunk_bytes;
    if (at < SQ_BLOSC_HEADER_BYTES + 4 * d->block_count || at > h->chunk_bytes)
        return damaged(err, "a block begins outside the chunk");
    if (next <= at || next > h->chunk_bytes) /* c-blosc with threads puts blocks where they come */
        next = h->chunk_bytes;
    *ret_at = at;
    *ret_size = next - at < most ? next - at : most;
    return 0;
}

/* Block `index` → size bytes at `to`. */
static int decode_block_to(const struct decoding *d, struct sq_codec_scratch *scratch, size_t index, uint8_t *to, size_t size,
                           struct squall_error *err)
{
    const struct header *h = &d->h;
    const uint8_t *stored;
    struct tools tools;
    size_t at = 0, stored_size = 0;
    unsigned streams = size == h->block_bytes && !(h->flags & SQ_BLOSC_NOT_SPLIT) ? h->typesize : 1;
    SQ_TRY(take_tools(d, scratch, &tools, err));
    SQ_TRY(find_block(d, index, size + 4 * (size_t)streams, &at, &stored_size, err));
    SQ_TRY(take(d->input, at, stored_size, &scratch->stored, &stored, err));
    bool unshuffle = (d->bytes_shuffled && !d->stays_shuffled) || (d->bits_shuffled && size >= h->typesize);
    if (!unshuffle)
        return decode_streams(&tools, stored, stored_size, streams, to, size, err);
    SQ_TRY(sq_codec_reserve(&scratch->block, size, err));
    SQ_TRY(decode_streams(&tools, stored, stored_size, streams, scratch->block.data, size, err));
    if (d->bytes_shuffled)
        sq_unshuffle(h->typesize, size, scratch->block.data, to);
    else
        sq_bitunshuffle(h->typesize, size, scratch->block.data, to);
    return 0;
}

/* What of a block is wanted. */
static int decode_block(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    const struct decoding *d = user;
    struct sq_codec_scratch *scratch = sq_codec_worker_scratch(d->scratch, worker);
    index += d->first_block;
    size_t begin_at = index * d->h.block_bytes, size = d->h.decoded_bytes - begin_at;
    if (size > d->h.block_bytes)
        size = d->h.block_bytes;
    if (begin_at >= d->from && begin_at + size <= d->end)
        return decode_block_to(d, scratch, index, d->dst + (begin_at - d->from), size, err);
    SQ_TRY(sq_codec_reserve(&scratch->whole, size, err));
    SQ_TRY(decode_block_to(d, scratch, index, scratch->whole.data, size, err));
    size_t from = begin_at < d->from ? d->from : begin_at;
    size_t end = begin_at + size < d->end ? begin_at + size : d->end;
    memcpy(d->dst + (from - d->from), scratch->whole.data + (from - begin_at), end - from);
    return 0;
}

static int decode_blocks(struct decoding *d, unsigned threads, struct squall_error *err)
{
    size_t touched = 0;
    SQ_TRY(begin(d, &touched, err));
    if (threads > touched)
        threads = (unsigned)touched;
    if (threads == 0)
        threads = 1;
    SQ_TRY(sq_codec_helpers_ready(d->scratch, threads, err));
    return sq_parallel(threads, touched, decode_block, d, err);
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

static int decode_rare(const struct decoding *d, struct squall_error *err)
{
    const uint8_t *src;
    SQ_TRY(take(d->input, 0, d->input->size_bytes, &d->scratch->stored, &src, err));
    if (d->from == 0 && d->end == d->h.decoded_bytes)
        return decode_by_libblosc(&d->h, src, d->dst, err);
    SQ_TRY(sq_codec_reserve(&d->scratch->whole, d->h.decoded_bytes, err));
    SQ_TRY(decode_by_libblosc(&d->h, src, d->scratch->whole.data, err));
    memcpy(d->dst, d->scratch->whole.data + d->from, d->end - d->from);
    return 0;
}

/* No blocks: the bytes themselves. */
static int copy(const struct decoding *d, struct squall_error *err)
{
    if (d->h.decoded_bytes != d->input->size_bytes - SQ_BLOSC_HEADER_BYTES)
        return damaged(err, "the header's sizes contradict each other");
    if (d->input->fetch)
        return d->input->fetch(d->input->user, SQ_BLOSC_HEADER_BYTES + d->from, d->dst, d->end - d->from, err);
    memcpy(d->dst, d->input->bytes + SQ_BLOSC_HEADER_BYTES + d->from, d->end - d->from);
    return 0;
}

static int decode_wanted(struct decoding *d, unsigned threads, struct squall_error *err)
{
    enum sq_blosc_format format = (enum sq_blosc_format)(d->h.flags >> 5);
    if (d->h.flags & SQ_BLOSC_COPIED)
        return copy(d, err);
    if (d->from == d->end)
        return 0;
    return format == SQ_BLOSC_ZSTD || format == SQ_BLOSC_LZ4 || format == SQ_BLOSC_ZLIB ? decode_blocks(d, threads, err)
                                                                                        : decode_rare(d, err);
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)stage;
    const struct sq_codec_input input = {.bytes = src, .size_bytes = src_size};
    struct decoding d = {.input = &input, .dst = dst, .scratch = scratch};
    SQ_TRY(read_header(&input, scratch, &d.h, err));
    if (d.h.decoded_bytes > capacity)
        return SQ_STAGE_NO_ROOM;
    d.end = d.h.decoded_bytes;
    SQ_TRY(decode_wanted(&d, threads, err));
    *ret_size = d.h.decoded_bytes;
    return 0;
}

static int decode_range(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads,
                        const struct sq_codec_input *input, const struct sq_codec_range *range, uint8_t *dst,
                        struct sq_shuffle_layout *ret_layout, struct squall_error *err)
{
    (void)stage;
    struct decoding d = {.input = input, .dst = dst, .scratch = scratch, .stays_shuffled = ret_layout};
    SQ_TRY(read_header(input, scratch, &d.h, err));
    if (d.h.decoded_bytes != range->chunk_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "blosc: the chunk decodes to %u bytes, the array's have %zu; %s", d.h.decoded_bytes,
                        range->chunk_bytes, "the file is damaged or from another array");
    d.from = range->from_bytes;
    d.end = range->from_bytes + range->count_bytes;
    SQ_TRY(decode_wanted(&d, threads, err));
    if (ret_layout && d.bytes_shuffled)
        *ret_layout = (struct sq_shuffle_layout){.block_bytes = d.h.block_bytes, .width = d.h.typesize};
    else if (ret_layout)
        *ret_layout = (struct sq_shuffle_layout){.block_bytes = range->chunk_bytes, .width = 1};
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
                                            .decode_range = decode_range,
                                            .decoded_size = decoded_size,
                                            .bound = bound,
                                            .encode = sq_blosc_encode};
