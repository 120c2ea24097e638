/*
 * HDF5's filters: chunks that HDF5 2.0 with h5py's and hdf5plugin's filters stored, and such as nobody should write.
 * tests/python/test_hdf5_filters.py has many more of the first.
 */
#include "support/unit.h"

#include "codec/hdf5_filters.h"
#include "support/codecs.h"
#include <stdio.h>

enum { LZF = 32000, BLOSC = 32001, LZ4 = 32004, BITSHUFFLE = 32008, ZSTD = 32015 };
enum { DEFLATE = 1, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET };

static const uint16_t sixteen[] = {1, 2, 3, 4, 5, 6, 7, 8, 300, 301, 302, 303, 304, 305, 306, 307};

#define FILTER(number, ...)                                                                                                                \
    (struct sq_hdf5_filter)                                                                                                                \
    {                                                                                                                                      \
        .id = (number), .values = (const uint32_t[]){__VA_ARGS__}, .value_count = sizeof((const uint32_t[]){__VA_ARGS__}) / 4              \
    }

static struct sq_codec_chain *bind_filters(const struct sq_hdf5_filter *filters, size_t count, enum squall_type type)
{
    static const uint64_t shape[] = {1};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(type), .rank = 1, .shape = shape};
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    check_ok(sq_codec_chain_bind_hdf5(filters, count, &chunk, &chain, &err), &err);
    return chain;
}

static uint8_t *bytes_of(const char *hex, size_t *ret_size)
{
    size_t size = strlen(hex) / 2;
    uint8_t *bytes = malloc(size + !size);
    for (size_t i = 0; i < size; i++) {
        unsigned value;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
        bytes[i] = (uint8_t)value;
    }
    *ret_size = size;
    return bytes;
}

/* The chunk decodes to just these bytes; it is refused at every truncation, and where more or fewer bytes are expected. */
static void check_chunk(struct sq_hdf5_filter filter, const char *hex, const void *expected, size_t size)
{
    struct sq_codec_chain *chain = bind_filters(&filter, 1, SQUALL_UINT8);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t stored_size;
    uint8_t *stored = bytes_of(hex, &stored_size);
    check_decodes(chain, scratch, 1, stored, stored_size, expected, size);
    for (size_t cut = 0; cut < stored_size; cut++)
        check_refused(chain, scratch, stored, cut, size, SQUALL_ECORRUPT, "");
    check_refused(chain, scratch, stored, stored_size, size - 1, SQUALL_ECORRUPT, "");
    check_refused(chain, scratch, stored, stored_size, size + 1, SQUALL_ECORRUPT, "");
    free(stored);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

static void check_damaged(struct sq_hdf5_filter filter, const char *hex, size_t size, const char *part)
{
    struct sq_codec_chain *chain = bind_filters(&filter, 1, SQUALL_UINT8);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t stored_size;
    uint8_t *stored = bytes_of(hex, &stored_size);
    check_refused(chain, scratch, stored, stored_size, size, SQUALL_ECORRUPT, part);
    free(stored);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

/* Chunks that the filter was applied to are refused, others are not. */
static void check_filter_error(struct sq_hdf5_filter filter, int status, const char *part)
{
    struct sq_codec_chain *chain = bind_filters(&filter, 1, SQUALL_UINT8);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t stored[16] = {1, 2, 3}, back[16];
    check_refused(chain, scratch, stored, sizeof stored, sizeof stored, status, part);
    check_ok(sq_codec_decode_masked(chain, scratch, 1, 1, stored, sizeof stored, back, sizeof back, &err), &err);
    assert_memory_equal(back, stored, sizeof back);
    assert_null(sq_codec_chain_unknown_filter(chain, 0));
    assert_non_null(strstr(sq_codec_chain_text(chain), part));
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

/* ---- chunks of the library's -------------------------------------------------------------------------------------------------------- */

static void repeat_each(unsigned count, unsigned times, uint16_t *dst)
{
    for (unsigned i = 0; i < count * times; i++)
        dst[i] = sixteen[i / times];
}

static void lzf_decodes(void **state)
{
    (void)state;
    uint16_t expected[64];
    repeat_each(16, 4, expected);
    check_chunk(
        FILTER(LZF, 4, 261, 128),
        "0201000160010002a0010003a0010004a0010005a0010006a0010007a0010008a001012c018001002da001002ea001002fa0010030a0010031a0010032a001"
        "00336001013301",
        expected, sizeof expected);
    uint8_t ones[300]; /* a literal, a repetition of 7 + 255 + 2 bytes, one of 4 + 2, one of 7 + 20 + 2 */
    memset(ones, 1, sizeof ones);
    check_chunk(FILTER(LZF, 4, 261, 300), "0001e0ff008000e01400", ones, 300);
}

static void lz4_blocks_decode(void **state)
{
    (void)state;
    uint16_t expected[128];
    repeat_each(16, 8, expected);
    check_chunk(
        FILTER(LZ4, 100),
        "0000000000000100000000640000001f2a010002001b0202001b0302001b0402001b0502001a0602005000070007000000002326070002001b0802002a2c01"
        "02001b2d02001b2e02001b2f02008030013001300130010000001722300102001b3102001b32020016330200500133013301",
        expected, sizeof expected);
    check_chunk(FILTER(LZ4, 0), "000000000000000400000003000000030102030000000104", "\1\2\3\4", 4);
}

static void bitshuffle_decodes(void **state)
{
    (void)state;
    uint16_t expected[30];
    check_chunk(FILTER(BITSHUFFLE, 0, 4, 2, 8), "55667880000000000000000000000000aacc0f0ff0ff0000ff00000000000000", sixteen,
                sizeof sixteen);
    repeat_each(10, 3, expected);
    check_chunk(
        FILTER(BITSHUFFLE, 0, 4, 2, 16, 2),
        "000000000000003c00000020000000117fc771f88100fe0001000150000000000000000012f0011c1f1fe00000000000000000000000002c012c012c012d01"
        "2d012d01",
        expected, sizeof expected);
}

static void szip_decodes(void **state)
{
    (void)state;
    uint32_t wide[16];
    for (unsigned i = 0; i < 16; i++)
        wide[i] = sixteen[i];
    struct sq_hdf5_filter filters[] = {FILTER(SZIP, 40, 8, 16, 16), FILTER(SZIP, 40, 8, 32, 16)};
    const char *const chunks[] = {"200000001000124924b003fd8210842108", "40000000202492496003fcaaa80022f0004001"};
    const void *const expected[] = {sixteen, wide};
    for (unsigned i = 0; i < 2; i++) {
        struct sq_codec_chain *chain = bind_filters(&filters[i], 1, SQUALL_UINT8);
        struct sq_codec_scratch *scratch = sq_codec_scratch_new();
        size_t stored_size, size = i ? sizeof wide : sizeof sixteen;
        uint8_t *stored = bytes_of(chunks[i], &stored_size);
        check_decodes(chain, scratch, 1, stored, stored_size, expected[i], size);
        check_refused(chain, scratch, stored, 3, size, SQUALL_ECORRUPT, "szip");
        check_refused(chain, scratch, stored, stored_size / 2, size, SQUALL_ECORRUPT, "truncated");
        check_refused(chain, scratch, stored, stored_size, size - 1, SQUALL_ECORRUPT, "szip");
        free(stored);
        sq_codec_scratch_free(scratch);
        sq_codec_chain_free(chain);
    }
}

static void nbit_decodes(void **state)
{
    (void)state;
    uint8_t big[32];
    for (unsigned i = 0; i < 16; i++) {
        big[2 * i] = (uint8_t)(sixteen[i] >> 8);
        big[2 * i + 1] = (uint8_t)sixteen[i];
    }
    struct sq_hdf5_filter filter = FILTER(NBIT, 8, 0, 16, 1, 2, 1, 9, 0);
    struct sq_codec_chain *chain = bind_filters(&filter, 1, SQUALL_UINT8);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t stored_size;
    uint8_t *stored = bytes_of("008080604028180e08964b65d2f984c6653300", &stored_size);
    check_decodes(chain, scratch, 1, stored, 18, big, sizeof big); /* the library adds a byte */
    for (size_t cut = 0; cut < 18; cut++)
        check_refused(chain, scratch, stored, cut, sizeof big, SQUALL_ECORRUPT, "truncated");
    free(stored);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
    check_chunk(FILTER(NBIT, 9, 0, 2, 3, 2, 1, 0, 4, 1), "abcd", "\xab\0\xcd\0", 4);         /* a byte and one that is none's */
    check_chunk(FILTER(NBIT, 10, 0, 2, 2, 2, 1, 1, 0, 4, 2), "abcd", "\x28\x2c\x30\x34", 4); /* pairs of 4 bits from bit 2 on */
}

static void scaleoffset_decodes(void **state)
{
    (void)state;
    struct sq_hdf5_filter filter = FILTER(SCALEOFFSET, 2, 0, 16, 0, 2, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    check_chunk(filter, "09000000080100000000000000000000000000000000007fe03020140c0795cb25b2e97cc26332", sixteen, sizeof sixteen);
}

/* ---- such as nobody should write ------------------------------------------------------------------------------------------------------ */

static void values_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    check_filter_error(FILTER(SHUFFLE, 0), SQUALL_ECORRUPT, "shuffle");
    check_filter_error((struct sq_hdf5_filter){.id = SHUFFLE}, SQUALL_ECORRUPT, "shuffle");
    check_filter_error(FILTER(SHUFFLE, 0xffffffff), SQUALL_ECORRUPT, "shuffle");
    check_filter_error(FILTER(SZIP, 32, 8, 16), SQUALL_ECORRUPT, "szip: 3 values");
    check_filter_error(FILTER(SZIP, 32, 0, 16, 16), SQUALL_ECORRUPT, "szip");
    check_filter_error(FILTER(SZIP, 32, 8, 33, 16), SQUALL_ECORRUPT, "szip: 33 bits");
    check_filter_error(FILTER(SZIP, 32, 32, 8, 1), SQUALL_ECORRUPT, "scanlines of 1");
    check_filter_error(FILTER(SZIP, 32, 8, 8, 1 << 30), SQUALL_ECORRUPT, "szip");
    check_filter_error(FILTER(BITSHUFFLE, 0, 4), SQUALL_ECORRUPT, "bitshuffle");
    check_filter_error(FILTER(BITSHUFFLE, 0, 4, 4, 9), SQUALL_ECORRUPT, "blocks of 9");
    check_filter_error(FILTER(BITSHUFFLE, 0, 4, 4, 8, 7), SQUALL_EUNSUPPORTED, "compressor number 7");
    check_filter_error(FILTER(SCALEOFFSET, 2, 0, 16, 0, 2), SQUALL_ECORRUPT, "too few");
    check_filter_error(FILTER(SCALEOFFSET, 2, 0, 16, 0, 3, 0, 0, 0, 0, 0), SQUALL_ECORRUPT, "3 bytes");
    check_filter_error(FILTER(SCALEOFFSET, 0, 0, 16, 1, 2, 0, 0, 0, 0, 0), SQUALL_ECORRUPT, "2 bytes");
    check_filter_error(FILTER(SCALEOFFSET, 1, 0, 16, 1, 4, 0, 0, 0, 0, 0), SQUALL_EUNSUPPORTED, "exponents");
}

static void types_of_nbit_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    check_filter_error(FILTER(NBIT, 3, 0, 16), SQUALL_ECORRUPT, "too few");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 1, 2, 1, 9), SQUALL_ECORRUPT, "end within a type");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 1, 2, 1, 9, 8), SQUALL_ECORRUPT, "outside their number");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 1, 2, 0, 0, 0), SQUALL_ECORRUPT, "outside their number");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 1, 2, 2, 9, 0), SQUALL_ECORRUPT, "outside their number");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 1, 0, 0, 9, 0), SQUALL_ECORRUPT, "no bytes");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 5, 4), SQUALL_ECORRUPT, "not known");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 2, 6, 4, 4), SQUALL_ECORRUPT, "no whole number");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 3, 4, 0xffffffff, 0, 4, 4), SQUALL_ECORRUPT, "more types than values");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 3, 4, 1, 1, 4, 4), SQUALL_ECORRUPT, "outside its compound");
    check_filter_error(FILTER(NBIT, 8, 0, 16, 3, 4, 2, 0, 4, 4), SQUALL_ECORRUPT, "end within a type");
    uint32_t nested[203] = {203, 0, 1}, members[203] = {203, 0, 1};
    for (unsigned i = 3; i < 203; i += 2)
        nested[i] = 2, nested[i + 1] = 8; /* an array of arrays of arrays … */
    check_filter_error((struct sq_hdf5_filter){.id = NBIT, .values = nested, .value_count = 203}, SQUALL_ECORRUPT, "without end");
    for (unsigned i = 3; i + 4 < 203; i += 4)
        members[i] = 3, members[i + 1] = 8, members[i + 2] = 60, members[i + 3] = 0; /* 60 members, whose first has 60 … */
    check_filter_error((struct sq_hdf5_filter){.id = NBIT, .values = members, .value_count = 203}, SQUALL_ECORRUPT,
                       "more types than values");
}

static void damaged_chunks_are_refused(void **state)
{
    (void)state;
    check_damaged(FILTER(LZF, 4), "0001200140", 100, "before its beginning");
    check_damaged(FILTER(LZ4, 0), "00000000000000040000000000000000", 4, "header");
    check_damaged(FILTER(LZ4, 0), "ffffffffffffffff0000000400000000", 4, "the array's have 4");
    check_damaged(FILTER(LZ4, 0), "000000000000000400000004ffffffff10", 4, "ends beyond the chunk");
    check_damaged(FILTER(LZ4, 0), "0000000000000004000000040000000110", 4, "does not decode");
    check_damaged(FILTER(BITSHUFFLE, 0, 4, 4, 8, 2), "0000000000000020000000000000000100", 32, "make no sense");
    check_damaged(FILTER(BITSHUFFLE, 0, 4, 4, 8, 2), "0000000000000020000000210000000100", 32, "make no sense");
    check_damaged(FILTER(BITSHUFFLE, 0, 4, 4, 8, 2), "0000000000000021000000200000000100", 33, "make no sense");
    check_damaged(FILTER(BITSHUFFLE, 0, 4, 4, 8, 2), "0000000000000020000000200000000200", 32, "beyond the chunk");
    check_damaged(FILTER(BITSHUFFLE, 0, 4, 4, 8, 3), "0000000000000020000000200000000100", 32, "does not decode");
    check_damaged(FILTER(SCALEOFFSET, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0), "110000000801000000000000000000000000000000000000000000", 4, "header");
    check_damaged(FILTER(SCALEOFFSET, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0), "100000000801000000000000000000000000000000000000", 4, "truncated");
    check_damaged(FILTER(NBIT, 8, 0, 0xffffffff, 1, 8, 0, 64, 0), "00", 4, "more than its 4 bytes");
    check_damaged(FILTER(SZIP, 40, 8, 16, 16), "20000000ffffffffffffffffffffffffffffffff", 32, "szip");
}

/* A Fletcher-32 with the bytes of both halves swapped, which HDF5 wrote before 1.6.3, serves as well; another one does not. */
static void old_checksums_serve(void **state)
{
    (void)state;
    struct sq_hdf5_filter filter = {.id = FLETCHER32};
    struct sq_codec_chain *chain = bind_filters(&filter, 1, SQUALL_UINT8);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    const uint8_t now[] = {1, 2, 3, 4, 6, 4, 8, 5}, before[] = {1, 2, 3, 4, 4, 6, 5, 8}, wrong[] = {1, 2, 3, 4, 4, 6, 8, 5};
    check_decodes(chain, scratch, 1, now, sizeof now, "\1\2\3\4", 4);
    check_decodes(chain, scratch, 1, before, sizeof before, "\1\2\3\4", 4);
    check_refused(chain, scratch, wrong, sizeof wrong, 4, SQUALL_ECORRUPT, "checksum");
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

/* ---- pipelines ---------------------------------------------------------------------------------------------------------------------- */

static void masked_filters_are_left_out(void **state)
{
    (void)state;
    struct sq_hdf5_filter filters[] = {FILTER(SHUFFLE, 2), FILTER(DEFLATE, 1), {.id = 32013, .name = "a \x1b[7m name"}};
    struct sq_codec_chain *chain = bind_filters(filters, 3, SQUALL_UINT16);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct squall_error err = SQUALL_ERROR_INIT;
    uint16_t back[4];
    assert_string_equal(sq_codec_chain_unknown_filter(chain, 0), "filter 32013 (zfp)");
    assert_string_equal(sq_codec_chain_text(chain), "bytes + shuffle(2) + zlib(1) + unsupported(filter 32013 (zfp))");
    assert_int_equal(sq_codec_decode_masked(chain, scratch, 1, 0, sixteen, 8, back, 8, &err), SQUALL_EUNSUPPORTED);
    assert_string_equal(err.message, "unsupported HDF5 filter 32013 (zfp)");
    check_ok(sq_codec_decode_masked(chain, scratch, 1, 6, "\1\2\3\4\0\0\0\0", 8, back, 8, &err), &err);
    assert_memory_equal(back, sixteen, 8);
    check_ok(sq_codec_decode_masked(chain, scratch, 1, 7, sixteen, 8, back, 8, &err), &err);
    assert_memory_equal(back, sixteen, 8);
    assert_int_equal(sq_codec_decode_masked(chain, scratch, 1, 7, sixteen, 6, back, 8, &err), SQUALL_ECORRUPT);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

static void the_names_of_unknown_filters_are_visible(void **state)
{
    (void)state;
    struct sq_hdf5_filter filters[] = {{.id = 40000, .name = "a \x1b[7m name"}, {.id = 40001}};
    struct sq_codec_chain *chain = bind_filters(filters, 2, SQUALL_UINT16);
    assert_string_equal(sq_codec_chain_unknown_filter(chain, 0), "filter 40000 (a ?[7m name)");
    assert_non_null(strstr(sq_codec_chain_text(chain), "filter 40001 (of no known name)"));
    sq_codec_chain_free(chain);
    chain = bind_filters(filters, 0, SQUALL_UINT16);
    assert_null(sq_codec_chain_unknown_filter(chain, 0));
    assert_true(sq_codec_chain_is_plain(chain));
    sq_codec_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lzf_decodes),
        cmocka_unit_test(lz4_blocks_decode),
        cmocka_unit_test(bitshuffle_decodes),
        cmocka_unit_test(szip_decodes),
        cmocka_unit_test(nbit_decodes),
        cmocka_unit_test(scaleoffset_decodes),
        cmocka_unit_test(values_that_make_no_sense_are_refused),
        cmocka_unit_test(types_of_nbit_that_make_no_sense_are_refused),
        cmocka_unit_test(damaged_chunks_are_refused),
        cmocka_unit_test(old_checksums_serve),
        cmocka_unit_test(masked_filters_are_left_out),
        cmocka_unit_test(the_names_of_unknown_filters_are_visible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
