/*
 * See chunk_index.h. Trees give their chunks in C order, and arrays nearly always: the list is sorted only where it is not. Where all chunks are
 * there, a chunk's number is its place in the list.
 */
#include "format/hdf5/chunk_index.h"
#include "base/checked.h"
#include "base/memory.h"
#include "format/hdf5/chunk_walk.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sq_hdf5_chunk_index {
    unsigned rank;
    uint64_t count[SQUALL_RANK_MAX]; /* of chunks along each dimension */
    uint64_t total;                  /* their product */
    struct sq_hdf5_chunk *chunks;    /* ascending by number */
    size_t chunk_count, capacity;
    struct {
        uint64_t address;                /* of the first; SQ_HDF5_NOWHERE: not of this kind */
        uint64_t below[SQUALL_RANK_MAX]; /* bytes from one chunk to the next along each dimension */
        uint64_t chunk_bytes;
    } implicit; /* chunks lie one behind the other: there is nothing to keep */
};

int sq_hdf5_chunk_add(struct sq_hdf5_chunk_walk *walk, const uint64_t *chunk, uint64_t address, uint64_t size_bytes, uint32_t skip_mask,
                      struct squall_error *err)
{
    struct sq_hdf5_chunk_index *index = walk->index;
    uint64_t number = 0;
    if (address == SQ_HDF5_NOWHERE)
        return 0;
    for (unsigned d = 0; d < index->rank; d++) {
        if (chunk[d] >= index->count[d])
            return 0;
        number = number * index->count[d] + chunk[d];
    }
    if (index->chunk_count >= index->total)
        return SQ_HDF5_DAMAGED(walk->reader->file, walk->layout->address, err, "the index holds more chunks than the dataset's %" PRIu64,
                               index->total);
    SQ_TRY(SQ_GROW(index->chunks, index->capacity, index->chunk_count + 1, err));
    index->chunks[index->chunk_count++] = (struct sq_hdf5_chunk){number, address, size_bytes, skip_mask};
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct sq_hdf5_chunk *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int sort_chunks(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    struct sq_hdf5_chunk_index *index = walk->index;
    bool ascending = true;
    for (size_t i = 1; ascending && i < index->chunk_count; i++)
        ascending = index->chunks[i - 1].number < index->chunks[i].number;
    if (ascending)
        return 0;
    qsort(index->chunks, index->chunk_count, sizeof *index->chunks, by_number);
    for (size_t i = 1; i < index->chunk_count; i++)
        if (index->chunks[i - 1].number == index->chunks[i].number)
            return SQ_HDF5_DAMAGED(walk->reader->file, walk->layout->address, err, "the index holds chunk %" PRIu64 " twice",
                                   index->chunks[i].number);
    return 0;
}

/* Chunks of the greatest shape one behind the other (III.A.5 of the layout message's "Implicit Index"). */
static int set_implicit(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    struct sq_hdf5_chunk_index *index = walk->index;
    uint64_t bytes = walk->layout->size_bytes;
    for (unsigned d = index->rank; d-- > 0;) {
        index->implicit.below[d] = bytes;
        if (!sq_mul_u64(bytes, walk->count_greatest[d], &bytes) && d > 0)
            return SQ_HDF5_DAMAGED(walk->reader->file, walk->layout->address, err, "chunks that lie together take more than 2^64 bytes");
    }
    index->implicit.address = walk->layout->address;
    index->implicit.chunk_bytes = walk->layout->size_bytes;
    return 0;
}

static int add_single(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    static const uint64_t FIRST[SQUALL_RANK_MAX];
    const struct sq_hdf5_layout *l = walk->layout;
    return sq_hdf5_chunk_add(walk, FIRST, l->address, l->single_bytes, l->single_mask, err);
}

static int walk_nodes(struct sq_hdf5_chunk_walk *walk, struct squall_error *err)
{
    static int (*const WALKS[])(struct sq_hdf5_chunk_walk *, struct squall_error *) = {
        [SQ_HDF5_INDEX_BTREE1] = sq_hdf5_walk_btree1,
        [SQ_HDF5_INDEX_SINGLE] = add_single,
        [SQ_HDF5_INDEX_IMPLICIT] = set_implicit,
        [SQ_HDF5_INDEX_FIXED_ARRAY] = sq_hdf5_walk_fixed_array,
        [SQ_HDF5_INDEX_EXTENSIBLE_ARRAY] = sq_hdf5_walk_extensible_array,
        [SQ_HDF5_INDEX_BTREE2] = sq_hdf5_walk_btree2,
    };
    if (walk->layout->address == SQ_HDF5_NOWHERE || walk->index->total == 0)
        return 0;
    SQ_TRY(WALKS[walk->layout->index](walk, err));
    return sort_chunks(walk, err);
}

static uint64_t chunks_along(uint64_t length, uint64_t chunk)
{
    return length / chunk + (length % chunk != 0);
}

static int count_chunks(struct sq_hdf5_chunk_walk *walk, const uint64_t *shape, const uint64_t *maximum, struct squall_error *err)
{
    const struct sq_hdf5_layout *l = walk->layout;
    struct sq_hdf5_chunk_index *index = walk->index;
    index->rank = l->rank;
    index->total = 1;
    index->implicit.address = SQ_HDF5_NOWHERE;
    for (unsigned d = 0; d < l->rank; d++) {
        index->count[d] = chunks_along(shape[d], l->chunk[d]);
        walk->count_greatest[d] = maximum[d] == SQ_HDF5_NOWHERE ? UINT64_MAX : chunks_along(maximum[d], l->chunk[d]);
        if (index->count[d] == 0)
            index->total = 0;
    }
    for (unsigned d = 0; d < l->rank && index->total > 0; d++)
        if (!sq_mul_u64(index->total, index->count[d], &index->total) || index->total > INT64_MAX)
            return sq_error(err, SQUALL_EUNSUPPORTED, "a grid of more than 2^63 chunks");
    return 0;
}

int sq_hdf5_chunk_index_load(const struct sq_hdf5_file *f, const struct sq_hdf5_layout *layout, const uint64_t *shape,
                             const uint64_t *maximum, bool filtered, struct sq_hdf5_chunk_index **ret, struct squall_error *err)
{
    struct sq_hdf5_reader reader;
    struct sq_hdf5_chunk_walk walk = {.reader = &reader, .layout = layout, .filtered = filtered};
    SQ_TRY(sq_hdf5_reader_init(&reader, f, err));
    walk.index = sq_alloc_zero(1, sizeof *walk.index);
    int status = walk.index ? count_chunks(&walk, shape, maximum, err) : sq_error_memory(err, sizeof *walk.index);
    if (!status)
        status = walk_nodes(&walk, err);
    sq_hdf5_reader_done(&reader);
    if (status)
        sq_hdf5_chunk_index_free(walk.index);
    else
        *ret = walk.index;
    return status;
}

void sq_hdf5_chunk_index_free(struct sq_hdf5_chunk_index *index)
{
    if (index)
        sq_free(index->chunks);
    sq_free(index);
}

bool sq_hdf5_chunk_find(const struct sq_hdf5_chunk_index *index, const uint64_t *chunk, struct sq_hdf5_chunk *ret)
{
    struct sq_hdf5_chunk key = {.address = index->implicit.address, .size_bytes = index->implicit.chunk_bytes};
    for (unsigned d = 0; d < index->rank; d++) {
        key.number = key.number * index->count[d] + chunk[d];
        key.address += chunk[d] * index->implicit.below[d];
    }
    if (index->implicit.address != SQ_HDF5_NOWHERE) {
        *ret = key;
        return true;
    }
    if (index->chunk_count == 0)
        return false;
    const struct sq_hdf5_chunk *found = index->chunk_count == index->total
                                            ? &index->chunks[key.number]
                                            : bsearch(&key, index->chunks, index->chunk_count, sizeof key, by_number);
    if (found)
        *ret = *found;
    return found != NULL;
}

uint32_t sq_hdf5_chunk_index_skip_mask(const struct sq_hdf5_chunk_index *index)
{
    uint32_t mask = UINT32_MAX;
    for (size_t i = 0; i < index->chunk_count; i++)
        mask &= index->chunks[i].skip_mask;
    return mask;
}

uint64_t sq_hdf5_chunk_index_bytes(const struct sq_hdf5_chunk_index *index)
{
    uint64_t bytes = 0;
    if (index->implicit.address != SQ_HDF5_NOWHERE)
        return index->total * index->implicit.chunk_bytes;
    for (size_t i = 0; i < index->chunk_count; i++)
        bytes += index->chunks[i].size_bytes;
    return bytes;
}
