/* One pass over the nodes of a chunk index, for the files that know one kind each: they report chunks, chunk_index.c keeps them. */
#ifndef SQ_FORMAT_HDF5_CHUNK_WALK_H
#define SQ_FORMAT_HDF5_CHUNK_WALK_H

#include "base/cursor.h"
#include "format/hdf5/chunk_index.h"

struct sq_hdf5_chunk_walk {
    struct sq_hdf5_reader *reader;
    const struct sq_hdf5_layout *layout;
    bool filtered;
    uint64_t count_greatest[SQUALL_RANK_MAX]; /* of chunks along each dimension of the greatest shape; UINT64_MAX: no limit */
    struct sq_hdf5_chunk_index *index;
};

/* A chunk that the index holds; not kept where its address is SQ_HDF5_NOWHERE or it lies beyond the shape. */
int sq_hdf5_chunk_add(struct sq_hdf5_chunk_walk *walk, const uint64_t *chunk, uint64_t address, uint64_t size_bytes, uint32_t skip_mask,
                      struct squall_error *err) SQUALL_CHECK;

int sq_hdf5_walk_btree1(struct sq_hdf5_chunk_walk *walk, struct squall_error *err) SQUALL_CHECK;
int sq_hdf5_walk_btree2(struct sq_hdf5_chunk_walk *walk, struct squall_error *err) SQUALL_CHECK;
int sq_hdf5_walk_fixed_array(struct sq_hdf5_chunk_walk *walk, struct squall_error *err) SQUALL_CHECK;
int sq_hdf5_walk_extensible_array(struct sq_hdf5_chunk_walk *walk, struct squall_error *err) SQUALL_CHECK;

#endif
