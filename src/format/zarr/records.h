/*
 * What a store remembers of how it was made, in STORE/chunk_exists/.squall/: `layout.json` (layout.h), `lock`, and journals.
 * A journal is lines of "CRC32C JSON"; each process that writes opens one of its own, named by epoch and part, and of two
 * records of a unit the one that comes later (epoch, part, line) holds. The epoch is higher than all that the process saw when it
 * began; processes that work beside each other, on units of their own, may have the same one. A torn last line is a crash's and is passed
 * over.
 */
#ifndef SQ_ZARR_RECORDS_H
#define SQ_ZARR_RECORDS_H

#include "base/arena.h"
#include "format/zarr/ranges.h"
#include "sys/file.h"
#include <stdbool.h>

enum {
    SQ_RECORD_FORMAT = 1,    /* part of the layout id */
    SQ_EPOCH_LIMIT = 1000000 /* six digits, so that names sort as numbers */
};

/* How messages about what is in them end. */
#define SQ_RECORDS_DAMAGED "the records are damaged: put the file back from a backup, or make the store anew with --overwrite"

/* A source file as it was: known again by these three, wherever it lies. */
struct sq_record_file {
    const char *name; /* the last part of its path */
    uint64_t size_bytes;
    int64_t mtime_ns;
};

struct sq_record_chunk {
    uint64_t size_bytes; /* 0: not stored, since no field touches it */
    uint32_t crc32c;
};

/* One array's part in a unit. */
struct sq_record_array {
    const char *name;
    /* How long the dimensions between init_time and the slab were, by which slabs and chunks are numbered here. 0: not told, or there are none. */
    uint64_t *lengths;
    unsigned length_count;
    struct sq_ranges stored;        /* slabs with a field: (init within the unit) × slabs of one init + slab */
    struct sq_ranges bad;           /* slabs whose field could not be decoded */
    struct sq_record_chunk *chunks; /* C order over the array's chunk grid behind init_time */
    size_t chunk_count;
};

/* Where in the order of journals. */
struct sq_record_source {
    unsigned epoch, part;
};

struct sq_record_unit {
    uint64_t unit;
    struct sq_record_source source; /* of the last word on it */
    bool valid;                     /* false: what is on disk may be something else; the rest says what was stored before */
    bool is_staged;               /* and it is this unit, but some of its chunks may still lie in the records' folder (convert/staged.h) */
    const char *damage;           /* and this is the damage that was found; NULL: none */
    struct sq_record_file *files; /* that gave fields; sorted where the record was read */
    size_t file_count;
    struct sq_record_array *arrays;
    size_t array_count;
    uint32_t *field_counts; /* of each init time of the unit */
    size_t init_count;
};

/* An input that was bad or ignored, met before. */
struct sq_record_input {
    struct sq_record_file file;
    const char *what;
};

/* A unit that a run did not write, and why; only the last word on a unit, and only if no record came after it. */
struct sq_record_left {
    uint64_t unit;
    const char *why;
};

/* What a run that came to its end has written, and how long it took. */
struct sq_record_run {
    uint64_t units, bytes_in, bytes_out, milliseconds;
    int64_t ended_s; /* since 1970 */
};

struct sq_records {
    struct sq_record_unit *units; /* ascending, one a unit */
    size_t unit_count;
    struct sq_record_left *left; /* ascending */
    size_t left_count;
    struct sq_record_input *inputs; /* sorted */
    size_t input_count;
    unsigned last_epoch;
    size_t journal_count, line_count;
    const char *command;           /* that the last run was started with, without the store; NULL: none told */
    struct sq_record_run last_run; /* units 0: none */
    struct sq_ranges planned;      /* units that the sources held, as the parts of a conversion saw it that began last; empty: none told */
    struct sq_arena *arena;
};

/* "STORE/chunk_exists/.squall"; NULL: out of memory. sq_free. */
char *sq_records_folder(const char *store) __attribute__((warn_unused_result));
/* Replay the journals; a folder without any gives empty records. *ret: sq_records_done. SQUALL_ECORRUPT names file and line. */
int sq_records_load(const char *folder, struct sq_records *ret, struct squall_error *err) SQUALL_CHECK;
void sq_records_done(struct sq_records *records);
/* NULL: none. */
const struct sq_record_unit *sq_records_unit(const struct sq_records *records, uint64_t unit);
const struct sq_record_array *sq_record_array_of(const struct sq_record_unit *unit, const char *name);
/* Only of a record that was read. */
bool sq_record_has_file(const struct sq_record_unit *unit, const struct sq_record_file *file);
const char *sq_records_left(const struct sq_records *records, uint64_t unit); /* why; NULL: it was not left */
bool sq_records_know_input(const struct sq_records *records, const struct sq_record_input *input);

#endif
