/* Shards: made by hand as the specification describes them, and by our own encoder; damaged indexes are refused by what is wrong in them. */
#include "support/unit.h"

#include "array/bytes.h"
#include "base/crc32c.h"
#include "support/codecs.h"
#include <stdio.h>

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX  "\"index_codecs\":[" LITTLE ",\"crc32c\"]"

enum { WIDTH = 4, ROWS = 4, COLUMNS = 6, INNER_ROWS = 2, INNER_COLUMNS = 3, INNER = 4, CELLS = ROWS * COLUMNS };
enum { INNER_BYTES = INNER_ROWS * INNER_COLUMNS * WIDTH, INDEX_BYTES = 16 * INNER + 4 };

static const uint64_t shape[] = {ROWS, COLUMNS};
static const int32_t fill = -7;

static struct sq_codec_chunk chunk(void)
{
    return (struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_INT32), .rank = 2, .shape = shape, .fill = &fill};
}

static struct sq_codec_chain *sharded(const char *inner, const char *location)
{
    char codecs[500];
    struct sq_codec_chunk c = chunk();
    snprintf(codecs, sizeof codecs, "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],\"codecs\":%s," INDEX "%s}}]",
             inner, location);
    return bind_v3(codecs, &c);
}

static void put_u64(uint8_t *to, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static void seal(uint8_t *index)
{
    uint32_t sum = sq_crc32c(0, index, INDEX_BYTES - 4);
    for (unsigned i = 0; i < 4; i++)
        index[INDEX_BYTES - 4 + i] = (uint8_t)(sum >> 8 * i);
}

/* The shard of 0, 1, 2, … with inner chunk 1 left out; inner chunks in reverse, a gap between them. Returns its size. */
static size_t make_by_hand(uint8_t *shard, bool at_start, int32_t *values)
{
    size_t at = at_start ? INDEX_BYTES : 0;
    uint8_t index[INDEX_BYTES];
    memset(index, 0xff, sizeof index);
    for (int i = 0; i < CELLS; i++)
        values[i] = i;
    for (int number = INNER - 1; number >= 0; number--) {
        int row = number / 2 * INNER_ROWS, column = number % 2 * INNER_COLUMNS;
        at += 5;
        for (int i = 0; i < INNER_ROWS * INNER_COLUMNS; i++) {
            int32_t *value = &values[(row + i / INNER_COLUMNS) * COLUMNS + column + i % INNER_COLUMNS];
            if (number == 1)
                *value = fill;
            else
                memcpy(shard + at + (size_t)i * WIDTH, value, WIDTH);
        }
        if (number == 1)
            continue;
        put_u64(index + 16 * number, at);
        put_u64(index + 16 * number + 8, INNER_BYTES);
        at += INNER_BYTES;
    }
    seal(index);
    memcpy(at_start ? shard : shard + at, index, INDEX_BYTES);
    return at_start ? at : at + INDEX_BYTES;
}

static void a_shard_made_by_hand_is_read(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (int at_start = 0; at_start < 2; at_start++) {
        struct sq_codec_chain *chain = sharded("[" LITTLE "]", at_start ? ",\"index_location\":\"start\"" : "");
        const struct sq_codec_shard *shard = sq_codec_chain_shard(chain);
        uint8_t stored[400] = {0};
        int32_t values[CELLS];
        uint64_t index[2 * INNER];
        size_t size = make_by_hand(stored, at_start, values);
        assert_non_null(shard);
        assert_true(shard->rank == 2 && shard->inner_total == INNER && shard->index_bytes == INDEX_BYTES);
        assert_true(shard->inner_shape[0] == 2 && shard->inner_shape[1] == 3 && shard->inner_count[0] == 2 && shard->inner_count[1] == 2);
        assert_true(shard->index_at_start == at_start);
        assert_int_equal(sq_codec_shard_index(shard, scratch, at_start ? stored : stored + size - INDEX_BYTES, size, index, NULL), 0);
        assert_true(index[2] == UINT64_MAX && index[3] == UINT64_MAX && index[1] == INNER_BYTES);
        check_decodes(shard->inner, scratch, 1, stored + index[0], index[1], (const int32_t[]){0, 1, 2, 6, 7, 8}, INNER_BYTES);
        for (unsigned threads = 1; threads < 4; threads++)
            check_decodes(chain, scratch, threads, stored, size, values, sizeof values);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void what_we_write_we_read_and_threads_do_not_show(void **state)
{
    (void)state;
    static const char *const inners[] = {"[" LITTLE "]", "[" LITTLE ",\"zstd\"]",
                                         "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"bytes\",\"blosc\",\"crc32c\"]"};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (unsigned i = 0; i < 6; i++) {
        struct sq_codec_chain *chain = sharded(inners[i / 2], i % 2 ? ",\"index_location\":\"start\"" : ",\"index_location\":\"end\"");
        int32_t values[CELLS];
        uint8_t by_hand[400];
        size_t size, other_size;
        (void)make_by_hand(by_hand, false, values);
        uint8_t *stored = encoded(chain, scratch, 1, values, sizeof values, &size);
        uint8_t *other = encoded(chain, scratch, 3, values, sizeof values, &other_size);
        assert_int_equal(size, other_size);
        assert_memory_equal(stored, other, size);
        uint64_t index[2 * INNER];
        const uint8_t *where = i % 2 ? stored : stored + size - INDEX_BYTES;
        assert_int_equal(sq_codec_shard_index(sq_codec_chain_shard(chain), scratch, where, size, index, NULL), 0);
        assert_true(index[2] == UINT64_MAX && index[3] == UINT64_MAX && index[0] == (i % 2 ? INDEX_BYTES : 0));
        check_decodes(chain, scratch, 2, stored, size, values, sizeof values);
        for (size_t cut = 0; cut < size; cut++)
            check_refused(chain, scratch, stored, cut, sizeof values, SQUALL_ECORRUPT, "");
        free(stored), free(other);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void a_hostile_index_is_refused_by_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, size;
        const char *part;
    } entries[] = {
        {1000, INNER_BYTES, "the shard ends at"}, {0, UINT64_MAX, "the shard ends at"},  {UINT64_MAX, INNER_BYTES, "the shard ends at"},
        {UINT64_MAX - 1, 2, "the shard ends at"}, {0, INNER_BYTES - 1, "inner chunk 2"}, {0, 0, "inner chunk 2"},
    };
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (int at_start = 0; at_start < 2; at_start++) {
        struct sq_codec_chain *chain = sharded("[" LITTLE "]", at_start ? ",\"index_location\":\"start\"" : "");
        uint8_t stored[400] = {0};
        int32_t values[CELLS];
        size_t size = make_by_hand(stored, at_start, values);
        uint8_t *index = at_start ? stored : stored + size - INDEX_BYTES, before[INDEX_BYTES];
        memcpy(before, index, sizeof before);
        for (unsigned i = 0; i < sizeof entries / sizeof *entries; i++) {
            put_u64(index + 32, at_start && entries[i].offset == 0 ? INDEX_BYTES : entries[i].offset);
            put_u64(index + 40, entries[i].size);
            seal(index);
            check_refused(chain, scratch, stored, size, sizeof values, SQUALL_ECORRUPT, entries[i].part);
        }
        memcpy(index, before, sizeof before);
        put_u64(index, (uint64_t)(index - stored) + 3);
        seal(index);
        check_refused(chain, scratch, stored, size, sizeof values, SQUALL_ECORRUPT, "where the index itself lies");
        memcpy(index, before, sizeof before);
        index[20] ^= 1;
        check_refused(chain, scratch, stored, size, sizeof values, SQUALL_ECORRUPT, "shard index: crc32c");
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void inner_chunks_share_all_bytes_or_none(void **state)
{
    (void)state;
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    for (int at_start = 0; at_start < 2; at_start++) {
        struct sq_codec_chain *chain = sharded("[" LITTLE "]", at_start ? ",\"index_location\":\"start\"" : "");
        uint8_t stored[400] = {0};
        int32_t values[CELLS], back[CELLS];
        size_t size = make_by_hand(stored, at_start, values);
        uint8_t *index = at_start ? stored : stored + size - INDEX_BYTES;
        const uint64_t first = (at_start ? INDEX_BYTES : 0) + 5; /* inner chunk 3; then come 2 and 0 */
        const uint64_t last = size - INNER_BYTES - (at_start ? 0 : INDEX_BYTES);
        const struct {
            uint64_t offset;
            const char *part;
        } places[] = {
            {first + 1, "chunk 2 at byte"}, {first + INNER_BYTES - 1, "within inner chunk 3"}, {last - 1, "within inner chunk 2"}};
        for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
            put_u64(index + 32, places[i].offset);
            seal(index);
            check_refused(chain, scratch, stored, size, sizeof values, SQUALL_ECORRUPT, places[i].part);
        }
        put_u64(index + 32, first);
        seal(index);
        assert_int_equal(sq_codec_decode(chain, scratch, 1, stored, size, back, sizeof back, NULL), 0);
        sq_codec_chain_free(chain);
    }
    sq_codec_scratch_free(scratch);
}

static void shards_nest_and_are_wrapped(void **state)
{
    (void)state;
    static const uint64_t cube[] = {4, 8, 6};
    static const double cube_fill = 0.5;
    const struct sq_codec_chunk c = {.dtype = sq_dtype_of(SQUALL_FLOAT64), .rank = 3, .shape = cube, .fill = &cube_fill};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *nested =
        bind_v3("[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,4,6],\"codecs\":[{\"name\":\"sharding_indexed\","
                "\"configuration\":{\"chunk_shape\":[1,4,3],\"codecs\":[" LITTLE ",\"zstd\"]," INDEX "}}]," INDEX "}}]",
                &c);
    struct sq_codec_chain *wrapped =
        bind_v3("[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},{\"name\":\"sharding_indexed\","
                "\"configuration\":{\"chunk_shape\":[3,2,2],\"codecs\":[" LITTLE "]," INDEX "}},\"gzip\"]",
                &c);
    double values[4 * 8 * 6];
    for (unsigned i = 0; i < 192; i++)
        values[i] = i % 48 < 24 && i < 96 ? cube_fill : (double)i;
    struct sq_codec_chain *chains[] = {nested, wrapped};
    for (unsigned k = 0; k < 2; k++) {
        size_t size;
        uint8_t *stored = encoded(chains[k], scratch, 2, values, sizeof values, &size);
        check_decodes(chains[k], scratch, 2, stored, size, values, sizeof values);
        free(stored);
    }
    assert_non_null(sq_codec_chain_shard(nested));
    assert_null(sq_codec_chain_shard(wrapped));
    sq_codec_chain_free(nested);
    sq_codec_chain_free(wrapped);
    sq_codec_scratch_free(scratch);
}

static void strings_in_shards_come_back_and_failures_leak_nothing(void **state)
{
    (void)state;
    static const uint64_t four[] = {4};
    const struct squall_bytes words[] = {TEXT("none"), TEXT("none"), TEXT("n\0x"), TEXT("none")}, none = TEXT("none");
    const struct sq_codec_chunk c = {.dtype = sq_dtype_of(SQUALL_STRING), .rank = 1, .shape = four, .fill = &none};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain = bind_v3(
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[\"vlen-utf8\",\"zstd\"]," INDEX "}}]", &c);
    size_t size;
    uint8_t *stored = encoded(chain, scratch, 1, words, sizeof words, &size);
    struct squall_bytes back[4];
    assert_int_equal(sq_codec_decode(chain, scratch, 1, stored, size, back, sizeof back, NULL), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_true(sq_bytes_equal(&back[i], &words[i]));
    sq_bytes_free(back, 4);
    stored[4] ^= 0xff; /* in the frame of the second inner chunk: the first is made by then */
    check_refused(chain, scratch, stored, size, sizeof back, SQUALL_ECORRUPT, "shard, inner chunk 1");
    free(stored);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

/* Bit for bit: a negative zero is not left out as zero. */
static void only_the_fill_value_itself_is_left_out(void **state)
{
    (void)state;
    static const uint64_t two[] = {2};
    const float values[] = {-0.0F, 0.0F};
    struct sq_codec_scratch *scratch = sq_codec_scratch_new();
    struct sq_codec_chain *chain =
        bind_v3("[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":[" LITTLE "]," INDEX "}}]",
                &(struct sq_codec_chunk){.dtype = sq_dtype_of(SQUALL_FLOAT32), .rank = 1, .shape = two});
    size_t size;
    uint8_t *stored = encoded(chain, scratch, 1, values, sizeof values, &size);
    assert_int_equal(size, 4 + 2 * 16 + 4);
    check_decodes(chain, scratch, 1, stored, size, values, sizeof values);
    free(stored);
    sq_codec_chain_free(chain);
    sq_codec_scratch_free(scratch);
}

static void metadata_of_shards_is_checked_and_given_back(void **state)
{
    (void)state;
    const struct sq_codec_chunk c = chunk();
#define SHARDING(configuration) "[{\"name\":\"sharding_indexed\",\"configuration\":{" configuration "}}]"
    check_bind_v3_error(SHARDING("\"codecs\":[\"bytes\"]," INDEX), &c, SQUALL_ECORRUPT, "chunk shape has not the shard's 2 dimensions");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[2,4],\"codecs\":[\"bytes\"]," INDEX), &c, SQUALL_ECORRUPT, "does not divide into 4");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[0,3],\"codecs\":[\"bytes\"]," INDEX), &c, SQUALL_ECORRUPT, "does not divide into 0");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[2,3],\"codecs\":[\"bytes\"]"), &c, SQUALL_ECORRUPT, "sharding_indexed, index");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[2,3],\"codecs\":[\"zfp\"]," INDEX), &c, SQUALL_EUNSUPPORTED, "unsupported codec zfp");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[2,3],\"codecs\":[\"bytes\"],\"index_codecs\":[\"bytes\",\"zstd\"]"), &c,
                        SQUALL_EUNSUPPORTED, "unsupported index codecs bytes + zstd(3)");
    check_bind_v3_error(SHARDING("\"chunk_shape\":[2,3],\"codecs\":[\"bytes\"],\"index_location\":\"middle\"," INDEX), &c, SQUALL_ECORRUPT,
                        "\"index_location\" is none of \"start\", \"end\"");
    static const char text[] = SHARDING("\"chunk_shape\":[2,3],\"codecs\":[\"bytes\",\"zstd\"]," INDEX);
    struct sq_codec_chain *chain = bind_v3(text, &c);
    struct sq_json *json = sq_codec_chain_json_v3(chain, false), *expected = json_of(text);
    assert_true(sq_json_equal(json, expected));
    assert_string_equal(sq_codec_chain_text(chain), "sharding_indexed(2 × 3: bytes + zstd(3))");
    sq_json_free(json);
    sq_json_free(expected);
    sq_codec_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_made_by_hand_is_read),
        cmocka_unit_test(what_we_write_we_read_and_threads_do_not_show),
        cmocka_unit_test(a_hostile_index_is_refused_by_what_is_wrong),
        cmocka_unit_test(inner_chunks_share_all_bytes_or_none),
        cmocka_unit_test(shards_nest_and_are_wrapped),
        cmocka_unit_test(strings_in_shards_come_back_and_failures_leak_nothing),
        cmocka_unit_test(only_the_fill_value_itself_is_left_out),
        cmocka_unit_test(metadata_of_shards_is_checked_and_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
