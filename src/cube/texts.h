/* Words for a person: times, steps, levels, counts. Each adds to `out`, whose own failure flag tells of memory. */
#ifndef SQ_CUBE_TEXTS_H
#define SQ_CUBE_TEXTS_H

#include "base/text.h"
#include "format/grib/names.h"
#include <stdint.h>

void sq_text_add_time(struct sq_text *out, int64_t seconds_since_1970);  /* "2022-01-01T00:00", with seconds where they are not 0 */
void sq_text_add_duration(struct sq_text *out, int64_t seconds);         /* "6 h", "90 min", "40 s" */
void sq_text_add_compact_duration(struct sq_text *out, int64_t seconds); /* "6h", "90min": within a name, or as an option's value */
void sq_text_add_level(struct sq_text *out, const char *level_type, const double pair[2]); /* "2 m", "0 to 0.1 m", "surface" */
/* "0.44", to twelve digits */
void sq_text_add_number(struct sq_text *out, double value);

#endif
