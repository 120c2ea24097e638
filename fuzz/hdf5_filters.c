/*
 * Pipelines of HDF5's filters and chunks at once: a byte that counts filters; for each a byte that chooses which, one that counts its
 * values, and these; the mask of filters to leave out; the stored chunk. What comes out is a chunk or an error with a message.
 */
#include "codec/hdf5_filters.h"
#include "base/cursor.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

enum { FILTERS_MAX = 3, VALUES_MAX = 64, CELLS = 48 };

static const uint16_t ids[] = {1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32015, 32013};

static struct sq_codec_chain *chain_of(struct sq_cursor *c, uint32_t values[FILTERS_MAX][VALUES_MAX])
{
    static const uint64_t shape[] = {CELLS};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(SQUALL_INT32), .rank = 1, .shape = shape};
    struct sq_hdf5_filter filters[FILTERS_MAX];
    struct sq_codec_chain *chain = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    size_t count = sq_u8(c) % (FILTERS_MAX + 1);
    for (size_t i = 0; i < count; i++) {
        filters[i] = (struct sq_hdf5_filter){.id = ids[sq_u8(c) % (sizeof ids / sizeof *ids)], .values = values[i]};
        filters[i].value_count = sq_u8(c) % (VALUES_MAX + 1);
        for (unsigned k = 0; k < filters[i].value_count; k++)
            values[i][k] = sq_u32le(c);
    }
    int status = sq_codec_chain_bind_hdf5(filters, count, &chunk, &chain, &err);
    require((status == 0) == (chain != NULL) && (status == 0 || err.message[0]));
    require(status == 0 || status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED || status == SQUALL_ENOMEM);
    return chain;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sq_cursor c = sq_cursor(data, size);
    uint32_t values[FILTERS_MAX][VALUES_MAX];
    static struct sq_codec_scratch *scratch; /* warm from other chunks, as in use */
    struct squall_error err = SQUALL_ERROR_INIT;
    if (!scratch)
        require((scratch = sq_codec_scratch_new()) != NULL);
    struct sq_codec_chain *chain = chain_of(&c, values);
    uint32_t mask = sq_u8(&c);
    if (!chain || sq_cursor_failed(&c)) {
        sq_codec_chain_free(chain);
        return 0;
    }
    require(sq_codec_chain_text(chain)[0] && sq_codec_chain_identity(chain)[0]);
    size_t stored_bytes = sq_cursor_left(&c), chunk_bytes = CELLS * sizeof(int32_t);
    uint8_t *chunk = malloc(chunk_bytes);
    int status = sq_codec_decode_masked(chain, scratch, 1, mask, sq_take(&c, stored_bytes), stored_bytes, chunk, chunk_bytes, &err);
    require(status == 0 || err.message[0]);
    require(status == 0 || status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED || status == SQUALL_ENOMEM);
    free(chunk);
    sq_codec_chain_free(chain);
    return 0;
}
