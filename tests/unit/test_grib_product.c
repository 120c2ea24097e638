/*
 * What a field means, from bytes made by hand: times, levels, members, and which fields share a product. Values are worked out from the WMO code tables by
 * hand; tests/python/test_grib_index.py has ecCodes as its oracle.
 */
#include "support/message.h"
#include "support/unit.h"

#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/product.h"
#include "format/grib/times.h"
#include <math.h>
#include <stdlib.h>

struct parted {
    struct sq_text key;
    struct sq_grib_times times;
    struct sq_grib_product product;
};

/* Edition 1. */
static struct parted part1(const uint8_t *pds, size_t size)
{
    struct parted p = {.key = SQ_TEXT_INIT};
    struct sq_grib_found found = {.frame = {.edition = 1, .section[1] = {8, size}}, .section[1] = pds};
    assert_int_equal(sq_grib_product_part(&found, &p.key, &p.times, NULL), 0);
    sq_grib_product_of(p.key.data, NULL, &p.product);
    return p;
}

static int try_part2(const uint8_t *body1, const uint8_t *body4, size_t body4_bytes, struct parted *p)
{
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_section(&t, 1, body1, 16);
    message_section(&t, 4, body4, body4_bytes);
    *p = (struct parted){.key = SQ_TEXT_INIT};
    struct sq_grib_found found = {
        .frame = {.edition = 2, .section[1] = {16, 21}, .section[4] = {37, body4_bytes + 5}},
        .section[1] = (const uint8_t *)t.data,
        .section[4] = (const uint8_t *)t.data + 21,
    };
    int status = sq_grib_product_part(&found, &p->key, &p->times, NULL);
    if (!status)
        sq_grib_product_of(p->key.data, NULL, &p->product);
    return status;
}

static struct parted part2(const uint8_t *body4, size_t body4_bytes)
{
    struct parted p;
    assert_int_equal(try_part2(BODY1, body4, body4_bytes, &p), 0);
    return p;
}

static bool same(const struct parted *a, const struct parted *b)
{
    return a->key.length == b->key.length && memcmp(a->key.data, b->key.data, a->key.length) == 0;
}

static void dates_are_seconds_since_1970(void **state)
{
    (void)state;
    const struct {
        struct sq_grib_date date;
        int64_t seconds;
    } cases[] = {
        {{1970, 1, 1, 0, 0, 0}, 0},
        {{1969, 12, 31, 23, 59, 59}, -1},
        {{2000, 2, 29, 12, 0, 0}, 951825600},
        {{2024, 3, 1, 6, 0, 0}, 1709272800},
        {{1900, 1, 1, 0, 0, 0}, -2208988800},
        {{1600, 3, 1, 0, 0, 0}, -11670912000},
        {{2022, 7, 4, 11, 0, 40}, 1656932440},
        {{2023, 12, 31, 24, 0, 0}, 1704067200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t seconds;
        assert_true(sq_grib_date_seconds(&cases[i].date, &seconds));
        assert_int_equal(seconds, cases[i].seconds);
    }
    const struct sq_grib_date bad[] = {{2023, 2, 29, 0, 0, 0}, {2023, 13, 1, 0, 0, 0}, {2023, 0, 1, 0, 0, 0}, {2023, 1, 0, 0, 0, 0},
                                       {2023, 1, 1, 25, 0, 0}, {2023, 1, 1, 0, 60, 0}, {1900, 2, 29, 0, 0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sq_grib_date_seconds(&bad[i], &(int64_t){0}));
}

static void units_of_time_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    for (unsigned edition = 1; edition <= 2; edition++)
        for (unsigned unit = 0; unit < 256; unit++) {
            bool exists = unit <= 7 || (unit >= 10 && unit <= 12) || (edition == 1 ? unit == 13 || unit == 14 || unit == 254 : unit == 13);
            assert_int_equal(sq_grib_step_seconds((uint8_t)edition, (uint8_t)unit, 1, 0, &(int64_t){0}), exists);
        }
    assert_false(sq_grib_step_seconds(2, 7, INT32_MAX, 0, &(int64_t){0}));
    assert_false(sq_grib_step_seconds(2, 2, INT64_MAX, 0, &(int64_t){0}));
}

static void a_short_section_is_refused_for_every_template(void **state)
{
    (void)state;
    uint8_t body4[100] = {0};
    for (unsigned number = 0; number < 300; number++) {
        put_be(body4 + 2, number, 2);
        struct parted p;
        size_t least = 0;
        for (size_t size = 4; size <= sizeof body4; size++) {
            uint8_t *exact = malloc(size); /* so that a read behind its end is seen */
            memcpy(exact, body4, size);
            int status = try_part2(BODY1, exact, size, &p);
            sq_text_done(&p.key);
            free(exact);
            assert_true(status == 0 || status == SQUALL_ECORRUPT);
            assert_false(status && least); /* once long enough, always */
            if (!status && !least)
                least = size;
        }
        assert_true(least >= 6);
    }
}

/* Template 4.8, total precipitation: an interval of `length` from `begin` on, in hours. */
static void interval_make(uint8_t ret[53], uint8_t begin, uint8_t length)
{
    memcpy(ret, BODY4, sizeof BODY4);
    ret[3] = 8;
    ret[4] = 1;
    ret[5] = 8;
    ret[16] = begin;
    const uint8_t interval[24] = {0x07, 0xe8, 3, 1, 6, 0, 0, 1, 0, 0, 0, 9, 1, 2, 1, 0, 0, 0, length, 255, 0, 0, 0, 0};
    memcpy(ret + 29, interval, sizeof interval);
    ret[33] = (uint8_t)(6 + begin + length);
}

static void intervals_of_any_length_share_a_product_but_for_the_named_hours(void **state)
{
    (void)state;
    uint8_t a4[53], b4[53];
    interval_make(a4, 0, 2);
    struct parted a = part2(a4, sizeof a4);
    assert_int_equal(a.times.step_begin_s, 0);
    assert_int_equal(a.times.step_end_s, 7200);
    assert_int_equal(a.product.step_type, SQ_GRIB_ACCUM);
    for (uint8_t begin = 0; begin <= 12; begin += 6)
        for (uint8_t length = 1; length < 30; length++) {
            interval_make(b4, begin, length);
            struct parted b = part2(b4, sizeof b4);
            bool named = length == 1 || length == 3 || length == 6 || length == 24;
            assert_int_equal(same(&a, &b), !named);
            assert_int_equal(b.times.step_begin_s, begin * 3600);
            assert_int_equal(b.times.step_end_s, (begin + length) * 3600);
            assert_int_equal(b.product.raw.section4[34 + 12 + 6], named ? length : 0);
            sq_text_done(&b.key);
        }
    sq_text_done(&a.key);
}

static void the_end_of_the_interval_counts_where_its_length_says_nothing(void **state)
{
    (void)state;
    uint8_t body4[53];
    interval_make(body4, 1, 5);
    for (unsigned kind = 0; kind < 3; kind++) {
        put_be(body4 + 44, kind == 0 ? 0 : kind == 1 ? UINT32_MAX : 4294967276, 4);
        struct parted p = part2(body4, sizeof body4);
        assert_int_equal(p.times.step_begin_s, 3600);
        assert_int_equal(p.times.step_end_s, 6 * 3600);
        assert_null(p.product.unsupported);
        sq_text_done(&p.key);
    }
}

static void averages_over_runs_keep_what_they_are_over(void **state)
{
    (void)state;
    uint8_t body4[53];
    struct parted months[2];
    for (unsigned i = 0; i < 2; i++) {
        interval_make(body4, 6, i ? 31 : 30);
        body4[41] = 0; /* average */
        body4[42] = 1; /* of runs */
        body4[43] = 2; /* days */
        months[i] = part2(body4, sizeof body4);
        assert_int_equal(months[i].times.step_begin_s, 6 * 3600);
        assert_int_equal(months[i].times.step_end_s, 6 * 3600);
        assert_int_equal(months[i].product.step_type, SQ_GRIB_AVGD);
    }
    assert_false(same(&months[0], &months[1]));
    sq_text_done(&months[0].key);
    sq_text_done(&months[1].key);
}

static void what_cannot_be_dated_is_kept_and_said(void **state)
{
    (void)state;
    uint8_t body1[16], body4[29];
    struct parted p;
    memcpy(body1, BODY1, sizeof body1);
    memcpy(body4, BODY4, sizeof body4);
    body1[9] = 13;
    assert_int_equal(try_part2(body1, body4, sizeof body4, &p), 0);
    assert_true(p.product.raw.undated);
    assert_non_null(p.product.unsupported);
    assert_int_equal(p.product.raw.section1[14], 13);
    sq_text_done(&p.key);
    body4[12] = 99; /* unit of time */
    p = part2(body4, sizeof body4);
    assert_true(p.product.raw.undated);
    assert_int_equal(p.times.reference_time_s, 1709272800);
    assert_int_equal(p.times.step_end_s, 0);
    sq_text_done(&p.key);
}

static void templates_that_are_not_understood_are_named(void **state)
{
    (void)state;
    uint8_t body4[60] = {0};
    for (unsigned number = 0; number < 1200; number++) {
        put_be(body4 + 2, number, 2);
        body4[4] = 3;
        body4[5] = 4;
        body4[18] = 1;
        struct parted p = part2(body4, sizeof body4);
        bool due = number <= 2 || (number >= 5 && number <= 12) || number == 15;
        assert_int_equal(p.product.unsupported == NULL, due);
        assert_int_equal(p.product.template_number, number);
        assert_int_equal(p.product.category, 3);
        assert_int_equal(p.product.number, 4);
        sq_text_done(&p.key);
    }
}

static void a_template_that_is_not_known_is_told_by_its_number(void **state)
{
    (void)state;
    uint8_t body4[29];
    memcpy(body4, BODY4, sizeof body4);
    put_be(body4 + 2, 4321, 2);
    struct parted p = part2(body4, sizeof body4);
    struct sq_arena *arena = sq_arena_new();
    struct sq_grib_product product;
    sq_grib_product_of(p.key.data, arena, &product);
    assert_non_null(strstr(product.unsupported, "4321"));
    sq_arena_free(arena);
    sq_text_done(&p.key);
}

/* A PDS of a temperature at 850 hPa, 2024-03-01 06:00, at P1 = 6 h. */
static const uint8_t PDS[28] = {0, 0, 28, 2, 7, 81, 255, 0x80, 11, 100, 850 >> 8, 850 & 255, 24, 3,
                                1, 6, 0,  1, 6, 12, 0,   0,    0,  0,   21,       0,         0,  2};

static void levels_of_edition_1_follow_code_table_3(void **state)
{
    (void)state;
    const struct {
        uint8_t type;
        double first, second; /* of the octets 3 and 5, in the units of code table 4.5; NaN: none */
    } cases[] = {
        {1, NAN, NAN},           {100, 77300, NAN},  {101, 3000, 5000},  {102, NAN, NAN},       {103, 773, NAN},   {104, 300, 500},
        {105, 773, NAN},         {106, 300, 500},    {107, 0.0773, NAN}, {108, 0.03, 0.05},     {109, 773, NAN},   {110, 3, 5},
        {111, 7.73, NAN},        {112, 0.03, 0.05},  {113, 773, NAN},    {114, 472, 470},       {115, 77300, NAN}, {116, 300, 500},
        {117, 0.000000773, NAN}, {119, 0.0773, NAN}, {120, 0.03, 0.05},  {121, 109700, 109500}, {125, 7.73, NAN},  {128, 1.097, 1.095},
        {141, 3000, 109500},     {160, 773, NAN},    {20, 7.73, NAN},    {210, 773, NAN},       {200, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t pds[28];
        memcpy(pds, PDS, sizeof pds);
        pds[9] = cases[i].type;
        pds[10] = 3;
        pds[11] = 5;
        struct parted p = part1(pds, sizeof pds);
        const struct sq_grib_surface *surfaces[2] = {&p.product.first, &p.product.second};
        const double values[2] = {cases[i].first, cases[i].second};
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(surfaces[k]->has_value, !isnan(values[k]));
            double value = surfaces[k]->value * pow(10, -surfaces[k]->scale);
            if (surfaces[k]->has_value && fabs(value - values[k]) > 1e-12 * fabs(values[k]))
                fail_msg("level type %u: %g, not %g", cases[i].type, value, values[k]);
        }
        sq_text_done(&p.key);
    }
}

static void levels_of_all_ones_are_missing_in_edition_1(void **state)
{
    (void)state;
    static const struct {
        uint8_t type, top, bottom;
        bool first, second;
    } cases[] = {
        {112, 100, 255, true, false},  {112, 255, 100, false, true}, {112, 255, 255, false, false}, {112, 254, 254, true, true},
        {121, 255, 0, false, true},    {121, 0, 255, true, false},   {141, 3, 255, true, false},    {105, 0, 255, true, false},
        {105, 255, 255, false, false}, {105, 255, 254, true, false}, {100, 255, 255, false, false}, {236, 0, 255, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t pds[28];
        memcpy(pds, PDS, sizeof pds);
        pds[9] = cases[i].type;
        pds[10] = cases[i].top;
        pds[11] = cases[i].bottom;
        struct parted p = part1(pds, sizeof pds);
        assert_int_equal(p.product.first.has_value, cases[i].first);
        assert_int_equal(p.product.second.has_value, cases[i].second);
        sq_text_done(&p.key);
    }
}

/* Those that ecCodes has no step for. P1 is 6 h, P2 is 12 h, 4 are included. */
static void rarer_time_ranges_follow_code_table_5(void **state)
{
    (void)state;
    const struct {
        uint8_t range;
        int begin, end;
        enum sq_grib_step_type type;
    } cases[] = {
        {6, -6, -12, SQ_GRIB_AVG}, {7, -6, 12, SQ_GRIB_AVG},    {114, 6, 6, SQ_GRIB_ACCUM},
        {115, 6, 42, SQ_GRIB_AVG}, {116, 6, 42, SQ_GRIB_ACCUM}, {117, 6, 6, SQ_GRIB_AVG},
        {118, 6, 6, SQ_GRIB_COV},  {119, 6, 42, SQ_GRIB_SD},    {125, 6, 42, SQ_GRIB_SD},
    };
    uint8_t pds[28];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(pds, PDS, sizeof pds);
        pds[20] = cases[i].range;
        pds[22] = 4;
        struct parted p = part1(pds, sizeof pds);
        assert_int_equal(p.times.step_begin_s, cases[i].begin * 3600);
        assert_int_equal(p.times.step_end_s, cases[i].end * 3600);
        assert_int_equal(p.product.step_type, cases[i].type);
        assert_null(p.product.unsupported);
        sq_text_done(&p.key);
    }
    pds[20] = 99;
    struct parted p = part1(pds, sizeof pds);
    assert_non_null(p.product.unsupported);
    sq_text_done(&p.key);
}

static void edition_1_products_leave_out_times_and_packing(void **state)
{
    (void)state;
    struct parted a = part1(PDS, sizeof PDS);
    /* octets that differ from field to field of one product, and one that makes another */
    const uint8_t free_octets[] = {6, 7, 12, 13, 14, 15, 16, 18, 19, 24, 27}, telling[] = {3, 4, 5, 8, 9, 10, 11, 20, 25};
    for (unsigned kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < (kind ? sizeof telling : sizeof free_octets); i++) {
            uint8_t pds[28];
            memcpy(pds, PDS, sizeof pds);
            unsigned octet = kind ? telling[i] : free_octets[i];
            pds[octet] = octet == 7 ? 0xc0 : (uint8_t)(pds[octet] == 1 ? 2 : 1);
            struct parted b = part1(pds, sizeof pds);
            if (same(&a, &b) == (kind == 1))
                fail_msg("octet %u", octet);
            sq_text_done(&b.key);
        }
    sq_text_done(&a.key);
}

static void ncep_members_of_edition_1_are_known(void **state)
{
    (void)state;
    uint8_t pds[45] = {0};
    struct parted p[2];
    memcpy(pds, PDS, sizeof PDS);
    pds[40] = 1;
    pds[41] = 3;
    for (unsigned i = 0; i < 2; i++) {
        pds[42] = (uint8_t)(4 + i);
        p[i] = part1(pds, sizeof pds);
        assert_int_equal(p[i].times.number, 4 + i);
        assert_int_equal(p[i].product.ensemble_kind, 3);
    }
    assert_true(same(&p[0], &p[1]));
    sq_text_done(&p[0].key);
    sq_text_done(&p[1].key);
}

static void ensemble_means_are_no_members(void **state)
{
    (void)state;
    uint8_t pds[52] = {0};
    memcpy(pds, PDS, sizeof PDS);
    pds[4] = 98;
    pds[40] = 1;
    pds[50] = 51;
    for (unsigned type = 17; type <= 18; type++) {
        pds[42] = (uint8_t)type;
        struct parted p = part1(pds, sizeof pds);
        assert_int_equal(p.times.number, -1);
        assert_int_equal(p.product.ensemble_kind, -1);
        assert_int_equal(p.product.derived_forecast, type == 17 ? 0 : 4);
        sq_text_done(&p.key);
    }
}

static void any_bytes_make_some_product(void **state)
{
    (void)state;
    uint8_t bytes[120];
    srand(7);
    for (unsigned round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(rand() >> 4);
        size_t size = 28 + (size_t)rand() % (sizeof bytes - 28);
        uint8_t *exact = malloc(size);
        memcpy(exact, bytes, size);
        struct parted p = part1(exact, size);
        assert_non_null(sq_grib_step_type_name(p.product.step_type));
        sq_text_done(&p.key);
        put_be(exact + 2, (unsigned)rand() % 80, 2);
        if (!try_part2(bytes, exact, size, &p))
            assert_true(p.times.step_end_s - p.times.step_begin_s >= 0 || p.product.raw.undated);
        sq_text_done(&p.key);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_seconds_since_1970),
        cmocka_unit_test(units_of_time_that_do_not_exist_are_refused),
        cmocka_unit_test(a_short_section_is_refused_for_every_template),
        cmocka_unit_test(intervals_of_any_length_share_a_product_but_for_the_named_hours),
        cmocka_unit_test(the_end_of_the_interval_counts_where_its_length_says_nothing),
        cmocka_unit_test(averages_over_runs_keep_what_they_are_over),
        cmocka_unit_test(what_cannot_be_dated_is_kept_and_said),
        cmocka_unit_test(templates_that_are_not_understood_are_named),
        cmocka_unit_test(a_template_that_is_not_known_is_told_by_its_number),
        cmocka_unit_test(levels_of_edition_1_follow_code_table_3),
        cmocka_unit_test(levels_of_all_ones_are_missing_in_edition_1),
        cmocka_unit_test(rarer_time_ranges_follow_code_table_5),
        cmocka_unit_test(edition_1_products_leave_out_times_and_packing),
        cmocka_unit_test(ncep_members_of_edition_1_are_known),
        cmocka_unit_test(ensemble_means_are_no_members),
        cmocka_unit_test(any_bytes_make_some_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
