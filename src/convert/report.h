/* Parts that the plan's report and the run's have in common. */
#ifndef SQ_CONVERT_REPORT_H
#define SQ_CONVERT_REPORT_H

#include "convert/plan.h"
#include "convert/summary.h"

/* Where the fields went: "found" = "placed" + "ignored" + "duplicates" + "not_selected". */
struct sq_field_counts {
    uint64_t found, placed, ignored, duplicates, not_selected;
};
const char *
sq_report_noun(const struct squall_convert_plan *plan); /* of what is placed: "field"; of arrays "slab", a variable at one index */
struct sq_field_counts sq_report_field_counts(const struct squall_convert_plan *plan);
/* Sets "fields". */
int sq_report_fields(const struct squall_convert_plan *plan, struct sq_json *report);
/* Sets "bad" and "ignored": file, what, fields, known. */
int sq_report_inputs(const struct squall_convert_plan *plan, struct sq_json *report);
/* An init time, or the index along another append dimension: "2022-01-01T06:00", "12". */
void sq_report_init_text(const struct squall_convert_plan *plan, uint64_t init, struct sq_text *out);
/* "run 2022-01-01T06:00", "runs 2022-01-01T06:00 to 2022-01-02T00:00". */
void sq_report_unit_name(const struct squall_convert_plan *plan, uint64_t unit, struct sq_text *out);
/* Lines for a person about bad and ignored inputs, a few of each and how many more there are. */
void sq_report_input_lines(const struct squall_convert_plan *plan, struct sq_text *out);

#endif
