/*
 * Chunk indexes that are B-trees: version 1 (III.A.1, node type 1), whose keys are elements' offsets, and version 2 (III.A.2, records of type 10
 * and 11), whose records count in chunks.
 */
#include "base/error_internal.h"
#include "format/hdf5/btree.h"
#include "format/hdf5/chunk_walk.h"
#include <inttypes.h>
#include <string.h>

/* ---- version 1 -------------------------------------------------------------------------------------------------------------------- */

static int read_key(struct sq_hdf5_chunk_walk *walk, struct sq_cursor *c, uint64_t node, uint64_t *chunk, struct squall_error *err)
{
    const struct sq_hdf5_layout *l = walk->layout;
    for (unsigned d = 0; d < l->rank; d++) {
        const uint64_t offset = sq_u64le(c);
        if (offset % l->chunk[d] != 0)
            return SQ_HDF5_DAMAGED(walk->reader->file, node, err,
                                   "a chunk at element %" PRIu64 " of dimension %u, which has chunks of %" PRIu64, offset, d, l->chunk[d]);
        chunk[d] = offset / l->chunk[d];
    }
    sq_u64le(c); /* of the bytes of an element: 0 */
    return 0;
}

/* level: the node must say that it is on this one; any where it is negative. Each is one below its parent's, so that the walk ends. */
static int walk_node(struct sq_hdf5_chunk_walk *walk, uint64_t address, int level, struct squall_error *err)
{
    enum { HEADER_BYTES = 8, CHUNKS = 1 };
    const struct sq_hdf5_file *f = walk->reader->file;
    const size_t fixed = HEADER_BYTES + 2 * (size_t)f->offset_bytes;
    const size_t entry = sizeof(uint64_t) * (walk->layout->rank + 2) + f->offset_bytes;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(walk->reader, address, fixed, &bytes, err));
    struct sq_cursor c = sq_cursor(bytes + 4, fixed - 4);
    const unsigned type = sq_u8(&c);
    const int own_level = sq_u8(&c);
    const unsigned count = sq_u16le(&c);
    if (memcmp(bytes, "TREE", 4) != 0 || type != CHUNKS || (level >= 0 && own_level != level))
        return SQ_HDF5_DAMAGED(f, address, err, "no node of a chunk index (a B-tree)");
    if (count == 0)
        return 0;
    SQ_TRY(sq_hdf5_view(walk->reader, address + fixed, count * entry, &bytes, err));
    c = sq_cursor(bytes, count * entry);
    for (unsigned i = 0; i < count; i++) {
        uint64_t chunk[SQUALL_RANK_MAX];
        const uint32_t size_bytes = sq_u32le(&c), mask = sq_u32le(&c);
        SQ_TRY(read_key(walk, &c, address, chunk, err));
        const uint64_t child = sq_hdf5_take_address(&c, f);
        SQ_TRY(own_level == 0 ? sq_hdf5_chunk_add(walk, chunk, child, size_bytes, mask, err) : walk_node(walk, child, own_level - 1, err));
    }
    return 0;
}

int sq_hdf5_walk_btree1(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    return walk_node(walk, walk->layout->address, -1, err);
}

/* ---- version 2 -------------------------------------------------------------------------------------------------------------------- */

static int visit_record(void *user, const uint8_t *record, size_t record_bytes, struct squall_error *err)
{
    struct sq_hdf5_chunk_walk *walk = user;
    const struct sq_hdf5_layout *l = walk->layout;
    const struct sq_hdf5_file *f = walk->reader->file;
    struct sq_cursor c = sq_cursor(record, record_bytes);
    const uint64_t address = sq_hdf5_take_address(&c, f);
    uint64_t size_bytes = l->size_bytes, chunk[SQUALL_RANK_MAX];
    uint32_t mask = 0;
    if (walk->filtered) { /* what the other fields leave is the size's */
        const size_t others = f->offset_bytes + sizeof mask + l->rank * sizeof *chunk;
        if (record_bytes < others || record_bytes - others > sizeof size_bytes)
            return SQ_HDF5_DAMAGED(f, l->address, err, "records of %zu bytes for chunks of %u dimensions", record_bytes, l->rank);
        size_bytes = sq_uint_le(&c, (unsigned)(record_bytes - others));
        mask = sq_u32le(&c);
    }
    for (unsigned d = 0; d < l->rank; d++)
        chunk[d] = sq_u64le(&c);
    return sq_hdf5_chunk_add(walk, chunk, address, size_bytes, mask, err);
}

int sq_hdf5_walk_btree2(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    enum { UNFILTERED = 10, FILTERED = 11 };
    const unsigned type = walk->filtered ? FILTERED : UNFILTERED;
    const size_t least =
        walk->reader->file->offset_bytes + walk->layout->rank * sizeof(uint64_t) + (walk->filtered ? 1 + sizeof(uint32_t) : 0);
    return sq_hdf5_btree_walk(walk->reader, walk->layout->address, type, least, visit_record, walk, err);
}
