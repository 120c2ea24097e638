/* Attributes of the whole dataset: conventions, who made the fields, and which arrays are coordinates. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/build.h"
#include <string.h>

/* WMO common code table C-11, with ecCodes' names */
static const struct {
    uint16_t code;
    const char *name, *description;
} CENTRES[] = {
    {1, "ammc", "Melbourne"},
    {4, "rums", "Moscow"},
    {7, "kwbc", "US National Weather Service - NCEP"},
    {24, "fapr", "Pretoria"},
    {28, "vabb", "New Delhi"},
    {29, "dems", "New Delhi"},
    {34, "rjtd", "Japanese Meteorological Agency - Tokyo"},
    {38, "babj", "Beijing"},
    {40, "rksl", "Seoul"},
    {41, "sabm", "Buenos Aires"},
    {46, "sbsj", "Brasilian Space Agency - INPE"},
    {54, "cwao", "Canadian Meteorological Service - Montreal"},
    {58, "fnmo", "US Navy - Fleet Numerical Oceanography Center"},
    {69, "nzkl", "Wellington"},
    {74, "egrr", "U.K. Met Office - Exeter"},
    {78, "edzw", "Offenbach"},
    {80, "cnmc", "Rome"},
    {82, "eswi", "Norrkoping"},
    {84, "lfpw", "French Weather Service - Toulouse"},
    {85, "lfpw", "French Weather Service - Toulouse"},
    {86, "efkl", "Helsinki"},
    {88, "enmi", "Oslo"},
    {94, "ekmi", "Copenhagen"},
    {98, "ecmf", "European Centre for Medium-Range Weather Forecasts"},
    {99, "knmi", "DeBilt, Netherlands"},
    {161, "161", "US NOAA Office of Oceanic and Atmospheric Research"},
    {173, "nasa", "US National Aeronautics and Space Administration"},
    {204, "niwa", "National Institute of Water and Atmospheric Research"},
    {213, "birk", "Reykjavik"},
    {214, "lemm", "INM Madrid"},
    {215, "lssw", "Zurich"},
    {218, "habp", "Budapest"},
    {224, "lowm", "Austria"},
    {227, "ebum", "Belgium"},
    {233, "eidb", "Dublin"},
    {250, "cosmo", "COnsortium for Small scale MOdelling"},
    {252, "mpim", "Max Planck Institute for Meteorology"},
    {254, "eums", "EUMETSAT Operation Centre"},
};

int sq_cube_put_centre(struct sq_json *a, unsigned centre, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *number = sq_format("%u", centre);
    const char *name = number, *description = number;
    if (!number)
        return sq_error_memory(err, 0);
    for (size_t i = 0; i < sizeof CENTRES / sizeof *CENTRES; i++) {
        if (CENTRES[i].code == centre) {
            name = CENTRES[i].name;
            description = CENTRES[i].description;
        }
    }
    SQ_TRY(sq_cube_put_string(a, "GRIB_centre", name, err));
    SQ_TRY(sq_cube_put_string(a, "GRIB_centreDescription", description, err));
    return sq_cube_put_string(a, "institution", description, err);
}

/* What all products of the cube have in common. */
static int put_origin(const struct sq_builder *b, struct sq_json *a, struct squall_error *err)
{
    const struct sq_grib_product *first = NULL;
    bool same_edition = true, same_centre = true, same_subcentre = true;
    for (size_t i = 0; i < b->cube->place_count; i++) {
        const struct sq_grib_product *p = &b->index->products[b->index->fields[b->cube->places[i].field].product];
        first = first ? first : p;
        same_edition &= p->raw.edition == first->raw.edition;
        same_centre &= p->centre == first->centre;
        same_subcentre &= p->subcentre == first->subcentre;
    }
    if (!first)
        return 0;
    if (same_edition)
        SQ_TRY(sq_cube_put_int(a, "GRIB_edition", first->raw.edition, err));
    if (same_centre)
        SQ_TRY(sq_cube_put_centre(a, first->centre, err));
    return same_centre && same_subcentre ? sq_cube_put_int(a, "GRIB_subCentre", first->subcentre, err) : 0;
}

/* Arrays that are coordinates without being dimensions; xarray goes by this list. */
static int put_coordinates(const struct sq_cube *cube, struct sq_json *a, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    for (size_t i = 0; i < cube->coordinate_count; i++) {
        const struct sq_cube_coordinate *c = &cube->coordinates[i];
        if (c->rank != 1 || strcmp(c->name, c->dims[0]) != 0)
            sq_text_printf(&names, "%s%s", names.length ? " " : "", c->name);
    }
    return names.failed ? sq_error_memory(err, names.length) : sq_cube_put_string(a, "coordinates", sq_text_string(&names), err);
}

int sq_cube_describe_dataset(struct sq_builder *b, struct squall_error *err)
{
    const struct sq_json *known = sq_json_get(b->options->schema, "attributes");
    struct sq_json *a = b->cube->attributes = known ? sq_json_copy(known) : sq_json_new_object();
    if (!a)
        return sq_error_memory(err, 0);
    if (!known) {
        SQ_TRY(sq_cube_put_string(a, "Conventions", "CF-1.7", err));
        SQ_TRY(put_origin(b, a, err));
    }
    return put_coordinates(b->cube, a, err);
}
