/* What a process may have of memory and CPUs: the least limit of its cgroups and of those around them, in both versions of cgroups. */
#include "support/unit.h"

#include "support/folder.h"
#include "sys/cgroup.h"
#include "sys/memory_limit.h"
#include "sys/pool.h"
#include <sys/stat.h>

static uint64_t limit_of(const char *folder, const char *table)
{
    const char *path = in_folder(folder, "table");
    file_put(path, table);
    return sq_cgroup_memory_bytes(path, folder);
}

static uint64_t cpus_of(const char *folder, const char *table)
{
    const char *path = in_folder(folder, "table");
    file_put(path, table);
    return sq_cgroup_cpus(path, folder);
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

static void a_job_has_the_least_quota_of_the_groups_around_it(void **state)
{
    folder_in(*state, "slurm");
    folder_in(*state, "slurm/job_1");
    folder_in(*state, "slurm/job_1/task_0");
    file_put(in_folder(*state, "slurm/cpu.max"), "800000 100000\n");
    file_put(in_folder(*state, "slurm/job_1/cpu.max"), "250000 100000\n");
    file_put(in_folder(*state, "slurm/job_1/task_0/cpu.max"), "max 100000\n");
    assert_int_equal(cpus_of(*state, "0::/slurm/job_1/task_0\n"), 3); /* two and a half */
    assert_int_equal(cpus_of(*state, "0::/slurm/job_1\n"), 3);
    assert_int_equal(cpus_of(*state, "0::/slurm\n"), 8);
    assert_true(cpus_of(*state, "0::/\n") == UINT64_MAX);
}

static void version_1_is_asked_where_it_has_the_cpus(void **state)
{
    folder_in(*state, "cpu");
    folder_in(*state, "cpu/job_2");
    folder_in(*state, "cpu/job_2/task_0");
    file_put(in_folder(*state, "cpu/job_2/cpu.cfs_quota_us"), "50000\n");
    file_put(in_folder(*state, "cpu/job_2/cpu.cfs_period_us"), "100000\n");
    file_put(in_folder(*state, "cpu/job_2/task_0/cpu.cfs_quota_us"), "-1\n");
    file_put(in_folder(*state, "cpu/job_2/task_0/cpu.cfs_period_us"), "100000\n");
    assert_int_equal(cpus_of(*state, "5:cpuset:/\n4:cpu,cpuacct:/job_2/task_0\n0::/\n"), 1);
    assert_int_equal(cpus_of(*state, "4:cpuacct,cpu:/job_2\n"), 1);
    assert_true(cpus_of(*state, "4:cpu:/\n") == UINT64_MAX);
    assert_true(cpus_of(*state, "5:cpuset:/job_2\n4:cpuacct:/job_2\n3:name=cpu:/job_2\n0::/\n") == UINT64_MAX);
}

static void a_quota_of_the_root_is_that_of_a_container(void **state)
{
    file_put(in_folder(*state, "cpu.max"), "200000 100000\n");
    assert_int_equal(cpus_of(*state, "0::/\n"), 2);
    assert_int_equal(cpus_of(*state, "0::/a/b\n"), 2);
    folder_in(*state, "cpu");
    file_put(in_folder(*state, "cpu/cpu.cfs_quota_us"), "100000\n");
    file_put(in_folder(*state, "cpu/cpu.cfs_period_us"), "100000\n");
    assert_int_equal(cpus_of(*state, "4:cpu:/not/mounted/here\n"), 1);
}

static void what_makes_no_sense_limits_nothing(void **state)
{
    file_put(in_folder(*state, "memory.max"), "much\n");
    assert_true(limit_of(*state, "0::/\n") == UINT64_MAX);
    assert_true(limit_of(*state, "nothing\n0:\n\n") == UINT64_MAX);
    assert_true(sq_cgroup_memory_bytes(in_folder(*state, "no table"), *state) == UINT64_MAX);
    for (const char *const *quota = (const char *const[]){"many", "200000", "200000 0", "-1 100000", "", NULL}; *quota; quota++) {
        file_put(in_folder(*state, "cpu.max"), *quota);
        assert_true(cpus_of(*state, "0::/\n") == UINT64_MAX);
    }
}

static void there_are_some_memory_and_cpus(void **state)
{
    (void)state;
    assert_true(sq_memory_limit_bytes() > 0 && sq_memory_limit_bytes() < UINT64_MAX);
    assert_true(sq_cpu_count() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_has_the_least_limit_of_the_groups_around_it, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(version_1_is_asked_where_it_has_the_memory, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_limit_of_the_root_is_that_of_a_container, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_job_has_the_least_quota_of_the_groups_around_it, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(version_1_is_asked_where_it_has_the_cpus, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_quota_of_the_root_is_that_of_a_container, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_limits_nothing, folder_make, folder_remove),
        cmocka_unit_test(there_are_some_memory_and_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
