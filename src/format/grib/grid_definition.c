/*
 * Reading of section 3 (edition 2, WMO FM 92 templates 3.N) and of the GDS (edition 1, section 2). One table says for each template
 * what it is called and which function reads its octets; templates without a function are known by name and number of points only.
 */
#include "format/grib/grid_definition.h"

#include <string.h>

#include "base/cursor.h"
#include "base/error_internal.h"

enum {
    HEAD2_BYTES = 14, /* of section 3, before the template */
    HEAD1_BYTES = 6,  /* of the GDS, before the type's own octets */
    GDS_BYTES = 32,   /* the GDS of edition 1 at least */
    LIST_AT_255 = 255 /* edition 1: neither vertical coordinates nor row lengths */
};

static const char spectral[] = "spectral coefficients are not values on a grid";
static const char bifourier[] = "bi-Fourier coefficients are not values on a grid";
static const char no_description[] = "the message has no grid description (edition 1's predefined grids are not known by number)";

typedef void template_reader(struct sq_cursor *c, struct sq_grid_definition *g);

struct template
{
    uint16_t number;
    const char *title;        /* of the code table */
    const char *name;         /* ecCodes' gridType */
    const char *reduced_name; /* where a list of row lengths is there; NULL: there is no such thing */
    template_reader *read;    /* NULL: only the number of points is known */
    enum sq_grib_grid_kind kind;
    const char *unsupported;
};

/* ---- pieces that several templates share ---- */

static double scaled(uint8_t scale_factor, uint32_t value)
{
    if (scale_factor == 0xff || value == UINT32_MAX)
        return 0;
    int exponent = scale_factor & 0x80 ? -(scale_factor & 0x7f) : scale_factor;
    double power = 1;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--)
        power *= 10;
    return exponent < 0 ? value * power : value / power;
}

static double microdegrees(int32_t count)
{
    return count / 1e6;
}

static double signed_microdegrees(struct sq_cursor *c)
{
    return microdegrees(sq_sign_magnitude_be(c, 4));
}

/* Code table 3.2 and the octets 15 to 30 of most templates */
static void read_earth(struct sq_cursor *c, struct sq_grid_earth *earth)
{
    static const double known[][2] = {
        [0] = {6367470, 6367470},         [2] = {6378160, 6356775},         [4] = {6378137, 6356752.314},
        [5] = {6378137, 6356752.314245},  [6] = {6371229, 6371229},         [8] = {6371200, 6371200},
        [9] = {6377563.396, 6356256.909}, [10] = {6378137, 6356752.314245}, [11] = {695990000, 695990000},
    };
    earth->shape = sq_u8(c);
    double value[3];
    for (int i = 0; i < 3; i++) {
        uint8_t scale_factor = sq_u8(c);
        value[i] = scaled(scale_factor, sq_u32be(c));
    }
    double unit = earth->shape == 3 ? 1000 : 1;
    if (earth->shape == 1) {
        earth->major_m = earth->minor_m = value[0];
    } else if (earth->shape == 3 || earth->shape == 7) {
        earth->major_m = value[1] * unit;
        earth->minor_m = value[2] * unit;
    } else if (earth->shape < sizeof known / sizeof known[0]) {
        earth->major_m = known[earth->shape][0];
        earth->minor_m = known[earth->shape][1];
    }
}

static void read_size(struct sq_cursor *c, struct sq_grid_definition *g)
{
    g->ni = sq_u32be(c);
    g->nj = sq_u32be(c);
}

/* Octets 39 to 46: the unit of the angles. Zero and missing mean 10^-6 degrees (template 3.0, note 1). */
static void read_unit(struct sq_cursor *c, struct sq_grid_definition *g)
{
    uint32_t basic = sq_u32be(c), divisions = sq_u32be(c);
    bool given = basic != 0 && basic != UINT32_MAX;
    g->unit_numerator = given ? basic : 1;
    g->unit_denominator = divisions != 0 && divisions != UINT32_MAX ? divisions : 1000000;
}

static void read_flags(struct sq_cursor *c, struct sq_grid_definition *g)
{
    g->resolution_flags = sq_u8(c);
    g->has_resolution_flags = true;
}

static int64_t read_step(struct sq_cursor *c, unsigned size_bytes, bool given)
{
    uint64_t missing = (UINT64_C(1) << (8 * size_bytes)) - 1;
    uint64_t step = sq_uint_be(c, size_bytes);
    return given && step != missing && step != 0 ? (int64_t)step : SQ_GRID_STEP_MISSING;
}

static void read_first(struct sq_cursor *c, struct sq_grid_definition *g, unsigned size_bytes)
{
    g->latitude_first = sq_sign_magnitude_be(c, size_bytes);
    g->longitude_first = sq_sign_magnitude_be(c, size_bytes);
}

static void read_last(struct sq_cursor *c, struct sq_grid_definition *g, unsigned size_bytes)
{
    g->latitude_last = sq_sign_magnitude_be(c, size_bytes);
    g->longitude_last = sq_sign_magnitude_be(c, size_bytes);
}

/* ---- edition 2, from octet 15 on ---- */

static void read_corners(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    read_unit(c, g);
    read_first(c, g, 4);
    read_flags(c, g);
    read_last(c, g, 4);
}

static void read_latlon(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_corners(c, g);
    g->i_step = read_step(c, 4, g->resolution_flags & SQ_GRID_I_STEP_GIVEN);
    g->j_step = read_step(c, 4, g->resolution_flags & SQ_GRID_J_STEP_GIVEN);
    g->scanning_mode = sq_u8(c);
}

static double ieee32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void read_rotation(struct sq_cursor *c, struct sq_grid_definition *g)
{
    g->south_pole_latitude = signed_microdegrees(c);
    g->south_pole_longitude = signed_microdegrees(c);
    g->rotation_angle = ieee32(sq_u32be(c));
}

static void read_rotated_latlon(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_latlon(c, g);
    read_rotation(c, g);
}

static void read_gaussian(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_corners(c, g);
    g->i_step = read_step(c, 4, g->resolution_flags & SQ_GRID_I_STEP_GIVEN);
    g->j_step = SQ_GRID_STEP_MISSING;
    g->parallels = sq_u32be(c);
    g->scanning_mode = sq_u8(c);
}

static void read_rotated_gaussian(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_gaussian(c, g);
    read_rotation(c, g);
}

static void read_mercator(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    read_first(c, g, 4);
    read_flags(c, g);
    g->true_latitude = signed_microdegrees(c);
    read_last(c, g, 4);
    g->scanning_mode = sq_u8(c);
    g->rotation_angle = sq_u32be(c) / 1e6;
    g->dx_m = sq_u32be(c) / 1e3;
    g->dy_m = sq_u32be(c) / 1e3;
}

static void read_transverse_mercator(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    g->reference_latitude_raw = sq_sign_magnitude_be(c, 4);
    g->reference_longitude_raw = sq_sign_magnitude_be(c, 4);
    read_flags(c, g);
    g->reference_scale = ieee32(sq_u32be(c));
    g->false_easting_m = sq_sign_magnitude_be(c, 4) / 1e2;
    g->false_northing_m = sq_sign_magnitude_be(c, 4) / 1e2;
    g->scanning_mode = sq_u8(c);
    g->dx_m = sq_u32be(c) / 1e2;
    g->dy_m = sq_u32be(c) / 1e2;
    g->x_first_m = sq_sign_magnitude_be(c, 4) / 1e2;
    g->y_first_m = sq_sign_magnitude_be(c, 4) / 1e2;
    g->x_last_m = sq_sign_magnitude_be(c, 4) / 1e2;
    g->y_last_m = sq_sign_magnitude_be(c, 4) / 1e2;
}

static void read_centre_flag(struct sq_cursor *c, struct sq_grid_definition *g)
{
    uint8_t flag = sq_u8(c); /* flag table 3.5 */
    g->south_pole_on_plane = flag & 0x80;
    g->bipolar = flag & 0x40;
}

static void read_polar_stereographic(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    read_first(c, g, 4);
    read_flags(c, g);
    g->true_latitude = signed_microdegrees(c);
    g->central_longitude = signed_microdegrees(c);
    g->dx_m = sq_u32be(c) / 1e3;
    g->dy_m = sq_u32be(c) / 1e3;
    read_centre_flag(c, g);
    g->scanning_mode = sq_u8(c);
}

/* Lambert conformal and Albers */
static void read_conic(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_polar_stereographic(c, g);
    g->parallel_first = signed_microdegrees(c);
    g->parallel_second = signed_microdegrees(c);
    g->south_pole_latitude = signed_microdegrees(c);
    g->south_pole_longitude = signed_microdegrees(c);
}

/* Nx and Ny in the usual place, flags at octet 47, the scanning mode after `between` more octets: enough to put values into rows */
static void read_rows(struct sq_cursor *c, struct sq_grid_definition *g, unsigned between)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    sq_take(c, 8);
    read_flags(c, g);
    sq_take(c, between);
    g->scanning_mode = sq_u8(c);
}

static void read_variable_latlon(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_rows(c, g, 0);
}

static void read_azimuthal_equidistant(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_rows(c, g, 9);
}

static void read_space_view(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_rows(c, g, 16);
}

static void read_azimuthal_equal_area(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_earth(c, &g->earth);
    read_size(c, g);
    sq_take(c, 16);
    read_flags(c, g);
    sq_take(c, 8);
    g->scanning_mode = sq_u8(c);
}

static void read_unstructured(struct sq_cursor *c, struct sq_grid_definition *g)
{
    g->earth.shape = sq_u8(c);
    g->grid_number_used = (uint32_t)sq_uint_be(c, 3);
    g->grid_in_reference = sq_u8(c);
    g->grid_uuid = sq_take(c, 16);
}

static const struct template edition2[] = {
    {0, "Latitude/longitude (Also called equidistant cylindrical, or Plate Carree)", "regular_ll", "reduced_ll", read_latlon,
     SQ_GRID_REGULAR_LL, NULL},
    {1, "Rotated latitude/longitude", "rotated_ll", NULL, read_rotated_latlon, SQ_GRID_ROTATED_LL, NULL},
    {2, "Stretched latitude/longitude", "stretched_ll", NULL, read_latlon, SQ_GRID_OTHER, NULL},
    {3, "Stretched and rotated latitude/longitude", "stretched_rotated_ll", NULL, read_rotated_latlon, SQ_GRID_OTHER, NULL},
    {4, "Variable resolution latitude/longitude", "varres_ll", NULL, read_variable_latlon, SQ_GRID_OTHER, NULL},
    {5, "Variable resolution rotated latitude/longitude", "varres_rotated_ll", NULL, read_variable_latlon, SQ_GRID_OTHER, NULL},
    {10, "Mercator", "mercator", NULL, read_mercator, SQ_GRID_MERCATOR, NULL},
    {12, "Transverse Mercator", "transverse_mercator", NULL, read_transverse_mercator, SQ_GRID_TRANSVERSE_MERCATOR, NULL},
    {13, "Mercator with modelling subdomains definition", "mercator_lam", NULL, read_mercator, SQ_GRID_MERCATOR, NULL},
    {20, "Polar stereographic projection (Can be south or north)", "polar_stereographic", NULL, read_polar_stereographic,
     SQ_GRID_POLAR_STEREOGRAPHIC, NULL},
    {23, "Polar stereographic with modelling subdomains definition", "polar_stereographic_lam", NULL, read_polar_stereographic,
     SQ_GRID_POLAR_STEREOGRAPHIC, NULL},
    {30, "Lambert conformal (Can be secant or tangent, conical or bipolar)", "lambert", NULL, read_conic, SQ_GRID_LAMBERT, NULL},
    {31, "Albers equal area", "albers", NULL, read_conic, SQ_GRID_OTHER, NULL},
    {33, "Lambert conformal with modelling subdomains definition", "lambert_lam", NULL, read_conic, SQ_GRID_LAMBERT, NULL},
    {40, "Gaussian latitude/longitude", "regular_gg", "reduced_gg", read_gaussian, SQ_GRID_REGULAR_GG, NULL},
    {41, "Rotated Gaussian latitude/longitude", "rotated_gg", "reduced_rotated_gg", read_rotated_gaussian, SQ_GRID_OTHER, NULL},
    {42, "Stretched Gaussian latitude/longitude", "stretched_gg", "reduced_stretched_gg", read_gaussian, SQ_GRID_OTHER, NULL},
    {43, "Stretched and rotated Gaussian latitude/longitude", "stretched_rotated_gg", "reduced_stretched_rotated_gg", read_rotated_gaussian,
     SQ_GRID_OTHER, NULL},
    {50, "Spherical harmonic coefficients", "sh", NULL, NULL, SQ_GRID_OTHER, spectral},
    {51, "Rotated spherical harmonic coefficients", "rotated_sh", NULL, NULL, SQ_GRID_OTHER, spectral},
    {52, "Stretched spherical harmonic coefficients", "stretched_sh", NULL, NULL, SQ_GRID_OTHER, spectral},
    {53, "Stretched and rotated spherical harmonic coefficients", "stretched_rotated_sh", NULL, NULL, SQ_GRID_OTHER, spectral},
    {61, "Spectral Mercator with modelling subdomains definition", "mercator_bf", NULL, NULL, SQ_GRID_OTHER, bifourier},
    {62, "Spectral polar stereographic with modelling subdomains definition", "polar_stereographic_bf", NULL, NULL, SQ_GRID_OTHER,
     bifourier},
    {63, "Spectral Lambert conformal with modelling subdomains definition", "lambert_bf", NULL, NULL, SQ_GRID_OTHER, bifourier},
    {90, "Space view perspective or orthographic", "space_view", NULL, read_space_view, SQ_GRID_OTHER, NULL},
    {100, "Triangular grid based on an icosahedron", "triangular_grid", NULL, NULL, SQ_GRID_OTHER, NULL},
    {101, "General unstructured grid", "unstructured_grid", NULL, read_unstructured, SQ_GRID_OTHER, NULL},
    {110, "Equatorial azimuthal equidistant projection", "equatorial_azimuthal_equidistant", NULL, read_azimuthal_equidistant,
     SQ_GRID_OTHER, NULL},
    {120, "Azimuth-range projection", "azimuth_range", NULL, NULL, SQ_GRID_OTHER, NULL},
    {130, "Irregular latitude/longitude grid", "irregular_latlon", NULL, NULL, SQ_GRID_OTHER, NULL},
    {140, "Lambert azimuthal equal area projection", "lambert_azimuthal_equal_area", NULL, read_azimuthal_equal_area, SQ_GRID_OTHER, NULL},
    {150, "Hierarchical Equal Area isoLatitude Pixelization grid (HEALPix)", "healpix", NULL, NULL, SQ_GRID_OTHER, NULL},
    {1000, "Cross-section grid with points equally spaced on the horizontal", "cross_section", NULL, NULL, SQ_GRID_OTHER, NULL},
    {1100, "Hovmoller diagram grid with points equally spaced on the horizontal", "Hovmoller", NULL, NULL, SQ_GRID_OTHER, NULL},
    {1200, "Time section grid", "time_section", NULL, NULL, SQ_GRID_OTHER, NULL},
    {32769, "Rotated latitude/longitude (Arakawa Non-E Staggered grid)", "ncep_32769", NULL, read_latlon, SQ_GRID_OTHER,
     NULL}, /* the centre's own: 7 only */
};

/* ---- edition 1, from octet 7 on ---- */

/* ni or nj: two octets, all ones where missing */
static uint32_t read_count1(struct sq_cursor *c)
{
    uint16_t count = sq_u16be(c);
    return count == UINT16_MAX ? SQ_GRID_COUNT_MISSING : count;
}

/* Flag table 7 in terms of edition 2's 3.3, and the earth that it implies */
static void read_flags1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    uint8_t flags = sq_u8(c);
    g->has_resolution_flags = true;
    g->resolution_flags =
        (uint8_t)((flags & 0x80 ? SQ_GRID_I_STEP_GIVEN | SQ_GRID_J_STEP_GIVEN : 0) | (flags & SQ_GRID_UV_RELATIVE_TO_GRID));
    if (flags & 0x40)
        g->earth = (struct sq_grid_earth){2, 6378160, 6356775};
    else
        g->earth = (struct sq_grid_earth){0, 6367470, 6367470};
}

static void read_head1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    g->ni = read_count1(c);
    g->nj = read_count1(c);
    read_first(c, g, 3);
    read_flags1(c, g);
}

static uint8_t read_scanning1(struct sq_cursor *c)
{
    return sq_u8(c) & (SQ_GRID_I_NEGATIVE | SQ_GRID_J_POSITIVE | SQ_GRID_J_CONSECUTIVE);
}

static void read_latlon1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
    read_last(c, g, 3);
    g->i_step = read_step(c, 2, g->resolution_flags & SQ_GRID_I_STEP_GIVEN);
    g->j_step = read_step(c, 2, g->resolution_flags & SQ_GRID_J_STEP_GIVEN);
    g->scanning_mode = read_scanning1(c);
}

static double signed_millidegrees(struct sq_cursor *c)
{
    return sq_sign_magnitude_be(c, 3) / 1e3;
}

/* IBM System/360 single precision: sign, exponent of 16 with excess 64, 24 bits of fraction */
static double ibm32(uint32_t bits)
{
    double value = (bits & 0xffffff) / 16777216.0;
    for (int exponent = (int)(bits >> 24 & 0x7f) - 64; exponent; exponent += exponent < 0 ? 1 : -1)
        value = exponent < 0 ? value / 16 : value * 16;
    return bits & UINT32_C(0x80000000) ? -value : value;
}

static void read_rotation1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    sq_take(c, 4); /* reserved: octets 29 to 32 */
    g->south_pole_latitude = signed_millidegrees(c);
    g->south_pole_longitude = signed_millidegrees(c);
    g->rotation_angle = ibm32(sq_u32be(c));
}

static void read_rotated_latlon1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_latlon1(c, g);
    read_rotation1(c, g);
}

static void read_gaussian1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
    read_last(c, g, 3);
    g->i_step = read_step(c, 2, g->resolution_flags & SQ_GRID_I_STEP_GIVEN);
    g->j_step = SQ_GRID_STEP_MISSING;
    g->parallels = sq_u16be(c);
    g->scanning_mode = read_scanning1(c);
}

static void read_rotated_gaussian1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_gaussian1(c, g);
    read_rotation1(c, g);
}

static void read_mercator1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
    read_last(c, g, 3);
    g->true_latitude = signed_millidegrees(c);
    sq_take(c, 1);
    g->scanning_mode = read_scanning1(c);
    g->dx_m = (double)sq_uint_be(c, 3);
    g->dy_m = (double)sq_uint_be(c, 3);
}

static void read_polar_stereographic1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
    g->central_longitude = signed_millidegrees(c);
    g->dx_m = (double)sq_uint_be(c, 3);
    g->dy_m = (double)sq_uint_be(c, 3);
    read_centre_flag(c, g);
    g->scanning_mode = read_scanning1(c);
    g->true_latitude = 60; /* FM 92 edition 1, table D, note 2 */
}

static void read_conic1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_polar_stereographic1(c, g);
    g->parallel_first = signed_millidegrees(c);
    g->parallel_second = signed_millidegrees(c);
    g->south_pole_latitude = signed_millidegrees(c);
    g->south_pole_longitude = signed_millidegrees(c);
    g->true_latitude = g->parallel_first; /* edition 1 has no LaD */
}

static void read_space_view1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
    sq_take(c, 10);
    g->scanning_mode = read_scanning1(c);
}

/* Nx and Ny alone */
static void read_size1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    read_head1(c, g);
}

/* J, K, M: a triangular truncation has (M + 1)(M + 2) / 2 complex coefficients */
static void read_spectral1(struct sq_cursor *c, struct sq_grid_definition *g)
{
    sq_take(c, 4);
    uint64_t m = sq_u16be(c);
    g->point_count = (m + 1) * (m + 2);
}

/* By code table 6; the template that edition 2 has for it follows from the name. */
static const struct template edition1[] = {
    {0, "Latitude/Longitude Grid", "regular_ll", "reduced_ll", read_latlon1, SQ_GRID_REGULAR_LL, NULL},
    {1, "Mercator Projection Grid", "mercator", NULL, read_mercator1, SQ_GRID_MERCATOR, NULL},
    {3, "Lambert Conformal", "lambert", NULL, read_conic1, SQ_GRID_LAMBERT, NULL},
    {4, "Gaussian Latitude/Longitude Grid", "regular_gg", "reduced_gg", read_gaussian1, SQ_GRID_REGULAR_GG, NULL},
    {5, "Polar Stereographic Projection Grid", "polar_stereographic", NULL, read_polar_stereographic1, SQ_GRID_POLAR_STEREOGRAPHIC, NULL},
    {6, "Universal Transverse Mercator", "UTM", NULL, read_size1, SQ_GRID_OTHER, NULL},
    {7, "Simple polyconic projection", "simple_polyconic", NULL, read_size1, SQ_GRID_OTHER, NULL},
    {8, "Albers equal-area, secant or tangent, conic or bi-polar", "albers", NULL, read_conic1, SQ_GRID_OTHER, NULL},
    {9, "Miller's cylindrical projection", "miller", NULL, read_size1, SQ_GRID_OTHER, NULL},
    {10, "Rotated Latitude/Longitude grid", "rotated_ll", NULL, read_rotated_latlon1, SQ_GRID_ROTATED_LL, NULL},
    {14, "Rotated Gaussian latitude/longitude grid", "rotated_gg", "reduced_rotated_gg", read_rotated_gaussian1, SQ_GRID_OTHER, NULL},
    {20, "Stretched latitude/longitude grid", "stretched_ll", NULL, read_latlon1, SQ_GRID_OTHER, NULL},
    {24, "Stretched Gaussian latitude/longitude", "stretched_gg", "reduced_stretched_gg", read_gaussian1, SQ_GRID_OTHER, NULL},
    {30, "Stretched and rotated latitude/longitude", "stretched_rotated_ll", NULL, read_rotated_latlon1, SQ_GRID_OTHER, NULL},
    {34, "Stretched and rotated Gaussian latitude/longitude", "stretched_rotated_gg", "reduced_stretched_rotated_gg",
     read_rotated_gaussian1, SQ_GRID_OTHER, NULL},
    {50, "Spherical Harmonic Coefficients", "sh", NULL, read_spectral1, SQ_GRID_OTHER, spectral},
    {60, "Rotated Spherical Harmonic coefficients", "rotated_sh", NULL, read_spectral1, SQ_GRID_OTHER, spectral},
    {70, "Stretched Spherical Harmonic coefficients", "stretched_sh", NULL, read_spectral1, SQ_GRID_OTHER, spectral},
    {80, "Stretched and rotated Spherical Harmonic", "stretched_rotated_sh", NULL, read_spectral1, SQ_GRID_OTHER, spectral},
    {90, "Space view perspective or orthographic grid", "space_view", NULL, read_space_view1, SQ_GRID_OTHER, NULL},
};

/* ---- both ---- */

static const struct template *find_template(const struct template *table, size_t count, unsigned number)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].number == number)
            return &table[i];
    return NULL;
}

static uint16_t template_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof edition2 / sizeof edition2[0]; i++)
        if (strcmp(edition2[i].name, name) == 0)
            return edition2[i].number;
    return SQ_GRID_TEMPLATE_NONE;
}

uint32_t sq_grid_row_length(const struct sq_grid_definition *g, uint32_t n)
{
    struct sq_cursor c = sq_cursor(g->row_lengths + (size_t)n * g->row_length_bytes, g->row_length_bytes);
    return (uint32_t)sq_uint_be(&c, g->row_length_bytes);
}

static enum sq_grib_grid_kind reduced_kind(enum sq_grib_grid_kind regular)
{
    return regular == SQ_GRID_REGULAR_LL ? SQ_GRID_REDUCED_LL : regular == SQ_GRID_REGULAR_GG ? SQ_GRID_REDUCED_GG : SQ_GRID_OTHER;
}

/* The list has an entry for each of nj rows and must lie within the section. */
static int read_row_lengths(struct sq_grid_definition *g, const uint8_t *section, size_t size, size_t at, unsigned entry_bytes,
                            struct squall_error *err)
{
    if (g->nj == 0 || g->nj == SQ_GRID_COUNT_MISSING || at > size || g->nj > (size - at) / entry_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "grid description: the lengths of %u rows do not fit into its %zu bytes", g->nj, size);
    g->row_lengths = section + at;
    g->row_count = g->nj;
    g->row_length_bytes = (uint8_t)entry_bytes;
    return 0;
}

static int too_short(size_t size, const char *name, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "grid description (%s) ends after %zu bytes", name, size);
}

static int read_edition2(uint16_t centre, const uint8_t *section, size_t size, struct sq_grid_definition *g, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(section, size);
    sq_take(&c, 6);
    g->point_count = sq_u32be(&c);
    unsigned entry_bytes = sq_u8(&c);
    sq_take(&c, 1);
    g->template_number = sq_u16be(&c);
    if (sq_cursor_failed(&c))
        return too_short(size, "section 3", err);

    const struct template *t = find_template(edition2, sizeof edition2 / sizeof edition2[0], g->template_number);
    if (t && t->number >= 32768 && centre != 7)
        t = NULL;
    if (!t) {
        g->type_name = entry_bytes ? "unknown_PLPresent" : "unknown";
        return 0;
    }
    g->type_name = t->name;
    g->title = t->title;
    g->kind = t->kind;
    g->unsupported = t->unsupported;
    if (t->read)
        t->read(&c, g);
    if (sq_cursor_failed(&c))
        return too_short(size, t->name, err);
    if (entry_bytes == 0)
        return 0;

    g->kind = SQ_GRID_OTHER;
    g->type_name = "unknown_PLPresent";
    if (!t->reduced_name || entry_bytes > 4 || g->ni != SQ_GRID_COUNT_MISSING)
        return 0;
    SQ_TRY(read_row_lengths(g, section, size, size - sq_cursor_left(&c), entry_bytes, err));
    g->kind = reduced_kind(t->kind);
    g->type_name = t->reduced_name;
    return 0;
}

/* Where edition 1's list of row lengths starts: octet 5 points at the vertical coordinates, which come before it. */
static size_t row_lengths_at(const uint8_t *section)
{
    size_t at = section[4] == LIST_AT_255 || section[4] == 0 ? GDS_BYTES : section[4] - 1u;
    return at + 4u * section[3];
}

static int read_edition1(const uint8_t *section, size_t size, struct sq_grid_definition *g, struct squall_error *err)
{
    if (size < HEAD1_BYTES)
        return too_short(size, "edition 1", err);
    g->vertical_count = section[3];
    g->type_edition1 = section[5];
    const struct template *t = find_template(edition1, sizeof edition1 / sizeof edition1[0], g->type_edition1);
    if (!t) {
        g->type_name = "unknown";
        g->unsupported = "edition 1 does not say how many points a grid of this type has";
        return 0;
    }
    struct sq_cursor c = sq_cursor(section + HEAD1_BYTES, size - HEAD1_BYTES);
    g->type_name = t->name;
    g->title = t->title;
    g->kind = t->kind;
    g->unsupported = t->unsupported;
    g->template_number = template_of_name(t->name);
    t->read(&c, g);
    if (sq_cursor_failed(&c))
        return too_short(size, t->name, err);
    if (g->ni == SQ_GRID_COUNT_MISSING && t->reduced_name) {
        SQ_TRY(read_row_lengths(g, section, size, row_lengths_at(section), 2, err));
        g->kind = reduced_kind(t->kind);
        g->type_name = t->reduced_name;
    }
    return 0;
}

int sq_grid_definition_read(uint8_t edition, uint16_t centre, const uint8_t *section, size_t size, struct sq_grid_definition *ret,
                            struct squall_error *err)
{
    struct sq_grid_definition g = {
        .template_number = SQ_GRID_TEMPLATE_NONE,
        .kind = SQ_GRID_OTHER,
        .unit_numerator = 1,
        .unit_denominator = edition == 1 ? 1000 : 1000000,
        .i_step = SQ_GRID_STEP_MISSING,
        .j_step = SQ_GRID_STEP_MISSING,
    };
    if (!section || size == 0) {
        g.type_name = "unknown";
        g.unsupported = no_description;
    } else if (edition == 1) {
        SQ_TRY(read_edition1(section, size, &g, err));
    } else {
        SQ_TRY(read_edition2(centre, section, size, &g, err));
    }
    *ret = g;
    return 0;
}
