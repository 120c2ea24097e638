/* Where HDF5's chunks lie: layout messages and each kind of index put together byte for byte; damage is an error or changes nothing. */
#include "support/hdf5_writer.h"

#include "format/hdf5/chunk_index.h"
#include "format/hdf5/pipeline.h"

enum { CHUNK_BYTES = 24, FIRST_ADDRESS = 1000 };

/* A file that begins with a superblock and has an index at `root`. */
struct index_file {
    struct hdf5_bytes bytes;
    struct sq_hdf5_layout layout;
    uint64_t shape[2], maximum[2];
    bool filtered;
};

static struct index_file f;

static void begin(enum sq_hdf5_index_kind kind, uint64_t rows, uint64_t columns)
{
    f = (struct index_file){.layout = {.kind = SQ_HDF5_CHUNKED, .index = kind, .rank = 2, .chunk = {3, 2}, .size_bytes = CHUNK_BYTES},
                            .shape = {3 * rows, 2 * columns},
                            .maximum = {3 * rows, 2 * columns}};
    put_superblock(&f.bytes, 2, 0, SQ_HDF5_NOWHERE, 0, HDF5_SUPERBLOCK_BYTES);
    f.layout.single_bytes = CHUNK_BYTES;
}

static int load(struct sq_hdf5_chunk_index **ret, struct squall_error *err)
{
    struct hdf5_in_memory m;
    int status = hdf5_open(&m, f.bytes.data, f.bytes.size, err);
    if (!status)
        status = sq_hdf5_chunk_index_load(m.file, &f.layout, f.shape, f.maximum, f.filtered, ret, err);
    hdf5_close(&m);
    return status;
}

/* Address of a chunk; 0: it is not there. */
static uint64_t find(const struct sq_hdf5_chunk_index *index, uint64_t row, uint64_t column)
{
    struct sq_hdf5_chunk chunk = {0};
    return sq_hdf5_chunk_find(index, (uint64_t[]){row, column}, &chunk) ? chunk.address : 0;
}

static void assert_refused(const char *what)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_hdf5_chunk_index *index = NULL;
    assert_int_equal(load(&index, &err), SQUALL_ECORRUPT);
    assert_int_equal(strncmp(err.message, "x.h5: byte ", 11), 0);
    if (!strstr(err.message, what))
        fail_msg("%s: not told in \"%s\"", what, err.message);
}

/* No byte of the index can be changed unnoticed, where it has checksums; and none breaks anything. */
static void sweep(bool checked)
{
    for (size_t i = (size_t)f.layout.address; i < f.bytes.size; i++) {
        struct sq_hdf5_chunk_index *index = NULL;
        f.bytes.data[i] ^= 0x81;
        int status = load(&index, NULL);
        if (checked)
            assert_int_equal(status, SQUALL_ECORRUPT);
        sq_hdf5_chunk_index_free(index);
        f.bytes.data[i] ^= 0x81;
    }
    for (size_t size = f.bytes.size; size-- > f.layout.address;) {
        struct sq_hdf5_chunk_index *index = NULL;
        const size_t whole = f.bytes.size;
        f.bytes.size = size;
        assert_int_equal(load(&index, NULL), SQUALL_ECORRUPT);
        f.bytes.size = whole;
    }
}

/* ---- B-trees ---------------------------------------------------------------------------------------------------------------------- */

static void put_node(unsigned level, unsigned count)
{
    put_text(&f.bytes, "TREE");
    put(&f.bytes, 1, 1);
    put(&f.bytes, level, 1);
    put(&f.bytes, count, 2);
    put(&f.bytes, SQ_HDF5_NOWHERE, 8);
    put(&f.bytes, SQ_HDF5_NOWHERE, 8);
}

static void put_entry(uint64_t size_bytes, unsigned mask, uint64_t row, uint64_t column, uint64_t address)
{
    put(&f.bytes, size_bytes, 4);
    put(&f.bytes, mask, 4);
    put(&f.bytes, 3 * row, 8);
    put(&f.bytes, 2 * column, 8);
    put(&f.bytes, 0, 8);
    put(&f.bytes, address, 8);
}

enum { NODE_BYTES = 24, ENTRY_BYTES = 40 };

static void put_tree_of_two_levels(void)
{
    begin(SQ_HDF5_INDEX_BTREE1, 2, 2);
    f.layout.address = f.bytes.size;
    const uint64_t first = f.bytes.size + NODE_BYTES + 2 * ENTRY_BYTES, second = first + NODE_BYTES + 2 * ENTRY_BYTES;
    put_node(1, 2);
    put_entry(0, 0, 0, 0, first);
    put_entry(0, 0, 1, 1, second);
    put_node(0, 2);
    put_entry(10, 0, 0, 0, 1000);
    put_entry(11, 5, 0, 1, 2000);
    put_node(0, 1);
    put_entry(12, 0, 1, 1, 3000);
}

static void tree_of_version_1_is_read_over_its_levels(void **state)
{
    struct sq_hdf5_chunk_index *index;
    struct sq_hdf5_chunk chunk;
    (void)state;
    put_tree_of_two_levels();
    assert_int_equal(load(&index, NULL), 0);
    assert_int_equal(find(index, 0, 0), 1000);
    assert_int_equal(find(index, 1, 0), 0);
    assert_int_equal(find(index, 1, 1), 3000);
    assert_true(sq_hdf5_chunk_find(index, (uint64_t[]){0, 1}, &chunk));
    assert_int_equal(chunk.size_bytes, 11);
    assert_int_equal(chunk.skip_mask, 5);
    assert_int_equal(sq_hdf5_chunk_index_bytes(index), 10 + 11 + 12);
    sq_hdf5_chunk_index_free(index);
    sweep(false);
}

static void tree_that_leads_to_itself_is_refused(void **state)
{
    (void)state;
    begin(SQ_HDF5_INDEX_BTREE1, 2, 2);
    f.layout.address = f.bytes.size;
    put_node(1, 1);
    put_entry(0, 0, 0, 0, f.layout.address);
    assert_refused("no node");
}

static void chunk_off_the_grid_or_told_twice_is_refused(void **state)
{
    (void)state;
    begin(SQ_HDF5_INDEX_BTREE1, 2, 2);
    f.layout.address = f.bytes.size;
    put_node(0, 1);
    put_entry(10, 0, 0, 0, 1000);
    f.bytes.data[f.layout.address + NODE_BYTES + 8] = 1; /* the offset along the rows */
    assert_refused("a chunk at element 1 of dimension 0");
    begin(SQ_HDF5_INDEX_BTREE1, 2, 2);
    f.layout.address = f.bytes.size;
    put_node(0, 2);
    put_entry(10, 0, 1, 0, 1000);
    put_entry(10, 0, 1, 0, 2000);
    assert_refused("chunk 2 twice");
}

static void records_of_version_2_hold_sizes_of_any_width(void **state)
{
    (void)state;
    for (unsigned width = 1; width <= 8; width += 7) {
        struct sq_hdf5_chunk_index *index;
        struct sq_hdf5_chunk chunk;
        begin(SQ_HDF5_INDEX_BTREE2, 2, 2);
        f.filtered = true;
        f.maximum[0] = f.maximum[1] = SQ_HDF5_NOWHERE;
        const unsigned record = 8 + width + 4 + 16;
        const size_t header = f.layout.address = f.bytes.size;
        put_text(&f.bytes, "BTHD");
        put(&f.bytes, 0, 1);
        put(&f.bytes, 11, 1);
        put(&f.bytes, 512, 4); /* node */
        put(&f.bytes, record, 2);
        put(&f.bytes, 0, 2); /* depth */
        put(&f.bytes, 0x2864, 2);
        put(&f.bytes, header + 38, 8);
        put(&f.bytes, 2, 2);
        put(&f.bytes, 2, 8);
        put_checksum(&f.bytes, header);
        const size_t leaf = f.bytes.size;
        put_text(&f.bytes, "BTLF");
        put(&f.bytes, 0, 1);
        put(&f.bytes, 11, 1);
        for (unsigned i = 0; i < 2; i++) {
            put(&f.bytes, 1000 + i, 8);
            put(&f.bytes, 77, width);
            put(&f.bytes, 2, 4);
            put(&f.bytes, 1, 8); /* row */
            put(&f.bytes, i, 8);
        }
        put_checksum(&f.bytes, leaf);
        assert_int_equal(load(&index, NULL), 0);
        assert_int_equal(find(index, 0, 0), 0);
        assert_int_equal(find(index, 1, 0), 1000);
        assert_true(sq_hdf5_chunk_find(index, (uint64_t[]){1, 1}, &chunk));
        assert_int_equal(chunk.size_bytes, 77);
        assert_int_equal(chunk.skip_mask, 2);
        sq_hdf5_chunk_index_free(index);
        sweep(true);
    }
}

/* ---- arrays ----------------------------------------------------------------------------------------------------------------------- */

static uint64_t address_of(uint64_t element)
{
    return element % 3 == 1 ? SQ_HDF5_NOWHERE : FIRST_ADDRESS + element;
}

static void put_elements(uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++)
        put(&f.bytes, address_of(i), 8);
}

static size_t put_block(const char *signature, bool has_owner)
{
    const size_t at = f.bytes.size;
    put_text(&f.bytes, signature);
    put(&f.bytes, 0, 1);
    put(&f.bytes, 0, 1); /* client: no filters */
    if (has_owner)
        put(&f.bytes, f.layout.address, 8);
    return at;
}

static void put_page(uint64_t first, uint64_t count)
{
    const size_t at = f.bytes.size;
    put_elements(first, count);
    put_checksum(&f.bytes, at);
}

static void put_fixed_array(unsigned page_bits)
{
    begin(SQ_HDF5_INDEX_FIXED_ARRAY, 2, 5);
    f.layout.address = put_block("FAHD", false);
    put(&f.bytes, 8, 1);
    put(&f.bytes, page_bits, 1);
    put(&f.bytes, 10, 8);
    put(&f.bytes, f.bytes.size + 12, 8);
    put_checksum(&f.bytes, f.layout.address);
    const size_t block = put_block("FADB", true);
    if (page_bits > 3) {
        put_elements(0, 10);
        put_checksum(&f.bytes, block);
        return;
    }
    put(&f.bytes, 0xa0, 1); /* pages 0 and 2 of three */
    put_checksum(&f.bytes, block);
    put_page(0, 4);
    for (unsigned i = 0; i < 4 * 8 + 4; i++)
        put(&f.bytes, 0x55, 1); /* what was in the file before */
    put_page(8, 2);
}

static void fixed_array_is_read_with_and_without_pages(void **state)
{
    (void)state;
    for (unsigned page_bits = 2; page_bits <= 10; page_bits += 8) {
        struct sq_hdf5_chunk_index *index;
        put_fixed_array(page_bits);
        assert_int_equal(load(&index, NULL), 0);
        for (uint64_t i = 0; i < 10; i++) {
            const bool is_there = address_of(i) != SQ_HDF5_NOWHERE && (page_bits > 3 || i < 4 || i >= 8);
            assert_int_equal(find(index, i / 5, i % 5), is_there ? address_of(i) : 0);
        }
        sq_hdf5_chunk_index_free(index);
        if (page_bits > 3)
            sweep(true);
    }
}

static void fixed_array_counts_by_the_greatest_shape(void **state)
{
    struct sq_hdf5_chunk_index *index;
    (void)state;
    put_fixed_array(10);
    f.shape[1] = 2 * 3; /* of 5 columns 3 are there */
    assert_int_equal(load(&index, NULL), 0);
    assert_int_equal(find(index, 1, 0), address_of(5));
    assert_int_equal(find(index, 0, 2), address_of(2));
    sq_hdf5_chunk_index_free(index);
}

/*
 * 2 elements in the index block, then blocks of 2 and 4 directly, two of 4 by a super block, two of 8 in pages of 4 by another.
 * The columns are without limit: element e is chunk (e % 2, e / 2).
 */
static void put_extensible_array(void)
{
    enum { INDEX_BITS = 10, SUPER_BLOCKS = 10, USED = 32, ADDRESSES = 2 + SUPER_BLOCKS - 2 };
    begin(SQ_HDF5_INDEX_EXTENSIBLE_ARRAY, 2, USED / 2);
    f.maximum[1] = SQ_HDF5_NOWHERE;
    f.layout.address = put_block("EAHD", false);
    put(&f.bytes, 8, 1);
    put(&f.bytes, INDEX_BITS, 1);
    put(&f.bytes, 2, 1); /* elements in the index block */
    put(&f.bytes, 2, 1); /* of the smallest data block */
    put(&f.bytes, 2, 1); /* pointers of the smallest super block */
    put(&f.bytes, 2, 1); /* pages of 2^2 elements */
    for (unsigned i = 0; i < 4; i++)
        put(&f.bytes, 0, 8);
    put(&f.bytes, USED, 8);
    put(&f.bytes, USED, 8);
    put(&f.bytes, f.bytes.size + 12, 8);
    put_checksum(&f.bytes, f.layout.address);

    const size_t index_block = put_block("EAIB", true), before = 14 + 2, checksum = 4; /* before: of a data block's elements */
    put_elements(0, 2);
    size_t next = f.bytes.size + ADDRESSES * 8 + checksum;
    const size_t data_0 = next, data_1 = data_0 + before + 2 * 8 + checksum, super_2 = data_1 + before + 4 * 8 + checksum;
    const size_t super_3 = super_2 + before + 2 * 8 + checksum + 2 * (before + 4 * 8 + checksum);
    put(&f.bytes, data_0, 8);
    put(&f.bytes, data_1, 8);
    put(&f.bytes, super_2, 8);
    put(&f.bytes, super_3, 8);
    for (unsigned i = 4; i < SUPER_BLOCKS; i++)
        put(&f.bytes, SQ_HDF5_NOWHERE, 8);
    put_checksum(&f.bytes, index_block);

    for (unsigned i = 0; i < 2; i++) {
        const size_t data = put_block("EADB", true);
        put(&f.bytes, i ? 2 : 0, 2);
        put_elements(i ? 4 : 2, i ? 4 : 2);
        put_checksum(&f.bytes, data);
    }
    size_t super = put_block("EASB", true);
    assert_int_equal(super, super_2);
    put(&f.bytes, 6, 2);
    put(&f.bytes, super + before + 2 * 8 + checksum, 8);
    put(&f.bytes, super + before + 2 * 8 + checksum + before + 4 * 8 + checksum, 8);
    put_checksum(&f.bytes, super);
    for (unsigned i = 0; i < 2; i++) {
        const size_t data = put_block("EADB", true);
        put(&f.bytes, 6 + 4 * i, 2);
        put_elements(8 + 4 * i, 4);
        put_checksum(&f.bytes, data);
    }
    super = put_block("EASB", true);
    assert_int_equal(super, super_3);
    put(&f.bytes, 14, 2);
    put(&f.bytes, 0xc0, 1); /* both pages of the first block */
    put(&f.bytes, 0x40, 1); /* the second of the second */
    const size_t paged = super + before + 2 + 2 * 8 + checksum, page = 4 * 8 + checksum;
    put(&f.bytes, paged, 8);
    put(&f.bytes, paged + before + checksum + 2 * page, 8);
    put_checksum(&f.bytes, super);
    for (unsigned i = 0; i < 2; i++) {
        const size_t data = put_block("EADB", true);
        put(&f.bytes, 14 + 8 * i, 2);
        put_checksum(&f.bytes, data);
        put_page(16 + 8 * i, 4);
        put_page(20 + 8 * i, 4);
    }
}

static void extensible_array_is_read_over_all_its_blocks(void **state)
{
    struct sq_hdf5_chunk_index *index;
    (void)state;
    put_extensible_array();
    assert_int_equal(load(&index, NULL), 0);
    for (uint64_t i = 0; i < 32; i++) {
        const bool is_there = address_of(i) != SQ_HDF5_NOWHERE && (i < 24 || i >= 28);
        assert_int_equal(find(index, i % 2, i / 2), is_there ? address_of(i) : 0);
    }
    sq_hdf5_chunk_index_free(index);
}

static void damaged_extensible_array_breaks_nothing(void **state)
{
    (void)state;
    put_extensible_array();
    for (size_t i = (size_t)f.layout.address; i < f.bytes.size; i++) {
        struct sq_hdf5_chunk_index *index = NULL;
        f.bytes.data[i] ^= 0x81;
        if (!load(&index, NULL)) /* a page that the bitmap says was never written */
            assert_true(i > f.bytes.size - 2 * 36 - 1 && i < f.bytes.size - 36);
        sq_hdf5_chunk_index_free(index);
        f.bytes.data[i] ^= 0x81;
    }
}

static void implicit_index_and_single_chunk_need_no_nodes(void **state)
{
    struct sq_hdf5_chunk_index *index;
    struct sq_hdf5_chunk chunk;
    (void)state;
    begin(SQ_HDF5_INDEX_IMPLICIT, 2, 2);
    f.maximum[1] = 2 * 4;
    f.layout.address = 100;
    assert_int_equal(load(&index, NULL), 0);
    assert_int_equal(find(index, 1, 1), 100 + (4 + 1) * CHUNK_BYTES);
    sq_hdf5_chunk_index_free(index);
    begin(SQ_HDF5_INDEX_SINGLE, 1, 1);
    f.filtered = true;
    f.layout.address = 100;
    f.layout.single_bytes = 7;
    f.layout.single_mask = 1;
    assert_int_equal(load(&index, NULL), 0);
    assert_true(sq_hdf5_chunk_find(index, (uint64_t[]){0, 0}, &chunk));
    assert_int_equal(chunk.size_bytes, 7);
    assert_int_equal(chunk.skip_mask, 1);
    sq_hdf5_chunk_index_free(index);
}

static void index_that_was_never_made_has_no_chunks(void **state)
{
    struct sq_hdf5_chunk_index *index;
    (void)state;
    for (enum sq_hdf5_index_kind kind = SQ_HDF5_INDEX_BTREE1; kind <= SQ_HDF5_INDEX_BTREE2; kind++) {
        begin(kind, 2, 2);
        f.layout.address = SQ_HDF5_NOWHERE;
        assert_int_equal(load(&index, NULL), 0);
        assert_int_equal(find(index, 1, 1), 0);
        sq_hdf5_chunk_index_free(index);
    }
}

/* ---- layout messages -------------------------------------------------------------------------------------------------------------- */

static struct hdf5_bytes message;

static int parse(struct sq_hdf5_layout *ret, struct squall_error *err)
{
    static const uint64_t SHAPE[] = {6, 4};
    static const struct sq_hdf5_type TYPE = {.class = SQ_HDF5_INTEGER, .size_bytes = 4};
    const struct sq_hdf5_dataset d = {.type = &TYPE,
                                      .space = {.rank = 2, .shape = SHAPE, .maximum = SHAPE, .element_count = 24},
                                      .layout = {.bytes = message.data, .size_bytes = message.size, .address = 64}};
    struct hdf5_in_memory m;
    begin(SQ_HDF5_INDEX_SINGLE, 1, 1);
    assert_int_equal(hdf5_open(&m, f.bytes.data, f.bytes.size, NULL), 0);
    int status = sq_hdf5_layout_parse(m.file, &d, ret, err);
    hdf5_close(&m);
    return status;
}

/* Versions 1 and 2: class, address, lengths of 4 bytes, then compact elements. */
static void put_old(unsigned version, unsigned class, unsigned counted)
{
    message.size = 0;
    put(&message, version, 1);
    put(&message, counted, 1);
    put(&message, class, 1);
    put(&message, 0, 5);
    if (class != 0)
        put(&message, 1234, 8);
    for (unsigned d = 0; d < counted; d++)
        put(&message, (unsigned[]){3, 2, 4}[d], 4);
}

static void layouts_of_the_first_versions_are_read(void **state)
{
    struct sq_hdf5_layout l;
    (void)state;
    for (unsigned version = 1; version <= 2; version++) {
        put_old(version, 2, 3);
        assert_int_equal(parse(&l, NULL), 0);
        assert_int_equal(l.kind, SQ_HDF5_CHUNKED);
        assert_int_equal(l.address, 1234);
        assert_int_equal(l.chunk[0], 3);
        assert_int_equal(l.chunk[1], 2);
        assert_int_equal(l.size_bytes, 24);
        put_old(version, 1, 2);
        assert_int_equal(parse(&l, NULL), 0);
        assert_int_equal(l.kind, SQ_HDF5_CONTIGUOUS);
        assert_int_equal(l.size_bytes, 96);
        put_old(version, 0, 2);
        put(&message, 96, 4);
        put(&message, 0, 96);
        assert_int_equal(parse(&l, NULL), 0);
        assert_int_equal(l.kind, SQ_HDF5_COMPACT);
        assert_ptr_equal(l.elements, message.data + message.size - 96);
    }
}

static void layout_that_contradicts_the_dataset_is_refused(void **state)
{
    struct sq_hdf5_layout l;
    struct squall_error err = SQUALL_ERROR_INIT;
    (void)state;
    put_old(1, 2, 2); /* chunks of one dimension */
    assert_int_equal(parse(&l, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "x.h5: byte 64: layout: chunks of 1 dimensions in a dataset of 2");
    put_old(1, 2, 3);
    message.data[16] = 0; /* a length */
    assert_int_equal(parse(&l, &err), SQUALL_ECORRUPT);
    put_old(1, 2, 3);
    message.data[24] = 8; /* the element's size */
    assert_int_equal(parse(&l, &err), SQUALL_ECORRUPT);
    put_old(1, 0, 2);
    put(&message, 95, 4);
    put(&message, 0, 95);
    assert_int_equal(parse(&l, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "x.h5: byte 64: layout: 95 bytes for elements that take 96");
    put_old(6, 1, 2);
    assert_int_equal(parse(&l, &err), SQUALL_EUNSUPPORTED);
}

static void every_truncation_of_a_layout_is_refused(void **state)
{
    struct sq_hdf5_layout l;
    (void)state;
    for (unsigned class = 0; class <= 2; class ++) {
        put_old(1, class, class == 2 ? 3 : 2);
        if (class == 0) {
            put(&message, 96, 4);
            put(&message, 0, 96);
        }
        while (message.size-- > 0) {
            int status = parse(&l, NULL);
            assert_true(status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED);
        }
    }
}

/* ---- filter messages -------------------------------------------------------------------------------------------------------------- */

/* Of one filter with a name and two values. */
static void put_filters(unsigned version)
{
    message.size = 0;
    put(&message, version, 1);
    put(&message, 1, 1);
    if (version == 1)
        put(&message, 0, 6);
    put(&message, 307, 2);
    put(&message, 8, 2); /* of the name */
    put(&message, 0, 2);
    put(&message, 2, 2);
    put_text(&message, "a filter");
    put(&message, 9, 4);
    put(&message, 7, 4);
}

static void every_truncation_of_a_filter_message_is_refused(void **state)
{
    struct hdf5_in_memory m;
    struct sq_hdf5_reader r;
    struct sq_hdf5_pipeline p;
    (void)state;
    begin(SQ_HDF5_INDEX_SINGLE, 1, 1);
    assert_int_equal(hdf5_open(&m, f.bytes.data, f.bytes.size, NULL), 0);
    for (unsigned version = 1; version <= 2; version++) {
        assert_int_equal(sq_hdf5_reader_init(&r, m.file, NULL), 0);
        put_filters(version);
        struct sq_hdf5_bytes bytes = {message.data, message.size, 64};
        assert_int_equal(sq_hdf5_pipeline_parse(&r, &bytes, &p, NULL), 0);
        assert_int_equal(p.count, 1);
        assert_string_equal(p.filters[0].name, "a filter");
        assert_int_equal(p.filters[0].values[1], 7);
        while (bytes.size_bytes-- > 0) {
            int status = sq_hdf5_pipeline_parse(&r, &bytes, &p, NULL);
            assert_true(status == SQUALL_ECORRUPT || (status == SQUALL_EUNSUPPORTED && bytes.size_bytes == 0));
        }
        sq_hdf5_reader_done(&r);
    }
    hdf5_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_of_version_1_is_read_over_its_levels),     cmocka_unit_test(tree_that_leads_to_itself_is_refused),
        cmocka_unit_test(chunk_off_the_grid_or_told_twice_is_refused),   cmocka_unit_test(records_of_version_2_hold_sizes_of_any_width),
        cmocka_unit_test(fixed_array_is_read_with_and_without_pages),    cmocka_unit_test(fixed_array_counts_by_the_greatest_shape),
        cmocka_unit_test(extensible_array_is_read_over_all_its_blocks),  cmocka_unit_test(damaged_extensible_array_breaks_nothing),
        cmocka_unit_test(implicit_index_and_single_chunk_need_no_nodes), cmocka_unit_test(index_that_was_never_made_has_no_chunks),
        cmocka_unit_test(layouts_of_the_first_versions_are_read),        cmocka_unit_test(layout_that_contradicts_the_dataset_is_refused),
        cmocka_unit_test(every_truncation_of_a_layout_is_refused),       cmocka_unit_test(every_truncation_of_a_filter_message_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
