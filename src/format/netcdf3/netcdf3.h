/*
 * NetCDF-3 files (CDF-1, CDF-2, CDF-5), read: a header says which variables there are and where each begins; nothing else is metadata. Numbers
 * are big-endian. Variables without the record dimension lie one behind the other, each in one run; those with it lie interleaved, a record
 * of each behind the other. The grammar: NetCDF Users Guide, "File Format Specifications"; for CDF-5 PnetCDF's "CDF-5 File Format".
 */
#ifndef SQ_FORMAT_NETCDF3_NETCDF3_H
#define SQ_FORMAT_NETCDF3_NETCDF3_H

#include "base/arena.h"
#include "base/json.h"
#include "io/source.h"
#include "squall/array.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sq_netcdf3_type {
    SQ_NETCDF3_BYTE = 1,
    SQ_NETCDF3_CHAR,
    SQ_NETCDF3_SHORT,
    SQ_NETCDF3_INT,
    SQ_NETCDF3_FLOAT,
    SQ_NETCDF3_DOUBLE,
    SQ_NETCDF3_UBYTE, /* from here on: CDF-5 only */
    SQ_NETCDF3_USHORT,
    SQ_NETCDF3_UINT,
    SQ_NETCDF3_INT64,
    SQ_NETCDF3_UINT64,
};

/* What a type is elsewhere. */
struct sq_netcdf3_type_row {
    const char *numpy; /* in memory */
    enum squall_type type;
    unsigned size_bytes;
    uint64_t fill; /* what NetCDF fills with, as the bits of an element */
};
/* NULL: the version (1, 2, 5) has no such type. */
const struct sq_netcdf3_type_row *sq_netcdf3_type_row(unsigned version, uint32_t type);

struct sq_netcdf3_dimension {
    const char *name; /* valid UTF-8, not empty */
    uint64_t length;  /* of the record dimension: the records that there are */
    bool is_record;
};

struct sq_netcdf3_attribute {
    const char *name;
    enum sq_netcdf3_type type;
    uint64_t count;
    const uint8_t *values; /* as in the file: big-endian */
};

struct sq_netcdf3_attributes {
    struct sq_netcdf3_attribute *list;
    size_t count;
};

struct sq_netcdf3_variable {
    const char *name;
    enum sq_netcdf3_type type;
    unsigned rank; /* within SQUALL_RANK_MAX */
    const uint64_t *shape;
    const char *const *dims;
    struct sq_netcdf3_attributes attributes;
    bool is_record;          /* along its first dimension */
    uint64_t begin;          /* of its first element, bytes from the beginning of the file */
    uint64_t row_bytes;      /* of all of it; of one record where is_record; without padding */
    uint64_t header_offset;  /* where the header tells of it, for messages */
    const char *unsupported; /* NULL, or why its data cannot be read */
};

struct sq_netcdf3 {
    struct sq_source *source; /* owned */
    struct sq_arena *memory;  /* all texts and lists */
    unsigned version;         /* 1, 2 or 5 */
    uint64_t header_bytes;
    uint64_t record_count;
    uint64_t record_bytes; /* from a record to the next, of all record variables */
    bool streaming;        /* the header leaves the number of records open: it was found from the file's size */
    struct sq_netcdf3_dimension *dimensions;
    size_t dimension_count;
    struct sq_netcdf3_attributes attributes;
    struct sq_netcdf3_variable *variables;
    size_t variable_count;
    const char **problems; /* a line each */
    size_t problem_count, problem_capacity;
};

/* Does the file begin as one? */
bool sq_netcdf3_is_file(struct sq_source *source);
/*
 * Read the header. Errors: SQUALL_ECORRUPT "FILE: byte N: …" where it makes no sense, or ends too early. A variable whose place makes no
 * sense has `unsupported` set, and a problem line. The source is taken over, also on failure. *ret: sq_netcdf3_close.
 */
int sq_netcdf3_open(struct sq_source *source, struct sq_netcdf3 **ret, struct squall_error *err) SQUALL_CHECK;
void sq_netcdf3_close(struct sq_netcdf3 *file); /* NULL is accepted */

/* An object of them: text where they are char, a number where there is one, else a list. */
int sq_netcdf3_attributes_json(const struct sq_netcdf3_attributes *attributes, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/* {"valid_range": "<i2"}: what those are to numpy that are not text. */
int sq_netcdf3_attributes_types(const struct sq_netcdf3_attributes *attributes, struct sq_json **ret,
                                struct squall_error *err) SQUALL_CHECK;

/* For header.c. Sizes and places of all variables, and the number of records where the header leaves it open. */
int sq_netcdf3_lay_out(struct sq_netcdf3 *file, struct squall_error *err) SQUALL_CHECK;
/* The file has `count` records: what is said of its dimensions and variables, not the file itself. */
void sq_netcdf3_set_records(struct sq_netcdf3 *file, uint64_t count);
/* May records be added until there are `count`, and how long is the file then? SQUALL_EREFUSED: its places make no sense, or it is truncated. */
int sq_netcdf3_check_growth(const struct sq_netcdf3 *file, uint64_t count, uint64_t *ret_file_bytes, struct squall_error *err) SQUALL_CHECK;
/* A line more, in file->memory. */
__attribute__((format(printf, 3, 4))) int sq_netcdf3_add_problem(struct sq_netcdf3 *file, struct squall_error *err, const char *format,
                                                                 ...) SQUALL_CHECK;

#endif
