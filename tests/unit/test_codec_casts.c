/*
 * scale_offset, cast_value, packbits and bitround as zarr-extensions specifies them. Expected values are worked out by hand, those of casts also
 * agree with cast-value-rs, which zarr-python uses: tests/python/test_codecs.py compares with it where it is installed.
 */
#include "support/unit.h"

#include "support/codecs.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static struct sq_codec_chain *filter(enum squall_type type, uint64_t count, const char *name, const char *configuration)
{
    char codecs[600];
    const uint64_t shape[] = {count};
    snprintf(codecs, sizeof codecs, "[{\"name\":\"%s\",\"configuration\":{%s}}," LITTLE "]", name, configuration);
    return bind_v3(codecs, &(struct sq_codec_chunk){.dtype = sq_dtype_of(type), .rank = 1, .shape = shape});
}

static void check_refused_configuration(enum squall_type type, const char *name, const char *configuration, int status, const char *part)
{
    char codecs[600];
    static const uint64_t shape[] = {4};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(type), .rank = 1, .shape = shape};
    snprintf(codecs, sizeof codecs, "[{\"name\":\"%s\",\"configuration\":{%s}}," LITTLE "]", name, configuration);
    check_bind_v3_error(codecs, &chunk, status, part);
}

/* Encode count elements and compare; expected: NULL for an error of this status. */
static void check_encodes(struct sq_codec_chain *chain, const void *src, size_t src_size, const void *expected, size_t size, int status)
{
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t stored[800];
    size_t got = 0;
    assert_int_equal(sq_codec_encode(chain, scratch, 1, src, src_size, stored, sizeof stored, &got, &err), status);
    if (status == 0) {
        assert_int_equal(got, size);
        assert_memory_equal(stored, expected, size);
    } else {
        assert_true(err.message[0] != 0);
    }
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

static void check_decodes_to(struct sq_codec_chain *chain, const void *stored, size_t stored_size, const void *expected, size_t size)
{
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    check_decodes(chain, scratch, 1, stored, stored_size, expected, size);
    sq_codec_scratch_free(scratch);
    sq_codec_chain_free(chain);
}

/* ---- cast_value --------------------------------------------------------------------------------------------------------------------- */

static struct sq_codec_chain *cast(enum squall_type type, uint64_t count, const char *to, const char *more)
{
    char configuration[400];
    snprintf(configuration, sizeof configuration, "\"data_type\":\"%s\"%s", to, more);
    return filter(type, count, "cast_value", configuration);
}

static void casts_round_as_they_are_told(void **state)
{
    (void)state;
    static const double values[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4, -2.6};
    static const struct {
        const char *rounding;
        int8_t expected[8];
    } cases[] = {
        {"nearest-even", {0, 2, 2, 0, -2, -2, 2, -3}},     {"towards-zero", {0, 1, 2, 0, -1, -2, 2, -2}},
        {"towards-positive", {1, 2, 3, 0, -1, -2, 3, -2}}, {"towards-negative", {0, 1, 2, -1, -2, -3, 2, -3}},
        {"nearest-away", {1, 2, 3, -1, -2, -3, 2, -3}},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[100];
        snprintf(more, sizeof more, ",\"rounding\":\"%s\"", cases[i].rounding);
        check_encodes(cast(SQUALL_FLOAT64, 8, "int8", more), values, sizeof values, cases[i].expected, 8, 0);
    }
}

static void casts_to_shorter_floats_round_likewise(void **state)
{
    (void)state;
    static const double values[] = {1 + 0x1p-25, 1 + 0x1p-24, 1 + 0x3p-24, -1 - 0x1p-24, 1e-50, INFINITY};
    static const int64_t whole[] = {16777217, 16777219, -16777217};
    const float next = nextafterf(1, 2), after = nextafterf(next, 2);
    const struct {
        const char *rounding;
        float expected[6], whole[3];
    } cases[] = {
        {"nearest-even", {1, 1, after, -1, 0, INFINITY}, {16777216, 16777220, -16777216}},
        {"towards-zero", {1, 1, next, -1, 0, INFINITY}, {16777216, 16777218, -16777216}},
        {"towards-positive", {next, next, after, -1, 0x1p-149F, INFINITY}, {16777218, 16777220, -16777216}},
        {"towards-negative", {1, 1, next, -next, 0, INFINITY}, {16777216, 16777218, -16777218}},
        {"nearest-away", {1, next, after, -next, 0, INFINITY}, {16777218, 16777220, -16777218}},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[100];
        snprintf(more, sizeof more, ",\"rounding\":\"%s\"", cases[i].rounding);
        check_encodes(cast(SQUALL_FLOAT64, 6, "float32", more), values, sizeof values, cases[i].expected, sizeof cases[i].expected, 0);
        check_encodes(cast(SQUALL_INT64, 3, "float32", more), whole, sizeof whole, cases[i].whole, sizeof cases[i].whole, 0);
    }
}

static void what_is_out_of_range_is_an_error_or_as_told(void **state)
{
    (void)state;
    static const struct {
        enum squall_type from;
        double value;
        const char *to, *mode;
        int64_t expected;
        int status;
    } cases[] = {
        {SQUALL_FLOAT64, 255.4, "uint8", "error", 255, 0},
        {SQUALL_FLOAT64, 255.6, "uint8", "error", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, -0.4, "uint8", "error", 0, 0},
        {SQUALL_FLOAT64, 300, "uint8", "clamp", 255, 0},
        {SQUALL_FLOAT64, 300, "uint8", "wrap", 44, 0},
        {SQUALL_FLOAT64, -1, "uint8", "wrap", 255, 0},
        {SQUALL_FLOAT64, 1e20, "int64", "clamp", INT64_MAX, 0},
        {SQUALL_FLOAT64, -1e20, "int64", "clamp", INT64_MIN, 0},
        {SQUALL_FLOAT64, 1e20, "int64", "wrap", 7766279631452241920, 0},
        {SQUALL_FLOAT64, -1e20, "int64", "wrap", -7766279631452241920, 0},
        {SQUALL_FLOAT64, 1e300, "int8", "error", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, 1e300, "int8", "clamp", 127, 0},
        {SQUALL_FLOAT64, INFINITY, "int8", "clamp", 127, 0},
        {SQUALL_FLOAT64, -INFINITY, "int8", "wrap", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, NAN, "int8", "clamp", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, 1e39, "float32", "error", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, 3.4028235677973366e+38, "float32", "error", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, 65520, "float16", "error", 0, SQUALL_ERANGE},
        {SQUALL_FLOAT64, 65519, "float16", "error", 0x7bff, 0},
        {SQUALL_FLOAT64, 65520, "float16", "clamp", 0x7c00, 0},
        {SQUALL_INT64, 300, "int4", "clamp", 7, 0},
        {SQUALL_INT64, 9, "int4", "wrap", -7, 0},
        {SQUALL_INT64, -3, "uint2", "wrap", 1, 0},
        {SQUALL_INT64, 8, "int4", "error", 0, SQUALL_ERANGE},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[100];
        const int64_t whole = cases[i].from == SQUALL_INT64 ? (int64_t)cases[i].value : 0;
        enum squall_type to;
        assert_true(sq_type_from_name(cases[i].to, &to));
        snprintf(more, sizeof more, ",\"out_of_range\":\"%s\"", cases[i].mode);
        check_encodes(cast(cases[i].from, 1, cases[i].to, more), cases[i].from == SQUALL_INT64 ? (const void *)&whole : &cases[i].value, 8,
                      &cases[i].expected, sq_type_size(to), cases[i].status);
    }
}

static void scalar_maps_come_first(void **state)
{
    (void)state;
    static const float values[] = {1, NAN, -0.0F, 300};
    static const int16_t stored[] = {1, -32768, 7, 300}, other[] = {5, -32768, 7, 0};
    static const char map[] = ",\"scalar_map\":{\"encode\":[[\"NaN\",-32768],[0.0,7]],\"decode\":[[-32768,\"NaN\"],[7,\"-Infinity\"]]}";
    const float back[] = {5, NAN, -INFINITY, 0};
    check_encodes(cast(SQUALL_FLOAT32, 4, "int16", map), values, sizeof values, stored, sizeof stored, 0);
    check_decodes_to(cast(SQUALL_FLOAT32, 4, "int16", map), other, sizeof other, back, sizeof back);
    check_refused_configuration(SQUALL_FLOAT32, "cast_value", "\"data_type\":\"int8\",\"scalar_map\":{\"encode\":[[\"NaN\",-129]]}",
                                SQUALL_ECORRUPT, "entry 0 of its scalar map");
    check_refused_configuration(SQUALL_FLOAT32, "cast_value", "\"data_type\":\"int8\",\"scalar_map\":{\"decode\":[[1]]}", SQUALL_ECORRUPT,
                                "entry 0");
}

static void decoding_casts_back_and_refuses_what_does_not_fit(void **state)
{
    (void)state;
    static const double stored[] = {1, -2, 2.5, 100};
    static const int8_t expected[] = {1, -2, 2, 100};
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7c00};
    const float singles[] = {1, -2, 0x1p-24F, INFINITY};
    check_decodes_to(cast(SQUALL_INT8, 4, "float64", ""), stored, sizeof stored, expected, sizeof expected);
    check_decodes_to(cast(SQUALL_FLOAT32, 4, "float16", ""), halves, sizeof halves, singles, sizeof singles);
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = cast(SQUALL_INT8, 1, "float64", "");
    check_refused(chain, scratch, (const uint8_t *)(const double[]){128}, 8, 1, SQUALL_ECORRUPT, "cast_value: 128 has no place in int8");
    check_refused(chain, scratch, (const uint8_t *)(const double[]){NAN}, 8, 1, SQUALL_ECORRUPT, "no place in int8");
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void casts_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    check_refused_configuration(SQUALL_INT8, "cast_value", "", SQUALL_ECORRUPT, "\"data_type\" has no name");
    check_refused_configuration(SQUALL_INT8, "cast_value", "\"data_type\":\"string\"", SQUALL_EUNSUPPORTED,
                                "unsupported from int8 to string");
    check_refused_configuration(SQUALL_BOOL, "cast_value", "\"data_type\":\"int8\"", SQUALL_EUNSUPPORTED, "unsupported from bool");
    check_refused_configuration(SQUALL_INT8, "cast_value", "\"data_type\":\"float32\",\"out_of_range\":\"wrap\"", SQUALL_ECORRUPT,
                                "\"wrap\" is for whole numbers");
    check_refused_configuration(SQUALL_INT8, "cast_value", "\"data_type\":\"int8\",\"rounding\":\"up\"", SQUALL_ECORRUPT,
                                "\"rounding\" is none of \"nearest-even\"");
}

/* ---- scale_offset ------------------------------------------------------------------------------------------------------------------- */

static void scale_offset_reckons_in_the_arrays_type(void **state)
{
    (void)state;
    static const float values[] = {5, 15, 0.1F, -5};
    static const float stored[] = {0, 1.0F, (0.1F - 5.0F) * 0.1F, -1.0F};
    static const int16_t whole[] = {5, 7, -100, 0}, whole_stored[] = {0, 20, -1050, -50};
    static const uint64_t large[] = {UINT64_MAX, 10}, large_stored[] = {UINT64_MAX - 10, 0};
    check_encodes(filter(SQUALL_FLOAT32, 4, "scale_offset", "\"offset\":5,\"scale\":0.1"), values, sizeof values, stored, sizeof stored, 0);
    check_encodes(filter(SQUALL_INT16, 4, "scale_offset", "\"offset\":5,\"scale\":10"), whole, sizeof whole, whole_stored, sizeof whole, 0);
    check_decodes_to(filter(SQUALL_INT16, 4, "scale_offset", "\"offset\":5,\"scale\":10"), whole_stored, sizeof whole, whole, sizeof whole);
    check_encodes(filter(SQUALL_UINT64, 2, "scale_offset", "\"offset\":10"), large, sizeof large, large_stored, sizeof large, 0);
    check_decodes_to(filter(SQUALL_UINT64, 2, "scale_offset", "\"offset\":10"), large_stored, sizeof large, large, sizeof large);
    check_decodes_to(filter(SQUALL_FLOAT64, 1, "scale_offset", "\"offset\":\"0x3ff0000000000000\",\"scale\":2"), (const double[]){3}, 8,
                     (const double[]){2.5}, 8);
}

static void scale_offset_loses_nothing_silently(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = filter(SQUALL_INT8, 1, "scale_offset", "\"offset\":5,\"scale\":3");
    check_refused(chain, scratch, (const uint8_t[]){4}, 1, 1, SQUALL_ECORRUPT, "does not divide");
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
    check_encodes(filter(SQUALL_INT8, 1, "scale_offset", "\"offset\":5,\"scale\":3"), (const int8_t[]){100}, 1, NULL, 0, SQUALL_ERANGE);
    check_encodes(filter(SQUALL_UINT8, 1, "scale_offset", "\"offset\":5"), (const uint8_t[]){4}, 1, NULL, 0, SQUALL_ERANGE);
    check_encodes(filter(SQUALL_INT64, 1, "scale_offset", "\"offset\":-9223372036854775808,\"scale\":9223372036854775807"),
                  (const int64_t[]){INT64_MAX}, 8, NULL, 0, SQUALL_ERANGE);
    check_refused_configuration(SQUALL_INT8, "scale_offset", "\"offset\":128", SQUALL_ECORRUPT, "\"offset\" is no int8");
    check_refused_configuration(SQUALL_INT8, "scale_offset", "\"offset\":1.5", SQUALL_ECORRUPT, "\"offset\" is no whole number");
    check_refused_configuration(SQUALL_FLOAT32, "scale_offset", "\"scale\":0", SQUALL_ECORRUPT, "\"scale\" is 0");
    check_refused_configuration(SQUALL_BOOL, "scale_offset", "", SQUALL_EUNSUPPORTED, "unsupported on bool");
}

static void settings_that_are_not_known_are_refused_by_name(void **state)
{
    (void)state;
    check_refused_configuration(SQUALL_INT8, "scale_offset", "\"offset\":1,\"factor\":2", SQUALL_EUNSUPPORTED,
                                "scale_offset: unsupported setting \"factor\"");
    check_refused_configuration(SQUALL_INT8, "cast_value", "\"data_type\":\"int16\",\"nan\":0", SQUALL_EUNSUPPORTED,
                                "cast_value: unsupported setting \"nan\"");
    check_refused_configuration(SQUALL_INT8, "cast_value", "\"data_type\":\"int16\",\"scalar_map\":{\"both\":[]}", SQUALL_EUNSUPPORTED,
                                "cast_value: unsupported setting \"both\"");
    check_decodes_to(filter(SQUALL_INT8, 1, "scale_offset", "\"offset\":1,\"hint\":{\"must_understand\":false}"), (const int8_t[]){2}, 1,
                     (const int8_t[]){3}, 1);
}

/* ---- packbits and bitround ---------------------------------------------------------------------------------------------------------- */

static struct sq_codec_chain *packed(enum squall_type type, uint64_t count, const char *configuration)
{
    char codecs[200];
    const uint64_t shape[] = {count};
    snprintf(codecs, sizeof codecs, "[{\"name\":\"packbits\",\"configuration\":{%s}}]", configuration);
    return bind_v3(codecs, &(struct sq_codec_chunk){.dtype = sq_dtype_of(type), .rank = 1, .shape = shape});
}

static void bits_are_packed_from_the_lowest_on(void **state)
{
    (void)state;
    static const uint8_t bools[] = {1, 0, 1, 1, 0, 0, 0, 0, 0, 1}, fours[] = {1, 15, 8};
    static const int8_t signed_fours[] = {-8, 7, -1};
    static const int16_t numbers[] = {-1, 0x0123, -256};
    check_encodes(packed(SQUALL_BOOL, 10, ""), bools, 10, (const uint8_t[]){0x0d, 0x02}, 2, 0);
    check_decodes_to(packed(SQUALL_BOOL, 10, ""), (const uint8_t[]){0x0d, 0x02}, 2, bools, 10);
    check_encodes(packed(SQUALL_BOOL, 10, "\"padding_encoding\":\"first_byte\""), bools, 10, (const uint8_t[]){6, 0x0d, 0x02}, 3, 0);
    check_encodes(packed(SQUALL_BOOL, 10, "\"padding_encoding\":\"last_byte\""), bools, 10, (const uint8_t[]){0x0d, 0x02, 6}, 3, 0);
    check_encodes(packed(SQUALL_UINT4, 3, ""), fours, 3, (const uint8_t[]){0xf1, 0x08}, 2, 0);
    check_decodes_to(packed(SQUALL_INT4, 3, ""), (const uint8_t[]){0x78, 0x0f}, 2, signed_fours, 3);
    check_encodes(packed(SQUALL_INT16, 3, "\"first_bit\":4,\"last_bit\":15"), numbers, 6, (const uint8_t[]){0xff, 0x2f, 0x01, 0xf0, 0x0f},
                  5, 0);
    check_decodes_to(packed(SQUALL_INT16, 3, "\"first_bit\":4,\"last_bit\":15"), (const uint8_t[]){0xff, 0x2f, 0x01, 0xf0, 0x0f}, 5,
                     (const int16_t[]){-16, 0x0120, -256}, 6);
}

static void any_bits_of_any_type_come_back(void **state)
{
    (void)state;
    static const enum squall_type types[] = {SQUALL_UINT8, SQUALL_INT16, SQUALL_UINT32, SQUALL_INT64, SQUALL_FLOAT32, SQUALL_COMPLEX128};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned round = 0; round < 300; round++) {
        struct sq_dtype dtype = sq_dtype_of(types[round % 6]);
        unsigned width = dtype.order_bytes, first = random_bits() % (8 * width), last = first + random_bits() % (8 * width - first);
        uint64_t count = 1 + random_bits() % 40;
        size_t size = count * dtype.element_bytes, stored_size;
        char configuration[80];
        snprintf(configuration, sizeof configuration, "\"first_bit\":%u,\"last_bit\":%u", first, last);
        struct sq_codec_chain *chain = packed(dtype.type, count, configuration);
        uint8_t *bytes = random_bytes(size);
        for (size_t i = 0; i < size; i += width) { /* as they come back: only these bits, and the sign */
            uint64_t x = 0;
            memcpy(&x, bytes + i, width);
            x = x >> first << first << (63 - last);
            x = dtype.type == SQUALL_INT16 || dtype.type == SQUALL_INT64 ? (uint64_t)((int64_t)x >> (63 - last)) : x >> (63 - last);
            memcpy(bytes + i, &x, width);
        }
        uint8_t *stored = encoded(chain, scratch, 1, bytes, size, &stored_size);
        assert_int_equal(stored_size, (size / width * (last - first + 1) + 7) / 8);
        check_decodes(chain, scratch, 1, stored, stored_size, bytes, size);
        check_refused(chain, scratch, stored, stored_size - 1, size, SQUALL_ECORRUPT, "packbits: the chunk has");
        free(bytes), free(stored);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void whole_numbers_are_rounded_from_their_highest_bit(void **state)
{
    (void)state;
    static const uint16_t numbers[] = {0, 1, 5, 0x0123, 0x01ff, 0x0118}, rounded[] = {0, 1, 5, 0x0120, 0x0200, 0x0120};
    check_encodes(filter(SQUALL_UINT16, 6, "bitround", "\"keepbits\":5"), numbers, 12, rounded, 12, 0);
    check_decodes_to(filter(SQUALL_UINT16, 6, "bitround", "\"keepbits\":5"), numbers, 12, numbers, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_round_as_they_are_told),
        cmocka_unit_test(casts_to_shorter_floats_round_likewise),
        cmocka_unit_test(what_is_out_of_range_is_an_error_or_as_told),
        cmocka_unit_test(scalar_maps_come_first),
        cmocka_unit_test(decoding_casts_back_and_refuses_what_does_not_fit),
        cmocka_unit_test(casts_that_make_no_sense_are_refused),
        cmocka_unit_test(scale_offset_reckons_in_the_arrays_type),
        cmocka_unit_test(scale_offset_loses_nothing_silently),
        cmocka_unit_test(settings_that_are_not_known_are_refused_by_name),
        cmocka_unit_test(bits_are_packed_from_the_lowest_on),
        cmocka_unit_test(any_bits_of_any_type_come_back),
        cmocka_unit_test(whole_numbers_are_rounded_from_their_highest_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
