/*
 * Codec chains for tests/python/test_codecs.py and test_hdf5_filters.py, which load this with ctypes: bind a chain to what a JSON request
 * says, then decode or encode.
 */
#include "base/json.h"
#include "codec/hdf5_filters.h"
#include <stdlib.h>
#include <string.h>

int codec_try(const char *request, int encode, const void *src, size_t src_size, void *dst, size_t dst_size, size_t *ret_size,
              struct squall_error *err);

static uint64_t number(const struct sq_json *request, const char *key)
{
    uint64_t value = 0;
    (void)sq_json_uint(sq_json_get(request, key), &value);
    return value;
}

enum { FILTERS_MAX = 8, VALUES_MAX = 256 };

/* [{"id": 2, "values": [4]}, …] */
static int bind_hdf5(const struct sq_json *list, const struct sq_codec_chunk *chunk, struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_hdf5_filter filters[FILTERS_MAX];
    uint32_t values[FILTERS_MAX][VALUES_MAX];
    size_t count = sq_json_count(list);
    for (size_t i = 0; i < count && i < FILTERS_MAX; i++) {
        const struct sq_json *filter = sq_json_at(list, i), *given = sq_json_get(filter, "values");
        filters[i] = (struct sq_hdf5_filter){
            .id = (uint16_t)number(filter, "id"), .value_count = (unsigned)sq_json_count(given), .values = values[i]};
        for (size_t k = 0; k < filters[i].value_count && k < VALUES_MAX; k++) {
            uint64_t value = 0;
            (void)sq_json_uint(sq_json_at(given, k), &value);
            values[i][k] = (uint32_t)value;
        }
    }
    return sq_codec_chain_bind_hdf5(filters, count, chunk, ret, err);
}

static int bind(const struct sq_json *request, struct sq_codec_chain **ret, struct squall_error *err)
{
    const struct sq_json *shape = sq_json_get(request, "shape"), *fill = sq_json_get(request, "fill");
    struct sq_codec_chunk chunk = {.big_endian = number(request, "big_endian"), .column_major = number(request, "column_major")};
    uint64_t lengths[SQUALL_RANK_MAX];
    uint8_t bytes[64];
    for (size_t i = 0; i < sq_json_count(fill); i++) {
        uint64_t byte = 0;
        (void)sq_json_uint(sq_json_at(fill, i), &byte);
        bytes[i] = (uint8_t)byte;
    }
    chunk.fill = fill ? bytes : NULL;
    chunk.rank = (unsigned)sq_json_count(shape);
    chunk.shape = lengths;
    for (unsigned d = 0; d < chunk.rank; d++)
        (void)sq_json_uint(sq_json_at(shape, d), &lengths[d]);
    if (!sq_type_from_name(sq_json_string(sq_json_get(request, "type")), &chunk.dtype.type))
        abort();
    chunk.dtype.element_bytes = (uint32_t)number(request, "element_bytes");
    chunk.dtype.order_bytes = (uint32_t)number(request, "order_bytes");
    const struct sq_json *codecs = sq_json_get(request, "codecs");
    if (sq_json_get(request, "hdf5"))
        return bind_hdf5(sq_json_get(request, "hdf5"), &chunk, ret, err);
    if (codecs)
        return sq_codec_chain_bind_v3(codecs, &chunk, ret, err);
    return sq_codec_chain_bind_v2(sq_json_get(request, "filters"), sq_json_get(request, "compressor"), &chunk, ret, err);
}

/* From and into memory of just their size, where a sanitizer sees what is beyond. */
static int work(const struct sq_codec_chain *chain, unsigned threads, uint32_t skip_mask, int encode, const uint8_t *src, size_t src_size,
                void *dst, size_t dst_size, size_t *ret_size, struct squall_error *err)
{
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    *ret_size = dst_size;
    int status = encode ? sq_codec_encode(chain, scratch, threads, src, src_size, dst, dst_size, ret_size, err)
                        : sq_codec_decode_masked(chain, scratch, threads, skip_mask, src, src_size, dst, dst_size, err);
    sq_codec_scratch_free(scratch);
    return status;
}

int codec_try(const char *request, int encode, const void *src, size_t src_size, void *dst, size_t dst_size, size_t *ret_size,
              struct squall_error *err)
{
    struct sq_json *json = NULL;
    struct sq_codec_chain *chain = NULL;
    int status = sq_json_parse(request, strlen(request), &json, err);
    if (!status)
        status = bind(json, &chain, err);
    if (!status && encode && dst_size < sq_codec_encode_bound(chain, src_size))
        dst_size = 0; /* the caller gives plenty */
    if (!status)
        status = work(chain, (unsigned)number(json, "threads"), (uint32_t)number(json, "mask"), encode, src, src_size, dst, dst_size,
                      ret_size, err);
    sq_codec_chain_free(chain);
    sq_json_free(json);
    return status;
}
