/*
 * Zarr array documents. The first byte chooses the version; what is read must keep to its promises (metadata.h), and the keys of its
 * chunks must stay within the array's folder.
 */
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* They rise, and cover the dimension. */
static void check_edges(const struct sq_zarr_array *a, unsigned d)
{
    const uint64_t *edges = a->edges[d];
    require(!edges || (edges[0] == 0 && a->edge_counts[d] >= 2 && edges[a->edge_counts[d] - 1] >= a->shape[d]));
    for (uint64_t k = 1; edges && k < a->edge_counts[d]; k++)
        require(edges[k] > edges[k - 1] && edges[k] - edges[k - 1] <= a->chunks[d]);
}

static void check_array(const struct sq_zarr_array *a)
{
    uint64_t chunk[SQUALL_RANK_MAX] = {0}, elements = 1;
    require(a->type_name && a->codec_names && a->attributes && a->rank <= SQUALL_RANK_MAX);
    require(a->unsupported ? !a->codecs : a->codecs != NULL);
    for (unsigned d = 0; d < a->rank; d++) {
        require(a->dims[d] && a->shape[d] <= INT64_MAX);
        chunk[d] = a->shape[d];
        elements *= a->chunks[d];
        check_edges(a, d);
    }
    if (a->unsupported)
        return;
    require(elements == a->chunk_elements && elements > 0 && elements <= UINT64_C(1) << 40);
    require(a->fill && a->dtype.element_bytes > 0 && a->numpy_type[0]);
    require(a->dtype.type != SQUALL_STRING || ((const struct squall_bytes *)a->fill)->data);
    char *key = sq_zarr_chunk_key(a, chunk);
    require(key && key[0] != '/' && !strstr(key, "..") && !strstr(key, "//"));
    sq_free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sq_json *document = NULL;
    struct sq_zarr_array a = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    if (size < 1 || sq_json_parse((const char *)data + 1, size - 1, &document, NULL))
        return 0;
    const struct sq_json *attributes = sq_json_get(document, "attributes");
    int status = data[0] & 1 ? sq_zarr_parse_v3(document, &a, &err) : sq_zarr_parse_v2(document, attributes, &a, &err);
    if (!status)
        check_array(&a);
    else
        require(status == SQUALL_ECORRUPT && err.message[0]);
    sq_zarr_array_done(&a);
    sq_json_free(document);
    return 0;
}
