/* Decoding one field: simple packing of both editions, IEEE, bitmaps, scan order, and what is refused, on sections made by hand. */
#include "support/unit.h"

#include "base/memory.h"
#include "format/grib/scan.h"
#include "support/field.h"
#include "sys/cpu.h"
#include <math.h>

static struct sq_grib_scratch *scratch;

/* The definition, with nothing fused: each operation rounds by itself. */
static double value_of(double x, double reference, int binary_scale, int decimal_scale)
{
    volatile double ten = 1, product = ldexp(x, binary_scale), sum = product + reference;
    for (int i = 0; i < decimal_scale; i++)
        ten = ten / 10;
    for (int i = 0; i > decimal_scale; i--)
        ten = ten * 10;
    volatile double value = sum * ten;
    return value;
}

static void assert_value(double got, double want)
{
    if (isnan(want) ? !isnan(got) : memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%.17g, where %.17g is right", got, want);
}

/* Decode with every kernel and as both types; want: point_count values. */
static void check_decode(const struct field *f, bool flip_rows, const double *want)
{
    size_t count = f->grid.point_count;
    struct squall_error err = SQUALL_ERROR_INIT;
    for (unsigned features = 0; features < 2; features++) {
        float *narrow = malloc(count * sizeof *narrow + 1);
        double *wide = malloc(count * sizeof *wide + 1);
        sq_cpu_limit(features ? ~0u : 0);
        if (field_decode(f, flip_rows, scratch, SQ_GRIB_FLOAT32, narrow, &err) ||
            field_decode(f, flip_rows, scratch, SQ_GRIB_FLOAT64, wide, &err))
            fail_msg("%s", err.message);
        for (size_t i = 0; i < count; i++) {
            assert_value(wide[i], want[i]);
            assert_value((double)narrow[i], (double)(float)want[i]);
        }
        free(narrow);
        free(wide);
    }
}

static void check_refused(const struct field *f, int status, const char *message)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    float dst[256];
    assert_true(f->grid.point_count <= 256);
    int got = field_decode(f, false, scratch, SQ_GRIB_FLOAT32, dst, &err);
    if (got != status || !strstr(err.message, message))
        fail_msg("%d \"%s\", where %d \"%s\" is right", got, err.message, status, message);
}

/* A field of simple packing; mask as in field_add6, x: a number for each of its ones. */
static struct field simple_make(uint32_t rows, uint32_t columns, const uint32_t *x, size_t count, const uint8_t *mask, float reference,
                                int binary_scale, int decimal_scale, uint8_t bits)
{
    struct field f = field_make(2, rows, columns);
    size_t size;
    uint8_t *data = pack(x, count, bits, &size);
    field_add5(&f, (uint32_t)count, 0, reference, binary_scale, decimal_scale, bits, "", 1);
    field_add6(&f, mask, (size_t)rows * columns);
    field_add7(&f, data, size);
    free(data);
    return f;
}

static void values_of_every_width_are_scaled(void **state)
{
    (void)state;
    enum { ROWS = 61, COLUMNS = 83, COUNT = ROWS * COLUMNS };
    static uint32_t x[COUNT];
    static double want[COUNT];
    const float references[] = {0, 273.15f, -1e-3f, 9.4e6f};
    const int scales[][2] = {{0, 0}, {-8, 0}, {-11, 2}, {3, -2}, {-20, 5}, {0, 1}};
    uint64_t seed = 1;
    for (uint8_t bits = 1; bits <= 32; bits++)
        for (size_t s = 0; s < 6; s++) {
            float reference = references[(bits + s) % 4];
            for (size_t i = 0; i < COUNT; i++) {
                x[i] = (uint32_t)(random_next(&seed) >> (64 - bits));
                want[i] = value_of(x[i], (double)reference, scales[s][0], scales[s][1]);
            }
            struct field f = simple_make(ROWS, COLUMNS, x, COUNT, NULL, reference, scales[s][0], scales[s][1], bits);
            check_decode(&f, false, want);
            field_done(&f);
        }
}

static void points_without_a_value_are_nan(void **state)
{
    (void)state;
    enum { COUNT = 6007 };
    static uint32_t x[COUNT];
    static uint8_t mask[COUNT];
    static double want[COUNT];
    uint64_t seed = 2;
    for (unsigned tenths = 0; tenths <= 10; tenths++)
        for (uint32_t count = COUNT; count > 0; count = count > 20 ? count / 7 : count - 1) {
            size_t ones = 0;
            for (size_t i = 0; i < count; i++) {
                bool burst = i / 100 % 3 == 0; /* stretches of one kind among random ones */
                mask[i] = burst ? tenths > 5 : random_next(&seed) % 10 < tenths;
                want[i] = (double)NAN;
                if (mask[i]) {
                    x[ones] = (uint32_t)random_next(&seed) & 0xfff;
                    want[i] = value_of(x[ones++], -7.5, -4, 1);
                }
            }
            struct field f = simple_make(1, count, x, ones, mask, -7.5f, -4, 1, 12);
            check_decode(&f, false, want);
            field_done(&f);
        }
}

static void constant_fields_are_the_reference_as_it_is(void **state)
{
    (void)state;
    const uint16_t templates[] = {0, 40, 40000, 41, 40010, 42};
    const uint8_t mask[] = {1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0};
    double want[12], want_holes[12];
    for (size_t i = 0; i < 12; i++) {
        want[i] = (double)42.1f; /* not 4.21, whatever D is: so encoders write them */
        want_holes[i] = mask[i] ? want[i] : (double)NAN;
    }
    for (size_t t = 0; t < 6; t++)
        for (unsigned holes = 0; holes < 2; holes++) {
            struct field f = field_make(2, 3, 4);
            field_add5(&f, holes ? 7 : 12, templates[t], 42.1f, 3, 1, 0, "\0\0\0\0\0", 5);
            field_add6(&f, holes ? mask : NULL, 12);
            field_add7(&f, NULL, 0);
            check_decode(&f, false, holes ? want_holes : want);
            field_done(&f);
        }
}

static void a_field_without_any_value_is_all_nan(void **state)
{
    (void)state;
    const uint16_t templates[] = {0, 2, 3, 4, 40, 41, 42};
    const uint8_t mask[10] = {0};
    double want[10];
    for (size_t i = 0; i < 10; i++)
        want[i] = (double)NAN;
    for (size_t t = 0; t < 7; t++) {
        struct field f = field_make(2, 2, 5);
        uint8_t more[29] = {0};
        field_add5(&f, 0, templates[t], 1, 0, 0, 8, more, sizeof more);
        if (templates[t] == 4)
            f.bytes[f.frame.section[5].offset + 11] = 1;
        field_add6(&f, mask, 10);
        field_add7(&f, NULL, 0);
        check_decode(&f, false, want);
        field_done(&f);
    }
}

static struct field ieee_make(uint32_t count, uint8_t precision, const double *x)
{
    struct field f = field_make(2, 1, count);
    unsigned size = precision == 2 ? 8 : 4;
    uint8_t section[12] = {0, 0, 0, 12, 5, 0, 0, 0, 0, 0, 4, precision}, data[512];
    put_be(section + 5, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t raw = 0;
        float narrow = (float)x[i];
        memcpy(&raw, size == 4 ? (const void *)&narrow : (const void *)&x[i], size);
        put_be(data + size * i, raw, size);
    }
    field_add(&f, 5, section, sizeof section);
    field_add6(&f, NULL, count);
    field_add7(&f, data, (size_t)size * count);
    return f;
}

static void ieee_numbers_come_as_they_are(void **state)
{
    (void)state;
    const double narrow[] = {0, -0.0, (double)1.1f, -0x1p-149, 0x1.fffffep127, (double)INFINITY, (double)NAN, 65504, -3};
    const double wide[] = {0, -0.0, 1.1, -5e-324, 1.7e308, (double)INFINITY, (double)NAN, 65504, -3};
    struct field f = ieee_make(9, 1, narrow);
    check_decode(&f, false, narrow);
    field_done(&f);
    f = ieee_make(9, 2, wide);
    check_decode(&f, false, wide);
    field_done(&f);
    f = ieee_make(9, 3, wide);
    check_refused(&f, SQUALL_EUNSUPPORTED, "IEEE floating point of neither 32 nor 64 bits");
    field_done(&f);
}

/* Edition 1. flags: BDS octet 4. */
static struct field edition1_make(uint32_t rows, uint32_t columns, uint32_t ibm_reference, int binary_scale, int decimal_scale,
                                  uint8_t flags, uint8_t bits, const uint8_t *data, size_t data_bytes, const uint8_t *mask)
{
    struct field f = field_make(1, rows, columns);
    uint8_t pds[28] = {0, 0, 28}, bds[600] = {0}, bms[80] = {0};
    uint64_t bit = 0;
    put_be(pds + 26, decimal_scale < 0 ? 0x8000u | (unsigned)-decimal_scale : (unsigned)decimal_scale, 2);
    put_be(bds, 11 + data_bytes, 3);
    bds[3] = flags;
    put_be(bds + 4, binary_scale < 0 ? 0x8000u | (unsigned)-binary_scale : (unsigned)binary_scale, 2);
    put_be(bds + 6, ibm_reference, 4);
    bds[10] = bits;
    if (data_bytes)
        memcpy(bds + 11, data, data_bytes);
    field_add(&f, 1, pds, sizeof pds);
    if (mask) {
        size_t count = (size_t)rows * columns, size = 6 + (count + 7) / 8;
        put_be(bms, size, 3);
        for (size_t i = 0; i < count; i++)
            put_bits(bms + 6, &bit, mask[i], 1);
        field_add(&f, 6, bms, size);
    }
    field_add(&f, 7, bds, 11 + data_bytes);
    return f;
}

static void ibm_references_are_exact(void **state)
{
    (void)state;
    const struct {
        uint32_t bits;
        double value;
    } cases[] = {{0, 0}, {0x41100000, 1}, {0xc276a000, -118.625}, {0x00000001, 0x1p-280}, {0x7fffffff, 0x1.fffffep251}};
    for (size_t i = 0; i < 5; i++) {
        double want[4];
        uint8_t data[4] = {0, 1, 200, 255};
        for (size_t k = 0; k < 4; k++)
            want[k] = value_of(data[k], cases[i].value, -2, 1);
        struct field f = edition1_make(2, 2, cases[i].bits, -2, 1, 0, 8, data, 4, NULL);
        check_decode(&f, false, want);
        field_done(&f);
    }
}

static void edition_1_counts_values_by_its_unused_bits(void **state)
{
    (void)state;
    const uint32_t x[] = {1, 1000, 4095, 7, 2048};
    double want[5];
    uint8_t data[200] = {0};
    uint64_t bit = 0;
    for (size_t i = 0; i < 5; i++) {
        put_bits(data, &bit, x[i], 12);
        want[i] = value_of(x[i], 1, 0, -1);
    }
    struct field f = edition1_make(1, 5, 0x41100000, 0, -1, 4, 12, data, 8, NULL); /* 60 bits and 4 unused */
    check_decode(&f, false, want);
    field_done(&f);
    f = edition1_make(1, 5, 0x41100000, 0, -1, 0, 12, data, 10, NULL); /* padding that is not declared */
    check_decode(&f, false, want);
    field_done(&f);
    f = edition1_make(1, 5, 0x41100000, 0, -1, 0, 12, data, 7, NULL);
    check_refused(&f, SQUALL_ECORRUPT, "4 values for the grid's 5 points");
    field_done(&f);
    f = edition1_make(1, 5, 0x41100000, 0, -1, 0, 12, data, 140, NULL); /* more than padding */
    check_refused(&f, SQUALL_ECORRUPT, "5 wanted by the grid");
    field_done(&f);
}

static void edition_1_has_bitmaps_constants_and_empty_fields(void **state)
{
    (void)state;
    const uint8_t mask[] = {0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0}, data[] = {10, 20, 30, 40, 50, 0};
    double want[12], constant[12], holes[12], none[12];
    size_t next = 0;
    for (size_t i = 0; i < 12; i++) {
        want[i] = mask[i] ? value_of(data[next++], 1, 1, 0) : (double)NAN;
        constant[i] = 1;
        holes[i] = mask[i] ? 1 : (double)NAN;
        none[i] = (double)NAN;
    }
    struct field f = edition1_make(3, 4, 0x41100000, 1, 0, 0, 8, data, 6, mask);
    check_decode(&f, false, want);
    field_done(&f);
    f = edition1_make(3, 4, 0x41100000, 1, 2, 0, 0, NULL, 0, NULL);
    check_decode(&f, false, constant);
    field_done(&f);
    f = edition1_make(3, 4, 0x41100000, 1, 2, 8, 0, data, 1, mask);
    check_decode(&f, false, holes);
    field_done(&f);
    f = edition1_make(3, 4, 0x41100000, -32767, 0, 0, 0, NULL, 0, NULL);
    check_decode(&f, false, none);
    field_done(&f);
}

static void edition_1_packings_that_are_not_read_are_named(void **state)
{
    (void)state;
    const struct {
        uint8_t flags;
        const char *message;
    } cases[] = {{0x40, "grid_second_order"}, {0x80, "spectral_simple"}, {0xc0, "spectral_complex"}, {0x10, "grid_simple_matrix"}};
    for (size_t i = 0; i < 4; i++) {
        struct field f = edition1_make(2, 2, 0, 0, 0, cases[i].flags, 8, (const uint8_t *)"abcd", 4, NULL);
        check_refused(&f, SQUALL_EUNSUPPORTED, cases[i].message);
        field_done(&f);
    }
}

/* Where the file puts the point at (row, column) of the output. */
static size_t place(uint8_t mode, size_t rows, size_t columns, size_t row, size_t column)
{
    size_t i = mode & 0x80 ? columns - 1 - column : column;
    if (mode & 0x20)
        return i * rows + (mode & 0x10 && i % 2 ? rows - 1 - row : row);
    return row * columns + (mode & 0x10 && row % 2 ? columns - 1 - i : i);
}

static void points_come_out_in_one_order_whatever_the_scanning_mode(void **state)
{
    (void)state;
    const uint32_t shapes[][2] = {{1, 1}, {1, 7}, {7, 1}, {5, 9}, {40, 33}, {33, 40}, {2, 1100}};
    for (size_t s = 0; s < 7; s++)
        for (unsigned mode = 0; mode < 256; mode += 16)
            for (unsigned flip = 0; flip < 2; flip++) {
                uint32_t rows = shapes[s][0], columns = shapes[s][1];
                size_t count = (size_t)rows * columns, ones = 0;
                uint32_t *x = malloc(count * sizeof *x);
                uint8_t *mask = malloc(count);
                double *want = malloc(count * sizeof *want);
                for (size_t i = 0; i < count; i++) {
                    mask[i] = i % 5 != 3;
                    if (mask[i])
                        x[ones++] = (uint32_t)i;
                }
                for (size_t r = 0; r < rows; r++)
                    for (size_t c = 0; c < columns; c++) {
                        size_t at = place((uint8_t)mode, rows, columns, flip ? rows - 1 - r : r, c);
                        want[r * columns + c] = mask[at] ? (double)at : (double)NAN;
                    }
                struct field f = simple_make(rows, columns, x, ones, mask, 0, 0, 0, 16);
                f.grid.scanning_mode = (uint8_t)mode;
                check_decode(&f, flip, want);
                field_done(&f);
                free(x), free(mask), free(want);
            }
}

static void a_grid_without_rows_keeps_the_order_of_the_file(void **state)
{
    (void)state;
    const uint32_t x[] = {5, 4, 3, 2, 1, 0};
    const double want[] = {5, 4, 3, 2, 1, 0};
    struct field f = simple_make(1, 6, x, 6, NULL, 0, 0, 0, 4);
    f.grid.rectangular = false;
    f.grid.rows = f.grid.columns = 0;
    f.grid.scanning_mode = 0xb0;
    check_decode(&f, true, want);
    field_done(&f);
}

static void what_the_sections_say_must_agree(void **state)
{
    (void)state;
    const uint32_t x[12] = {0};
    const uint8_t mask[17] = {1, 1, 1, 1, 1};
    struct field f = simple_make(3, 4, x, 11, NULL, 0, 0, 0, 8);
    check_refused(&f, SQUALL_ECORRUPT, "11 values for the grid's 12 points");
    field_done(&f);
    f = simple_make(3, 4, x, 6, mask, 0, 0, 0, 8);
    check_refused(&f, SQUALL_ECORRUPT, "6 values in the data section at byte 34 of the message, 5 wanted by the bitmap");
    field_done(&f);
    f = simple_make(3, 4, x, 12, NULL, 0, 0, 0, 8);
    f.grid.columns = 5;
    check_refused(&f, SQUALL_ECORRUPT, "grid of 3 × 5, but 12 points");
    f.grid.columns = 4;
    f.frame.section[7].size_bytes--;
    check_refused(&f, SQUALL_ECORRUPT, "12 values of 8 bits in a data section of 16 bytes at byte 27");
    f.frame.section[7].size_bytes += 2;
    check_refused(&f, SQUALL_ECORRUPT, "section 7 at byte 27 of the message: ends behind the message");
    field_done(&f);
    f = simple_make(1, 17, x, 5, mask, 0, 0, 0, 8); /* a bitmap of 17 bits, cut to two bytes */
    f.frame.section[6].size_bytes--;
    check_refused(&f, SQUALL_ECORRUPT, "8 bytes for 17 points");
    field_done(&f);
}

static void a_reference_that_is_not_finite_makes_no_values(void **state)
{
    (void)state;
    const uint32_t x[4] = {0, 1, 2, 3};
    const float references[] = {NAN, INFINITY, -INFINITY};
    const double none[] = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    for (size_t i = 0; i < 3; i++) {
        struct field f = simple_make(2, 2, x, 4, NULL, references[i], 0, 0, 8);
        check_refused(&f, SQUALL_ECORRUPT, "a reference value that is not finite");
        field_done(&f);
    }
    struct field f = simple_make(2, 2, x, 4, NULL, NAN, 0, 0, 0); /* a constant field may be missing as a whole */
    check_decode(&f, false, none);
    field_done(&f);
}

static void no_length_leads_behind_the_message(void **state)
{
    (void)state;
    const uint32_t x[12] = {1, 2, 3};
    const uint8_t mask[12] = {1, 1, 0, 1};
    float dst[12];
    struct field whole = simple_make(3, 4, x, 3, mask, 0, 0, 0, 13);
    for (unsigned number = 5; number <= 7; number++)
        for (uint64_t size = 0; size < 60; size++) {
            struct field f = whole;
            f.frame.section[number].size_bytes = size;
            int status = field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, dst, NULL);
            assert_true(status == 0 || status == SQUALL_ECORRUPT);
            assert_true(size >= whole.frame.section[number].size_bytes || status == SQUALL_ECORRUPT || number == 5);
        }
    for (size_t size = 0; size < whole.size_bytes; size++) {
        uint8_t *cut = malloc(size + !size);
        memcpy(cut, whole.bytes, size);
        assert_int_equal(sq_grib_decode(cut, size, &whole.frame, &whole.grid, false, scratch, SQ_GRIB_FLOAT32, dst, NULL), SQUALL_ECORRUPT);
        free(cut);
    }
    field_done(&whole);
}

static void packings_that_are_not_read_are_named(void **state)
{
    (void)state;
    const struct {
        uint16_t number;
        const char *name;
    } cases[] = {{1, "grid_simple_matrix"},  {50, "spectral_simple"},       {51, "spectral_complex"},
                 {53, "bifourier_complex"},  {61, "grid_simple_log_prepr"}, {200, "grid_run_length"},
                 {50001, "grid_second_ord"}, {50002, "grid_second_ord"},    {7, "unknown (template 5.7)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct field f = field_make(2, 2, 2);
        field_add5(&f, 4, cases[i].number, 0, 0, 0, 8, "\0\0\0\0\0\0\0", 8);
        field_add6(&f, NULL, 4);
        field_add7(&f, "abcd", 4);
        check_refused(&f, SQUALL_EUNSUPPORTED, cases[i].name);
        field_done(&f);
    }
    const uint32_t x[4] = {0};
    struct field f = simple_make(2, 2, x, 4, NULL, 0, 0, 0, 8);
    f.bytes[19] = 33;
    check_refused(&f, SQUALL_EUNSUPPORTED, "more than 32 bits per value");
    f.bytes[19] = 8;
    f.bytes[f.frame.section[6].offset + 5] = 7;
    check_refused(&f, SQUALL_EUNSUPPORTED, "a bitmap that its centre predefined");
    f.bytes[f.frame.section[6].offset + 5] = 255;
    f.grid.unsupported = "spectral";
    f.grid.type_name = "sh";
    check_refused(&f, SQUALL_EUNSUPPORTED, "grid sh: spectral");
    field_done(&f);
}

/* A constant field takes no bytes a point, so only the cap stands between a header and all memory. */
static void more_points_than_the_limit_are_refused_before_anything_is_asked_for(void **state)
{
    (void)state;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct field f = field_make(2, 65536, 65535);
    field_add5(&f, 65536u * 65535u, 0, 0, 0, 0, 0, "", 1);
    field_add6(&f, NULL, 0);
    field_add7(&f, NULL, 0);
    assert_int_equal(field_decode(&f, false, scratch, SQ_GRIB_FLOAT32, NULL, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "4294901760 points in one field"));
    field_done(&f);
}

/* What a scan hands over: copies of the sections, the data cut to its head. */
static struct sq_grib_packing packing_of(const struct field *f)
{
    struct sq_grib_found found = {.frame = f->frame};
    struct sq_grib_packing packing = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    uint8_t *copies[SQ_GRIB_SECTION_COUNT] = {0};
    for (unsigned s = 1; s < SQ_GRIB_SECTION_COUNT; s++) {
        size_t size = f->frame.section[s].size_bytes;
        if (size == 0)
            continue;
        size = s >= 6 && size > 16 ? 16 : size;
        copies[s] = malloc(size);
        memcpy(copies[s], f->bytes + f->frame.section[s].offset, size);
        found.section[s] = copies[s];
    }
    if (sq_grib_packing_of(&found, &packing, &err))
        fail_msg("%s", err.message);
    for (unsigned s = 0; s < SQ_GRIB_SECTION_COUNT; s++)
        free(copies[s]);
    return packing;
}

static void a_packing_is_known_from_the_heads(void **state)
{
    (void)state;
    uint32_t x[64] = {1};
    uint8_t mask[64] = {1};
    struct field f = simple_make(8, 8, x, 64, NULL, 2.5f, -3, 2, 24);
    struct sq_grib_packing p = packing_of(&f);
    assert_string_equal(p.name, "grid_simple");
    assert_null(p.unsupported);
    assert_int_equal(p.template_number, 0);
    assert_int_equal(p.bits_per_value, 24);
    assert_int_equal(p.value_count, 64);
    assert_int_equal(p.binary_scale, -3);
    assert_int_equal(p.decimal_scale, 2);
    assert_true(p.reference_value == 2.5);
    assert_false(p.has_bitmap);
    assert_false(p.is_float64);
    field_done(&f);

    f = simple_make(8, 8, x, 1, mask, 2.5f, -3, 2, 24);
    assert_true(packing_of(&f).has_bitmap);
    field_done(&f);

    f = edition1_make(8, 8, 0x41280000, 1, -1, 4, 12, mask, 50, mask);
    p = packing_of(&f);
    assert_string_equal(p.name, "grid_simple");
    assert_int_equal(p.template_number, 1000);
    assert_int_equal(p.value_count, 33); /* of 400 bits, 4 unused */
    assert_int_equal(p.binary_scale, 1);
    assert_int_equal(p.decimal_scale, -1);
    assert_true(p.reference_value == 2.5);
    assert_true(p.has_bitmap);
    field_done(&f);
    f = edition1_make(8, 8, 0, 0, 0, 0x40, 12, mask, 50, NULL);
    assert_int_equal(packing_of(&f).template_number, 1001);
    assert_non_null(packing_of(&f).unsupported);
    field_done(&f);

    const double values[] = {1, 2};
    f = ieee_make(2, 2, values);
    p = packing_of(&f);
    assert_string_equal(p.name, "grid_ieee");
    assert_int_equal(p.bits_per_value, 64);
    assert_true(p.is_float64);
    field_done(&f);
}

static void short_heads_are_refused(void **state)
{
    (void)state;
    const uint32_t x[4] = {0};
    struct field f = simple_make(2, 2, x, 4, NULL, 0, 0, 0, 8);
    struct sq_grib_found found = {.frame = f.frame};
    struct sq_grib_packing packing;
    for (size_t size = 0; size < 20; size++) {
        uint8_t *section = malloc(size + !size);
        memcpy(section, f.bytes, size);
        found.section[5] = size ? section : NULL;
        found.frame.section[5].size_bytes = size;
        assert_int_equal(sq_grib_packing_of(&found, &packing, NULL), SQUALL_ECORRUPT);
        free(section);
    }
    field_done(&f);
}

static void the_range_of_a_packing_holds_all_its_values(void **state)
{
    (void)state;
    double least, greatest;
    struct sq_grib_packing p = {.template_number = 0, .bits_per_value = 8, .reference_value = -10, .binary_scale = 1, .decimal_scale = -1};
    assert_true(sq_grib_packing_range(&p, &least, &greatest));
    assert_true(least == -100 && greatest == 5000);
    p.template_number = 41;
    p.bits_per_value = 7; /* an image has whole bytes */
    assert_true(sq_grib_packing_range(&p, &least, &greatest));
    assert_true(least == -100 && greatest == 5000);
    p.template_number = 42;
    p.bits_per_value = 0;
    assert_true(sq_grib_packing_range(&p, &least, &greatest));
    assert_true(least == -10 && greatest == -10);
    const uint16_t unbounded[] = {2, 3, 4, 40, 1001, 200};
    for (size_t i = 0; i < 6; i++) {
        p = (struct sq_grib_packing){.template_number = unbounded[i], .bits_per_value = 8, .unsupported = i > 3 ? "no" : NULL};
        assert_false(sq_grib_packing_range(&p, &least, &greatest));
    }
}

static void a_warm_scratch_allocates_nothing(void **state)
{
    (void)state;
    uint32_t x[600];
    uint8_t mask[600];
    float dst[600];
    for (size_t i = 0; i < 600; i++)
        x[i] = (uint32_t)i, mask[i] = i < 500;
    struct field f = simple_make(20, 30, x, 500, mask, 0, 0, 0, 10);
    f.grid.scanning_mode = 0x20;
    assert_int_equal(field_decode(&f, true, scratch, SQ_GRIB_FLOAT32, dst, NULL), 0);
    unsigned long before = sq_allocation_count();
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(field_decode(&f, i % 2, scratch, SQ_GRIB_FLOAT32, dst, NULL), 0);
    assert_int_equal(sq_allocation_count(), before);
    field_done(&f);
}

static void no_memory_is_an_error_and_no_more(void **state)
{
    (void)state;
    const uint32_t x[12] = {1, 2, 3};
    float dst[12];
    struct field f = simple_make(3, 4, x, 12, NULL, 0, 0, 0, 8);
    f.grid.scanning_mode = 0x20;
    struct sq_grib_scratch *own = sq_grib_scratch_new();
    sq_fail_allocation(0);
    assert_int_equal(field_decode(&f, false, own, SQ_GRIB_FLOAT32, dst, NULL), SQUALL_ENOMEM);
    assert_int_equal(field_decode(&f, false, own, SQ_GRIB_FLOAT32, dst, NULL), 0);
    sq_grib_scratch_free(own);
    sq_fail_allocation(0);
    assert_null(sq_grib_scratch_new());
    sq_fail_allocation(-1);
    sq_grib_scratch_free(NULL);
    field_done(&f);
}

int main(void)
{
    scratch = sq_grib_scratch_new();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_width_are_scaled),
        cmocka_unit_test(points_without_a_value_are_nan),
        cmocka_unit_test(constant_fields_are_the_reference_as_it_is),
        cmocka_unit_test(a_field_without_any_value_is_all_nan),
        cmocka_unit_test(ieee_numbers_come_as_they_are),
        cmocka_unit_test(ibm_references_are_exact),
        cmocka_unit_test(edition_1_counts_values_by_its_unused_bits),
        cmocka_unit_test(edition_1_has_bitmaps_constants_and_empty_fields),
        cmocka_unit_test(edition_1_packings_that_are_not_read_are_named),
        cmocka_unit_test(points_come_out_in_one_order_whatever_the_scanning_mode),
        cmocka_unit_test(a_grid_without_rows_keeps_the_order_of_the_file),
        cmocka_unit_test(what_the_sections_say_must_agree),
        cmocka_unit_test(a_reference_that_is_not_finite_makes_no_values),
        cmocka_unit_test(no_length_leads_behind_the_message),
        cmocka_unit_test(packings_that_are_not_read_are_named),
        cmocka_unit_test(more_points_than_the_limit_are_refused_before_anything_is_asked_for),
        cmocka_unit_test(a_packing_is_known_from_the_heads),
        cmocka_unit_test(short_heads_are_refused),
        cmocka_unit_test(the_range_of_a_packing_holds_all_its_values),
        cmocka_unit_test(a_warm_scratch_allocates_nothing),
        cmocka_unit_test(no_memory_is_an_error_and_no_more),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sq_grib_scratch_free(scratch);
    return failed;
}
