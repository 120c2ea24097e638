/* The cache of decoded chunks: what is found, what goes first, what a reader holds. */
#include "support/unit.h"

#include "base/memory.h"
#include "engine/chunk_cache.h"
#include "sys/clock.h"
#include "sys/pool.h"
#include <string.h>

enum { PAGE = 4096, LIMIT = 4 * PAGE };

static struct sq_cache_key key_of(uint64_t number)
{
    return (struct sq_cache_key){.file = {.inode = number, .size_bytes = 10, .mtime_ns = 5}, .offset = 3, .decoded_id = 1};
}

/* Give a page of this number to the cache; the buffer that it gives back, or the page itself, is freed. */
static void give(struct sq_chunk_cache *cache, uint64_t number)
{
    const struct sq_cache_key key = key_of(number);
    void *page = sq_pages_alloc(PAGE);
    size_t capacity = PAGE;
    assert_non_null(page);
    memset(page, (int)number, PAGE);
    sq_chunk_cache_give(cache, &key, PAGE, &page, &capacity);
    sq_pages_free(page, capacity);
}

static bool holds(struct sq_chunk_cache *cache, uint64_t number)
{
    const struct sq_cache_key key = key_of(number);
    const uint8_t *page = sq_chunk_cache_pin(cache, &key, PAGE);
    if (!page)
        return false;
    assert_int_equal(page[0], number);
    assert_int_equal(page[PAGE - 1], number);
    sq_chunk_cache_unpin(cache, page);
    return true;
}

static void what_was_used_longest_ago_goes_first(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    for (uint64_t i = 1; i <= 4; i++)
        give(cache, i);
    assert_true(holds(cache, 1));
    give(cache, 5);
    assert_true(holds(cache, 1));
    assert_false(holds(cache, 2));
    assert_true(holds(cache, 3) && holds(cache, 4) && holds(cache, 5));
    sq_chunk_cache_free(cache);
}

static void what_a_reader_holds_stays(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    const struct sq_cache_key key = key_of(1);
    give(cache, 1);
    const uint8_t *held = sq_chunk_cache_pin(cache, &key, PAGE);
    assert_non_null(held);
    for (uint64_t i = 2; i < 40; i++)
        give(cache, i);
    assert_int_equal(held[PAGE - 1], 1);
    sq_chunk_cache_unpin(cache, held);
    assert_true(holds(cache, 1));
    sq_chunk_cache_free(cache);
}

static void another_file_or_decoding_is_not_found(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    give(cache, 1);
    struct sq_cache_key keys[6];
    for (size_t i = 0; i < 6; i++)
        keys[i] = key_of(1);
    keys[0].file.mtime_ns++;
    keys[1].file.size_bytes++;
    keys[2].file.device++;
    keys[3].offset++;
    keys[4].decoded_id++;
    for (size_t i = 0; i < 5; i++)
        assert_null(sq_chunk_cache_pin(cache, &keys[i], PAGE));
    assert_null(sq_chunk_cache_pin(cache, &keys[5], PAGE - 1)); /* a size that no reader of it asks for */
    sq_chunk_cache_free(cache);
}

static void what_was_written_a_moment_ago_is_not_kept(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    size_t capacity = PAGE;
    void *page = sq_pages_alloc(PAGE), *given = page;
    struct sq_cache_key key = key_of(1);
    key.file.mtime_ns = sq_clock_now_ns();
    sq_chunk_cache_give(cache, &key, PAGE, &given, &capacity);
    assert_ptr_equal(given, page);
    assert_null(sq_chunk_cache_pin(cache, &key, PAGE));
    sq_pages_free(page, PAGE);
    sq_chunk_cache_free(cache);
}

static void what_is_larger_than_the_cache_stays_the_givers(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    const struct sq_cache_key key = key_of(1);
    size_t capacity = LIMIT + PAGE;
    void *big = sq_pages_alloc(capacity), *same = big;
    sq_chunk_cache_give(cache, &key, capacity, &big, &capacity);
    assert_ptr_equal(big, same);
    assert_int_equal(capacity, LIMIT + PAGE);
    sq_pages_free(big, capacity);
    sq_chunk_cache_free(cache);
}

static int use(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    (void)worker;
    (void)err;
    uint64_t number = 1 + index * 7919 % 9;
    if (!holds(user, number))
        give(user, number);
    return 0;
}

static void threads_share_it(void **state)
{
    (void)state;
    struct sq_chunk_cache *cache = sq_chunk_cache_new(LIMIT);
    assert_int_equal(sq_parallel(4, 20000, use, cache, NULL), 0);
    sq_chunk_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_used_longest_ago_goes_first),           cmocka_unit_test(what_a_reader_holds_stays),
        cmocka_unit_test(another_file_or_decoding_is_not_found),          cmocka_unit_test(what_was_written_a_moment_ago_is_not_kept),
        cmocka_unit_test(what_is_larger_than_the_cache_stays_the_givers), cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
