/* The ground floor: JSON, hashes, checksums, arenas, buffers. */
#include "base/base64.h"
#include "support/unit.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/json.h"
#include <math.h>
#include <string.h>

static void numbers_keep_their_kind_and_range(void **state)
{
    (void)state;
    SQ_CLEANUP_JSON struct sq_json *v =
        parsed("[1, -9223372036854775808, 18446744073709551615, 1.5, NaN, -Infinity, null, 9223372036854775807]");
    int64_t i;
    uint64_t u;
    double d;
    assert_true(sq_json_int(sq_json_at(v, 0), &i) && i == 1);
    assert_true(sq_json_int(sq_json_at(v, 1), &i) && i == INT64_MIN);
    assert_false(sq_json_int(sq_json_at(v, 2), &i));
    assert_true(sq_json_uint(sq_json_at(v, 2), &u) && u == UINT64_MAX);
    assert_false(sq_json_int(sq_json_at(v, 3), &i));
    assert_true(sq_json_double(sq_json_at(v, 3), &d) && d == 1.5);
    assert_true(sq_json_double(sq_json_at(v, 4), &d) && isnan(d));
    assert_true(sq_json_double(sq_json_at(v, 5), &d) && isinf(d) && d < 0);
    assert_int_equal(sq_json_type(sq_json_at(v, 6)), SQ_JSON_NULL);
    assert_int_equal(sq_json_type(sq_json_at(v, 99)), SQ_JSON_ABSENT);
    assert_true(sq_json_int(sq_json_at(v, 7), &i) && i == INT64_MAX);
}

static void written_doubles_read_back_the_same(void **state)
{
    (void)state;
    const double values[] = {0.1, 1.0, -2.5e-300, 1e22, 273.15, 5e-324, 1.7976931348623157e308};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_double(values[k]);
        SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
        assert_int_equal(sq_json_write(v, false, &text, NULL), 0);
        SQ_CLEANUP_JSON struct sq_json *back = parsed(text.data);
        double d;
        assert_int_equal(sq_json_type(back), SQ_JSON_DOUBLE);
        assert_true(sq_json_double(back, &d) && d == values[k]);
    }
}

/* json-c would cut them: two names could become one. In values they are characters like others. */
static void zero_characters_are_refused_in_names_and_kept_in_values(void **state)
{
    (void)state;
    static const char *const refused[] = {"{\"a\\u0000b\":1}", "{\"x\":[{\"\\u0000\" : 1}]}", "{'a\\u0000':1}"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        struct sq_json *v = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(sq_json_parse(refused[k], strlen(refused[k]), &v, &err), SQUALL_ECORRUPT);
        assert_non_null(strstr(err.message, "zero character"));
    }
    const char *text = "{\"a\":\"b\\u0000c\",\"d\\\\u0000\":[\"\\u0000\",1]}";
    SQ_CLEANUP_JSON struct sq_json *v = parsed(text);
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    assert_int_equal(sq_json_string_bytes(sq_json_get(v, "a")), 3);
    assert_int_equal(sq_json_write(v, false, &out, NULL), 0);
    assert_string_equal(out.data, text);
}

static void key_order_is_kept(void **state)
{
    (void)state;
    const char *text = "{\"z\":1,\"a\":{\"m\":[true,null]},\"b\":\"x\"}";
    SQ_CLEANUP_JSON struct sq_json *v = parsed(text);
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    assert_int_equal(sq_json_write(v, false, &out, NULL), 0);
    assert_string_equal(out.data, text);
}

/* Blanks between tokens part them or say nothing; within texts they are text, whatever stands around them. */
static void blanks_of_json_are_kept_where_they_mean_something(void **state)
{
    (void)state;
    static const char *const same[][2] = {
        {" { \"a b\" : [ 1 , 2.5 , \"x \\\" [ y\" , { } , [ ] , null ] }\n\t ", "{\"a b\":[1,2.5,\"x \\\" [ y\",{},[],null]}"},
        {"/* \" */ [ \"a  b\" ]", "[\"a  b\"]"},
        {"[ 'a  b' ]", "[\"a  b\"]"},
        {" 7 ", "7"},
    };
    static const char *const refused[] = {"[1 2]", "[1 .5]", "[tr ue]", "[1] 2", "[1]2", "{\"a\" \"b\":1}", "\"a\" \"b\""};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
        SQ_CLEANUP_JSON struct sq_json *v = parsed(same[i][0]);
        assert_int_equal(sq_json_write(v, false, &out, NULL), 0);
        assert_string_equal(out.data, same[i][1]);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sq_json *v;
        if (sq_json_parse(refused[i], strlen(refused[i]), &v, NULL) != SQUALL_ECORRUPT)
            fail_msg("%s was taken", refused[i]);
    }
}

static void integers_beyond_64_bits_are_doubles(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value; /* 0: an integer */
    } cases[] = {
        {"18446744073709551615", 0},       {"18446744073709551616", 0x1p64},          {"-9223372036854775808", 0},
        {"-9223372036854775809", -0x1p63}, {"1000000000000000000000000000000", 1e30}, {"99999999999999999999", 1e20},
        {"9223372036854775808", 0},        {"-10000000000000000000", -1e19},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SQ_CLEANUP_FREE char *text = sq_format("[%s, {\"a\":%s}, -%s]", cases[i].text, cases[i].text, "1");
        SQ_CLEANUP_JSON struct sq_json *v = parsed(text);
        const struct sq_json *both[] = {sq_json_at(v, 0), sq_json_get(sq_json_at(v, 1), "a")};
        for (size_t k = 0; k < 2; k++) {
            double number;
            assert_int_equal(sq_json_type(both[k]), cases[i].value != 0 ? SQ_JSON_DOUBLE : SQ_JSON_INT);
            assert_true(sq_json_double(both[k], &number) && (cases[i].value == 0 || number == cases[i].value));
        }
    }
}

/* Two bytes a value would take 35 times their memory. */
static void json_of_very_many_values_is_refused(void **state)
{
    (void)state;
    enum { COUNT = 5000000 };
    SQ_CLEANUP_FREE char *text = sq_alloc(2 * COUNT + 2, 1);
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *v;
    text[0] = '[';
    for (size_t i = 0; i < COUNT; i++)
        memcpy(text + 1 + 2 * i, "0,", 2);
    text[2 * COUNT] = ']';
    assert_int_equal(sq_json_parse(text, 2 * COUNT + 1, &v, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "JSON with more than 4194304 values"));
    text[1] = '/'; /* as it is */
    assert_int_equal(sq_json_parse(text, 2 * COUNT + 1, &v, &err), SQUALL_ECORRUPT);
    assert_int_equal(sq_json_parse(text, (size_t)200 << 20, &v, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "more than the limit of 128 MiB"));
}

static void damaged_json_is_refused_with_its_place(void **state)
{
    (void)state;
    const char *bad[] = {"", "{", "{\"a\":}", "[1,2", "{} x", "nul"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct sq_json *v = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(sq_json_parse(bad[k], strlen(bad[k]), &v, &err), SQUALL_ECORRUPT);
        assert_null(v);
        assert_non_null(strstr(err.message, "byte"));
    }
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    struct sq_json *v;
    assert_int_equal(sq_json_parse(deep, sizeof deep, &v, NULL), SQUALL_ECORRUPT);
}

static void crc32c_matches_the_published_vectors(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0}, ramp[32]; /* RFC 3720, B.4 */
    for (unsigned i = 0; i < 32; i++)
        ramp[i] = (uint8_t)i;
    assert_int_equal(sq_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(sq_crc32c(0, ramp, 32), 0x46dd794e);
    assert_int_equal(sq_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(sq_crc32c(sq_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void hashes_tell_lengths_and_order_apart(void **state)
{
    (void)state;
    uint8_t zeros[64] = {0};
    for (size_t a = 0; a < sizeof zeros; a++)
        for (size_t b = a + 1; b < sizeof zeros; b++) {
            struct sq_hash x = sq_hash_bytes(zeros, a), y = sq_hash_bytes(zeros, b);
            assert_false(x.high == y.high || x.low == y.low);
        }
    char text[SQ_HASH_TEXT_BYTES];
    sq_hash_text(sq_hash_bytes("squall", 6), text);
    assert_int_equal(strlen(text), 32);
}

static void a_cursor_fails_once_and_for_all(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 3};
    struct sq_cursor c = sq_cursor(bytes, sizeof bytes);
    assert_int_equal(sq_u16be(&c), 0x0102);
    assert_int_equal(sq_u16be(&c), 0);
    assert_true(sq_cursor_failed(&c));
    assert_int_equal(sq_u8(&c), 0);
}

static void context_goes_before_the_message(void **state)
{
    (void)state;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_error(&err, SQUALL_ECORRUPT, "byte %d", 7), SQUALL_ECORRUPT);
    assert_int_equal(sq_error_within(&err, SQUALL_ECORRUPT, "%s", "a.grib"), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "a.grib: byte 7");
}

static void a_failed_allocation_leaves_a_grown_array_as_it_was(void **state)
{
    (void)state;
    int *data = NULL;
    size_t capacity = 0;
    assert_int_equal(SQ_GROW(data, capacity, 1, NULL), 0);
    size_t before = capacity;
    sq_fail_allocation(0);
    assert_int_equal(SQ_GROW(data, capacity, 1000, NULL), SQUALL_ENOMEM);
    assert_int_equal(capacity, before);
    sq_free(data);
}

static void arena_memory_is_zero_and_aligned(void **state)
{
    (void)state;
    struct sq_arena *arena = sq_arena_new();
    for (size_t size = 1; size < 9000; size = size * 2 + 1) {
        uint8_t *p = sq_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    assert_string_equal(sq_arena_strdup(arena, "squall"), "squall");
    sq_arena_free(arena);
}

/* The vectors of RFC 4648, section 10. */
static void base64_is_that_of_the_rfc(void **state)
{
    static const char *const CASES[][2] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[SQ_BASE64_TEXT_BYTES(6)];
        uint8_t *bytes = NULL;
        size_t count = 0;
        sq_base64_encode(CASES[i][0], strlen(CASES[i][0]), text);
        assert_string_equal(text, CASES[i][1]);
        assert_true(sq_base64_decode(text, strlen(text), &bytes, &count));
        assert_int_equal(count, strlen(CASES[i][0]));
        assert_memory_equal(bytes, CASES[i][0], count);
        sq_free(bytes);
    }
    static const char *const WRONG[] = {"Zg", "Zg=", "Z===", "Zm9v=", "Zm-v", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        uint8_t *bytes = NULL;
        size_t count = 0;
        assert_false(sq_base64_decode(WRONG[i], strlen(WRONG[i]), &bytes, &count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_that_of_the_rfc),
        cmocka_unit_test(numbers_keep_their_kind_and_range),
        cmocka_unit_test(written_doubles_read_back_the_same),
        cmocka_unit_test(zero_characters_are_refused_in_names_and_kept_in_values),
        cmocka_unit_test(key_order_is_kept),
        cmocka_unit_test(damaged_json_is_refused_with_its_place),
        cmocka_unit_test(blanks_of_json_are_kept_where_they_mean_something),
        cmocka_unit_test(integers_beyond_64_bits_are_doubles),
        cmocka_unit_test(json_of_very_many_values_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(crc32c_matches_the_published_vectors),
        cmocka_unit_test(hashes_tell_lengths_and_order_apart),
        cmocka_unit_test(a_cursor_fails_once_and_for_all),
        cmocka_unit_test(context_goes_before_the_message),
        cmocka_unit_test(a_failed_allocation_leaves_a_grown_array_as_it_was),
        cmocka_unit_test(arena_memory_is_zero_and_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
