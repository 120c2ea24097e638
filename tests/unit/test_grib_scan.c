/* Finding messages in files: what surrounds them, what damages them, and that the time for it grows with the file only. */
#include "support/message.h"
#include "support/unit.h"

#include "base/memory.h"
#include "format/grib/scan.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct log {
    unsigned fields, problems;
    uint64_t offsets[200];
    uint64_t problem_offsets[8];
    char texts[8][600];
};

static int on_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct log *log = user;
    (void)err;
    unsigned sum = 0;
    for (unsigned i = 1; i < SQ_GRIB_SECTION_COUNT; i++) {
        uint64_t size = found->frame.section[i].size_bytes;
        assert_int_equal(size > 0, found->section[i] != NULL);
        for (uint64_t k = 0; k < size && (i < 6 || k < 16); k++)
            sum += found->section[i][k]; /* readable: the sanitizer says */
    }
    assert_true(sum > 0);
    if (log->fields < 200)
        log->offsets[log->fields] = found->offset;
    log->fields++;
    return 0;
}

static int on_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    struct log *log = user;
    (void)err;
    if (log->problems < 8) {
        log->problem_offsets[log->problems] = offset;
        snprintf(log->texts[log->problems], sizeof log->texts[0], "%s", what);
    }
    log->problems++;
    return 0;
}

static struct log scan_bytes(const void *bytes, size_t size)
{
    struct log log = {0};
    struct sq_source *source;
    struct sq_grib_scan_events events = {on_field, on_problem, &log};
    assert_int_equal(sq_source_open_memory(bytes, size, "memory", &source, NULL), 0);
    assert_int_equal(sq_grib_scan(source, &events, NULL), 0);
    sq_source_close(source);
    return log;
}

static struct log scan_text(const struct sq_text *t)
{
    return scan_bytes(t->data, t->length);
}

static void messages_of_both_editions_are_found_among_padding_and_headers(void **state)
{
    (void)state;
    const uint8_t pds[28] = {0}, data[5] = {1};
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    uint64_t expected[4];
    sq_text_add(&t, "\1\r\r\n673\r\r\nYMFD98 EGRR 010600\r\r\n");
    expected[0] = message_add(&t, 1);
    sq_text_add(&t, "\r\r\n\3");
    expected[1] = message1_add(&t, pds, sizeof pds, NULL, 0, data, sizeof data);
    for (unsigned i = 0; i < 5000; i++)
        sq_text_add_bytes(&t, "\0", 1);
    expected[2] = expected[3] = message_add(&t, 2);
    sq_text_add_bytes(&t, "\0\0", 2);
    struct log log = scan_text(&t);
    assert_int_equal(log.problems, 0);
    assert_int_equal(log.fields, 4);
    assert_memory_equal(log.offsets, expected, sizeof expected);
}

static void grib_and_7777_inside_data_mean_nothing(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text inner = SQ_TEXT_INIT, t = SQ_TEXT_INIT;
    uint8_t body3[67];
    message_add(&inner, 1);
    sq_text_add(&inner, "7777");
    body3_make(body3, 2, 2);
    size_t start = message_begin(&t, 0);
    message_section(&t, 1, BODY1, sizeof BODY1);
    message_section(&t, 3, body3, sizeof body3);
    message_section(&t, 4, BODY4, sizeof BODY4);
    message_section(&t, 5, BODY5, sizeof BODY5);
    message_section(&t, 6, BODY6, sizeof BODY6);
    message_section(&t, 7, inner.data, inner.length);
    message_end(&t, start);
    struct log log = scan_text(&t);
    assert_int_equal(log.problems, 0);
    assert_int_equal(log.fields, 1);
}

static void a_damaged_message_costs_itself_only(void **state)
{
    (void)state;
    const struct {
        const char *what;
        size_t at;
        unsigned size_bytes;
        uint64_t value;
        const char *says;
    } damages[] = {
        {"length too long", 8, 8, 5000, "cut off"},
        {"length into the next message", 8, 8, 200, "the end mark (7777), where the message says 200 bytes"},
        {"length too short", 8, 8, 150, "section 5 says 21 bytes"},
        {"length of nothing", 8, 8, 3, "cannot have 3 bytes"},
        {"length of 64 bits", 8, 8, UINT64_MAX, "cut off"},
        {"another edition", 7, 1, 3, "edition 3"},
        {"section 1 of nothing", 16, 4, 0, "section 1 says 0 bytes"},
        {"section 4 too long", 109, 4, 1000000, "section 4 says 1000000 bytes"},
        {"section 7 too short", 170, 4, 8, "section"},
        {"section 9", 113, 1, 9, "section 9 after section 3"},
        {"no end mark", 179, 4, 0x37373738, "no end mark"},
    };
    for (size_t k = 0; k < sizeof damages / sizeof *damages; k++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        message_add(&t, 1);
        size_t bad = message_add(&t, 1), after = message_add(&t, 3);
        put_be((uint8_t *)t.data + bad + damages[k].at, damages[k].value, damages[k].size_bytes);
        struct log log = scan_text(&t);
        if (log.fields != 4 || log.problems != 1 || log.problem_offsets[0] != bad || !strstr(log.texts[0], damages[k].says))
            fail_msg("%s: %u fields, %u problems, at %llu: %s", damages[k].what, log.fields, log.problems,
                     (unsigned long long)log.problem_offsets[0], log.texts[0]);
        assert_int_equal(log.offsets[1], after);
    }
}

static void each_damaged_message_is_named(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    size_t bad[3];
    for (unsigned i = 0; i < 3; i++) {
        bad[i] = message_add(&t, 1);
        t.data[t.length - 1] = 'x';
    }
    message_add(&t, 1);
    struct log log = scan_text(&t);
    assert_int_equal(log.fields, 1);
    assert_int_equal(log.problems, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(log.problem_offsets[i], bad[i]);
}

static void every_truncation_of_the_last_message_is_named(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    size_t last = message_add(&t, 2);
    for (size_t cut = last + 4; cut < t.length; cut++) {
        uint8_t *copy = malloc(cut);
        memcpy(copy, t.data, cut);
        struct log log = scan_bytes(copy, cut);
        assert_int_equal(log.fields, 1);
        assert_int_equal(log.problems, 1);
        assert_int_equal(log.problem_offsets[0], last);
        free(copy);
    }
}

/* Padding and headers are no part of the message: the offset is that of its first byte. */
static void a_cut_message_behind_padding_or_a_header_is_named_where_it_begins(void **state)
{
    (void)state;
    static const char padding[120] = {0};
    const struct {
        const char *bytes;
        size_t count;
    } between[] = {{padding, 8}, {padding, 120}, {"\1\r\r\n673\r\r\nYMFD98 EGRR 010600\r\r\n", 31}};
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        message_add(&t, 1);
        sq_text_add_bytes(&t, between[i].bytes, between[i].count);
        size_t last = message_add(&t, 1);
        for (size_t cut = last + SQ_GRIB_HEAD_BYTES; cut < t.length; cut++) {
            struct log log = scan_bytes(t.data, cut);
            assert_int_equal(log.fields, 1);
            assert_int_equal(log.problems, 1);
            assert_int_equal(log.problem_offsets[0], last);
            assert_non_null(strstr(log.texts[0], "cut off"));
        }
    }
}

static void what_is_no_grib_is_said_with_its_beginning(void **state)
{
    (void)state;
    const char *html = "<html><body>GRIB file not found</body></html>";
    struct log log = scan_bytes(html, strlen(html));
    assert_int_equal(log.fields, 0);
    assert_int_equal(log.problems, 1);
    assert_string_equal(log.texts[0], "no GRIB message in 45 bytes; the file begins with \"<html><body>GRIB file no…\"");
    log = scan_bytes("", 0);
    assert_int_equal(log.problems, 1);
    assert_string_equal(log.texts[0], "the file is empty");
}

static void junk_between_messages_is_named_with_place_and_length(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    size_t junk = t.length;
    for (unsigned i = 0; i < 100; i++)
        sq_text_add_bytes(&t, (uint8_t[]){(uint8_t)(i * 37)}, 1);
    message_add(&t, 1);
    struct log log = scan_text(&t);
    assert_int_equal(log.fields, 2);
    assert_int_equal(log.problems, 1);
    assert_int_equal(log.problem_offsets[0], junk);
    assert_non_null(strstr(log.texts[0], "100 bytes that belong to no GRIB message"));
}

/* Large messages: heads, bitmaps and data farther apart than one read. */
static void sections_far_apart_are_found(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    uint8_t body3[67], *large = calloc(1, 300001);
    body3_make(body3, 2, 2);
    for (unsigned message = 0; message < 3; message++) {
        size_t start = message_begin(&t, 0);
        message_section(&t, 1, BODY1, sizeof BODY1);
        message_section(&t, 2, large, 9000);
        message_section(&t, 3, body3, sizeof body3);
        for (unsigned field = 0; field < 3; field++) {
            message_section(&t, 4, BODY4, sizeof BODY4);
            message_section(&t, 5, BODY5, sizeof BODY5);
            large[0] = field == 1 ? 254 : 0;
            message_section(&t, 6, large, field == 1 ? 1 : 100000);
            message_section(&t, 7, large, 300001);
        }
        message_end(&t, start);
    }
    struct log log = scan_text(&t);
    assert_int_equal(log.problems, 0);
    assert_int_equal(log.fields, 9);
    free(large);
}

/* Sizes and offsets beyond 32 bits, in a file that is all holes: nothing of it may be read. */
static void a_message_beyond_4_gib_is_jumped_over(void **state)
{
    (void)state;
    const uint64_t section7_bytes = UINT64_C(3) << 30;
    char path[] = "/tmp/squall-scan-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    uint8_t body3[67];
    uint64_t at = 0;
    body3_make(body3, 2, 2);
    size_t start = message_begin(&t, 0);
    message_section(&t, 1, BODY1, sizeof BODY1);
    message_section(&t, 3, body3, sizeof body3);
    const uint64_t size = t.length + 2 * (34 + 21 + 6 + section7_bytes) + 4;
    put_be((uint8_t *)t.data + start + 8, size, 8);
    for (unsigned field = 0; field < 2; field++) {
        message_section(&t, 4, BODY4, sizeof BODY4);
        message_section(&t, 5, BODY5, sizeof BODY5);
        message_section(&t, 6, BODY6, sizeof BODY6);
        message_section(&t, 7, BODY7, sizeof BODY7);
        put_be((uint8_t *)t.data + t.length - sizeof BODY7 - 5, section7_bytes, 4);
        assert_int_equal(pwrite(fd, t.data, t.length, (off_t)at), t.length);
        at += t.length - sizeof BODY7 - 5 + section7_bytes;
        sq_text_clear(&t);
    }
    sq_text_add(&t, "7777");
    message_add(&t, 1);
    assert_int_equal(at + 4, size);
    assert_int_equal(pwrite(fd, t.data, t.length, (off_t)at), t.length);
    close(fd);
    struct log log = {0};
    struct sq_source *source;
    struct sq_grib_scan_events events = {on_field, on_problem, &log};
    assert_int_equal(sq_source_open_file(path, &source, NULL), 0);
    assert_int_equal(sq_grib_scan(source, &events, NULL), 0);
    sq_source_close(source);
    unlink(path);
    assert_int_equal(log.problems, 0);
    assert_int_equal(log.fields, 3);
    assert_int_equal(log.offsets[2], size);
}

/*
 * Files made to cost: "GRIB" alone, heads that claim all the rest, and messages nested in each other whose sections are shared. A scan that
 * walked on from each of them would not end while anyone waits; the problems told are bounded.
 */
static void files_made_to_cost_are_scanned_with_bounded_problems(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        for (unsigned round = 0; round < 2; round++) {
            size_t size = round ? 8000000 : 800000;
            SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
            while (t.length < size) {
                if (kind == 0) {
                    sq_text_add(&t, "GRIB");
                } else if (kind == 1) {
                    size_t start = message_begin(&t, 0);
                    message_section(&t, 1, BODY1, sizeof BODY1);
                    put_be((uint8_t *)t.data + start + 8, size - start, 8);
                } else {
                    /* each section 7 holds the beginning of one more message, which then goes on with the sections behind it */
                    SQ_CLEANUP_TEXT struct sq_text inner = SQ_TEXT_INIT;
                    uint8_t body3[67];
                    body3_make(body3, 2, 2);
                    message_begin(&inner, 0);
                    message_section(&inner, 1, BODY1, sizeof BODY1);
                    put_be((uint8_t *)inner.data + 8, t.length ? size - t.length : size, 8);
                    if (t.length == 0)
                        sq_text_add_bytes(&t, inner.data, inner.length);
                    message_section(&t, 3, body3, sizeof body3);
                    message_section(&t, 4, BODY4, sizeof BODY4);
                    message_section(&t, 5, BODY5, sizeof BODY5);
                    message_section(&t, 6, BODY6, sizeof BODY6);
                    message_section(&t, 7, inner.data, inner.length);
                }
            }
            struct log log = scan_text(&t);
            assert_int_equal(log.fields, 0);
            assert_in_range(log.problems, 1, 1001);
        }
    }
}

static void random_damage_is_survived(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    const uint8_t pds[28] = {0}, data[50] = {1};
    for (unsigned i = 0; i < 4; i++) {
        message_add(&t, i + 1);
        message1_add(&t, pds, sizeof pds, NULL, 0, data, sizeof data);
    }
    uint8_t *copy = malloc(t.length);
    srand(5);
    for (unsigned round = 0; round < 20000; round++) {
        memcpy(copy, t.data, t.length);
        for (unsigned i = 0; i < 1 + round % 4; i++)
            copy[(size_t)rand() % t.length] ^= (uint8_t)(1 << rand() % 8);
        size_t size = round % 3 ? t.length : (size_t)rand() % t.length;
        struct log log = scan_bytes(copy, size);
        assert_true(log.fields + log.problems > 0 || size < 4);
    }
    free(copy);
}

static void an_error_of_the_receiver_ends_the_scan(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    for (long after = 0; after < 12; after++) {
        struct log log = {0};
        struct sq_source *source;
        struct sq_grib_scan_events events = {on_field, on_problem, &log};
        assert_int_equal(sq_source_open_memory(t.data, t.length, "memory", &source, NULL), 0);
        sq_fail_allocation(after);
        int status = sq_grib_scan(source, &events, NULL);
        sq_fail_allocation(-1);
        assert_true(status == SQUALL_ENOMEM || (status == 0 && log.fields == 1));
        sq_source_close(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_both_editions_are_found_among_padding_and_headers),
        cmocka_unit_test(grib_and_7777_inside_data_mean_nothing),
        cmocka_unit_test(a_damaged_message_costs_itself_only),
        cmocka_unit_test(each_damaged_message_is_named),
        cmocka_unit_test(every_truncation_of_the_last_message_is_named),
        cmocka_unit_test(a_cut_message_behind_padding_or_a_header_is_named_where_it_begins),
        cmocka_unit_test(what_is_no_grib_is_said_with_its_beginning),
        cmocka_unit_test(junk_between_messages_is_named_with_place_and_length),
        cmocka_unit_test(sections_far_apart_are_found),
        cmocka_unit_test(a_message_beyond_4_gib_is_jumped_over),
        cmocka_unit_test(files_made_to_cost_are_scanned_with_bounded_problems),
        cmocka_unit_test(random_damage_is_survived),
        cmocka_unit_test(an_error_of_the_receiver_ends_the_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
