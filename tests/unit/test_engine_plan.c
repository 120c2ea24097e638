/* Plans: selection × chunk grid → boxes, against a map of elements made one by one. */
#include "support/unit.h"

#include "engine/plan.h"
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = 4096 };

static int init_plan(unsigned rank, const uint64_t *shape, const uint64_t *chunks, const struct squall_selection *s, struct sq_plan *ret,
                     struct squall_error *err)
{
    struct sq_axis axes[SQUALL_RANK_MAX] = {0};
    for (unsigned d = 0; d < rank; d++)
        axes[d] = (struct sq_axis){.length = shape[d], .chunk = chunks[d]};
    return sq_plan_init(rank, axes, s, ret, err);
}

/* Small, reproducible, and the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return next_random(state) % limit;
}

static uint64_t flat(unsigned rank, const uint64_t *index, const uint64_t *shape)
{
    uint64_t at = 0;
    for (unsigned d = 0; d < rank; d++)
        at = at * shape[d] + index[d];
    return at;
}

static int next_index(unsigned rank, const uint64_t *shape, uint64_t *index)
{
    for (unsigned d = rank; d-- > 0;) {
        if (++index[d] < shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

/* Walk every element of every item: its place in the destination is used once, and gets the element that belongs there. */
static void check_plan(unsigned rank, const uint64_t *shape, const uint64_t *chunks, const struct squall_selection *s)
{
    static uint8_t seen[ELEMENTS_MAX];
    struct sq_plan plan;
    struct squall_error err = SQUALL_ERROR_INIT;
    memset(seen, 0, sizeof seen);
    assert_int_equal(init_plan(rank, shape, chunks, s, &plan, &err), 0);
    uint64_t wanted = 1, found = 0;
    for (unsigned d = 0; d < rank; d++)
        wanted *= s->count[d];
    for (size_t i = 0; i < plan.item_count; i++) {
        struct sq_plan_item item;
        sq_plan_item_at(&plan, i, &item);
        uint64_t in_box[SQUALL_RANK_MAX] = {0};
        do {
            uint64_t to[SQUALL_RANK_MAX];
            for (unsigned d = 0; d < rank; d++) {
                uint64_t in_chunk = item.first[d] + in_box[d] * s->step[d];
                to[d] = item.to[d] + in_box[d];
                assert_true(item.count[d] > 0 && in_chunk < chunks[d] && to[d] < s->count[d]);
                assert_int_equal(item.chunk[d] * chunks[d] + in_chunk, s->start[d] + to[d] * s->step[d]);
            }
            uint64_t at = flat(rank, to, s->count);
            assert_int_equal(seen[at]++, 0);
            found++;
        } while (next_index(rank, item.count, in_box));
    }
    assert_int_equal(found, wanted);
}

static void every_selected_element_is_in_exactly_one_box(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 3000; round++) {
        unsigned rank = (unsigned)below(&random, 5);
        uint64_t shape[4], chunks[4];
        struct squall_selection s;
        for (unsigned d = 0; d < rank; d++) {
            shape[d] = 1 + below(&random, 8);
            chunks[d] = 1 + below(&random, 10);
            s.start[d] = below(&random, shape[d]);
            s.step[d] = 1 + below(&random, below(&random, 4) ? 3 : 12);
            s.count[d] = below(&random, 1 + (shape[d] - s.start[d] - 1) / s.step[d] + 1);
        }
        check_plan(rank, shape, chunks, &s);
    }
}

/* Chunks of every length, some so short that a long step passes over them: each selected element is in one box still. */
static void chunks_of_a_rectilinear_grid_need_not_be_equal(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 3000; round++) {
        uint64_t edges[9] = {0}, chunk_count = 1 + below(&random, 8);
        for (uint64_t k = 0; k < chunk_count; k++)
            edges[k + 1] = edges[k] + 1 + below(&random, 6);
        struct sq_axis axis = {.length = edges[chunk_count], .chunk = 6, .edges = edges, .edge_count = chunk_count + 1};
        struct squall_selection s = {.start = {below(&random, axis.length)}, .step = {1 + below(&random, 9)}};
        s.count[0] = below(&random, 1 + (axis.length - s.start[0] - 1) / s.step[0] + 1);
        struct sq_plan plan;
        assert_int_equal(sq_plan_init(1, &axis, &s, &plan, NULL), 0);
        uint64_t found = 0;
        for (size_t i = 0; i < plan.item_count; i++) {
            struct sq_plan_item item;
            if (!sq_plan_item_at(&plan, i, &item)) {
                assert_int_equal(item.count[0], 0);
                continue;
            }
            assert_int_equal(item.to[0], found);
            assert_int_equal(item.extent[0], edges[item.chunk[0] + 1] - edges[item.chunk[0]]);
            for (uint64_t k = 0; k < item.count[0]; k++, found++) {
                uint64_t within = item.first[0] + k * s.step[0];
                assert_true(within < item.extent[0]);
                assert_int_equal(edges[item.chunk[0]] + within, s.start[0] + found * s.step[0]);
            }
        }
        assert_int_equal(found, s.count[0]);
    }
}

static void an_empty_selection_needs_no_chunk(void **state)
{
    (void)state;
    const uint64_t shape[] = {5, UINT64_C(1) << 60}, chunks[] = {2, 1};
    struct squall_selection s = {.start = {5, 0}, .count = {0, UINT64_C(1) << 60}, .step = {1, 1}};
    struct sq_plan plan;
    assert_int_equal(init_plan(2, shape, chunks, &s, &plan, NULL), 0);
    assert_int_equal(plan.item_count, 0);
}

static void a_scalar_is_one_chunk(void **state)
{
    (void)state;
    struct squall_selection s = {0};
    struct sq_plan plan;
    assert_int_equal(init_plan(0, NULL, NULL, &s, &plan, NULL), 0);
    assert_int_equal(plan.item_count, 1);
}

static void chunks_come_in_c_order(void **state)
{
    (void)state;
    const uint64_t shape[] = {4, 6}, chunks[] = {2, 3}, expected[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    struct squall_selection s = {.count = {4, 6}, .step = {1, 1}};
    struct sq_plan plan;
    assert_int_equal(init_plan(2, shape, chunks, &s, &plan, NULL), 0);
    assert_int_equal(plan.item_count, 4);
    for (size_t i = 0; i < 4; i++) {
        struct sq_plan_item item;
        sq_plan_item_at(&plan, i, &item);
        assert_memory_equal(item.chunk, expected[i], sizeof expected[i]);
    }
}

static void lengths_at_the_end_of_the_range_do_not_overflow(void **state)
{
    (void)state;
    const uint64_t longest = INT64_MAX;
    struct squall_selection s = {.start = {longest - 3}, .count = {3}, .step = {1}};
    struct sq_plan plan;
    for (uint64_t chunk = longest - 5; chunk <= longest && chunk > 0; chunk++) {
        assert_int_equal(init_plan(1, &longest, &chunk, &s, &plan, NULL), 0);
        uint64_t count = 0;
        for (size_t i = 0; i < plan.item_count; i++) {
            struct sq_plan_item item;
            sq_plan_item_at(&plan, i, &item);
            assert_true(item.first[0] < chunk);
            assert_int_equal(item.to[0], count);
            count += item.count[0];
        }
        assert_int_equal(count, 3);
    }
}

static void a_selection_outside_the_array_is_refused(void **state)
{
    (void)state;
    const uint64_t shape = 10, chunk = 4;
    const struct {
        uint64_t start, count, step;
    } bad[] = {{0, 11, 1}, {10, 1, 1}, {11, 0, 1}, {1, 4, 4}, {0, 2, UINT64_MAX}, {UINT64_MAX, 2, 1}, {0, UINT64_MAX, 2}, {0, 1, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct squall_selection s = {.start = {bad[i].start}, .count = {bad[i].count}, .step = {bad[i].step}};
        struct sq_plan plan = {.item_count = 77};
        struct squall_error err = SQUALL_ERROR_INIT;
        assert_int_equal(init_plan(1, &shape, &chunk, &s, &plan, &err), SQUALL_EINVAL);
        assert_non_null(strstr(err.message, "dimension 0"));
        assert_int_equal(plan.item_count, 77);
    }
}

static void more_chunks_than_can_be_counted_are_refused(void **state)
{
    (void)state;
    const uint64_t shape[] = {INT64_MAX, INT64_MAX}, chunks[] = {1, 1};
    struct squall_selection s = {.count = {INT64_MAX, INT64_MAX}, .step = {1, 1}};
    struct sq_plan plan;
    assert_int_equal(init_plan(2, shape, chunks, &s, &plan, NULL), SQUALL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_selected_element_is_in_exactly_one_box),
        cmocka_unit_test(chunks_of_a_rectilinear_grid_need_not_be_equal),
        cmocka_unit_test(an_empty_selection_needs_no_chunk),
        cmocka_unit_test(a_scalar_is_one_chunk),
        cmocka_unit_test(chunks_come_in_c_order),
        cmocka_unit_test(lengths_at_the_end_of_the_range_do_not_overflow),
        cmocka_unit_test(a_selection_outside_the_array_is_refused),
        cmocka_unit_test(more_chunks_than_can_be_counted_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
