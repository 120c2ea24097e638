/* See grid_mapping.h. A table of attributes for each projection: names and values, in the order of CF's appendix F. */
#include "format/grib/grid_mapping.h"

#include <math.h>

#include "base/error_internal.h"

struct number {
    const char *name;
    double value;
};

static int set_numbers(struct sq_json *mapping, const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        SQ_TRY(sq_json_set_double(mapping, numbers[i].name, numbers[i].value));
    return 0;
}
#define SET_NUMBERS(mapping, ...)                                                                                                          \
    set_numbers(mapping, (const struct number[]){__VA_ARGS__}, sizeof((const struct number[]){__VA_ARGS__}) / sizeof(struct number))

static int set_earth(struct sq_json *mapping, double major_m, double minor_m)
{
    if (major_m == minor_m)
        return sq_json_set_double(mapping, "earth_radius", major_m);
    return SET_NUMBERS(mapping, {"semi_major_axis", major_m}, {"semi_minor_axis", minor_m});
}

static int finish(struct sq_json *mapping, int status, struct sq_json **ret, struct squall_error *err)
{
    if (!mapping || status) {
        sq_json_free(mapping);
        return sq_error_memory(err, 0);
    }
    *ret = mapping;
    return 0;
}

/*
 * GRIB gives the south pole of the rotated system, CF its north pole, which is opposite. The angle of rotation turns the system further
 * about its own axis, eastward (template 3.1: clockwise when looking from its south to its north pole), so that the true north pole,
 * on meridian 0 without it, comes to lie at minus the angle.
 */
static int rotated(struct sq_json *mapping, const struct sq_grid_definition *g)
{
    double pole_longitude = fmod(nearbyint((g->south_pole_longitude + 180) * 1e6) / 1e6, 360);
    SQ_TRY(sq_json_set_string(mapping, "grid_mapping_name", "rotated_latitude_longitude"));
    if (g->earth.major_m > 0 && g->earth.minor_m > 0)
        SQ_TRY(set_earth(mapping, g->earth.major_m, g->earth.minor_m));
    return SET_NUMBERS(mapping, {"grid_north_pole_latitude", -g->south_pole_latitude},
                       {"grid_north_pole_longitude", pole_longitude > 180 ? pole_longitude - 360 : pole_longitude},
                       {"north_pole_grid_longitude", 0 - g->rotation_angle});
}

int sq_grid_mapping_rotated(const struct sq_grid_definition *g, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *mapping = sq_json_new_object();
    return finish(mapping, mapping ? rotated(mapping, g) : 0, ret, err);
}

static int set_parallels(struct sq_json *mapping, const struct sq_grid_projection *p)
{
    if (p->parallel_first == p->parallel_second)
        return sq_json_set_double(mapping, "standard_parallel", p->parallel_first);
    struct sq_json *both = sq_json_new_array();
    int status = !both || sq_json_append(both, sq_json_new_double(p->parallel_first)) ||
                 sq_json_append(both, sq_json_new_double(p->parallel_second));
    if (status) {
        sq_json_free(both);
        return SQUALL_ENOMEM;
    }
    return sq_json_set(mapping, "standard_parallel", both);
}

/* EPSG:27700, whose datum the ellipsoid alone would not tell: it lies some 100 m from WGS 84. */
static const char british_national_grid[] =
    "PROJCRS[\"OSGB36 / British National Grid\",BASEGEOGCRS[\"OSGB36\",DATUM[\"Ordnance Survey of Great Britain 1936\","
    "ELLIPSOID[\"Airy 1830\",6377563.396,299.3249646,LENGTHUNIT[\"metre\",1]]],"
    "PRIMEM[\"Greenwich\",0,ANGLEUNIT[\"degree\",0.0174532925199433]],ID[\"EPSG\",4277]],"
    "CONVERSION[\"British National Grid\",METHOD[\"Transverse Mercator\",ID[\"EPSG\",9807]],"
    "PARAMETER[\"Latitude of natural origin\",49,ANGLEUNIT[\"degree\",0.0174532925199433],ID[\"EPSG\",8801]],"
    "PARAMETER[\"Longitude of natural origin\",-2,ANGLEUNIT[\"degree\",0.0174532925199433],ID[\"EPSG\",8802]],"
    "PARAMETER[\"Scale factor at natural origin\",0.9996012717,SCALEUNIT[\"unity\",1],ID[\"EPSG\",8805]],"
    "PARAMETER[\"False easting\",400000,LENGTHUNIT[\"metre\",1],ID[\"EPSG\",8806]],"
    "PARAMETER[\"False northing\",-100000,LENGTHUNIT[\"metre\",1],ID[\"EPSG\",8807]]],"
    "CS[Cartesian,2],AXIS[\"(E)\",east,ORDER[1],LENGTHUNIT[\"metre\",1]],AXIS[\"(N)\",north,ORDER[2],LENGTHUNIT[\"metre\",1]],"
    "ID[\"EPSG\",27700]]";

static int projected(struct sq_json *mapping, const struct sq_grid_projection *p)
{
    static const char *const names[] = {
        [SQ_GRID_MERCATOR] = "mercator",
        [SQ_GRID_POLAR_STEREOGRAPHIC] = "polar_stereographic",
        [SQ_GRID_LAMBERT] = "lambert_conformal_conic",
        [SQ_GRID_TRANSVERSE_MERCATOR] = "transverse_mercator",
    };
    SQ_TRY(sq_json_set_string(mapping, "grid_mapping_name", names[p->kind]));
    SQ_TRY(set_earth(mapping, p->major_m, p->minor_m));
    if (p->kind == SQ_GRID_MERCATOR) {
        SQ_TRY(SET_NUMBERS(mapping, {"standard_parallel", p->parallel_first}, {"longitude_of_projection_origin", p->longitude_origin}));
    } else if (p->kind == SQ_GRID_POLAR_STEREOGRAPHIC) {
        SQ_TRY(SET_NUMBERS(mapping, {"latitude_of_projection_origin", p->latitude_origin},
                           {"straight_vertical_longitude_from_pole", p->longitude_origin}, {"standard_parallel", p->parallel_first}));
    } else if (p->kind == SQ_GRID_LAMBERT) {
        SQ_TRY(set_parallels(mapping, p));
        SQ_TRY(SET_NUMBERS(mapping, {"longitude_of_central_meridian", p->longitude_origin},
                           {"latitude_of_projection_origin", p->latitude_origin}));
    } else {
        SQ_TRY(SET_NUMBERS(mapping, {"latitude_of_projection_origin", p->latitude_origin},
                           {"longitude_of_central_meridian", p->longitude_origin}, {"scale_factor_at_central_meridian", p->scale}));
    }
    SQ_TRY(SET_NUMBERS(mapping, {"false_easting", p->false_easting_m}, {"false_northing", p->false_northing_m}));
    return p->british_national_grid ? sq_json_set_string(mapping, "crs_wkt", british_national_grid) : 0;
}

int sq_grid_mapping_projected(const struct sq_grid_projection *p, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *mapping = sq_json_new_object();
    return finish(mapping, mapping ? projected(mapping, p) : 0, ret, err);
}
