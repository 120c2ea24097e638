/*
 * Chunk indexes that are arrays of addresses, in an order that the greatest shape fixes: fixed arrays (VII.C) where no dimension is without limit, and
 * extensible ones (VII.D) where one is. An extensible array grows without moving anything: its index block holds the first elements and
 * the first data blocks; further data blocks, each as large as or twice the one before, hang on "super blocks" whose number of data blocks and
 * their length follow from the super block's place.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "format/hdf5/chunk_walk.h"
#include <inttypes.h>
#include <string.h>

enum { CHECKSUM_BYTES = 4, SIGNATURE_BYTES = 4, MASK_BYTES = 4 };

/* ---- both ------------------------------------------------------------------------------------------------------------------------- */

struct array {
    struct sq_hdf5_chunk_walk *walk;
    uint64_t header;                 /* its address */
    unsigned client;                 /* 1: of filtered chunks, whose size and mask are stored too */
    unsigned element_bytes;          /* stored */
    unsigned page_bits;              /* blocks of more than 2^page_bits elements lie in pages of so many */
    unsigned order[SQUALL_RANK_MAX]; /* dimensions, the one that varies slowest first */
    uint64_t below[SQUALL_RANK_MAX]; /* along order[i]: elements from one chunk to the next */
};

/* size_bytes at an address, of which the last four are the checksum: *ret are those before. */
static int view_checked(const struct array *a, uint64_t address, uint64_t size_bytes, struct sq_cursor *ret, struct squall_error *err)
{
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(a->walk->reader, address, (size_t)size_bytes, &bytes, err));
    if (!sq_hdf5_checksum_holds(bytes, (size_t)size_bytes))
        return SQ_HDF5_DAMAGED(f, address, err, "a chunk index: the checksum of %" PRIu64 " bytes does not hold", size_bytes);
    *ret = sq_cursor(bytes, (size_t)size_bytes - CHECKSUM_BYTES);
    return 0;
}

/* The same of a block or header: its signature, version and client are taken and compared. */
static int view_block(const struct array *a, const char *signature, uint64_t address, uint64_t size_bytes, struct sq_cursor *ret,
                      struct squall_error *err)
{
    SQ_TRY(view_checked(a, address, size_bytes, ret, err));
    const uint8_t *begin = sq_take(ret, SIGNATURE_BYTES);
    const unsigned version = sq_u8(ret), client = sq_u8(ret);
    if (sq_cursor_failed(ret) || memcmp(begin, signature, SIGNATURE_BYTES) != 0 || version != 0 || client != a->client)
        return SQ_HDF5_DAMAGED(a->walk->reader->file, address, err, "a chunk index: no \"%s\" of version 0", signature);
    return 0;
}

/* As view_block; the header's address follows, and must be the one. */
static int view_part(const struct array *a, const char *signature, uint64_t address, uint64_t size_bytes, struct sq_cursor *ret,
                     struct squall_error *err)
{
    SQ_TRY(view_block(a, signature, address, size_bytes, ret, err));
    if (sq_hdf5_take_address(ret, a->walk->reader->file) != a->header)
        return SQ_HDF5_DAMAGED(a->walk->reader->file, address, err, "a chunk index: a \"%s\" of another array", signature);
    return 0;
}

/* slowest: the dimension that is numbered first; the others follow in their order. */
static int set_order(struct array *a, unsigned slowest, struct squall_error *err)
{
    const struct sq_hdf5_chunk_walk *walk = a->walk;
    uint64_t elements = 1;
    a->order[0] = slowest;
    for (unsigned d = 0, at = 1; d < walk->layout->rank; d++)
        if (d != slowest)
            a->order[at++] = d;
    for (unsigned i = walk->layout->rank; i-- > 0;) {
        a->below[i] = elements;
        if (i > 0 && (!sq_mul_u64(elements, walk->count_greatest[a->order[i]], &elements) || elements == 0))
            return SQ_HDF5_DAMAGED(walk->reader->file, a->header, err,
                                   "a chunk index: the greatest shape has chunks that cannot be numbered");
    }
    return 0;
}

static int check_element_bytes(const struct array *a, struct squall_error *err)
{
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const unsigned least = f->offset_bytes + (a->walk->filtered ? 1 + MASK_BYTES : 0);
    const unsigned most = f->offset_bytes + (a->walk->filtered ? sizeof(uint64_t) + MASK_BYTES : 0);
    if (a->element_bytes < least || a->element_bytes > most)
        return SQ_HDF5_DAMAGED(f, a->header, err, "a chunk index with elements of %u bytes", a->element_bytes);
    return 0;
}

/* `count` elements, of which the first is number `first`. */
static int add_elements(const struct array *a, uint64_t first, uint64_t count, struct sq_cursor *c, struct squall_error *err)
{
    struct sq_hdf5_chunk_walk *walk = a->walk;
    const struct sq_hdf5_file *f = walk->reader->file;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t chunk[SQUALL_RANK_MAX], rest = first + i, size_bytes = walk->layout->size_bytes;
        uint32_t mask = 0;
        const uint64_t address = sq_hdf5_take_address(c, f);
        if (walk->filtered) {
            size_bytes = sq_uint_le(c, a->element_bytes - f->offset_bytes - MASK_BYTES);
            mask = sq_u32le(c);
        }
        if (address == SQ_HDF5_NOWHERE)
            continue;
        for (unsigned d = 0; d < walk->layout->rank && a->below[d] > 0; d++) { /* never 0: set_order */
            chunk[a->order[d]] = rest / a->below[d];
            rest %= a->below[d];
        }
        SQ_TRY(sq_hdf5_chunk_add(walk, chunk, address, size_bytes, mask, err));
    }
    return 0;
}

/* Is page number i of a bitmap there? The first is the highest bit. */
static bool has_page(const uint8_t *bitmap, uint64_t i)
{
    return bitmap[i / 8] >> (7 - i % 8) & 1;
}

static uint64_t bitmap_bytes(uint64_t pages)
{
    return pages / 8 + (pages % 8 != 0);
}

/* A block's pages, one behind the other from an address on, each with its checksum; those that were never written hold nothing. */
static int add_pages(const struct array *a, uint64_t address, const uint8_t *bitmap, uint64_t first, uint64_t count,
                     struct squall_error *err)
{
    const uint64_t page = UINT64_C(1) << a->page_bits;
    for (uint64_t i = 0; i * page < count; i++) {
        const uint64_t left = count - i * page, here = left < page ? left : page;
        struct sq_cursor c;
        if (!has_page(bitmap, i))
            continue;
        SQ_TRY(
            view_checked(a, address + i * (page * a->element_bytes + CHECKSUM_BYTES), here * a->element_bytes + CHECKSUM_BYTES, &c, err));
        SQ_TRY(add_elements(a, first + i * page, here, &c, err));
    }
    return 0;
}

/* Can the file hold `count` things of `bytes` each? Then products of the two fit. */
static bool fits_file(const struct array *a, uint64_t count, uint64_t bytes)
{
    return bytes > 0 && count <= a->walk->reader->file->end / bytes;
}

/* ---- fixed ------------------------------------------------------------------------------------------------------------------------ */

static int read_fixed_block(const struct array *a, uint64_t address, uint64_t count, struct squall_error *err)
{
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const uint64_t page = UINT64_C(1) << a->page_bits, pages = count / page + (count % page != 0);
    const uint64_t before = SIGNATURE_BYTES + 2 + f->offset_bytes;
    const bool paged = count > page;
    const uint64_t size = before + (paged ? bitmap_bytes(pages) : count * a->element_bytes) + CHECKSUM_BYTES;
    struct sq_cursor c;
    SQ_TRY(view_part(a, "FADB", address, size, &c, err));
    return paged ? add_pages(a, address + size, c.next, 0, count, err) : add_elements(a, 0, count, &c, err);
}

int sq_hdf5_walk_fixed_array(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    const struct sq_hdf5_file *f = walk->reader->file;
    struct array a = {.walk = walk, .header = walk->layout->address, .client = walk->filtered};
    const size_t header_bytes = SIGNATURE_BYTES + 4 + f->length_bytes + f->offset_bytes + CHECKSUM_BYTES;
    struct sq_cursor c;
    SQ_TRY(view_block(&a, "FAHD", a.header, header_bytes, &c, err));
    a.element_bytes = sq_u8(&c);
    a.page_bits = sq_u8(&c);
    const uint64_t count = sq_hdf5_take_length(&c, f), block = sq_hdf5_take_address(&c, f);
    SQ_TRY(check_element_bytes(&a, err));
    if (a.page_bits > 32 || !fits_file(&a, count, a.element_bytes))
        return SQ_HDF5_DAMAGED(f, a.header, err, "a chunk index: a fixed array of %" PRIu64 " elements in pages of 2^%u", count,
                               a.page_bits);
    SQ_TRY(set_order(&a, 0, err));
    return block == SQ_HDF5_NOWHERE ? 0 : read_fixed_block(&a, block, count, err);
}

/* ---- extensible ------------------------------------------------------------------------------------------------------------------- */

struct extensible {
    struct array array;
    unsigned index_bits;     /* elements are numbered by so many bits */
    unsigned number_bytes;   /* of a block's first element in the array */
    unsigned index_elements; /* in the index block */
    unsigned least_bits;     /* the smallest data block has 2^least_bits elements */
    unsigned direct;         /* super blocks whose data blocks the index block holds itself */
    unsigned direct_blocks;  /* those data blocks */
    unsigned super_blocks;   /* all */
    uint64_t used;           /* elements up to the last that was ever set */
};

/* Data blocks of a super block, and the elements of each. */
static uint64_t block_count(unsigned super_block)
{
    return UINT64_C(1) << super_block / 2;
}

static uint64_t block_elements(const struct extensible *e, unsigned super_block)
{
    return UINT64_C(1) << ((super_block + 1) / 2 + e->least_bits);
}

/* bitmap: of its pages; NULL: it has none. `first`: its first element's number. */
static int read_data_block(const struct extensible *e, uint64_t address, uint64_t first, uint64_t count, const uint8_t *bitmap,
                           struct squall_error *err)
{
    const struct array *a = &e->array;
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const uint64_t before = SIGNATURE_BYTES + 2 + f->offset_bytes + e->number_bytes;
    struct sq_cursor c;
    if (address == SQ_HDF5_NOWHERE)
        return 0;
    if (!fits_file(a, count, a->element_bytes))
        return SQ_HDF5_DAMAGED(f, address, err, "a chunk index: a block of %" PRIu64 " elements", count);
    const uint64_t size = before + (bitmap ? 0 : count * a->element_bytes) + CHECKSUM_BYTES;
    SQ_TRY(view_part(a, "EADB", address, size, &c, err));
    sq_take(&c, e->number_bytes);
    return bitmap ? add_pages(a, address + size, bitmap, first, count, err) : add_elements(a, first, count, &c, err);
}

static int read_super_block(const struct extensible *e, unsigned number, uint64_t address, uint64_t first, struct squall_error *err)
{
    const struct array *a = &e->array;
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const uint64_t blocks = block_count(number), count = block_elements(e, number), page = UINT64_C(1) << a->page_bits;
    const uint64_t a_bitmap = count > page ? bitmap_bytes(count / page) : 0; /* both are powers of two */
    struct sq_cursor c;
    if (address == SQ_HDF5_NOWHERE)
        return 0;
    if (!fits_file(a, blocks, a_bitmap + f->offset_bytes))
        return SQ_HDF5_DAMAGED(f, address, err, "a chunk index: a super block of %" PRIu64 " blocks", blocks);
    const uint64_t before = SIGNATURE_BYTES + 2 + f->offset_bytes + e->number_bytes;
    SQ_TRY(view_part(a, "EASB", address, before + blocks * (a_bitmap + f->offset_bytes) + CHECKSUM_BYTES, &c, err));
    sq_take(&c, e->number_bytes);
    const uint8_t *bitmaps = sq_take(&c, (size_t)(blocks * a_bitmap));
    for (uint64_t i = 0; i < blocks && first + i * count < e->used; i++)
        SQ_TRY(read_data_block(e, sq_hdf5_take_address(&c, f), first + i * count, count, a_bitmap ? bitmaps + i * a_bitmap : NULL, err));
    return 0;
}

static int read_index_block(const struct extensible *e, uint64_t address, struct squall_error *err)
{
    const struct array *a = &e->array;
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const uint64_t addresses = e->direct_blocks + (uint64_t)(e->super_blocks - e->direct);
    struct sq_cursor c;
    SQ_TRY(view_part(a, "EAIB", address,
                     SIGNATURE_BYTES + 2 + f->offset_bytes + (uint64_t)e->index_elements * a->element_bytes + addresses * f->offset_bytes +
                         CHECKSUM_BYTES,
                     &c, err));
    SQ_TRY(add_elements(a, 0, e->index_elements, &c, err));
    uint64_t first = e->index_elements;
    for (unsigned s = 0; s < e->super_blocks && first < e->used; s++) {
        const uint64_t blocks = block_count(s), count = block_elements(e, s);
        if (s < e->direct)
            for (uint64_t i = 0; i < blocks; i++)
                SQ_TRY(read_data_block(e, sq_hdf5_take_address(&c, f), first + i * count, count, NULL, err));
        else
            SQ_TRY(read_super_block(e, s, sq_hdf5_take_address(&c, f), first, err));
        if (!sq_add_u64(first, blocks * count, &first))
            break;
    }
    return 0;
}

static bool log2_exact(unsigned value, unsigned *ret)
{
    *ret = value ? (unsigned)__builtin_ctz(value) : 0;
    return value != 0 && (value & (value - 1)) == 0;
}

static int read_header(struct extensible *e, uint64_t *ret_index_block, struct squall_error *err)
{
    enum { SETTINGS_BYTES = 6, STATISTICS = 6 };
    struct array *a = &e->array;
    const struct sq_hdf5_file *f = a->walk->reader->file;
    const size_t size =
        SIGNATURE_BYTES + 2 + SETTINGS_BYTES + STATISTICS * (size_t)f->length_bytes + f->offset_bytes + (size_t)CHECKSUM_BYTES;
    struct sq_cursor c;
    SQ_TRY(view_block(a, "EAHD", a->header, size, &c, err));
    a->element_bytes = sq_u8(&c);
    e->index_bits = sq_u8(&c);
    e->index_elements = sq_u8(&c);
    const unsigned least_elements = sq_u8(&c), least_pointers = sq_u8(&c);
    a->page_bits = sq_u8(&c);
    sq_take(&c, 4 * (size_t)f->length_bytes); /* numbers and sizes of blocks */
    e->used = sq_hdf5_take_length(&c, f);
    sq_take(&c, f->length_bytes);
    *ret_index_block = sq_hdf5_take_address(&c, f);
    unsigned pointer_bits;
    if (e->index_bits < 1 || e->index_bits > 64 || a->page_bits > 32 || !log2_exact(least_elements, &e->least_bits) ||
        !log2_exact(least_pointers, &pointer_bits) || pointer_bits < 1 || e->least_bits > e->index_bits)
        return SQ_HDF5_DAMAGED(f, a->header, err, "a chunk index: an extensible array with settings that cannot be");
    e->number_bytes = (e->index_bits + 7) / 8;
    e->super_blocks = 1 + e->index_bits - e->least_bits;
    e->direct = 2 * pointer_bits;
    e->direct_blocks = 2 * (least_pointers - 1);
    if (e->direct > e->super_blocks)
        return SQ_HDF5_DAMAGED(f, a->header, err, "a chunk index: an extensible array with settings that cannot be");
    return check_element_bytes(a, err);
}

int sq_hdf5_walk_extensible_array(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    struct extensible e = {.array = {.walk = walk, .header = walk->layout->address, .client = walk->filtered}};
    unsigned unlimited = 0;
    uint64_t index_block;
    while (unlimited < walk->layout->rank && walk->count_greatest[unlimited] != UINT64_MAX)
        unlimited++;
    if (unlimited == walk->layout->rank)
        return SQ_HDF5_DAMAGED(walk->reader->file, walk->layout->address, err, "an extensible array for a dataset that is not extensible");
    SQ_TRY(read_header(&e, &index_block, err));
    SQ_TRY(set_order(&e.array, unlimited, err));
    return index_block == SQ_HDF5_NOWHERE ? 0 : read_index_block(&e, index_block, err);
}
