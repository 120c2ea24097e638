/* Complex packing and spatial differencing, encoded here as regulation 92.9.4 and templates 5.2, 5.3, 7.2 and 7.3 say, and read back. */
#include "support/unit.h"

#include "support/field.h"
#include "sys/cpu.h"
#include <math.h>

static struct sq_grib_scratch *scratch;

/* How a field is to be encoded. */
struct plan {
    unsigned order, missing; /* of differences; missing value management */
    unsigned longest;        /* group */
    unsigned width_base, length_base, length_step;
    unsigned reference_bits; /* 0: as many as it takes */
    bool bitmap;             /* besides, every seventh point has no value at all */
};

enum { MOST = 20000, GONE = 1, GONE_2 = 2 };

struct group {
    size_t start, length;
    uint64_t reference;
    unsigned width;
};

static unsigned bits_for(uint64_t x)
{
    return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
}

/* Differences over the values that are there, less the least of them; *extra: first values and that least. */
static void take_differences(const int64_t *x, const uint8_t *gone, size_t count, unsigned order, uint64_t *y, int64_t extra[3])
{
    int64_t before[2] = {0, 0}, least = INT64_MAX;
    unsigned seen = 0;
    int64_t *step = calloc(count + 1, sizeof *step);
    for (size_t i = 0; i < count; i++) {
        if (gone[i])
            continue;
        step[i] = order == 0 ? x[i] : order == 1 ? x[i] - before[0] : x[i] - 2 * before[0] + before[1];
        before[1] = before[0];
        before[0] = x[i];
        if (seen < order)
            extra[seen] = x[i];
        else if (step[i] < least)
            least = step[i];
        seen++;
    }
    if (least == INT64_MAX || order == 0)
        least = 0;
    extra[order] = least;
    seen = 0;
    for (size_t i = 0; i < count; i++) {
        y[i] = 0;
        if (!gone[i] && seen++ >= order)
            y[i] = (uint64_t)(step[i] - least);
    }
    free(step);
}

static struct group describe(const uint64_t *y, const uint8_t *gone, size_t start, size_t length, unsigned missing)
{
    struct group g = {start, length, UINT64_MAX, 0};
    uint64_t most = 0;
    bool any_gone = false, any = false;
    for (size_t i = start; i < start + length; i++) {
        any_gone = any_gone || gone[i];
        if (gone[i])
            continue;
        any = true;
        g.reference = y[i] < g.reference ? y[i] : g.reference;
        most = y[i] > most ? y[i] : most;
    }
    if (any && (most > g.reference || any_gone))
        g.width = bits_for(most - g.reference + (any_gone || missing ? missing : 0));
    return g; /* without any value: reference UINT64_MAX, which stands for its missing code */
}

/* A field of the values X (not scaled), in groups of random lengths. */
static struct field complex_make(const int64_t *x, const uint8_t *gone, size_t count, const struct plan *plan, const uint8_t *mask,
                                 size_t point_count, uint64_t *seed)
{
    uint64_t *y = malloc((count + 1) * sizeof *y), most_reference = 0, most_length = 0;
    struct group *groups = malloc((count + 1) * sizeof *groups);
    size_t group_count = 0, start = 0;
    int64_t extra[3] = {0};
    unsigned most_width = 0;
    take_differences(x, gone, count, plan->order, y, extra);
    while (start < count) {
        size_t length = plan->length_base + plan->length_step * (size_t)(random_next(seed) % plan->longest);
        length = length == 0 ? plan->length_step : length;
        length = length > count - start ? count - start : length;
        struct group g = describe(y, gone, start, length, plan->missing);
        if (g.width < plan->width_base) {
            g.width = plan->width_base;
            g.reference = g.reference == UINT64_MAX ? 0 : g.reference;
        }
        most_width = g.width > most_width ? g.width : most_width;
        most_length = length > most_length ? length : most_length;
        most_reference = g.reference != UINT64_MAX && g.reference > most_reference ? g.reference : most_reference;
        groups[group_count++] = g;
        start += length;
    }
    unsigned bits = plan->reference_bits ? plan->reference_bits : bits_for(most_reference + plan->missing);
    unsigned width_bits = bits_for(most_width > plan->width_base ? most_width - plan->width_base : 0);
    unsigned length_bits = bits_for(most_length / plan->length_step), extra_bytes = 1;
    for (unsigned k = 0; k <= plan->order; k++)
        while (extra_bytes < 8 && (uint64_t)llabs(extra[k]) >> (8 * extra_bytes - 1))
            extra_bytes++;

    size_t size = 64 + group_count * 16 + count * 5;
    uint8_t *data = calloc(1, size), more[29] = {0};
    uint64_t at = 0;
    for (unsigned k = 0; plan->order && k <= plan->order; k++) {
        bool minus = k == plan->order && extra[k] < 0;
        put_bits(data, &at, (uint64_t)llabs(extra[k]) | (minus ? UINT64_C(1) << (8 * extra_bytes - 1) : 0), 8 * extra_bytes);
    }
    for (size_t g = 0; g < group_count; g++) {
        uint64_t most = (UINT64_C(1) << bits) - 1;
        bool second = plan->missing == 2 && gone[groups[g].start] == GONE_2;
        put_bits(data, &at, groups[g].reference == UINT64_MAX ? most - second : groups[g].reference, bits);
    }
    at = (at + 7) / 8 * 8;
    for (size_t g = 0; g < group_count; g++)
        put_bits(data, &at, groups[g].width - plan->width_base, width_bits);
    at = (at + 7) / 8 * 8;
    for (size_t g = 0; g < group_count; g++) {
        bool last = g == group_count - 1;
        put_bits(data, &at, last ? 0 : (groups[g].length - plan->length_base) / plan->length_step, length_bits);
    }
    at = (at + 7) / 8 * 8;
    for (size_t g = 0; g < group_count; g++)
        for (size_t i = groups[g].start; i < groups[g].start + groups[g].length; i++) {
            uint64_t most = (UINT64_C(1) << groups[g].width) - 1;
            put_bits(data, &at, gone[i] ? most - (gone[i] == GONE_2) : y[i] - groups[g].reference, groups[g].width);
        }
    more[1] = 1;
    more[2] = (uint8_t)plan->missing;
    put_be(more + 11, group_count, 4);
    more[15] = (uint8_t)plan->width_base;
    more[16] = (uint8_t)width_bits;
    put_be(more + 17, plan->length_base, 4);
    more[21] = (uint8_t)plan->length_step;
    put_be(more + 22, group_count ? groups[group_count - 1].length : 0, 4);
    more[26] = (uint8_t)length_bits;
    more[27] = (uint8_t)plan->order;
    more[28] = (uint8_t)extra_bytes;

    struct field f = field_make(2, 1, (uint32_t)point_count);
    field_add5(&f, (uint32_t)count, plan->order ? 3 : 2, 250.5f, -5, 1, (uint8_t)bits, more, plan->order ? 29 : 27);
    field_add6(&f, mask, point_count);
    field_add7(&f, data, (size_t)((at + 7) / 8));
    free(y), free(groups), free(data);
    return f;
}

static double value_of(int64_t x)
{
    volatile double product = ldexp((double)x, -5), sum = product + 250.5, tenth = 1.0 / 10, value = sum * tenth;
    return value;
}

static void check_round_trip(const int64_t *x, const uint8_t *gone, size_t count, const struct plan *plan, uint64_t *seed)
{
    static uint8_t mask[2 * MOST];
    static float narrow[2 * MOST];
    static double wide[2 * MOST];
    size_t points = count;
    if (plan->bitmap)
        for (size_t i = points = 0; i < count; points++) {
            mask[points] = points % 7 != 3;
            i += mask[points];
        }
    struct field f = complex_make(x, gone, count, plan, plan->bitmap ? mask : NULL, points, seed);
    struct squall_error err = SQUALL_ERROR_INIT;
    for (unsigned features = 0; features < 2; features++) {
        sq_cpu_limit(features ? ~0u : 0);
        if (field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, narrow, &err) ||
            field_decode(&f, false, scratch, SQ_GRIB_FLOAT64, wide, &err))
            fail_msg("order %u, missing %u, %zu values: %s", plan->order, plan->missing, count, err.message);
        for (size_t p = 0, i = 0; p < points; p++) {
            bool has_value = (!plan->bitmap || mask[p]) && !gone[i];
            double want = has_value ? value_of(x[i]) : (double)NAN;
            float want32 = (float)want;
            if (has_value ? memcmp(&wide[p], &want, 8) || memcmp(&narrow[p], &want32, 4) : !(isnan(wide[p]) && isnan(narrow[p])))
                fail_msg("order %u, missing %u, value %zu of %zu: %.17g, where %.17g is right", plan->order, plan->missing, i, count,
                         wide[p], want);
            i += !plan->bitmap || mask[p];
        }
    }
    field_done(&f);
}

/* Smooth with noise, and stretches of one value, which make groups of no bits. */
static void make_values(int64_t *x, uint8_t *gone, size_t count, const struct plan *plan, int64_t scale, uint64_t *seed)
{
    int64_t at = (int64_t)(random_next(seed) % (uint64_t)scale);
    for (size_t i = 0; i < count; i++) {
        bool flat = i / 64 % 3 == 1;
        if (!flat)
            at += (int64_t)(random_next(seed) % (uint64_t)(scale / 50 + 2)) - scale / 100;
        at = at < 0 ? 0 : at;
        x[i] = at;
        gone[i] = 0;
        if (plan->missing && (i / 300 % 4 == 2 || random_next(seed) % 11 == 0))
            gone[i] = plan->missing == 2 && i / 300 % 2 ? GONE_2 : GONE;
    }
}

static void groups_of_all_kinds_come_back(void **state)
{
    (void)state;
    static int64_t x[MOST];
    static uint8_t gone[MOST];
    uint64_t seed = 1;
    const size_t counts[] = {1, 2, 3, 9, 100, 2047, 2048, 2049, 9000};
    for (unsigned order = 0; order <= 2; order++)
        for (unsigned missing = 0; missing <= 2; missing++)
            for (unsigned shape = 0; shape < 6; shape++)
                for (size_t c = 0; c < 9; c++) {
                    struct plan plan = {.order = order, .missing = missing, .longest = 40, .length_step = 1, .bitmap = shape % 2};
                    if (shape / 2 == 1)
                        plan.width_base = 3, plan.length_base = 5, plan.length_step = 4;
                    if (shape / 2 == 2)
                        plan.longest = 3000;
                    make_values(x, gone, counts[c], &plan, shape / 2 ? 4000 : 300000, &seed);
                    check_round_trip(x, gone, counts[c], &plan, &seed);
                }
}

/* Values that 32 bits do not hold, reached slowly or at once, are done in 64. */
static void large_values_come_back(void **state)
{
    (void)state;
    static int64_t x[MOST];
    static uint8_t gone[MOST];
    uint64_t seed = 2;
    for (unsigned order = 0; order <= 2; order++)
        for (unsigned missing = 0; missing <= 2; missing++)
            for (unsigned bits = 28; bits <= (order == 0 ? 31u : missing ? 34u : 40u); bits += 3) {
                struct plan plan = {.order = order, .missing = missing, .longest = 30, .length_step = 1};
                make_values(x, gone, 5000, &plan, 1000, &seed);
                for (size_t i = 0; i < 5000; i++) /* a slow rise up to 2^bits */
                    x[i] += (int64_t)((i * (UINT64_C(1) << bits)) / 5000);
                check_round_trip(x, gone, 5000, &plan, &seed);
                if (bits > 31)
                    continue;
                for (size_t i = 0; i < 5000; i++) /* jumps */
                    x[i] = (int64_t)(random_next(&seed) % (UINT64_C(1) << (order == 2 ? bits - 2 : order ? bits - 1 : bits)));
                check_round_trip(x, gone, 5000, &plan, &seed);
            }
}

static void references_of_32_bits_come_back(void **state)
{
    (void)state;
    static int64_t x[300];
    static uint8_t gone[300];
    uint64_t seed = 3;
    for (unsigned missing = 0; missing <= 2; missing++) {
        struct plan plan = {.missing = missing, .longest = 10, .length_step = 1, .reference_bits = 32};
        make_values(x, gone, 300, &plan, 1000, &seed);
        for (size_t i = 0; i < 300; i++)
            x[i] += INT64_C(0xffff0000) - 2000;
        check_round_trip(x, gone, 300, &plan, &seed);
    }
}

static void every_first_value_may_be_missing(void **state)
{
    (void)state;
    int64_t x[20];
    uint8_t gone[20];
    uint64_t seed = 4;
    for (unsigned order = 1; order <= 2; order++)
        for (size_t first = 0; first <= 20; first++) {
            struct plan plan = {.order = order, .missing = 1, .longest = 3, .length_step = 1};
            for (size_t i = 0; i < 20; i++) {
                x[i] = 100 + (int64_t)(i * i);
                gone[i] = i < first || i % 4 == 2;
            }
            check_round_trip(x, gone, 20, &plan, &seed);
        }
}

/* A template-3 field, its octets set one by one: more[k] is octet 21 + k. */
static struct field by_hand(uint32_t count, uint8_t bits, const uint8_t more[29], const void *data, size_t data_bytes)
{
    struct field f = field_make(2, 1, count);
    field_add5(&f, count, 3, 7, 0, 1, bits, more, 29);
    field_add6(&f, NULL, count);
    field_add7(&f, data, data_bytes);
    return f;
}

static void check_values(struct field f, const double *want)
{
    double got[16];
    struct squall_error err = SQUALL_ERROR_INIT;
    if (field_decode(&f, false, scratch, SQ_GRIB_FLOAT64, got, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < f.grid.point_count; i++)
        assert_true(got[i] == want[i]);
    field_done(&f);
}

static void constant_fields_are_the_reference_as_it_is(void **state)
{
    (void)state;
    const double sevens[] = {7, 7, 7, 7};
    uint8_t more[29] = {0};
    memset(more + 15, 0x99, 14); /* no groups: nothing else counts */
    check_values(by_hand(4, 0, more, NULL, 0), sevens);
    check_values(by_hand(4, 12, more, NULL, 0), sevens);
    memset(more + 15, 0, 14);
    more[14] = 1;
    more[25] = 4; /* one group of four values, none of which takes a bit */
    more[27] = 1;
    more[28] = 1;
    check_values(by_hand(4, 0, more, "\0\0", 2), sevens);
}

static void references_of_no_bits_do_not_make_a_field_constant(void **state)
{
    (void)state;
    uint8_t more[29] = {0};
    more[14] = 1;
    more[15] = 8; /* one group of four values of 8 bits, from 0 on */
    more[25] = 4;
    const double want[] = {(7 + 1.0) * (1.0 / 10), (7 + 2.0) * (1.0 / 10), (7 + 9.0) * (1.0 / 10), 7 * (1.0 / 10)};
    check_values(by_hand(4, 0, more, "\1\2\11\0", 4), want);
    /* differences of no bits: 3, 5, 7, 9 */
    const double ramp[] = {(7 + 3.0) * (1.0 / 10), (7 + 5.0) * (1.0 / 10), (7 + 7.0) * (1.0 / 10), (7 + 9.0) * (1.0 / 10)};
    more[15] = 0;
    more[27] = 1;
    more[28] = 1;
    check_values(by_hand(4, 0, more, "\3\2", 2), ramp);
}

static void check_refused(struct field f, enum squall_status status, const char *message)
{
    float dst[16];
    struct squall_error err = SQUALL_ERROR_INIT;
    int got = field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, dst, &err);
    if (got != (int)status || !strstr(err.message, message))
        fail_msg("%d \"%s\", where %d \"%s\" is right", got, err.message, status, message);
    field_done(&f);
}

static void groups_must_hold_what_the_header_says(void **state)
{
    (void)state;
    uint8_t good[29] = {0}, bad[29];
    good[14] = 2; /* groups of 8-bit references, 4-bit widths, 3-bit lengths */
    good[16] = 4;
    good[21] = 1;
    good[25] = 2; /* the last one's length */
    good[26] = 3;
    const uint8_t data[] = {10, 20, 0x48, 2 << 5, 0x12, 1, 2}; /* groups of 2 values: 4 bits each, 8 bits each */
    const double want[] = {(7 + 11.0) * (1.0 / 10), (7 + 12.0) * (1.0 / 10), (7 + 21.0) * (1.0 / 10), (7 + 22.0) * (1.0 / 10)};
    check_values(by_hand(4, 8, good, data, sizeof data), want);
    for (size_t size = 0; size < sizeof data; size++)
        check_refused(by_hand(4, 8, good, data, size), SQUALL_ECORRUPT, "end behind section 7");
    check_refused(by_hand(5, 8, good, data, sizeof data), SQUALL_ECORRUPT, "fewer values than the header says");
    check_refused(by_hand(3, 8, good, data, sizeof data), SQUALL_ECORRUPT, "more values than the header says");
    const struct {
        size_t at;
        uint8_t value;
        enum squall_status status;
        const char *message;
    } cases[] = {{2, 3, SQUALL_EUNSUPPORTED, "management 3"},
                 {27, 3, SQUALL_EUNSUPPORTED, "order 3"},
                 {28, 9, SQUALL_ECORRUPT, "more bits than a number"},
                 {16, 33, SQUALL_ECORRUPT, "more bits than a number"},
                 {26, 33, SQUALL_ECORRUPT, "more bits than a number"},
                 {15, 29, SQUALL_ECORRUPT, "more than 32 bits"},
                 {14, 4, SQUALL_ECORRUPT, "end behind section 7"},
                 {11, 255, SQUALL_ECORRUPT, "more groups than values"},
                 {22, 255, SQUALL_ECORRUPT, "more values than the header says"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(bad, good, sizeof bad);
        bad[cases[i].at] = cases[i].value;
        check_refused(by_hand(4, 8, bad, data, sizeof data), cases[i].status, cases[i].message);
    }
}

static void a_short_template_is_refused(void **state)
{
    (void)state;
    uint8_t more[29] = {0};
    for (size_t size = 0; size < 29; size++) {
        struct field f = field_make(2, 1, 4);
        field_add5(&f, 4, 3, 0, 0, 0, 8, more, size);
        field_add6(&f, NULL, 4);
        field_add7(&f, "abcd", 4);
        check_refused(f, SQUALL_ECORRUPT, "section 5 is too short for its template");
    }
}

int main(void)
{
    scratch = sq_grib_scratch_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_all_kinds_come_back),
        cmocka_unit_test(large_values_come_back),
        cmocka_unit_test(references_of_32_bits_come_back),
        cmocka_unit_test(every_first_value_may_be_missing),
        cmocka_unit_test(constant_fields_are_the_reference_as_it_is),
        cmocka_unit_test(references_of_no_bits_do_not_make_a_field_constant),
        cmocka_unit_test(groups_must_hold_what_the_header_says),
        cmocka_unit_test(a_short_template_is_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sq_grib_scratch_free(scratch);
    return failed;
}
