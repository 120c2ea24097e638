/* Zip files: what Python's zipfile wrote is found; whatever two programs could read differently, or leads out, is refused by name. */
#include "support/zip_writer.h"

#include "base/memory.h"
#include "io/zip.h"
#include <stdio.h>
#include <stdlib.h>

/*
 * Python's zipfile, with ZipInfo(name) for each member so that dates are those of 1980:
 *
 *     z.writestr("zarr.json", b"first"); z.writestr("t2m/c/0", b"0123456789"); z.writestr("t2m/c/1", b"squall " * 20, ZIP_DEFLATED)
 *     z.writestr("t2m/", b""); z.writestr("zarr.json", b"second"); z.comment = b"from Python"
 */
static const char PLAIN[] =
    "504b03041400000000000000210057ee71920500000005000000090000007a6172722e6a736f6e6669727374504b030414000000000000002100c6c7"
    "84a60a0000000a0000000700000074326d2f632f3030313233343536373839504b03041400000008000000210074ce40900c0000008c000000070000"
    "0074326d2f632f312b2e2c4dccc951281e0c1400504b0304140000000000000021000000000000000000000000000400000074326d2f504b03041400"
    "000000000000210069111fb60600000006000000090000007a6172722e6a736f6e7365636f6e64504b010214031400000000000000210057ee719205"
    "000000050000000900000000000000000000008001000000007a6172722e6a736f6e504b0102140314000000000000002100c6c784a60a0000000a00"
    "000007000000000000000000000080012c00000074326d2f632f30504b010214031400000008000000210074ce40900c0000008c0000000700000000"
    "0000000000000080015b00000074326d2f632f31504b0102140314000000000000002100000000000000000000000000040000000000000000000000"
    "80018c00000074326d2f504b010214031400000000000000210069111fb606000000060000000900000000000000000000008001ae0000007a617272"
    "2e6a736f6e504b050600000000050005000a010000db0000000b0066726f6d20507974686f6e";

/* Written to a file without seek, so that sizes follow the bytes: open("streamed", "w", force_zip64=True), open("deflated", "w"), b"a" * 100 */
static const char STREAMED[] =
    "504b03042d00080000000000210000000000ffffffffffffffff0800140073747265616d656401001000000000000000000000000000000000007772"
    "697474656e2061732069742063616d65504b0708bbb403fc12000000000000001200000000000000504b030414000800080000002100000000000000"
    "000000000000080000006465666c617465644b4ca43d0000504b0708647a70af0600000064000000504b01022d032d000800000000002100bbb403fc"
    "120000001200000008000000000000000000000080010000000073747265616d6564504b0102140314000800080000002100647a70af060000006400"
    "00000800000000000000000000008001640000006465666c61746564504b050600000000020002006c000000a00000000000";

/* "a", 40 times x, and "b", with zipfile.ZIP64_LIMIT = 30 and ZIP_FILECOUNT_LIMIT = 1: zip64 fields and a zip64 end record */
static const char ZIP64[] =
    "504b03042d000000000000002100f0711ac4ffffffffffffffff01001400610100100028000000000000002800000000000000787878787878787878"
    "78787878787878787878787878787878787878787878787878787878787878504b030414000000000000002100d819fd960200000002000000010000"
    "00627979504b01022d032d000000000000002100f0711ac4ffffffffffffffff01001400000000000000000080010000000061010010002800000000"
    "0000002800000000000000504b01022d032d000000000000002100d819fd96020000000200000001000c0000000000000000008001ffffffff620100"
    "08005b00000000000000504b06062c000000000000002d002d000000000000000000020000000000000002000000000000007e000000000000007c00"
    "000000000000504b060700000000fa0000000000000001000000504b050600000000020002007e0000007c0000000000";

/* An archive in memory: exactly size_bytes that may be read. */
struct archive {
    uint8_t *bytes;
    struct sq_source *source;
    struct sq_zip *zip;
};

static int archive_open(struct archive *a, const void *bytes, size_t size_bytes, struct squall_error *err)
{
    *a = (struct archive){.bytes = malloc(size_bytes ? size_bytes : 1)};
    assert_non_null(a->bytes);
    memcpy(a->bytes, bytes, size_bytes);
    assert_int_equal(sq_source_open_memory(a->bytes, size_bytes, "x.zip", &a->source, NULL), 0);
    return sq_zip_open(a->source, &a->zip, err);
}

static void archive_close(struct archive *a)
{
    sq_zip_close(a->zip);
    sq_source_close(a->source);
    free(a->bytes);
}

static size_t from_hex(const char *hex, uint8_t *ret)
{
    size_t count = strlen(hex) / 2;
    for (size_t i = 0; i < count; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        ret[i] = (uint8_t)byte;
    }
    return count;
}

/* A member unpacked, and a NUL; *ret: free. */
static int unpack(struct archive *a, const char *name, char **ret, struct squall_error *err)
{
    struct sq_zip_place place;
    size_t member;
    if (!sq_zip_find(a->zip, name, &member))
        return SQUALL_ENOTFOUND;
    int status = sq_zip_locate(a->zip, member, &place, err);
    if (status)
        return status;
    assert_true(place.size_bytes <= 1 << 20 && place.stored_bytes <= sq_source_size(a->source));
    char *bytes = calloc(place.size_bytes + 1, 1);
    uint8_t *stored = malloc(place.stored_bytes + 1);
    assert_true(bytes && stored);
    assert_int_equal(sq_source_read(a->source, place.offset, stored, place.stored_bytes, err), 0);
    if (place.deflated) {
        status = sq_zip_inflate(&place, stored, bytes, err);
    } else {
        memcpy(bytes, stored, place.size_bytes);
        status = sq_zip_check(&place, bytes, err);
    }
    free(stored);
    if (status)
        free(bytes);
    else
        *ret = bytes;
    return status;
}

static void assert_holds(struct archive *a, const char *name, const char *text)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    char *found = NULL;
    if (unpack(a, name, &found, &err))
        fail_msg("%s: %s", name, err.message);
    assert_string_equal(found, text);
    free(found);
}

/* The whole archive is refused, and the message has these words in it. */
static void assert_refused(const struct zip_writer *z, int status, const char *words)
{
    struct archive a;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(archive_open(&a, z->bytes, z->size, &err), status);
    if (strncmp(err.message, "x.zip: ", 7) != 0 || !strstr(err.message, words))
        fail_msg("%s", err.message);
    archive_close(&a);
}

/* Only this member is: when it is wanted, and by a line before. */
static void assert_member_refused(const struct zip_writer *z, const char *name, int status, const char *words)
{
    struct archive a;
    struct squall_error err = SQUALL_ERROR_INIT;
    char *bytes = NULL;
    size_t problem_count;
    assert_int_equal(archive_open(&a, z->bytes, z->size, NULL), 0);
    assert_int_equal(unpack(&a, name, &bytes, &err), status);
    if (!strstr(err.message, name) || !strstr(err.message, words))
        fail_msg("%s", err.message);
    const char *const *problems = sq_zip_problems(a.zip, &problem_count);
    assert_int_equal(problem_count, 1);
    assert_non_null(strstr(problems[0], words));
    archive_close(&a);
}

/* ---- what is right ------------------------------------------------------------------------------------------------------------------ */

static const char SQUALLS[] = "squall squall squall squall squall squall squall squall squall squall "
                              "squall squall squall squall squall squall squall squall squall squall ";

static void members_that_python_wrote_are_found_and_the_last_of_one_name_counts(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    struct archive a;
    size_t length;
    assert_int_equal(archive_open(&a, bytes, from_hex(PLAIN, bytes), NULL), 0);
    assert_int_equal(sq_zip_count(a.zip), 3);
    assert_holds(&a, "zarr.json", "second");
    assert_holds(&a, "t2m/c/0", "0123456789");
    assert_holds(&a, "t2m/c/1", SQUALLS);
    assert_memory_equal(sq_zip_name(a.zip, 0, &length), "t2m/c/0", 7);
    assert_int_equal(length, 7);
    assert_int_equal(sq_zip_stored_bytes(a.zip, 1), 12);
    assert_false(sq_zip_find(a.zip, "t2m", &length));
    assert_false(sq_zip_find(a.zip, "t2m/", &length));
    archive_close(&a);
}

static void sizes_behind_the_bytes_and_zip64_fields_are_read(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    struct archive a;
    char text[101] = {0};
    memset(text, 'a', 100);
    assert_int_equal(archive_open(&a, bytes, from_hex(STREAMED, bytes), NULL), 0);
    assert_holds(&a, "streamed", "written as it came");
    assert_holds(&a, "deflated", text);
    archive_close(&a);
    assert_int_equal(archive_open(&a, bytes, from_hex(ZIP64, bytes), NULL), 0);
    assert_holds(&a, "a", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    assert_holds(&a, "b", "yy");
    archive_close(&a);
}

static void an_archive_of_nothing_has_no_members(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct archive a;
    zip_end(&z);
    assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
    assert_int_equal(sq_zip_count(a.zip), 0);
    archive_close(&a);
}

static void a_comment_may_look_like_an_end_record(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct archive a;
    zip_add_text(&z, "a", "text");
    zip_end(&z);
    zip_put(z.bytes + z.size - 2, 30, 2);
    memset(z.bytes + z.size, ' ', 30);
    zip_put(z.bytes + z.size + 3, 0x06054b50, 4); /* whose own comment would not end where the file does */
    z.size += 30;
    assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
    assert_holds(&a, "a", "text");
    archive_close(&a);
}

/* ---- members that are refused ------------------------------------------------------------------------------------------------------- */

static void names_that_lead_out_are_refused(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"../a", "a/../../b", "/etc/passwd", "a/..", "./a", "a/./b",
                                        "a//b", "a\\..\\b",  "C:\\a",       "..",   "../", "/"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct zip_writer z = {.size = 0};
        struct archive a;
        size_t problem_count;
        zip_add_text(&z, NAMES[i], "text");
        zip_add_text(&z, "good", "text");
        zip_end(&z);
        assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
        (void)sq_zip_problems(a.zip, &problem_count);
        assert_int_equal(problem_count, 1);
        assert_holds(&a, "good", "text");
        for (size_t m = 0; m < sq_zip_count(a.zip); m++) {
            struct sq_zip_place place;
            size_t length;
            const char *name = sq_zip_name(a.zip, m, &length);
            bool good = length == 4 && !memcmp(name, "good", 4);
            assert_int_equal(sq_zip_name_is_path(a.zip, m), good);
            assert_int_equal(sq_zip_locate(a.zip, m, &place, NULL), good ? 0 : SQUALL_ECORRUPT);
        }
        archive_close(&a);
    }
}

static void a_name_with_a_nul_refuses_the_archive(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct zip_fields f = zip_member("t2m/c/0", "text", 4);
    f.name = "t2m/c/0\0../a";
    f.name_length = 12;
    zip_add(&z, &f, "text");
    zip_end(&z);
    assert_refused(&z, SQUALL_ECORRUPT, "NUL");
}

static void names_are_told_without_what_moves_a_cursor(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct archive a;
    size_t problem_count;
    zip_add_text(&z, "../\x1b[2Ja", "text");
    zip_end(&z);
    assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
    assert_non_null(strstr(sq_zip_problems(a.zip, &problem_count)[0], "x.zip: ../?[2Ja cannot be read"));
    archive_close(&a);
}

static void links_encrypted_and_unknown_members_are_refused_by_name(void **state)
{
    (void)state;
    const struct {
        unsigned flags, method, host;
        uint32_t attributes;
        const char *words;
    } CASES[] = {
        {0, 0, 3, 0120777u << 16, "a symbolic link"},
        {0, 0, 3, 0010644u << 16, "no regular file"},
        {1, 0, 3, 0100644u << 16, "encrypted"},
        {1 | 1 << 6, 8, 3, 0, "encrypted"},
        {1 << 13, 0, 3, 0, "encrypted"},
        {0, 14, 0, 0, "neither stored nor deflated"},
        {0, 93, 3, 0100644u << 16, "neither stored nor"},
        {0, 0, 19, 0120777u << 16, "a symbolic link"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct zip_writer z = {.size = 0};
        struct zip_fields f = zip_member("t2m/c/0", "../../etc/passwd", 16);
        f.flags = CASES[i].flags;
        f.method = CASES[i].method;
        f.host = CASES[i].host;
        f.attributes = CASES[i].attributes;
        zip_add(&z, &f, "../../etc/passwd");
        zip_add_text(&z, "other", "text");
        zip_end(&z);
        assert_member_refused(&z, "t2m/c/0", SQUALL_EUNSUPPORTED, CASES[i].words);
    }
}

static void only_the_first_of_many_refused_members_are_told(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct archive a;
    size_t problem_count;
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "../%u", i);
        zip_add_text(&z, name, "");
    }
    zip_end(&z);
    assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
    const char *const *problems = sq_zip_problems(a.zip, &problem_count);
    assert_int_equal(problem_count, 17);
    assert_non_null(strstr(problems[16], "84 more"));
    archive_close(&a);
}

/* ---- contradictions ----------------------------------------------------------------------------------------------------------------- */

static void a_header_that_contradicts_the_directory_is_refused(void **state)
{
    (void)state;
    enum { FLAGS, METHOD, CRC, STORED_BYTES, SIZE_BYTES, NAME, NAME_LENGTH, CASES };
    for (int i = 0; i < CASES; i++) {
        struct zip_writer z = {.size = 0};
        struct zip_fields row = zip_member("t2m/c/0", "text", 4), local = row;
        struct squall_error err = SQUALL_ERROR_INIT;
        struct archive a;
        char *bytes;
        local.flags = i == FLAGS;
        local.method = i == METHOD ? 8 : 0;
        local.crc32 ^= i == CRC;
        local.stored_bytes -= i == STORED_BYTES;
        local.size_bytes += i == SIZE_BYTES;
        local.name = i == NAME ? "t2m/c/1" : local.name;
        local.name_length -= i == NAME_LENGTH;
        zip_row(&z, &row, zip_local(&z, &local, "text", 4));
        zip_add_text(&z, "other", "text");
        zip_end(&z);
        assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
        assert_int_equal(unpack(&a, "t2m/c/0", &bytes, &err), SQUALL_ECORRUPT);
        assert_non_null(
            strstr(err.message, i == NAME_LENGTH ? "overlaps" : "x.zip: t2m/c/0: its own header, at byte 0, contradicts the directory"));
        archive_close(&a);
    }
}

static void members_that_overlap_are_refused_both(void **state)
{
    (void)state;
    for (int same_header = 0; same_header < 2; same_header++) {
        struct zip_writer z = {.size = 0};
        struct zip_fields outer = zip_member("outer", NULL, 0), inner = zip_member("inner", "text", 4);
        struct archive a;
        uint8_t nested[64] = {0};
        struct zip_writer part = {.size = 0};
        zip_local(&part, &inner, "text", 4);
        memcpy(nested, part.bytes, part.size);
        outer.stored_bytes = outer.size_bytes = sizeof nested;
        outer.crc32 = libdeflate_crc32(0, nested, sizeof nested);
        size_t at = zip_local(&z, &outer, nested, sizeof nested);
        zip_row(&z, &outer, at);
        zip_row(&z, &inner, same_header ? at : at + 30 + 5);
        zip_end(&z);
        assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
        for (size_t m = 0; m < 2; m++) {
            struct sq_zip_place place;
            struct squall_error err = SQUALL_ERROR_INIT;
            assert_int_equal(sq_zip_locate(a.zip, m, &place, &err), SQUALL_ECORRUPT);
            assert_non_null(strstr(err.message, "overlaps another member"));
        }
        archive_close(&a);
    }
}

static void an_extra_field_cannot_move_a_member_into_another(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    struct zip_fields f = zip_member("a", "text", 4);
    struct archive a;
    struct sq_zip_place place;
    zip_add(&z, &f, "text");
    zip_put(z.bytes + 28, 3, 2); /* the header's extra field: three bytes of what was its text */
    zip_add_text(&z, "b", "other");
    zip_end(&z);
    assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
    assert_int_equal(sq_zip_locate(a.zip, 0, &place, NULL), SQUALL_ECORRUPT);
    assert_holds(&a, "b", "other");
    archive_close(&a);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const struct {
        unsigned method;
        uint32_t stored_bytes, size_bytes;
        uint64_t at;
        const char *words;
    } CASES[] = {
        {0, 4, 5, 0, "its size is not what"},
        {8, 4, 4 * 1033, 0, "its size is not what"},
        {8, 4, UINT32_MAX - 1, 0, "its size is not what"},
        {0, 5000, 5000, 0, "does not lie before"},
        {0, 4, 4, UINT32_MAX - 1, "does not lie before"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct zip_writer z = {.size = 0};
        struct zip_fields f = zip_member("t2m/c/0", "text", 4);
        f.method = CASES[i].method;
        f.stored_bytes = CASES[i].stored_bytes;
        f.size_bytes = CASES[i].size_bytes;
        zip_local(&z, &f, "text", 4);
        zip_row(&z, &f, CASES[i].at);
        zip_end(&z);
        assert_member_refused(&z, "t2m/c/0", SQUALL_ECORRUPT, CASES[i].words);
    }
}

static void deflated_bytes_that_are_not_what_the_directory_says_are_refused(void **state)
{
    (void)state;
    const struct {
        int more_size, more_stored, crc;
        const char *words;
    } CASES[] = {
        {-1, 0, 0, "more than the 139 bytes"},
        {1, 0, 0, "fewer than the 141 bytes"},
        {0, 1, 0, "1 bytes of something else"},
        {0, -1, 0, "damaged"},
        {0, 0, 1, "checksum"},
    };
    struct libdeflate_compressor *deflater = libdeflate_alloc_compressor(6);
    uint8_t deflated[300] = {0};
    size_t size = libdeflate_deflate_compress(deflater, SQUALLS, strlen(SQUALLS), deflated, sizeof deflated);
    libdeflate_free_compressor(deflater);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct zip_writer z = {.size = 0};
        struct zip_fields f = zip_member("a", SQUALLS, strlen(SQUALLS));
        struct squall_error err = SQUALL_ERROR_INIT;
        struct archive a;
        char *bytes;
        f.method = 8;
        f.size_bytes += (uint32_t)CASES[i].more_size;
        f.stored_bytes = (uint32_t)size + (uint32_t)CASES[i].more_stored;
        f.crc32 += (uint32_t)CASES[i].crc;
        zip_add(&z, &f, deflated);
        zip_end(&z);
        assert_int_equal(archive_open(&a, z.bytes, z.size, NULL), 0);
        assert_int_equal(unpack(&a, "a", &bytes, &err), SQUALL_ECORRUPT);
        if (!strstr(err.message, CASES[i].words))
            fail_msg("%s", err.message);
        archive_close(&a);
    }
}

static void an_end_record_that_lies_is_refused(void **state)
{
    (void)state;
    const struct {
        int count, size, at;
        const char *words;
    } CASES[] = {
        {1, 0, 0, "counts more members"},   {100, 0, 0, "counts more members"},  {-1, 0, 0, "goes on behind"},
        {0, 1, 0, "another place or size"}, {0, -1, 0, "another place or size"}, {0, 0, 1, "another place or size"},
        {0, 1, -1, "no member's row"},      {0, -46, 46, "counts more"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct zip_writer z = {.size = 0};
        zip_add_text(&z, "a", "text");
        zip_add_text(&z, "b", "text");
        zip_end_saying(&z, (size_t)(2 + CASES[i].count), z.row_size + (size_t)CASES[i].size, z.size + (size_t)CASES[i].at);
        assert_refused(&z, SQUALL_ECORRUPT, CASES[i].words);
    }
}

static void a_zip64_record_that_contradicts_the_end_record_is_refused(void **state)
{
    (void)state;
    struct zip_writer z = {.size = from_hex(ZIP64, z.bytes)};
    const size_t record = z.size - 22 - 20 - 56;
    const uint8_t good = z.bytes[record + 40];
    z.bytes[record + 40]++; /* the directory's size */
    assert_refused(&z, SQUALL_ECORRUPT, "contradicts the end record");
    z.bytes[record + 40] = good;
    z.bytes[record + 4]++; /* its own */
    assert_refused(&z, SQUALL_ECORRUPT, "no zip64 record");
}

static void parts_of_an_archive_in_several_are_refused(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    zip_add_text(&z, "a", "text");
    zip_end(&z);
    z.bytes[z.size - 18] = 1; /* this part's number */
    assert_refused(&z, SQUALL_EUNSUPPORTED, "several parts");
}

static void what_is_no_zip_file_is_refused(void **state)
{
    (void)state;
    struct zip_writer z = {.size = 0};
    assert_refused(&z, SQUALL_ECORRUPT, "no zip file");
    z.size = 5000;
    assert_refused(&z, SQUALL_ECORRUPT, "no zip file");
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    static const char *const ARCHIVES[] = {PLAIN, STREAMED, ZIP64};
    for (size_t i = 0; i < 3; i++) {
        struct zip_writer z = {.size = 0};
        const size_t whole = from_hex(ARCHIVES[i], z.bytes);
        for (z.size = 0; z.size < whole; z.size++)
            assert_refused(&z, SQUALL_ECORRUPT, "");
    }
}

/* Whatever one bit is: a member that can be read at all holds what was put into it. */
static void no_flipped_bit_changes_what_a_member_holds(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"zarr.json", "t2m/c/0", "t2m/c/1"}, *const TEXTS[] = {"second", "0123456789", SQUALLS};
    struct zip_writer z = {.size = from_hex(PLAIN, z.bytes)};
    unsigned opened = 0, read = 0;
    for (size_t bit = 0; bit < 8 * z.size; bit++) {
        struct archive a;
        z.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (!archive_open(&a, z.bytes, z.size, NULL)) {
            opened++;
            for (size_t i = 0; i < 3; i++) {
                char *bytes = NULL;
                if (unpack(&a, NAMES[i], &bytes, NULL))
                    continue;
                read++;
                if (strcmp(bytes, TEXTS[i]) != 0 &&
                    strcmp(bytes, "first") != 0) /* the older member, where the newer has another name now */
                    fail_msg("bit %zu: %s holds %s", bit, NAMES[i], bytes);
                free(bytes);
            }
        }
        archive_close(&a);
        z.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(opened > 100 && read > 2 * opened);
}

static void every_failed_allocation_is_an_error(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    size_t size = from_hex(PLAIN, bytes);
    struct sq_source *source;
    assert_int_equal(sq_source_open_memory(bytes, size, "x.zip", &source, NULL), 0);
    for (long n = 0;; n++) {
        struct sq_zip *zip = NULL;
        struct sq_zip_place place;
        sq_fail_allocation(n);
        int status = sq_zip_open(source, &zip, NULL);
        if (!status)
            status = sq_zip_locate(zip, 0, &place, NULL);
        sq_fail_allocation(-1);
        sq_zip_close(zip);
        if (!status) {
            assert_true(n > 4);
            break;
        }
        assert_int_equal(status, SQUALL_ENOMEM);
    }
    sq_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_python_wrote_are_found_and_the_last_of_one_name_counts),
        cmocka_unit_test(sizes_behind_the_bytes_and_zip64_fields_are_read),
        cmocka_unit_test(an_archive_of_nothing_has_no_members),
        cmocka_unit_test(a_comment_may_look_like_an_end_record),
        cmocka_unit_test(names_that_lead_out_are_refused),
        cmocka_unit_test(a_name_with_a_nul_refuses_the_archive),
        cmocka_unit_test(names_are_told_without_what_moves_a_cursor),
        cmocka_unit_test(links_encrypted_and_unknown_members_are_refused_by_name),
        cmocka_unit_test(only_the_first_of_many_refused_members_are_told),
        cmocka_unit_test(a_header_that_contradicts_the_directory_is_refused),
        cmocka_unit_test(members_that_overlap_are_refused_both),
        cmocka_unit_test(an_extra_field_cannot_move_a_member_into_another),
        cmocka_unit_test(sizes_that_cannot_be_are_refused),
        cmocka_unit_test(deflated_bytes_that_are_not_what_the_directory_says_are_refused),
        cmocka_unit_test(an_end_record_that_lies_is_refused),
        cmocka_unit_test(a_zip64_record_that_contradicts_the_end_record_is_refused),
        cmocka_unit_test(parts_of_an_archive_in_several_are_refused),
        cmocka_unit_test(what_is_no_zip_file_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_flipped_bit_changes_what_a_member_holds),
        cmocka_unit_test(every_failed_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
