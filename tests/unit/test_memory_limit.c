/* The memory that a process may fill: the least limit of its cgroups and of those around them, in both versions of cgroups. */
#include "support/unit.h"

#include "support/folder.h"
#include "sys/memory_limit.h"
#include <sys/stat.h>

static uint64_t limit_of(const char *folder, const char *table)
{
    const char *path = in_folder(folder, "table");
    file_put(path, table);
    return sq_cgroup_limit_bytes(path, folder);
}

static void folder_in(const char *folder, const char *name)
{
    assert_int_equal(mkdir(in_folder(folder, name), 0700), 0);
}

static void a_job_has_the_least_limit_of_the_groups_around_it(void **state)
{
    folder_in(*state, "slurm");
    folder_in(*state, "slurm/job_1");
    folder_in(*state, "slurm/job_1/task_0");
    file_put(in_folder(*state, "slurm/memory.max"), "9000000\n");
    file_put(in_folder(*state, "slurm/job_1/memory.max"), "4000000\n");
    file_put(in_folder(*state, "slurm/job_1/task_0/memory.max"), "max\n");
    assert_int_equal(limit_of(*state, "0::/slurm/job_1/task_0\n"), 4000000);
    assert_int_equal(limit_of(*state, "1:cpu:/\n0::/slurm\n"), 9000000);
    assert_true(limit_of(*state, "0::/\n") == UINT64_MAX);
}

static void version_1_is_asked_where_it_has_the_memory(void **state)
{
    folder_in(*state, "memory");
    folder_in(*state, "memory/job_2");
    file_put(in_folder(*state, "memory/memory.limit_in_bytes"), "9223372036854771712\n");
    file_put(in_folder(*state, "memory/job_2/memory.limit_in_bytes"), "700\n");
    assert_int_equal(limit_of(*state, "5:cpuset:/job_3\n4:hugetlb,memory:/job_2\n0::/\n"), 700);
    assert_int_equal(limit_of(*state, "4:memory:/not/mounted/here\n"), INT64_C(9223372036854771712));
}

static void a_limit_of_the_root_is_that_of_a_container(void **state)
{
    file_put(in_folder(*state, "memory.max"), "5000\n");
    assert_int_equal(limit_of(*state, "0::/\n"), 5000);
    assert_int_equal(limit_of(*state, "0::/a/b\n"), 5000);
}

static void what_makes_no_sense_limits_nothing(void **state)
{
    file_put(in_folder(*state, "memory.max"), "much\n");
    assert_true(limit_of(*state, "0::/\n") == UINT64_MAX);
    assert_true(limit_of(*state, "nothing\n0:\n\n") == UINT64_MAX);
    assert_true(sq_cgroup_limit_bytes(in_folder(*state, "no table"), *state) == UINT64_MAX);
}

static void there_is_some_memory(void **state)
{
    (void)state;
    assert_true(sq_memory_limit_bytes() > 0 && sq_memory_limit_bytes() < UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_has_the_least_limit_of_the_groups_around_it, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(version_1_is_asked_where_it_has_the_memory, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_limit_of_the_root_is_that_of_a_container, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_limits_nothing, folder_make, folder_remove),
        cmocka_unit_test(there_is_some_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
