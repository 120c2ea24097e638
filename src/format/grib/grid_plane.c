/* See grid_plane.h. The header gives the first point in degrees; projecting it gives the origin from which the grid lengths count. */
#include "format/grib/grid_plane.h"

#include <math.h>
#include <string.h>

static const double smallest_axis_m = 6e6, default_radius_m = 6371229; /* code table 3.2, shape 6 */
static const double radians = M_PI / 180;

/* The UKV's headers: centre 74 writes the reference point in degrees instead of microdegrees, and no scale factor. */
static bool is_ukv(const struct sq_grid_definition *g, uint16_t centre)
{
    return centre == 74 && g->reference_latitude_raw == 49 && g->reference_longitude_raw == -2 && g->reference_scale == 0;
}

static double longitude_180(double longitude)
{
    double l = fmod(longitude, 360);
    return l >= 180 ? l - 360 : l < -180 ? l + 360 : l;
}

static void set_transverse_mercator(const struct sq_grid_definition *g, uint16_t centre, struct sq_grid_projection *p)
{
    if (is_ukv(g, centre)) {
        p->british_national_grid = true;
        p->latitude_origin = 49;
        p->longitude_origin = -2;
        p->scale = 0.9996012717;
        p->false_easting_m = 400000;
        p->false_northing_m = -100000;
        p->major_m = 6377563.396; /* Airy 1830 */
        p->minor_m = 6356256.909;
        return;
    }
    p->latitude_origin = g->reference_latitude_raw / 1e6;
    p->longitude_origin = longitude_180(g->reference_longitude_raw / 1e6);
    p->scale = g->reference_scale;
    p->false_easting_m = g->false_easting_m;
    p->false_northing_m = g->false_northing_m;
    if (!(p->scale > 0.5 && p->scale < 2))
        p->impossible = "scale factor at the reference point";
}

/* x counts from a meridian from which no point of the grid is more than half a turn away: 0 where it serves, else the middle. */
static void set_mercator(const struct sq_grid_definition *g, struct sq_grid_projection *p)
{
    p->parallel_first = g->true_latitude;
    if (!(fabs(p->parallel_first) < 90))
        p->impossible = "latitude of true scale";
    if (g->rotation_angle != 0)
        p->impossible = "orientation";
    double turn = 2 * M_PI * p->major_m * cos(p->parallel_first * radians);
    double degrees = 360 * g->dx_m * (g->ni - 1.0) / turn;
    double west = longitude_180(sq_grid_degrees(g, g->longitude_first));
    if (g->scanning_mode & SQ_GRID_I_NEGATIVE)
        west -= degrees;
    if (west < -180 || west + degrees > 180)
        p->longitude_origin = longitude_180(nearbyint(west + degrees / 2));
}

static void set_polar(const struct sq_grid_definition *g, struct sq_grid_projection *p)
{
    double side = g->south_pole_on_plane ? -1 : 1;
    p->latitude_origin = 90 * side;
    p->longitude_origin = longitude_180(g->central_longitude);
    p->parallel_first = fabs(g->true_latitude) * side; /* some write it without its sign */
    if (!(fabs(p->parallel_first) > 0 && fabs(p->parallel_first) <= 90))
        p->impossible = "latitude of true scale";
}

static void set_lambert(const struct sq_grid_definition *g, struct sq_grid_projection *p)
{
    p->longitude_origin = longitude_180(g->central_longitude);
    p->parallel_first = g->parallel_first;
    p->parallel_second = g->parallel_second;
    p->latitude_origin = g->true_latitude;
    if (!(fabs(p->latitude_origin) < 90))
        p->latitude_origin = p->parallel_first;
    if (!(fabs(p->parallel_first) < 90 && fabs(p->parallel_second) < 90) || fabs(p->parallel_first + p->parallel_second) < 1e-9)
        p->impossible = "standard parallels";
    if (g->bipolar)
        p->impossible = "bipolar projection";
}

void sq_grid_projection_of(const struct sq_grid_definition *g, uint16_t centre, struct sq_grid_projection *ret)
{
    struct sq_grid_projection p = {.kind = g->kind, .major_m = g->earth.major_m, .minor_m = g->earth.minor_m, .scale = 1};
    if (p.major_m == 0 || p.minor_m == 0) {
        p.major_m = p.minor_m = default_radius_m;
        p.earth_assumed = true;
    }
    if (!(p.minor_m >= smallest_axis_m && p.minor_m <= p.major_m && p.major_m < 1e12))
        p.impossible = "axes of the Earth";
    if (g->kind == SQ_GRID_TRANSVERSE_MERCATOR)
        set_transverse_mercator(g, centre, &p);
    else if (g->kind == SQ_GRID_MERCATOR)
        set_mercator(g, &p);
    else if (g->kind == SQ_GRID_POLAR_STEREOGRAPHIC)
        set_polar(g, &p);
    else
        set_lambert(g, &p);
    *ret = p;
}

/* ---- forward formulas; angles in radians ---- */

static double eccentricity(const struct sq_grid_projection *p)
{
    double ratio = p->minor_m / p->major_m;
    return sqrt(fmax(0, 1 - ratio * ratio));
}

/* (14-15) */
static double m_of(double phi, double e)
{
    return cos(phi) / sqrt(1 - e * e * sin(phi) * sin(phi));
}

/* (15-9) */
static double t_of(double phi, double e)
{
    double s = e * sin(phi);
    return tan(M_PI / 4 - phi / 2) / pow((1 - s) / (1 + s), e / 2);
}

/* (7-6), (7-7) */
static void project_mercator(const struct sq_grid_projection *p, double phi, double dlambda, double *ret_x, double *ret_y)
{
    double e = eccentricity(p), radius = p->major_m * m_of(p->parallel_first * radians, e);
    *ret_x = radius * dlambda;
    *ret_y = -radius * log(t_of(phi, e));
}

/* (21-30), (21-31), (21-33), (21-34); the southern case is the northern one seen in a mirror */
static void project_polar(const struct sq_grid_projection *p, double phi, double dlambda, double *ret_x, double *ret_y)
{
    double e = eccentricity(p), side = p->latitude_origin < 0 ? -1 : 1, truth = fabs(p->parallel_first) * radians;
    double t = t_of(phi * side, e), rho;
    if (fabs(p->parallel_first) < 90)
        rho = p->major_m * m_of(truth, e) * t / t_of(truth, e);
    else
        rho = 2 * p->major_m * t / sqrt(pow(1 + e, 1 + e) * pow(1 - e, 1 - e));
    *ret_x = rho * sin(dlambda);
    *ret_y = -side * rho * cos(dlambda);
}

/* (14-4), (15-1) to (15-8) */
static void project_lambert(const struct sq_grid_projection *p, double phi, double dlambda, double *ret_x, double *ret_y)
{
    double e = eccentricity(p), phi1 = p->parallel_first * radians, phi2 = p->parallel_second * radians;
    double m1 = m_of(phi1, e), t1 = t_of(phi1, e), n = sin(phi1);
    if (fabs(phi1 - phi2) > 1e-10)
        n = (log(m1) - log(m_of(phi2, e))) / (log(t1) - log(t_of(phi2, e)));
    double scale = p->major_m * m1 / (n * pow(t1, n));
    double rho = scale * pow(t_of(phi, e), n), rho0 = scale * pow(t_of(p->latitude_origin * radians, e), n);
    *ret_x = rho * sin(n * dlambda);
    *ret_y = rho0 - rho * cos(n * dlambda);
}

/* Metres of a point in degrees; false where it lies outside the projection. Not for transverse mercator. */
static bool project(const struct sq_grid_projection *p, double latitude, double longitude, double *ret_x, double *ret_y)
{
    double x = NAN, y = NAN, phi = latitude * radians, dlambda = longitude_180(longitude - p->longitude_origin) * radians;
    if (p->impossible || !(fabs(latitude) <= 90))
        return false;
    if (p->kind == SQ_GRID_MERCATOR)
        project_mercator(p, phi, dlambda, &x, &y);
    else if (p->kind == SQ_GRID_POLAR_STEREOGRAPHIC)
        project_polar(p, phi, dlambda, &x, &y);
    else if (p->kind == SQ_GRID_LAMBERT)
        project_lambert(p, phi, dlambda, &x, &y);
    if (!isfinite(x) || !isfinite(y))
        return false;
    *ret_x = x;
    *ret_y = y;
    return true;
}

/* ---- rows and columns ---- */

/*
 * From a corner to the other in count points; the corners win over increments and scanning bits, which serve only where the corners are
 * one. `reversed`: decode turns this direction round.
 */
static void between_corners(double first, double last, uint32_t count, double step, bool reversed, double *ret_first, double *ret_step)
{
    double d = count > 1 && first != last ? (last - first) / (count - 1) : step;
    if (count > 1 && first == last && reversed)
        d = -step;
    *ret_first = reversed ? first + d * (count - 1) : first;
    *ret_step = reversed ? -d : d;
}

void sq_grid_plane_of(const struct sq_grid_definition *g, const struct sq_grid_projection *p, struct sq_grid_plane *ret)
{
    bool westward = g->scanning_mode & SQ_GRID_I_NEGATIVE, northward = g->scanning_mode & SQ_GRID_J_POSITIVE;
    struct sq_grid_plane plane = {0, g->dx_m, 0, northward ? g->dy_m : -g->dy_m, true};
    if (g->kind == SQ_GRID_TRANSVERSE_MERCATOR) {
        between_corners(g->x_first_m, g->x_last_m, g->ni, g->dx_m, westward, &plane.x_first, &plane.dx);
        between_corners(g->y_first_m, g->y_last_m, g->nj, plane.dy, false, &plane.y_first, &plane.dy);
        *ret = plane;
        return;
    }
    double latitude = sq_grid_degrees(g, g->latitude_first), longitude = sq_grid_degrees(g, g->longitude_first);
    plane.absolute = project(p, latitude, longitude, &plane.x_first, &plane.y_first);
    if (westward)
        plane.x_first -= g->dx_m * (g->ni - 1.0);
    *ret = plane;
}

static bool same_projection(const struct sq_grid_projection *a, const struct sq_grid_projection *b)
{
    return a->major_m == b->major_m && a->minor_m == b->minor_m && a->latitude_origin == b->latitude_origin &&
           a->longitude_origin == b->longitude_origin && a->parallel_first == b->parallel_first &&
           a->parallel_second == b->parallel_second && a->scale == b->scale && a->false_easting_m == b->false_easting_m &&
           a->false_northing_m == b->false_northing_m && (a->impossible == NULL) == (b->impossible == NULL);
}

bool sq_grid_plane_same(const struct sq_grid_definition *a, uint16_t centre_a, const struct sq_grid_definition *b, uint16_t centre_b)
{
    struct sq_grid_projection pa, pb;
    struct sq_grid_plane a_plane, b_plane;
    sq_grid_projection_of(a, centre_a, &pa);
    sq_grid_projection_of(b, centre_b, &pb);
    sq_grid_plane_of(a, &pa, &a_plane);
    sq_grid_plane_of(b, &pb, &b_plane);
    if (!same_projection(&pa, &pb) || a_plane.dx != b_plane.dx || fabs(a_plane.dy) != fabs(b_plane.dy))
        return false;
    if (!a_plane.absolute || !b_plane.absolute)
        return false;
    double south_a = fmin(a_plane.y_first, a_plane.y_first + a_plane.dy * (a->nj - 1.0));
    double south_b = fmin(b_plane.y_first, b_plane.y_first + b_plane.dy * (b->nj - 1.0));
    double rounding = a->scanning_mode == b->scanning_mode ? 1e-6 : fmin(1, a_plane.dx / 10);
    return fabs(a_plane.x_first - b_plane.x_first) <= rounding && fabs(south_a - south_b) <= rounding;
}
