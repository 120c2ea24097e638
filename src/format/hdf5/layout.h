/* Where a dataset's elements lie: the data layout message (HDF5 File Format Specification, IV.A.2.i, 0x0008), versions 1 to 5. */
#ifndef SQ_FORMAT_HDF5_LAYOUT_H
#define SQ_FORMAT_HDF5_LAYOUT_H

#include "format/hdf5/tree.h"
#include "squall/array.h"

/* UNKNOWN: of a dataset that cannot be read for another reason. */
enum sq_hdf5_layout_kind { SQ_HDF5_UNKNOWN, SQ_HDF5_COMPACT, SQ_HDF5_CONTIGUOUS, SQ_HDF5_CHUNKED, SQ_HDF5_VIRTUAL };

/* From SINGLE on numbered as in the message. */
enum sq_hdf5_index_kind {
    SQ_HDF5_INDEX_BTREE1,
    SQ_HDF5_INDEX_SINGLE,
    SQ_HDF5_INDEX_IMPLICIT,
    SQ_HDF5_INDEX_FIXED_ARRAY,
    SQ_HDF5_INDEX_EXTENSIBLE_ARRAY,
    SQ_HDF5_INDEX_BTREE2,
};

struct sq_hdf5_layout {
    enum sq_hdf5_layout_kind kind;
    const uint8_t *elements; /* COMPACT: size_bytes of them, within the message */
    uint64_t address;        /* CONTIGUOUS: of the elements, CHUNKED: of the index; SQ_HDF5_NOWHERE: nothing was written yet */
    uint64_t size_bytes;     /* COMPACT, CONTIGUOUS: of all elements; CHUNKED: of a chunk before it is filtered */
    enum sq_hdf5_index_kind index;
    unsigned rank;
    uint64_t chunk[SQUALL_RANK_MAX];
    bool edges_unfiltered; /* chunks that reach beyond the dataset went through no filter */
    uint64_t single_bytes; /* SINGLE: what is stored of the chunk */
    uint32_t single_mask;  /* and the filters that it did not go through, a bit each */
};

/* Of a dataset with a type and a shape. SQUALL_ECORRUPT for what cannot be, SQUALL_EUNSUPPORTED for a version or an index that is not known. */
int sq_hdf5_layout_parse(const struct sq_hdf5_file *f, const struct sq_hdf5_dataset *dataset, struct sq_hdf5_layout *ret,
                         struct squall_error *err) SQUALL_CHECK;

#endif
