/* The kernels: each variant that this processor runs against plain arithmetic written here, and against each other. */
#include "support/unit.h"

#include "format/grib/kernels.h"
#include "support/field.h"
#include "sys/cpu.h"
#include <math.h>

static const struct sq_grib_kernels *variants[2];
static size_t variant_count;

static void find_variants(void)
{
    variants[variant_count++] = &sq_grib_kernels_plain;
    if (sq_grib_kernels_avx2() && sq_cpu_features() & SQ_CPU_AVX2)
        variants[variant_count++] = sq_grib_kernels_avx2();
}

/* malloc of exactly this much, with something in it that is not zero */
static void *exactly(size_t size_bytes)
{
    void *p = malloc(size_bytes + !size_bytes);
    memset(p, 0x5a, size_bytes);
    return p;
}

static void the_choice_follows_the_processor(void **state)
{
    (void)state;
    assert_ptr_equal(sq_grib_kernels(), variants[variant_count - 1]);
    sq_cpu_limit(0);
    assert_ptr_equal(sq_grib_kernels(), &sq_grib_kernels_plain);
    sq_cpu_limit(~0u);
}

static void check_unpacking(unsigned width, unsigned offset, uint32_t count, unsigned missing, uint64_t *seed)
{
    uint32_t *x = exactly(count * sizeof *x), most = (uint32_t)((UINT64_C(1) << width) - 1), base = (uint32_t)random_next(seed) >> 2;
    size_t size = (size_t)((offset + (uint64_t)width * count + 7) / 8);
    uint8_t *bytes = calloc(1, size + 1), *tight = exactly(size);
    uint64_t bit = offset;
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (uint32_t)random_next(seed) & most;
        if (missing && i % 3 == 0)
            x[i] = most - (uint32_t)(random_next(seed) % 3 < most ? random_next(seed) % 3 : 0);
        put_bits(bytes, &bit, x[i], width);
    }
    memcpy(tight, bytes, size);
    struct sq_grib_piece piece = {base, count, width};
    for (size_t v = 0; v < variant_count; v++) {
        uint32_t *out = exactly((count + SQ_GRIB_SLACK) * sizeof *out);
        variants[v]->unpack(tight, size, offset, &piece, 1, missing, out);
        for (uint32_t i = 0; i < count; i++) {
            bool gone = width && missing && (uint64_t)x[i] + missing > most;
            assert_int_equal(out[i], gone ? SQ_GRIB_MISSING_U32 : base + x[i]);
        }
        free(out);
    }
    free(x);
    free(bytes);
    free(tight);
}

static void every_width_unpacks_from_every_bit(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (unsigned width = 0; width <= 32; width++)
        for (unsigned offset = 0; offset < 8; offset++)
            for (uint32_t count = 0; count < 70; count = count < 20 ? count + 1 : count + 13)
                check_unpacking(width, offset, count, 0, &seed);
}

static void the_highest_codes_are_missing_where_they_are_said_to_be(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (unsigned width = 0; width <= 31; width++)
        for (unsigned missing = 1; missing <= 2; missing++)
            for (unsigned offset = 0; offset < 8; offset += 3)
                check_unpacking(width, offset, 45, missing, &seed);
}

static void pieces_follow_each_other(void **state)
{
    (void)state;
    enum { PIECES = 300 };
    uint64_t seed = 3, bit = 3;
    struct sq_grib_piece pieces[PIECES];
    uint8_t *bytes = calloc(1, PIECES * 40 * 4);
    uint32_t *x = exactly(PIECES * 40 * sizeof *x), *out = exactly((PIECES * 40 + SQ_GRIB_SLACK) * sizeof *out);
    size_t count = 0;
    for (size_t k = 0; k < PIECES; k++) {
        pieces[k] = (struct sq_grib_piece){(uint32_t)random_next(&seed) & 0xffff, random_next(&seed) % 40, random_next(&seed) % 33};
        for (uint32_t i = 0; i < pieces[k].count; i++) {
            uint32_t code = (uint32_t)(random_next(&seed) & ((UINT64_C(1) << pieces[k].width) - 1));
            put_bits(bytes, &bit, code, pieces[k].width);
            x[count++] = pieces[k].base + code;
        }
    }
    for (size_t v = 0; v < variant_count; v++) {
        variants[v]->unpack(bytes, (bit + 7) / 8, 3, pieces, PIECES, 0, out);
        assert_memory_equal(out, x, count * sizeof *x);
    }
    free(bytes);
    free(x);
    free(out);
}

/* The definition, with nothing fused: each operation rounds by itself. */
static double scaled(double x, const struct sq_grib_scale *s)
{
    volatile double product = x * s->binary, sum = product + s->reference, value = sum * s->decimal;
    return value;
}

static void assert_same(double got, double want)
{
    if (isnan(want))
        assert_true(isnan(got));
    else
        assert_memory_equal(&got, &want, sizeof want);
}

static struct sq_grib_scale random_scale(uint64_t *seed, unsigned bits)
{
    uint32_t raw = (uint32_t)random_next(seed) & 0x80ffffff;
    raw |= (uint32_t)(100 + random_next(seed) % 60) << 23;
    float reference;
    memcpy(&reference, &raw, sizeof reference);
    int decimal = random_next(seed) % 2 ? 0 : (int)(random_next(seed) % 13) - 6;
    return sq_grib_scale_of(random_next(seed) % 8 ? (double)reference : 0, (int)(random_next(seed) % 60) - 30, decimal, bits);
}

static void check_scaling(enum sq_grib_source source, const void *src, const double *x, size_t count, const struct sq_grib_scale *scale)
{
    for (size_t v = 0; v < variant_count; v++) {
        float *f = exactly(count * sizeof *f);
        double *d = exactly(count * sizeof *d);
        variants[v]->to_float32[source](src, count, scale, f);
        variants[v]->to_float64[source](src, count, scale, d);
        bool as_is = source == SQ_GRIB_BIG_FLOAT32 || source == SQ_GRIB_BIG_FLOAT64;
        for (size_t i = 0; i < count; i++) {
            double want = as_is || isnan(x[i]) ? x[i] : scaled(x[i], scale);
            assert_same(d[i], want);
            assert_same((double)f[i], (double)(float)want);
        }
        if (scale->float_exact && variants[v]->to_float32_exact[source]) {
            variants[v]->to_float32_exact[source](src, count, scale, f);
            for (size_t i = 0; i < count; i++)
                assert_same((double)f[i], (double)(float)scaled(x[i], scale));
        }
        free(f);
        free(d);
    }
}

static void integers_scale_as_in_double_whatever_they_come_as(void **state)
{
    (void)state;
    enum { COUNT = 53 };
    uint64_t seed = 4;
    for (unsigned round = 0; round < 2000; round++) {
        unsigned bits = 1 + (unsigned)(random_next(&seed) % 32);
        uint8_t u8[COUNT];
        uint16_t u16[COUNT];
        uint32_t u32[COUNT];
        int32_t i32[COUNT];
        double x8[COUNT], x16[COUNT], x32[COUNT], x31[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            u32[i] = (uint32_t)(random_next(&seed) >> (64 - bits));
            u8[i] = (uint8_t)u32[i], u16[i] = (uint16_t)u32[i], i32[i] = (int32_t)(u32[i] & INT32_MAX);
            x8[i] = u8[i], x16[i] = u16[i], x32[i] = u32[i], x31[i] = i32[i];
        }
        struct sq_grib_scale scale = random_scale(&seed, bits);
        check_scaling(SQ_GRIB_U8, u8, x8, COUNT, &scale);
        check_scaling(SQ_GRIB_U16, u16, x16, COUNT, &scale);
        check_scaling(SQ_GRIB_U32, u32, x32, COUNT, &scale);
        check_scaling(SQ_GRIB_I32, i32, x31, COUNT, &scale);
    }
}

/* R and E that make X·2^E + R as long as it may be, and one bit longer: the edge of what float may do by itself. */
static void float_is_used_up_to_where_the_double_would_round(void **state)
{
    (void)state;
    uint64_t seed = 5;
    unsigned exact = 0, refused = 0;
    for (int binary_scale = -60; binary_scale <= 60; binary_scale++)
        for (unsigned bits = 1; bits <= 26; bits++) {
            uint32_t raw = 0x3f800001; /* 1 + 2^-23: all 24 bits count */
            float reference;
            memcpy(&reference, &raw, sizeof reference);
            struct sq_grib_scale scale = sq_grib_scale_of((double)reference, binary_scale, 0, bits);
            exact += scale.float_exact;
            refused += !scale.float_exact;
            int32_t x[40];
            double wide[40];
            for (size_t i = 0; i < 40; i++) {
                x[i] = (int32_t)(random_next(&seed) >> (64 - bits));
                wide[i] = x[i];
            }
            check_scaling(SQ_GRIB_I32, x, wide, 40, &scale);
        }
    assert_true(exact > 500);
    assert_true(refused > 500);
    assert_false(sq_grib_scale_of(1, 0, 1, 8).float_exact);
    assert_false(sq_grib_scale_of(1, 0, 0, 0).float_exact);
    assert_false(sq_grib_scale_of(1e300, 0, 0, 8).float_exact);
    assert_false(sq_grib_scale_of((double)NAN, 0, 0, 8).float_exact);
    assert_true(sq_grib_scale_of(0, 100, 0, 24).float_exact);
}

static void missing_and_unscaled_numbers_pass_through(void **state)
{
    (void)state;
    const int32_t narrow[] = {0, INT32_MIN, -5, INT32_MAX, INT32_MIN, 7, 8, 9, 10};
    const int64_t wide[] = {0, INT64_MAX, -5, INT64_C(1) << 40, INT64_MIN, 7, INT64_MAX, 9, 10};
    const double narrow_x[] = {0, (double)NAN, -5, INT32_MAX, (double)NAN, 7, 8, 9, 10};
    const double wide_x[] = {0, (double)NAN, -5, 0x1p40, -0x1p63, 7, (double)NAN, 9, 10};
    const float f32[] = {0, -1.5f, 3e38f, 1e-45f, INFINITY, NAN, -0.0f, 273.15f, 1};
    const double f64[] = {0, -1.5, 3e307, 5e-324, (double)INFINITY, (double)NAN, -0.0, 273.15, 1};
    uint8_t big32[sizeof f32], big64[sizeof f64];
    double x32[9];
    struct sq_grib_scale scale = sq_grib_scale_of(273.15f, -3, 1, 0);
    for (size_t i = 0; i < 9; i++) {
        uint32_t raw32;
        uint64_t raw64;
        memcpy(&raw32, &f32[i], 4);
        memcpy(&raw64, &f64[i], 8);
        put_be(big32 + 4 * i, raw32, 4);
        put_be(big64 + 8 * i, raw64, 8);
        x32[i] = (double)f32[i];
    }
    check_scaling(SQ_GRIB_I32_MISSING, narrow, narrow_x, 9, &scale);
    check_scaling(SQ_GRIB_I64_MISSING, wide, wide_x, 9, &scale);
    check_scaling(SQ_GRIB_BIG_FLOAT32, big32, x32, 9, &scale);
    check_scaling(SQ_GRIB_BIG_FLOAT64, big64, f64, 9, &scale);
}

static void dense_values_go_where_the_ones_are(void **state)
{
    (void)state;
    enum { BYTES = 200 };
    uint64_t seed = 6;
    for (unsigned density = 0; density <= 8; density++)
        for (size_t v = 0; v < variant_count; v++) {
            uint8_t bitmap[BYTES];
            size_t ones = 0;
            for (size_t i = 0; i < BYTES; i++) {
                bitmap[i] = 0;
                for (unsigned k = 0; k < 8; k++)
                    bitmap[i] = (uint8_t)(bitmap[i] << 1 | (random_next(&seed) % 8 < density));
                ones += (size_t)__builtin_popcount(bitmap[i]);
            }
            assert_int_equal(variants[v]->count_ones(bitmap, BYTES), ones);
            assert_int_equal(variants[v]->count_ones(bitmap, 13) + variants[v]->count_ones(bitmap + 13, BYTES - 13), ones);
            float *dense = exactly(ones * sizeof *dense), *dst = exactly(8 * BYTES * sizeof *dst);
            double *dense64 = exactly(ones * sizeof *dense64), *dst64 = exactly(8 * BYTES * sizeof *dst64);
            for (size_t i = 0; i < ones; i++)
                dense64[i] = dense[i] = (float)i;
            size_t used = 99, used64 = 99;
            size_t done = variants[v]->expand_float32(bitmap, BYTES, dense, ones, dst, &used);
            assert_int_equal(variants[v]->expand_float64(bitmap, BYTES, dense64, ones, dst64, &used64), done);
            assert_int_equal(used, used64);
            assert_true(done == BYTES || ones - used < 8);
            size_t next = 0;
            for (size_t i = 0; i < 8 * done; i++) {
                bool one = bitmap[i / 8] >> (7 - i % 8) & 1;
                assert_same((double)dst[i], one ? (double)next : (double)NAN);
                assert_same(dst64[i], one ? (double)next : (double)NAN);
                next += one;
            }
            assert_int_equal(used, next);
            free(dense), free(dst), free(dense64), free(dst64);
        }
}

static void missing_points_are_the_plain_nan(void **state)
{
    (void)state;
    const uint8_t bitmap = 0x7f;
    const float dense[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t v = 0; v < variant_count; v++) {
        float dst[8];
        uint32_t bits;
        size_t used;
        variants[v]->expand_float32(&bitmap, 1, dense, 8, dst, &used);
        memcpy(&bits, dst, sizeof bits);
        assert_int_equal(bits, 0x7fc00000);
    }
}

/* The recurrence of regulation 92.9.4, in 64 bits. */
static int64_t summed(unsigned order, int64_t bias, int64_t x, int64_t *last, int64_t *difference)
{
    if (order == 0)
        return x;
    *difference = order == 2 ? *difference + x + bias : x + bias;
    *last += *difference;
    return *last;
}

static bool check_sums(unsigned order, bool has_missing, int64_t bias, int64_t last, int64_t difference, uint32_t most, uint64_t *seed)
{
    enum { COUNT = 77 };
    uint32_t x[COUNT];
    int64_t want[COUNT], at = last, step = difference;
    bool fits = true, all_fit = true;
    for (size_t i = 0; i < COUNT; i++) {
        bool gone = has_missing && random_next(seed) % 5 == 0;
        x[i] = gone ? SQ_GRIB_MISSING_U32 : (uint32_t)(random_next(seed) % ((uint64_t)most + 1));
        want[i] = gone ? INT32_MIN : summed(order, bias, x[i], &at, &step);
        fits = fits && want[i] >= INT32_MIN && want[i] <= INT32_MAX;
    }
    for (size_t v = 0; v < variant_count; v++) {
        int32_t out[COUNT + SQ_GRIB_SLACK];
        struct sq_grib_sums sums = {order, (uint64_t)bias, (uint64_t)last, (uint64_t)difference};
        bool done = variants[v]->sum_up(x, COUNT, has_missing, &sums, out);
        all_fit = all_fit && done;
        if (!done)
            continue;
        assert_true(fits);
        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(out[i], (int32_t)want[i]);
        if (order)
            assert_int_equal((int64_t)sums.last, at);
        if (order == 2)
            assert_int_equal((int64_t)sums.difference, step);
    }
    return all_fit;
}

static void differences_sum_up_or_are_refused_where_32_bits_do_not_do(void **state)
{
    (void)state;
    uint64_t seed = 7;
    unsigned done = 0, refused = 0;
    for (unsigned round = 0; round < 6000; round++) {
        unsigned order = round % 3, large = (unsigned)(random_next(&seed) % 34), bits = (unsigned)(random_next(&seed) % 32);
        uint32_t most = (uint32_t)((UINT64_C(1) << bits) - 1);
        int64_t bias = -(int64_t)(most / 2) + (int64_t)(random_next(&seed) % 5);
        int64_t last = (int64_t)(random_next(&seed) & ((UINT64_C(1) << large) - 1)), difference = (int64_t)(random_next(&seed) % 9) - 4;
        bool fits = check_sums(order, round / 3 % 2, order ? bias : 0, last, difference, most, &seed);
        done += fits;
        refused += !fits;
    }
    assert_true(done > 1000);
    assert_true(refused > 500);
    assert_true(check_sums(2, false, -3, 100000, -2, 6, &seed));
    assert_true(check_sums(1, true, -300, 1 << 20, 0, 600, &seed));
}

static uint8_t paeth_by_the_book(uint8_t a, uint8_t b, uint8_t c)
{
    int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Filter a row as an encoder does (PNG specification, 9.2). */
static void filter_row(unsigned filter, const uint8_t *row, const uint8_t *above, size_t count, unsigned step, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t a = i < step ? 0 : row[i - step], b = above[i], c = i < step ? 0 : above[i - step];
        const uint8_t guess[] = {0, a, b, (uint8_t)((a + b) / 2), paeth_by_the_book(a, b, c)};
        out[i] = (uint8_t)(row[i] - guess[filter]);
    }
}

static void png_filters_are_undone(void **state)
{
    (void)state;
    uint64_t seed = 8;
    for (unsigned filter = 0; filter < 5; filter++)
        for (unsigned step = 1; step <= 4; step++)
            for (size_t count = 0; count < 80; count++)
                for (size_t v = 0; v < variant_count; v++) {
                    uint8_t *row = exactly(count), *above = exactly(count), *filtered = exactly(count);
                    for (size_t i = 0; i < count; i++) {
                        row[i] = (uint8_t)(random_next(&seed) % 3 ? random_next(&seed) : 128 + random_next(&seed) % 4);
                        above[i] = (uint8_t)(random_next(&seed) % 3 ? random_next(&seed) : row[i]);
                    }
                    filter_row(filter, row, above, count, step, filtered);
                    assert_true(variants[v]->unfilter(filter, filtered, above, count, step));
                    assert_memory_equal(filtered, row, count);
                    assert_false(variants[v]->unfilter(5, filtered, above, count, step));
                    free(row), free(above), free(filtered);
                }
}

int main(void)
{
    find_variants();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_follows_the_processor),
        cmocka_unit_test(every_width_unpacks_from_every_bit),
        cmocka_unit_test(the_highest_codes_are_missing_where_they_are_said_to_be),
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(integers_scale_as_in_double_whatever_they_come_as),
        cmocka_unit_test(float_is_used_up_to_where_the_double_would_round),
        cmocka_unit_test(missing_and_unscaled_numbers_pass_through),
        cmocka_unit_test(dense_values_go_where_the_ones_are),
        cmocka_unit_test(missing_points_are_the_plain_nan),
        cmocka_unit_test(differences_sum_up_or_are_refused_where_32_bits_do_not_do),
        cmocka_unit_test(png_filters_are_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
