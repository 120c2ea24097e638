/* The filters that a dataset's chunks went through: the filter pipeline message (IV.A.2.l, 0x000B), versions 1 and 2. */
#ifndef SQ_FORMAT_HDF5_PIPELINE_H
#define SQ_FORMAT_HDF5_PIPELINE_H

#include "codec/hdf5_filters.h"
#include "format/hdf5/tree.h"

struct sq_hdf5_pipeline {
    struct sq_hdf5_filter *filters; /* in the order in which they encoded */
    size_t count;
};

/* What *ret points at lies in r's memory. No message: no filters. */
int sq_hdf5_pipeline_parse(struct sq_hdf5_reader *r, const struct sq_hdf5_bytes *message, struct sq_hdf5_pipeline *ret,
                           struct squall_error *err) SQUALL_CHECK;

#endif
