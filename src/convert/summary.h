/* Words and counts that plan, report and status share. */
#ifndef SQ_CONVERT_SUMMARY_H
#define SQ_CONVERT_SUMMARY_H

#include "base/json.h"
#include "format/zarr/records.h"

enum { SQ_TIME_TEXT_BYTES = 32, SQ_SIZE_TEXT_BYTES = 32 };

/* "2022-01-01T06:00", with seconds where they are not 0. seconds: since 1970 in the calendar, one of CF's; NULL: proleptic_gregorian. */
void sq_time_text(int64_t seconds, const char *calendar, char ret[SQ_TIME_TEXT_BYTES]);
/* "1.2 GB", as disks are sold. */
void sq_size_text(uint64_t bytes, char ret[SQ_SIZE_TEXT_BYTES]);

/* Fields stored of each init time, by the records; counts: init_count numbers, set here. */
void sq_count_fields(const struct sq_records *records, uint64_t init_chunk, uint64_t init_count, uint32_t *counts);
/*
 * How many fields a run usually has: the commonest count among runs that have any (ties: the greatest); 0: none has. Where the store has grown, of the
 * runs from one growth to the next: what came later is not expected of those before.
 */
struct sq_usual {
    size_t count;     /* of spans, one or more */
    uint64_t *firsts; /* init times, ascending from 0 on */
    uint32_t *fields;
};

/* schema: sq_cube_schema; start_s, step_s: of init_time; counts: of `count` init times. *ret: sq_usual_done. */
int sq_usual_make(const struct sq_json *schema, int64_t start_s, int64_t step_s, const uint32_t *counts, uint64_t count,
                  struct sq_usual *ret, struct squall_error *err) SQUALL_CHECK;
void sq_usual_done(struct sq_usual *usual);
size_t sq_usual_span(const struct sq_usual *usual, uint64_t init);
/* Of the last span that has any. */
uint32_t sq_usual_now(const struct sq_usual *usual);

/*
 * [{"name", "stored", "expected"}]: fields of each variable, and how many there would be if all runs had what the best of their span have. *ret: the
 * caller's.
 */
int sq_completeness_json(const struct sq_records *records, uint64_t init_chunk, const struct sq_usual *usual, const struct sq_json *layout,
                         struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;

/* A message without the store's path, which it may begin with: a store may have another one tomorrow. */
const char *sq_within_store(const char *store, const char *message);

/* The text as malloc'ed memory for a caller of the library; NULL: out of memory. */
char *sq_text_for_caller(const struct sq_text *text);
/* A JSON document and a newline, the same way. */
int sq_json_for_caller(const struct sq_json *v, char **ret, struct squall_error *err) SQUALL_CHECK;

#endif
