/* Levels as coordinates: their values in the unit that typeOfLevel implies, and CF attributes that say which unit that is. */
#include "format/grib/names.h"

#include <math.h>
#include <string.h>

/* Code table 4.5 */
enum { ISOBARIC = 100, POTENTIAL_VORTICITY = 109 };

/* value × 10^exponent, rounded once for as long as the power is exact */
static double scaled(double value, int exponent)
{
    return exponent < 0 ? value / pow(10, -exponent) : value * pow(10, exponent);
}

static double level_of(const struct sq_grib_surface *surface, const char *level_type)
{
    if (!surface->has_value || surface->type == 255)
        return NAN;
    int exponent = surface->scale == -127 ? 0 : -surface->scale;
    if (surface->type == ISOBARIC && strcmp(level_type, "isobaricInPa") != 0)
        exponent -= 2; /* hPa */
    if (surface->type == POTENTIAL_VORTICITY)
        exponent += 9; /* 1e-9 K m2 kg-1 s-1 */
    return scaled(surface->value, exponent);
}

void sq_grib_levels_of(const struct sq_grib_product *product, const struct sq_grib_names *names, double *ret_first, double *ret_second)
{
    *ret_first = level_of(&product->first, names->level_type);
    *ret_second = level_of(&product->second, names->level_type);
}

struct named_attributes {
    const char *level_type;
    struct sq_grib_level_attributes attributes;
};

/* clang-format off */
static const struct named_attributes known[] = {
    {"isobaricInhPa", {"air_pressure", "pressure", "hPa", "down"}},
    {"isobaricInPa", {"air_pressure", "pressure", "Pa", "down"}},
    {"isobaricLayer", {"air_pressure", "pressure", "hPa", "down"}},
    {"isobaricLayerHighPrecision", {"air_pressure", "pressure", "hPa", "down"}},
    {"isobaricLayerMixedPrecision", {"air_pressure", "pressure", "hPa", "down"}},
    {"pressureFromGround", {NULL, "pressure difference from the ground", "Pa", "up"}},
    {"pressureFromGroundLayer", {NULL, "pressure difference from the ground", "Pa", "up"}},
    {"heightAboveGround", {"height", "height above the surface", "m", "up"}},
    {"heightAboveGroundLayer", {"height", "height above the surface", "m", "up"}},
    {"heightAboveGroundHighPrecision", {"height", "height above the surface", "m", "up"}},
    {"heightAboveSea", {"altitude", "height above mean sea level", "m", "up"}},
    {"heightAboveSeaLayer", {"altitude", "height above mean sea level", "m", "up"}},
    {"depthBelowLand", {"depth", "soil depth", "m", "down"}},
    {"depthBelowLandLayer", {"depth", "soil depth", "m", "down"}},
    {"depthBelowSea", {"depth", "depth below the sea surface", "m", "down"}},
    {"depthBelowSeaLayer", {"depth", "depth below the sea surface", "m", "down"}},
    {"hybrid", {"atmosphere_hybrid_sigma_pressure_coordinate", "hybrid level", "1", "down"}},
    {"hybridLayer", {"atmosphere_hybrid_sigma_pressure_coordinate", "hybrid level", "1", "down"}},
    {"hybridHeight", {"atmosphere_hybrid_height_coordinate", "hybrid height level", "1", "up"}},
    {"sigma", {"atmosphere_sigma_coordinate", "sigma level", "1", "down"}},
    {"sigmaLayer", {"atmosphere_sigma_coordinate", "sigma level", "1", "down"}},
    {"sigmaLayerHighPrecision", {"atmosphere_sigma_coordinate", "sigma level", "1", "down"}},
    {"eta", {NULL, "eta level", "1", "down"}},
    {"theta", {"air_potential_temperature", "potential temperature", "K", "up"}},
    {"thetaLayer", {"air_potential_temperature", "potential temperature", "K", "up"}},
    {"isothermal", {"air_temperature", "temperature", "K", NULL}},
    {"potentialVorticity", {NULL, "potential vorticity", "1e-9 K m2 kg-1 s-1", NULL}},
    {"generalVertical", {NULL, "generalized vertical level", "1", "down"}},
    {"generalVerticalLayer", {NULL, "generalized vertical level", "1", "down"}},
    {"soil", {NULL, "soil level", "1", "down"}},
    {"soilLayer", {NULL, "soil level", "1", "down"}},
    {"snowLayer", {NULL, "snow level", "1", "down"}},
    {"seaIceLayer", {NULL, "sea ice level", "1", "down"}},
    {"oceanModel", {NULL, "ocean model level", "1", "down"}},
    {"oceanModelLayer", {NULL, "ocean model level", "1", "down"}},
};
/* clang-format on */

const struct sq_grib_level_attributes *sq_grib_level_attributes(const char *level_type)
{
    static const struct sq_grib_level_attributes plain = {NULL, "level", "1", NULL};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].level_type, level_type) == 0)
            return &known[i].attributes;
    return &plain;
}
