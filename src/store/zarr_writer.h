/*
 * The write side of a Zarr v3 store in a folder: metadata documents and chunks, each published atomically. Metadata is
 * written arrays first, the root with consolidated metadata last: that rename makes the store visible.
 */
#ifndef SQ_STORE_ZARR_WRITER_H
#define SQ_STORE_ZARR_WRITER_H

#include "base/json.h"
#include "codec/codec.h"
#include "io/atomic_file.h"
#include "squall/array.h"

/* What one array of the store is to be. */
struct sq_store_array {
    const char *name; /* no slash, no leading dot, not empty */
    enum squall_type type;
    unsigned rank;
    const uint64_t *shape, *chunks;
    const char *const *dims;
    const struct sq_json *attributes; /* object; NULL: none */
    const struct sq_json *fill_value; /* as Zarr v3 spells it: "NaN", 0, false, "" */
    const struct sq_codec_chain *codecs;
};

/* The array's zarr.json as a value (also what consolidated metadata holds). The caller's. */
int sq_store_array_json(const struct sq_store_array *array, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;

/*
 * Publish metadata: each array's zarr.json (folders are made), then the root group's with `attributes` and all arrays
 * consolidated. Unchanged documents are left alone. Durable when it returns.
 */
int sq_store_publish_metadata(const char *store, const struct sq_json *attributes, const struct sq_store_array *arrays, size_t array_count,
                              struct squall_error *err) SQUALL_CHECK;

/* "STORE/NAME/c/0/1"; rank 0: "STORE/NAME/c". sq_free; NULL: out of memory. */
char *sq_store_chunk_path(const char *store, const char *array, unsigned rank, const uint64_t *chunk);

/* Make the chunk's folders (durably) and publish encoded bytes. */
int sq_store_write_chunk(const char *store, const char *array, unsigned rank, const uint64_t *chunk, const void *bytes, size_t size_bytes,
                         struct squall_error *err) SQUALL_CHECK;

/*
 * Write a whole small array (coordinates, flags): values in C order and the machine's byte order (strings: struct squall_bytes),
 * cut into the array's chunks, encoded and published. Chunks whose file holds the same bytes already are left alone.
 */
int sq_store_write_array(const char *store, const struct sq_store_array *array, const void *values, struct squall_error *err) SQUALL_CHECK;

#endif
