/* Heaps: names of old groups (local, III.D), values of variable length (global, III.E), and links, attributes and shared messages (fractal, III.G). */
#ifndef SQ_FORMAT_HDF5_HEAP_H
#define SQ_FORMAT_HDF5_HEAP_H

#include "format/hdf5/file.h"

struct sq_hdf5_local_heap {
    const uint8_t *bytes;
    size_t size_bytes;
    uint64_t address;
};

int sq_hdf5_local_heap_read(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_local_heap *ret,
                            struct squall_error *err) SQUALL_CHECK;
/* The text at an offset; it ends within the heap. */
int sq_hdf5_local_heap_text(struct sq_hdf5_reader *r, const struct sq_hdf5_local_heap *heap, uint64_t offset, const char **ret,
                            struct squall_error *err) SQUALL_CHECK;

/* An object of the collection at an address. *ret lives as long as the reader. */
int sq_hdf5_global_heap_get(struct sq_hdf5_reader *r, uint64_t collection, uint32_t index, const uint8_t **ret, size_t *ret_size,
                            struct squall_error *err) SQUALL_CHECK;

/*
 * What an element of variable length is (IV.A.2.d): stored are its length, the address of a collection, and an object's number.
 *
 * unit_bytes  of what the length counts
 * ret         *ret_count units, which live as long as the reader; untouched where there are none
 */
int sq_hdf5_sequence_get(struct sq_hdf5_reader *r, const uint8_t *stored, size_t stored_bytes, size_t unit_bytes, const uint8_t **ret,
                         size_t *ret_count, struct squall_error *err) SQUALL_CHECK;

/* A fractal heap. It lives as long as the reader, as does all that is got from it. */
struct sq_hdf5_heap;
int sq_hdf5_heap_open(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_heap **ret, struct squall_error *err) SQUALL_CHECK;
/* The object that an id names. */
int sq_hdf5_heap_get(struct sq_hdf5_reader *r, struct sq_hdf5_heap *heap, const uint8_t *id, size_t id_bytes, const uint8_t **ret,
                     size_t *ret_size, struct squall_error *err) SQUALL_CHECK;

#endif
