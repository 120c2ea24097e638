/* Codecs against the libraries that define their formats, against themselves, and against damaged input. */
#include "support/unit.h"

#include "array/bytes.h"
#include "base/memory.h"
#include "codec/blosc.h"
#include "codec/codec.h"
#include "codec/shuffle.h"
#include "support/random.h"
#include "sys/cpu.h"
#include <blosc.h>
#include <lz4.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

static uint64_t random_state = 0x9e3779b97f4a7c15U;

static uint64_t random_bits(void)
{
    return random_next(&random_state);
}

enum content { CONSTANT, SMOOTH, NOISE, HALF_NOISE, CONTENT_COUNT };

/* Bytes of the kind asked for, as elements of float32 where that makes a difference; the caller's. */
static uint8_t *make_bytes(enum content content, size_t size)
{
    uint8_t *bytes = malloc(size + 8);
    for (size_t i = 0; i < size; i += 4) {
        float value = 280.0F + 10.0F * sinf((float)i * 0.001F) + 0.01F * (float)(random_bits() % 8);
        uint32_t word = (uint32_t)random_bits();
        if (content == SMOOTH || (content == HALF_NOISE && i / 4096 % 2))
            memcpy(&word, &value, 4);
        else if (content == CONSTANT)
            word = 0x41414141;
        memcpy(bytes + i, &word, 4);
    }
    return bytes;
}

static struct sq_codec_chain *chain_of(const char *spec, enum squall_type type)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    int status = sq_codec_chain_parse(spec, type, NULL, &chain, &err);
    if (status)
        print_error("%s\n", err.message);
    assert_int_equal(status, 0);
    return chain;
}

static struct sq_json *json_of(const char *text)
{
    struct sq_json *json = NULL;
    assert_int_equal(sq_json_parse(text, strlen(text), &json, NULL), 0);
    return json;
}

static struct sq_codec_chain *bound_v3(const char *codecs, enum squall_type type)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *json = json_of(codecs);
    struct sq_codec_chain *chain = NULL;
    int status = sq_codec_chain_bind_v3(json, &(struct sq_codec_chunk){.dtype = sq_dtype_of(type)}, &chain, &err);
    if (status)
        print_error("%s\n", err.message);
    assert_int_equal(status, 0);
    sq_json_free(json);
    return chain;
}

/* Encode, and the chunk in memory of its own size, so that a sanitizer sees any byte read beyond it. */
static uint8_t *encoded(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                        size_t src_size, size_t *ret_size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    size_t room = sq_codec_encode_bound(chain, src_size);
    uint8_t *dst = malloc(room);
    int status = sq_codec_encode(chain, scratch, threads, src, src_size, dst, room, ret_size, &err);
    if (status)
        print_error("%s\n", err.message);
    assert_int_equal(status, 0);
    assert_true(*ret_size <= room);
    return realloc(dst, *ret_size ? *ret_size : 1);
}

/* Decode into exactly size bytes and compare. */
static void check_decodes(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const uint8_t *chunk, size_t chunk_size,
                          const uint8_t *expected, size_t size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t *back = malloc(size ? size : 1);
    int status = sq_codec_decode(chain, scratch, 1, chunk, chunk_size, back, size, &err);
    if (status)
        print_error("%s\n", err.message);
    assert_int_equal(status, 0);
    assert_memory_equal(back, expected, size);
    free(back);
}

struct stored {
    const uint8_t *bytes;
    size_t size;
};

static int fetch(void *user, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err)
{
    const struct stored *stored = user;
    (void)err;
    assert_true(at <= stored->size && size_bytes <= stored->size - at);
    if (size_bytes > 0)
        memcpy(dst, stored->bytes + at, size_bytes);
    return 0;
}

/* The range from a chunk in memory; where that can be had, also from fetched parts, and out of the whole while it is shuffled: all agree. */
static int decode_range(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const uint8_t *chunk, size_t chunk_size,
                        size_t size, size_t from, size_t count, uint8_t *dst)
{
    struct stored stored = {chunk, chunk_size};
    const struct sq_codec_input memory = {.bytes = chunk, .size_bytes = chunk_size};
    const struct sq_codec_input parts = {.size_bytes = chunk_size, .fetch = fetch, .user = &stored};
    const struct sq_codec_range range = {size, from, count}, all = {size, 0, size};
    struct sq_shuffle_layout layout;
    const unsigned threads = 1 + (unsigned)(random_bits() % 3);
    int status = sq_codec_decode_range(chain, scratch, threads, &memory, &range, dst, NULL, NULL);
    if (!sq_codec_chain_has_range(chain) || sq_codec_chain_is_plain(chain))
        return status;
    uint8_t *other = malloc(count + !count), *shuffled = malloc(size + !size);
    assert_int_equal(sq_codec_decode_range(chain, scratch, threads, &parts, &range, other, NULL, NULL), status);
    if (status == 0)
        assert_memory_equal(other, dst, count);
    if (status == 0 && sq_codec_decode_range(chain, scratch, threads, &parts, &all, shuffled, &layout, NULL) == 0) {
        sq_unshuffle_part(&layout, size, shuffled, from, count, other);
        assert_memory_equal(other, dst, count);
    }
    free(other), free(shuffled);
    return status;
}

static const size_t sizes[] = {0,    1,     2,     15,    16,    17,     127,    128,    129,    255,    256,    1000,  2048,
                               4095, 32767, 32768, 65536, 65537, 100001, 131072, 262143, 262144, 262160, 524288, 700001};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

static const char *const specs[] = {
    "none",
    "crc32c",
    "zstd:level=3",
    "zstd:level=-5,checksum=true",
    "zstd:level=9,search=greedy",
    "gzip:level=5",
    "zlib:level=1",
    "lz4",
    "lz4:acceleration=10",
    SQ_CODEC_DEFAULT_SPEC,
    "blosc:cname=zstd,clevel=1",
    "blosc:cname=lz4,shuffle=bitshuffle",
    "blosc:cname=lz4hc,clevel=3",
    "blosc:cname=zlib",
    "blosc:cname=blosclz,shuffle=noshuffle",
    "blosc:cname=zstd,shuffle=noshuffle,search=greedy",
    "zstd:level=1+crc32c",
    "crc32c+zstd",
    "gzip:level=1+zstd:level=1+crc32c",
    "bz2:level=1",
    "shuffle:elementsize=1",
    "crc32+adler32+fletcher32",
};
enum { SPEC_COUNT = sizeof specs / sizeof *specs };

static void every_codec_gives_back_what_it_took(void **state)
{
    (void)state;
    static const enum squall_type types[] = {SQUALL_UINT8, SQUALL_FLOAT16, SQUALL_FLOAT32, SQUALL_INT64};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        for (unsigned t = 0; t < 4; t++) {
            struct sq_codec_chain *chain = chain_of(specs[s], types[t]);
            for (unsigned i = 0; i < SIZE_COUNT; i++) {
                uint8_t *bytes = make_bytes((enum content)(i % CONTENT_COUNT), sizes[i]);
                size_t chunk_size;
                uint8_t *chunk = encoded(chain, scratch, 1, bytes, sizes[i], &chunk_size);
                check_decodes(chain, scratch, chunk, chunk_size, bytes, sizes[i]);
                free(chunk), free(bytes);
            }
            sq_codec_chain_free(chain);
        }
    }
    sq_codec_scratch_free(scratch);
}

/* ---- Blosc against libblosc ------------------------------------------------------------------------------------------------------- */

static struct sq_codec_chain *blosc_chain(const char *cname, int clevel, int shuffle, int typesize, int blocksize, const char *search)
{
    static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
    char spec[200];
    snprintf(spec, sizeof spec, "blosc:cname=%s,clevel=%d,shuffle=%s,typesize=%d,blocksize=%d,search=%s", cname, clevel, shuffles[shuffle],
             typesize, blocksize, search);
    return chain_of(spec, SQUALL_UINT8);
}

static void check_same_as_libblosc(struct sq_codec_scratch *scratch, const char *cname, int clevel, int shuffle, int typesize,
                                   int blocksize, const uint8_t *bytes, size_t size)
{
    struct sq_codec_chain *chain = blosc_chain(cname, clevel, shuffle, typesize, blocksize, "full");
    uint8_t *expected = calloc(size + BLOSC_MAX_OVERHEAD, 1);
    int expected_size = blosc_compress_ctx(clevel, shuffle, (size_t)typesize, size, bytes, expected, size + BLOSC_MAX_OVERHEAD, cname,
                                           (size_t)blocksize, 1);
    assert_true(expected_size > 0);
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        size_t chunk_size;
        uint8_t *chunk = encoded(chain, scratch, threads, bytes, size, &chunk_size);
        if (chunk_size != (size_t)expected_size || memcmp(chunk, expected, chunk_size) != 0)
            fail_msg("%s clevel %d shuffle %d typesize %d blocksize %d, %zu bytes on %u threads: %zu bytes, libblosc %d", cname, clevel,
                     shuffle, typesize, blocksize, size, threads, chunk_size, expected_size);
        check_decodes(chain, scratch, chunk, chunk_size, bytes, size);
        free(chunk);
    }
    free(expected);
    sq_codec_chain_free(chain);
}

static void full_search_is_libblosc_byte_for_byte(void **state)
{
    (void)state;
    static const int typesizes[] = {1, 2, 3, 4, 8, 16, 17, 255, 300};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        for (unsigned content = i % 2; content < CONTENT_COUNT; content += 2) {
            uint8_t *bytes = make_bytes((enum content)content, sizes[i]);
            for (int shuffle = 0; shuffle < 3; shuffle++) {
                for (unsigned t = (i + content / 2) % 2; t < sizeof typesizes / sizeof *typesizes; t += 2) {
                    check_same_as_libblosc(scratch, "zstd", t % 3 ? 1 : 5, shuffle, typesizes[t], 0, bytes, sizes[i]);
                    check_same_as_libblosc(scratch, "lz4", 5, shuffle, typesizes[t], 0, bytes, sizes[i]);
                }
            }
            free(bytes);
        }
    }
    sq_codec_scratch_free(scratch);
}

static void every_level_is_libblosc_byte_for_byte(void **state)
{
    (void)state;
    static const size_t some[] = {100000, 1234568, 2200000};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned i = 0; i < 3; i++) {
        for (int clevel = 0; clevel <= 9; clevel++) {
            uint8_t *bytes = make_bytes(clevel % 2 ? SMOOTH : HALF_NOISE, some[i]);
            if (clevel < 7 || i == 0)
                check_same_as_libblosc(scratch, "zstd", clevel, 1, 4, 0, bytes, some[i]);
            check_same_as_libblosc(scratch, "lz4", clevel, 1, 2, 0, bytes, some[i]);
            check_same_as_libblosc(scratch, "lz4", clevel, 2, 8, 0, bytes, some[i]);
            free(bytes);
        }
    }
    sq_codec_scratch_free(scratch);
}

static void a_block_size_asked_for_is_libblosc_byte_for_byte(void **state)
{
    (void)state;
    static const int blocksizes[] = {1, 100, 128, 1000, 4096, 65536, 300000, 5000000};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(HALF_NOISE, 400000);
    for (unsigned b = 0; b < sizeof blocksizes / sizeof *blocksizes; b++) {
        for (int typesize = 1; typesize <= 8; typesize *= 2) {
            check_same_as_libblosc(scratch, "zstd", 1, 1, typesize, blocksizes[b], bytes, 400000);
            check_same_as_libblosc(scratch, "lz4", 5, 1, typesize, blocksizes[b], bytes, 400000);
            check_same_as_libblosc(scratch, "lz4", 5, 0, typesize, blocksizes[b], bytes, 99999);
        }
    }
    free(bytes);
    sq_codec_scratch_free(scratch);
}

/* Where the compressed size comes close to the data's own, c-blosc's compressors run out of room block by block. */
static void data_at_the_edge_of_compressible_is_libblosc_byte_for_byte(void **state)
{
    (void)state;
    enum { BYTES = 600000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (int zeros = 0; zeros < 400; zeros += 8) {
        uint8_t *bytes = make_bytes(NOISE, BYTES);
        memset(bytes + (zeros % 3) * 200000, 0, (size_t)zeros);
        check_same_as_libblosc(scratch, "zstd", 1, 1, 4, 0, bytes, BYTES);
        check_same_as_libblosc(scratch, "zstd", 5, 0, 2, 0, bytes, BYTES);
        check_same_as_libblosc(scratch, "lz4", 5, 1, 4, 0, bytes, BYTES);
        free(bytes);
    }
    sq_codec_scratch_free(scratch);
}

static void all_of_libblosc_is_read(void **state)
{
    (void)state;
    static const char *const cnames[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz"};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned c = 0; c < 5; c++) {
        for (int shuffle = 0; shuffle < 3; shuffle++) {
            for (int typesize = 1; typesize <= 16; typesize *= 2) {
                size_t size = 300000 + (size_t)(random_bits() % 1000);
                uint8_t *bytes = make_bytes(SMOOTH, size);
                uint8_t *chunk = malloc(size + BLOSC_MAX_OVERHEAD);
                int chunk_size =
                    blosc_compress_ctx(5, shuffle, (size_t)typesize, size, bytes, chunk, size + BLOSC_MAX_OVERHEAD, cnames[c], 0, 1);
                assert_true(chunk_size > 0);
                struct sq_codec_chain *chain = chain_of("blosc", SQUALL_UINT8);
                check_decodes(chain, scratch, chunk, (size_t)chunk_size, bytes, size);
                sq_codec_chain_free(chain);
                free(chunk), free(bytes);
            }
        }
    }
    sq_codec_scratch_free(scratch);
}

static void greedy_search_is_read_by_libblosc_and_the_same_on_any_threads(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        for (int typesize = 1; typesize <= 32; typesize *= 2) {
            size_t size = sizes[i] * 3;
            uint8_t *bytes = make_bytes((enum content)(random_bits() % CONTENT_COUNT), size);
            struct sq_codec_chain *chain = blosc_chain("zstd", 5, typesize == 4 ? (int)(i % 3) : 1, typesize, 0, "greedy");
            size_t chunk_size, other_size;
            uint8_t *chunk = encoded(chain, scratch, 1, bytes, size, &chunk_size);
            for (unsigned threads = 2; threads <= 5; threads += 3) {
                uint8_t *other = encoded(chain, scratch, threads, bytes, size, &other_size);
                assert_int_equal(other_size, chunk_size);
                assert_memory_equal(other, chunk, chunk_size);
                free(other);
            }
            uint8_t *back = malloc(size + 1);
            assert_int_equal(blosc_decompress_ctx(chunk, back, size, 1), (int)size);
            assert_memory_equal(back, bytes, size);
            check_decodes(chain, scratch, chunk, chunk_size, bytes, size);
            free(back), free(chunk), free(bytes);
            sq_codec_chain_free(chain);
        }
    }
    sq_codec_scratch_free(scratch);
}

/* Any part, from any chunk that libblosc makes, on any number of threads, is that part of the whole. */
static void ranges_and_threads_give_what_the_whole_has(void **state)
{
    (void)state;
    static const char *const cnames[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz"};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("blosc", SQUALL_UINT8);
    assert_true(sq_codec_chain_has_range(chain));
    for (unsigned round = 0; round < 120; round++) {
        size_t size = random_bits() % 400000, typesize = (size_t)1 << random_bits() % 5;
        uint8_t *bytes = make_bytes((enum content)(round % CONTENT_COUNT), size), *chunk = malloc(size + BLOSC_MAX_OVERHEAD);
        int chunk_size = blosc_compress_ctx(round % 7 ? 5 : 0, (int)(round % 3), typesize, size, bytes, chunk, size + BLOSC_MAX_OVERHEAD,
                                            cnames[round % 5], round % 4 ? 20000 : 0, 1);
        assert_true(chunk_size > 0);
        chunk = realloc(chunk, (size_t)chunk_size);
        uint8_t *back = malloc(size + 1);
        for (unsigned threads = 2; threads < 5; threads++) {
            memset(back, 0, size);
            assert_int_equal(sq_codec_decode(chain, scratch, threads, chunk, (size_t)chunk_size, back, size, NULL), 0);
            assert_memory_equal(back, bytes, size);
        }
        for (unsigned i = 0; i < 20; i++) {
            size_t from = random_bits() % (size + 1), count = random_bits() % (size - from + 1);
            uint8_t *part = malloc(count + !count);
            assert_int_equal(decode_range(chain, scratch, chunk, (size_t)chunk_size, size, from, count, part), 0);
            assert_memory_equal(part, bytes + from, count);
            free(part);
        }
        assert_int_equal(decode_range(chain, scratch, chunk, (size_t)chunk_size, size, size, 1, back), SQUALL_EINVAL);
        assert_int_equal(decode_range(chain, scratch, chunk, (size_t)chunk_size, size + 1, 0, 1, back), SQUALL_ECORRUPT);
        free(bytes), free(chunk), free(back);
    }
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* c-blosc with threads stores blocks in the order in which they come to be ready. */
static void blocks_may_be_stored_in_any_order(void **state)
{
    (void)state;
    enum { BYTES = 100000, BLOCKS = 6, FIRST = SQ_BLOSC_HEADER_BYTES + 4 * BLOCKS };
    static const unsigned orders[][BLOCKS] = {{5, 4, 3, 2, 1, 0}, {2, 0, 5, 1, 4, 3}, {0, 2, 1, 3, 5, 4}};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("blosc", SQUALL_UINT8);
    uint8_t *bytes = make_bytes(HALF_NOISE, BYTES), *chunk = malloc(BYTES + BLOSC_MAX_OVERHEAD), *back = malloc(BYTES);
    size_t size = (size_t)blosc_compress_ctx(5, 1, 4, BYTES, bytes, chunk, BYTES + BLOSC_MAX_OVERHEAD, "zstd", 17000, 1);
    uint8_t *moved = malloc(size);
    assert_int_equal((BYTES + sq_get_u32(chunk + 8) - 1) / sq_get_u32(chunk + 8), BLOCKS);
    for (unsigned o = 0; o < sizeof orders / sizeof *orders; o++) {
        size_t at = FIRST;
        memcpy(moved, chunk, FIRST);
        for (unsigned i = 0; i < BLOCKS; i++) {
            const unsigned block = orders[o][i];
            const size_t start = sq_get_u32(chunk + SQ_BLOSC_HEADER_BYTES + 4 * (size_t)block);
            const size_t end = block + 1 < BLOCKS ? sq_get_u32(chunk + SQ_BLOSC_HEADER_BYTES + 4 * (size_t)(block + 1)) : size;
            memcpy(moved + at, chunk + start, end - start);
            sq_put_u32(moved + SQ_BLOSC_HEADER_BYTES + 4 * (size_t)block, at);
            at += end - start;
        }
        check_decodes(chain, scratch, moved, size, bytes, BYTES);
        for (size_t from = 0; from < BYTES; from += 7001) {
            size_t count = random_bits() % (BYTES - from);
            assert_int_equal(decode_range(chain, scratch, moved, size, BYTES, from, count, back), 0);
            assert_memory_equal(back, bytes + from, count);
        }
    }
    free(bytes), free(chunk), free(moved), free(back);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void ranges_of_other_chains_are_parts_too(void **state)
{
    (void)state;
    enum { BYTES = 5000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), part[100];
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        struct sq_codec_chain *chain = chain_of(specs[s], SQUALL_FLOAT32);
        size_t size;
        uint8_t *chunk = encoded(chain, scratch, 1, bytes, BYTES, &size);
        assert_int_equal(decode_range(chain, scratch, chunk, size, BYTES, 1234, 100, part), 0);
        assert_memory_equal(part, bytes + 1234, 100);
        assert_int_equal(decode_range(chain, scratch, chunk, size - 1, BYTES, 1234, 100, part), SQUALL_ECORRUPT);
        free(chunk);
        sq_codec_chain_free(chain);
    }
    free(bytes);
    sq_codec_scratch_free(scratch);
}

static void shuffles_equal_their_definition_with_and_without_wide_registers(void **state)
{
    (void)state;
    for (int round = 0; round < 900; round++) {
        size_t width = 1 + random_bits() % 20;
        size_t size = round % 3 ? random_bits() % 3000 : (random_bits() % 100) * 8 * width; /* where bits are shuffled at all */
        size_t n = size / width;
        uint8_t *src = malloc(size + 1), *dst = malloc(size + 1), *back = malloc(size + 1);
        for (size_t i = 0; i < size; i++)
            src[i] = (uint8_t)random_bits();
        sq_cpu_limit(round % 2 ? ~0U : 0);
        sq_shuffle(width, size, src, dst);
        for (size_t i = 0; i < n; i++)
            for (size_t b = 0; b < width; b++)
                assert_int_equal(dst[b * n + i], src[i * width + b]);
        assert_memory_equal(dst + n * width, src + n * width, size - n * width);
        sq_unshuffle(width, size, dst, back);
        assert_memory_equal(back, src, size);
        sq_bitshuffle(width, size, src, dst);
        for (size_t i = 0; i < n && n % 8 == 0; i++)
            for (size_t bit = 0; bit < 8 * width; bit++)
                assert_int_equal(dst[bit * (n / 8) + i / 8] >> (i % 8) & 1, src[i * width + bit / 8] >> (bit % 8) & 1);
        sq_bitunshuffle(width, size, dst, back);
        assert_memory_equal(back, src, size);
        free(src), free(dst), free(back);
    }
    sq_cpu_limit(~0U);
}

/* ---- the others against their libraries --------------------------------------------------------------------------------------------- */

static void zstd_frames_of_every_kind_are_read(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("zstd", SQUALL_FLOAT32);
    uint8_t *bytes = make_bytes(SMOOTH, BYTES);
    size_t room = 2 * ZSTD_compressBound(BYTES);
    uint8_t *chunk = malloc(room);
    ZSTD_CCtx *encoder = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(encoder, ZSTD_c_checksumFlag, 1);
    size_t size = ZSTD_compress2(encoder, chunk, room, bytes, BYTES);
    check_decodes(chain, scratch, chunk, size, bytes, BYTES);
    chunk[size - 1] ^= 1; /* the checksum */
    uint8_t *back = malloc(BYTES);
    assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, BYTES, NULL), SQUALL_ECORRUPT);
    size = ZSTD_compress2(encoder, chunk, room, bytes, 100000); /* two frames, an empty one between */
    size += ZSTD_compress2(encoder, chunk + size, room - size, bytes, 0);
    size += ZSTD_compress2(encoder, chunk + size, room - size, bytes + 100000, BYTES - 100000);
    check_decodes(chain, scratch, chunk, size, bytes, BYTES);
    ZSTD_freeCCtx(encoder);
    free(back), free(chunk), free(bytes);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* window_bits as zlib has them: 31 is gzip, 15 zlib */
static size_t by_zlib(int window_bits, const uint8_t *bytes, size_t size, uint8_t *dst, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (uint8_t *)(uintptr_t)bytes, z.avail_in = (unsigned)size, z.next_out = dst, z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static void gzip_members_and_padding_are_read(void **state)
{
    (void)state;
    enum { BYTES = 200000, ROOM = 400000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("gzip", SQUALL_UINT8);
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *chunk = calloc(ROOM, 1), *back = malloc(BYTES);
    size_t size = by_zlib(31, bytes, 70000, chunk, ROOM);
    size += by_zlib(31, bytes + 70000, BYTES - 70000, chunk + size, ROOM - size);
    check_decodes(chain, scratch, chunk, size, bytes, BYTES);
    check_decodes(chain, scratch, chunk, size + 100, bytes, BYTES);
    chunk[size + 50] = 1;
    assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size + 100, back, BYTES, NULL), SQUALL_ECORRUPT);
    sq_codec_chain_free(chain);
    chain = chain_of("zlib", SQUALL_UINT8);
    size = by_zlib(15, bytes, BYTES, chunk, ROOM);
    check_decodes(chain, scratch, chunk, size, bytes, BYTES);
    sq_codec_chain_free(chain);
    free(bytes), free(chunk), free(back);
    sq_codec_scratch_free(scratch);
}

static void deflate_that_we_write_is_read_by_zlib(void **state)
{
    (void)state;
    enum { BYTES = 200000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *back = malloc(BYTES);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct sq_codec_chain *chain = chain_of(gzip ? "gzip" : "zlib:level=-1", SQUALL_UINT8);
        size_t size;
        uint8_t *chunk = encoded(chain, scratch, 1, bytes, BYTES, &size);
        z_stream z = {.next_in = chunk, .avail_in = (unsigned)size, .next_out = back, .avail_out = BYTES};
        assert_int_equal(inflateInit2(&z, 15 + 32), Z_OK);
        assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
        assert_int_equal(z.total_out, BYTES);
        assert_memory_equal(back, bytes, BYTES);
        inflateEnd(&z);
        free(chunk);
        sq_codec_chain_free(chain);
    }
    free(bytes), free(back);
    sq_codec_scratch_free(scratch);
}

static void big_endian_elements_are_turned(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    static const uint8_t stored[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0};
    struct sq_codec_chain *chain = bound_v3("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", SQUALL_UINT32);
    uint32_t words[2];
    assert_int_equal(sq_codec_decode(chain, scratch, 1, stored, 8, words, 8, NULL), 0);
    assert_true(words[0] == 0x12345678 && words[1] == 0x9abcdef0);
    assert_false(sq_codec_chain_is_plain(chain));
    uint8_t again[8];
    size_t size;
    assert_int_equal(sq_codec_encode(chain, scratch, 1, words, 8, again, 8, &size, NULL), 0);
    assert_memory_equal(again, stored, 8);
    sq_codec_chain_free(chain);

    struct sq_json *gzip = json_of("{\"id\":\"gzip\",\"level\":1}");
    assert_int_equal(
        sq_codec_chain_bind_v2(NULL, gzip, &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_INT16), .big_endian = true}, &chain, NULL),
        0);
    const int16_t numbers[] = {1, -2, 300};
    uint8_t *chunk = encoded(chain, scratch, 1, numbers, sizeof numbers, &size);
    check_decodes(chain, scratch, chunk, size, (const uint8_t *)numbers, sizeof numbers);
    sq_codec_chain_free(chain);
    chain = chain_of("gzip", SQUALL_UINT8);
    check_decodes(chain, scratch, chunk, size, (const uint8_t[]){0, 1, 0xff, 0xfe, 1, 44}, 6);
    sq_codec_chain_free(chain);
    sq_json_free(gzip);
    free(chunk);
    sq_codec_scratch_free(scratch);
}

static void crc32c_is_the_standards_and_is_checked(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("crc32c", SQUALL_UINT8);
    size_t size;
    uint8_t *chunk = encoded(chain, scratch, 1, "123456789", 9, &size);
    assert_int_equal(size, 13);
    assert_memory_equal(chunk + 9, "\x83\x92\x06\xe3", 4); /* the check value of CRC-32C, e3069283 */
    uint8_t back[9];
    for (unsigned i = 0; i < 13; i++) {
        chunk[i] ^= 4;
        assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, 13, back, 9, NULL), SQUALL_ECORRUPT);
        chunk[i] ^= 4;
    }
    sq_codec_chain_free(chain);
    struct sq_json *start = json_of("{\"id\":\"crc32c\",\"location\":\"start\"}");
    assert_int_equal(sq_codec_chain_bind_v2(NULL, start, &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_UINT8)}, &chain, NULL), 0);
    uint8_t *front = encoded(chain, scratch, 1, "123456789", 9, &size);
    assert_memory_equal(front, chunk + 9, 4);
    check_decodes(chain, scratch, front, 13, (const uint8_t *)"123456789", 9);
    sq_json_free(start);
    free(front), free(chunk);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* ---- strings ---------------------------------------------------------------------------------------------------------------------- */

static void strings_travel_with_their_lengths(void **state)
{
    (void)state;
    const struct squall_bytes words[] = {TEXT("t2m"), TEXT(""), TEXT("gust\0→ böig"),
                                         TEXT("a longer one, so that something is there to compress")};
    static const char *const string_specs[] = {"none", "zstd", "gzip", "blosc", "lz4", "zstd+crc32c"};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned s = 0; s < 6; s++) {
        struct sq_codec_chain *chain = chain_of(string_specs[s], SQUALL_STRING);
        uint8_t chunk[1000];
        size_t size;
        assert_int_equal(sq_codec_encode(chain, scratch, 1, words, sizeof words, chunk, sizeof chunk, &size, NULL), 0);
        struct squall_bytes back[4];
        assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, sizeof back, NULL), 0);
        for (int i = 0; i < 4; i++) {
            assert_true(sq_bytes_equal(&back[i], &words[i]));
            assert_int_equal(((char *)back[i].data)[back[i].size_bytes], 0);
        }
        sq_bytes_free(back, 4);
        assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, 3 * sizeof *back, NULL), SQUALL_ECORRUPT);
        if (s == 0) {
            assert_memory_equal(chunk, "\4\0\0\0\3\0\0\0t2m\0\0\0\0", 15);
            for (size_t cut = 0; cut < size; cut++)
                assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, cut, back, sizeof back, NULL), SQUALL_ECORRUPT);
        }
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void a_string_that_cannot_be_allocated_leaks_nothing(void **state)
{
    (void)state;
    const struct squall_bytes words[] = {TEXT("one"), TEXT("two"), TEXT("three")};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("none", SQUALL_STRING);
    uint8_t chunk[100];
    size_t size;
    struct squall_bytes back[3];
    assert_int_equal(sq_codec_encode(chain, scratch, 1, words, sizeof words, chunk, sizeof chunk, &size, NULL), 0);
    sq_fail_allocation(2);
    assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, sizeof back, NULL), SQUALL_ENOMEM);
    sq_fail_allocation(-1);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* ---- damaged chunks --------------------------------------------------------------------------------------------------------------- */

static void every_truncation_is_refused(void **state)
{
    (void)state;
    enum { BYTES = 3000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *back = malloc(BYTES);
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        struct sq_codec_chain *chain = chain_of(specs[s], SQUALL_FLOAT32);
        size_t size;
        uint8_t *chunk = encoded(chain, scratch, 1, bytes, BYTES, &size);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *part = malloc(cut ? cut : 1);
            struct squall_error err = SQUALL_ERROR_INIT;
            memcpy(part, chunk, cut);
            assert_int_equal(sq_codec_decode(chain, scratch, 1, part, cut, back, BYTES, &err), SQUALL_ECORRUPT);
            assert_true(err.message[0]);
            free(part);
        }
        free(chunk);
        sq_codec_chain_free(chain);
    }
    free(bytes), free(back);
    sq_codec_scratch_free(scratch);
}

static void a_chunk_of_another_size_is_refused(void **state)
{
    (void)state;
    enum { BYTES = 5000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *back = malloc(2 * BYTES);
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        struct sq_codec_chain *chain = chain_of(specs[s], SQUALL_FLOAT32);
        size_t size;
        uint8_t *chunk = encoded(chain, scratch, 1, bytes, BYTES, &size);
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, BYTES - 4, &err), SQUALL_ECORRUPT);
        assert_non_null(strstr(err.message, "another array"));
        assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, BYTES + 4, &err), SQUALL_ECORRUPT);
        assert_non_null(strstr(err.message, "another array"));
        free(chunk);
        sq_codec_chain_free(chain);
    }
    free(bytes), free(back);
    sq_codec_scratch_free(scratch);
}

/* Nothing is promised of the result but that it is one: an error, or BYTES bytes. Sanitizers watch. */
static void flipped_bytes_do_no_harm(void **state)
{
    (void)state;
    enum { BYTES = 20000 };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    uint8_t *bytes = make_bytes(HALF_NOISE, BYTES), *back = malloc(BYTES);
    unsigned refused = 0;
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        struct sq_codec_chain *chain = chain_of(specs[s], SQUALL_FLOAT32);
        size_t size;
        uint8_t *chunk = encoded(chain, scratch, 1, bytes, BYTES, &size);
        for (unsigned round = 0; round < 1500; round++) {
            size_t at = round < 64 ? round % size : random_bits() % size;
            uint8_t old = chunk[at];
            chunk[at] = round % 3 == 0 ? 0xff : (uint8_t)random_bits();
            refused += sq_codec_decode(chain, scratch, 1 + round % 2, chunk, size, back, BYTES, NULL) != 0;
            (void)!decode_range(chain, scratch, chunk, size, BYTES, 7000, 100, back);
            chunk[at] = old;
        }
        check_decodes(chain, scratch, chunk, size, bytes, BYTES);
        free(chunk);
        sq_codec_chain_free(chain);
    }
    assert_true(refused > 1000);
    free(bytes), free(back);
    sq_codec_scratch_free(scratch);
}

/* A Blosc header of our making in front of 64 bytes: version, flags, type size, sizes. */
static int decode_header(uint8_t version, uint8_t flags, uint8_t typesize, uint32_t decoded, uint32_t block, uint32_t chunk_bytes)
{
    uint8_t chunk[80] = {version, 1, flags, typesize};
    uint8_t back[64];
    sq_put_u32(chunk + 4, decoded);
    sq_put_u32(chunk + 8, block);
    sq_put_u32(chunk + 12, chunk_bytes);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = chain_of("blosc", SQUALL_FLOAT32);
    int status = sq_codec_decode(chain, scratch, 1, chunk, sizeof chunk, back, sizeof back, NULL);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
    return status;
}

static void impossible_blosc_headers_are_refused(void **state)
{
    (void)state;
    for (uint8_t format = 0; format < 8; format++) {
        if (format == SQ_BLOSC_SNAPPY) /* where libblosc has it */
            continue;
        uint8_t flags = (uint8_t)(format << 5 | 1);
        assert_int_equal(decode_header(2, flags, 4, 64, 64, 80), format > 4 ? SQUALL_EUNSUPPORTED : SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 4, 64, 0, 80), SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 4, 64, 0xffffffff, 80), SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 4, 64, 1, 80), format > 4 ? SQUALL_EUNSUPPORTED : SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 0, 64, 64, 80), SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 255, 64, 64, 80), format > 4 ? SQUALL_EUNSUPPORTED : SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 4, 0xffffffff, 64, 80), SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, flags, 4, 64, 64, 81), SQUALL_ECORRUPT);
        assert_int_equal(decode_header(2, (uint8_t)(flags | 2), 4, 65, 64, 80), SQUALL_ECORRUPT);
    }
    assert_int_equal(decode_header(2, 2, 4, 64, 64, 80), 0);
    assert_int_equal(decode_header(3, 2, 4, 64, 64, 80), SQUALL_EUNSUPPORTED);
}

/* ---- chains ----------------------------------------------------------------------------------------------------------------------- */

static void check_v3_text(const char *spec, enum squall_type type, const char *expected)
{
    struct sq_codec_chain *chain = chain_of(spec, type);
    struct sq_json *json = sq_codec_chain_json_v3(chain, false);
    struct sq_text text = SQ_TEXT_INIT;
    assert_int_equal(sq_json_write(json, false, &text, NULL), 0);
    struct sq_json *want = json_of(expected);
    if (!sq_json_equal(json, want))
        fail_msg("%s: %s", spec, sq_text_string(&text));
    struct sq_codec_chain *again = bound_v3(sq_text_string(&text), type);
    if (!strstr(spec, "greedy"))
        assert_string_equal(sq_codec_chain_identity(again), sq_codec_chain_identity(chain));
    assert_string_equal(sq_codec_chain_text(again), sq_codec_chain_text(chain));
    sq_codec_chain_free(again);
    sq_codec_chain_free(chain);
    sq_json_free(want);
    sq_json_free(json);
    sq_text_done(&text);
}

static void metadata_says_what_the_chain_is(void **state)
{
    (void)state;
    check_v3_text(SQ_CODEC_DEFAULT_SPEC, SQUALL_FLOAT16,
                  "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"blosc\",\"configuration\":{\"typesize\":2,"
                  "\"cname\":\"zstd\",\"clevel\":5,\"shuffle\":\"shuffle\",\"blocksize\":0}}]");
    check_v3_text("none", SQUALL_BOOL, "[{\"name\":\"bytes\"}]");
    check_v3_text("zstd:level=7,checksum=true+crc32c", SQUALL_INT64,
                  "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"zstd\",\"configuration\":{\"level\":7,"
                  "\"checksum\":true}},{\"name\":\"crc32c\"}]");
    check_v3_text("gzip", SQUALL_STRING, "[{\"name\":\"vlen-utf8\"},{\"name\":\"gzip\",\"configuration\":{\"level\":5}}]");
    check_v3_text("lz4+zlib", SQUALL_UINT8,
                  "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}},"
                  "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}]");
    struct sq_codec_chain *chain = chain_of(SQ_CODEC_DEFAULT_SPEC, SQUALL_FLOAT32);
    assert_string_equal(sq_codec_chain_text(chain), "bytes + blosc(zstd, 5, shuffle)");
    assert_non_null(strstr(sq_codec_chain_identity(chain), "search=greedy"));
    assert_true(sq_codec_chain_limit_bytes(chain) == 2147483631);
    sq_codec_chain_free(chain);
    chain = chain_of("none", SQUALL_FLOAT32);
    assert_true(sq_codec_chain_is_plain(chain) && sq_codec_chain_limit_bytes(chain) == SIZE_MAX);
    sq_codec_chain_free(chain);
}

/* Of words only: the metadata's bitround is numcodecs', which knows no fill value. */
static void rounding_leaves_what_is_missing(void **state)
{
    (void)state;
    const float fill = -999;
    const uint32_t nans[] = {0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001};
    float values[8] = {fill, 1.2345f, -998.5f, INFINITY}, out[8];
    struct sq_codec_chain *chain = NULL;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t size;
    memcpy(values + 4, nans, sizeof nans);
    assert_int_equal(sq_codec_chain_parse("bitround:keepbits=3", SQUALL_FLOAT32, &fill, &chain, NULL), 0);
    assert_int_equal(sq_codec_chain_keepbits(chain), 3);
    assert_int_equal(sq_codec_encode(chain, scratch, 1, values, sizeof values, out, sizeof out, &size, NULL), 0);
    const float rounded[] = {fill, 1.25f, -1024, INFINITY};
    assert_memory_equal(out, rounded, sizeof rounded);
    assert_memory_equal(out + 4, nans, sizeof nans);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void check_parse_error(const char *spec, const char *part)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    assert_int_equal(sq_codec_chain_parse(spec, SQUALL_FLOAT32, NULL, &chain, &err), SQUALL_EINVAL);
    assert_null(chain);
    if (!strstr(err.message, part))
        fail_msg("%s: %s", spec, err.message);
}

static void a_chunk_beyond_the_codecs_limit_is_refused(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t byte = 0;
    size_t size = 77;
    struct sq_codec_chain *chain = chain_of("blosc", SQUALL_UINT8);
    assert_int_equal(sq_codec_encode(chain, scratch, 1, &byte, 2147483632U, &byte, SIZE_MAX, &size, &err), SQUALL_EINVAL);
    assert_non_null(strstr(err.message, "at most 2147483631"));
    assert_int_equal(size, 77);
    sq_codec_chain_free(chain);
    chain = chain_of("lz4", SQUALL_UINT8);
    assert_int_equal(sq_codec_encode(chain, scratch, 1, &byte, 2147483632U, &byte, SIZE_MAX, &size, &err), SQUALL_EINVAL);
    assert_int_equal(sq_codec_encode(chain, scratch, 1, &byte, 1, &byte, 1, &size, &err), SQUALL_EINVAL);
    assert_non_null(strstr(err.message, "bytes of room"));
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void a_wrong_word_is_named_with_what_is_possible(void **state)
{
    (void)state;
    check_parse_error("blsoc", "no codec is called \"blsoc\"; there are blosc, zstd");
    check_parse_error("", "no codec is called \"\"");
    check_parse_error("zstd+", "no codec is called \"\"");
    check_parse_error("numcodecs.lz4", "no codec is called");
    check_parse_error("blosc:clevel=10", "does not take \"clevel=10\"; it takes typesize=");
    check_parse_error("blosc:cname=brotli", "cname=zstd|lz4|lz4hc|zlib|blosclz|snappy");
    check_parse_error("blosc:search=quick", "search=full|greedy");
    check_parse_error("blosc:cname=1", "\"cname=1\"");
    check_parse_error("zstd:level", "\"level\"");
    check_parse_error("zstd:level=3x", "\"level=3x\"");
    check_parse_error("zstd:level=23", "level=-131072…22");
    check_parse_error("zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd+zstd", "more than 16 codecs");
}

static void check_bind_error(const char *codecs, enum squall_type type, int status, const char *part)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *json = json_of(codecs);
    struct sq_codec_chain *chain = NULL;
    assert_int_equal(sq_codec_chain_bind_v3(json, &(struct sq_codec_chunk){.dtype = sq_dtype_of(type)}, &chain, &err), status);
    assert_null(chain);
    if (!strstr(err.message, part))
        fail_msg("%s: %s", codecs, err.message);
    sq_json_free(json);
}

static void metadata_that_makes_no_sense_is_refused_by_name(void **state)
{
    (void)state;
    check_bind_error("[]", SQUALL_INT8, SQUALL_ECORRUPT, "codec's name");
    check_bind_error("{}", SQUALL_INT8, SQUALL_ECORRUPT, "codec's name");
    check_bind_error("[{\"name\":\"zfp\"}]", SQUALL_INT8, SQUALL_EUNSUPPORTED, "unsupported codec zfp");
    check_bind_error("[\"bytes\",\"bytes\"]", SQUALL_INT8, SQUALL_ECORRUPT, "after bytes");
    check_bind_error("[\"vlen-bytes\"]", SQUALL_STRING, SQUALL_ECORRUPT, "on an array of string");
    check_bind_error("[\"bytes\"]", SQUALL_STRING, SQUALL_ECORRUPT, "no fixed length");
    check_bind_error("[\"bytes\",\"numcodecs.pcodec\"]", SQUALL_INT8, SQUALL_EUNSUPPORTED, "unsupported codec numcodecs.pcodec");
    check_bind_error("[\"zstd\"]", SQUALL_INT8, SQUALL_ECORRUPT, "before \"bytes\"");
    check_bind_error("[\"vlen-utf8\"]", SQUALL_INT8, SQUALL_ECORRUPT, "on an array of int8");
    check_bind_error("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"middle\"}}]", SQUALL_INT32, SQUALL_ECORRUPT, "endian");
    check_bind_error("[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"clevel\":99}}]", SQUALL_INT32, SQUALL_ECORRUPT,
                     "\"clevel\" is 99");
    check_bind_error("[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"x\"}}]", SQUALL_INT32, SQUALL_ECORRUPT, "\"cname\"");
    check_bind_error("[\"bytes\",{}]", SQUALL_INT32, SQUALL_ECORRUPT, "codec 1 has no name");
}

static void v2_metadata_of_every_codec_is_bound(void **state)
{
    (void)state;
    static const char *const compressors[] = {
        "null",
        "{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":1,\"blocksize\":0}",
        "{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":-1,\"blocksize\":0,\"typesize\":null}",
        "{\"id\":\"zstd\",\"level\":0,\"checksum\":false}",
        "{\"id\":\"gzip\",\"level\":1}",
        "{\"id\":\"zlib\",\"level\":1}",
        "{\"id\":\"lz4\",\"acceleration\":1}",
        "{\"id\":\"crc32c\"}",
    };
    static const char *const texts[] = {"bytes",
                                        "bytes + blosc(lz4, 5, shuffle)",
                                        "bytes + blosc(lz4, 5, bitshuffle)",
                                        "bytes + zstd(0)",
                                        "bytes + gzip(1)",
                                        "bytes + zlib(1)",
                                        "bytes + lz4(1)",
                                        "bytes + crc32c"};
    for (unsigned i = 0; i < 8; i++) {
        struct sq_json *json = json_of(compressors[i]);
        struct sq_codec_chain *chain = NULL;
        assert_int_equal(sq_codec_chain_bind_v2(NULL, json, &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_UINT8)}, &chain, NULL), 0);
        assert_string_equal(sq_codec_chain_text(chain), texts[i]);
        sq_codec_chain_free(chain);
        sq_json_free(json);
    }
    struct sq_json *filters = json_of("[{\"id\":\"vlen-utf8\"}]");
    struct sq_json *compressor = json_of("{\"id\":\"zstd\"}");
    struct sq_json *lzma = json_of("[{\"id\":\"lzma\"}]");
    struct sq_codec_chain *chain = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(
        sq_codec_chain_bind_v2(filters, compressor, &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_STRING)}, &chain, NULL), 0);
    assert_string_equal(sq_codec_chain_text(chain), "vlen-utf8 + zstd(3)");
    sq_codec_chain_free(chain);
    assert_int_equal(sq_codec_chain_bind_v2(lzma, NULL, &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_INT32)}, &chain, &err),
                     SQUALL_EUNSUPPORTED);
    assert_string_equal(err.message, "unsupported codec lzma");
    sq_json_free(filters);
    sq_json_free(compressor);
    sq_json_free(lzma);
}

static void a_warm_scratch_allocates_nothing(void **state)
{
    (void)state;
    enum { BYTES = 900000 };
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *back = malloc(BYTES);
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        struct sq_codec_scratch *scratch = sq_codec_scratch_new();
        struct sq_codec_chain *chain = chain_of(specs[s], SQUALL_FLOAT32);
        size_t room = sq_codec_encode_bound(chain, BYTES), size;
        uint8_t *chunk = malloc(room);
        unsigned long before = 0;
        for (int round = 0; round < 4; round++) {
            if (round == 1)
                before = sq_allocation_count();
            assert_int_equal(sq_codec_encode(chain, scratch, 2, bytes, BYTES, chunk, room, &size, NULL), 0);
            assert_int_equal(sq_codec_decode(chain, scratch, 1, chunk, size, back, BYTES, NULL), 0);
        }
        assert_int_equal(sq_allocation_count(), before);
        free(chunk);
        sq_codec_chain_free(chain);
        sq_codec_scratch_free(scratch);
    }
    free(bytes), free(back);
}

static void a_failed_allocation_is_an_error_wherever_it_comes(void **state)
{
    (void)state;
    enum { BYTES = 600000 };
    uint8_t *bytes = make_bytes(SMOOTH, BYTES), *back = malloc(BYTES);
    for (unsigned s = 0; s < SPEC_COUNT; s++) {
        for (long after = 0, failures = 1; failures > 0; after++) {
            failures = 0;
            sq_fail_allocation(after);
            struct sq_codec_scratch *scratch = sq_codec_scratch_new();
            struct sq_codec_chain *chain = NULL;
            failures += !scratch || sq_codec_chain_parse(specs[s], SQUALL_FLOAT32, NULL, &chain, NULL) != 0;
            if (scratch && chain) {
                size_t room = sq_codec_encode_bound(chain, BYTES), size = 0;
                uint8_t *chunk = malloc(room);
                int status = sq_codec_encode(chain, scratch, 3, bytes, BYTES, chunk, room, &size, NULL);
                if (!status)
                    status = sq_codec_decode(chain, scratch, 1, chunk, size, back, BYTES, NULL);
                assert_true(status == 0 || status == SQUALL_ENOMEM);
                failures += status != 0;
                free(chunk);
            }
            sq_codec_chain_free(chain);
            sq_codec_scratch_free(scratch);
            sq_fail_allocation(-1);
            assert_true(after < 100);
        }
    }
    free(bytes), free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_back_what_it_took),
        cmocka_unit_test(full_search_is_libblosc_byte_for_byte),
        cmocka_unit_test(every_level_is_libblosc_byte_for_byte),
        cmocka_unit_test(a_block_size_asked_for_is_libblosc_byte_for_byte),
        cmocka_unit_test(data_at_the_edge_of_compressible_is_libblosc_byte_for_byte),
        cmocka_unit_test(all_of_libblosc_is_read),
        cmocka_unit_test(greedy_search_is_read_by_libblosc_and_the_same_on_any_threads),
        cmocka_unit_test(ranges_and_threads_give_what_the_whole_has),
        cmocka_unit_test(blocks_may_be_stored_in_any_order),
        cmocka_unit_test(ranges_of_other_chains_are_parts_too),
        cmocka_unit_test(shuffles_equal_their_definition_with_and_without_wide_registers),
        cmocka_unit_test(zstd_frames_of_every_kind_are_read),
        cmocka_unit_test(gzip_members_and_padding_are_read),
        cmocka_unit_test(deflate_that_we_write_is_read_by_zlib),
        cmocka_unit_test(big_endian_elements_are_turned),
        cmocka_unit_test(crc32c_is_the_standards_and_is_checked),
        cmocka_unit_test(strings_travel_with_their_lengths),
        cmocka_unit_test(a_string_that_cannot_be_allocated_leaks_nothing),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_chunk_of_another_size_is_refused),
        cmocka_unit_test(flipped_bytes_do_no_harm),
        cmocka_unit_test(impossible_blosc_headers_are_refused),
        cmocka_unit_test(metadata_says_what_the_chain_is),
        cmocka_unit_test(a_chunk_beyond_the_codecs_limit_is_refused),
        cmocka_unit_test(a_wrong_word_is_named_with_what_is_possible),
        cmocka_unit_test(metadata_that_makes_no_sense_is_refused_by_name),
        cmocka_unit_test(rounding_leaves_what_is_missing),
        cmocka_unit_test(v2_metadata_of_every_codec_is_bound),
        cmocka_unit_test(a_warm_scratch_allocates_nothing),
        cmocka_unit_test(a_failed_allocation_is_an_error_wherever_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
