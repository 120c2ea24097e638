/* What elements that were never written read as: the fill value messages (IV.A.2.e and f, 0x0004 and 0x0005), versions 1 to 3. */
#ifndef SQ_FORMAT_HDF5_FILL_H
#define SQ_FORMAT_HDF5_FILL_H

#include "format/hdf5/tree.h"

struct sq_hdf5_fill {
    bool is_undefined;    /* the writer wanted none: what is read is not said; zeros here */
    const uint8_t *value; /* an element as it is stored, the message's; NULL: zeros */
};

int sq_hdf5_fill_parse(const struct sq_hdf5_file *f, const struct sq_hdf5_dataset *dataset, struct sq_hdf5_fill *ret,
                       struct squall_error *err) SQUALL_CHECK;

#endif
