/*
 * Blosc: encoding. With search=full the chunk is, byte for byte, what blosc_compress_ctx makes with one thread: its block
 * size, its rule for splitting, what it stores and when it gives up and copies. But the blocks are compressed in parallel here and
 * placed in order, so that one large chunk uses all threads and any number of them gives the same bytes.
 * With search=greedy the blocks and their streams are our own choice (blosc_greedy.c).
 */
#include "base/error_internal.h"
#include "codec/blosc.h"
#include "codec/shuffle.h"
#include "sys/ordered.h"
#include "sys/pool.h"
#include <assert.h>
#include <blosc.h>
#include <lz4.h>
#include <string.h>

enum {
    COPY_BELOW_BYTES = 128,        /* shorter chunks are copied; shorter streams are not split off */
    SPLITS_MAX = 16,               /* elements of more bytes are not split */
    FIRST_CACHE_BYTES = 32 * 1024, /* c-blosc's unit for blocks */
    GREEDY_PLANE_BYTES = 256 * 1024,
    GREEDY_BLOCK_BYTES_MAX = 1024 * 1024,
    SLOTS_PER_THREAD = 4,
};

/* Compressed, but not below the chunk's own size: the whole chunk is to be copied. */
enum { NOT_SMALLER = 1 };

struct encoding {
    const int *option; /* enum sq_blosc_option */
    const uint8_t *src;
    size_t src_size;
    uint8_t *dst;
    size_t dst_limit; /* what c-blosc's callers give it: the source's size and a header */
    size_t typesize, block_bytes, block_count;
    bool split;
    size_t at; /* where the next block goes */
    struct sq_codec_scratch *scratch;
    size_t slot_bytes, slot_used[SQ_ORDERED_SLOTS_MAX];
};

/* Below that clevel zstd searches no deeper than greedily anyway. */
static bool is_greedy(const struct encoding *e)
{
    enum { GREEDY_FROM_CLEVEL = 4 };
    return e->option[SQ_BLOSC_OPTION_SEARCH] == SQ_SEARCH_GREEDY && e->option[SQ_BLOSC_OPTION_CNAME] == SQ_CNAME_ZSTD &&
           e->option[SQ_BLOSC_OPTION_CLEVEL] >= GREEDY_FROM_CLEVEL;
}

/* ---- layout ----------------------------------------------------------------------------------------------------------------------- */

/* c-blosc never splits for zstd. */
static bool splits(const struct encoding *e, size_t block_bytes)
{
    return e->option[SQ_BLOSC_OPTION_CNAME] != SQ_CNAME_ZSTD && e->typesize <= SPLITS_MAX && block_bytes / e->typesize >= COPY_BELOW_BYTES;
}

static size_t clamp(size_t value, size_t least, size_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

/* The block size that c-blosc takes for a level where none is asked for. */
static size_t level_block_bytes(const struct encoding *e)
{
    /* in quarters of the unit, by level */
    static const size_t quarters[] = {1, 2, 4, 8, 16, 16, 32, 32, 32, 32};
    bool is_zstd = e->option[SQ_BLOSC_OPTION_CNAME] == SQ_CNAME_ZSTD;
    int clevel = e->option[SQ_BLOSC_OPTION_CLEVEL];
    if (e->src_size < FIRST_CACHE_BYTES)
        return e->src_size;
    size_t bytes = FIRST_CACHE_BYTES / 4 * quarters[clevel] * (is_zstd ? 2 : 1);
    return is_zstd && clevel == 9 ? 2 * bytes : bytes;
}

static size_t full_block_bytes(const struct encoding *e)
{
    enum { FORCED_MAX = (INT32_MAX - 255 * 4) / 3 };
    size_t forced = (size_t)e->option[SQ_BLOSC_OPTION_BLOCKSIZE];
    size_t bytes = forced ? clamp(forced, COPY_BELOW_BYTES, FORCED_MAX) : level_block_bytes(e);
    if (e->option[SQ_BLOSC_OPTION_CLEVEL] > 0 && splits(e, bytes))
        bytes = clamp(clamp(bytes, 0, 1 << 18) * e->typesize, 1 << 16, 1 << 20);
    return bytes;
}

static void lay_out(struct encoding *e)
{
    bool greedy = is_greedy(e) && e->option[SQ_BLOSC_OPTION_BLOCKSIZE] == 0;
    size_t bytes = greedy ? clamp(GREEDY_PLANE_BYTES * e->typesize, 1 << 18, GREEDY_BLOCK_BYTES_MAX) : full_block_bytes(e);
    if (bytes > e->src_size)
        bytes = e->src_size;
    if (e->src_size < e->typesize)
        bytes = 1;
    else if (bytes > e->typesize)
        bytes = bytes / e->typesize * e->typesize;
    e->block_bytes = bytes;
    e->block_count = (e->src_size + bytes - 1) / bytes;
    e->split = splits(e, bytes);
    if (is_greedy(e)) /* planes differ, so each is searched in its own way */
        e->split = e->option[SQ_BLOSC_OPTION_SHUFFLE] == SQ_SHUFFLE_BYTES && e->typesize > 1 && e->typesize <= SPLITS_MAX &&
                   bytes % e->typesize == 0 && bytes / e->typesize >= COPY_BELOW_BYTES;
}

static void put_header(const struct encoding *e, bool copied, size_t chunk_bytes)
{
    static const uint8_t formats[] = {[SQ_CNAME_ZSTD] = SQ_BLOSC_ZSTD, [SQ_CNAME_LZ4] = SQ_BLOSC_LZ4};
    int shuffle = e->option[SQ_BLOSC_OPTION_SHUFFLE];
    unsigned flags = (unsigned)formats[e->option[SQ_BLOSC_OPTION_CNAME]] << 5;
    flags |= shuffle == SQ_SHUFFLE_BYTES ? SQ_BLOSC_SHUFFLED : 0U;
    flags |= shuffle == SQ_SHUFFLE_BITS ? SQ_BLOSC_BITSHUFFLED : 0U;
    flags |= e->split ? 0U : SQ_BLOSC_NOT_SPLIT;
    flags |= copied ? SQ_BLOSC_COPIED : 0U;
    e->dst[0] = SQ_BLOSC_VERSION;
    e->dst[1] = SQ_BLOSC_FORMAT_VERSION;
    e->dst[2] = (uint8_t)flags;
    e->dst[3] = (uint8_t)e->typesize;
    sq_put_u32(e->dst + 4, e->src_size);
    sq_put_u32(e->dst + 8, e->block_bytes);
    sq_put_u32(e->dst + 12, chunk_bytes);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------------------- */

/* Size of the stream, 0 where it is no shorter than capacity. */
static size_t encode_stream(const struct encoding *e, struct sq_codec_scratch *scratch, const uint8_t *src, size_t size, uint8_t *dst,
                            size_t capacity)
{
    int clevel = e->option[SQ_BLOSC_OPTION_CLEVEL];
    if (e->option[SQ_BLOSC_OPTION_CNAME] == SQ_CNAME_LZ4) {
        int acceleration = clevel == 9 ? 1 : 10 - clevel;
        int got = LZ4_compress_fast((const char *)src, (char *)dst, (int)size, (int)capacity, acceleration);
        return got > 0 ? (size_t)got : 0;
    }
    if (is_greedy(e))
        return sq_blosc_greedy(scratch->zstd_encoder, src, size, dst, capacity);
    int level = clevel < 9 ? 2 * clevel - 1 : ZSTD_maxCLevel();
    size_t got = ZSTD_compressCCtx(scratch->zstd_encoder, dst, capacity, src, size, level);
    return ZSTD_isError(got) ? 0 : got;
}

/* The block, shuffled; in scratch, or where it lies. */
static const uint8_t *shuffled_block(const struct encoding *e, struct sq_codec_scratch *scratch, const uint8_t *src, size_t size)
{
    int shuffle = e->option[SQ_BLOSC_OPTION_SHUFFLE];
    if (shuffle == SQ_SHUFFLE_BYTES && e->typesize > 1)
        sq_shuffle(e->typesize, size, src, scratch->block.data);
    else if (shuffle == SQ_SHUFFLE_BITS && size >= e->typesize)
        sq_bitshuffle(e->typesize, size, src, scratch->block.data);
    else
        return src;
    return scratch->block.data;
}

/*
 * The streams of one block → dst. room: how many bytes the chunk has left; streams get no more than that, and where
 * even a stored one would not fit, the result is 0.
 */
static size_t encode_block(const struct encoding *e, struct sq_codec_scratch *scratch, size_t index, uint8_t *dst, size_t room)
{
    size_t begin = index * e->block_bytes;
    bool whole = e->src_size - begin >= e->block_bytes;
    size_t size = whole ? e->block_bytes : e->src_size - begin;
    const uint8_t *block = shuffled_block(e, scratch, e->src + begin, size);
    size_t streams = e->split && whole ? e->typesize : 1;
    size_t each = size / streams;
    size_t used = 0;
    for (size_t k = 0; k < streams; k++) {
        used += 4;
        if (used >= room)
            return 0;
        size_t capacity = each < room - used ? each : room - used;
        size_t got = encode_stream(e, scratch, block + k * each, each, dst + used, capacity);
        if (got == 0 || got == each) {
            if (each > room - used)
                return 0;
            memcpy(dst + used, block + k * each, each);
            got = each;
        }
        sq_put_u32(dst + used - 4, got);
        used += got;
    }
    return used;
}

static size_t greatest_block(const struct encoding *e)
{
    return e->block_bytes + 4 * (e->split ? e->typesize : 1);
}

static int work(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    (void)err;
    struct encoding *e = user;
    struct sq_codec_scratch *scratch = sq_codec_worker_scratch(e->scratch, worker);
    e->slot_used[slot] = encode_block(e, scratch, index, e->scratch->slots.data + slot * e->slot_bytes, SIZE_MAX);
    return 0;
}

static int place(void *user, size_t index, unsigned worker, unsigned slot, struct squall_error *err)
{
    (void)err;
    struct encoding *e = user;
    size_t room = e->dst_limit - e->at;
    size_t used = e->slot_used[slot];
    /* Close to the limit the compressors get less room, which can change what they do: c-blosc's bytes need it done again. */
    if (greatest_block(e) <= room)
        memcpy(e->dst + e->at, e->scratch->slots.data + slot * e->slot_bytes, used);
    else
        used = encode_block(e, sq_codec_worker_scratch(e->scratch, worker), index, e->dst + e->at, room);
    if (used == 0)
        return NOT_SMALLER;
    sq_put_u32(e->dst + SQ_BLOSC_HEADER_BYTES + 4 * index, e->at);
    e->at += used;
    return 0;
}

static int prepare_workers(struct encoding *e, unsigned threads, unsigned slots, struct squall_error *err)
{
    SQ_TRY(sq_codec_helpers_ready(e->scratch, threads, err));
    e->slot_bytes = (greatest_block(e) + 63) / 64 * 64;
    SQ_TRY(sq_codec_reserve(&e->scratch->slots, e->slot_bytes * slots, err));
    for (unsigned i = 0; i < threads; i++) {
        struct sq_codec_scratch *scratch = sq_codec_worker_scratch(e->scratch, i);
        SQ_TRY(sq_codec_reserve(&scratch->block, e->block_bytes, err));
        if (!sq_codec_zstd_encoder(scratch, err))
            return SQUALL_ENOMEM;
    }
    return 0;
}

static int encode_blocks(struct encoding *e, unsigned threads, struct squall_error *err)
{
    if (threads > e->block_count)
        threads = (unsigned)e->block_count;
    if (threads == 0)
        threads = 1;
    unsigned slots = threads == 1 ? 1 : (unsigned)clamp((size_t)threads * SLOTS_PER_THREAD, threads, SQ_ORDERED_SLOTS_MAX);
    SQ_TRY(prepare_workers(e, threads, slots, err));
    e->at = SQ_BLOSC_HEADER_BYTES + 4 * e->block_count;
    if (e->at > e->dst_limit)
        return NOT_SMALLER;
    return sq_parallel_ordered(threads, e->block_count, slots, work, place, e, err);
}

static int encode_by_libblosc(const struct encoding *e, size_t *ret_size, struct squall_error *err)
{
    static const char *const names[] = {
        [SQ_CNAME_LZ4HC] = "lz4hc", [SQ_CNAME_ZLIB] = "zlib", [SQ_CNAME_BLOSCLZ] = "blosclz", [SQ_CNAME_SNAPPY] = "snappy"};
    const char *cname = names[e->option[SQ_BLOSC_OPTION_CNAME]];
    int got = blosc_compress_ctx(e->option[SQ_BLOSC_OPTION_CLEVEL], e->option[SQ_BLOSC_OPTION_SHUFFLE], e->typesize, e->src_size, e->src,
                                 e->dst, e->dst_limit, cname, (size_t)e->option[SQ_BLOSC_OPTION_BLOCKSIZE], 1);
    if (got <= 0)
        return sq_error(err, SQUALL_EUNSUPPORTED, "blosc: this libblosc cannot encode %zu bytes with %s", e->src_size, cname);
    *ret_size = (size_t)got;
    return 0;
}

int sq_blosc_encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                    uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    assert(capacity >= src_size + SQ_BLOSC_HEADER_BYTES);
    (void)capacity;
    int typesize = stage->value[SQ_BLOSC_OPTION_TYPESIZE];
    int cname = stage->value[SQ_BLOSC_OPTION_CNAME];
    struct encoding e = {.option = stage->value,
                         .src = src,
                         .src_size = src_size,
                         .dst = dst,
                         .dst_limit = src_size + SQ_BLOSC_HEADER_BYTES,
                         .typesize = typesize > 255 ? 1 : (size_t)typesize,
                         .scratch = scratch};
    if (cname != SQ_CNAME_ZSTD && cname != SQ_CNAME_LZ4)
        return encode_by_libblosc(&e, ret_size, err);
    lay_out(&e);
    bool copied = e.option[SQ_BLOSC_OPTION_CLEVEL] == 0 || src_size < COPY_BELOW_BYTES;
    if (!copied) {
        int status = encode_blocks(&e, threads, err);
        if (status != NOT_SMALLER)
            SQ_TRY(status);
        copied = status == NOT_SMALLER;
    }
    if (copied) {
        memcpy(dst + SQ_BLOSC_HEADER_BYTES, src, src_size);
        e.at = SQ_BLOSC_HEADER_BYTES + src_size;
    }
    put_header(&e, copied, e.at);
    *ret_size = e.at;
    return 0;
}
