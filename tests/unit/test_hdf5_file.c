/* HDF5 superblocks, object headers and their checksums: what is damaged is refused, and says where. */
#include "support/hdf5_writer.h"

#include "format/hdf5/object.h"

/* A superblock behind `user_bytes`, and the root's header behind it, with these messages. */
static void put_file(struct hdf5_bytes *b, size_t user_bytes, unsigned version, unsigned flags, const struct hdf5_bytes *messages)
{
    *b = (struct hdf5_bytes){.size = user_bytes};
    put_superblock(b, version, flags, SQ_HDF5_NOWHERE, 0, HDF5_SUPERBLOCK_BYTES);
    put_object(b, messages);
}

static struct hdf5_bytes file, messages, body;

static void checksums_are_jenkins_lookup3(void **state)
{
    (void)state;
    assert_int_equal(sq_hdf5_checksum((const uint8_t *)"Four score and seven years ago", 30), 0x17770551); /* of his own driver5 */
    assert_int_equal(sq_hdf5_checksum((const uint8_t *)"", 0), 0xdeadbeef);
}

static void superblock_is_found_behind_a_user_block(void **state)
{
    static const size_t AT[] = {0, 512, 1024, 4096};
    (void)state;
    for (size_t i = 0; i < sizeof AT / sizeof *AT; i++) {
        struct hdf5_in_memory m;
        put_file(&file, AT[i], 2, 0, &messages);
        assert_int_equal(hdf5_open(&m, file.data, file.size, NULL), 0);
        assert_int_equal(m.file->base, AT[i]);
        assert_int_equal(m.file->root, HDF5_SUPERBLOCK_BYTES);
        hdf5_close(&m);
    }
}

static void flag_of_an_open_writer_counts_in_version_3_only(void **state)
{
    (void)state;
    for (unsigned version = 2; version <= 3; version++) {
        struct hdf5_in_memory m;
        put_file(&file, 0, version, 1, &messages);
        assert_int_equal(hdf5_open(&m, file.data, file.size, NULL), 0);
        assert_int_equal(m.file->marked_open, version == 3);
        hdf5_close(&m);
    }
}

/* Open, and read the root's header. */
static int read_root(const void *bytes, size_t size_bytes, struct sq_hdf5_object *ret, struct squall_error *err)
{
    struct hdf5_in_memory m;
    struct sq_hdf5_reader r;
    int status = hdf5_open(&m, bytes, size_bytes, err);
    if (!status) {
        assert_int_equal(sq_hdf5_reader_init(&r, m.file, NULL), 0);
        status = sq_hdf5_object_read(&r, m.file->root, ret, err);
        sq_hdf5_reader_done(&r);
    }
    hdf5_close(&m);
    return status;
}

static void every_changed_byte_is_refused(void **state)
{
    struct sq_hdf5_object object;
    (void)state;
    put(&body, 0x1234, 2);
    put_message(&messages, SQ_HDF5_LINK_INFO, 0, &body);
    put_file(&file, 0, 2, 0, &messages);
    assert_int_equal(read_root(file.data, file.size, &object, NULL), 0);
    assert_int_equal(object.count, 1);
    for (size_t i = 0; i < file.size; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        file.data[i] ^= 0x10;
        int status = read_root(file.data, file.size, &object, &err);
        assert_true(status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED);
        assert_int_equal(strncmp(err.message, "x.h5: ", 6), 0);
        file.data[i] ^= 0x10;
    }
}

static void every_truncation_is_refused(void **state)
{
    struct sq_hdf5_object object;
    (void)state;
    put_file(&file, 0, 2, 0, &messages);
    for (size_t size = 0; size < file.size; size++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(read_root(file.data, size, &object, &err), SQUALL_ECORRUPT);
        assert_int_equal(strncmp(err.message, "x.h5: ", 6), 0);
    }
}

/* A continuation that leads to itself. */
static void header_that_continues_in_itself_is_refused(void **state)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_hdf5_object object;
    struct hdf5_bytes *chunk = &file;
    (void)state;
    const uint64_t at = HDF5_SUPERBLOCK_BYTES + 12 + 20, size = 4 + 20 + 4;
    messages.size = body.size = 0;
    put(&body, at, 8);
    put(&body, size, 8);
    put_message(&messages, SQ_HDF5_CONTINUATION, 0, &body);
    put_file(&file, 0, 2, 0, &messages);
    assert_int_equal(file.size, at);
    put_text(chunk, "OCHK");
    put_message(chunk, SQ_HDF5_CONTINUATION, 0, &body);
    put_checksum(chunk, at);
    assert_int_equal(read_root(file.data, file.size, &object, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "continuations"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_jenkins_lookup3),
        cmocka_unit_test(superblock_is_found_behind_a_user_block),
        cmocka_unit_test(flag_of_an_open_writer_counts_in_version_3_only),
        cmocka_unit_test(every_changed_byte_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(header_that_continues_in_itself_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
