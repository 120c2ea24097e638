/*
 * Which chunks of a dataset are stored, and where. An index is read whole, in one pass over its nodes, whatever its kind; what is kept is a list of
 * the chunks that are there, in C order. Immutable once it is loaded.
 */
#ifndef SQ_FORMAT_HDF5_CHUNK_INDEX_H
#define SQ_FORMAT_HDF5_CHUNK_INDEX_H

#include "format/hdf5/layout.h"

struct sq_hdf5_chunk {
    uint64_t number; /* in C order over the chunks of the shape */
    uint64_t address;
    uint64_t size_bytes; /* stored */
    uint32_t skip_mask;  /* bit i: it did not go through filter i */
};

struct sq_hdf5_chunk_index;

/*
 * layout         CHUNKED
 * shape, maximum layout->rank lengths; UINT64_MAX: a dimension without limit. Some indexes number chunks by the greatest shape
 * filtered       the dataset has filters
 *
 * *ret: sq_hdf5_chunk_index_free. Errors: SQUALL_ECORRUPT, SQUALL_EIO, SQUALL_ENOMEM; SQUALL_EUNSUPPORTED for a grid of more than 2^63 chunks.
 */
int sq_hdf5_chunk_index_load(const struct sq_hdf5_file *f, const struct sq_hdf5_layout *layout, const uint64_t *shape,
                             const uint64_t *maximum, bool filtered, struct sq_hdf5_chunk_index **ret,
                             struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_chunk_index_free(struct sq_hdf5_chunk_index *index); /* NULL is accepted */

/* chunk: which one along each dimension, within the shape. false: it was never written. */
bool sq_hdf5_chunk_find(const struct sq_hdf5_chunk_index *index, const uint64_t *chunk, struct sq_hdf5_chunk *ret);
/* The filters that no chunk went through, a bit each. */
uint32_t sq_hdf5_chunk_index_skip_mask(const struct sq_hdf5_chunk_index *index);
/* Of all chunks that are stored. */
uint64_t sq_hdf5_chunk_index_bytes(const struct sq_hdf5_chunk_index *index);

#endif
