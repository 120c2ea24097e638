/* Casts against definitions written out value by value; copies, fills and means against plain loops. */
#include "support/unit.h"

#include "array/dtype.h"
#include "codec/swap.h"
#include "engine/scatter.h"
#include "support/random.h"
#include "sys/cpu.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252U;

static uint64_t random_bits(void)
{
    return random_next(&random_state);
}

static float float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* IEEE 754 binary16 by its definition. */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31;
    int mantissa = h & 0x3ff;
    double v = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25);
    if (exponent == 31)
        v = mantissa ? (double)NAN : (double)INFINITY;
    return h & 0x8000 ? -v : v;
}

/* The nearest half by search: the candidates' distances decide, ties go to the even one. */
static uint16_t nearest_half(float v)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double a = fabs((double)v);
    unsigned low = 0, high = 0x7c00; /* half_value(0x7c00) stands for 65536 in the search */
    while (high - low > 1) {
        unsigned mid = (low + high) / 2;
        if (half_value((uint16_t)mid) <= a)
            low = mid;
        else
            high = mid;
    }
    double above = high == 0x7c00 ? 65536.0 : half_value((uint16_t)high);
    double to_low = a - half_value((uint16_t)low);
    double to_high = above - a;
    if (isinf(v) || to_high < to_low || (to_high == to_low && high % 2 == 0))
        low = high;
    return (uint16_t)(sign | low);
}

/* Run a test's body under each instruction set that this machine has. */
static void under_each_cpu(void (*body)(void))
{
    sq_cpu_limit(0);
    body();
    sq_cpu_limit(~0U);
    body();
}

static void to_half(const float *src, uint16_t *dst, size_t n)
{
    assert_true(sq_scatter_cast(SQUALL_FLOAT32, src, n, SQUALL_FLOAT16, dst, n, 1, n, SQ_OVERFLOW_INF, NULL, NULL));
}

static void check_round_trip(void)
{
    static float values[65536];
    static uint16_t back[65536];
    for (unsigned h = 0; h < 65536; h++) {
        values[h] = sq_half_to_float((uint16_t)h);
        if (!isnan(half_value((uint16_t)h)))
            assert_true((double)values[h] == half_value((uint16_t)h) && !signbit(values[h]) == !(h & 0x8000));
    }
    to_half(values, back, 65536);
    for (unsigned h = 0; h < 65536; h++) {
        if (isnan(half_value((uint16_t)h)))
            assert_int_equal(back[h], h | 0x200); /* made quiet */
        else
            assert_int_equal(back[h], h);
    }
}

static void every_half_survives_the_way_there_and_back(void **state)
{
    (void)state;
    under_each_cpu(check_round_trip);
}

/* Both neighbours of every boundary between two halves, and the boundary itself. */
static void check_boundaries(void)
{
    static float values[3 * 0x7c00];
    static uint16_t got[3 * 0x7c00];
    for (unsigned h = 0; h < 0x7c00; h++) {
        double above = h == 0x7bff ? 65536.0 : half_value((uint16_t)(h + 1));
        float middle = (float)((half_value((uint16_t)h) + above) / 2);
        values[3 * h] = nextafterf(middle, 0);
        values[3 * h + 1] = middle;
        values[3 * h + 2] = nextafterf(middle, INFINITY);
    }
    for (int negative = 0; negative < 2; negative++) {
        to_half(values, got, 3 * 0x7c00);
        for (unsigned i = 0; i < 3 * 0x7c00; i++) {
            assert_int_equal(got[i], nearest_half(values[i]));
            values[i] = -values[i];
        }
    }
}

static void ties_go_to_the_even_half(void **state)
{
    (void)state;
    under_each_cpu(check_boundaries);
}

static void plain_and_wide_kernels_agree(void **state)
{
    (void)state;
    enum { N = 100003 };
    static const int64_t fill = 77;
    float *floats = malloc(N * sizeof *floats);
    double *doubles = malloc(N * sizeof *doubles);
    uint8_t *a = calloc(N, 8);
    uint8_t *b = calloc(N, 8);
    for (size_t i = 0; i < N; i++) {
        uint64_t r = random_bits();
        if (i % 2) { /* any bits */
            floats[i] = float_of_bits((uint32_t)r);
            memcpy(&doubles[i], &r, 8);
        } else { /* something that an integer type holds */
            doubles[i] = ldexp((double)(int64_t)r, -(int)(random_bits() % 70));
            floats[i] = (float)doubles[i];
        }
    }
    for (int from = SQUALL_FLOAT32; from <= SQUALL_FLOAT64; from++) {
        const void *src = from == SQUALL_FLOAT32 ? (const void *)floats : (const void *)doubles;
        for (int to = SQUALL_INT8; to <= SQUALL_FLOAT64; to++) {
            sq_cpu_limit(0);
            bool fits = sq_scatter_cast((enum squall_type)from, src, N, (enum squall_type)to, a, N, 1, N, SQ_OVERFLOW_CLIP, &fill, NULL);
            sq_cpu_limit(~0U);
            assert_int_equal(
                fits, sq_scatter_cast((enum squall_type)from, src, N, (enum squall_type)to, b, N, 1, N, SQ_OVERFLOW_CLIP, &fill, NULL));
            assert_memory_equal(a, b, N * sq_type_size((enum squall_type)to));
        }
    }
    free(floats), free(doubles), free(a), free(b);
}

static bool cast_one(double value, enum squall_type to, enum sq_overflow overflow, void *dst, double *ret)
{
    return sq_scatter_cast(SQUALL_FLOAT64, &value, 1, to, dst, 1, 1, 1, overflow, NULL, ret);
}

static void check_half_overflow(void)
{
    uint16_t h;
    double told = 0;
    float below = nextafterf(65520.0F, 0);
    assert_true(cast_one((double)below, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, &told));
    assert_int_equal(h, 0x7bff);
    assert_false(cast_one(65520, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, &told));
    assert_true(told == 65520);
    assert_true(cast_one(65520, SQUALL_FLOAT16, SQ_OVERFLOW_INF, &h, NULL));
    assert_int_equal(h, 0x7c00);
    assert_true(cast_one(-1e300, SQUALL_FLOAT16, SQ_OVERFLOW_CLIP, &h, NULL));
    assert_int_equal(h, 0xfbff);
    assert_false(cast_one(1e300, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, &told));
    assert_true(told == 1e300);
    assert_true(cast_one((double)INFINITY, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, NULL));
    assert_int_equal(h, 0x7c00);
    assert_true(cast_one(-(double)INFINITY, SQUALL_FLOAT16, SQ_OVERFLOW_CLIP, &h, NULL));
    assert_int_equal(h, 0xfc00);
    assert_true(cast_one((double)NAN, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, NULL));
    assert_true(isnan(half_value(h)));
    float f;
    assert_true(cast_one((double)FLT_MAX, SQUALL_FLOAT32, SQ_OVERFLOW_ERROR, &f, NULL));
    assert_false(cast_one(-1e39, SQUALL_FLOAT32, SQ_OVERFLOW_ERROR, &f, &told));
    assert_true(told == -1e39);
    assert_true(cast_one(-1e39, SQUALL_FLOAT32, SQ_OVERFLOW_CLIP, &f, NULL));
    assert_true(f == -FLT_MAX);
}

static void floats_overflow_where_rounding_would_leave_the_range(void **state)
{
    (void)state;
    under_each_cpu(check_half_overflow);
}

static void the_first_value_that_does_not_fit_is_told(void **state)
{
    (void)state;
    enum { N = 5000 };
    float src[N];
    uint16_t dst[N];
    double told = 0;
    for (int i = 0; i < N; i++)
        src[i] = (float)i;
    src[4321] = 70000;
    src[4322] = 80000;
    src[4000] = NAN;
    assert_false(sq_scatter_cast(SQUALL_FLOAT32, src, 100, SQUALL_FLOAT16, dst, 100, 50, 100, SQ_OVERFLOW_ERROR, NULL, &told));
    assert_true(told == 70000);
    int64_t fill = -1;
    int16_t integers[N];
    told = 0;
    assert_false(sq_scatter_cast(SQUALL_FLOAT32, src, 100, SQUALL_INT16, integers, 100, 50, 100, SQ_OVERFLOW_INF, &fill, &told));
    assert_true(told == 70000);
    assert_false(sq_scatter_cast(SQUALL_FLOAT32, src, 100, SQUALL_INT16, integers, 100, 50, 100, SQ_OVERFLOW_ERROR, NULL, &told));
    assert_true(isnan(told));
    assert_false(sq_scatter_cast(SQUALL_FLOAT32, src, 100, SQUALL_INT16, integers, 100, 50, 100, SQ_OVERFLOW_CLIP, NULL, &told));
    assert_true(isnan(told));
    assert_true(sq_scatter_cast(SQUALL_FLOAT32, src, 100, SQUALL_INT16, integers, 100, 50, 100, SQ_OVERFLOW_CLIP, &fill, &told));
    assert_int_equal(integers[4000], -1);
    assert_int_equal(integers[4321], 32767);
    assert_int_equal(integers[4999], 4999);
}

static void check_integers(void)
{
    int8_t i8;
    int64_t i64;
    uint64_t u64;
    uint32_t u32;
    int32_t i32;
    assert_true(cast_one(2.5, SQUALL_INT8, SQ_OVERFLOW_ERROR, &i8, NULL));
    assert_int_equal(i8, 2);
    assert_true(cast_one(-3.5, SQUALL_INT8, SQ_OVERFLOW_ERROR, &i8, NULL));
    assert_int_equal(i8, -4);
    assert_true(cast_one(127.4, SQUALL_INT8, SQ_OVERFLOW_ERROR, &i8, NULL));
    assert_false(cast_one(127.5, SQUALL_INT8, SQ_OVERFLOW_ERROR, &i8, NULL));
    assert_true(cast_one(-0x1p63, SQUALL_INT64, SQ_OVERFLOW_ERROR, &i64, NULL));
    assert_true(i64 == INT64_MIN);
    assert_false(cast_one(0x1p63, SQUALL_INT64, SQ_OVERFLOW_ERROR, &i64, NULL));
    assert_true(cast_one(0x1p63, SQUALL_INT64, SQ_OVERFLOW_CLIP, &i64, NULL));
    assert_true(i64 == INT64_MAX);
    assert_true(cast_one((double)INFINITY, SQUALL_UINT64, SQ_OVERFLOW_CLIP, &u64, NULL));
    assert_true(u64 == UINT64_MAX);
    assert_true(cast_one(0x1.fffffffffffffp63, SQUALL_UINT64, SQ_OVERFLOW_ERROR, &u64, NULL));
    assert_true(u64 == UINT64_MAX - 2047);
    assert_false(cast_one(-1, SQUALL_UINT64, SQ_OVERFLOW_ERROR, &u64, NULL));
    assert_true(cast_one(-0.4, SQUALL_UINT32, SQ_OVERFLOW_ERROR, &u32, NULL));
    assert_int_equal(u32, 0);
    assert_true(cast_one(4294967295.0, SQUALL_UINT32, SQ_OVERFLOW_ERROR, &u32, NULL));
    assert_true(u32 == UINT32_MAX);
    assert_true(cast_one(2147483647.0, SQUALL_INT32, SQ_OVERFLOW_ERROR, &i32, NULL));
    assert_int_equal(i32, INT32_MAX);
    assert_false(cast_one(2147483648.0, SQUALL_INT32, SQ_OVERFLOW_ERROR, &i32, NULL));
}

static void integers_round_to_even_and_know_their_ends(void **state)
{
    (void)state;
    under_each_cpu(check_integers);
}

static void doubles_go_to_half_through_float(void **state)
{
    (void)state;
    /* Just above the middle of two halves; as a float it is the middle, which goes to the even one below. */
    double value = 1.0 + 0x1p-11 + 0x1p-40;
    uint16_t h;
    assert_true(cast_one(value, SQUALL_FLOAT16, SQ_OVERFLOW_ERROR, &h, NULL));
    assert_int_equal(h, 0x3c00);
}

static void rows_may_be_apart_and_nothing_between_them_is_touched(void **state)
{
    (void)state;
    double src[3][5];
    float dst[3][7];
    for (int i = 0; i < 15; i++)
        src[i / 5][i % 5] = i;
    for (int i = 0; i < 21; i++)
        dst[i / 7][i % 7] = -1;
    assert_true(sq_scatter_cast(SQUALL_FLOAT64, src, 5, SQUALL_FLOAT32, dst, 7, 3, 4, SQ_OVERFLOW_ERROR, NULL, NULL));
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 7; c++)
            assert_true(dst[r][c] == (c < 4 ? (float)(r * 5 + c) : -1));
    float copied[3][7];
    memset(copied, 0, sizeof copied);
    assert_true(sq_scatter_cast(SQUALL_FLOAT32, dst, 7, SQUALL_FLOAT32, copied, 7, 3, 4, SQ_OVERFLOW_ERROR, NULL, NULL));
    assert_true(bits_of_float(copied[2][3]) == bits_of_float(dst[2][3]) && copied[2][4] == 0);
}

/* One element at a time, from the definition of a strided box. */
static void copy_by_definition(unsigned rank, const uint64_t *count, size_t size_bytes, const uint8_t *src, const int64_t *src_strides,
                               uint8_t *dst, const int64_t *dst_strides)
{
    if (rank == 0) {
        memcpy(dst, src, size_bytes);
        return;
    }
    for (uint64_t i = 0; i < count[0]; i++)
        copy_by_definition(rank - 1, count + 1, size_bytes, src + (int64_t)i * src_strides[0], src_strides + 1,
                           dst + (int64_t)i * dst_strides[0], dst_strides + 1);
}

/* Strides of a random layout: the dimensions in random order, padded, possibly backwards; *ret_start where element 0 lies. */
static size_t random_layout(unsigned rank, const uint64_t *count, size_t size_bytes, int64_t *strides, size_t *ret_start)
{
    unsigned order[4] = {0, 1, 2, 3};
    for (unsigned d = rank; random_bits() % 2 && d > 1; d--) {
        unsigned other = (unsigned)(random_bits() % d);
        unsigned swap = order[d - 1];
        order[d - 1] = order[other];
        order[other] = swap;
    }
    size_t bytes = size_bytes;
    *ret_start = 0;
    for (unsigned i = rank; i-- > 0;) {
        unsigned d = order[i];
        strides[d] = (int64_t)bytes;
        if (random_bits() % 4 == 0) {
            strides[d] = -strides[d];
            *ret_start += (count[d] ? count[d] - 1 : 0) * bytes;
        }
        bytes *= count[d] ? count[d] : 1;
        if (random_bits() % 4 == 0)
            bytes += size_bytes * (random_bits() % 3);
    }
    return bytes;
}

static void any_box_is_copied_as_its_definition_says(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 300, 1000};
    for (int round = 0; round < 3000; round++) {
        unsigned rank = (unsigned)(random_bits() % 5);
        size_t size_bytes = sizes[random_bits() % 9];
        uint64_t count[4];
        int64_t src_strides[4], dst_strides[4];
        for (unsigned d = 0; d < rank; d++)
            count[d] = random_bits() % 40 == 0 ? 0 : 1 + random_bits() % 6;
        size_t src_start, dst_start;
        size_t src_bytes = random_layout(rank, count, size_bytes, src_strides, &src_start);
        size_t dst_bytes = random_layout(rank, count, size_bytes, dst_strides, &dst_start);
        uint8_t *src = malloc(src_bytes), *dst = calloc(dst_bytes, 1), *expected = calloc(dst_bytes, 1);
        for (size_t i = 0; i < src_bytes; i++)
            src[i] = (uint8_t)random_bits();
        sq_scatter_copy(rank, count, size_bytes, src + src_start, src_strides, dst + dst_start, dst_strides,
                        round % 2 ? SQ_SCATTER_INTO_CACHES : SQ_SCATTER_BEYOND_CACHES);
        copy_by_definition(rank, count, size_bytes, src + src_start, src_strides, expected + dst_start, dst_strides);
        assert_memory_equal(dst, expected, dst_bytes);
        free(src), free(dst), free(expected);
    }
}

static void check_swaps(void)
{
    uint8_t src[400], dst[408], expected[400];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 7);
    for (unsigned width = 2; width <= 8; width *= 2)
        for (size_t size = 0; size < sizeof src; size += width) {
            for (size_t i = 0; i < size; i++)
                expected[i] = src[i - i % width + width - 1 - i % width];
            memset(dst, 0xa5, sizeof dst);
            sq_swap(dst + 1, src, size, width); /* at any alignment, and in its place */
            assert_memory_equal(dst + 1, expected, size);
            assert_true(dst[0] == 0xa5 && dst[size + 1] == 0xa5);
            sq_swap(dst + 1, dst + 1, size, width);
            assert_memory_equal(dst + 1, src, size);
            for (size_t at = 1; at < 8; at++) { /* where a line of the cache begins within elements, and between them */
                memset(dst, 0xa5, sizeof dst);
                sq_swap_stream(dst + at, src, size, width);
                assert_memory_equal(dst + at, expected, size);
                assert_true(dst[at - 1] == 0xa5 && dst[at + size] == 0xa5);
            }
        }
}

static void bytes_are_turned_at_any_length(void **state)
{
    (void)state;
    under_each_cpu(check_swaps);
}

static void fill_repeats_the_element_and_stops(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 4, 8, 12, 5000};
    uint8_t value[5000];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(i % 3 ? random_bits() : 0);
    for (int s = 0; s < 6; s++) {
        for (size_t count = 0; count < 4000; count = count * 3 + 1) {
            size_t total = count * sizes[s];
            uint8_t *dst = malloc(total + 1);
            dst[total] = 0xa5;
            sq_scatter_fill(dst, count, sizes[s], value);
            for (size_t i = 0; i < total; i++)
                assert_int_equal(dst[i], value[i % sizes[s]]);
            assert_int_equal(dst[total], 0xa5);
            free(dst);
        }
    }
}

static void a_block_mean_leaves_out_what_is_missing(void **state)
{
    (void)state;
    const float n = NAN;
    const float src[3][5] = {{1, 2, 3, 4, n}, {5, 6, n, 8, n}, {10, 20, 30, n, n}};
    float dst[2][3];
    sq_scatter_coarsen(SQUALL_FLOAT32, src, 3, 5, 2, 2, dst);
    assert_true(dst[0][0] == 3.5F && dst[0][1] == 5.0F && isnan(dst[0][2]));
    assert_true(dst[1][0] == 15.0F && dst[1][1] == 30.0F && isnan(dst[1][2]));
}

enum { MEAN_ROWS = 13, MEAN_COLUMNS = 2003 };

static void check_block_means_of(const double src[MEAN_ROWS][MEAN_COLUMNS], int fy, int fx)
{
    static double dst[MEAN_ROWS * MEAN_COLUMNS];
    const double *mean = dst;
    sq_scatter_coarsen(SQUALL_FLOAT64, src, MEAN_ROWS, MEAN_COLUMNS, (unsigned)fy, (unsigned)fx, dst);
    for (int top = 0; top < MEAN_ROWS; top += fy) {
        for (int left = 0; left < MEAN_COLUMNS; left += fx, mean++) {
            double sum = 0, used = 0;
            for (int x = left; x < MEAN_COLUMNS && x < left + fx; x++) {
                double down = 0;
                for (int y = top; y < MEAN_ROWS && y < top + fy; y++)
                    if (!isnan(src[y][x]))
                        down += src[y][x], used++;
                sum += down;
            }
            assert_true(used > 0 ? *mean == sum / used : isnan(*mean));
        }
    }
}

static void check_block_means(void)
{
    static double src[MEAN_ROWS][MEAN_COLUMNS];
    static const int factors[] = {1, 2, 3, 4, 600, 5000};
    for (int r = 0; r < MEAN_ROWS; r++)
        for (int c = 0; c < MEAN_COLUMNS; c++)
            src[r][c] = random_bits() % 5 ? (double)(random_bits() % 100000) / 7 : (double)NAN;
    for (int i = 0; i < 6; i++)
        check_block_means_of(src, factors[i % 4], factors[i]);
}

static void block_means_of_a_wide_field_equal_plain_sums(void **state)
{
    (void)state;
    under_each_cpu(check_block_means);
}

static void types_have_zarr_names_both_ways(void **state)
{
    (void)state;
    for (int t = SQUALL_BOOL; t <= SQUALL_STRING; t++) {
        enum squall_type back = SQUALL_BOOL;
        assert_true(sq_type_from_name(sq_type_name((enum squall_type)t), &back));
        assert_int_equal(back, t);
    }
    enum squall_type untouched = SQUALL_INT16;
    assert_false(sq_type_from_name("float128", &untouched));
    assert_false(sq_type_from_name(NULL, &untouched));
    assert_int_equal(untouched, SQUALL_INT16);
    assert_int_equal(sq_type_size(SQUALL_FLOAT16), 2);
    assert_int_equal(sq_type_size(SQUALL_STRING), 0);
    assert_true(sq_type_is_float(SQUALL_FLOAT16) && !sq_type_is_float(SQUALL_INT8) && sq_type_is_integer(SQUALL_UINT64));
    assert_false(sq_type_is_integer(SQUALL_BOOL));
    assert_true(sq_type_greatest(SQUALL_FLOAT16) == 65504 && sq_type_greatest(SQUALL_UINT16) == 65535);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives_the_way_there_and_back),
        cmocka_unit_test(ties_go_to_the_even_half),
        cmocka_unit_test(plain_and_wide_kernels_agree),
        cmocka_unit_test(floats_overflow_where_rounding_would_leave_the_range),
        cmocka_unit_test(the_first_value_that_does_not_fit_is_told),
        cmocka_unit_test(integers_round_to_even_and_know_their_ends),
        cmocka_unit_test(doubles_go_to_half_through_float),
        cmocka_unit_test(rows_may_be_apart_and_nothing_between_them_is_touched),
        cmocka_unit_test(any_box_is_copied_as_its_definition_says),
        cmocka_unit_test(bytes_are_turned_at_any_length),
        cmocka_unit_test(fill_repeats_the_element_and_stops),
        cmocka_unit_test(a_block_mean_leaves_out_what_is_missing),
        cmocka_unit_test(block_means_of_a_wide_field_equal_plain_sums),
        cmocka_unit_test(types_have_zarr_names_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
