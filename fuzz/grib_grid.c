/*
 * Grid descriptions as an attacker writes them: whatever parses must give axes, attributes and comparisons that agree with its shape.
 * Input: the edition, a byte that picks a centre with its own reading, the section.
 */
#include "base/json.h"
#include "format/grib/grid.h"

#include <stdlib.h>

enum { LONGEST_AXIS = 2000, MOST_POINTS = 20000 }; /* beyond them only time is lost */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_axes(const struct sq_grib_grid *grid)
{
    struct sq_grib_axes axes;
    if (sq_grib_grid_axes(grid, &axes, NULL))
        return;
    require(axes.count == (grid->rectangular ? 2 : 1));
    require(axes.axis[0].length == (grid->rectangular ? grid->rows : grid->point_count));
    require(!grid->rectangular || axes.axis[1].length == grid->columns);
    require(!axes.point_latitudes == !axes.point_longitudes);
    double sum = 0; /* that every value is there is for the sanitizer to judge */
    for (unsigned i = 0; i < axes.count; i++)
        for (size_t k = 0; axes.axis[i].values && k < axes.axis[i].length; k++)
            sum += axes.axis[i].values[k];
    for (size_t k = 0; axes.point_latitudes && k < grid->point_count; k++)
        sum += axes.point_latitudes[k] + axes.point_longitudes[k];
    volatile double used = sum;
    (void)used;
    sq_grib_axes_done(&axes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint16_t centres[] = {98, 74, 7};
    if (size < 2)
        return 0;
    struct sq_grib_grid grid;
    uint8_t edition = data[0] & 1 ? 1 : 2;
    if (sq_grib_grid_parse(edition, centres[data[1] % 3], data + 2, size - 2, &grid, NULL))
        return 0;
    require(!grid.rectangular || (uint64_t)grid.rows * grid.columns == grid.point_count);
    require(grid.rectangular == (grid.rows != 0));
    require(sq_grib_grid_same(&grid, &grid));
    sq_grib_grid_rows_northward(&grid);

    struct sq_json *attributes = sq_json_new_object();
    require(attributes && sq_grib_grid_attributes(&grid, attributes, NULL) == 0);
    sq_json_free(attributes);
    if (grid.columns <= LONGEST_AXIS && grid.rows <= LONGEST_AXIS && (grid.rectangular || grid.point_count <= MOST_POINTS))
        check_axes(&grid);
    sq_grib_grid_done(&grid);
    return 0;
}
