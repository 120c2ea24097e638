/*
 * Temporary files of runs that were killed. They lie where a run writes: beside metadata, coordinates, flags and records, and
 * in the folders of units that have no record. Where nobody else is at work every one of them is a dead one's. A part that begins is alone with
 * its units; in the folders that it shares it removes what dead processes of this machine left, and leaves the rest to the last of the parts.
 */
#ifndef SQ_CONVERT_SWEEP_H
#define SQ_CONVERT_SWEEP_H

#include "convert/layout.h"
#include "convert/lock.h"
#include "format/zarr/records.h"
#include "store/zarr_writer.h"

struct sq_sweeping {
    struct sq_store store;
    const char *records_folder;
    const struct sq_layout *layout; /* NULL: there are no more than flags and records yet */
    const struct sq_records *records;
    uint64_t init_count;
    const char *const *coordinates;
    size_t coordinate_count;
    struct sq_part part; /* whose units; {0}: all */
    bool is_alone;       /* nobody else is at work */
};

/* Only while the lock is held. */
int sq_sweep(const struct sq_sweeping *s, struct squall_error *err) SQUALL_CHECK;
/* Stores that killed runs left beside this one (which exists: else only one that was to replace it), and that are not its own. */
int sq_sweep_beside(const char *store, bool exists, struct squall_error *err) SQUALL_CHECK;

#endif
