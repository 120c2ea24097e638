/*
 * Lists of codecs: the first byte chooses the element type, the second the version, the rest is JSON. What is bound gives itself back as
 * metadata, and what it encodes it decodes, into as many bytes.
 */
#include "base/memory.h"
#include "codec/codec.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

enum { CELLS = 24 };

static void round_trip(const struct sq_codec_chain *chain, size_t bytes)
{
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t room = sq_codec_encode_bound(chain, bytes), stored_bytes = 0;
    uint8_t *chunk = calloc(bytes, 1), *stored = malloc(room + !room);
    for (size_t i = 0; i < bytes / 2; i++)
        chunk[i] = i % 3 == 0;
    if (sq_codec_encode(chain, scratch, 2, chunk, bytes, stored, room, &stored_bytes, NULL) == 0) {
        require(stored_bytes <= room);
        int status = sq_codec_decode(chain, scratch, 2, stored, stored_bytes, chunk, bytes, NULL);
        require(status == 0 || strstr(sq_codec_chain_text(chain), "cast_value")); /* its two maps need not be each other's inverse */
    }
    free(chunk);
    free(stored);
    sq_codec_scratch_free(scratch);
}

static void check(const struct sq_codec_chain *chain, const struct sq_codec_chunk *chunk, bool is_v3)
{
    struct sq_json *codecs = sq_codec_chain_json_v3(chain, false);
    struct sq_codec_chain *again = NULL;
    require(codecs && sq_codec_chain_text(chain)[0] && sq_codec_chain_identity(chain)[0]);
    (void)sq_codec_chain_limit_bytes(chain);
    if (is_v3)
        require(sq_codec_chain_bind_v3(codecs, chunk, &again, NULL) == 0);
    sq_codec_chain_free(again);
    sq_json_free(codecs);
    if (!sq_type_is_variable(chunk->dtype.type) && sq_codec_encode_bound(chain, CELLS * chunk->dtype.element_bytes) < 1 << 24)
        round_trip(chain, CELLS * chunk->dtype.element_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t shape[] = {2, 3, 4};
    struct sq_json *json = NULL;
    struct sq_codec_chain *chain = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (size < 2 || sq_json_parse((const char *)data + 2, size - 2, &json, NULL))
        return 0;
    enum squall_type type = (enum squall_type)(data[0] % (SQUALL_TIMEDELTA64 + 1));
    const struct sq_codec_chunk chunk = {
        .dtype = sq_dtype_of(type), .rank = 3, .shape = shape, .big_endian = data[1] & 2, .column_major = data[1] & 4};
    bool is_v3 = data[1] & 1;
    struct sq_codec_chunk c = chunk;
    if (is_v3)
        c.big_endian = c.column_major = false;
    int status = is_v3 ? sq_codec_chain_bind_v3(json, &c, &chain, &err)
                       : sq_codec_chain_bind_v2(sq_json_get(json, "filters"), sq_json_get(json, "compressor"), &c, &chain, &err);
    require(status == 0 || err.message[0]);
    if (status == 0)
        check(chain, &c, is_v3);
    sq_codec_chain_free(chain);
    sq_json_free(json);
    return 0;
}
