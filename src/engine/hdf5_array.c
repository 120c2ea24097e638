/*
 * HDF5's arrays for the engine. A chunk lies where the dataset's index says, which is read whole when it is first needed. Elements that lie together
 * (contiguous) are cut into chunks here, so that threads share them; those within the header (compact) are one chunk, in memory.
 */
#include "engine/hdf5_array.h"
#include "array/bytes.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "codec/hdf5_filters.h"
#include "engine/scatter.h"
#include "format/hdf5/attribute_json.h"
#include "format/hdf5/chunk_index.h"
#include "format/hdf5/elements.h"
#include "format/hdf5/fill.h"
#include "format/hdf5/netcdf4.h"
#include "format/hdf5/pipeline.h"
#include <inttypes.h>
#include <string.h>

/* What contiguous elements are cut into. */
enum { CUT_BYTES = 1 << 20 };

/* What the dataset holds: the arrays' names, types and shapes lie in what is kept of the tree. */
struct hdf5_data {
    struct sq_hdf5_file *file;
    struct sq_hdf5_tree tree;
};

struct hdf5_array {
    struct squall_array base;
    const struct hdf5_data *data;
    const struct sq_netcdf4_variable *variable; /* this and dataset: NULL when the array is made */
    const struct sq_hdf5_dataset *dataset;      /* the variable's */
    struct sq_hdf5_space space;                 /* of the dataset */
    struct sq_hdf5_layout layout;
    struct sq_hdf5_elements elements;
    struct sq_codec_chain *filters;   /* NULL: none */
    struct sq_hash filters_id;        /* equal: so are the filters */
    struct sq_hdf5_pipeline pipeline; /* while it is opened */
    const struct hdf5_array *like;    /* whose parts it shares; NULL: nobody's */
    _Atomic(struct sq_hdf5_chunk_index *) index;
    struct sq_source *compact;
    unsigned rank; /* without an array type's */
    uint64_t *shape, *chunks;
    const char **dims;
    void *fill;                                                /* an element in memory */
    const uint8_t *fill_pattern;                               /* NULL, or all elements of an array type, where they differ */
    _Atomic(uint8_t *) pattern;                                /* a chunk full of them */
    char *attributes, *attribute_types, *fill_value, *storage; /* JSON texts */
};

static struct hdf5_array *hdf5_array(const struct squall_array *a)
{
    return (struct hdf5_array *)(uintptr_t)a;
}

/* ---- where chunks lie ------------------------------------------------------------------------------------------------------------- */

/* The index as it is in the file that was opened: one that changed since then says so, whatever was found in it. */
static int load_index(const struct hdf5_array *h, struct sq_hdf5_chunk_index **ret, struct squall_error *err)
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
static int need_index(struct hdf5_array *h, const struct sq_hdf5_chunk_index **ret, struct squall_error *err)
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

/* A chunk that was never written, where the elements of an array type have different fill values: as need_index, when it is first needed. */
static int locate_pattern(struct hdf5_array *h, struct sq_location *ret, struct squall_error *err)
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

static int locate_missing(struct hdf5_array *h, struct sq_location *ret, struct squall_error *err)
{
    *ret = (struct sq_location){.state = SQ_CHUNK_MISSING};
    return h->fill_pattern ? locate_pattern(h, ret, err) : 0;
}

static int prepare(const struct squall_array *a, struct squall_error *err)
{
    struct hdf5_array *h = hdf5_array(a);
    const struct sq_hdf5_chunk_index *index;
    return h->layout.kind == SQ_HDF5_CHUNKED ? need_index(h, &index, err) : 0;
}

/* Does the dataset end before the chunk does? */
static bool is_edge(const struct hdf5_array *h, const uint64_t *chunk)
{
    for (unsigned d = 0; d < h->layout.rank; d++)
        if (h->layout.chunk[d] > h->space.shape[d] - chunk[d] * h->layout.chunk[d])
            return true;
    return false;
}

/* … or even before it begins, where the variable goes on? */
static bool is_beyond(const struct hdf5_array *h, const uint64_t *chunk)
{
    for (unsigned d = 0; d < h->layout.rank; d++)
        if (chunk[d] * h->layout.chunk[d] >= h->space.shape[d])
            return true;
    return false;
}

/* size_bytes at an address of the file. */
static int locate_bytes(const struct hdf5_array *h, uint64_t address, uint64_t size_bytes, struct sq_location *ret,
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

static int locate_chunk(struct hdf5_array *h, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    const struct sq_hdf5_chunk_index *index;
    struct sq_hdf5_chunk found;
    SQ_TRY(need_index(h, &index, err));
    if (is_beyond(h, chunk) || !sq_hdf5_chunk_find(index, chunk, &found))
        return locate_missing(h, ret, err);
    SQ_TRY(locate_bytes(h, found.address, found.size_bytes, ret, err));
    ret->param = h->layout.edges_unfiltered && is_edge(h, chunk) ? UINT32_MAX : found.skip_mask;
    return 0;
}

/* A piece of what lies together; the last ones along a dimension are shorter than the others. */
static int locate_piece(struct hdf5_array *h, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
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
    struct hdf5_array *h = hdf5_array(a);
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
    struct hdf5_array *h = hdf5_array(a);
    const struct sq_hdf5_chunk_index *index;
    if (a->info.unsupported)
        *ret = 0;
    else if (h->layout.kind != SQ_HDF5_CHUNKED)
        *ret = h->layout.kind == SQ_HDF5_CONTIGUOUS && h->layout.address == SQ_HDF5_NOWHERE ? 0 : h->layout.size_bytes;
    else {
        SQ_TRY(need_index(h, &index, err));
        *ret = sq_hdf5_chunk_index_bytes(index);
    }
    return 0;
}

static int storage(const struct squall_array *a, struct sq_text *out, struct squall_error *err)
{
    (void)err;
    sq_text_add(out, hdf5_array(a)->storage);
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

static int reserve(struct scratch *s, const struct hdf5_array *h, size_t size_bytes, struct squall_error *err)
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

/* Elements as they are stored → in memory; fewer than dst has room for where they are the last of what lies together. */
static int make_elements(const struct hdf5_array *h, const uint8_t *stored, size_t size_bytes, void *dst, size_t dst_size,
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

static int decode_chunk(const struct hdf5_array *h, struct scratch *s, unsigned threads, uint32_t skip_mask, const void *bytes, size_t size,
                        void *dst, size_t dst_size, struct squall_error *err)
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
    return make_elements(h, bytes, size, dst, dst_size, err);
}

static int decode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    int status = decode_chunk(hdf5_array(a), scratch, threads, (uint32_t)where->param, bytes, size, dst, dst_size, err);
    return status ? sq_error_within(err, status, "byte %" PRIu64, where->offset) : 0;
}

/* As if the chunk had not gone through the first filter, which shuffles. */
static int decode_shuffled(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where,
                           const void *bytes, size_t size, void *dst, size_t dst_size, struct sq_shuffle_layout *ret_layout,
                           struct squall_error *err)
{
    enum { FIRST_FILTER = 1 };
    const struct hdf5_array *h = hdf5_array(a);
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
    struct hdf5_array *h = hdf5_array(a);
    const struct hdf5_array *like = hdf5_array(with);
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

static void array_free(struct squall_array *a)
{
    static const struct hdf5_array NOBODY;
    struct hdf5_array *h = hdf5_array(a);
    const struct hdf5_array *like = h->like ? h->like : &NOBODY;
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

static const struct sq_array_ops OPS = {
    .prepare = prepare,
    .locate = locate,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .decode = decode,
    .decode_shuffled = decode_shuffled,
    .storage = storage,
    .stored_bytes = stored_bytes,
    .share = share,
    .free = array_free,
};

/* ---- what an array is ------------------------------------------------------------------------------------------------------------- */

/* Whole along the last dimensions, so that each lies in one piece. */
static void cut(const uint64_t *shape, unsigned rank, uint64_t element_bytes, uint64_t *ret)
{
    uint64_t bytes = element_bytes;
    for (unsigned d = rank; d-- > 0;) {
        const uint64_t fitting = bytes < CUT_BYTES ? CUT_BYTES / bytes : 1;
        ret[d] = shape[d] == 0 ? 1 : shape[d] < fitting ? shape[d] : fitting;
        bytes = ret[d] == shape[d] ? bytes * ret[d] : CUT_BYTES; /* what comes before is cut into single ones */
    }
}

/* The grid in memory: the dataset's dimensions, and behind them those of an array type. */
static int set_grid(struct hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_elements *e = &h->elements;
    if (h->rank + e->inner_rank > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EUNSUPPORTED, "more than %d dimensions, with those of the type", SQUALL_RANK_MAX);
    h->base.info.rank = h->rank + e->inner_rank;
    for (unsigned d = 0; d < e->inner_rank; d++)
        h->shape[h->rank + d] = h->chunks[h->rank + d] = e->inner_shape[d];
    if (h->layout.kind != SQ_HDF5_CHUNKED) /* cannot grow */
        memcpy(h->shape, h->space.shape, h->space.rank * sizeof *h->shape);
    if (h->layout.kind == SQ_HDF5_CHUNKED)
        memcpy(h->chunks, h->layout.chunk, h->rank * sizeof *h->chunks);
    else if (h->layout.kind == SQ_HDF5_CONTIGUOUS)
        cut(h->shape, h->rank, e->stored_bytes, h->chunks);
    return 0;
}

/* A filter that is not known does no harm where each chunk is without it; only then is the index needed to say so. */
static int refuse_unknown(struct hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_chunk_index *index;
    if (!sq_codec_chain_unknown_filter(h->filters, 0))
        return 0;
    SQ_TRY(need_index(h, &index, err));
    const char *unknown = sq_codec_chain_unknown_filter(h->filters, sq_hdf5_chunk_index_skip_mask(index));
    return unknown ? sq_error(err, SQUALL_EUNSUPPORTED, "%s is not supported; h5repack can write the file with another", unknown) : 0;
}

static int bind_filters(struct hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_pipeline *pipeline = &h->pipeline;
    const struct sq_hdf5_elements *e = &h->elements;
    SQ_TRY(sq_hdf5_pipeline_parse(&tree->reader, &h->dataset->filters, &h->pipeline, err));
    if (pipeline->count == 0 || h->layout.kind != SQ_HDF5_CHUNKED)
        return 0;
    struct sq_codec_chunk chunk = {.dtype = e->dtype, .rank = h->base.info.rank, .shape = h->chunks, .big_endian = e->big_endian};
    if (!e->is_same) {
        chunk.dtype = (struct sq_dtype){SQUALL_RAW, e->stored_bytes, 1};
        chunk.rank = h->layout.rank;
    }
    SQ_TRY(sq_codec_chain_bind_hdf5(pipeline->filters, pipeline->count, &chunk, &h->filters, err));
    h->filters_id = sq_hash_bytes(h->dataset->filters.bytes, h->dataset->filters.size_bytes);
    h->filters_id = sq_hash_more(h->filters_id, &chunk.dtype, sizeof chunk.dtype);
    h->filters_id = sq_hash_more(h->filters_id, &chunk.big_endian, sizeof chunk.big_endian);
    h->filters_id = sq_hash_more(h->filters_id, chunk.shape, chunk.rank * sizeof *chunk.shape);
    return refuse_unknown(h, err);
}

/* Are all elements of an array type the same? */
static bool is_uniform(const struct sq_hdf5_elements *e, const uint8_t *elements)
{
    const size_t bytes = e->dtype.element_bytes, all = e->inner_count * bytes;
    return all <= bytes || memcmp(elements, elements + bytes, all - bytes) == 0;
}

/* As an attribute would tell it; NULL where that cannot be. Of an array type all elements, where they differ. */
static int tell_fill(struct hdf5_array *h, struct sq_hdf5_tree *tree, const uint8_t *stored, struct squall_error *err)
{
    const struct sq_hdf5_type *type = h->fill_pattern ? h->dataset->type : h->elements.type;
    const struct sq_hdf5_attribute as_attribute = {
        .name = "fill value", .type = type, .space.element_count = 1, .value = stored, .size_bytes = type->size_bytes};
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    SQ_CLEANUP_JSON struct sq_json *value = NULL;
    if (h->elements.dtype.type == SQUALL_BYTES)
        return 0;
    SQ_TRY(sq_hdf5_attribute_json(tree, &as_attribute, &value, &numpy, err));
    SQ_TRY(sq_json_write(value, false, &text, err));
    h->fill_value = sq_text_release(&text);
    return h->fill_value ? 0 : sq_error_memory(err, 1);
}

/* Where the writer gave no value elements read as zeros, and texts as none. */
static int set_fill(struct hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_elements *e = &h->elements;
    const size_t one = e->dtype.element_bytes, stored_bytes = h->dataset->type->size_bytes;
    struct sq_hdf5_fill fill;
    uint8_t *elements, *zeros;
    SQ_TRY(sq_hdf5_fill_parse(h->data->file, h->dataset, &fill, err));
    SQ_TRY(SQ_HDF5_ROOM(&tree->reader, &zeros, stored_bytes, err));
    SQ_TRY(SQ_HDF5_ROOM(&tree->kept, &elements, e->inner_count * one, err));
    const uint8_t *stored = fill.value ? fill.value : zeros;
    if (!(h->fill = sq_alloc_zero(one, 1)))
        return sq_error_memory(err, one);
    h->base.fill = h->fill;
    if (sq_type_is_variable(e->dtype.type)) {
        SQ_TRY(make_elements(h, stored, e->type->size_bytes, h->fill, one, err));
    } else {
        SQ_TRY(make_elements(h, stored, stored_bytes, elements, e->inner_count * one, err));
        memcpy(h->fill, elements, one);
        if (!is_uniform(e, elements)) {
            h->fill_pattern = elements;
            h->base.fill = NULL;
        }
    }
    return fill.is_undefined ? 0 : tell_fill(h, tree, stored, err);
}

/* Two datasets that make other elements of the same bytes differ in this. */
static uint64_t decoded_id(const struct hdf5_array *h)
{
    struct sq_hash id = sq_hash_bytes(h->dataset->name, strlen(h->dataset->name));
    id = sq_hash_more(id, &h->elements.dtype, sizeof h->elements.dtype);
    id = sq_hash_more(id, h->chunks, h->base.info.rank * sizeof *h->chunks);
    return id.low ? id.low : 1;
}

/* The elements that lie within the header, as a source of their own. */
static int keep_compact(struct hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const size_t size_bytes = (size_t)h->layout.size_bytes;
    uint8_t *copy;
    SQ_TRY(SQ_HDF5_ROOM(&tree->kept, &copy, size_bytes, err));
    memcpy(copy, h->layout.elements, size_bytes);
    h->layout.elements = copy;
    return sq_source_open_memory(copy, size_bytes, sq_source_name(h->data->file->source), &h->compact, err);
}

/* All that reading needs. SQUALL_EUNSUPPORTED, SQUALL_ECORRUPT: the array is listed, with the reason. */
static int make_readable(struct hdf5_array *h, struct sq_hdf5_tree *tree, struct squall_error *err)
{
    const struct sq_hdf5_dataset *d = h->dataset;
    if (d->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s", d->unsupported);
    if (d->external.bytes)
        return sq_error(err, SQUALL_EUNSUPPORTED, "its data lie in external files, which are not opened");
    SQ_TRY(sq_hdf5_elements_make(&tree->kept, d->type, &h->elements, err));
    if (h->space.is_null)
        h->layout = (struct sq_hdf5_layout){.kind = SQ_HDF5_CONTIGUOUS, .address = SQ_HDF5_NOWHERE};
    else
        SQ_TRY(sq_hdf5_layout_parse(h->data->file, d, &h->layout, err));
    if (h->layout.kind == SQ_HDF5_VIRTUAL)
        return sq_error(err, SQUALL_EUNSUPPORTED,
                        "a virtual dataset: its data lie in other datasets; open those, or their files as one (squall.open_many)");
    SQ_TRY(set_grid(h, err));
    SQ_TRY(bind_filters(h, tree, err));
    SQ_TRY(set_fill(h, tree, err));
    if (h->layout.kind == SQ_HDF5_COMPACT)
        SQ_TRY(keep_compact(h, tree, err));
    const bool variable = sq_type_is_variable(h->elements.dtype.type);
    h->base.grows = h->space.rank > 0 && h->space.maximum[0] == SQ_HDF5_NOWHERE;
    h->base.plain = !h->filters && h->elements.is_same;
    h->base.swap_bytes = h->base.plain && h->elements.big_endian ? h->elements.dtype.order_bytes : 0;
    const size_t width = h->filters && h->elements.is_same ? sq_codec_chain_shuffle_width(h->filters) : 0;
    h->base.keeps_shuffled = width > 1 && h->layout.size_bytes % width == 0;
    h->base.decoded_id = variable || h->compact ? 0 : decoded_id(h);
    return 0;
}

static const char *const LAYOUTS[] = {[SQ_HDF5_UNKNOWN] = "unknown",
                                      [SQ_HDF5_COMPACT] = "compact",
                                      [SQ_HDF5_CONTIGUOUS] = "contiguous",
                                      [SQ_HDF5_CHUNKED] = "chunked",
                                      [SQ_HDF5_VIRTUAL] = "virtual"};

/* What squall_array_storage tells. */
static int tell_storage(struct hdf5_array *h, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &h->dataset->space;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    const char *comma = "";
    sq_text_add(&text, "{\"layout\": \"");
    sq_text_add(&text, LAYOUTS[h->layout.kind]);
    sq_text_add(&text, "\", \"unlimited\": [");
    for (unsigned d = 0; d < space->rank; d++)
        if (space->maximum && space->maximum[d] == SQ_HDF5_NOWHERE) {
            sq_text_add(&text, comma);
            sq_text_add_uint(&text, d);
            comma = ", ";
        }
    sq_text_add(&text, "], \"filters\": [");
    for (size_t i = 0; i < h->pipeline.count; i++) {
        const struct sq_hdf5_filter *f = &h->pipeline.filters[i];
        sq_text_add(&text, i ? ", [" : "[");
        sq_text_add_uint(&text, f->id);
        sq_text_add(&text, ", [");
        for (unsigned k = 0; k < f->value_count; k++) {
            sq_text_add(&text, k ? ", " : "");
            sq_text_add_uint(&text, f->values[k]);
        }
        sq_text_add(&text, "]]");
    }
    sq_text_add(&text, "]}");
    h->storage = sq_text_release(&text);
    return h->storage ? 0 : sq_error_memory(err, 1);
}

static void describe(struct hdf5_array *h)
{
    struct squall_array_info *info = &h->base.info;
    info->name = h->variable->name;
    info->type = info->unsupported ? SQUALL_RAW : h->elements.dtype.type;
    info->type_name = h->elements.type_name ? h->elements.type_name : "unknown";
    info->numpy_type = h->elements.numpy_type ? h->elements.numpy_type : "|V";
    info->sequence_type = h->elements.sequence_type;
    info->enum_names = h->elements.enum_names;
    info->element_bytes = info->unsupported ? 1 : h->elements.dtype.element_bytes;
    info->shape = h->shape;
    info->chunks = h->chunks;
    info->dims = h->dims;
    info->codecs = h->filters ? sq_codec_chain_text(h->filters) : h->layout.kind == SQ_HDF5_CHUNKED ? "none" : LAYOUTS[h->layout.kind];
    info->attributes = h->attributes;
    info->attribute_types = h->attribute_types;
    info->fill_value = h->fill_value ? h->fill_value : "null";
}

/* Those of an array type are not known yet. A dataset without a shape (a null dataspace) is one without elements. */
static int set_shape(struct hdf5_array *h, struct sq_hdf5_reader *kept, struct squall_error *err)
{
    const struct sq_hdf5_space *space = &h->space;
    const unsigned inner_rank = h->dataset->type && h->dataset->type->class == SQ_HDF5_ARRAY ? SQUALL_RANK_MAX - space->rank : 0;
    h->rank = space->is_null ? 1 : space->rank;
    const unsigned room = h->rank + inner_rank;
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->shape, room, err));
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->chunks, room, err));
    SQ_TRY(SQ_HDF5_ROOM(kept, &h->dims, room, err));
    for (unsigned d = 0; d < room; d++) {
        h->shape[d] = d < space->rank ? h->variable->shape[d] : 0;
        h->chunks[d] = h->shape[d] ? h->shape[d] : 1;
        h->dims[d] = d < space->rank ? h->variable->dims[d] : "";
    }
    h->base.info.rank = h->rank;
    return 0;
}

static int fill_array(struct squall_dataset *ds, struct hdf5_array *h, struct squall_error *err)
{
    struct hdf5_data *data = ds->format_data;
    struct squall_error reason = SQUALL_ERROR_INIT;
    h->base.dataset = ds;
    h->space = h->dataset->space;
    SQ_TRY(set_shape(h, &data->tree.kept, err));
    int status = make_readable(h, &data->tree, &reason);
    if (status == SQUALL_EUNSUPPORTED || status == SQUALL_ECORRUPT) {
        h->base.info.unsupported = sq_arena_strdup(data->tree.kept.memory, reason.message);
        if (!h->base.info.unsupported)
            return sq_error_memory(err, strlen(reason.message));
    } else if (status) {
        if (err)
            *err = reason;
        return status;
    }
    SQ_TRY(sq_hdf5_attributes_json(&data->tree, h->dataset->name, &h->dataset->attributes, &h->attributes, &h->attribute_types, err));
    SQ_TRY(tell_storage(h, err));
    describe(h);
    h->pipeline = (struct sq_hdf5_pipeline){0};
    h->variable = NULL;
    h->dataset = NULL;
    return 0;
}

static int add_array(struct squall_dataset *ds, const struct sq_netcdf4_variable *variable, struct squall_error *err)
{
    struct hdf5_array *h = sq_alloc_zero(1, sizeof *h);
    if (!h)
        return sq_error_memory(err, sizeof *h);
    h->base.ops = &OPS;
    h->data = ds->format_data;
    h->variable = variable;
    h->dataset = variable->dataset;
    int status = fill_array(ds, h, err);
    if (status) {
        array_free(&h->base);
        return status;
    }
    return sq_dataset_add(ds, &h->base, err);
}

/* ---- the dataset ------------------------------------------------------------------------------------------------------------------ */

static void data_free(void *user)
{
    struct hdf5_data *data = user;
    sq_hdf5_tree_done(&data->tree);
    sq_hdf5_file_close(data->file);
    sq_free(data);
}

static int add_group(struct squall_dataset *ds, struct sq_hdf5_tree *tree, const struct sq_hdf5_group *group, struct squall_error *err)
{
    char *attributes, *types;
    SQ_TRY(sq_hdf5_attributes_json(tree, group->name, &group->attributes, &attributes, &types, err));
    if (group->name[0])
        return sq_dataset_add_group(ds, group->name, attributes, types, err);
    ds->attributes = attributes;
    ds->attribute_types = types;
    return 0;
}

static int fill_dataset(struct squall_dataset *ds, struct sq_source *source, struct squall_error *err)
{
    struct hdf5_data *data = ds->format_data;
    struct sq_hdf5_tree *tree = &data->tree;
    struct sq_netcdf4 shown;
    SQ_TRY(sq_hdf5_file_open(source, &data->file, err));
    SQ_TRY(sq_hdf5_tree_read(data->file, tree, err));
    SQ_TRY(sq_netcdf4_read(tree, &shown, err));
    for (size_t i = 0; i < tree->group_count; i++)
        SQ_TRY(add_group(ds, tree, &tree->groups[i], err));
    for (size_t i = 0; i < shown.variable_count; i++)
        SQ_TRY(add_array(ds, &shown.variables[i], err));
    for (size_t i = 0; i < tree->problem_count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, tree->problems[i], err));
    sq_hdf5_tree_walk_done(tree);
    sq_hdf5_file_drop_head(data->file);
    return 0;
}

int sq_hdf5_dataset_open(const struct squall_context *ctx, struct sq_source *source, struct squall_dataset **ret, struct squall_error *err)
{
    struct squall_dataset *ds = sq_dataset_new(ctx, sq_source_name(source), "hdf5", err);
    if (!ds || !(ds->format_data = sq_alloc_zero(1, sizeof(struct hdf5_data)))) {
        squall_dataset_close(ds);
        sq_source_close(source);
        return sq_error_memory(err, sizeof(struct hdf5_data));
    }
    ds->format_data_free = data_free;
    int status = fill_dataset(ds, source, err);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}
