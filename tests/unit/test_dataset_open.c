/* Opening paths: what is no dataset is told apart, and told. */
#include "support/unit.h"

#include "base/memory.h"

#include "squall/dataset.h"
#include "support/message.h"
#include "support/zarr_files.h"
#include <math.h>

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
        {"page.grib", SQUALL_EUNSUPPORTED,
         "page.grib: neither a Zarr store nor an HDF5, NetCDF-3 or GRIB file; it begins with \"<!DOCTYP\""},
        {"binary", SQUALL_EUNSUPPORTED, "begins with \"\\x89HDF\\x0d\\x0a\""},
        {"empty.grib", SQUALL_ENOTFOUND, "empty.grib: the file is empty"},
        {"cut.grib", SQUALL_ENOTFOUND, "cut.grib: at byte 0"},
        {"folder", SQUALL_ENOTFOUND, "folder: there is no file to convert in this folder"},
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

/* One field of 2 × 2 points, 1 to 4 from the north-west on, of a run at this hour and with this step. */
static void add_field(struct sq_text *t, uint8_t run_hour, uint8_t step_hours, uint8_t first_value)
{
    uint8_t body1[sizeof BODY1], body3[67], body4[sizeof BODY4], body7[4];
    memcpy(body1, BODY1, sizeof body1);
    memcpy(body4, BODY4, sizeof body4);
    body1[11] = run_hour;
    body4[16] = step_hours;
    body3_make(body3, 2, 2);
    for (uint8_t i = 0; i < 4; i++)
        body7[i] = first_value + i;
    size_t start = message_begin(t, 0);
    message_section(t, 1, body1, sizeof body1);
    message_section(t, 3, body3, sizeof body3);
    message_section(t, 4, body4, sizeof body4);
    message_section(t, 5, BODY5, sizeof BODY5);
    message_section(t, 6, BODY6, sizeof BODY6);
    message_section(t, 7, body7, sizeof body7);
    message_end(t, start);
}

/* Two runs of two steps, of which the second run lacks the first. */
static void put_grib(const char *name)
{
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    add_field(&t, 0, 0, 1);
    add_field(&t, 0, 6, 5);
    add_field(&t, 6, 6, 9);
    put_bytes(name, t.data, t.length);
}

static void fields_are_chunks_and_holes_are_missing(void **state)
{
    (void)state;
    put_grib("runs.grib");
    SQ_CLEANUP_FREE char *path = in_test_folder("runs.grib");
    squall_dataset *ds = NULL;
    squall_array *a = NULL;
    float values[16];
    int64_t steps[2];
    assert_int_equal(squall_dataset_open(context, path, &ds, NULL), 0);
    assert_int_equal(squall_dataset_info(ds).problem_count, 0);
    assert_string_equal(squall_dataset_info(ds).format, "grib");
    assert_int_equal(squall_dataset_array(ds, "t2m", &a, NULL), 0);
    struct squall_array_info info = squall_array_info(a);
    assert_int_equal(info.rank, 4);
    assert_true(info.shape[0] == 2 && info.shape[1] == 2 && info.shape[2] == 2 && info.shape[3] == 2);
    assert_true(info.chunks[0] == 1 && info.chunks[1] == 1 && info.chunks[2] == 2 && info.chunks[3] == 2);
    struct squall_selection s = squall_selection_all(a);
    assert_int_equal(squall_array_read(a, &s, values, NULL, NULL), 0);
    const float expected[16] = {1, 2, 3, 4, 5, 6, 7, 8, NAN, NAN, NAN, NAN, 9, 10, 11, 12};
    for (size_t i = 0; i < 16; i++)
        assert_true(values[i] == expected[i] || (isnan(values[i]) && isnan(expected[i])));
    uint64_t bytes;
    assert_int_equal(squall_array_stored_bytes(a, &bytes, NULL), 0);
    struct sq_file_identity id;
    enum sq_file_kind kind;
    assert_int_equal(sq_file_stat(path, &kind, &id, NULL), 0);
    assert_int_equal(bytes, id.size_bytes);

    assert_int_equal(squall_dataset_array(ds, "step", &a, NULL), 0);
    s = squall_selection_all(a);
    assert_int_equal(squall_array_read(a, &s, steps, NULL, NULL), 0);
    assert_true(steps[0] == 0 && steps[1] == 6 * 3600);
    squall_dataset_close(ds);
}

static int read_t2m(squall_context *ctx, const char *path, float values[16], struct squall_error *err)
{
    squall_dataset *ds = NULL;
    squall_array *a = NULL;
    int status = squall_dataset_open(ctx, path, &ds, err);
    if (!status)
        status = squall_dataset_array(ds, "t2m", &a, err);
    if (!status) {
        struct squall_selection s = squall_selection_all(a);
        status = squall_array_read(a, &s, values, NULL, err);
    }
    squall_dataset_close(ds);
    return status;
}

/* Or it does not matter, and the values are right. One worker, so that the n-th allocation is the same one each time. */
static void every_failed_allocation_of_grib_is_an_error(void **state)
{
    (void)state;
    put_grib("memory.grib");
    SQ_CLEANUP_FREE char *path = in_test_folder("memory.grib");
    const struct squall_context_options options = {.threads = 1};
    squall_context *one = NULL;
    float expected[16], values[16];
    assert_int_equal(squall_context_new(&options, &one, NULL), 0);
    unsigned long before = sq_allocation_count();
    assert_int_equal(read_t2m(one, path, expected, NULL), 0);
    long count = (long)(sq_allocation_count() - before);
    assert_true(count > 50);
    for (long n = 0; n < count; n++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        sq_fail_allocation(n);
        int status = read_t2m(one, path, values, &err);
        sq_fail_allocation(-1);
        if (status && status != SQUALL_ENOMEM)
            fail_msg("allocation %ld: %s", n, err.message);
        if (!status)
            assert_memory_equal(values, expected, sizeof values);
    }
    squall_context_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_dataset_is_refused_with_the_reason),
        cmocka_unit_test(slashes_behind_a_path_do_not_matter),
        cmocka_unit_test(fields_are_chunks_and_holes_are_missing),
        cmocka_unit_test(every_failed_allocation_of_grib_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_context, free_context);
}
