/* Arrays of several files as one: parts are found, memory that runs out leaves nothing behind, times are counted alike. */
#include "support/folder.h"

#include "base/memory.h"
#include "cube/cf_time.h"
#include "squall/many.h"
#include "squall/store.h"

enum { FILES = 3, LENGTH = 4 };

struct many_files {
    squall_context *ctx;
    char paths[FILES][512];
    const char *list[FILES];
};

static void make_files(const char *folder, struct many_files *f)
{
    static const uint64_t SHAPE[] = {LENGTH, 2}, CHUNKS[] = {3, 2};
    static const char *const DIMS[] = {"time", "x"};
    assert_int_equal(squall_context_new(&(struct squall_context_options){.threads = 2}, &f->ctx, NULL), 0);
    for (unsigned i = 0; i < FILES; i++) {
        char name[8];
        snprintf(name, sizeof name, "f%u", i);
        snprintf(f->paths[i], sizeof f->paths[i], "%s", in_folder(folder, name));
        f->list[i] = f->paths[i];
        struct squall_array_spec values = {.type = "int32", .rank = 2, .shape = SHAPE, .chunks = CHUNKS, .dims = DIMS};
        struct squall_array_spec times = {.type = "int32", .rank = 1, .shape = SHAPE, .dims = DIMS};
        char attributes[64];
        snprintf(attributes, sizeof attributes, "{\"units\":\"hours since 2020-01-%02u\"}", i + 1);
        times.attributes = attributes;
        assert_int_equal(squall_array_create(f->ctx, f->paths[i], "v", &values, NULL, NULL), 0);
        assert_int_equal(squall_array_create(f->ctx, f->paths[i], "time", &times, NULL, NULL), 0);
        squall_dataset *ds = NULL;
        squall_array *v = NULL, *time = NULL;
        int32_t numbers[LENGTH * 2];
        for (int k = 0; k < LENGTH * 2; k++)
            numbers[k] = (int32_t)i * 100 + k;
        assert_int_equal(squall_store_open(f->ctx, f->paths[i], NULL, &ds, NULL), 0);
        assert_int_equal(squall_dataset_array(ds, "v", &v, NULL), 0);
        assert_int_equal(squall_dataset_array(ds, "time", &time, NULL), 0);
        struct squall_selection all = squall_selection_all(v), every = squall_selection_all(time);
        assert_int_equal(squall_array_write(v, &all, numbers, NULL, NULL), 0);
        assert_int_equal(squall_array_write(time, &every, numbers, NULL, NULL), 0);
        squall_dataset_close(ds);
    }
}

/* Every second element along time, of column 1, against what the files hold. */
static int read_some(squall_dataset *ds, struct squall_error *err)
{
    squall_array *v;
    int32_t found[6] = {0};
    const struct squall_selection some = {.start = {1, 1}, .count = {6, 1}, .step = {2, 1}};
    if (squall_dataset_array(ds, "v", &v, err) || squall_array_read(v, &some, found, NULL, err))
        return -1;
    for (int i = 0; i < 6; i++) {
        const int at = 1 + 2 * i;
        assert_int_equal(found[i], at / LENGTH * 100 + at % LENGTH * 2 + 1);
    }
    return 0;
}

static void parts_are_read_in_place(void **state)
{
    struct many_files f;
    squall_dataset *ds = NULL;
    squall_array *time;
    int32_t hours[FILES * LENGTH];
    make_files(*state, &f);
    assert_int_equal(squall_dataset_open_many(f.ctx, f.list, FILES, NULL, &ds, NULL), 0);
    assert_int_equal(read_some(ds, NULL), 0);
    assert_int_equal(squall_dataset_array(ds, "time", &time, NULL), 0);
    const struct squall_selection all = squall_selection_all(time);
    assert_int_equal(squall_array_read(time, &all, hours, NULL, NULL), 0);
    for (int i = 0; i < FILES * LENGTH; i++)
        assert_int_equal(hours[i], i / LENGTH * (24 + 100) + i % LENGTH);
    const struct squall_selection beyond = {.start = {12, 0}, .count = {1, 1}, .step = {1, 1}};
    squall_array *v;
    assert_int_equal(squall_dataset_array(ds, "v", &v, NULL), 0);
    assert_int_equal(squall_array_read(v, &beyond, hours, NULL, NULL), SQUALL_EINVAL);
    squall_dataset_close(ds);
    squall_context_free(f.ctx);
}

static void no_lack_of_memory_leaves_anything_behind(void **state)
{
    struct many_files f;
    make_files(*state, &f);
    bool done = false;
    for (long after = 0; !done; after++) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        sq_fail_allocation(after);
        int status = squall_dataset_open_many(f.ctx, f.list, FILES, NULL, &ds, &err);
        if (!status)
            status = read_some(ds, &err);
        sq_fail_allocation(-1);
        squall_dataset_close(ds);
        assert_true(!status || err.message[0]);
        done = !status;
        assert_true(after < 5000);
    }
    squall_context_free(f.ctx);
}

static void moments_are_parsed_or_refused(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "days since 2000-1-1", "hour since 1900-01-01 00:00:0.0",    "s since 1970-01-01T00:00:00Z", "Hours since 2000-01-01 12:00 -6:00",
        "days since 1-1-1",    "ms since 2000-01-01 00:00:00.25 UTC"};
    static const char *const BAD[] = {"",
                                      "days",
                                      "K",
                                      "months since 2000-01-01",
                                      "days since",
                                      "days since x",
                                      "days since 2000-13-01",
                                      "days since 2000-01-01 25:00",
                                      "days since 2000-01-01 00:00 CET",
                                      "days sinceless 2000-01-01",
                                      "days since 2000-01-01 00:00:00 and a long text that goes on and on and on and on"};
    struct sq_cf_time t;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        assert_true(sq_cf_time_parse(GOOD[i], NULL, &t));
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(sq_cf_time_parse(BAD[i], NULL, &t));
    assert_false(sq_cf_time_parse(GOOD[0], "lunar", &t));
}

static void days_that_the_calendar_has_not_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *units, *calendars; /* those that have it */
    } DAYS[] = {
        {"days since 2000-02-31", ""},
        {"days since 2000-04-31", ""},
        {"days since 2000-01-00", ""},
        {"days since 2000-02-30", "360_day"},
        {"days since 2000-02-29", "standard proleptic_gregorian julian all_leap 360_day"},
        {"days since 2001-02-29", "all_leap 360_day"},
        {"days since 1900-02-29", "julian all_leap 360_day"},
        {"days since 1500-02-29", "standard julian all_leap 360_day"},
        {"days since 2000-01-31", "standard proleptic_gregorian julian noleap all_leap"},
        {"days since 1582-10-10", "proleptic_gregorian julian noleap all_leap 360_day"},
    };
    static const char *const CALENDARS[] = {"standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"};
    struct sq_cf_time t;
    for (size_t i = 0; i < sizeof DAYS / sizeof *DAYS; i++)
        for (size_t k = 0; k < sizeof CALENDARS / sizeof *CALENDARS; k++) {
            const char *found = strstr(DAYS[i].calendars, CALENDARS[k]);
            assert_int_equal(sq_cf_time_parse(DAYS[i].units, CALENDARS[k], &t), found != NULL);
        }
}

static void what_has_no_exact_counterpart_is_refused(void **state)
{
    (void)state;
    struct sq_cf_time hours, minutes;
    assert_true(sq_cf_time_parse("hours since 2000-01-01", NULL, &hours));
    assert_true(sq_cf_time_parse("minutes since 2000-01-02", NULL, &minutes));
    int16_t shorts[] = {60, 61}, large[] = {32000};
    assert_true(sq_cf_time_rebase(SQUALL_INT16, shorts, 1, &minutes, &hours));
    assert_int_equal(shorts[0], 25);
    assert_false(sq_cf_time_rebase(SQUALL_INT16, shorts + 1, 1, &minutes, &hours));
    assert_false(sq_cf_time_rebase(SQUALL_INT16, large, 1, &hours, &minutes)); /* too large for the type */
    double half = 30, third = 20;
    assert_true(sq_cf_time_rebase(SQUALL_FLOAT64, &half, 1, &minutes, &hours));
    assert_true(half == 24.5);
    assert_false(sq_cf_time_rebase(SQUALL_FLOAT64, &third, 1, &minutes, &hours));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_are_read_in_place, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(no_lack_of_memory_leaves_anything_behind, folder_make, folder_remove),
        cmocka_unit_test(moments_are_parsed_or_refused),
        cmocka_unit_test(days_that_the_calendar_has_not_are_refused),
        cmocka_unit_test(what_has_no_exact_counterpart_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
