/* GRIB files field by field: what is in them, and the values of one field. */
#ifndef SQUALL_GRIB_H
#define SQUALL_GRIB_H

#include "squall/context.h"
#include "squall/speed.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct squall_grib_list squall_grib_list;

/* Pointers live as long as the list. */
struct squall_grib_field {
    const char *path;
    uint64_t offset;     /* of the message in its file */
    uint64_t size_bytes; /* of the message */
    unsigned in_message; /* 0 for the first field of the message */
    int edition;
    const char *short_name, *name, *units, *cf_name;
    int32_t param_id;
    const char *level_type;           /* "heightAboveGround", … */
    double level;                     /* of the first surface; NaN where it has none */
    double level_bottom;              /* of the second; NaN where there is none */
    const char *step_type;            /* "instant", "accum", "avg", … */
    int64_t reference_time_s;         /* seconds since 1970 */
    int64_t step_begin_s, step_end_s; /* from the reference time; equal for an instant */
    int32_t number;                   /* ensemble member; -1: none */
    int centre;
    const char *packing; /* "grid_simple", "grid_ccsds", … */
    unsigned bits_per_value;
    const char *grid; /* "regular_ll", "lambert", … */
    uint64_t point_count;
    uint64_t rows, columns;  /* 0 where the grid is not rectangular */
    const char *unsupported; /* NULL, or why its data cannot be read */
};

/* What is wrong with a file: damage, junk, truncation. */
struct squall_grib_problem {
    const char *path;
    uint64_t offset;
    const char *message; /* one line, says what and where */
};

/* Scan the files, in parallel. A file that is no GRIB, or damaged, is a problem of the list, not an error. */
int squall_grib_list_open(squall_context *ctx, const char *const *paths, size_t path_count, squall_grib_list **ret,
                          struct squall_error *err) SQUALL_CHECK;
void squall_grib_list_close(squall_grib_list *list);
size_t squall_grib_list_count(const squall_grib_list *list);
size_t squall_grib_list_problem_count(const squall_grib_list *list);
struct squall_grib_field squall_grib_list_field(const squall_grib_list *list, size_t index);
struct squall_grib_problem squall_grib_list_problem(const squall_grib_list *list, size_t index);

/*
 * The values of one field: point_count floats, missing as NaN, i ascending and otherwise in the file's row order.
 * Errors: SQUALL_EUNSUPPORTED names packing or grid.
 */
int squall_grib_list_read(squall_grib_list *list, size_t index, float *dst, struct squall_error *err) SQUALL_CHECK;

/* Decode every field once on `threads` threads and throw the values away: how fast this machine reads the files. */
int squall_grib_list_time(squall_grib_list *list, unsigned threads, struct squall_speed *ret, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
