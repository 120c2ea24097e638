/* Opening paths: what is no dataset is told apart, and told. */
#include "support/unit.h"

#include "squall/dataset.h"
#include "support/zarr_files.h"

static squall_context *context;

static int make_context(void **state)
{
    return make_test_folder(state) || squall_context_new(NULL, &context, NULL);
}

static int free_context(void **state)
{
    squall_context_free(context);
    return remove_test_folder(state);
}

static void what_is_no_dataset_is_refused_with_the_reason(void **state)
{
    (void)state;
    put_file("page.grib", "<!DOCTYPE html>\n");
    put_file("binary", "\x89HDF\r\n");
    put_file("empty.grib", "");
    put_bytes("cut.grib", "GRIB\0\0\0\2\0\0\0\0\0\0\1\0half", 20);
    put_file("folder/x.txt", "x");
    const struct {
        const char *name;
        int status;
        const char *words;
    } cases[] = {
        {"page.grib", SQUALL_EUNSUPPORTED, "page.grib: neither a Zarr store nor a GRIB file; it begins with \"<!DOCTYP\""},
        {"binary", SQUALL_EUNSUPPORTED, "begins with \"\\x89HDF\\x0d\\x0a\""},
        {"empty.grib", SQUALL_ENOTFOUND, "empty.grib: the file is empty"},
        {"cut.grib", SQUALL_ENOTFOUND, "cut.grib: at byte 0"},
        {"folder", SQUALL_ENOTFOUND, "folder: there is no GRIB file in this folder"},
        {"nowhere", SQUALL_ENOTFOUND, "nowhere: no such file or folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SQ_CLEANUP_FREE char *path = in_test_folder(cases[i].name);
        struct squall_error err = SQUALL_ERROR_INIT;
        squall_dataset *ds = NULL;
        assert_int_equal(squall_dataset_open(context, path, &ds, &err), cases[i].status);
        assert_null(ds);
        if (!strstr(err.message, cases[i].words))
            fail_msg("%s: %s", cases[i].name, err.message);
    }
}

static void slashes_behind_a_path_do_not_matter(void **state)
{
    (void)state;
    put_file("t2m.zarr/zarr.json",
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[1],\"data_type\":\"uint8\",\"fill_value\":7,"
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1]}},\"chunk_key_encoding\":\"default\","
             "\"codecs\":[\"bytes\"]}");
    SQ_CLEANUP_FREE char *path = in_test_folder("t2m.zarr//");
    squall_dataset *ds = NULL;
    squall_array *a = NULL;
    uint8_t value = 0;
    assert_int_equal(squall_dataset_open(context, path, &ds, NULL), 0);
    assert_int_equal(squall_dataset_array(ds, "t2m.zarr", &a, NULL), 0);
    struct squall_selection s = squall_selection_all(a);
    assert_int_equal(squall_array_read(a, &s, &value, NULL, NULL), 0);
    assert_int_equal(value, 7);
    squall_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_dataset_is_refused_with_the_reason),
        cmocka_unit_test(slashes_behind_a_path_do_not_matter),
    };
    return cmocka_run_group_tests(tests, make_context, free_context);
}
