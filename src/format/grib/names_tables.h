/*
 * ecCodes' concepts as tables. A concept gives a field a text (shortName, units, typeOfLevel, …) by the first of some lists that
 * has an entry whose conditions all hold; within a list the entry with most conditions wins, and of several the last.
 * names_tables.c and names_tables_text.c are generated.
 */
#ifndef SQ_FORMAT_GRIB_NAMES_TABLES_H
#define SQ_FORMAT_GRIB_NAMES_TABLES_H

#include "format/grib/keys.h"

enum sq_grib_column {
    SQ_GRIB_PARAM_ID,
    SQ_GRIB_SHORT_NAME,
    SQ_GRIB_NAME,
    SQ_GRIB_UNITS,
    SQ_GRIB_CF_NAME,
    SQ_GRIB_CF_VAR_NAME,
    SQ_GRIB_COLUMN_COUNT,
};

#define SQ_GRIB_SILENT UINT32_MAX /* an entry says nothing of that column */

/* What an entry says: a number for the first column, offsets into sq_grib_texts for the others. */
struct sq_grib_record {
    uint32_t value[SQ_GRIB_COLUMN_COUNT];
};

struct sq_grib_condition {
    uint8_t key;
    int32_t value;
};

/* An entry for a parameter. `variants`: the values of MTG2Switch for which it holds, as bits. */
struct sq_grib_row {
    uint32_t index; /* discipline, category, number; edition 1: table, parameter: a byte each */
    uint16_t record;
    uint16_t conditions; /* a set, beyond those of the index */
    uint8_t variants;
};

/* An entry of a small concept: the value is a number or the offset of a text. */
struct sq_grib_choice {
    uint32_t value;
    uint16_t conditions;
};

struct sq_grib_range {
    uint16_t first, count;
};

/* The small concepts of a list. */
enum { SQ_GRIB1_STEP_TYPE = 0, SQ_GRIB1_LEVEL_TYPE = 1 };
enum { SQ_GRIB2_LEVEL_TYPE = 0, SQ_GRIB2_SWITCH = 1, SQ_GRIB2_SWITCH_BY_VERSION = 2, SQ_GRIB_SMALL_CONCEPTS = 3 };

/* One folder of concepts: rows sorted by index, each index's in ecCodes' order. */
struct sq_grib_list {
    struct sq_grib_range rows;
    struct sq_grib_range choices[SQ_GRIB_SMALL_CONCEPTS];
};

enum sq_grib_list_id {
    SQ_GRIB1_MASTER,
    SQ_GRIB1_ECMWF,
    SQ_GRIB2_MASTER,
    SQ_GRIB2_ECMWF,
    SQ_GRIB2_MASTER_LEGACY,
    SQ_GRIB2_ECMWF_LEGACY,
    SQ_GRIB_NO_LIST = UINT8_MAX,
};

struct sq_grib_local {
    uint8_t edition;
    uint16_t centre;
    uint8_t list;
};

enum { SQ_GRIB_LAST_BEFORE_SWITCH = 33 }; /* tablesVersion up to which MTG2Switch is 0 where it depends on it */

extern const char sq_grib_texts[];
extern const struct sq_grib_record sq_grib_records[];
extern const struct sq_grib_condition sq_grib_conditions[];
extern const uint16_t sq_grib_condition_sets[]; /* set s: conditions [s] to [s + 1] */
extern const struct sq_grib_row sq_grib_rows[];
extern const struct sq_grib_choice sq_grib_choices[];
extern const struct sq_grib_list sq_grib_lists[];
extern const struct sq_grib_local sq_grib_locals[]; /* a centre's own list */
extern const size_t sq_grib_local_count;
extern const struct sq_grib_range sq_grib_datasets; /* choices: the list of a data set (TIGGE, S2S, …); 0: none */

#endif
