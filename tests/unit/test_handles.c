/* The process's open files: never more than may be, never closed under a reader, and always the file that was opened first. */
#include "support/folder.h"

#include "io/source.h"
#include "squall/handles.h"
#include "sys/pool.h"
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 40, LIMIT = 4 };

struct files {
    struct sq_source *source[FILES];
};

static void put_numbered(const char *folder, unsigned i)
{
    char name[16], text[16];
    snprintf(name, sizeof name, "f%u", i);
    snprintf(text, sizeof text, "file %3u", i);
    file_put(in_folder(folder, name), text);
}

static void open_files(const char *folder, struct files *f)
{
    for (unsigned i = 0; i < FILES; i++) {
        char name[16];
        put_numbered(folder, i);
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(sq_source_open_file(in_folder(folder, name), &f->source[i], NULL), 0);
    }
}

static void close_files(struct files *f)
{
    for (unsigned i = 0; i < FILES; i++)
        sq_source_close(f->source[i]);
}

/* 0: the file's own bytes were read */
static int read_one(struct sq_source *source, unsigned i, struct squall_error *err)
{
    char bytes[8], expected[16];
    snprintf(expected, sizeof expected, "file %3u", i);
    int status = sq_source_read(source, 0, bytes, sizeof bytes, err);
    if (status)
        return status;
    return memcmp(bytes, expected, sizeof bytes) == 0 ? 0 : SQUALL_ECORRUPT;
}

static void no_more_stay_open_than_may(void **state)
{
    struct files f;
    assert_int_equal(squall_handles_set_limit(LIMIT), LIMIT);
    const struct squall_handles before = squall_handles();
    open_files(*state, &f);
    assert_int_equal(squall_handles().open, LIMIT);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < FILES; i++)
            assert_int_equal(read_one(f.source[i], i, NULL), 0);
    const struct squall_handles after = squall_handles();
    assert_int_equal(after.open, LIMIT);
    assert_int_equal(after.limit, LIMIT);
    assert_true(after.opened - before.opened > FILES);
    assert_int_equal(after.opened - before.opened - (after.evicted - before.evicted), after.open - before.open);
    close_files(&f);
    assert_int_equal(squall_handles().open, 0);
    squall_handles_set_limit(0);
}

static void what_is_used_stays_open(void **state)
{
    struct files f;
    squall_handles_set_limit(LIMIT);
    open_files(*state, &f);
    assert_int_equal(read_one(f.source[0], 0, NULL), 0);
    const struct squall_handles before = squall_handles();
    for (unsigned i = 1; i < FILES; i++) { /* the first one between all the others */
        assert_int_equal(read_one(f.source[i], i, NULL), 0);
        assert_int_equal(read_one(f.source[0], 0, NULL), 0);
    }
    const struct squall_handles after = squall_handles();
    assert_true(after.hits - before.hits >= FILES - 1);
    close_files(&f);
    squall_handles_set_limit(0);
}

static int read_any(void *user, size_t task, unsigned worker, struct squall_error *err)
{
    const struct files *f = user;
    unsigned i = (unsigned)(task * 7 % FILES);
    (void)worker;
    return read_one(f->source[i], i, err);
}

static void threads_read_while_others_are_closed(void **state)
{
    struct files f;
    squall_handles_set_limit(2);
    open_files(*state, &f);
    assert_int_equal(sq_parallel(8, 4000, read_any, &f, NULL), 0);
    assert_true(squall_handles().open <= 2);
    close_files(&f);
    squall_handles_set_limit(0);
}

static void a_file_that_was_replaced_while_closed_is_an_error(void **state)
{
    struct files f;
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_handles_set_limit(1);
    open_files(*state, &f); /* only the last is open now */
    const char *first = in_folder(*state, "f0"), *last = in_folder(*state, "f39"), *gone = in_folder(*state, "f1");
    assert_int_equal(unlink(first), 0);
    assert_int_equal(unlink(last), 0);
    assert_int_equal(unlink(gone), 0);
    file_put(first, "other 00");
    file_put(last, "other 00");
    assert_int_equal(read_one(f.source[FILES - 1], FILES - 1, NULL), 0); /* open: the old bytes, whole */
    assert_int_equal(sq_source_check_unchanged(f.source[FILES - 1], NULL), SQUALL_EIO);
    assert_int_equal(read_one(f.source[0], 0, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, first));
    assert_non_null(strstr(err.message, "changed since it was opened"));
    assert_int_equal(read_one(f.source[1], 1, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, gone));
    assert_non_null(strstr(err.message, "gone since it was opened"));
    close_files(&f);
    squall_handles_set_limit(0);
}

static void a_child_reads_on(void **state)
{
    struct files f;
    squall_handles_set_limit(LIMIT);
    open_files(*state, &f);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool right = true;
        for (unsigned i = 0; i < FILES; i++)
            right = right && read_one(f.source[i], i, NULL) == 0;
        _exit(right && squall_handles().open <= LIMIT ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(read_one(f.source[i], i, NULL), 0);
    close_files(&f);
    squall_handles_set_limit(0);
}

/* Somebody else has taken the descriptors: ours make room instead of failing. */
static void a_lack_of_descriptors_closes_what_is_idle(void **state)
{
    struct files f;
    struct rlimit before, few;
    squall_handles_set_limit(0);
    open_files(*state, &f);
    assert_int_equal(squall_handles().open, FILES);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    int next = dup(0);
    assert_int_equal(close(next), 0);
    few.rlim_cur = (rlim_t)next; /* no descriptor is left */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct sq_source *more = NULL;
    int status = sq_source_open_file(in_folder(*state, "f5"), &more, NULL);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(status, 0);
    assert_int_equal(read_one(more, 5, NULL), 0);
    assert_true(squall_handles().open < FILES);
    sq_source_close(more);
    close_files(&f);
}

static void limits_stay_below_the_systems(void **state)
{
    (void)state;
    struct rlimit before, small;
    getrlimit(RLIMIT_NOFILE, &before);
    small = before;
    small.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    const size_t standard = squall_handles_set_limit(0), most = squall_handles_set_limit(100000), one = squall_handles_set_limit(1);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    squall_handles_set_limit(0);
    assert_int_equal(standard, 32);
    assert_int_equal(most, 48);
    assert_int_equal(one, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_more_stay_open_than_may, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_is_used_stays_open, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(threads_read_while_others_are_closed, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_file_that_was_replaced_while_closed_is_an_error, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_child_reads_on, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_lack_of_descriptors_closes_what_is_idle, folder_make, folder_remove),
        cmocka_unit_test(limits_stay_below_the_systems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
