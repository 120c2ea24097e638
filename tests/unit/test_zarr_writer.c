/* The Zarr writer: what its documents say, that equal ones are left alone, that chunks end as they should, and that failures leave no half. */
#include "support/unit.h"

#include "array/bytes.h"
#include "base/memory.h"
#include "engine/zarr_array.h"
#include "store/zarr_writer.h"
#include "support/zarr_files.h"
#include <sys/stat.h>

static struct squall_context context = {.threads = 2, .memory_bytes = 1 << 30};

/* An array of the tests: `t` (float32, y × x) or of any other type. done with sample_done. */
struct sample {
    struct sq_store_array array;
    struct sq_codec_chain *codecs;
    struct sq_json *attributes;
    uint64_t shape[2], chunks[2];
    const char *dims[2];
};

static void sample_init(struct sample *s, const char *name, enum squall_type type, uint64_t rows, uint64_t columns, uint64_t chunk_rows,
                        uint64_t chunk_columns)
{
    *s = (struct sample){.shape = {rows, columns}, .chunks = {chunk_rows, chunk_columns}, .dims = {"y", ""}};
    s->attributes = sq_json_new_object();
    assert_int_equal(sq_json_set_string(s->attributes, "units", "K"), 0);
    assert_int_equal(sq_codec_chain_parse("none", type, NULL, &s->codecs, NULL), 0);
    s->array = (struct sq_store_array){.name = name,
                                       .type = type,
                                       .rank = 2,
                                       .shape = s->shape,
                                       .chunks = s->chunks,
                                       .dims = s->dims,
                                       .attributes = s->attributes,
                                       .codecs = s->codecs};
}

static void sample_done(struct sample *s)
{
    sq_codec_chain_free(s->codecs);
    sq_json_free(s->attributes);
}

static struct sq_store in(const char *folder)
{
    return (struct sq_store){folder, 3};
}

static void documents_say_what_zarr_v3_wants(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("new/parent/documents.zarr");
    struct sample t, text;
    sample_init(&t, "t", SQUALL_FLOAT32, 5, 7, 2, 3);
    sample_init(&text, "text", SQUALL_STRING, 1, 1, 1, 1);
    struct sq_store_array arrays[] = {t.array, text.array};
    SQ_CLEANUP_JSON struct sq_json *attributes = sq_json_new_object();
    assert_int_equal(sq_json_set_string(attributes, "Conventions", "CF-1.11"), 0);
    assert_int_equal(sq_store_publish_metadata(in(store), attributes, arrays, 2, NULL), 0);

    SQ_CLEANUP_JSON struct sq_json *expected = NULL;
    const char *expected_text = "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[5,7],\"data_type\":\"float32\","
                                "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"
                                "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"
                                "\"fill_value\":\"NaN\",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],"
                                "\"attributes\":{\"units\":\"K\"},\"dimension_names\":[\"y\",null]}";
    assert_int_equal(sq_json_parse(expected_text, strlen(expected_text), &expected, NULL), 0);
    SQ_CLEANUP_JSON struct sq_json *array = read_json(store, "t/zarr.json");
    assert_true(sq_json_equal(array, expected));

    SQ_CLEANUP_JSON struct sq_json *root = read_json(store, "zarr.json");
    const struct sq_json *consolidated = sq_json_get(root, "consolidated_metadata");
    assert_string_equal(sq_json_string(sq_json_get(root, "node_type")), "group");
    assert_string_equal(sq_json_string(sq_json_get(sq_json_get(root, "attributes"), "Conventions")), "CF-1.11");
    assert_string_equal(sq_json_string(sq_json_get(consolidated, "kind")), "inline");
    assert_true(sq_json_equal(sq_json_get(sq_json_get(consolidated, "metadata"), "t"), expected));
    assert_string_equal(sq_json_string(sq_json_get(sq_json_get(sq_json_get(consolidated, "metadata"), "text"), "data_type")), "string");
    sample_done(&t);
    sample_done(&text);
}

static uint64_t inode_of(const char *store, const char *name)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(store, name);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return s.st_ino;
}

static void equal_documents_are_left_alone(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("same.zarr");
    struct sample a, b;
    sample_init(&a, "a", SQUALL_FLOAT32, 5, 7, 2, 3);
    sample_init(&b, "b", SQUALL_INT64, 5, 7, 2, 3);
    struct sq_store_array arrays[] = {a.array, b.array};
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, arrays, 2, NULL), 0);
    uint64_t root = inode_of(store, "zarr.json"), of_a = inode_of(store, "a/zarr.json"), of_b = inode_of(store, "b/zarr.json");
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, arrays, 2, NULL), 0);
    assert_int_equal(inode_of(store, "zarr.json"), root);
    assert_int_equal(inode_of(store, "a/zarr.json"), of_a);
    b.shape[0] = 6;
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, arrays, 2, NULL), 0);
    assert_int_equal(inode_of(store, "a/zarr.json"), of_a);
    assert_true(inode_of(store, "b/zarr.json") != of_b);
    assert_true(inode_of(store, "zarr.json") != root);
    sample_done(&a);
    sample_done(&b);
}

static void names_that_no_store_can_have_are_refused(void **state)
{
    (void)state;
    const char *names[] = {"", ".", "..", ".hidden", "a/b", "__reserved", "zarr.json"};
    SQ_CLEANUP_FREE char *store = in_test_folder("names.zarr");
    struct sample t;
    sample_init(&t, "t", SQUALL_FLOAT32, 5, 7, 2, 3);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        t.array.name = names[i];
        assert_int_equal(sq_store_publish_metadata(in(store), NULL, &t.array, 1, &err), SQUALL_EINVAL);
        assert_non_null(strstr(err.message, "cannot be the name"));
    }
    t.array.name = "t";
    struct sq_store_array twice[] = {t.array, t.array};
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, twice, 2, NULL), SQUALL_EINVAL);
    bool exists = true;
    assert_int_equal(sq_file_exists(store, &exists, NULL), 0);
    assert_false(exists);
    sample_done(&t);
}

static void what_makes_no_array_is_refused(void **state)
{
    (void)state;
    struct sample t;
    struct sq_node node = {0};
    SQ_CLEANUP_JSON struct sq_json *fill = sq_json_new_string("warm");
    sample_init(&t, "t", SQUALL_FLOAT32, 5, 7, 2, 3);
    t.array.fill_value = fill;
    assert_int_equal(sq_store_array_node(&t.array, 3, &node, NULL), SQUALL_EINVAL);
    t.array.fill_value = NULL;
    t.chunks[1] = 0;
    assert_int_equal(sq_store_array_node(&t.array, 3, &node, NULL), SQUALL_EINVAL);
    t.chunks[1] = 1;
    t.array.rank = SQUALL_RANK_MAX + 1;
    assert_int_equal(sq_store_array_node(&t.array, 3, &node, NULL), SQUALL_EINVAL);
    assert_int_equal(node.version, 0);
    sample_done(&t);
}

static void chunk_paths_have_an_index_a_folder(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *deep = sq_store_chunk_path(in("a/s.zarr"), "t", 3, (uint64_t[]){0, 12, UINT64_MAX});
    SQ_CLEANUP_FREE char *scalar = sq_store_chunk_path(in("s.zarr/"), "t", 0, NULL);
    assert_string_equal(deep, "a/s.zarr/t/c/0/12/18446744073709551615");
    assert_string_equal(scalar, "s.zarr/t/c");
    SQ_CLEANUP_FREE char *deep2 = sq_store_chunk_path((struct sq_store){"a/s.zarr", 2}, "t", 2, (uint64_t[]){0, 12});
    SQ_CLEANUP_FREE char *scalar2 = sq_store_chunk_path((struct sq_store){"s.zarr", 2}, "t", 0, NULL);
    assert_string_equal(deep2, "a/s.zarr/t/0/12");
    assert_string_equal(scalar2, "s.zarr/t/0");
}

static void a_chunk_is_replaced_whole(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("chunk.zarr");
    struct sample t;
    sample_init(&t, "t", SQUALL_FLOAT32, 5, 7, 2, 3);
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, &t.array, 1, NULL), 0);
    const uint64_t chunk[] = {1, 2};
    assert_int_equal(sq_store_write_chunk(in(store), "t", 2, chunk, "longer than", 11, NULL), 0);
    assert_int_equal(sq_store_write_chunk(in(store), "t", 2, chunk, "this", 4, NULL), 0);
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(in(store), "t", 2, chunk);
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size;
    assert_int_equal(sq_file_read_all(path, 100, &text, &size, NULL), 0);
    assert_string_equal(text, "this");
    SQ_CLEANUP_FREE char *folder = in_test_folder("chunk.zarr/t/c/1");
    char **names;
    size_t count;
    assert_int_equal(sq_folder_list(folder, &names, &count, NULL), 0);
    assert_int_equal(count, 1); /* and nothing temporary is left */
    sq_names_free(names, count);
    sample_done(&t);
}

static squall_array *reopened(const char *store, const char *name, struct squall_dataset **ret_ds)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_array *a = NULL;
    if (sq_zarr_dataset_open(&context, store, ret_ds, &err) || squall_dataset_array(*ret_ds, name, &a, &err))
        fail_msg("%s", err.message);
    return a;
}

static void arrays_are_written_with_padded_edges(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("array.zarr");
    SQ_CLEANUP_JSON struct sq_json *fill = sq_json_new_int(-1);
    struct sample n;
    sample_init(&n, "n", SQUALL_INT16, 5, 7, 2, 3);
    n.array.fill_value = fill;
    int16_t values[35], back[35];
    for (int i = 0; i < 35; i++)
        values[i] = (int16_t)(1000 - i);
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, &n.array, 1, NULL), 0);
    assert_int_equal(sq_store_write_array(in(store), &n.array, values, NULL), 0);

    struct squall_dataset *ds = NULL;
    squall_array *a = reopened(store, "n", &ds);
    struct squall_selection s = squall_selection_all(a);
    assert_int_equal(squall_array_read(a, &s, back, NULL, NULL), 0);
    assert_memory_equal(back, values, sizeof values);
    squall_dataset_close(ds);

    SQ_CLEANUP_FREE char *corner = in_test_folder("array.zarr/n/c/2/2");
    SQ_CLEANUP_FREE char *bytes = NULL;
    size_t size;
    const int16_t expected[6] = {1000 - 34, -1, -1, -1, -1, -1};
    assert_int_equal(sq_file_read_all(corner, 100, &bytes, &size, NULL), 0);
    assert_int_equal(size, sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);

    uint64_t untouched = inode_of(store, "n/c/0/0"), changed = inode_of(store, "n/c/2/2");
    values[34] = 7;
    assert_int_equal(sq_store_write_array(in(store), &n.array, values, NULL), 0);
    assert_int_equal(inode_of(store, "n/c/0/0"), untouched);
    assert_true(inode_of(store, "n/c/2/2") != changed);
    sample_done(&n);
}

static void strings_and_scalars_are_written(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("texts.zarr");
    const struct squall_bytes texts[] = {TEXT(""), TEXT("a"), TEXT("ü\0"), TEXT("a longer text")};
    struct sample text, scalar, empty;
    sample_init(&text, "text", SQUALL_STRING, 2, 2, 1, 3);
    sample_init(&scalar, "scalar", SQUALL_FLOAT64, 1, 1, 1, 1);
    sample_init(&empty, "empty", SQUALL_FLOAT64, 0, 3, 1, 1);
    scalar.array.rank = 0;
    double value = 2.5, back = 0;
    struct sq_store_array arrays[] = {text.array, scalar.array, empty.array};
    assert_int_equal(sq_store_publish_metadata(in(store), NULL, arrays, 3, NULL), 0);
    assert_int_equal(sq_store_write_array(in(store), &text.array, texts, NULL), 0);
    assert_int_equal(sq_store_write_array(in(store), &scalar.array, &value, NULL), 0);
    assert_int_equal(sq_store_write_array(in(store), &empty.array, NULL, NULL), 0);

    struct squall_dataset *ds = NULL;
    squall_array *a = reopened(store, "text", &ds), *b = squall_dataset_array_at(ds, 1);
    struct squall_selection all = squall_selection_all(a), one = squall_selection_all(b);
    struct squall_bytes read[4];
    assert_int_equal(squall_array_read(a, &all, read, NULL, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_true(sq_bytes_equal(&read[i], &texts[i]));
    sq_bytes_free(read, 4);
    assert_int_equal(squall_array_read(b, &one, &back, NULL, NULL), 0);
    assert_true(back == value);
    squall_dataset_close(ds);
    sample_done(&text);
    sample_done(&scalar);
    sample_done(&empty);
}

/* Whatever fails, the store is not there for readers, or it is whole. */
static void every_failed_allocation_leaves_no_half_store(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *store = in_test_folder("memory.zarr");
    struct sample n;
    sample_init(&n, "n", SQUALL_INT16, 5, 7, 2, 3);
    int16_t values[35] = {1, 2, 3};
    long failures = 0;
    for (long at = 0;; at++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(sq_tree_remove(store, NULL), 0);
        sq_fail_allocation(at);
        int status = sq_store_publish_metadata(in(store), NULL, &n.array, 1, &err);
        if (!status)
            status = sq_store_write_array(in(store), &n.array, values, &err);
        sq_fail_allocation(-1);
        if (!status)
            break;
        assert_int_equal(status, SQUALL_ENOMEM);
        failures++;
        SQ_CLEANUP_FREE char *root = sq_path_join(store, "zarr.json");
        bool exists;
        assert_int_equal(sq_file_exists(root, &exists, NULL), 0);
        if (exists) {
            struct squall_dataset *ds = NULL;
            reopened(store, "n", &ds);
            squall_dataset_close(ds);
        }
    }
    assert_true(failures > 30);
    sample_done(&n);
}

static void an_unwritable_place_is_named(void **state)
{
    (void)state;
    struct sample t;
    struct squall_error err = SQUALL_ERROR_INIT;
    sample_init(&t, "t", SQUALL_FLOAT32, 5, 7, 2, 3);
    put_file("file", "in the way");
    SQ_CLEANUP_FREE char *store = in_test_folder("file/s.zarr");
    assert_true(sq_store_publish_metadata(in(store), NULL, &t.array, 1, &err) < 0);
    assert_non_null(strstr(err.message, "/file"));
    sample_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_say_what_zarr_v3_wants),
        cmocka_unit_test(equal_documents_are_left_alone),
        cmocka_unit_test(names_that_no_store_can_have_are_refused),
        cmocka_unit_test(what_makes_no_array_is_refused),
        cmocka_unit_test(chunk_paths_have_an_index_a_folder),
        cmocka_unit_test(a_chunk_is_replaced_whole),
        cmocka_unit_test(arrays_are_written_with_padded_edges),
        cmocka_unit_test(strings_and_scalars_are_written),
        cmocka_unit_test(every_failed_allocation_leaves_no_half_store),
        cmocka_unit_test(an_unwritable_place_is_named),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
