/* Grids from hand-built descriptions of both editions: shapes, coordinates, equality, and what hostile headers may not do. */
#include "support/unit.h"

#include "base/memory.h"
#include "format/grib/gaussian.h"
#include "format/grib/grid.h"
#include <math.h>
#include <string.h>

/* A section that grows octet by octet; the length in its head is set by the caller where it matters (nothing reads it). */
struct section {
    uint8_t bytes[4096];
    size_t size;
};

static void put(struct section *s, unsigned size_bytes, int64_t value)
{
    uint64_t raw = value < 0 ? (uint64_t)-value | UINT64_C(1) << (8 * size_bytes - 1) : (uint64_t)value;
    for (unsigned i = size_bytes; i-- > 0;)
        s->bytes[s->size++] = (uint8_t)(raw >> 8 * i);
}

static void put_head2(struct section *s, uint32_t points, unsigned list_bytes, unsigned template_number)
{
    *s = (struct section){.size = 0};
    put(s, 4, 0);
    put(s, 1, 3);
    put(s, 1, 0);
    put(s, 4, points);
    put(s, 1, list_bytes);
    put(s, 1, list_bytes ? 1 : 0);
    put(s, 2, template_number);
}

static void put_earth(struct section *s, unsigned shape)
{
    put(s, 1, shape);
    for (int i = 0; i < 3; i++) {
        put(s, 1, 0xff);
        put(s, 4, 0xffffffff);
    }
}

struct latlon {
    uint32_t ni, nj;
    int32_t latitude_first, longitude_first, latitude_last, longitude_last;
    uint32_t i_step, j_step; /* Gaussian: j_step is N */
    uint8_t scanning_mode;
};

static void put_latlon(struct section *s, unsigned template_number, const struct latlon *l)
{
    put_head2(s, l->ni * l->nj, 0, template_number);
    put_earth(s, 6);
    put(s, 4, l->ni);
    put(s, 4, l->nj);
    put(s, 4, 0);
    put(s, 4, 0xffffffff);
    put(s, 4, l->latitude_first);
    put(s, 4, l->longitude_first);
    put(s, 1, 0x30);
    put(s, 4, l->latitude_last);
    put(s, 4, l->longitude_last);
    put(s, 4, l->i_step);
    put(s, 4, l->j_step);
    put(s, 1, l->scanning_mode);
}

static void parse(const struct section *s, struct sq_grib_grid *ret)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_grib_grid_parse(2, 98, s->bytes, s->size, ret, &err))
        fail_msg("%s", err.message);
}

static struct sq_grib_grid latlon_grid(const struct latlon *l)
{
    struct section s;
    struct sq_grib_grid grid;
    put_latlon(&s, 0, l);
    parse(&s, &grid);
    return grid;
}

static struct sq_grib_axes axes_of(const struct sq_grib_grid *grid)
{
    struct sq_grib_axes axes;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_grib_grid_axes(grid, &axes, &err))
        fail_msg("%s", err.message);
    return axes;
}

static void a_quarter_degree_grid_has_exact_coordinates(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){1440, 721, 90000000, 0, -90000000, 359750000, 250000, 250000, 0});
    assert_int_equal(grid.kind, SQ_GRID_REGULAR_LL);
    assert_true(grid.rectangular);
    assert_int_equal(grid.columns, 1440);
    assert_int_equal(grid.rows, 721);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_string_equal(axes.axis[0].name, "latitude");
    assert_string_equal(axes.axis[1].name, "longitude");
    for (int k = 0; k < 721; k++)
        assert_true(axes.axis[0].values[k] == 90 - 0.25 * k);
    for (int k = 0; k < 1440; k++)
        assert_true(axes.axis[1].values[k] == 0.25 * k);
    assert_false(sq_grib_grid_rows_northward(&grid));
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

/* ---- other templates ---- */

struct plane {
    unsigned template_number, earth;
    uint32_t nx, ny;
    int32_t latitude, longitude; /* of the first point */
    int32_t true_latitude, meridian, first_parallel, second_parallel;
    uint8_t scanning_mode;
};

/* Lambert (30) and polar stereographic (20), 3 km */
static void put_plane(struct section *s, const struct plane *p)
{
    put_head2(s, p->nx * p->ny, 0, p->template_number);
    put_earth(s, p->earth);
    put(s, 4, p->nx);
    put(s, 4, p->ny);
    put(s, 4, p->latitude);
    put(s, 4, p->longitude);
    put(s, 1, 8);
    put(s, 4, p->true_latitude);
    put(s, 4, p->meridian);
    put(s, 4, 3000000);
    put(s, 4, 3000000);
    put(s, 1, 0);
    put(s, 1, p->scanning_mode);
    if (p->template_number == 20)
        return;
    put(s, 4, p->first_parallel);
    put(s, 4, p->second_parallel);
    put(s, 4, 0);
    put(s, 4, 0);
}

static const struct plane hrrr = {30, 6, 1799, 1059, 21138123, 237280472, 38500000, 262500000, 38500000, 38500000, 0x40};

/* Transverse mercator as the UKV writes it, or properly */
static void put_transverse_mercator(struct section *s, int32_t latitude, int32_t longitude, uint32_t scale_bits)
{
    put_head2(s, 548 * 704, 0, 12);
    put_earth(s, 9);
    put(s, 4, 548);
    put(s, 4, 704);
    put(s, 4, latitude);
    put(s, 4, longitude);
    put(s, 1, 0x30);
    put(s, 4, scale_bits);
    put(s, 4, 40000000);
    put(s, 4, -10000000);
    put(s, 1, 0x40);
    put(s, 4, 200000);
    put(s, 4, 200000);
    put(s, 4, -23800000);
    put(s, 4, 122200000);
    put(s, 4, 85600000);
    put(s, 4, -18400000);
}

static void put_reduced(struct section *s, uint32_t points, const unsigned *lengths, uint32_t rows, unsigned list_bytes)
{
    put_head2(s, points, list_bytes, 40);
    put_earth(s, 6);
    put(s, 4, 0xffffffff);
    put(s, 4, rows);
    put(s, 4, 0);
    put(s, 4, 0xffffffff);
    put(s, 4, 59444408); /* N2 */
    put(s, 4, 0);
    put(s, 1, 0);
    put(s, 4, -59444408);
    put(s, 4, 324000000);
    put(s, 4, 0xffffffff);
    put(s, 4, 2);
    put(s, 1, 0);
    for (uint32_t n = 0; lengths && n < rows; n++)
        put(s, list_bytes, lengths[n]);
}

static const unsigned four_rows[] = {4, 10, 10, 4};

/* Edition 1, type 0 */
static void put_latlon1(struct section *s, const struct latlon *l)
{
    *s = (struct section){.size = 0};
    put(s, 3, 32);
    put(s, 1, 0);
    put(s, 1, 255);
    put(s, 1, 0);
    put(s, 2, l->ni);
    put(s, 2, l->nj);
    put(s, 3, l->latitude_first / 1000);
    put(s, 3, l->longitude_first / 1000);
    put(s, 1, 0x80);
    put(s, 3, l->latitude_last / 1000);
    put(s, 3, l->longitude_last / 1000);
    put(s, 2, l->i_step / 1000);
    put(s, 2, l->j_step / 1000);
    put(s, 1, l->scanning_mode);
    put(s, 4, 0);
}

static struct sq_grib_grid parsed(const struct section *s, uint8_t edition, uint16_t centre)
{
    struct sq_grib_grid grid;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_grib_grid_parse(edition, centre, s->bytes, s->size, &grid, &err))
        fail_msg("%s", err.message);
    return grid;
}

/* ---- coordinates ---- */

static void a_wrong_increment_is_not_followed(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){72, 37, 90000000, 0, -90000000, 355000000, 2000000, 2000000, 0});
    struct sq_grib_axes axes = axes_of(&grid);
    for (int k = 0; k < 37; k++)
        assert_true(axes.axis[0].values[k] == 90 - 5 * k);
    for (int k = 0; k < 72; k++)
        assert_true(axes.axis[1].values[k] == 5 * k);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

/* MRMS: the last corner is off by one microdegree, the increment is right */
static void a_carelessly_rounded_corner_does_not_bend_the_coordinates(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){7000, 3500, 54995000, 230005000, 20005001, 299994998, 10000, 10000, 0});
    struct sq_grib_axes axes = axes_of(&grid);
    assert_true(axes.axis[0].values[3499] == 20.005);
    assert_true(axes.axis[1].values[1] == 230.015);
    assert_true(axes.axis[1].values[6999] == 299.995);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void a_circle_that_ends_where_it_begins_is_divided(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){360, 2, 10000000, 0, 0, 0, 0xffffffff, 0xffffffff, 0});
    struct sq_grib_axes axes = axes_of(&grid);
    assert_true(axes.axis[1].values[1] == 1);
    assert_true(axes.axis[1].values[359] == 359);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void westward_rows_have_ascending_longitudes(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){3, 2, 0, 2000000, 1000000, 0, 1000000, 1000000, 0xc0});
    struct sq_grib_axes axes = axes_of(&grid);
    assert_true(axes.axis[1].values[0] == 0 && axes.axis[1].values[1] == 1 && axes.axis[1].values[2] == 2);
    assert_true(axes.axis[0].values[0] == 0 && axes.axis[0].values[1] == 1);
    assert_true(sq_grib_grid_rows_northward(&grid));
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void angles_are_in_the_unit_that_the_header_states(void **state)
{
    (void)state;
    struct section s;
    put_latlon(&s, 0, &(struct latlon){4, 2, 3, 0, 0, 9, 3, 3, 0});
    s.bytes[41] = 1; /* basic angle 1, 3 divisions: thirds of a degree */
    memcpy(s.bytes + 42, (const uint8_t[]){0, 0, 0, 3}, 4);
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_true(axes.axis[0].values[0] == 1 && axes.axis[0].values[1] == 0);
    assert_true(axes.axis[1].values[1] == 1 && axes.axis[1].values[3] == 3);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

/* 359 of 360 whole degrees in units of a degree: neither the circle nor the increment may stretch them */
static void units_as_coarse_as_the_grid_leave_no_room_for_rounding(void **state)
{
    (void)state;
    struct section s;
    put_latlon(&s, 0, &(struct latlon){359, 40, 39, 0, 0, 358, 2, 2, 0});
    s.bytes[41] = 1;
    memcpy(s.bytes + 42, (const uint8_t[]){0, 0, 0, 1}, 4);
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    struct sq_grib_axes axes = axes_of(&grid);
    for (int k = 0; k < 359; k++)
        assert_true(axes.axis[1].values[k] == k);
    assert_true(axes.axis[0].values[0] == 39 && axes.axis[0].values[39] == 0);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void a_reduced_grid_has_a_place_for_every_point(void **state)
{
    (void)state;
    struct section s;
    for (unsigned list_bytes = 1; list_bytes <= 4; list_bytes++) {
        put_reduced(&s, 28, four_rows, 4, list_bytes);
        struct sq_grib_grid grid = parsed(&s, 2, 98);
        assert_int_equal(grid.kind, SQ_GRID_REDUCED_GG);
        assert_false(grid.rectangular);
        struct sq_grib_axes axes = axes_of(&grid);
        assert_int_equal(axes.count, 1);
        assert_string_equal(axes.axis[0].name, "values");
        assert_int_equal(axes.axis[0].length, 28);
        assert_null(axes.axis[0].values);
        assert_true(fabs(axes.point_latitudes[3] - 59.44440828916676) < 1e-12);
        assert_true(axes.point_latitudes[27] == -axes.point_latitudes[0]);
        assert_true(axes.point_longitudes[3] == 270 && axes.point_longitudes[5] == 36);
        sq_grib_axes_done(&axes);
        sq_grib_grid_done(&grid);
    }
}

static void gaussian_latitudes_are_the_zeros_of_legendre_polynomials(void **state)
{
    (void)state;
    double rows[4];
    sq_gaussian_latitudes(1, 0, 2, rows); /* sin² = 1/3 */
    assert_true(fabs(rows[0] - asin(sqrt(1.0 / 3)) * 180 / M_PI) < 1e-13);
    assert_true(rows[1] == -rows[0]);
    sq_gaussian_latitudes(2, 0, 4, rows); /* sin² = 3/7 ± 2/7 √(6/5) */
    assert_true(fabs(rows[0] - asin(sqrt(3.0 / 7 + 2.0 / 7 * sqrt(1.2))) * 180 / M_PI) < 1e-13);
    assert_true(fabs(rows[1] - asin(sqrt(3.0 / 7 - 2.0 / 7 * sqrt(1.2))) * 180 / M_PI) < 1e-13);
    assert_true(rows[2] == -rows[1] && rows[3] == -rows[0]);
}

static double number(const struct sq_json *object, const char *key)
{
    double value = NAN;
    assert_true(sq_json_double(sq_json_get(object, key), &value));
    return value;
}

static void the_ukv_is_read_by_its_corners(void **state)
{
    (void)state;
    struct section s;
    put_transverse_mercator(&s, 49, -2, 0);
    struct sq_grib_grid grid = parsed(&s, 2, 74);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_false(sq_grib_grid_rows_northward(&grid)); /* whatever its scanning bit says */
    assert_true(axes.axis[0].values[0] == 1222000 && axes.axis[0].values[703] == -184000);
    assert_true(axes.axis[1].values[0] == -238000 && axes.axis[1].values[547] == 856000);
    assert_true(number(axes.grid_mapping, "scale_factor_at_central_meridian") == 0.9996012717);
    assert_true(number(axes.grid_mapping, "latitude_of_projection_origin") == 49);
    assert_memory_equal(axes.note, "UKV: British National Grid", 26);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void a_proper_transverse_mercator_keeps_its_own_numbers(void **state)
{
    (void)state;
    struct section s;
    put_transverse_mercator(&s, 52000000, 10000000, 0x3f800000);
    struct sq_grib_grid grid = parsed(&s, 2, 74);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_null(axes.note);
    assert_true(number(axes.grid_mapping, "scale_factor_at_central_meridian") == 1);
    assert_true(number(axes.grid_mapping, "latitude_of_projection_origin") == 52);
    assert_true(number(axes.grid_mapping, "longitude_of_central_meridian") == 10);
    assert_true(number(axes.grid_mapping, "false_easting") == 400000);
    assert_null(sq_json_get(axes.grid_mapping, "crs_wkt"));
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void an_impossible_projection_keeps_x_and_y_and_says_so(void **state)
{
    (void)state;
    struct section s;
    put_transverse_mercator(&s, 49, -2, 0);
    struct sq_grib_grid grid = parsed(&s, 2, 98); /* another centre's scale factor 0 */
    struct sq_grib_axes axes = axes_of(&grid);
    assert_null(axes.grid_mapping);
    assert_string_equal(axes.note,
                        "transverse_mercator: impossible projection (scale factor at the reference point): x and y without a grid mapping");
    assert_true(axes.axis[1].values[1] == -236000);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);

    struct plane small = hrrr;
    small.earth = 1;
    put_plane(&s, &small);
    s.bytes[15] = 0; /* a radius of 6371 m */
    memcpy(s.bytes + 16, (const uint8_t[]){0, 0, 0x18, 0xe3}, 4);
    grid = parsed(&s, 2, 7);
    axes = axes_of(&grid);
    assert_null(axes.grid_mapping);
    assert_string_equal(axes.note, "lambert: impossible projection (axes of the Earth): x and y without a grid mapping");
    assert_true(axes.axis[1].values[0] == 0 && axes.axis[1].values[1] == 3000);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void an_earth_without_axes_is_assumed_and_said(void **state)
{
    (void)state;
    struct section s;
    struct plane unknown = hrrr;
    unknown.earth = 7;
    put_plane(&s, &unknown);
    struct sq_grib_grid grid = parsed(&s, 2, 7);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_true(number(axes.grid_mapping, "earth_radius") == 6371229);
    assert_string_equal(axes.note, "lambert: the header gives no axes of the Earth; a sphere of 6371229 m is assumed");
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

/* ---- the same points ---- */

static bool same(const struct section *a, uint8_t edition_a, const struct section *b, uint8_t edition_b)
{
    struct sq_grib_grid ga = parsed(a, edition_a, 98), gb = parsed(b, edition_b, 98);
    bool result = sq_grib_grid_same(&ga, &gb);
    assert_int_equal(result, sq_grib_grid_same(&gb, &ga));
    sq_grib_grid_done(&ga);
    sq_grib_grid_done(&gb);
    return result;
}

static void grids_that_differ_in_order_alone_are_the_same(void **state)
{
    (void)state;
    const struct latlon down = {5, 3, 50000000, 350000000, 48000000, 354000000, 1000000, 1000000, 0};
    const struct latlon up = {5, 3, 48000000, 350000000, 50000000, 354000000, 1000000, 1000000, 0x40};
    const struct latlon west = {5, 3, 50000000, 354000000, 48000000, 350000000, 1000000, 1000000, 0x80};
    const struct latlon columns = {5, 3, 50000000, 350000000, 48000000, 354000000, 1000000, 1000000, 0x30};
    const struct latlon further = {5, 3, 51000000, 350000000, 49000000, 354000000, 1000000, 1000000, 0};
    struct section a, b;
    put_latlon(&a, 0, &down);
    const struct latlon *equal[] = {&down, &up, &west, &columns};
    for (int i = 0; i < 4; i++) {
        put_latlon(&b, 0, equal[i]);
        assert_true(same(&a, 2, &b, 2));
    }
    put_latlon(&b, 0, &further);
    assert_false(same(&a, 2, &b, 2));
    put_latlon1(&b, &up);
    assert_true(same(&a, 2, &b, 1));
}

static void a_projected_grid_is_the_same_from_each_corner(void **state)
{
    (void)state;
    struct section a, b;
    put_plane(&a, &hrrr);
    struct plane from_north = hrrr; /* the north-western corner, as ecCodes computes it */
    from_north.latitude = 47838623;
    from_north.longitude = 225904520;
    from_north.scanning_mode = 0;
    put_plane(&b, &from_north);
    assert_true(same(&a, 2, &b, 2));
    struct plane shifted = hrrr;
    shifted.longitude += 1000;
    put_plane(&b, &shifted);
    assert_false(same(&a, 2, &b, 2));
}

static void reduced_grids_are_compared_row_by_row(void **state)
{
    (void)state;
    struct section a, b;
    put_reduced(&a, 28, four_rows, 4, 2);
    put_reduced(&b, 28, four_rows, 4, 2);
    assert_true(same(&a, 2, &b, 2));
    put_reduced(&b, 28, (const unsigned[]){4, 9, 11, 4}, 4, 2);
    assert_false(same(&a, 2, &b, 2));
}

/* ---- what is not understood, and what is wrong ---- */

static void an_unknown_template_has_its_points(void **state)
{
    (void)state;
    struct section s;
    put_head2(&s, 1234, 0, 4711);
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    assert_int_equal(grid.kind, SQ_GRID_OTHER);
    assert_int_equal(grid.point_count, 1234);
    assert_string_equal(grid.type_name, "unknown");
    struct sq_grib_axes axes = axes_of(&grid);
    assert_int_equal(axes.axis[0].length, 1234);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void a_template_of_one_centre_is_no_other_centres(void **state)
{
    (void)state;
    struct section s;
    put_latlon(&s, 32769, &(struct latlon){5, 3, 0, 0, 1, 1, 1, 1, 0});
    struct sq_grib_grid ncep = parsed(&s, 2, 7), other = parsed(&s, 2, 98);
    assert_string_equal(ncep.type_name, "ncep_32769");
    assert_int_equal(ncep.columns, 5);
    assert_string_equal(other.type_name, "unknown");
    sq_grib_grid_done(&ncep);
    sq_grib_grid_done(&other);
}

static void spectral_fields_are_named_and_unsupported(void **state)
{
    (void)state;
    struct section s;
    put_head2(&s, 4160, 0, 50);
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    assert_string_equal(grid.type_name, "sh");
    assert_non_null(grid.unsupported);
    sq_grib_grid_done(&grid);
}

static void a_message_without_a_description_is_unsupported(void **state)
{
    (void)state;
    struct sq_grib_grid grid;
    assert_int_equal(sq_grib_grid_parse(1, 7, NULL, 0, &grid, NULL), 0);
    assert_non_null(grid.unsupported);
    struct sq_grib_axes axes = axes_of(&grid);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void points_that_are_not_rows_times_columns_lie_in_one_dimension(void **state)
{
    (void)state;
    struct section s;
    put_latlon(&s, 0, &(struct latlon){192, 64, 87863799, 0, -87863799, 358125000, 2813000, 0, 0});
    memcpy(s.bytes + 6, (const uint8_t[]){0, 0, 0x48, 0}, 4); /* 18432 */
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    assert_false(grid.rectangular);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_int_equal(axes.count, 1);
    assert_int_equal(axes.axis[0].length, 18432);
    assert_string_equal(axes.note, "regular_ll: the header's 192 × 64 points are not its 18432 values; coordinates are left out");
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void staggered_rows_have_no_coordinates(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){5, 3, 50000000, 0, 48000000, 4000000, 1000000, 1000000, 0x08});
    struct sq_grib_axes axes = axes_of(&grid);
    assert_int_equal(axes.axis[1].length, 5);
    assert_null(axes.axis[1].values);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void refused(const struct section *s, uint8_t edition, const char *message)
{
    struct sq_grib_grid grid;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_grib_grid_parse(edition, 98, s->bytes, s->size, &grid, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, message);
}

static void zero_and_missing_numbers_of_points_are_refused(void **state)
{
    (void)state;
    struct section s;
    struct latlon l = {0, 721, 90000000, 0, -90000000, 359750000, 250000, 250000, 0};
    put_latlon(&s, 0, &l);
    refused(&s, 2, "grid description (regular_ll): 0 × 721 points");
    l.ni = 0xffffffff;
    put_latlon(&s, 0, &l);
    refused(&s, 2, "grid description (regular_ll): 4294967295 × 721 points");
}

static void row_lengths_beyond_the_section_are_refused(void **state)
{
    (void)state;
    struct section s;
    put_reduced(&s, 28, four_rows, 4, 2);
    s.size--;
    refused(&s, 2, "grid description: the lengths of 4 rows do not fit into its 79 bytes");
    put_reduced(&s, 28, NULL, 0x7fffffff, 2);
    refused(&s, 2, "grid description: the lengths of 2147483647 rows do not fit into its 72 bytes");
}

static void row_lengths_that_do_not_add_up_leave_the_coordinates_out(void **state)
{
    (void)state;
    struct section s;
    put_reduced(&s, 0xfffffff0, (const unsigned[]){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 4, 4);
    struct sq_grib_grid grid = parsed(&s, 2, 98);
    struct sq_grib_axes axes = axes_of(&grid);
    assert_null(axes.point_latitudes);
    assert_non_null(axes.note);
    sq_grib_axes_done(&axes);
    sq_grib_grid_done(&grid);
}

static void a_huge_axis_is_refused_before_it_is_allocated(void **state)
{
    (void)state;
    struct sq_grib_grid grid = latlon_grid(&(struct latlon){0x7fffffff, 2, 0, 0, 1, 1, 1, 1, 0});
    struct sq_grib_axes axes;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_grib_grid_axes(&grid, &axes, &err), SQUALL_EUNSUPPORTED);
    assert_string_equal(err.message, "a grid with 2147483647 points along longitude (at most 16777216)");
    sq_grib_grid_done(&grid);
}

static void gaussian_numbers_that_do_not_fit_leave_the_latitudes_out(void **state)
{
    (void)state;
    const uint32_t parallels[] = {0, 3, 0x7fffffff, 0xffffffff};
    for (int i = 0; i < 4; i++) {
        struct section s;
        put_latlon(&s, 40, &(struct latlon){5, 4, 59444408, 0, -59444408, 4000000, 1000000, parallels[i], 0});
        struct sq_grib_grid grid = parsed(&s, 2, 98);
        struct sq_grib_axes axes = axes_of(&grid);
        assert_null(axes.axis[0].values);
        assert_int_equal(axes.axis[0].length, 4);
        assert_non_null(axes.axis[1].values);
        assert_non_null(axes.note);
        sq_grib_axes_done(&axes);
        sq_grib_grid_done(&grid);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    struct section all[5];
    const struct latlon l = {5, 3, 50000000, 350000000, 48000000, 354000000, 1000000, 1000000, 0};
    put_latlon(&all[0], 0, &l);
    put_plane(&all[1], &hrrr);
    put_transverse_mercator(&all[2], 49, -2, 0);
    put_reduced(&all[3], 28, four_rows, 4, 2);
    put_latlon1(&all[4], &l);
    all[4].size = 28; /* the rest is reserved */
    for (int i = 0; i < 5; i++) {
        uint8_t edition = i == 4 ? 1 : 2;
        struct sq_grib_grid grid = parsed(&all[i], edition, 98);
        sq_grib_grid_done(&grid);
        for (size_t cut = 1; cut < all[i].size; cut++) {
            uint8_t *exact = test_malloc(cut); /* so that a read behind it is seen */
            memcpy(exact, all[i].bytes, cut);
            assert_int_equal(sq_grib_grid_parse(edition, 98, exact, cut, &grid, NULL), SQUALL_ECORRUPT);
            test_free(exact);
        }
    }
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    struct section sections[3];
    put_plane(&sections[0], &hrrr);
    put_reduced(&sections[1], 28, four_rows, 4, 2);
    put_transverse_mercator(&sections[2], 49, -2, 0);
    for (int i = 0; i < 3; i++) {
        struct sq_grib_grid grid = parsed(&sections[i], 2, 74);
        for (long n = 0;; n++) {
            struct sq_grib_axes axes;
            sq_fail_allocation(n);
            int status = sq_grib_grid_axes(&grid, &axes, NULL);
            sq_fail_allocation(-1);
            if (status == 0) {
                sq_grib_axes_done(&axes);
                break;
            }
            assert_int_equal(status, SQUALL_ENOMEM);
        }
        sq_grib_grid_done(&grid);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarter_degree_grid_has_exact_coordinates),
        cmocka_unit_test(a_wrong_increment_is_not_followed),
        cmocka_unit_test(a_carelessly_rounded_corner_does_not_bend_the_coordinates),
        cmocka_unit_test(a_circle_that_ends_where_it_begins_is_divided),
        cmocka_unit_test(westward_rows_have_ascending_longitudes),
        cmocka_unit_test(angles_are_in_the_unit_that_the_header_states),
        cmocka_unit_test(units_as_coarse_as_the_grid_leave_no_room_for_rounding),
        cmocka_unit_test(a_reduced_grid_has_a_place_for_every_point),
        cmocka_unit_test(gaussian_latitudes_are_the_zeros_of_legendre_polynomials),
        cmocka_unit_test(the_ukv_is_read_by_its_corners),
        cmocka_unit_test(a_proper_transverse_mercator_keeps_its_own_numbers),
        cmocka_unit_test(an_impossible_projection_keeps_x_and_y_and_says_so),
        cmocka_unit_test(an_earth_without_axes_is_assumed_and_said),
        cmocka_unit_test(grids_that_differ_in_order_alone_are_the_same),
        cmocka_unit_test(a_projected_grid_is_the_same_from_each_corner),
        cmocka_unit_test(reduced_grids_are_compared_row_by_row),
        cmocka_unit_test(an_unknown_template_has_its_points),
        cmocka_unit_test(a_template_of_one_centre_is_no_other_centres),
        cmocka_unit_test(spectral_fields_are_named_and_unsupported),
        cmocka_unit_test(a_message_without_a_description_is_unsupported),
        cmocka_unit_test(points_that_are_not_rows_times_columns_lie_in_one_dimension),
        cmocka_unit_test(staggered_rows_have_no_coordinates),
        cmocka_unit_test(zero_and_missing_numbers_of_points_are_refused),
        cmocka_unit_test(row_lengths_beyond_the_section_are_refused),
        cmocka_unit_test(row_lengths_that_do_not_add_up_leave_the_coordinates_out),
        cmocka_unit_test(a_huge_axis_is_refused_before_it_is_allocated),
        cmocka_unit_test(gaussian_numbers_that_do_not_fit_leave_the_latitudes_out),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
