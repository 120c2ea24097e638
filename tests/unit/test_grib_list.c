/* The public list of GRIB fields: what it tells, what it reads, and what it refuses. */
#include "support/message.h"
#include "support/unit.h"

#include "squall/grib.h"
#include "sys/pool.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/squall-list-XXXXXX";
static const char *const PATHS[] = {path};
static squall_context *ctx;

static int make_context(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    close(fd);
    return fd < 0 ? -1 : squall_context_new(NULL, &ctx, NULL);
}

static int free_context(void **state)
{
    (void)state;
    squall_context_free(ctx);
    return unlink(path);
}

static void write_file(const struct sq_text *t)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(t->data, 1, t->length, f), t->length);
    fclose(f);
}

static squall_grib_list *open_list(void)
{
    squall_grib_list *list;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (squall_grib_list_open(ctx, PATHS, 1, &list, &err))
        fail_msg("%s", err.message);
    return list;
}

/* Three messages of 1, 2 and 3 fields whose 2 × 2 values are 1, 2, 3, 4, and behind them a truncated one. */
static void write_six_fields(void)
{
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    for (unsigned i = 1; i <= 3; i++)
        message_add(&t, i);
    message_add(&t, 1);
    t.length -= 20;
    write_file(&t);
}

static void a_field_is_told_and_read(void **state)
{
    (void)state;
    write_six_fields();
    squall_grib_list *list = open_list();
    assert_int_equal(squall_grib_list_count(list), 6);
    assert_int_equal(squall_grib_list_problem_count(list), 1);
    assert_string_equal(squall_grib_list_problem(list, 0).path, path);
    assert_non_null(strstr(squall_grib_list_problem(list, 0).message, "cut off"));
    const unsigned in_message[6] = {0, 0, 1, 0, 1, 2};
    for (size_t i = 6; i-- > 0;) {
        struct squall_grib_field f = squall_grib_list_field(list, i);
        assert_int_equal(f.in_message, in_message[i]);
        assert_string_equal(f.short_name, "2t");
        assert_string_equal(f.level_type, "heightAboveGround");
        assert_true(f.level == 2);
        assert_int_equal(f.reference_time_s, 1709272800);
        assert_int_equal(f.point_count, 4);
        assert_string_equal(f.packing, "grid_simple");
        assert_int_equal(f.number, -1);
        float values[4];
        assert_int_equal(squall_grib_list_read(list, i, values, NULL), 0);
        for (unsigned k = 0; k < 4; k++)
            assert_true(values[k] == (float)(k + 1));
    }
    assert_int_equal(squall_grib_list_read(list, 6, (float[4]){0}, NULL), SQUALL_EINVAL);
    squall_grib_list_close(list);
}

static int read_one(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)worker;
    float values[4] = {0};
    int status = squall_grib_list_read(user, index % 6, values, err);
    return status ? status : values[3] == 4.0F ? 0 : SQUALL_ECORRUPT;
}

static void threads_read_at_the_same_time(void **state)
{
    (void)state;
    write_six_fields();
    squall_grib_list *list = open_list();
    assert_int_equal(sq_parallel(4, 600, read_one, list, NULL), 0);
    squall_grib_list_close(list);
}

static void what_cannot_be_decoded_is_listed_and_refused_by_name(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    t.data[143 + 10] = 50; /* data representation template 5.50: spectral */
    write_file(&t);
    squall_grib_list *list = open_list();
    assert_int_equal(squall_grib_list_count(list), 1);
    assert_non_null(squall_grib_list_field(list, 0).unsupported);
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(squall_grib_list_read(list, 0, (float[4]){0}, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "spectral"));
    assert_non_null(strstr(err.message, path));
    squall_grib_list_close(list);
}

static void a_field_of_fewer_values_than_points_is_a_problem_not_a_field(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    put_be((uint8_t *)t.data + 143 + 5, 3, 4); /* values in section 5; the grid has 4 points */
    write_file(&t);
    squall_grib_list *list = open_list();
    assert_int_equal(squall_grib_list_count(list), 0);
    assert_int_equal(squall_grib_list_problem_count(list), 1);
    assert_non_null(strstr(squall_grib_list_problem(list, 0).message, "3 values for the grid's 4 points"));
    squall_grib_list_close(list);
}

static void another_file_under_the_same_name_is_noticed(void **state)
{
    (void)state;
    float values[4];
    write_six_fields();
    for (unsigned used_before = 0; used_before < 2; used_before++) {
        squall_grib_list *list = open_list();
        if (used_before)
            assert_int_equal(squall_grib_list_read(list, 0, values, NULL), 0);
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        message_add(&t, 2 + used_before);
        write_file(&t);
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(squall_grib_list_read(list, 0, values, &err), SQUALL_EIO);
        assert_non_null(strstr(err.message, "changed"));
        squall_grib_list_close(list);
    }
}

static void a_timed_read_counts_each_field_once(void **state)
{
    (void)state;
    write_six_fields();
    squall_grib_list *list = open_list();
    for (unsigned threads = 1; threads <= 3; threads++) {
        struct squall_speed speed;
        assert_int_equal(squall_grib_list_time(list, threads, &speed, NULL), 0);
        assert_int_equal(speed.points, 6 * 4);
        assert_true(speed.seconds > 0 && speed.bytes > 0);
        if (threads == 1)
            assert_int_equal(speed.bytes, 183 + 253 + 323); /* a message of several fields is read once */
    }
    squall_grib_list_close(list);
}

static void every_timed_read_reads_the_file(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 1);
    write_file(&t);
    squall_grib_list *list = open_list();
    for (int round = 0; round < 3; round++) {
        struct squall_speed speed;
        assert_int_equal(squall_grib_list_time(list, 1, &speed, NULL), 0);
        assert_int_equal(speed.bytes, t.length);
    }
    squall_grib_list_close(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_told_and_read),
        cmocka_unit_test(threads_read_at_the_same_time),
        cmocka_unit_test(what_cannot_be_decoded_is_listed_and_refused_by_name),
        cmocka_unit_test(a_field_of_fewer_values_than_points_is_a_problem_not_a_field),
        cmocka_unit_test(another_file_under_the_same_name_is_noticed),
        cmocka_unit_test(a_timed_read_counts_each_field_once),
        cmocka_unit_test(every_timed_read_reads_the_file),
    };
    return cmocka_run_group_tests(tests, make_context, free_context);
}
