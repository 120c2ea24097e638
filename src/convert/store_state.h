/*
 * What lies at the destination: nothing, a store of squall's (with its layout, schema and records), or something that is not
 * to be touched. And the file layout.json, in which the store keeps what tomorrow's run must know.
 */
#ifndef SQ_CONVERT_STORE_STATE_H
#define SQ_CONVERT_STORE_STATE_H

#include "convert/summary.h"

struct sq_store_state {
    bool exists;            /* there is a layout.json; else nothing is there, or what a run left that had not begun */
    bool complete;          /* there is a root metadata document too: readers see a store */
    struct sq_json *layout; /* sq_layout.description of the store */
    struct sq_json *schema; /* sq_cube_schema of it */
    bool of_arrays;         /* not of GRIB fields */
    int zarr_format;        /* 3 or 2 */
    char *append_dim;       /* "init_time"; of arrays any, whose indices are called init times here */
    int64_t init_start_s, init_step_s;
    int64_t *init_times_s; /* where they are not regular; NULL: start and step say it */
    bool has_times;        /* false: the indices are no times */
    char *calendar;        /* in which they are counted; NULL: proleptic_gregorian */
    uint64_t init_count, init_chunk;
    uint64_t flag_chunk; /* elements of the flags' chunks: sq_flag_chunk */
    struct sq_records records;
    char *records_folder;
};

/* *ret: sq_store_state_done. SQUALL_EREFUSED: the destination is another thing, which the message names. */
int sq_store_state_read(const char *store, struct sq_store_state *ret, struct squall_error *err) SQUALL_CHECK;
void sq_store_state_done(struct sq_store_state *state);
/* The same but for records: what was planned on the one holds on the other. */
bool sq_store_state_same(const struct sq_store_state *a, const struct sq_store_state *b);
/* Units get other numbers in the records. */
struct sq_move;
void sq_store_state_move(struct sq_store_state *state, const struct sq_move *move);

int64_t sq_store_init_time(const struct sq_store_state *state, uint64_t init);
/* The time, or the index along a dimension that is none. */
void sq_store_init_text(const struct sq_store_state *state, uint64_t init, char ret[SQ_TIME_TEXT_BYTES]);

/* Make the folder of the records, and what it lies in; their names are durable. */
int sq_store_make_folders(const char *store, struct squall_error *err) SQUALL_CHECK;
/* Publish layout.json, durably; one that says the same already is left alone. */
struct sq_cube;
int sq_store_state_write(const char *records_folder, const struct sq_json *layout, const char *layout_id, const struct sq_json *schema,
                         const struct sq_cube *cube, uint64_t init_chunk, struct squall_error *err) SQUALL_CHECK;

#endif
