/* The index of many files: its order, its tables, what becomes of bad files, and that it grows with the fields only. */
#include "support/message.h"
#include "support/unit.h"

#include "base/memory.h"
#include "format/grib/index.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_LIMIT = 40 };

static char folder[] = "/tmp/squall-index-XXXXXX";
static char paths[FILE_LIMIT][64];
static const char *path_list[FILE_LIMIT];

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FILE_LIMIT; i++)
        unlink(paths[i]);
    return rmdir(folder);
}

static void write_file(unsigned i, const struct sq_text *t)
{
    snprintf(paths[i], sizeof paths[i], "%s/%u.grib", folder, i);
    path_list[i] = paths[i];
    FILE *f = fopen(paths[i], "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(t->length ? t->data : "", 1, t->length, f), t->length);
    fclose(f);
}

static struct sq_grib_index build(unsigned count, unsigned threads)
{
    struct sq_grib_index index;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_grib_index_build(path_list, count, threads, NULL, NULL, &index, &err))
        fail_msg("%s", err.message);
    return index;
}

/* One constant field: parameter, step in hours, columns of its grid. */
static void add_field(struct sq_text *t, uint8_t parameter, uint32_t step, uint32_t columns)
{
    uint8_t body3[67], body4[29], body5[sizeof BODY5];
    size_t start = message_begin(t, 0);
    message_section(t, 1, BODY1, sizeof BODY1);
    body3_make(body3, columns, 2);
    message_section(t, 3, body3, sizeof body3);
    memcpy(body4, BODY4, sizeof body4);
    body4[5] = parameter;
    put_be(body4 + 13, step, 4);
    message_section(t, 4, body4, sizeof body4);
    memcpy(body5, BODY5, sizeof body5);
    put_be(body5, 2 * columns, 4);
    body5[14] = 0; /* bits per value */
    message_section(t, 5, body5, sizeof body5);
    message_section(t, 6, BODY6, sizeof BODY6);
    message_section(t, 7, NULL, 0);
    message_end(t, start);
}

static void fields_keep_the_order_of_files_and_tables_that_of_fields(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FILE_LIMIT; i++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        for (unsigned k = 0; k < 5 + i % 3; k++)
            add_field(&t, (uint8_t)((i + k) % 7), i, 2 + i % 4);
        write_file(i, &t);
    }
    struct sq_grib_index one = build(FILE_LIMIT, 1);
    for (unsigned threads = 1; threads <= 8; threads++) {
        struct sq_grib_index many = build(FILE_LIMIT, threads);
        assert_int_equal(many.field_count, one.field_count);
        assert_int_equal(many.product_count, 7);
        assert_int_equal(many.grid_count, 4);
        uint32_t products = 0, grids = 0;
        for (size_t i = 0; i < many.field_count; i++) {
            const struct sq_grib_field *f = &many.fields[i], *g = &one.fields[i];
            assert_true(f->file == g->file && f->offset == g->offset && f->product == g->product && f->grid == g->grid);
            assert_int_equal(f->times.step_end_s, f->file * 3600);
            assert_int_equal(many.grids[f->grid].columns, 2 + f->file % 4);
            assert_true(f->product <= products && f->grid <= grids); /* rows appear in order */
            products += f->product == products;
            grids += f->grid == grids;
        }
        for (unsigned i = 0; i < FILE_LIMIT; i++) {
            assert_string_equal(many.files[i].path, paths[i]);
            assert_int_equal(many.files[i].field_count, 5 + i % 3);
        }
        sq_grib_index_done(&many);
    }
    sq_grib_index_done(&one);
}

static void bad_files_are_problems_and_the_others_are_read(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    write_file(0, &t); /* empty */
    sq_text_add(&t, "<html>404</html>");
    write_file(1, &t);
    sq_text_clear(&t);
    message_add(&t, 1);
    write_file(2, &t);
    t.length -= 10; /* cut off */
    write_file(3, &t);
    path_list[4] = "/tmp/no such file.grib";
    path_list[5] = folder;
    struct sq_grib_index index = build(6, 2);
    assert_int_equal(index.field_count, 1);
    assert_int_equal(index.fields[0].file, 2);
    const char *expected[5] = {"the file is empty", "no GRIB message", "cut off", "No such file", "folder"};
    const uint32_t files[5] = {0, 1, 3, 4, 5};
    assert_int_equal(index.problem_count, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(index.problems[i].file, files[i]);
        if (!strstr(index.problems[i].message, expected[i]) || strstr(index.problems[i].message, "/tmp"))
            fail_msg("%s", index.problems[i].message);
    }
    sq_grib_index_done(&index);
}

static void a_field_that_contradicts_itself_costs_itself_only(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    size_t bad[2];
    for (unsigned i = 0; i < 2; i++) { /* the same twice: told twice */
        bad[i] = message_add(&t, 1);
        put_be((uint8_t *)t.data + bad[i] + 37 + 30, 1u << 31, 4); /* Ni: points that no file can have */
        put_be((uint8_t *)t.data + bad[i] + 37 + 34, 1u << 31, 4);
    }
    message_add(&t, 1);
    write_file(0, &t);
    struct sq_grib_index index = build(1, 1);
    assert_int_equal(index.field_count + index.problem_count, 4);
    for (size_t i = 0; i < index.problem_count; i++)
        assert_int_equal(index.problems[i].offset, bad[i]);
    sq_grib_index_done(&index);
}

static int now(void *user)
{
    (void)user;
    return 1;
}

static void it_can_be_cancelled(void **state)
{
    (void)state;
    struct sq_grib_index index;
    assert_int_equal(sq_grib_index_build(path_list, 1, 1, now, NULL, &index, NULL), SQUALL_ECANCELLED);
    assert_int_equal(sq_grib_index_build(NULL, 0, 1, now, NULL, &index, NULL), 0);
    assert_int_equal(index.field_count, 0);
    sq_grib_index_done(&index);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    for (uint8_t k = 0; k < 100; k++)
        add_field(&t, k, k, 2 + k % 3);
    sq_text_add(&t,
                "and some text at the end, which is a header of nothing; it is longer than any header of a bulletin, and so it is told");
    for (unsigned i = 0; i < 8; i++)
        sq_text_add(&t, "-----------------------------------------------------------------");
    write_file(0, &t);
    write_file(1, &t);
    bool done = false;
    for (long after = 0; !done; after++) {
        struct sq_grib_index index;
        sq_fail_allocation(after);
        int status = sq_grib_index_build(path_list, 2, 1, NULL, NULL, &index, NULL);
        sq_fail_allocation(-1);
        assert_true(status == 0 || status == SQUALL_ENOMEM);
        done = status == 0;
        if (done) {
            assert_int_equal(index.field_count, 200);
            assert_int_equal(index.problem_count, 2);
            sq_grib_index_done(&index);
        }
        assert_true(after < 10000);
    }
}

static void allocations_and_memory_grow_with_the_fields_only(void **state)
{
    (void)state;
    unsigned long allocations[2];
    assert_true(sizeof(struct sq_grib_field) <= 96);
    for (unsigned round = 0; round < 2; round++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        unsigned count = round ? 100000 : 10000;
        for (unsigned k = 0; k < count; k++)
            add_field(&t, (uint8_t)(k % 100), k / 100, 2);
        write_file(0, &t);
        unsigned long before = sq_allocation_count();
        struct sq_grib_index index = build(1, 1);
        allocations[round] = sq_allocation_count() - before;
        assert_int_equal(index.field_count, count);
        assert_int_equal(index.product_count, 100);
        sq_grib_index_done(&index);
    }
    assert_true(allocations[1] < allocations[0] + 100); /* arrays double: no allocation a field */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_keep_the_order_of_files_and_tables_that_of_fields),
        cmocka_unit_test(bad_files_are_problems_and_the_others_are_read),
        cmocka_unit_test(a_field_that_contradicts_itself_costs_itself_only),
        cmocka_unit_test(it_can_be_cancelled),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(allocations_and_memory_grow_with_the_fields_only),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
