/* Memory for results: what is freed comes back for the next of its size, and not more of it than a quarter of the limit stays. */
#include "support/unit.h"

#include "squall/memory.h"
#include "sys/pool.h"
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static squall_context *ctx;

static int open_context(void **state)
{
    (void)state;
    const struct squall_context_options options = {.threads = 4, .memory_bytes = 64 * MIB};
    return squall_context_new(&options, &ctx, NULL);
}

static int close_context(void **state)
{
    (void)state;
    squall_context_free(ctx);
    return 0;
}

static void a_freed_block_is_the_next_ones_of_its_size(void **state)
{
    (void)state;
    char *a = squall_memory_alloc(ctx, 4 * MIB), *b = squall_memory_alloc(ctx, 4 * MIB);
    assert_true(a && b && a != b);
    memset(a, 1, 4 * MIB);
    squall_memory_free(ctx, a, 4 * MIB);
    char *other = squall_memory_alloc(ctx, 8 * MIB), *again = squall_memory_alloc(ctx, 4 * MIB - 1);
    assert_ptr_not_equal(other, a);
    assert_ptr_equal(again, a);
    memset(again, 2, 4 * MIB - 1);
    squall_memory_free(ctx, again, 4 * MIB - 1);
    squall_memory_free(ctx, other, 8 * MIB);
    squall_memory_free(ctx, b, 4 * MIB);
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (char *const *)a, y = (uintptr_t) * (char *const *)b;
    return x < y ? -1 : x > y;
}

static void allocate(squall_context *from, char **blocks, size_t count, size_t size_bytes)
{
    for (size_t i = 0; i < count; i++)
        assert_non_null(blocks[i] = squall_memory_alloc(from, size_bytes));
}

static void release(squall_context *to, char **blocks, size_t count, size_t size_bytes)
{
    for (size_t i = 0; i < count; i++)
        squall_memory_free(to, blocks[i], size_bytes);
}

/* How many of `count` blocks are the same again when all were freed; others are allocated in between where they lay. */
static size_t count_reused(uint64_t memory_bytes, size_t count, size_t size_bytes)
{
    enum { MOST = 64 };
    char *before[MOST], *after[MOST], *others[MOST];
    squall_context *own;
    const struct squall_context_options options = {.memory_bytes = memory_bytes};
    assert_int_equal(squall_context_new(&options, &own, NULL), 0);
    allocate(own, before, count, size_bytes);
    release(own, before, count, size_bytes);
    allocate(own, others, MOST, size_bytes + 2 * MIB);
    allocate(own, after, count, size_bytes);
    qsort(before, count, sizeof *before, by_address);
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        same += bsearch(&after[i], before, count, sizeof *before, by_address) != NULL;
    release(own, after, count, size_bytes);
    release(own, others, MOST, size_bytes + 2 * MIB);
    squall_context_free(own);
    return same;
}

static void all_blocks_of_a_variable_come_back(void **state)
{
    (void)state;
    assert_int_equal(count_reused(4096ull * MIB, 40, 6 * MIB), 40);
    assert_int_equal(count_reused(4096ull * MIB, 60, 6 * MIB), 42); /* in 256 MiB */
    assert_int_equal(count_reused(4096ull * MIB, 8, 100 * MIB), 4);
    assert_int_equal(count_reused(4096ull * MIB, 8, 400 * MIB), 2); /* in a quarter of the limit */
}

static void more_than_a_quarter_of_the_limit_does_not_stay(void **state)
{
    (void)state;
    char *large = squall_memory_alloc(ctx, 20 * MIB);
    assert_non_null(large);
    squall_memory_free(ctx, large, 20 * MIB);
    char *blocks[12];
    for (int i = 0; i < 12; i++)
        assert_non_null(blocks[i] = squall_memory_alloc(ctx, 6 * MIB));
    for (int i = 0; i < 12; i++)
        squall_memory_free(ctx, blocks[i], 6 * MIB);
}

static void nothing_and_little_are_blocks_too(void **state)
{
    (void)state;
    squall_memory_free(ctx, NULL, 5);
    char *none = squall_memory_alloc(ctx, 0), *little = squall_memory_alloc(ctx, 3);
    assert_true(none && little);
    memset(little, 1, 3);
    squall_memory_free(ctx, none, 0);
    squall_memory_free(ctx, little, 3);
    assert_null(squall_memory_alloc(ctx, SIZE_MAX));
}

static int use(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)user;
    (void)worker;
    size_t size_bytes = (1 + index % 3) * MIB;
    char *p = squall_memory_alloc(ctx, size_bytes);
    if (!p)
        return err->status = SQUALL_ENOMEM;
    memset(p, (int)index, 4096);
    int status = p[4095] == (char)index ? 0 : SQUALL_EIO;
    squall_memory_free(ctx, p, size_bytes);
    return status;
}

static void threads_share_it(void **state)
{
    (void)state;
    assert_int_equal(sq_parallel(4, 5000, use, NULL, &(struct squall_error)SQUALL_ERROR_INIT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_block_is_the_next_ones_of_its_size),
        cmocka_unit_test(all_blocks_of_a_variable_come_back),
        cmocka_unit_test(more_than_a_quarter_of_the_limit_does_not_stay),
        cmocka_unit_test(nothing_and_little_are_blocks_too),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
