/* What fields are called: the choice among ecCodes' entries by conditions, and what squall adds where they say nothing. */
#include "support/unit.h"

#include "format/grib/keys.h"
#include "format/grib/names.h"
#include "format/grib/names_tables.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { ECMWF = 98, NCEP = 7, MET_OFFICE = 74, DWD = 78 };

/* A product of edition 2 on template 0 or 8, with its sections. */
struct sample {
    uint8_t section1[21], section4[58];
    struct sq_grib_product product;
};

static void put(uint8_t *at, unsigned size, uint32_t value)
{
    for (unsigned i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * (size - 1 - i));
}

static void surface(struct sample *s, unsigned which, uint8_t type, int scale, uint32_t value)
{
    uint8_t *at = s->section4 + 22 + 6 * which;
    at[0] = type;
    at[1] = (uint8_t)(scale < 0 ? 128 - scale : scale);
    put(at + 2, 4, value);
    struct sq_grib_surface *parsed = which ? &s->product.second : &s->product.first;
    *parsed = (struct sq_grib_surface){type, (int8_t)scale, true, (int32_t)value};
}

static void no_surface(struct sample *s, unsigned which, uint8_t type)
{
    surface(s, which, type, 0, UINT32_MAX);
    s->section4[22 + 6 * which + 1] = 0xff;
    *(which ? &s->product.second : &s->product.first) = (struct sq_grib_surface){type, -127, false, 0};
}

static void begin(struct sample *s, unsigned centre, unsigned discipline, unsigned category, unsigned number, unsigned template)
{
    *s = (struct sample){0};
    put(s->section1 + 5, 2, centre);
    s->section1[9] = 5; /* tables version */
    put(s->section4 + 7, 2, template);
    s->section4[9] = (uint8_t)category;
    s->section4[10] = (uint8_t)number;
    no_surface(s, 0, 1);
    no_surface(s, 1, 255);
    s->section4[41] = 1; /* time ranges */
    s->product.category = (uint8_t)category;
    s->product.number = (uint8_t)number;
    s->product.raw = (struct sq_grib_raw){
        .edition = 2,
        .discipline = (uint8_t)discipline,
        .section1 = s->section1,
        .section1_bytes = sizeof s->section1,
        .section4 = s->section4,
        .section4_bytes = template == 8 ? 58 : 34,
    };
}

static struct sq_grib_names names_of(const struct sample *s)
{
    struct sq_grib_names names;
    sq_grib_names_of(&s->product, &names);
    return names;
}

static void two_metre_temperature_is_told_from_temperature_by_its_level(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, ECMWF, 0, 0, 0, 0);
    surface(&s, 0, 103, 0, 2);
    struct sq_grib_names names = names_of(&s);
    assert_int_equal(names.param_id, 167);
    assert_string_equal(names.short_name, "2t");
    assert_string_equal(names.name, "2 metre temperature");
    assert_string_equal(names.units, "K");
    assert_string_equal(names.cf_name, "air_temperature");
    assert_string_equal(names.cf_var_name, "t2m");
    assert_string_equal(names.level_type, "heightAboveGround");

    surface(&s, 0, 103, 0, 80);
    assert_string_equal(names_of(&s).short_name, "t");
}

static void a_missing_value_is_no_zero(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, ECMWF, 0, 0, 0, 0);
    no_surface(&s, 0, 103);
    assert_string_equal(names_of(&s).short_name, "t");
}

static void an_accumulation_has_another_name_than_a_rate(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, NCEP, 0, 1, 8, 8);
    s.section4[46] = 1; /* accumulation */
    assert_string_equal(names_of(&s).short_name, "tp");
    begin(&s, NCEP, 0, 1, 7, 0);
    assert_string_equal(names_of(&s).short_name, "prate");
}

static void a_centres_own_number_is_read_with_its_own_table(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, NCEP, 0, 3, 192, 0);
    s.section1[10] = 1;
    no_surface(&s, 0, 101);
    assert_string_equal(names_of(&s).short_name, "mslet");
    begin(&s, DWD, 0, 3, 192, 0);
    s.section1[10] = 1;
    assert_int_not_equal(names_of(&s).param_id, 260323);
}

static void met_office_winds_have_their_names(void **state)
{
    (void)state;
    const char *expected[] = {"10u", "10v", "10wdir", "10si"};
    for (unsigned i = 0; i < 4; i++) {
        struct sample s;
        begin(&s, MET_OFFICE, 0, 2, 192 + i, 0);
        surface(&s, 0, 103, 0, 10);
        assert_string_equal(names_of(&s).short_name, expected[i]);
        begin(&s, DWD, 0, 2, 192 + i, 0);
        surface(&s, 0, 103, 0, 10);
        assert_string_not_equal(names_of(&s).short_name, expected[i]);
    }
}

static void unknown_parameters_are_told_apart(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, MET_OFFICE, 209, 3, 250, 0);
    struct sq_grib_names names = names_of(&s);
    assert_int_equal(names.param_id, 0);
    assert_string_equal(names.short_name, "param_209_3_250");
    assert_string_equal(names.cf_var_name, "param_209_3_250");
    assert_string_equal(names.name, "unknown");
    assert_string_equal(names.units, "unknown");
    assert_null(names.cf_name);
}

static void pressures_below_one_hectopascal_are_in_pascal(void **state)
{
    (void)state;
    const struct {
        int scale;
        uint32_t value;
        const char *type;
        double level;
    } cases[] = {
        {0, 85000, "isobaricInhPa", 850}, {0, 100, "isobaricInhPa", 1}, {0, 99, "isobaricInPa", 99},    {0, 50, "isobaricInPa", 50},
        {-2, 850, "isobaricInhPa", 850},  {1, 5, "isobaricInPa", 0.5},  {0, 150, "isobaricInhPa", 1.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample s;
        begin(&s, NCEP, 0, 0, 0, 0);
        surface(&s, 0, 100, cases[i].scale, cases[i].value);
        struct sq_grib_names names = names_of(&s);
        assert_string_equal(names.level_type, cases[i].type);
        double first, second;
        sq_grib_levels_of(&s.product, &names, &first, &second);
        assert_true(first == cases[i].level);
        assert_true(isnan(second));
    }
}

static void levels_keep_their_fraction(void **state)
{
    (void)state;
    struct sample s;
    begin(&s, NCEP, 0, 0, 0, 0);
    surface(&s, 0, 104, 2, 44);
    surface(&s, 1, 104, 2, 100);
    struct sq_grib_names names = names_of(&s);
    double first, second;
    sq_grib_levels_of(&s.product, &names, &first, &second);
    assert_string_equal(names.level_type, "sigmaLayer");
    assert_true(first == 0.44 && second == 1);

    begin(&s, ECMWF, 0, 3, 4, 0);
    surface(&s, 0, 109, 9, 2000);
    names = names_of(&s);
    sq_grib_levels_of(&s.product, &names, &first, &second);
    assert_string_equal(names.level_type, "potentialVorticity");
    assert_true(first == 2000);
}

static struct sq_grib_names names_of_edition1(unsigned centre, unsigned table, unsigned parameter, unsigned level_type, unsigned level)
{
    uint8_t pds[28] = {0, 0, 28, (uint8_t)table, (uint8_t)centre};
    pds[8] = (uint8_t)parameter;
    pds[9] = (uint8_t)level_type;
    put(pds + 10, 2, level);
    struct sq_grib_product product = {
        .raw = {.edition = 1, .section1 = pds, .section1_bytes = sizeof pds},
        .category = (uint8_t)table,
        .number = (uint8_t)parameter,
    };
    struct sq_grib_names names;
    sq_grib_names_of(&product, &names);
    return names;
}

static void edition_1_goes_by_table_and_centre(void **state)
{
    (void)state;
    assert_string_equal(names_of_edition1(ECMWF, 128, 167, 1, 0).cf_var_name, "t2m");
    assert_string_equal(names_of_edition1(NCEP, 2, 11, 105, 2).short_name, "2t");
    assert_string_equal(names_of_edition1(NCEP, 2, 11, 100, 500).short_name, "t");
    assert_string_equal(names_of_edition1(NCEP, 2, 11, 100, 500).level_type, "isobaricInhPa");
    assert_string_equal(names_of_edition1(ECMWF, 250, 250, 112, 7).short_name, "param_250_250");
    assert_string_equal(names_of_edition1(ECMWF, 250, 250, 112, 7).level_type, "depthBelowLandLayer");
}

static void level_attributes_say_the_unit(void **state)
{
    (void)state;
    const struct sq_grib_level_attributes *a = sq_grib_level_attributes("isobaricInhPa");
    assert_string_equal(a->standard_name, "air_pressure");
    assert_string_equal(a->units, "hPa");
    assert_string_equal(a->positive, "down");
    a = sq_grib_level_attributes("no such type");
    assert_null(a->standard_name);
    assert_string_equal(a->units, "1");
}

/* A section that ends early, or counts that lie: names are found or not, and nothing is read beyond the end. */
static void every_truncation_and_every_template_is_survived(void **state)
{
    (void)state;
    for (unsigned template = 0; template <70000; template += template <2100 ? 1 : 97)
        for (unsigned fill = 0; fill < 256; fill += 255) {
            uint8_t section4[80], section1[21] = {0};
            memset(section4, (int)fill, sizeof section4);
            put(section1 + 5, 2, ECMWF);
            put(section4 + 5, 4, template & 0xffff);
            for (uint32_t size = 0; size <= sizeof section4; size += template <300 ? 1 : 79) {
                uint8_t *exact = test_malloc(size + 1);
                memcpy(exact, section4, size);
                struct sq_grib_product product = {.raw = {.edition = 2,
                                                          .section1 = section1,
                                                          .section1_bytes = size < 21 ? size : 21,
                                                          .section4 = exact,
                                                          .section4_bytes = size}};
                struct sq_grib_names names;
                sq_grib_names_of(&product, &names);
                assert_non_null(names.level_type);
                test_free(exact);
            }
        }
    for (uint32_t size = 0; size < 28; size++) {
        uint8_t *pds = test_calloc(1, size + 1);
        struct sq_grib_product product = {.raw = {.edition = 1, .section1 = pds, .section1_bytes = size}};
        struct sq_grib_names names;
        sq_grib_names_of(&product, &names);
        test_free(pds);
    }
}

static void variable_names_are_identifiers(void **state)
{
    (void)state;
    unsigned seen = 0;
    const struct sq_grib_list *list = &sq_grib_lists[SQ_GRIB2_MASTER];
    for (unsigned i = list->rows.first; i < list->rows.first + list->rows.count; i++, seen++) {
        uint32_t index = sq_grib_rows[i].index;
        struct sample s;
        begin(&s, NCEP, index >> 16, index >> 8 & 255, index & 255, 0);
        struct sq_grib_names names = names_of(&s);
        assert_true(isalpha((unsigned char)names.cf_var_name[0]) || names.cf_var_name[0] == '_');
        for (const char *c = names.cf_var_name; *c; c++)
            assert_true(isalnum((unsigned char)*c) || *c == '_');
    }
    assert_true(seen > 1000);
}

/* The product keeps the length of an interval only where it is one of these numbers of hours (grib2_product.c). */
static void names_depend_on_few_lengths_of_intervals(void **state)
{
    (void)state;
    unsigned seen = 0;
    const struct sq_grib_list *last = &sq_grib_lists[SQ_GRIB2_ECMWF];
    for (unsigned i = sq_grib_lists[SQ_GRIB2_MASTER].rows.first; i < last->rows.first + last->rows.count; i++) {
        unsigned set = sq_grib_rows[i].conditions;
        for (unsigned c = sq_grib_condition_sets[set]; c < sq_grib_condition_sets[set + 1]; c++) {
            int32_t value = sq_grib_conditions[c].value;
            if (sq_grib_conditions[c].key == SQ_GRIB_KEY_indicatorOfUnitForTimeRange)
                assert_int_equal(value, 1);
            if (sq_grib_conditions[c].key == SQ_GRIB_KEY_lengthOfTimeRange) {
                assert_true(value == 1 || value == 3 || value == 6 || value == 24);
                seen++;
            }
        }
    }
    assert_true(seen > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_metre_temperature_is_told_from_temperature_by_its_level),
        cmocka_unit_test(a_missing_value_is_no_zero),
        cmocka_unit_test(an_accumulation_has_another_name_than_a_rate),
        cmocka_unit_test(a_centres_own_number_is_read_with_its_own_table),
        cmocka_unit_test(met_office_winds_have_their_names),
        cmocka_unit_test(unknown_parameters_are_told_apart),
        cmocka_unit_test(pressures_below_one_hectopascal_are_in_pascal),
        cmocka_unit_test(levels_keep_their_fraction),
        cmocka_unit_test(edition_1_goes_by_table_and_centre),
        cmocka_unit_test(level_attributes_say_the_unit),
        cmocka_unit_test(every_truncation_and_every_template_is_survived),
        cmocka_unit_test(variable_names_are_identifiers),
        cmocka_unit_test(names_depend_on_few_lengths_of_intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
