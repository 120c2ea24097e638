/*
 * Which keys stand where in section 4 of edition 2. A template is a row of fragments (ecCodes' include files: parameter, horizontal
 * levels, ensemble, …), a fragment a row of fields in file order. keys_tables.c is generated.
 */
#ifndef SQ_FORMAT_GRIB_KEYS_TABLES_H
#define SQ_FORMAT_GRIB_KEYS_TABLES_H

#include "format/grib/keys.h"

enum {
    SQ_GRIB_OP_SIGNED = 1,            /* sign and magnitude */
    SQ_GRIB_OP_MISSING = 2,           /* all ones: missing */
    SQ_GRIB_OP_SAME = 4,              /* no bytes: the field before, under another name */
    SQ_GRIB_OP_LIST = 8,              /* no bytes: the next `width` ops repeat as often as `key` says */
    SQ_GRIB_OP_FORECAST_TIME_44 = 16, /* template 4.44's: 2 octets, or 4 as some wrote it */
};

struct sq_grib_layout_op {
    uint8_t key; /* enum sq_grib_key; SQ_GRIB_KEY_NONE: bytes to pass over */
    uint8_t width;
    uint8_t flags;
};

struct sq_grib_template {
    uint16_t number;
    uint16_t first; /* of sq_grib_template_fragments */
    uint8_t fragment_count;
    uint8_t is; /* bits: is_chemical, is_chemical_distfn, is_chemical_srcsink, is_aerosol, is_aerosol_optical */
};

extern const struct sq_grib_layout_op sq_grib_layout_ops[];
extern const uint16_t sq_grib_fragments[]; /* fragment f: ops [f] to [f + 1] */
extern const uint8_t sq_grib_template_fragments[];
extern const struct sq_grib_template sq_grib_templates[]; /* by number */
extern const size_t sq_grib_template_count;

#endif
