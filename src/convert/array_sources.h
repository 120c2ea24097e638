/* Sources that hold arrays: HDF5 and NetCDF files, one Zarr store; opened as one dataset. */
#ifndef SQ_CONVERT_ARRAY_SOURCES_H
#define SQ_CONVERT_ARRAY_SOURCES_H

#include "cube/array_cube.h"
#include "sys/file.h"

struct squall_convert_plan;

struct sq_array_sources {
    struct squall_dataset *dataset;      /* NULL: the sources are GRIB */
    struct squall_dataset *stored;       /* the store that is there; NULL: a new one */
    const char *group;                   /* of each source; NULL: the root */
    struct sq_file_identity *identities; /* of each of the plan's source paths */
    struct sq_array_span *spans;
    bool chunks_unseen; /* a Zarr store is among them, whose chunks may change while its identity does not */
    size_t span_count;
    uint32_t first_file; /* that was opened, of those that can be */
};

/*
 * Open plan->sources as arrays, if the first of them holds any: files that cannot be opened become bad inputs, and leave the list. The store is opened too.
 * Errors: as squall_dataset_open_many.
 */
int sq_plan_open_arrays(struct squall_convert_plan *plan, struct squall_error *err) SQUALL_CHECK;
void sq_array_sources_done(struct sq_array_sources *arrays);

#endif
