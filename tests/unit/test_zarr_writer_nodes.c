/*
 * Groups and arrays of a store: made, told in consolidated metadata, changed, deleted, refused. Consolidated metadata is true where it says what
 * the documents in the folders say.
 */
#include "support/unit.h"

#include "base/json.h"
#include "base/memory.h"
#include "squall/squall.h"
#include "support/json.h"
#include "support/zarr_files.h"
#include <stdio.h>

static squall_context *ctx;

static int set_up(void **state)
{
    return make_test_folder(state) || squall_context_new(NULL, &ctx, NULL);
}

static int tear_down(void **state)
{
    squall_context_free(ctx);
    return remove_test_folder(state);
}

static void make_group(const char *store, const char *name, const struct squall_group_spec *spec)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    must(squall_group_create(ctx, store, name, spec, NULL, &err), &err);
}

/* 10 × 10 of int16 in chunks of 4 × 4; *err may be NULL. */
static int try_array(const char *store, const char *name, int version, bool overwrite, struct squall_error *err)
{
    const uint64_t shape[] = {10, 10}, chunks[] = {4, 4};
    const char *const dims[] = {"y", "x"};
    const struct squall_array_spec spec = {.zarr_format = version,
                                           .type = "int16",
                                           .rank = 2,
                                           .shape = shape,
                                           .chunks = chunks,
                                           .dims = dims,
                                           .attributes = "{\"z\": 1, \"a\": [2]}",
                                           .codecs = "none",
                                           .overwrite = overwrite};
    return squall_array_create(ctx, store, name, &spec, NULL, err);
}

static void make_array(const char *store, const char *name, int version)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    must(try_array(store, name, version, false, &err), &err);
}

static int check_entry(void *user, const char *key, const struct sq_json *value, struct squall_error *err)
{
    const char *store = user;
    (void)err;
    SQ_CLEANUP_FREE char *path = strstr(key, ".z") ? sq_strdup(key) : sq_path_join(key, "zarr.json");
    SQ_CLEANUP_JSON struct sq_json *document = read_json(store, path);
    sq_json_remove(document, "consolidated_metadata");
    if (!document || !sq_json_equal(document, value))
        fail_msg("%s: consolidated metadata says something else of %s", store, key);
    return 0;
}

/* That all it says is true, and that it says `count` things. */
static void assert_consolidated(const char *store, int version, size_t count)
{
    SQ_CLEANUP_JSON struct sq_json *root = read_json(store, version == 3 ? "zarr.json" : ".zmetadata");
    const struct sq_json *table = sq_json_get(version == 3 ? sq_json_get(root, "consolidated_metadata") : root, "metadata");
    assert_int_equal(sq_json_type(table), SQ_JSON_OBJECT);
    assert_int_equal(sq_json_each(table, check_entry, (void *)(uintptr_t)store, NULL), 0);
    assert_int_equal(sq_json_count(table), count);
}

static void consolidated_metadata_is_kept_true(void **state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        const bool v2 = version == 2;
        SQ_CLEANUP_FREE char *store = in_test_folder(v2 ? "told.v2.zarr" : "told.v3.zarr");
        struct squall_error err = SQUALL_ERROR_INIT;
        make_group(store, NULL, &(struct squall_group_spec){.zarr_format = version, .consolidated = 1});
        assert_consolidated(store, version, v2 ? 1 : 0);
        make_array(store, "t", 0);
        assert_consolidated(store, version, v2 ? 3 : 1);
        make_array(store, "g/h/u", version); /* and the groups on the way */
        assert_consolidated(store, version, v2 ? 7 : 4);
        must(squall_node_set_attributes(ctx, store, "t", "{\"b\": 1}", NULL, &err), &err);
        must(squall_node_set_attributes(ctx, store, "g", "{\"c\": \"text\"}", NULL, &err), &err);
        must(squall_node_set_attributes(ctx, store, NULL, "{\"title\": \"root\"}", NULL, &err), &err);
        assert_consolidated(store, version, v2 ? 9 : 4);

        SQ_CLEANUP_FREE char *u = sq_path_join(store, "g/h/u");
        squall_dataset *ds = NULL;
        must(squall_store_open(ctx, u, NULL, &ds, &err), &err);
        must(squall_array_resize(squall_dataset_array_at(ds, 0), (const uint64_t[]){20, 5}, &err), &err);
        squall_dataset_close(ds);
        assert_consolidated(store, version, v2 ? 9 : 4);
        must(squall_dataset_open(ctx, store, &ds, &err), &err);
        squall_array *a = NULL;
        must(squall_dataset_array(ds, "g/h/u", &a, &err), &err);
        assert_int_equal(squall_array_info(a).shape[0], 20);
        assert_string_equal(squall_dataset_info(ds).attributes, "{\"title\":\"root\"}");
        squall_dataset_close(ds);

        must(squall_node_delete(ctx, store, "g", NULL, &err), &err);
        assert_consolidated(store, version, v2 ? 4 : 1);
        assert_int_equal(squall_node_delete(ctx, store, "g", NULL, &err), SQUALL_ENOTFOUND);
        const struct squall_store_options leave = {.leave_consolidated = 1};
        must(squall_node_set_attributes(ctx, store, "t", "{}", &leave, &err), &err);
        SQ_CLEANUP_JSON struct sq_json *root = read_json(store, v2 ? ".zmetadata" : "zarr.json");
        const struct sq_json *table = sq_json_get(v2 ? root : sq_json_get(root, "consolidated_metadata"), "metadata");
        const struct sq_json *attributes = v2 ? sq_json_get(table, "t/.zattrs") : sq_json_get(sq_json_get(table, "t"), "attributes");
        assert_non_null(sq_json_get(attributes, "b"));
    }
}

/* Texts: their fill value, which the codecs know, is renewed with the grid. */
static void a_rectilinear_grid_is_written_to_and_grows(void **state)
{
    (void)state;
    static const struct squall_bytes WORDS[] = {TEXT("a"), TEXT("b"), TEXT("c"), TEXT("d"), TEXT("e")};
    for (int sharded = 0; sharded < 2; sharded++) {
        SQ_CLEANUP_FREE char *store = in_test_folder(sharded ? "lists.shards.zarr" : "lists.zarr");
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_dataset *ds = NULL;
        struct squall_bytes found[9];
        const struct squall_array_spec spec = {.type = "string",
                                               .rank = 1,
                                               .shape = (const uint64_t[]){5},
                                               .chunk_shapes = "[[1, 4]]",
                                               .chunks = sharded ? (const uint64_t[]){1} : NULL,
                                               .fill_value = "\"fill\""};
        must(squall_array_create(ctx, store, NULL, &spec, NULL, &err), &err);
        must(squall_store_open(ctx, store, NULL, &ds, &err), &err);
        squall_array *a = squall_dataset_array_at(ds, 0);
        struct squall_selection part = {.start = {0}, .count = {3}, .step = {2}};
        must(squall_array_write(a, &part, WORDS, NULL, &err), &err);
        must(squall_array_resize(a, (const uint64_t[]){9}, &err), &err);
        must(squall_array_resize(a, (const uint64_t[]){1}, &err), &err);
        must(squall_array_resize(a, (const uint64_t[]){9}, &err), &err);
        part.start[0] = 4;
        must(squall_array_write(a, &part, WORDS, NULL, &err), &err);
        const struct squall_selection all = squall_selection_all(a);
        must(squall_array_read(a, &all, found, NULL, &err), &err);
        for (int i = 0; i < 9; i++) {
            const char *expected = i == 0 || i == 4 ? "a" : i == 6 ? "b" : i == 8 ? "c" : "fill";
            assert_string_equal(found[i].data, expected);
            free(found[i].data);
        }
        assert_int_equal(squall_array_info(a).chunks[0], 4);
        squall_dataset_close(ds);
        SQ_CLEANUP_JSON struct sq_json *document = read_json(store, "zarr.json"), *grid = parsed("[[1, 4, 4]]");
        assert_true(sq_json_equal(sq_json_get(sq_json_get(sq_json_get(document, "chunk_grid"), "configuration"), "chunk_shapes"), grid));
    }
}

static void attributes_keep_their_order(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("order.zarr");
    static const char TEXT[] = "{\"z\":1.50,\"a\":{\"y\":null,\"b\":[1,\"\\u00fc\"]},\"m\":12345678901234567890}";
    squall_dataset *ds = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    make_group(store, NULL, &(struct squall_group_spec){.attributes = TEXT});
    must(squall_dataset_open(ctx, store, &ds, &err), &err);
    assert_string_equal(squall_dataset_info(ds).attributes,
                        "{\"z\":1.50,\"a\":{\"y\":null,\"b\":[1,\"\xc3\xbc\"]},\"m\":12345678901234567890}");
    squall_dataset_close(ds);
}

static void what_is_there_is_refused_or_overwritten(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("there.zarr");
    struct squall_error err = SQUALL_ERROR_INIT;
    make_array(store, "t", 3);
    put_bytes("there.zarr/t/c/0/0", "0123456789abcdef0123456789abcdef", 32);
    assert_int_equal(try_array(store, "t", 0, false, &err), SQUALL_EREFUSED);
    assert_int_equal(try_array(store, "t/u", 0, false, &err), SQUALL_EREFUSED); /* an array holds no arrays */
    assert_int_equal(try_array(store, "v", 2, false, &err), SQUALL_EINVAL);     /* v2 in a store of v3 */
    must(try_array(store, "t", 0, true, &err), &err);
    SQ_CLEANUP_FREE char *chunk = in_test_folder("there.zarr/t/c/0/0");
    bool exists;
    must(sq_file_exists(chunk, &exists, &err), &err);
    assert_false(exists);

    put_file("photos/one.jpg", "a picture"); /* nothing of ours: never deleted */
    SQ_CLEANUP_FREE char *photos = in_test_folder("photos");
    assert_int_equal(try_array(photos, NULL, 0, true, &err), SQUALL_EREFUSED);
    assert_int_equal(squall_node_delete(ctx, photos, NULL, NULL, &err), SQUALL_ENOTFOUND);
    SQ_CLEANUP_FREE char *picture = in_test_folder("photos/one.jpg");
    must(sq_file_exists(picture, &exists, &err), &err);
    assert_true(exists);
}

static void names_and_specs_without_sense_are_refused(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"..", "a/../b", "/a", "a/", "a//b", ".hidden", "__x", "g/zarr.json"};
    SQ_CLEANUP_FREE char *store = in_test_folder("sense.zarr");
    struct squall_error err = SQUALL_ERROR_INIT;
    bool exists = true;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        assert_int_equal(try_array(store, NAMES[i], 3, false, &err), SQUALL_EINVAL);
    const uint64_t shape[] = {10}, chunks[] = {4}, shards[] = {6}, zero[] = {0};
    const struct squall_array_spec good = {.type = "int16", .rank = 1, .shape = shape, .chunks = chunks};
    struct squall_array_spec specs[] = {good, good, good, good, good, good, good, good};
    specs[0].type = "int17";
    specs[1].shards = shards;
    specs[2].chunks = zero;
    specs[3].fill_value = "\"warm\"";
    specs[4].attributes = "[1]";
    specs[5].codecs = "zstd:level=99";
    specs[6].codecs = "[{\"name\": \"zstd\"}]";
    specs[7].separator = '_';
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        int status = squall_array_create(ctx, store, "t", &specs[i], NULL, &err);
        if (status != SQUALL_EINVAL && status != SQUALL_EUNSUPPORTED)
            fail_msg("spec %zu: %d", i, status);
    }
    must(sq_file_exists(store, &exists, &err), &err);
    assert_false(exists);
}

static void shrinking_deletes_what_lies_outside(void **state)
{
    (void)state;
    static const char *const KEYS[] = {"c/%d/%d", "c.%d.%d", "%d/%d", "%d.%d"};
    const uint64_t shape[] = {10, 10}, chunks[] = {4, 4};
    int16_t values[100];
    for (int i = 0; i < 100; i++)
        values[i] = (int16_t)(i + 1);
    for (int k = 0; k < 4; k++) {
        SQ_CLEANUP_FREE char *store = in_test_folder("shrink.zarr");
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_dataset *ds = NULL;
        const struct squall_array_spec spec = {.type = "int16",
                                               .rank = 2,
                                               .shape = shape,
                                               .chunks = chunks,
                                               .v2_keys = k >= 2,
                                               .separator = k % 2 ? '.' : '/',
                                               .overwrite = 1};
        must(squall_array_create(ctx, store, NULL, &spec, NULL, &err), &err);
        must(squall_store_open(ctx, store, NULL, &ds, &err), &err);
        squall_array *a = squall_dataset_array_at(ds, 0);
        struct squall_selection s = squall_selection_all(a);
        must(squall_array_write(a, &s, values, NULL, &err), &err);
        must(squall_array_resize(a, (const uint64_t[]){5, 10}, &err), &err);
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 3; x++) {
                char key[32];
                bool exists;
                snprintf(key, sizeof key, KEYS[k], y, x);
                SQ_CLEANUP_FREE char *path = sq_path_join(store, key);
                must(sq_file_exists(path, &exists, &err), &err);
                assert_int_equal(exists, y < 2);
            }
        must(squall_array_resize(a, (const uint64_t[]){12, 10}, &err), &err);
        int16_t got[120];
        s = squall_selection_all(a);
        assert_int_equal(s.count[0], 12);
        must(squall_array_read(a, &s, got, NULL, &err), &err);
        assert_memory_equal(got, values, 5 * 10 * sizeof *got);
        for (int i = 80; i < 120; i++) /* rows 5 to 7 are in a chunk that stayed */
            assert_int_equal(got[i], 0);
        squall_dataset_close(ds);
    }
}

/* A store that can be opened, with the array or without. */
static void every_failed_allocation_leaves_a_store(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("memory.zarr");
    long failures = 0;
    for (long at = 0;; at++) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        make_group(store, NULL, &(struct squall_group_spec){.zarr_format = at % 2 ? 2 : 3, .consolidated = 1, .overwrite = 1});
        sq_fail_allocation(at / 2);
        int status = try_array(store, "g/t", 0, false, &err);
        if (!status)
            status = squall_node_set_attributes(ctx, store, "g/t", "{\"b\": 2}", NULL, &err);
        if (!status)
            status = squall_node_delete(ctx, store, "g", NULL, &err);
        sq_fail_allocation(-1);
        must(squall_dataset_open(ctx, store, &ds, &err), &err);
        assert_int_equal(squall_dataset_info(ds).problem_count, 0);
        squall_dataset_close(ds);
        if (!status && at % 2)
            break;
        if (!status)
            continue;
        assert_int_equal(status, SQUALL_ENOMEM);
        failures++;
    }
    assert_true(failures > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consolidated_metadata_is_kept_true),
        cmocka_unit_test(a_rectilinear_grid_is_written_to_and_grows),
        cmocka_unit_test(attributes_keep_their_order),
        cmocka_unit_test(what_is_there_is_refused_or_overwritten),
        cmocka_unit_test(names_and_specs_without_sense_are_refused),
        cmocka_unit_test(shrinking_deletes_what_lies_outside),
        cmocka_unit_test(every_failed_allocation_leaves_a_store),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
