/* Files: reads that say where a file ends, atomic writes that leave the old content on failure, names of temporary files. */
#include "support/unit.h"

#include "base/memory.h"
#include "io/atomic_file.h"
#include "io/source.h"
#include "sys/file.h"
#include "sys/process.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[] = "/tmp/squall-test-io-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return sq_tree_remove(folder, NULL);
}

static char *in_folder(const char *name)
{
    return sq_path_join(folder, name);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_folder("a");
    assert_int_equal(sq_atomic_write(path, "first", 5, SQ_DURABILITY_FULL, NULL), 0);
    assert_int_equal(sq_atomic_write(path, "second", 6, SQ_DURABILITY_NONE, NULL), 0);
    char *text;
    size_t size;
    assert_int_equal(sq_file_read_all(path, 100, &text, &size, NULL), 0);
    assert_int_equal(size, 6);
    assert_string_equal(text, "second");
    sq_free(text);
    assert_int_equal(sq_file_read_all(path, 5, &text, &size, NULL), SQUALL_ECORRUPT);
}

static void a_read_past_the_end_names_file_and_place(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_folder("short");
    char bytes[8];
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_source *s = NULL;
    assert_int_equal(sq_atomic_write(path, "12345", 5, SQ_DURABILITY_NONE, NULL), 0);
    assert_int_equal(sq_source_open_file(path, &s, NULL), 0);
    assert_int_equal(sq_source_read(s, 3, bytes, 2, NULL), 0);
    assert_int_equal(sq_source_read(s, 3, bytes, 3, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "5"));
    assert_int_equal(sq_source_read(s, UINT64_MAX, bytes, 8, NULL), SQUALL_ECORRUPT);
    sq_source_close(s);
}

static void a_changed_file_is_noticed(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_folder("changing");
    struct sq_source *s = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_atomic_write(path, "one", 3, SQ_DURABILITY_NONE, NULL), 0);
    assert_int_equal(sq_source_open_file(path, &s, NULL), 0);
    assert_int_equal(sq_source_check_unchanged(s, NULL), 0);
    assert_int_equal(sq_atomic_write(path, "two", 3, SQ_DURABILITY_NONE, NULL), 0);
    assert_int_equal(sq_source_check_unchanged(s, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, "changed since it was opened"));
    sq_source_close(s);
}

/* A file size limit stands in for a full disk: both end in a short or refused write. */
static void a_failed_write_leaves_the_old_file_and_no_other(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_folder("kept");
    assert_int_equal(sq_atomic_write(path, "old", 3, SQ_DURABILITY_FULL, NULL), 0);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    char *large = calloc(1, 5000);
    struct squall_error err = SQUALL_ERROR_INIT;
    int status = sq_atomic_write(path, large, 5000, SQ_DURABILITY_FULL, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    free(large);
    assert_int_equal(status, SQUALL_EIO);
    assert_true(err.os_errno != 0);
    char *text;
    size_t size, count;
    assert_int_equal(sq_file_read_all(path, 100, &text, &size, NULL), 0);
    assert_string_equal(text, "old");
    sq_free(text);
    char **names;
    assert_int_equal(sq_folder_list(folder, &names, &count, NULL), 0);
    for (size_t i = 0; i < count; i++)
        assert_false(sq_atomic_is_temporary(names[i]));
    sq_names_free(names, count);
}

static void temporary_names_tell_their_process(void **state)
{
    (void)state;
    const struct sq_process_tag me = sq_process_tag();
    char mine[100], dead[100], elsewhere[100];
    snprintf(mine, sizeof mine, ".zarr.json.%x-%lld-%llx-3.squall-tmp", me.machine, (long long)me.pid, (unsigned long long)me.start_ticks);
    snprintf(dead, sizeof dead, ".0.%x-%lld-%llx-3.squall-tmp", me.machine, (long long)me.pid, (unsigned long long)me.start_ticks + 1);
    snprintf(elsewhere, sizeof elsewhere, ".0.%x-%lld-%llx-3.squall-tmp", me.machine ^ 1, (long long)me.pid, 1ULL);
    assert_true(sq_atomic_is_temporary(mine) && !sq_atomic_is_abandoned(mine));
    assert_true(sq_atomic_is_temporary(dead) && sq_atomic_is_abandoned(dead));
    assert_true(sq_atomic_is_temporary(elsewhere) && !sq_atomic_is_abandoned(elsewhere));
    const char *others[] = {"zarr.json",         ".zarr.json",          "x.1-2-3-4.squall-tmp",   ".squall-tmp",         ".a.squall-tmp",
                            ".a.b-2.squall-tmp", ".a.1-2-3.squall-tmp", ".a.1-2-3-4x.squall-tmp", ".a.1-2-3-4.squall-tm"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sq_atomic_is_temporary(others[i]));
}

static void folders_and_devices_are_no_files(void **state)
{
    (void)state;
    struct sq_source *s = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_source_open_file(folder, &s, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "a folder"));
    assert_int_equal(sq_source_open_file("/dev/null", &s, NULL), SQUALL_EUNSUPPORTED);
    assert_int_equal(sq_source_open_file("/nowhere/at/all", &s, &err), SQUALL_ENOTFOUND);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
}

static void folders_are_made_with_all_above_them(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *deep = in_folder("made/a/b");
    SQ_CLEANUP_FREE char *file = in_folder("made/a/file");
    SQ_CLEANUP_FREE char *below = in_folder("made/a/file/c");
    enum sq_file_kind kind;
    struct squall_error err = SQUALL_ERROR_INIT;
    for (int i = 0; i < 2; i++) { /* an existing one is fine */
        assert_int_equal(sq_folder_make_durable(deep, NULL), 0);
        assert_int_equal(sq_file_stat(deep, &kind, NULL, NULL), 0);
        assert_int_equal(kind, SQ_FILE_FOLDER);
    }
    assert_int_equal(sq_atomic_write(file, "x", 1, SQ_DURABILITY_NONE, NULL), 0);
    assert_true(sq_folder_make_durable(below, &err) < 0);
    assert_non_null(strstr(err.message, "made/a/file"));
}

static void folders_of_paths_are_found_without_looking(void **state)
{
    (void)state;
    const char *cases[][2] = {{"a/b", "a"}, {"a", "."}, {"/a", "/"}, {"/", "/"}, {"a//b//", "a"}, {".", "."}, {"../a", ".."}, {"", "."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SQ_CLEANUP_FREE char *found = sq_path_folder(cases[i][0]);
        assert_string_equal(found, cases[i][1]);
    }
}

static void whether_a_folder_holds_something_is_told(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *path = in_folder("holds");
    SQ_CLEANUP_FREE char *hidden = in_folder("holds/.x");
    bool holds = true;
    assert_int_equal(sq_folder_holds(path, &holds, NULL), 0);
    assert_false(holds); /* nothing is there */
    assert_int_equal(sq_folder_make(path, NULL), 0);
    assert_int_equal(sq_folder_holds(path, &holds, NULL), 0);
    assert_false(holds);
    assert_int_equal(symlink("nowhere", hidden), 0);
    assert_int_equal(sq_folder_holds(path, &holds, NULL), 0);
    assert_true(holds);
    assert_true(sq_folder_holds(hidden, &holds, NULL) == 0 && !holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_read_past_the_end_names_file_and_place),
        cmocka_unit_test(a_changed_file_is_noticed),
        cmocka_unit_test(a_failed_write_leaves_the_old_file_and_no_other),
        cmocka_unit_test(temporary_names_tell_their_process),
        cmocka_unit_test(folders_and_devices_are_no_files),
        cmocka_unit_test(folders_are_made_with_all_above_them),
        cmocka_unit_test(folders_of_paths_are_found_without_looking),
        cmocka_unit_test(whether_a_folder_holds_something_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
