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

static void zero_points_are_refused(void **state)
{
    (void)state;
    struct section s;
    struct sq_grib_grid grid;
    struct squall_error err = SQUALL_ERROR_INIT;
    put_latlon(&s, 0, &(struct latlon){0, 721, 90000000, 0, -90000000, 359750000, 250000, 250000, 0});
    assert_int_equal(sq_grib_grid_parse(2, 98, s.bytes, s.size, &grid, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "grid description (regular_ll): 0 × 721 points");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarter_degree_grid_has_exact_coordinates),
        cmocka_unit_test(zero_points_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
