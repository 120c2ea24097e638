/* What the tests of codecs share: chains from texts, random bytes, a round trip in buffers of just their size. */
#ifndef SQ_TESTS_SUPPORT_CODECS_H
#define SQ_TESTS_SUPPORT_CODECS_H

#include "base/json.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 0x9e3779b97f4a7c15U;

static inline uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline uint8_t *random_bytes(size_t size)
{
    uint8_t *bytes = malloc(size + 8);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_bits();
    return bytes;
}

static inline struct sq_json *json_of(const char *text)
{
    struct sq_json *json = NULL;
    assert_int_equal(sq_json_parse(text, strlen(text), &json, NULL), 0);
    return json;
}

static inline void check_ok(int status, const struct squall_error *err)
{
    if (status)
        print_error("%s\n", err->message);
    assert_int_equal(status, 0);
}

static inline struct sq_codec_chain *bind_v3(const char *codecs, const struct sq_codec_chunk *chunk)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *json = json_of(codecs);
    struct sq_codec_chain *chain = NULL;
    check_ok(sq_codec_chain_bind_v3(json, chunk, &chain, &err), &err);
    sq_json_free(json);
    return chain;
}

static inline void check_bind_v3_error(const char *codecs, const struct sq_codec_chunk *chunk, int status, const char *part)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *json = json_of(codecs);
    struct sq_codec_chain *chain = NULL;
    assert_int_equal(sq_codec_chain_bind_v3(json, chunk, &chain, &err), status);
    assert_null(chain);
    if (!strstr(err.message, part))
        fail_msg("%s: %s", codecs, err.message);
    sq_json_free(json);
}

/* filters, compressor: NULL for none */
static inline struct sq_codec_chain *bind_v2(const char *filters, const char *compressor, const struct sq_codec_chunk *chunk)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *f = filters ? json_of(filters) : NULL, *c = compressor ? json_of(compressor) : NULL;
    struct sq_codec_chain *chain = NULL;
    check_ok(sq_codec_chain_bind_v2(f, c, chunk, &chain, &err), &err);
    sq_json_free(f);
    sq_json_free(c);
    return chain;
}

/* In memory of its own size, so that a sanitizer sees any byte read beyond it. */
static inline uint8_t *encoded(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                               size_t src_size, size_t *ret_size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    size_t room = sq_codec_encode_bound_of(chain, src, src_size);
    uint8_t *dst = malloc(room + !room);
    check_ok(sq_codec_encode(chain, scratch, threads, src, src_size, dst, room, ret_size, &err), &err);
    assert_true(*ret_size <= room);
    return realloc(dst, *ret_size ? *ret_size : 1);
}

/* Decode into exactly size bytes and compare. */
static inline void check_decodes(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads,
                                 const uint8_t *chunk, size_t chunk_size, const void *expected, size_t size)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t *back = malloc(size ? size : 1);
    check_ok(sq_codec_decode(chain, scratch, threads, chunk, chunk_size, back, size, &err), &err);
    assert_memory_equal(back, expected, size);
    free(back);
}

/* The error that decoding gives, into size bytes. */
static inline void check_refused(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const uint8_t *chunk,
                                 size_t chunk_size, size_t size, int status, const char *part)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t *exact = malloc(chunk_size + !chunk_size), *back = malloc(size + !size);
    memcpy(exact, chunk, chunk_size);
    assert_int_equal(sq_codec_decode(chain, scratch, 1, exact, chunk_size, back, size, &err), status);
    if (!strstr(err.message, part))
        fail_msg("%s", err.message);
    free(exact), free(back);
}

#endif
