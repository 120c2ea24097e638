/*
 * What GRIB fields have in common, under ecCodes' names of the keys: a row for each product and each grid. Whoever puts fields in order (grib_fields.h)
 * needs these and, of each field, its times only.
 */
#include "cube/grib_tables.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "cube/build.h"
#include "format/grib/keys.h"
#include "format/grib/product_parts.h"
#include <math.h>

/* MARS' type, ecCodes' mars/type.table. */
static const char *const MARS_TYPES[] = {
    [0] = "0",      [1] = "fg",       [2] = "an",      [3] = "ia",   [4] = "oi",    [5] = "3v",   [6] = "4v",      [7] = "3g",
    [8] = "4g",     [9] = "fc",       [10] = "cf",     [11] = "pf",  [12] = "ef",   [13] = "ea",  [14] = "cm",     [15] = "cs",
    [16] = "fp",    [17] = "em",      [18] = "es",     [19] = "fa",  [20] = "cl",   [21] = "si",  [22] = "s3",     [23] = "ed",
    [24] = "tu",    [25] = "ff",      [26] = "of",     [27] = "efi", [28] = "efic", [29] = "pb",  [30] = "ep",     [31] = "bf",
    [32] = "cd",    [33] = "4i",      [34] = "go",     [35] = "me",  [36] = "pd",   [37] = "ci",  [38] = "sot",    [39] = "eme",
    [40] = "im",    [42] = "sim",     [43] = "wem",    [44] = "wes", [45] = "cr",   [46] = "ses", [47] = "taem",   [48] = "taes",
    [50] = "sg",    [52] = "sf",      [60] = "pa",     [61] = "icp", [62] = "sv",   [63] = "as",  [64] = "svar",   [65] = "cv",
    [70] = "or",    [71] = "fx",      [72] = "fu",     [73] = "sfo", [74] = "tpa",  [75] = "if",  [80] = "fcmean", [81] = "fcmax",
    [82] = "fcmin", [83] = "fcstdev", [86] = "hcmean", [87] = "ssd", [88] = "gsd",  [89] = "ga",  [90] = "gai",    [91] = "gbf",
    [92] = "pfc",   [93] = "ppm",     [94] = "gwt",    [95] = "est", [96] = "mpp",  [97] = "cpf", [98] = "emdn",
};

/* Code table 1.4, type of processed data. */
static const char *const PROCESSED_TYPES[] = {"an", "fc", "af", "cf", "pf", "cp", "sa", "ra", "ep"};

/* Octets, from 0. */
enum { ECMWF = 98, PDS_CENTRE = 4, PDS_SUBCENTRE = 25, PDS_LOCAL = 40, PDS_TYPE = 42, PDS_NUMBER = 49, PDS_DIRECTION = 51 };
enum { PROCESSED = 20, LOCAL_TYPE = 9 };

static int put_code(struct sq_json *o, const char *key, const char *const *names, size_t count, unsigned code, struct squall_error *err)
{
    if (code < count && names[code])
        return sq_cube_put_string(o, key, names[code], err);
    SQ_CLEANUP_FREE char *number = sq_format("%u", code);
    return number ? sq_cube_put_string(o, key, number, err) : sq_error_memory(err, 0);
}

static int put_mars_type(struct sq_json *o, unsigned code, struct squall_error *err)
{
    return put_code(o, "dataType", MARS_TYPES, sizeof MARS_TYPES / sizeof *MARS_TYPES, code, err);
}

/* The local part of ECMWF's PDS. */
static int put_local(struct sq_json *o, const struct sq_grib_raw *raw, struct squall_error *err)
{
    const uint8_t *pds = raw->section1;
    if (raw->section1_bytes <= PDS_TYPE || (pds[PDS_CENTRE] != ECMWF && pds[PDS_SUBCENTRE] != ECMWF))
        return 0;
    SQ_TRY(put_mars_type(o, pds[PDS_TYPE], err));
    const struct sq_grib1_ensemble ensemble = sq_grib1_ensemble_of(raw);
    if (ensemble.number >= 0)
        SQ_TRY(sq_cube_put_int(o, "number", ensemble.number, err));
    if (ensemble.count >= 0)
        SQ_TRY(sq_cube_put_int(o, "totalNumber", ensemble.count, err));
    if (pds[PDS_LOCAL] == 13 && raw->section1_bytes > PDS_DIRECTION + 3) { /* wave spectra */
        static const char *const KEYS[] = {"directionNumber", "frequencyNumber", "numberOfDirections", "numberOfFrequencies"};
        for (unsigned i = 0; i < 4; i++)
            SQ_TRY(sq_cube_put_int(o, KEYS[i], pds[PDS_DIRECTION + i], err));
    }
    return 0;
}

static int put_edition2(struct sq_json *o, const struct sq_grib_raw *raw, struct squall_error *err)
{
    static const struct {
        enum sq_grib_key key;
        const char *name;
    } KEYS[] = {
        {SQ_GRIB_KEY_tablesVersion, "tablesVersion"},
        {SQ_GRIB_KEY_NV, "NV"},
        {SQ_GRIB_KEY_numberOfForecastsInEnsemble, "totalNumber"},
        {SQ_GRIB_KEY_waveDirectionNumber, "directionNumber"},
        {SQ_GRIB_KEY_waveFrequencyNumber, "frequencyNumber"},
        {SQ_GRIB_KEY_numberOfWaveDirections, "numberOfDirections"},
        {SQ_GRIB_KEY_numberOfWaveFrequencies, "numberOfFrequencies"},
    };
    struct sq_grib_keys keys;
    sq_grib_keys_read(raw, &keys);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (keys.defined[KEYS[i].key])
            SQ_TRY(sq_cube_put_int(o, KEYS[i].name, keys.value[KEYS[i].key], err));
    const int64_t centre = keys.value[SQ_GRIB_KEY_centre];
    if (centre == ECMWF && raw->section2 && raw->section2_bytes >= LOCAL_TYPE + 2)
        return put_mars_type(o, (unsigned)raw->section2[LOCAL_TYPE] << 8 | raw->section2[LOCAL_TYPE + 1], err);
    if (raw->section1_bytes <= PROCESSED)
        return 0;
    return put_code(o, "dataType", PROCESSED_TYPES, sizeof PROCESSED_TYPES / sizeof *PROCESSED_TYPES, raw->section1[PROCESSED], err);
}

static int put_names(struct sq_json *o, const struct sq_grib_names *names, struct squall_error *err)
{
    SQ_TRY(sq_cube_put_int(o, "paramId", names->param_id, err));
    SQ_TRY(sq_cube_put_string(o, "shortName", names->short_name, err));
    SQ_TRY(sq_cube_put_string(o, "name", names->name, err));
    SQ_TRY(sq_cube_put_string(o, "units", names->units, err));
    SQ_TRY(sq_cube_put_string(o, "cfName", names->cf_name ? names->cf_name : "unknown", err));
    SQ_TRY(sq_cube_put_string(o, "cfVarName", names->cf_var_name, err));
    return sq_cube_put_string(o, "typeOfLevel", names->level_type, err);
}

/* What tells fields of one parameter apart, and no key of cfgrib's does. */
static int put_kind(struct sq_json *o, const struct sq_grib_product *p, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *kind = sq_format("%d %d %d %g %g %d %d", p->ensemble_kind, p->derived_forecast, p->probability_type,
                                           p->lower_limit, p->upper_limit, p->percentile, p->generating_process);
    return kind ? sq_cube_put_string(o, "kind", kind, err) : sq_error_memory(err, 0);
}

static int put_level(struct sq_json *o, const double *levels, struct squall_error *err)
{
    static const char *const KEYS[] = {"level", "bottomLevel"};
    for (unsigned i = 0; i < 2; i++)
        if (!isnan(levels[i]) && sq_json_set_double(o, KEYS[i], levels[i]))
            return sq_error_memory(err, 0);
    return 0;
}

static int describe_product(const struct sq_grib_index *index, size_t row, struct sq_json *o, struct squall_error *err)
{
    const struct sq_grib_product *p = &index->products[row];
    SQ_TRY(sq_cube_put_int(o, "edition", p->raw.edition, err));
    SQ_TRY(sq_cube_put_centre(o, p->centre, err));
    SQ_TRY(sq_cube_put_int(o, "subCentre", p->subcentre, err));
    SQ_TRY(put_names(o, &index->names[row], err));
    SQ_TRY(put_level(o, index->levels[row], err));
    SQ_TRY(sq_cube_put_string(o, "stepType", sq_grib_step_type_name(p->step_type), err));
    SQ_TRY(put_kind(o, p, err));
    return p->raw.edition == 1 ? put_local(o, &p->raw, err) : put_edition2(o, &p->raw, err);
}

static int add_product(const struct sq_grib_index *index, size_t row, struct sq_json *list, struct squall_error *err)
{
    struct sq_json *o = sq_json_new_object();
    if (sq_json_append(list, o))
        return sq_error_memory(err, 0);
    return describe_product(index, row, o, err);
}

static int add_grid(const struct sq_grib_index *index, size_t row, struct sq_json *list, struct squall_error *err)
{
    struct sq_json *o = sq_json_new_object();
    if (sq_json_append(list, o))
        return sq_error_memory(err, 0);
    return sq_grib_grid_attributes(&index->grids[row], o, err);
}

static int add_problem(const struct sq_grib_index *index, size_t row, struct sq_json *list, struct squall_error *err)
{
    const struct sq_grib_index_problem *problem = &index->problems[row];
    SQ_CLEANUP_FREE char *line = sq_format("%s: %s", index->files[problem->file].path, problem->message);
    return !line || sq_json_append(list, sq_json_new_string(line)) ? sq_error_memory(err, 0) : 0;
}

typedef int add_row(const struct sq_grib_index *index, size_t row, struct sq_json *list, struct squall_error *err);

static int add_rows(struct sq_json *tables, const char *name, add_row *add, const struct sq_grib_index *index, size_t count,
                    struct squall_error *err)
{
    struct sq_json *list = sq_json_new_array();
    SQ_TRY(sq_cube_put(tables, name, list, err));
    for (size_t i = 0; i < count; i++)
        SQ_TRY(add(index, i, list, err));
    return 0;
}

int sq_grib_tables(const struct sq_grib_index *index, struct sq_text *out, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *tables = sq_json_new_object();
    if (!tables)
        return sq_error_memory(err, 0);
    SQ_TRY(add_rows(tables, "products", add_product, index, index->product_count, err));
    SQ_TRY(add_rows(tables, "grids", add_grid, index, index->grid_count, err));
    SQ_TRY(add_rows(tables, "problems", add_problem, index, index->problem_count, err));
    return sq_json_write(tables, false, out, err);
}
