/* A folder and a zip file that hold the same objects answer alike. */
#include "support/folder.h"
#include "support/zip_writer.h"

#include "base/memory.h"
#include "io/tree.h"

static const char *const OBJECTS[][2] = {
    {"zarr.json", "{}"}, {".zattrs", "hidden"}, {"a/zarr.json", "in a"}, {"a/c/0", "zero"},
    {"a/c/10", "ten"},   {"a/c-d", "beside"},   {"a/cc/0", "!"},         {"b", "alone"},
};
enum { OBJECT_COUNT = sizeof OBJECTS / sizeof *OBJECTS };

static struct sq_tree *trees[2]; /* the folder, the zip file */
static struct zip_writer zip;

static int make_trees(void **state)
{
    if (folder_make(state))
        return -1;
    for (size_t i = 0; i < OBJECT_COUNT; i++) {
        SQ_CLEANUP_FREE char *path = sq_format("%s/tree/%s", (const char *)*state, OBJECTS[i][0]);
        SQ_CLEANUP_FREE char *folder = sq_path_folder(path);
        assert_int_equal(sq_folder_make_durable(folder, NULL), 0);
        file_put(path, OBJECTS[i][1]);
        zip_add_text(&zip, OBJECTS[i][0], OBJECTS[i][1]);
    }
    zip_end(&zip);
    FILE *f = fopen(in_folder(*state, "tree.zip"), "wb");
    if (!f || fwrite(zip.bytes, 1, zip.size, f) != zip.size || fclose(f))
        return -1;
    return sq_tree_open(in_folder(*state, "tree"), &trees[0], NULL) || sq_tree_open(in_folder(*state, "tree.zip"), &trees[1], NULL);
}

static int remove_trees(void **state)
{
    sq_tree_close(trees[0]);
    sq_tree_close(trees[1]);
    return folder_remove(state);
}

static void objects_are_read_whole(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < OBJECT_COUNT; i++) {
            SQ_CLEANUP_FREE char *text = NULL;
            const size_t length = strlen(OBJECTS[i][1]);
            size_t size;
            bool exists;
            assert_int_equal(sq_tree_exists(trees[t], OBJECTS[i][0], &exists, NULL), 0);
            assert_true(exists);
            assert_int_equal(sq_tree_read_all(trees[t], OBJECTS[i][0], length, &text, &size, NULL), 0);
            assert_int_equal(size, length);
            assert_string_equal(text, OBJECTS[i][1]);
            char *none;
            assert_int_equal(sq_tree_read_all(trees[t], OBJECTS[i][0], length - 1, &none, &size, NULL), SQUALL_ECORRUPT);
        }
}

static void what_is_not_there_is_no_error(void **state)
{
    (void)state;
    static const char *const KEYS[] = {"c", "a/c/1", "a/zarr", ".zarray", "bb"};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
            bool exists = true;
            char *text = "";
            size_t size;
            assert_int_equal(sq_tree_exists(trees[t], KEYS[i], &exists, NULL), 0);
            assert_false(exists);
            assert_int_equal(sq_tree_read_all(trees[t], KEYS[i], 100, &text, &size, NULL), 0);
            assert_null(text);
        }
}

static void names_below_a_key_are_listed_in_order_and_once(void **state)
{
    (void)state;
    static const char *const ROOT[] = {".zattrs", "a", "b", "zarr.json"}, *const A[] = {"c", "c-d", "cc", "zarr.json"},
                             *const C[] = {"0", "10"};
    const struct {
        const char *key;
        const char *const *names;
        size_t count;
    } LISTS[] = {{"", ROOT, 4}, {"a", A, 4}, {"a/c", C, 2}};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < 3; i++) {
            char **names;
            size_t count;
            assert_int_equal(sq_tree_list(trees[t], LISTS[i].key, &names, &count, NULL), 0);
            assert_int_equal(count, LISTS[i].count);
            for (size_t n = 0; n < count; n++)
                assert_string_equal(names[n], LISTS[i].names[n]);
            sq_names_free(names, count);
        }
}

static void folders_are_told_from_objects_and_from_each_other(void **state)
{
    (void)state;
    static const char *const FOLDERS[] = {"", "a", "a/c", "a/cc"}, *const OTHERS[] = {"b", "a/c-d", "a/c/0", "x", "a/d"};
    for (size_t t = 0; t < 2; t++) {
        struct sq_file_identity ids[4] = {0}, id;
        bool is;
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(sq_tree_is_folder(trees[t], FOLDERS[i], &is, &ids[i], NULL), 0);
            assert_true(is);
            for (size_t k = 0; k < i; k++)
                assert_false(ids[k].device == ids[i].device && ids[k].inode == ids[i].inode);
        }
        for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
            assert_int_equal(sq_tree_is_folder(trees[t], OTHERS[i], &is, &id, NULL), 0);
            assert_false(is);
        }
    }
}

static void stored_bytes_are_those_below_the_key_but_for_metadata(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        uint64_t bytes;
        assert_int_equal(sq_tree_stored_bytes(trees[t], "a", "zarr.json", &bytes, NULL), 0);
        assert_int_equal(bytes, 4 + 3 + 6 + 1);
        assert_int_equal(sq_tree_stored_bytes(trees[t], "", "zarr.json", &bytes, NULL), 0);
        assert_int_equal(bytes, 4 + 4 + 3 + 6 + 1 + 5);
    }
}

static void places_are_files_and_ranges_of_the_zip_file(void **state)
{
    struct sq_tree_place p;
    char bytes[3];
    assert_int_equal(sq_tree_locate(trees[0], "a", "c/10", &p, NULL), 0);
    assert_string_equal(p.name, in_folder(*state, "tree/a/c/10"));
    assert_null(p.source);
    sq_free(p.name);
    assert_int_equal(sq_tree_locate(trees[1], "a", "c/10", &p, NULL), 0);
    SQ_CLEANUP_FREE char *name = sq_format("%s/tree.zip: a/c/10", (const char *)*state);
    assert_string_equal(p.name, name);
    assert_false(p.absent);
    assert_int_equal(p.place.stored_bytes, 3);
    assert_int_equal(sq_source_read(p.source, p.place.offset, bytes, 3, NULL), 0);
    assert_memory_equal(bytes, "ten", 3);
    sq_free(p.name);
    assert_int_equal(sq_tree_locate(trees[1], "", "a/c/11", &p, NULL), 0);
    assert_true(p.absent);
    sq_free(p.name);
}

static void what_is_neither_is_refused(void **state)
{
    struct sq_tree *tree;
    struct squall_error err = SQUALL_ERROR_INIT;
    file_put(in_folder(*state, "text"), "neither");
    assert_int_equal(sq_tree_open(in_folder(*state, "text"), &tree, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "neither a folder nor a zip file"));
    assert_int_equal(sq_tree_open(in_folder(*state, "nothing"), &tree, &err), SQUALL_ENOTFOUND);
}

static void keys_that_lead_out_are_known(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "/", "..", "a/..", "../a", "a//b", "/a", "a/", ".", "a/./b"}, *const GOOD[] = {"a", "a/b", "...",
                                                                                                                         ".a", "a../b"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(sq_tree_key_stays_inside(BAD[i]));
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        assert_true(sq_tree_key_stays_inside(GOOD[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_read_whole),
        cmocka_unit_test(what_is_not_there_is_no_error),
        cmocka_unit_test(names_below_a_key_are_listed_in_order_and_once),
        cmocka_unit_test(folders_are_told_from_objects_and_from_each_other),
        cmocka_unit_test(stored_bytes_are_those_below_the_key_but_for_metadata),
        cmocka_unit_test(places_are_files_and_ranges_of_the_zip_file),
        cmocka_unit_test(what_is_neither_is_refused),
        cmocka_unit_test(keys_that_lead_out_are_known),
    };
    return cmocka_run_group_tests(tests, make_trees, remove_trees);
}
