/*
 * Zarr stores in folders and zip files, versions 3 and 2, read: hierarchy, array metadata, where a chunk lies. No bytes of data are read here, and nothing of the
 * engine is known: src/engine/zarr_array.c makes engine arrays of these descriptions.
 */
#ifndef SQ_FORMAT_ZARR_ZARR_H
#define SQ_FORMAT_ZARR_ZARR_H

#include "base/json.h"
#include "codec/codec.h"
#include "io/tree.h"
#include "squall/array.h"
#include <stdbool.h>

struct sq_zarr_array {
    char *name;   /* path within the store, "t2m", "group/t2m"; "" for a store that is one array */
    char *folder; /* where its chunks lie, as sq_tree_name tells it */
    int version;  /* 2 or 3 */
    struct sq_dtype dtype;
    char *type_name;  /* for people: "float32", "<U5", "datetime64[10ms]"; of an unsupported type its own name */
    char *numpy_type; /* struct squall_array_info's; "|V0" where the type is unsupported */
    unsigned rank;
    uint64_t shape[SQUALL_RANK_MAX], chunks[SQUALL_RANK_MAX]; /* lengths within int64; chunks ≥ 1 */
    uint64_t *edges[SQUALL_RANK_MAX];      /* rectilinear: where chunks begin and the last one ends; chunks: the longest. NULL: regular */
    uint64_t edge_counts[SQUALL_RANK_MAX]; /* chunks + 1 */
    char *dims[SQUALL_RANK_MAX];           /* "" where it has no name */
    char separator;                        /* of chunk keys: '/' or '.' */
    bool default_encoding;                 /* keys begin with "c" (v3 default), else v2's */
    struct sq_json *storage;               /* object: what squall_array_storage tells */
    struct sq_json *attributes;            /* object, without v2's _ARRAY_DIMENSIONS */
    struct sq_json *fill_value;            /* as written; NULL: none */
    void *fill;                            /* one element in memory; NULL where unsupported */
    uint64_t chunk_elements;
    struct sq_codec_chain *codecs; /* NULL where unsupported */
    struct sq_json *codec_list;    /* as written, where chunks differ in shape: sq_zarr_bind_chunk */
    char *codec_names;             /* in words, also where they are unsupported */
    char *unsupported;             /* NULL, or "unsupported codec pcodec", "unsupported data type …" */
};

/* A group below the root. */
struct sq_zarr_group {
    char *name; /* path within the store */
    struct sq_json *attributes;
};

struct sq_zarr_store {
    struct sq_tree *tree; /* what it lies in */
    int version;
    struct sq_json *attributes;   /* of the root group; an object */
    struct sq_zarr_group *groups; /* those that have metadata of their own */
    size_t group_count, group_capacity;
    struct sq_zarr_array *arrays;
    size_t array_count, array_capacity;
    char **problems; /* a line each: arrays whose metadata is damaged, … */
    size_t problem_count, problem_capacity;
    _Atomic(struct sq_records *) records; /* of the conversion that made it: sq_zarr_check_recorded; NULL: not looked for yet */
};

/* Is there a folder or zip file with Zarr metadata at this path (zarr.json, .zgroup, .zarray, .zmetadata)? */
bool sq_zarr_is_store(const char *path);
/* From consolidated metadata where there is some, else by walking the groups. *ret: sq_zarr_store_done. */
int sq_zarr_store_open(const char *path, struct sq_zarr_store *ret, struct squall_error *err) SQUALL_CHECK;
/* One array in a folder, described by its document (zarr.json or .zarray as text) wherever that came from; no file is looked at. */
int sq_zarr_store_from_document(const char *folder, int version, const char *document, size_t length, struct sq_zarr_store *ret,
                                struct squall_error *err) SQUALL_CHECK;
void sq_zarr_store_done(struct sq_zarr_store *store);
/* Of a chunk that is not there: SQUALL_ECORRUPT where the store has records of its conversion, and by them it was written. */
int sq_zarr_check_recorded(struct sq_zarr_store *store, const struct sq_zarr_array *array, const uint64_t *chunk,
                           struct squall_error *err) SQUALL_CHECK;
/* The key of a chunk, below the array's name: "c/0/1/2", "0.1.2", "c". NULL: out of memory; sq_free. */
char *sq_zarr_chunk_key(const struct sq_zarr_array *array, const uint64_t *chunk);

/* The array's codecs for chunks of this shape, where not all have one. *ret: sq_codec_chain_free. Errors: as sq_codec_chain_bind_v3. */
int sq_zarr_bind_chunk(const struct sq_zarr_array *array, const uint64_t *chunk_shape, struct sq_codec_chain **ret,
                       struct squall_error *err) SQUALL_CHECK;

#endif
