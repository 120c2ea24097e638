/* What one thread needs to code: contexts and buffers, made when first needed and kept, so that a warm one allocates nothing. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec_internal.h"

struct sq_codec_scratch *sq_codec_scratch_new(void)
{
    return sq_alloc_zero(1, sizeof(struct sq_codec_scratch));
}

void sq_codec_scratch_free(struct sq_codec_scratch *scratch)
{
    if (!scratch)
        return;
    ZSTD_freeCCtx(scratch->zstd_encoder);
    ZSTD_freeDCtx(scratch->zstd_decoder);
    libdeflate_free_compressor(scratch->deflater);
    libdeflate_free_decompressor(scratch->inflater);
    struct sq_codec_buffer *buffers[] = {&scratch->between[0], &scratch->between[1], &scratch->whole, &scratch->block,
                                         &scratch->slots,      &scratch->index,      &scratch->stored};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        sq_pages_free(buffers[i]->data, buffers[i]->capacity);
    for (size_t i = 0; i < scratch->helper_count; i++)
        sq_codec_scratch_free(scratch->helpers[i]);
    sq_free(scratch->helpers);
    sq_codec_scratch_free(scratch->inner);
    sq_free(scratch);
}

int sq_codec_reserve(struct sq_codec_buffer *buffer, size_t size_bytes, struct squall_error *err)
{
    if (size_bytes <= buffer->capacity)
        return 0;
    uint8_t *data = sq_pages_alloc(size_bytes);
    if (!data)
        return sq_error_memory(err, size_bytes);
    sq_pages_free(buffer->data, buffer->capacity);
    buffer->data = data;
    buffer->capacity = size_bytes;
    return 0;
}

int sq_codec_helpers_ready(struct sq_codec_scratch *scratch, unsigned threads, struct squall_error *err)
{
    size_t need = threads > 1 ? threads - 1 : 0;
    SQ_TRY(SQ_GROW(scratch->helpers, scratch->helper_capacity, need, err));
    while (scratch->helper_count < need) {
        struct sq_codec_scratch *helper = sq_codec_scratch_new();
        if (!helper)
            return sq_error_memory(err, sizeof *helper);
        scratch->helpers[scratch->helper_count++] = helper;
    }
    return 0;
}

struct sq_codec_scratch *sq_codec_worker_scratch(struct sq_codec_scratch *scratch, unsigned worker)
{
    return worker == 0 ? scratch : scratch->helpers[worker - 1];
}

static void *told(void *tool, const char *what, struct squall_error *err)
{
    if (!tool)
        (void)sq_error(err, SQUALL_ENOMEM, "out of memory for %s", what);
    return tool;
}

ZSTD_CCtx *sq_codec_zstd_encoder(struct sq_codec_scratch *scratch, struct squall_error *err)
{
    if (!scratch->zstd_encoder)
        scratch->zstd_encoder = ZSTD_createCCtx();
    return told(scratch->zstd_encoder, "a zstd encoder", err);
}

ZSTD_DCtx *sq_codec_zstd_decoder(struct sq_codec_scratch *scratch, struct squall_error *err)
{
    if (!scratch->zstd_decoder)
        scratch->zstd_decoder = ZSTD_createDCtx();
    return told(scratch->zstd_decoder, "a zstd decoder", err);
}

struct libdeflate_decompressor *sq_codec_inflater(struct sq_codec_scratch *scratch, struct squall_error *err)
{
    if (!scratch->inflater)
        scratch->inflater = libdeflate_alloc_decompressor();
    return told(scratch->inflater, "a deflate decoder", err);
}

struct libdeflate_compressor *sq_codec_deflater(struct sq_codec_scratch *scratch, int level, struct squall_error *err)
{
    if (!scratch->deflater || scratch->deflater_level != level) {
        libdeflate_free_compressor(scratch->deflater);
        scratch->deflater = libdeflate_alloc_compressor(level);
        scratch->deflater_level = level;
    }
    return told(scratch->deflater, "a deflate encoder", err);
}

struct sq_codec_scratch *sq_codec_inner_scratch(struct sq_codec_scratch *scratch, struct squall_error *err)
{
    if (!scratch->inner)
        scratch->inner = sq_codec_scratch_new();
    return told(scratch->inner, "what an inner chunk takes to be coded", err);
}
