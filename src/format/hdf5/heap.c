/*
 * See heap.h. A fractal heap is one address space, cut into blocks whose sizes double from row to row of a table as wide as its header says; an
 * object's id says where it begins in that space.
 */
#include "format/hdf5/heap.h"
#include "base/checked.h"
#include "format/hdf5/btree.h"
#include "format/hdf5/pipeline.h"
#include <string.h>

/* ---- local heaps (III.D) ---- */

int sq_hdf5_local_heap_read(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_local_heap *ret, struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const size_t header_bytes = 8 + 2u * f->length_bytes + f->offset_bytes;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(r, address, header_bytes, &bytes, err));
    struct sq_cursor c = sq_cursor(bytes + 8, header_bytes - 8);
    const uint64_t size = sq_hdf5_take_length(&c, f);
    sq_hdf5_take_length(&c, f);
    const uint64_t data = sq_hdf5_take_address(&c, f);
    if (memcmp(bytes, "HEAP", 4) != 0 || bytes[4] != 0)
        return SQ_HDF5_DAMAGED(f, address, err, "no local heap of version 0");
    if (size > f->end)
        return SQ_HDF5_DAMAGED(f, address, err, "a local heap of more bytes than the file has");
    struct sq_hdf5_local_heap heap = {.size_bytes = (size_t)size, .address = data};
    SQ_TRY(sq_hdf5_view(r, data, heap.size_bytes, &heap.bytes, err));
    *ret = heap;
    return 0;
}

int sq_hdf5_local_heap_text(struct sq_hdf5_reader *r, const struct sq_hdf5_local_heap *heap, uint64_t offset, const char **ret,
                            struct squall_error *err)
{
    const uint8_t *end = offset < heap->size_bytes ? memchr(heap->bytes + offset, 0, heap->size_bytes - (size_t)offset) : NULL;
    if (!end)
        return SQ_HDF5_DAMAGED(r->file, heap->address, err, "no text ends in the local heap behind its byte %llu",
                               (unsigned long long)offset);
    SQ_TRY(sq_hdf5_spend(r, (uint64_t)(end - heap->bytes) - offset, err));
    *ret = (const char *)heap->bytes + offset;
    return 0;
}

/* ---- global heaps (III.E) ---- */

struct collection {
    const uint8_t *bytes;
    size_t size_bytes;
    uint32_t *at; /* where object i lies: at its header; 0: there is none */
    uint32_t count;
};

/* Headers, of the heap and of objects in it, and objects are padded to 8 bytes. */
static size_t padded(uint64_t size)
{
    return (size_t)(size + 7) / 8 * 8;
}

/* The next object: its index, and the cursor behind it. false: there is none. */
static bool next_object(const struct sq_hdf5_file *f, struct sq_cursor *c, uint32_t *ret_index)
{
    const size_t header_bytes = padded(8 + (uint64_t)f->length_bytes);
    if (sq_cursor_left(c) < header_bytes)
        return false;
    struct sq_cursor header = sq_cursor(sq_take(c, header_bytes), header_bytes);
    const uint32_t index = sq_u16le(&header);
    sq_take(&header, 6);
    const uint64_t size = sq_hdf5_take_length(&header, f);
    if (index == 0 || size > sq_cursor_left(c)) /* index 0: what is free, up to the end */
        return false;
    sq_take(c, padded(size) < sq_cursor_left(c) ? padded(size) : sq_cursor_left(c));
    *ret_index = index;
    return true;
}

static int read_collection(struct sq_hdf5_reader *r, uint64_t address, struct collection **ret, struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const size_t header_bytes = padded(8 + (uint64_t)f->length_bytes);
    struct collection *found;
    const uint8_t *bytes;
    uint32_t index;
    SQ_TRY(sq_hdf5_view(r, address, header_bytes, &bytes, err));
    if (memcmp(bytes, "GCOL", 4) != 0 || bytes[4] != 1)
        return SQ_HDF5_DAMAGED(f, address, err, "no global heap of version 1");
    struct sq_cursor c = sq_cursor(bytes + 8, f->length_bytes);
    const uint64_t size = sq_hdf5_take_length(&c, f);
    if (size < header_bytes || size > f->end || size > UINT32_MAX)
        return SQ_HDF5_DAMAGED(f, address, err, "a global heap of %llu bytes", (unsigned long long)size);
    SQ_TRY(SQ_HDF5_ROOM(r, &found, 1, err));
    found->size_bytes = (size_t)size;
    SQ_TRY(sq_hdf5_view(r, address, found->size_bytes, &found->bytes, err));
    for (c = sq_cursor(found->bytes + header_bytes, found->size_bytes - header_bytes); next_object(f, &c, &index);)
        found->count = index >= found->count ? index + 1 : found->count;
    SQ_TRY(SQ_HDF5_ROOM(r, &found->at, found->count, err));
    c = sq_cursor(found->bytes + header_bytes, found->size_bytes - header_bytes);
    for (const uint8_t *at = c.next; next_object(f, &c, &index); at = c.next)
        found->at[index] = (uint32_t)(at - found->bytes);
    SQ_TRY(sq_hdf5_table_put(&r->collections, address, found, err));
    *ret = found;
    return 0;
}

int sq_hdf5_global_heap_get(struct sq_hdf5_reader *r, uint64_t collection, uint32_t index, const uint8_t **ret, size_t *ret_size,
                            struct squall_error *err)
{
    struct collection *found = sq_hdf5_table_get(&r->collections, collection);
    if (!found)
        SQ_TRY(read_collection(r, collection, &found, err));
    if (index >= found->count || found->at[index] == 0)
        return SQ_HDF5_DAMAGED(r->file, collection, err, "no object %u in this global heap", index);
    const uint8_t *object = found->bytes + found->at[index];
    struct sq_cursor c = sq_cursor(object + 8, r->file->length_bytes);
    const uint64_t size = sq_hdf5_take_length(&c, r->file);
    SQ_TRY(sq_hdf5_spend(r, 1, err));
    *ret = object + padded(8 + (uint64_t)r->file->length_bytes);
    *ret_size = (size_t)size;
    return 0;
}

int sq_hdf5_sequence_get(struct sq_hdf5_reader *r, const uint8_t *stored, size_t stored_bytes, size_t unit_bytes, const uint8_t **ret,
                         size_t *ret_count, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(stored, stored_bytes);
    const uint32_t count = sq_u32le(&c);
    const uint64_t collection = sq_hdf5_take_address(&c, r->file);
    const uint32_t number = sq_u32le(&c);
    size_t size_bytes, need;
    *ret_count = 0;
    if (sq_cursor_failed(&c) || count == 0 || collection == 0 || collection == SQ_HDF5_NOWHERE)
        return 0;
    SQ_TRY(sq_hdf5_global_heap_get(r, collection, number, ret, &size_bytes, err));
    if (!sq_mul_size(count, unit_bytes, &need) || need > size_bytes)
        return SQ_HDF5_DAMAGED(r->file, collection, err, "object %u of the heap has %zu bytes, too few for %u elements of %zu", number,
                               size_bytes, count, unit_bytes);
    *ret_count = count;
    return 0;
}

/* ---- fractal heaps (III.G) ---- */

enum { TYPE_MANAGED, TYPE_HUGE, TYPE_TINY };
enum { FLAG_CHECKSUMS = 1 << 1, SIGNATURE_BYTES = 4, CHECKSUM_BYTES = 4, HEIGHT_LIMIT = 64 };

struct block {
    uint64_t address;
    uint64_t offset; /* in the heap */
    uint64_t size_bytes;
    uint64_t stored_bytes; /* of one that went through filters, and which of those it did not go through */
    uint32_t skip_mask;
};

struct sq_hdf5_heap {
    uint64_t address;
    uint16_t id_bytes;
    bool has_checksums;
    struct sq_hdf5_pipeline filters;                /* of blocks that hold objects, and of huge objects */
    uint64_t huge_tree;                             /* B-tree that says where huge objects are */
    unsigned width;                                 /* blocks a row */
    uint64_t first_block_bytes, direct_limit_bytes; /* of a block of the first row; of the largest that hold objects */
    uint64_t size_limit_bytes;                      /* of objects in blocks */
    unsigned space_bits;                            /* of offsets in the heap */
    struct block root;
    unsigned root_rows; /* of the block that leads to others; 0: the root is one that holds objects */
};

static unsigned log2_of(uint64_t value) /* value > 0 */
{
    return 63 - (unsigned)__builtin_clzll(value);
}

/* Bytes that numbers up to this one are written in. */
static unsigned bytes_for(uint64_t limit)
{
    return limit ? log2_of(limit) / 8 + 1 : 1;
}

static bool is_power_of_2(uint64_t value)
{
    return value && !(value & (value - 1));
}

static int parse_heap(const struct sq_hdf5_file *f, struct sq_cursor *c, struct sq_hdf5_heap *heap, struct squall_error *err)
{
    heap->id_bytes = sq_u16le(c);
    sq_u16le(c);
    heap->has_checksums = sq_u8(c) & FLAG_CHECKSUMS;
    heap->size_limit_bytes = sq_u32le(c);
    sq_hdf5_take_length(c, f); /* the next huge object's id */
    heap->huge_tree = sq_hdf5_take_address(c, f);
    sq_take(c, f->length_bytes + f->offset_bytes + 8u * f->length_bytes); /* free space, and what there is of each kind */
    heap->width = sq_u16le(c);
    heap->first_block_bytes = sq_hdf5_take_length(c, f);
    heap->direct_limit_bytes = sq_hdf5_take_length(c, f);
    heap->space_bits = sq_u16le(c);
    sq_u16le(c);
    heap->root = (struct block){.address = sq_hdf5_take_address(c, f), .size_bytes = heap->first_block_bytes};
    heap->root_rows = sq_u16le(c);
    const bool good = is_power_of_2(heap->width) && is_power_of_2(heap->first_block_bytes) && is_power_of_2(heap->direct_limit_bytes) &&
                      heap->first_block_bytes <= heap->direct_limit_bytes && heap->direct_limit_bytes <= UINT32_MAX &&
                      heap->space_bits > 0 && heap->space_bits <= 64 && heap->root_rows <= HEIGHT_LIMIT;
    return good ? 0 : SQ_HDF5_DAMAGED(f, heap->address, err, "a fractal heap whose header contradicts itself");
}

int sq_hdf5_heap_open(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_heap **ret, struct squall_error *err)
{
    enum { PLAIN_BYTES = 22, LENGTHS = 12, ADDRESSES = 3, FILTERS_AT = 7 };
    const struct sq_hdf5_file *f = r->file;
    size_t size_bytes = PLAIN_BYTES + (size_t)LENGTHS * f->length_bytes + (size_t)ADDRESSES * f->offset_bytes;
    const uint8_t *bytes;
    struct sq_hdf5_heap *heap;
    SQ_TRY(SQ_HDF5_ROOM(r, &heap, 1, err));
    heap->address = address;
    SQ_TRY(sq_hdf5_view(r, address, size_bytes, &bytes, err));
    if (memcmp(bytes, "FRHP", SIGNATURE_BYTES) != 0 || bytes[4] != 0)
        return SQ_HDF5_DAMAGED(f, address, err, "no fractal heap of version 0");
    struct sq_cursor filters = sq_cursor(bytes + FILTERS_AT, 2);
    const size_t filter_bytes = sq_u16le(&filters);
    if (filter_bytes) /* and how they left the root block, if that holds objects */
        size_bytes += f->length_bytes + 4u + filter_bytes;
    SQ_TRY(sq_hdf5_view(r, address, size_bytes + CHECKSUM_BYTES, &bytes, err));
    if (!sq_hdf5_checksum_holds(bytes, size_bytes + CHECKSUM_BYTES))
        return SQ_HDF5_DAMAGED(f, address, err, "the checksum of a fractal heap does not hold");
    struct sq_cursor c = sq_cursor(bytes + 5, size_bytes - 5);
    SQ_TRY(parse_heap(f, &c, heap, err));
    if (filter_bytes) {
        heap->root.stored_bytes = sq_hdf5_take_length(&c, f);
        heap->root.skip_mask = sq_u32le(&c);
        const struct sq_hdf5_bytes message = {c.next, filter_bytes, address};
        SQ_TRY(sq_hdf5_pipeline_parse(r, &message, &heap->filters, err));
    }
    *ret = heap;
    return 0;
}

/*
 * Is a block what it should be? Its checksum (at 0: there is none) is that of what is before, where it lies at the end; else of the block with zeros in
 * its place.
 */
static int check_bytes(struct sq_hdf5_reader *r, const struct sq_hdf5_heap *heap, uint64_t address, const char *signature,
                       const uint8_t *bytes, size_t block_bytes, size_t checksum_at, struct squall_error *err)
{
    if (block_bytes < SIGNATURE_BYTES + 1 || memcmp(bytes, signature, SIGNATURE_BYTES) != 0 || bytes[4] != 0)
        return SQ_HDF5_DAMAGED(r->file, address, err, "no block of the fractal heap at byte %llu",
                               (unsigned long long)(r->file->base + heap->address));
    if (checksum_at) {
        uint8_t *copy;
        SQ_TRY(SQ_HDF5_ROOM(r, &copy, block_bytes, err));
        memcpy(copy, bytes, block_bytes);
        memset(copy + checksum_at, 0, CHECKSUM_BYTES);
        const size_t summed = checksum_at + CHECKSUM_BYTES == block_bytes ? checksum_at : block_bytes;
        if (!sq_hdf5_checksum_is(copy, summed, bytes + checksum_at))
            return SQ_HDF5_DAMAGED(r->file, address, err, "the checksum of a fractal heap's block does not hold");
    }
    return 0;
}

/* Look at a block whole, the first time. */
static int check_block(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, uint64_t address, const char *signature, size_t block_bytes,
                       size_t checksum_at, struct squall_error *err)
{
    const uint8_t *bytes;
    if (sq_hdf5_table_get(&r->checked, address) == heap)
        return 0;
    SQ_TRY(sq_hdf5_view(r, address, block_bytes, &bytes, err));
    SQ_TRY(check_bytes(r, heap, address, signature, bytes, block_bytes, checksum_at, err));
    return sq_hdf5_table_put(&r->checked, address, heap, err);
}

/* What stored_bytes at an address were before they went through the heap's filters. */
static int undo_filters(struct sq_hdf5_reader *r, const struct sq_hdf5_heap *heap, uint64_t address, uint64_t stored_bytes,
                        uint32_t skip_mask, uint64_t size_bytes, const uint8_t **ret, struct squall_error *err)
{
    const struct sq_codec_chunk chunk = {.dtype = {SQUALL_RAW, 1, 1}, .rank = 1, .shape = &size_bytes};
    const uint8_t *stored;
    uint8_t *bytes;
    struct sq_codec_chain *chain;
    if (stored_bytes > r->file->end || size_bytes == 0)
        return SQ_HDF5_DAMAGED(r->file, address, err, "%llu bytes of a fractal heap that %llu are stored for",
                               (unsigned long long)size_bytes, (unsigned long long)stored_bytes);
    SQ_TRY(sq_hdf5_view(r, address, (size_t)stored_bytes, &stored, err));
    SQ_TRY(SQ_HDF5_ROOM(r, &bytes, (size_t)size_bytes, err));
    SQ_TRY(sq_codec_chain_bind_hdf5(heap->filters.filters, heap->filters.count, &chunk, &chain, err));
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    int status = scratch
                     ? sq_codec_decode_masked(chain, scratch, 1, skip_mask, stored, (size_t)stored_bytes, bytes, (size_t)size_bytes, err)
                     : sq_error_memory(err, (size_t)size_bytes);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
    if (status)
        return sq_hdf5_error_at(r->file, address, status, err);
    *ret = bytes;
    return 0;
}

/* A block that was read and went through filters backwards. */
struct decoded {
    const struct sq_hdf5_heap *heap;
    const uint8_t *bytes;
};

static int decode_block(struct sq_hdf5_reader *r, const struct sq_hdf5_heap *heap, const struct block *block, size_t checksum_at,
                        const uint8_t **ret, struct squall_error *err)
{
    struct decoded *found = sq_hdf5_table_get(&r->decoded, block->address);
    if (!found || found->heap != heap) {
        SQ_TRY(SQ_HDF5_ROOM(r, &found, 1, err));
        found->heap = heap;
        SQ_TRY(undo_filters(r, heap, block->address, block->stored_bytes, block->skip_mask, block->size_bytes, &found->bytes, err));
        SQ_TRY(check_bytes(r, heap, block->address, "FHDB", found->bytes, (size_t)block->size_bytes, checksum_at, err));
        SQ_TRY(sq_hdf5_table_put(&r->decoded, block->address, found, err));
    }
    *ret = found->bytes;
    return 0;
}

/* Where a block lies in its heap, and which row of a table it is in: rows 0 and 1 have blocks of the first size, each further row ones of twice the size. */
struct place {
    unsigned row, column;
    uint64_t block_bytes;  /* of a block in this row */
    uint64_t block_offset; /* of the block, from the table's beginning */
};

static struct place place_of(const struct sq_hdf5_heap *heap, uint64_t offset)
{
    const uint64_t row_bytes = heap->width * heap->first_block_bytes;
    struct place p = {.row = offset < row_bytes ? 0 : log2_of(offset >> log2_of(row_bytes)) + 1};
    const uint64_t row_begin = p.row ? row_bytes << (p.row - 1) : 0;
    p.block_bytes = heap->first_block_bytes << (p.row ? p.row - 1 : 0);
    p.column = (unsigned)((offset - row_begin) >> log2_of(p.block_bytes));
    p.block_offset = row_begin + p.column * p.block_bytes;
    return p;
}

/* From a block that leads to others to the one with this offset. *block: the former, then the latter; *rows: 0 where that holds objects. */
static int descend(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, uint64_t offset, struct block *block, unsigned *rows,
                   struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const unsigned direct_rows = log2_of(heap->direct_limit_bytes / heap->first_block_bytes) + 2;
    const size_t prefix_bytes = 5u + f->offset_bytes + (heap->space_bits + 7) / 8;
    const size_t direct_bytes = f->offset_bytes + (heap->filters.count ? f->length_bytes + 4u : 0); /* of an entry */
    const struct place p = place_of(heap, offset - block->offset);
    const size_t entry = (size_t)p.row * heap->width + p.column, entries = (size_t)*rows * heap->width;
    const size_t direct_entries = (size_t)(*rows < direct_rows ? *rows : direct_rows) * heap->width;
    const uint8_t *bytes;
    if (p.row >= *rows || entries > f->end)
        return SQ_HDF5_DAMAGED(f, block->address, err, "this block of a fractal heap does not reach to offset %llu",
                               (unsigned long long)offset);
    const size_t at = prefix_bytes + (entry < direct_entries ? entry * direct_bytes
                                                             : direct_entries * direct_bytes + (entry - direct_entries) * f->offset_bytes);
    const size_t block_bytes = prefix_bytes + direct_entries * direct_bytes + (entries - direct_entries) * f->offset_bytes + CHECKSUM_BYTES;
    SQ_TRY(check_block(r, heap, block->address, "FHIB", block_bytes, block_bytes - CHECKSUM_BYTES, err));
    const size_t entry_bytes = entry < direct_entries ? direct_bytes : f->offset_bytes;
    SQ_TRY(sq_hdf5_view(r, block->address + at, entry_bytes, &bytes, err));
    struct sq_cursor c = sq_cursor(bytes, entry_bytes);
    *block = (struct block){.address = sq_hdf5_take_address(&c, f), .offset = block->offset + p.block_offset, .size_bytes = p.block_bytes};
    if (p.row < direct_rows) {
        *rows = 0;
        if (heap->filters.count) {
            block->stored_bytes = sq_hdf5_take_length(&c, f);
            block->skip_mask = sq_u32le(&c);
        }
        return 0;
    }
    const uint64_t row_bytes = heap->width * heap->first_block_bytes;
    if (p.block_bytes < row_bytes)
        return SQ_HDF5_DAMAGED(f, block->address, err, "a block of a fractal heap that is smaller than a row of it");
    *rows = log2_of(p.block_bytes / row_bytes) + 1;
    return 0;
}

static int get_managed(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, struct sq_cursor *id, const uint8_t **ret, size_t *ret_size,
                       struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const unsigned offset_bytes = (heap->space_bits + 7) / 8, most = bytes_for(heap->direct_limit_bytes);
    const unsigned of_objects = bytes_for(heap->size_limit_bytes);
    const uint64_t offset = sq_uint_le(id, offset_bytes), size = sq_uint_le(id, most < of_objects ? most : of_objects);
    struct block block = heap->root;
    if (sq_cursor_failed(id))
        return SQ_HDF5_DAMAGED(f, heap->address, err, "an id of a fractal heap that is too short");
    for (unsigned rows = heap->root_rows, height = 0; rows; height++) {
        if (height > HEIGHT_LIMIT)
            return SQ_HDF5_DAMAGED(f, heap->address, err, "a fractal heap whose blocks lead to each other");
        SQ_TRY(descend(r, heap, offset, &block, &rows, err));
    }
    const uint64_t within = offset - block.offset, header = 5u + f->offset_bytes + offset_bytes;
    if (within < header || within > block.size_bytes || size > block.size_bytes - within || block.size_bytes > heap->direct_limit_bytes)
        return SQ_HDF5_DAMAGED(f, block.address, err, "object %llu of a fractal heap does not lie within this block",
                               (unsigned long long)offset);
    const size_t checksum_at = heap->has_checksums ? (size_t)header : 0;
    *ret_size = (size_t)size;
    if (heap->filters.count) {
        SQ_TRY(decode_block(r, heap, &block, checksum_at, ret, err));
        *ret += within;
        return 0;
    }
    SQ_TRY(check_block(r, heap, block.address, "FHDB", (size_t)block.size_bytes, checksum_at, err));
    return sq_hdf5_view(r, block.address + within, (size_t)size, ret, err);
}

/* Where a huge object lies; with filters, what they made of it. */
struct huge {
    const struct sq_hdf5_file *file;
    bool is_filtered;
    uint64_t number; /* by which the B-tree has it */
    uint64_t address, stored_bytes, size_bytes;
    uint32_t skip_mask;
    bool is_found;
};

static void take_huge(struct sq_cursor *c, struct huge *h)
{
    h->address = sq_hdf5_take_address(c, h->file);
    h->stored_bytes = h->size_bytes = sq_hdf5_take_length(c, h->file);
    if (h->is_filtered) {
        h->skip_mask = sq_u32le(c);
        h->size_bytes = sq_hdf5_take_length(c, h->file);
    }
}

static int visit_huge(void *user, const uint8_t *record, size_t size_bytes, struct squall_error *err)
{
    struct huge *h = user, one = *h;
    struct sq_cursor c = sq_cursor(record, size_bytes);
    (void)err;
    take_huge(&c, &one);
    if (sq_hdf5_take_length(&c, h->file) == h->number && !sq_cursor_failed(&c)) {
        *h = one;
        h->is_found = true;
    }
    return 0;
}

static int get_huge(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, struct sq_cursor *id, const uint8_t **ret, size_t *ret_size,
                    struct squall_error *err)
{
    enum { BY_NUMBER = 1, BY_NUMBER_FILTERED = 2 };
    const struct sq_hdf5_file *f = r->file;
    struct huge huge = {.file = f, .is_filtered = heap->filters.count > 0};
    const size_t left = sq_cursor_left(id),
                 direct_bytes = f->offset_bytes + f->length_bytes + (huge.is_filtered ? 4u + f->length_bytes : 0);
    if (left >= direct_bytes) {
        take_huge(id, &huge);
    } else {
        huge.number = sq_uint_le(id, left < f->length_bytes ? (unsigned)left : f->length_bytes);
        SQ_TRY(sq_hdf5_btree_walk(r, heap->huge_tree, huge.is_filtered ? BY_NUMBER_FILTERED : BY_NUMBER, direct_bytes + f->length_bytes,
                                  visit_huge, &huge, err));
        if (!huge.is_found)
            return SQ_HDF5_DAMAGED(f, heap->address, err, "no huge object %llu in this fractal heap", (unsigned long long)huge.number);
    }
    if (huge.stored_bytes > f->end || huge.size_bytes > SIZE_MAX)
        return SQ_HDF5_DAMAGED(f, heap->address, err, "an object of more bytes than the file has");
    *ret_size = (size_t)huge.size_bytes;
    if (huge.is_filtered)
        return undo_filters(r, heap, huge.address, huge.stored_bytes, huge.skip_mask, huge.size_bytes, ret, err);
    return sq_hdf5_view(r, huge.address, (size_t)huge.size_bytes, ret, err);
}

/* The object lies in its id; *first: the id's first byte. */
static int get_tiny(const struct sq_hdf5_file *f, struct sq_hdf5_heap *heap, unsigned first, struct sq_cursor *id, const uint8_t **ret,
                    size_t *ret_size, struct squall_error *err)
{
    enum { LONG_IDS = 18 };
    size_t size = first & 0x0f;
    if (heap->id_bytes >= LONG_IDS)
        size = size << 8 | sq_u8(id);
    const uint8_t *bytes = sq_take(id, size + 1);
    if (sq_cursor_failed(id))
        return SQ_HDF5_DAMAGED(f, heap->address, err, "an id of a fractal heap that is too short");
    *ret = bytes;
    *ret_size = size + 1;
    return 0;
}

int sq_hdf5_heap_get(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, const uint8_t *id, size_t id_bytes, const uint8_t **ret,
                     size_t *ret_size, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(id, id_bytes < heap->id_bytes ? id_bytes : heap->id_bytes);
    const unsigned first = sq_u8(&c), version = first >> 6, type = first >> 4 & 3;
    if (sq_cursor_failed(&c) || version != 0 || type > TYPE_TINY)
        return SQ_HDF5_DAMAGED(r->file, heap->address, err, "an id of a fractal heap with a first byte of %u", first);
    if (type == TYPE_TINY)
        return get_tiny(r->file, heap, first, &c, ret, ret_size, err);
    return type == TYPE_HUGE ? get_huge(r, heap, &c, ret, ret_size, err) : get_managed(r, heap, &c, ret, ret_size, err);
}
