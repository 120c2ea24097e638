/*
 * The chunks of HDF5's arrays: one lies where the dataset's index says, which is read whole when it is first needed; and how its bytes become elements.
 */
#include "array/bytes.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/hdf5_internal.h"
#include "engine/scatter.h"
#include <inttypes.h>
#include <string.h>

/* ---- where chunks lie ------------------------------------------------------------------------------------------------------------- */

/* The index as it is in the file that was opened: one that changed since then says so, whatever was found in it. */
static int load_index(const struct sq_hdf5_array *h, struct sq_hdf5_chunk_index **ret, struct squall_error *err)
{
    struct sq_hdf5_chunk_index *index = NULL;
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = sq_hdf5_chunk_index_load(h->data->file, &h->layout, h->space.shape, h->space.maximum, h->filters != NULL, &index, &reason);
    int changed = sq_source_check_unchanged(h->data->file->source, err);
    if (status || changed) {
        sq_hdf5_chunk_index_free(index);
        if (!changed && err)
            *err = reason;
        return changed ? changed : status;
    }
    *ret = index;
    return 0;
}

/*
 * Threads that need the index at the same time may each read it, and all but one throw theirs away: no lock is held, so a fork at any moment
 * leaves none locked.
 */
int sq_hdf5_array_index(struct sq_hdf5_array *h, const struct sq_hdf5_chunk_index **ret, struct squall_error *err)
{
    struct sq_hdf5_chunk_index *index = atomic_load(&h->index), *loaded = NULL;
    if (!index) {
        SQ_TRY(load_index(h, &loaded, err));
        if (atomic_compare_exchange_strong(&h->index, &index, loaded))
            index = loaded;
        else
            sq_hdf5_chunk_index_free(loaded);
    }
    *ret = index;
    return 0;
}

/* A chunk that was never written, where the elements of an array type have different fill values: as the index, when it is first needed. */
static int locate_pattern(struct sq_hdf5_array *h, struct sq_location *ret, struct squall_error *err)
{
    const size_t one = h->elements.inner_count * h->elements.dtype.element_bytes;
    uint8_t *pattern = atomic_load(&h->pattern);
    uint64_t count = 1, bytes;
    for (unsigned d = 0; d < h->rank; d++)
        count = sq_mul_u64(count, h->chunks[d], &count) ? count : UINT64_MAX;
    if (!pattern) {
        if (!sq_mul_u64(count, one, &bytes) || bytes > h->base.dataset->ctx->memory_bytes)
            return sq_error(err, SQUALL_ENOMEM, "a chunk of fill values is larger than the memory that may be used");
        uint8_t *made = sq_alloc((size_t)count, one);
        if (!made)
            return sq_error_memory(err, bytes);
        sq_scatter_fill(made, (size_t)count, one, h->fill_pattern);
        if (atomic_compare_exchange_strong(&h->pattern, &pattern, made))
            pattern = made;
        else
            sq_free(made);
    }
    *ret = (struct sq_location){.state = SQ_CHUNK_INLINE, .elements = pattern};
    return 0;
}

static int locate_missing(struct sq_hdf5_array *h, struct sq_location *ret, struct squall_error *err)
{
    *ret = (struct sq_location){.state = SQ_CHUNK_MISSING};
    return h->fill_pattern ? locate_pattern(h, ret, err) : 0;
}

static int prepare(const struct squall_array *a, struct squall_error *err)
{
    struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    const struct sq_hdf5_chunk_index *index;
    return h->layout.kind == SQ_HDF5_CHUNKED ? sq_hdf5_array_index(h, &index, err) : 0;
}

/* Does the dataset end before the chunk does? */
static bool is_edge(const struct sq_hdf5_array *h, const uint64_t *chunk)
{
    for (unsigned d = 0; d < h->layout.rank; d++)
        if (h->layout.chunk[d] > h->space.shape[d] - chunk[d] * h->layout.chunk[d])
            return true;
    return false;
}

/* … or even before it begins, where the variable goes on? */
static bool is_beyond(const struct sq_hdf5_array *h, const uint64_t *chunk)
{
    for (unsigned d = 0; d < h->layout.rank; d++)
        if (chunk[d] * h->layout.chunk[d] >= h->space.shape[d])
            return true;
    return false;
}

/* size_bytes at an address of the file. */
static int locate_bytes(const struct sq_hdf5_array *h, uint64_t address, uint64_t size_bytes, struct sq_location *ret,
                        struct squall_error *err)
{
    const struct sq_hdf5_file *f = h->data->file;
    uint64_t end;
    if (!sq_add_u64(address, size_bytes, &end) || end > f->end)
        return SQ_HDF5_DAMAGED(f, address, err, "%" PRIu64 " bytes of data reach beyond the end of the file; it was cut off, or is damaged",
                               size_bytes);
    *ret = (struct sq_location){.state = SQ_CHUNK_PRESENT, .source = f->source, .offset = f->base + address, .size_bytes = size_bytes};
    return 0;
}

static int locate_chunk(struct sq_hdf5_array *h, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    const struct sq_hdf5_chunk_index *index;
    struct sq_hdf5_chunk found;
    SQ_TRY(sq_hdf5_array_index(h, &index, err));
    if (is_beyond(h, chunk) || !sq_hdf5_chunk_find(index, chunk, &found))
        return locate_missing(h, ret, err);
    SQ_TRY(locate_bytes(h, found.address, found.size_bytes, ret, err));
    ret->param = h->layout.edges_unfiltered && is_edge(h, chunk) ? UINT32_MAX : found.skip_mask;
    return 0;
}

/* A piece of what lies together; the last ones along a dimension are shorter than the others. */
static int locate_piece(struct sq_hdf5_array *h, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    const struct squall_array_info *info = &h->base.info;
    uint64_t first = 0, count = 1, elements = 1;
    if (h->layout.address == SQ_HDF5_NOWHERE)
        return locate_missing(h, ret, err);
    for (unsigned d = 0; d < h->rank; d++) {
        first = first * info->shape[d] + chunk[d] * info->chunks[d];
        count *= info->chunks[d];
        elements *= info->shape[d];
    }
    const uint64_t here = elements - first < count ? elements - first : count;
    SQ_TRY(locate_bytes(h, h->layout.address + first * h->elements.stored_bytes, here * h->elements.stored_bytes, ret, err));
    if (h->base.plain)
        ret->size_bytes = count * h->elements.stored_bytes; /* of which only what is wanted is read */
    return 0;
}

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    switch (h->layout.kind) {
    case SQ_HDF5_CHUNKED:
        return locate_chunk(h, chunk, ret, err);
    case SQ_HDF5_CONTIGUOUS:
        return locate_piece(h, chunk, ret, err);
    default:
        *ret = (struct sq_location){.state = SQ_CHUNK_PRESENT, .source = h->compact, .size_bytes = sq_source_size(h->compact)};
        return 0;
    }
}

static int stored_bytes(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    const struct sq_hdf5_chunk_index *index;
    if (a->info.unsupported)
        *ret = 0;
    else if (h->layout.kind != SQ_HDF5_CHUNKED)
        *ret = h->layout.kind == SQ_HDF5_CONTIGUOUS && h->layout.address == SQ_HDF5_NOWHERE ? 0 : h->layout.size_bytes;
    else {
        SQ_TRY(sq_hdf5_array_index(h, &index, err));
        *ret = sq_hdf5_chunk_index_bytes(index);
    }
    return 0;
}

static int storage(const struct squall_array *a, struct sq_text *out, struct squall_error *err)
{
    (void)err;
    sq_text_add(out, sq_hdf5_array_of(a)->storage);
    return 0;
}

/* ---- decoding --------------------------------------------------------------------------------------------------------------------- */

struct scratch {
    struct sq_codec_scratch *codec;
    void *stored; /* a chunk's elements as they are stored, behind the filters */
    size_t capacity;
};

static void scratch_free(void *user)
{
    struct scratch *s = user;
    sq_codec_scratch_free(s->codec);
    sq_pages_free(s->stored, s->capacity);
    sq_free(s);
}

static void *scratch_new(const struct squall_array *a)
{
    struct scratch *s = sq_alloc_zero(1, sizeof *s);
    (void)a;
    if (s && (s->codec = sq_codec_scratch_new()))
        return s;
    sq_free(s);
    return NULL;
}

static int reserve(struct scratch *s, const struct sq_hdf5_array *h, size_t size_bytes, struct squall_error *err)
{
    if (size_bytes > h->base.dataset->ctx->memory_bytes)
        return sq_error(err, SQUALL_ENOMEM, "a chunk needs %zu bytes of memory, more than the %" PRIu64 " that may be used", size_bytes,
                        h->base.dataset->ctx->memory_bytes);
    if (s->capacity >= size_bytes)
        return 0;
    sq_pages_free(s->stored, s->capacity);
    s->stored = sq_pages_alloc(size_bytes);
    s->capacity = s->stored ? size_bytes : 0;
    return s->stored ? 0 : sq_error_memory(err, size_bytes);
}

int sq_hdf5_array_elements(const struct sq_hdf5_array *h, const uint8_t *stored, size_t size_bytes, void *dst, size_t dst_size,
                           struct squall_error *err)
{
    const struct sq_hdf5_elements *e = &h->elements;
    const size_t one = e->dtype.element_bytes, room = dst_size / one, there = size_bytes / e->type->size_bytes;
    const size_t count = there < room ? there : room;
    if (!sq_type_is_variable(e->dtype.type)) {
        sq_hdf5_elements_convert(e, stored, count, dst);
        return 0;
    }
    struct sq_hdf5_reader reader;
    SQ_TRY(sq_hdf5_reader_init(&reader, h->data->file, err));
    int status = sq_hdf5_elements_fetch(e, &reader, &h->data->tree, stored, count, dst, err);
    sq_hdf5_reader_done(&reader);
    if (!status)
        memset((uint8_t *)dst + count * one, 0, dst_size - count * one);
    return status;
}

static int decode_chunk(const struct sq_hdf5_array *h, struct scratch *s, unsigned threads, uint32_t skip_mask, const void *bytes,
                        size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    if (h->filters && h->elements.is_same)
        return sq_codec_decode_masked(h->filters, s->codec, threads, skip_mask, bytes, size, dst, dst_size, err);
    if (h->filters) {
        const size_t stored_size = (size_t)h->layout.size_bytes;
        SQ_TRY(reserve(s, h, stored_size, err));
        SQ_TRY(sq_codec_decode_masked(h->filters, s->codec, threads, skip_mask, bytes, size, s->stored, stored_size, err));
        bytes = s->stored;
        size = stored_size;
    }
    if (h->layout.kind == SQ_HDF5_CHUNKED && size != h->layout.size_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%zu bytes, but a chunk has %" PRIu64, size, h->layout.size_bytes);
    return sq_hdf5_array_elements(h, bytes, size, dst, dst_size, err);
}

static int decode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    int status = decode_chunk(sq_hdf5_array_of(a), scratch, threads, (uint32_t)where->param, bytes, size, dst, dst_size, err);
    return status ? sq_error_within(err, status, "byte %" PRIu64, where->offset) : 0;
}

/* As if the chunk had not gone through the first filter, which shuffles. */
static int decode_shuffled(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where,
                           const void *bytes, size_t size, void *dst, size_t dst_size, struct sq_shuffle_layout *ret_layout,
                           struct squall_error *err)
{
    enum { FIRST_FILTER = 1 };
    const struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    const uint32_t skip_mask = (uint32_t)where->param;
    int status = decode_chunk(h, scratch, threads, skip_mask | FIRST_FILTER, bytes, size, dst, dst_size, err);
    if (status)
        return sq_error_within(err, status, "byte %" PRIu64, where->offset);
    *ret_layout = (struct sq_shuffle_layout){.block_bytes = dst_size,
                                             .width = skip_mask & FIRST_FILTER ? 1 : sq_codec_chain_shuffle_width(h->filters)};
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static void share(struct squall_array *a, const struct squall_array *with)
{
    struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    const struct sq_hdf5_array *like = sq_hdf5_array_of(with);
    h->like = like;
    if (h->filters && like->filters && h->filters_id.high == like->filters_id.high && h->filters_id.low == like->filters_id.low) {
        sq_codec_chain_free(h->filters);
        h->filters = like->filters;
        a->info.codecs = like->base.info.codecs;
    }
    if (same_text(h->attributes, like->attributes)) {
        sq_free(h->attributes);
        a->info.attributes = h->attributes = like->attributes;
    }
    if (same_text(h->attribute_types, like->attribute_types)) {
        sq_free(h->attribute_types);
        a->info.attribute_types = h->attribute_types = like->attribute_types;
    }
    if (same_text(h->storage, like->storage)) {
        sq_free(h->storage);
        h->storage = like->storage;
    }
}

void sq_hdf5_array_free(struct squall_array *a)
{
    static const struct sq_hdf5_array NOBODY;
    struct sq_hdf5_array *h = sq_hdf5_array_of(a);
    const struct sq_hdf5_array *like = h->like ? h->like : &NOBODY;
    if (h->fill && sq_type_is_variable(h->elements.dtype.type))
        sq_bytes_free(h->fill, 1);
    sq_free(h->fill);
    sq_free(atomic_load(&h->pattern));
    if (h->filters != like->filters)
        sq_codec_chain_free(h->filters);
    sq_hdf5_chunk_index_free(atomic_load(&h->index));
    sq_source_close(h->compact);
    if (h->attributes != like->attributes)
        sq_free(h->attributes);
    if (h->attribute_types != like->attribute_types)
        sq_free(h->attribute_types);
    if (h->storage != like->storage)
        sq_free(h->storage);
    sq_free(h->fill_value);
    sq_free(h);
}

const struct sq_array_ops sq_hdf5_array_ops = {
    .prepare = prepare,
    .locate = locate,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .decode = decode,
    .decode_shuffled = decode_shuffled,
    .storage = storage,
    .stored_bytes = stored_bytes,
    .share = share,
    .free = sq_hdf5_array_free,
};
