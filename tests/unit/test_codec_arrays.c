/* Codecs from array to array and from array to bytes, against what their specifications say, element by element. */
#include "support/unit.h"

#include "array/bytes.h"
#include "support/codecs.h"
#include <stdio.h>

/* ---- transpose -------------------------------------------------------------------------------------------------------------------- */

/* B[p] = A[q] where p[i] = q[order[i]], as the specification has it. */
static void transpose_plainly(unsigned rank, const uint64_t *shape, const unsigned *order, size_t width, const uint8_t *a, uint8_t *b)
{
    uint64_t q[SQUALL_RANK_MAX] = {0};
    size_t total = 1;
    for (unsigned d = 0; d < rank; d++)
        total *= shape[d];
    for (size_t n = 0; n < total; n++) {
        size_t at = 0;
        for (unsigned i = 0; i < rank; i++)
            at = at * shape[order[i]] + q[order[i]];
        memcpy(b + at * width, a + n * width, width);
        for (unsigned d = rank; d-- > 0 && ++q[d] == shape[d];)
            q[d] = 0;
    }
}

static void transpose_is_the_specifications(void **state)
{
    (void)state;
    static const enum squall_type types[] = {SQUALL_INT8, SQUALL_FLOAT16, SQUALL_INT32, SQUALL_FLOAT64, SQUALL_COMPLEX128, SQUALL_RAW};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (int round = 0; round < 600; round++) {
        uint64_t shape[6];
        unsigned order[6] = {0}, rank = 1 + random_bits() % 6;
        struct sq_dtype dtype = sq_dtype_of(types[round % 6]);
        if (dtype.type == SQUALL_RAW)
            dtype.element_bytes = 1 + random_bits() % 20, dtype.order_bytes = 1;
        size_t size = dtype.element_bytes;
        for (unsigned d = 0; d < rank; d++) {
            shape[d] = rank <= 2 ? 1 + random_bits() % 70 : 1 + random_bits() % 6;
            size *= shape[d];
            unsigned at = random_bits() % (d + 1);
            order[d] = order[at];
            order[at] = d;
        }
        char codecs[200] = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[";
        for (unsigned d = 0; d < rank; d++)
            snprintf(codecs + strlen(codecs), sizeof codecs - strlen(codecs), "%s%u", d ? "," : "", order[d]);
        strcat(codecs, "]}},{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]");
        struct sq_codec_chain *chain = bind_v3(codecs, &(struct sq_codec_chunk){.dtype = dtype, .rank = rank, .shape = shape});
        uint8_t *bytes = random_bytes(size), *expected = malloc(size);
        size_t stored_size;
        transpose_plainly(rank, shape, order, dtype.element_bytes, bytes, expected);
        uint8_t *stored = encoded(chain, scratch, 1, bytes, size, &stored_size);
        assert_int_equal(stored_size, size);
        assert_memory_equal(stored, expected, size);
        check_decodes(chain, scratch, 1, stored, size, bytes, size);
        check_refused(chain, scratch, stored, size - 1, size, SQUALL_ECORRUPT, "another array");
        free(bytes), free(expected), free(stored);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void two_transposes_and_a_compressor_undo_each_other(void **state)
{
    (void)state;
    static const uint64_t shape[] = {7, 40, 33};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(SQUALL_INT32), .rank = 3, .shape = shape};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    size_t size = 7 * 40 * 33 * 4, twice_size, plain_size;
    uint8_t *bytes = random_bytes(size);
    struct sq_codec_chain *twice =
        bind_v3("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},{\"name\":\"transpose\","
                "\"configuration\":{\"order\":[1,2,0]}},{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
                "{\"name\":\"zstd\",\"configuration\":{\"level\":1}},\"crc32c\"]",
                &chunk);
    struct sq_codec_chain *plain = bind_v3(
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},{\"name\":\"zstd\",\"configuration\":{\"level\":1}},\"crc32c\"]",
        &chunk);
    uint8_t *stored = encoded(twice, scratch, 1, bytes, size, &twice_size);
    uint8_t *expected = encoded(plain, scratch, 1, bytes, size, &plain_size);
    assert_int_equal(twice_size, plain_size);
    assert_memory_equal(stored, expected, plain_size);
    check_decodes(twice, scratch, 1, stored, twice_size, bytes, size);
    free(bytes), free(stored), free(expected);
    sq_codec_chain_free(twice);
    sq_codec_chain_free(plain);
    sq_codec_scratch_free(scratch);
}

static void column_major_chunks_of_v2_are_turned(void **state)
{
    (void)state;
    static const uint64_t shape[] = {2, 3};
    static const int16_t in_memory[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t stored[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = bind_v2(
        NULL, NULL,
        &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_INT16), .rank = 2, .shape = shape, .big_endian = true, .column_major = true});
    check_decodes(chain, scratch, 1, stored, sizeof stored, in_memory, sizeof in_memory);
    size_t size;
    uint8_t *again = encoded(chain, scratch, 1, in_memory, sizeof in_memory, &size);
    assert_int_equal(size, sizeof stored);
    assert_memory_equal(again, stored, sizeof stored);
    free(again);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void a_wrong_permutation_is_refused(void **state)
{
    (void)state;
    static const uint64_t shape[] = {2, 3};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(SQUALL_INT8), .rank = 2, .shape = shape};
    static const char *const orders[] = {"[0]", "[0,0]", "[0,2]", "[0,-1]", "[1,0,2]", "\"A\"", "null", "{}", "[0.5,1]"};
    for (unsigned i = 0; i < sizeof orders / sizeof *orders; i++) {
        char codecs[100];
        snprintf(codecs, sizeof codecs, "[{\"name\":\"transpose\",\"configuration\":{\"order\":%s}},\"bytes\"]", orders[i]);
        check_bind_v3_error(codecs, &chunk, SQUALL_ECORRUPT, "\"order\" is no permutation of the 2 dimensions");
    }
    check_bind_v3_error("[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}]", &chunk, SQUALL_ECORRUPT, "no codec makes bytes");
    check_bind_v3_error("[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"zstd\"]", &chunk, SQUALL_ECORRUPT,
                        "before \"bytes\"");
}

static void a_chunk_of_another_shape_is_a_callers_mistake(void **state)
{
    (void)state;
    static const uint64_t shape[] = {2, 3};
    const struct sq_codec_chunk chunk = {.dtype = sq_dtype_of(SQUALL_INT8), .rank = 2, .shape = shape};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = bind_v3("[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"bytes\"]", &chunk);
    uint8_t bytes[7] = {0}, dst[7];
    size_t size;
    check_refused(chain, scratch, bytes, 7, 7, SQUALL_EINVAL, "7 bytes in memory for a chunk of 6");
    assert_int_equal(sq_codec_encode(chain, scratch, 1, bytes, 5, dst, 7, &size, NULL), SQUALL_EINVAL);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* ---- byte order ------------------------------------------------------------------------------------------------------------------- */

static void a_byte_order_turns_the_parts_of_an_element(void **state)
{
    (void)state;
    static const struct {
        struct sq_dtype dtype;
        unsigned part;
    } types[] = {
        {{SQUALL_COMPLEX64, 8, 4}, 4}, {{SQUALL_COMPLEX128, 16, 8}, 8}, {{SQUALL_TEXT, 20, 4}, 4},
        {{SQUALL_RAW, 5, 1}, 1},       {{SQUALL_BFLOAT16, 2, 2}, 2},    {{SQUALL_DATETIME64, 8, 8}, 8},
    };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
        size_t size = types[t].dtype.element_bytes * 30, stored_size;
        uint64_t shape[] = {30};
        uint8_t *bytes = random_bytes(size);
        struct sq_codec_chain *chain = bind_v3("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
                                               &(struct sq_codec_chunk){.dtype = types[t].dtype, .rank = 1, .shape = shape});
        uint8_t *stored = encoded(chain, scratch, 1, bytes, size, &stored_size);
        assert_int_equal(stored_size, size);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(stored[i], bytes[i / types[t].part * types[t].part + types[t].part - 1 - i % types[t].part]);
        check_decodes(chain, scratch, 1, stored, size, bytes, size);
        free(bytes), free(stored);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

/* ---- variable length -------------------------------------------------------------------------------------------------------------- */

static void bytes_travel_with_their_lengths(void **state)
{
    (void)state;
    const struct squall_bytes elements[] = {TEXT("one"), {NULL, 0}, TEXT("a\0b")};
    static const uint64_t shape[] = {3};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain =
        bind_v3("[\"vlen-bytes\"]", &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_BYTES), .rank = 1, .shape = shape});
    static const uint8_t expected[] = {3, 0, 0, 0, 3, 0, 0, 0, 'o', 'n', 'e', 0, 0, 0, 0, 3, 0, 0, 0, 'a', 0, 'b'};
    size_t size;
    uint8_t *stored = encoded(chain, scratch, 1, elements, sizeof elements, &size);
    assert_int_equal(size, sizeof expected);
    assert_memory_equal(stored, expected, size);
    struct squall_bytes back[3];
    assert_int_equal(sq_codec_decode(chain, scratch, 1, stored, size, back, sizeof back, NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_true(sq_bytes_equal(&back[i], &elements[i]));
    sq_bytes_free(back, 3);
    for (size_t cut = 0; cut < size; cut++)
        check_refused(chain, scratch, stored, cut, sizeof back, SQUALL_ECORRUPT, "vlen-bytes");
    free(stored);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void transposed_strings_keep_their_places(void **state)
{
    (void)state;
    const struct squall_bytes elements[] = {TEXT("a"), TEXT("bb"), TEXT(""), TEXT("dddd"), TEXT("e"), TEXT("f")};
    static const uint64_t shape[] = {2, 3};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = bind_v3("[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"vlen-utf8\",\"zstd\"]",
                                           &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_STRING), .rank = 2, .shape = shape});
    size_t size;
    uint8_t *stored = encoded(chain, scratch, 1, elements, sizeof elements, &size);
    struct squall_bytes back[6];
    assert_int_equal(sq_codec_decode(chain, scratch, 1, stored, size, back, sizeof back, NULL), 0);
    for (unsigned i = 0; i < 6; i++)
        assert_true(sq_bytes_equal(&back[i], &elements[i]));
    sq_bytes_free(back, 6);
    free(stored);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transpose_is_the_specifications),
        cmocka_unit_test(two_transposes_and_a_compressor_undo_each_other),
        cmocka_unit_test(column_major_chunks_of_v2_are_turned),
        cmocka_unit_test(a_wrong_permutation_is_refused),
        cmocka_unit_test(a_chunk_of_another_shape_is_a_callers_mistake),
        cmocka_unit_test(a_byte_order_turns_the_parts_of_an_element),
        cmocka_unit_test(bytes_travel_with_their_lengths),
        cmocka_unit_test(transposed_strings_keep_their_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
