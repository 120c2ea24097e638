/*
 * Stored chunks: the first byte chooses a chain, so that each codec, and the index of shards, is met by itself and behind others. What
 * comes out is a chunk or an error with a message; a range is the same as that part of the whole.
 */
#include "array/bytes.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX  "\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]"
#define SHARD(inner, index)                                                                                                                \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,8],\"codecs\":[" inner "],\"index_codecs\":[" index "]}}"
#define FILTER(name, settings) "[{\"name\":\"numcodecs." name "\",\"configuration\":{" settings "}}," LITTLE "]"

static const struct target {
    enum squall_type type;
    const char *codecs;
} targets[] = {
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"blosc\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"zstd\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"gzip\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"numcodecs.zlib\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"numcodecs.lz4\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"numcodecs.bz2\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"numcodecs.shuffle\"}]"},
    {SQUALL_FLOAT32, "[" LITTLE ",{\"name\":\"crc32c\"},{\"name\":\"numcodecs.fletcher32\"}]"},
    {SQUALL_INT16, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},{\"name\":\"zstd\"},{\"name\":\"gzip\"}]"},
    {SQUALL_STRING, "[{\"name\":\"vlen-utf8\"}]"},
    {SQUALL_BYTES, "[{\"name\":\"vlen-bytes\"},{\"name\":\"zstd\"}]"},
    {SQUALL_BOOL, "[{\"name\":\"packbits\",\"configuration\":{\"padding_encoding\":\"first_byte\"}}]"},
    {SQUALL_INT32, "[{\"name\":\"packbits\",\"configuration\":{\"first_bit\":3,\"last_bit\":13}}]"},
    {SQUALL_BOOL, FILTER("packbits", "")},
    {SQUALL_INT32, FILTER("delta", "\"dtype\":\"<i4\",\"astype\":\"<i2\"")},
    {SQUALL_FLOAT64, FILTER("fixedscaleoffset", "\"dtype\":\"<f8\",\"astype\":\"<u2\",\"scale\":10,\"offset\":-1.5")},
    {SQUALL_FLOAT64, FILTER("astype", "\"encode_dtype\":\"<f2\",\"decode_dtype\":\"<f8\"")},
    {SQUALL_INT16, "[{\"name\":\"scale_offset\",\"configuration\":{\"offset\":5,\"scale\":3}}," LITTLE "]"},
    {SQUALL_INT16, "[{\"name\":\"cast_value\",\"configuration\":{\"data_type\":\"float64\"}}," LITTLE "]"},
    {SQUALL_INT16, "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE ",{\"name\":\"zstd\"}]"},
    {SQUALL_INT16, "[" SHARD(LITTLE, LITTLE) "]"},
    {SQUALL_INT16, "[" SHARD(LITTLE ",{\"name\":\"zstd\"}", LITTLE ",{\"name\":\"crc32c\"}") ",{\"name\":\"zstd\"}]"},
    {SQUALL_STRING, "[" SHARD("{\"name\":\"vlen-utf8\"}", LITTLE) "]"},
};
enum { TARGETS = sizeof targets / sizeof *targets, CELLS = 32 };

static struct sq_codec_chain *chain_of(const struct target *target)
{
    static const uint64_t shape[] = {4, 8};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(target->type), .rank = 2, .shape = shape};
    struct sq_json *codecs = NULL;
    struct sq_codec_chain *chain = NULL;
    require(sq_json_parse(target->codecs, strlen(target->codecs), &codecs, NULL) == 0);
    require(sq_codec_chain_bind_v3(codecs, &chunk, &chain, NULL) == 0);
    sq_json_free(codecs);
    return chain;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const struct target *target = &targets[data[0] % TARGETS];
    static struct sq_codec_chain *chains[TARGETS]; /* as in use: bound once, the scratch warm from other chunks */
    static struct sq_codec_scratch *scratch;
    struct sq_codec_chain **chain_slot = &chains[data[0] % TARGETS], *chain;
    if (!scratch)
        require((scratch = sq_codec_scratch_new()) != NULL);
    if (!*chain_slot)
        *chain_slot = chain_of(target);
    chain = *chain_slot;
    struct squall_error err = SQUALL_ERROR_INIT, range_err = SQUALL_ERROR_INIT;
    size_t bytes = CELLS * sq_dtype_of(target->type).element_bytes;
    uint8_t *chunk = malloc(bytes), part[5];
    int status = sq_codec_decode(chain, scratch, 1 + data[0] / TARGETS % 3, data + 1, size - 1, chunk, bytes, &err);
    require(status == 0 || err.message[0]);
    require(status == 0 || status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED || status == SQUALL_ENOMEM);
    if (!sq_type_is_variable(target->type)) {
        const struct sq_codec_input input = {.bytes = data + 1, .size_bytes = size - 1};
        const struct sq_codec_range range = {.chunk_bytes = bytes, .from_bytes = bytes / 3, .count_bytes = sizeof part};
        int range_status = sq_codec_decode_range(chain, scratch, 1, &input, &range, part, NULL, &range_err);
        require(status != 0 || (range_status == 0 && memcmp(part, chunk + bytes / 3, sizeof part) == 0));
    } else if (status == 0) {
        sq_bytes_free((void *)chunk, CELLS);
    }
    free(chunk);
    return 0;
}
