/*
 * See layout.h. A chunk's last "dimension" in the message is the element's size in bytes; it is compared with the datatype's and dropped.
 */
#include "format/hdf5/layout.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include <inttypes.h>

enum { CLASS_COMPACT, CLASS_CONTIGUOUS, CLASS_CHUNKED, CLASS_VIRTUAL };
enum { FLAG_EDGES_UNFILTERED = 1, FLAG_SINGLE_FILTERED = 2 };

struct parse {
    const struct sq_hdf5_file *file;
    struct sq_cursor c;
    unsigned rank;
    const uint64_t *shape;
    uint32_t element_bytes;
};

/* Of all elements; versions 1 and 2 do not say it. */
static int elements_bytes(const struct parse *p, uint64_t *ret, struct squall_error *err)
{
    uint64_t bytes = p->element_bytes;
    for (unsigned d = 0; d < p->rank; d++)
        if (!sq_mul_u64(bytes, p->shape[d], &bytes))
            return sq_error(err, SQUALL_ECORRUPT, "layout: the dataset's shape is beyond 64 bits");
    *ret = bytes;
    return 0;
}

/* `counted`: dimensions in the message, the element's size included. */
static int take_chunk(struct parse *p, unsigned counted, unsigned width, struct sq_hdf5_layout *l, struct squall_error *err)
{
    if (counted != p->rank + 1 || p->rank == 0)
        return sq_error(err, SQUALL_ECORRUPT, "layout: chunks of %u dimensions in a dataset of %u", counted ? counted - 1 : 0, p->rank);
    l->rank = p->rank;
    l->size_bytes = p->element_bytes;
    for (unsigned d = 0; d < p->rank; d++) {
        l->chunk[d] = sq_uint_le(&p->c, width);
        if (!sq_cursor_failed(&p->c) && (l->chunk[d] == 0 || !sq_mul_u64(l->size_bytes, l->chunk[d], &l->size_bytes)))
            return sq_error(err, SQUALL_ECORRUPT, "layout: chunk length %" PRIu64 " along dimension %u", l->chunk[d], d);
    }
    const uint64_t element_bytes = sq_uint_le(&p->c, width);
    if (!sq_cursor_failed(&p->c) && element_bytes != p->element_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "layout: chunks of %" PRIu64 "-byte elements, but the datatype has %" PRIu32, element_bytes,
                        p->element_bytes);
    return 0;
}

static int parse_version_1_or_2(struct parse *p, struct sq_hdf5_layout *l, struct squall_error *err)
{
    enum { RESERVED_BYTES = 5, DIMENSION_BYTES = 4 };
    const unsigned counted = sq_u8(&p->c);
    const unsigned class = sq_u8(&p->c);
    sq_take(&p->c, RESERVED_BYTES);
    if (class != CLASS_COMPACT)
        l->address = sq_hdf5_take_address(&p->c, p->file);
    switch (class) {
    case CLASS_COMPACT:
        sq_take(&p->c, (size_t)counted * DIMENSION_BYTES);
        l->kind = SQ_HDF5_COMPACT;
        l->size_bytes = sq_u32le(&p->c);
        l->elements = sq_take(&p->c, (size_t)l->size_bytes);
        return 0;
    case CLASS_CONTIGUOUS:
        l->kind = SQ_HDF5_CONTIGUOUS;
        sq_take(&p->c, (size_t)counted * DIMENSION_BYTES);
        return elements_bytes(p, &l->size_bytes, err);
    case CLASS_CHUNKED:
        l->kind = SQ_HDF5_CHUNKED;
        l->index = SQ_HDF5_INDEX_BTREE1;
        return take_chunk(p, counted, DIMENSION_BYTES, l, err);
    default:
        return sq_error(err, SQUALL_EUNSUPPORTED, "layout class %u", class);
    }
}

static int parse_chunked_3(struct parse *p, struct sq_hdf5_layout *l, struct squall_error *err)
{
    const unsigned counted = sq_u8(&p->c);
    l->index = SQ_HDF5_INDEX_BTREE1;
    l->address = sq_hdf5_take_address(&p->c, p->file);
    return take_chunk(p, counted, 4, l, err);
}

/* What an index says of itself once more in its own header is not needed here. */
static int skip_index_settings(struct parse *p, unsigned index, struct squall_error *err)
{
    static const uint8_t SETTINGS_BYTES[] = {
        [SQ_HDF5_INDEX_FIXED_ARRAY] = 1,
        [SQ_HDF5_INDEX_EXTENSIBLE_ARRAY] = 5,
        [SQ_HDF5_INDEX_BTREE2] = 6,
    };
    if (index < SQ_HDF5_INDEX_SINGLE || index > SQ_HDF5_INDEX_BTREE2)
        return sq_error(err, SQUALL_EUNSUPPORTED, "chunk index type %u", index);
    sq_take(&p->c, SETTINGS_BYTES[index]);
    return 0;
}

static int parse_chunked_4(struct parse *p, struct sq_hdf5_layout *l, struct squall_error *err)
{
    const unsigned flags = sq_u8(&p->c), counted = sq_u8(&p->c), width = sq_u8(&p->c);
    if (width < 1 || width > sizeof(uint64_t))
        return sq_error(err, SQUALL_ECORRUPT, "layout: chunk lengths of %u bytes", width);
    SQ_TRY(take_chunk(p, counted, width, l, err));
    const unsigned index = sq_u8(&p->c);
    if (sq_cursor_failed(&p->c))
        return 0; /* told by the caller */
    l->edges_unfiltered = flags & FLAG_EDGES_UNFILTERED;
    l->single_bytes = l->size_bytes;
    if (index == SQ_HDF5_INDEX_SINGLE && flags & FLAG_SINGLE_FILTERED) {
        l->single_bytes = sq_hdf5_take_length(&p->c, p->file);
        l->single_mask = sq_u32le(&p->c);
    }
    SQ_TRY(skip_index_settings(p, index, err));
    l->index = (enum sq_hdf5_index_kind)index;
    l->address = sq_hdf5_take_address(&p->c, p->file);
    return 0;
}

static int parse_version_3_to_5(struct parse *p, unsigned version, struct sq_hdf5_layout *l, struct squall_error *err)
{
    const unsigned class = sq_u8(&p->c);
    switch (class) {
    case CLASS_COMPACT:
        l->kind = SQ_HDF5_COMPACT;
        l->size_bytes = sq_u16le(&p->c);
        l->elements = sq_take(&p->c, (size_t)l->size_bytes);
        return 0;
    case CLASS_CONTIGUOUS:
        l->kind = SQ_HDF5_CONTIGUOUS;
        l->address = sq_hdf5_take_address(&p->c, p->file);
        l->size_bytes = sq_hdf5_take_length(&p->c, p->file);
        return 0;
    case CLASS_CHUNKED:
        l->kind = SQ_HDF5_CHUNKED;
        return version == 3 ? parse_chunked_3(p, l, err) : parse_chunked_4(p, l, err);
    case CLASS_VIRTUAL:
        l->kind = SQ_HDF5_VIRTUAL;
        return 0;
    default:
        return sq_error(err, SQUALL_EUNSUPPORTED, "layout class %u", class);
    }
}

/* Elements that lie together are all there. */
static int check_elements(const struct parse *p, const struct sq_hdf5_layout *l, struct squall_error *err)
{
    uint64_t needed = 0;
    const bool stored = l->kind == SQ_HDF5_COMPACT || (l->kind == SQ_HDF5_CONTIGUOUS && l->address != SQ_HDF5_NOWHERE);
    if (!stored)
        return 0;
    SQ_TRY(elements_bytes(p, &needed, err));
    if (l->size_bytes < needed)
        return sq_error(err, SQUALL_ECORRUPT, "layout: %" PRIu64 " bytes for elements that take %" PRIu64, l->size_bytes, needed);
    return 0;
}

static int parse(struct parse *p, struct sq_hdf5_layout *ret, struct squall_error *err)
{
    struct sq_hdf5_layout l = {.address = SQ_HDF5_NOWHERE};
    const size_t size_bytes = sq_cursor_left(&p->c);
    const unsigned version = sq_u8(&p->c);
    if (version < 1 || version > 5)
        return sq_error(err, SQUALL_EUNSUPPORTED, "layout message of version %u", version);
    SQ_TRY(version < 3 ? parse_version_1_or_2(p, &l, err) : parse_version_3_to_5(p, version, &l, err));
    if (sq_cursor_failed(&p->c))
        return sq_error(err, SQUALL_ECORRUPT, "layout: the message ends after %zu bytes", size_bytes);
    SQ_TRY(check_elements(p, &l, err));
    *ret = l;
    return 0;
}

int sq_hdf5_layout_parse(const struct sq_hdf5_file *f, const struct sq_hdf5_dataset *dataset, struct sq_hdf5_layout *ret,
                         struct squall_error *err)
{
    const struct sq_hdf5_bytes *message = &dataset->layout;
    struct parse p = {.file = f,
                      .c = sq_cursor(message->bytes, message->size_bytes),
                      .rank = dataset->space.rank,
                      .shape = dataset->space.shape,
                      .element_bytes = dataset->type->size_bytes};
    if (!message->bytes)
        return sq_hdf5_error_at(f, dataset->address, sq_error(err, SQUALL_ECORRUPT, "a dataset without a layout message"), err);
    int status = parse(&p, ret, err);
    return status ? sq_hdf5_error_at(f, message->address, status, err) : 0;
}
