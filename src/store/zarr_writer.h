/*
 * The write side of a Zarr store in a folder, of version 3 or 2: metadata documents and chunks, each published atomically. Metadata is
 * written arrays first, what is consolidated of it last: that rename makes the store visible.
 */
#ifndef SQ_STORE_ZARR_WRITER_H
#define SQ_STORE_ZARR_WRITER_H

#include "base/json.h"
#include "codec/codec.h"
#include "io/atomic_file.h"
#include "squall/array.h"
#include "store/store.h"

/* Where a store is, and the version of its documents and keys: 3, or 2, whose keys here have "/" between their numbers. */
struct sq_store {
    const char *folder;
    int zarr_format;
};

/* What one array of the store is to be. */
struct sq_store_array {
    const char *name; /* no slash, no leading dot, not empty */
    enum squall_type type;
    unsigned rank;
    const uint64_t *shape, *chunks;
    const char *const *dims;
    const struct sq_json *attributes; /* object; NULL: none */
    const struct sq_json *fill_value; /* as Zarr v3 spells it: "NaN", 0, false, ""; NULL: the type's own */
    const struct sq_codec_chain *codecs;
};

/* The array's documents (also what consolidated metadata holds). *ret: sq_node_done. */
int sq_store_array_node(const struct sq_store_array *array, int zarr_format, struct sq_node *ret, struct squall_error *err) SQUALL_CHECK;

/*
 * In Zarr v2 readers mask the fill value. So the documents tell one only where the attributes have `_FillValue`, which then is not repeated, or where it is
 * NaN; and of other arrays it is unknown what is not stored.
 */
bool sq_store_tells_fill(const struct sq_store_array *array, int zarr_format);

/* The name of the document that makes a store visible: of version 3 the root's, of version 2 that of consolidated metadata. */
const char *sq_store_root_document(int zarr_format);
/* Is it one of the names that documents have? */
bool sq_store_is_document(const char *name);

/*
 * Publish metadata: each array's documents (folders are made), then the root group's with `attributes` and all arrays
 * consolidated. Unchanged documents are left alone. Durable when it returns.
 */
int sq_store_publish_metadata(struct sq_store store, const struct sq_json *attributes, const struct sq_store_array *arrays,
                              size_t array_count, struct squall_error *err) SQUALL_CHECK;

/* "STORE/NAME/c/0/1"; rank 0: "STORE/NAME/c". Version 2: "STORE/NAME/0/1", "STORE/NAME/0". sq_free; NULL: out of memory. */
char *sq_store_chunk_path(struct sq_store store, const char *array, unsigned rank, const uint64_t *chunk);
/* Where the first dimension of chunks' numbers is: "STORE/NAME/c", "STORE/NAME". sq_free; NULL: out of memory. */
char *sq_store_chunk_folder(struct sq_store store, const char *array);

/* Is a name in that folder the number of chunks along the first dimension, as paths have it? */
bool sq_store_is_index(const char *name, uint64_t *ret);

/* Make the chunk's folders (durably) and publish encoded bytes. */
int sq_store_write_chunk(struct sq_store store, const char *array, unsigned rank, const uint64_t *chunk, const void *bytes,
                         size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/* Of an array that is not to be there: all its chunks. */
int sq_store_remove_chunks(struct sq_store store, const char *array, struct squall_error *err) SQUALL_CHECK;

/*
 * Write a whole small array (coordinates, flags): values in C order and the machine's byte order (strings: struct squall_bytes),
 * cut into the array's chunks, encoded and published. Chunks whose file holds the same bytes already are left alone.
 */
int sq_store_write_array(struct sq_store store, const struct sq_store_array *array, const void *values,
                         struct squall_error *err) SQUALL_CHECK;

#endif
