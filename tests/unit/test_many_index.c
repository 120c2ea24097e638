/* The index of many files: what is kept comes back, and nothing that is wrong with the file is ever taken for an entry. */
#include "support/folder.h"

#include "base/memory.h"
#include "cube/many_index.h"

enum { ENTRIES = 3, JOINED = 2, HASH_BYTES = 16 };

static const struct sq_many_index_shape SHAPE = {.key = {1, 2}, .counted = true, .joined = JOINED};

static struct sq_file_identity identity_of(uint64_t number)
{
    return (struct sq_file_identity){
        .device = 7, .inode = 100 - number, .size_bytes = 1000 + number, .mtime_ns = 5 + (int64_t)number, .ctime_ns = 6};
}

/* Entry i has i + 1 int16 values: 10 i, 10 i + 1, … */
static void put_index(const char *folder)
{
    struct sq_many_entry entries[ENTRIES];
    int16_t values[ENTRIES][ENTRIES];
    uint64_t chunks[ENTRIES][JOINED];
    for (unsigned i = 0; i < ENTRIES; i++) {
        for (unsigned k = 0; k < ENTRIES; k++)
            values[i][k] = (int16_t)(10 * i + k);
        for (unsigned k = 0; k < JOINED; k++)
            chunks[i][k] = i + k + 1;
        entries[i] = (struct sq_many_entry){
            .identity = identity_of(i),
            .length = i + 1,
            .part = {.type = SQUALL_INT16, .values = values[i], .length = i + 1, .units = i ? (char *)(uintptr_t) "hours" : NULL},
            .chunks = chunks[i],
        };
    }
    sq_many_index_save(folder, &SHAPE, entries, ENTRIES);
}

static const char *path_of_index(const char *folder, const struct sq_many_index_shape *shape)
{
    char hash[SQ_HASH_TEXT_BYTES], name[SQ_HASH_TEXT_BYTES + 8];
    sq_hash_text(shape->key, hash);
    snprintf(name, sizeof name, "%s.index", hash);
    return in_folder(folder, name);
}

static void put_bytes(const char *path, const uint8_t *bytes, size_t size_bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size_bytes, f), size_bytes);
    assert_int_equal(fclose(f), 0);
}

static void entries_come_back(void **state)
{
    put_index(*state);
    struct sq_many_index *index = sq_many_index_load(*state, &SHAPE);
    assert_non_null(index);
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct sq_many_entry found;
        const struct sq_file_identity identity = identity_of(i);
        assert_true(sq_many_index_find(index, &identity, &found));
        assert_int_equal(found.length, i + 1);
        assert_int_equal(found.part.length, i + 1);
        assert_int_equal(found.part.type, SQUALL_INT16);
        for (unsigned k = 0; k <= i; k++)
            assert_int_equal(((const int16_t *)found.part.values)[k], 10 * i + k);
        for (unsigned k = 0; k < JOINED; k++)
            assert_int_equal(found.chunks[k], i + k + 1);
        assert_true(i ? !strcmp(found.part.units, "hours") : !found.part.units);
        assert_null(found.part.calendar);
        sq_many_entry_done(&found);
    }
    sq_many_index_free(index);
}

static void another_file_is_not_known(void **state)
{
    struct sq_many_entry found;
    struct sq_file_identity others[5];
    for (unsigned i = 0; i < 5; i++)
        others[i] = identity_of(1);
    others[0].device++;
    others[1].inode += 50;
    others[2].size_bytes++;
    others[3].mtime_ns++;
    others[4].ctime_ns++;
    put_index(*state);
    struct sq_many_index *index = sq_many_index_load(*state, &SHAPE);
    assert_non_null(index);
    for (unsigned i = 0; i < 5; i++)
        assert_false(sq_many_index_find(index, &others[i], &found));
    sq_many_index_free(index);
}

static void an_index_of_another_key_is_not_used(void **state)
{
    struct sq_many_index_shape other = SHAPE;
    put_index(*state);
    other.key.low++;
    assert_null(sq_many_index_load(*state, &other));
    assert_int_equal(rename(path_of_index(*state, &SHAPE), path_of_index(*state, &other)), 0); /* under its name, but not its own */
    assert_null(sq_many_index_load(*state, &other));
}

/* What is loaded of bytes that someone changed, and whose hash may be right again: all of it can be looked at. */
static bool look_at(const char *folder, const struct sq_many_index_shape *shape)
{
    struct sq_many_index *index = sq_many_index_load(folder, shape);
    for (unsigned i = 0; index && i < ENTRIES; i++) {
        struct sq_many_entry found;
        const struct sq_file_identity identity = identity_of(i);
        if (sq_many_index_find(index, &identity, &found)) {
            volatile uint64_t sum = 0;
            for (uint64_t k = 0; shape->counted && k < found.length * 2; k++)
                sum += ((const uint8_t *)found.part.values)[k];
            (void)sum;
            sq_many_entry_done(&found);
        }
    }
    sq_many_index_free(index);
    return index != NULL;
}

static void put_hash(uint8_t *bytes, size_t size_bytes)
{
    const struct sq_hash hash = sq_hash_bytes(bytes, size_bytes - HASH_BYTES);
    for (unsigned i = 0; i < 8; i++) {
        bytes[size_bytes - HASH_BYTES + i] = (uint8_t)(hash.high >> 8 * i);
        bytes[size_bytes - HASH_BYTES + 8 + i] = (uint8_t)(hash.low >> 8 * i);
    }
}

static void every_damaged_byte_is_noticed_or_harmless(void **state)
{
    static const uint8_t CHANGES[] = {0x01, 0x80, 0xff};
    char *whole = NULL;
    size_t size_bytes = 0;
    put_index(*state);
    const char *path = path_of_index(*state, &SHAPE);
    assert_int_equal(sq_file_read_all(path, 1 << 20, &whole, &size_bytes, NULL), 0);
    uint8_t *bytes = malloc(size_bytes);
    for (size_t at = 0; at < size_bytes; at++)
        for (size_t c = 0; c < sizeof CHANGES; c++) {
            memcpy(bytes, whole, size_bytes);
            bytes[at] ^= CHANGES[c];
            put_bytes(path, bytes, size_bytes);
            assert_false(look_at(*state, &SHAPE)); /* the hash tells */
            if (at >= size_bytes - HASH_BYTES)
                continue;
            put_hash(bytes, size_bytes);
            put_bytes(path, bytes, size_bytes);
            (void)look_at(*state, &SHAPE); /* nothing does: it is parsed within its bounds */
        }
    put_bytes(path, (const uint8_t *)whole, size_bytes);
    assert_true(look_at(*state, &SHAPE));
    free(bytes);
    sq_free(whole);
}

static void every_truncation_is_noticed(void **state)
{
    char *whole = NULL;
    size_t size_bytes = 0;
    put_index(*state);
    const char *path = path_of_index(*state, &SHAPE);
    assert_int_equal(sq_file_read_all(path, 1 << 20, &whole, &size_bytes, NULL), 0);
    for (size_t length = 0; length < size_bytes; length++) {
        uint8_t *bytes = malloc(length + 1); /* of its own, for ASan */
        memcpy(bytes, whole, length);
        put_bytes(path, bytes, length);
        assert_false(look_at(*state, &SHAPE));
        if (length >= HASH_BYTES) {
            put_hash(bytes, length);
            put_bytes(path, bytes, length);
            assert_false(look_at(*state, &SHAPE));
        }
        free(bytes);
    }
    sq_free(whole);
}

static void the_same_bytes_of_another_shape_are_harmless(void **state)
{
    struct sq_many_index_shape shape = SHAPE;
    put_index(*state);
    for (shape.joined = 0; shape.joined < 40; shape.joined++)
        for (unsigned counted = 0; counted < 2; counted++) {
            shape.counted = counted;
            assert_int_equal(look_at(*state, &shape), shape.joined == JOINED && counted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_come_back, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(another_file_is_not_known, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(an_index_of_another_key_is_not_used, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(every_damaged_byte_is_noticed_or_harmless, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(every_truncation_is_noticed, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(the_same_bytes_of_another_shape_are_harmless, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
