/*
 * Zarr stores, written: groups and arrays made, regions of arrays put in place, arrays resized. Whatever is written is published whole:
 * a reader at any moment finds the old chunk, or the new one, and never a part.
 */
#ifndef SQUALL_STORE_H
#define SQUALL_STORE_H

#include "squall/array.h"
#include "squall/context.h"
#include "squall/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

enum squall_durability {
    SQUALL_DURABILITY_NONE, /* as other programs write: what the machine has not put on its disk yet, a power cut loses */
    SQUALL_DURABILITY_DATA, /* chunks and documents are on the disk before their names say so */
    SQUALL_DURABILITY_FULL, /* and the names too, when the call returns */
};

/* Everything 0, or NULL in place of the struct: the defaults. */
struct squall_store_options {
    enum squall_durability durability;
    int write_empty_chunks; /* chunks that hold nothing but the fill value: written too. Else they are removed, and read as the fill value */
    int aligned_only; /* refuse regions that cut chunks (SQUALL_EREFUSED): what several processes need that write one array at a time */
    int leave_consolidated; /* consolidated metadata of the groups above: left as it is. Else what changes is changed there too */
};

struct squall_group_spec {
    int zarr_format;        /* 3 or 2; 0: the store's own, of a new one 3 */
    const char *attributes; /* a JSON object, whose order is kept; NULL: none */
    int consolidated;       /* begin with consolidated metadata, which is kept true from then on */
    int overwrite;          /* delete the node that is there, and all below it. Else: SQUALL_EREFUSED */
};

struct squall_array_spec {
    int zarr_format; /* as of groups */
    /*
     * "float32", "string" and Zarr v3's other names; numpy's spelling "<f4", "<M8[10ms]", "|S5", "<U12", "|V3"; or, as JSON, what the metadata of
     * the store's version says of a type: "{\"name\": …, \"configuration\": …}", "[[\"x\", \"<f4\"], [\"y\", \"<f4\"]]".
     */
    const char *type;
    unsigned rank;
    const uint64_t *shape;
    const uint64_t *chunks; /* NULL: one chunk */
    const uint64_t *shards; /* v3: objects of several chunks, multiples of these; NULL: each chunk is its own */
    /*
     * v3: a rectilinear grid, in the place of chunks: for each dimension a length, or a list of the lengths of its chunks that make up the shape, as
     * JSON: "[[10, 20, 5], 100]". Where chunks are given as well, these are shards of such chunks.
     */
    const char *chunk_shapes;
    const char *const *dims; /* rank names, "" for none; NULL: no dimension has one */
    const char *fill_value;  /* JSON, as the version's metadata spells it; NULL: 0, "", not a time */
    const char *attributes;  /* a JSON object; NULL: none */
    /*
     * v3: the metadata's "codecs" as a JSON list, of each chunk within shards; or the words of `squall convert --codec`,
     * "blosc:cname=zstd,clevel=5,shuffle=shuffle". v2: such words, or JSON: the compressor. "none": no compression. NULL: zstd.
     */
    const char *codecs;
    const char *filters;      /* v2: a JSON list; NULL: none but what the type needs */
    const char *index_codecs; /* of shards: a JSON list; NULL: bytes and crc32c */
    int index_at_start;       /* of shards */
    int column_major;         /* v2's order F */
    char separator;           /* of chunk keys, '/' or '.'; 0: '/' of v3, '.' of v2 */
    int v2_keys;              /* v3: chunk keys as v2 has them */
    int overwrite;            /* as of groups */
};

/*
 * Make a group, or an array, in the store that is the folder at `store`: made where it is not there, and with it the groups on the way to `name`,
 * "a/b/t2m". name "" or NULL: the store is this node itself. options may be NULL.
 *
 * Errors: SQUALL_EINVAL (what in the spec makes no sense), SQUALL_EUNSUPPORTED (a type or codec that squall cannot write), SQUALL_EREFUSED (something
 * is there already, or something that is no Zarr).
 */
int squall_group_create(squall_context *ctx, const char *store, const char *name, const struct squall_group_spec *spec,
                        const struct squall_store_options *options, struct squall_error *err) SQUALL_CHECK;
int squall_array_create(squall_context *ctx, const char *store, const char *name, const struct squall_array_spec *spec,
                        const struct squall_store_options *options, struct squall_error *err) SQUALL_CHECK;

/*
 * Consolidated metadata of a group, made anew from all nodes below it: what other programs made or changed, too. It is kept true from then on.
 * SQUALL_EREFUSED: there are nodes of the other version below it. SQUALL_ENOTFOUND, SQUALL_EINVAL: it is no group.
 */
int squall_group_consolidate(squall_context *ctx, const char *store, const char *name, const struct squall_store_options *options,
                             struct squall_error *err) SQUALL_CHECK;

/* Delete an array, or a group and all below it. SQUALL_ENOTFOUND: it is not there. */
int squall_node_delete(squall_context *ctx, const char *store, const char *name, const struct squall_store_options *options,
                       struct squall_error *err) SQUALL_CHECK;
/* All attributes of an array or group, as a JSON object. Datasets that are open keep what they read. */
int squall_node_set_attributes(squall_context *ctx, const char *store, const char *name, const char *attributes,
                               const struct squall_store_options *options, struct squall_error *err) SQUALL_CHECK;

/*
 * Open a store, or one array of it by the path of its folder, for reading and writing; or a NetCDF-3 file, whose elements are written in place.
 * *ret: squall_dataset_close. Errors as squall_dataset_open; SQUALL_EUNSUPPORTED: it is neither.
 */
int squall_store_open(squall_context *ctx, const char *path, const struct squall_store_options *options, squall_dataset **ret,
                      struct squall_error *err) SQUALL_CHECK;

/*
 * Put elements from src, in the array's type and the machine's byte order, into a region of an array that was opened by squall_store_open.
 *
 * strides  bytes between neighbours along each dimension of src, also 0 or negative; NULL: C order, packed
 * Variable length: src is struct squall_bytes; what they point at stays the caller's. data may be NULL where size_bytes is 0
 *
 * Threads of one process may write the same chunks at the same time. Between processes nobody may cut a chunk that another one writes:
 * squall_selection_is_aligned says whether a region cuts any. In NetCDF-3 files there are no chunks to cut: anybody may write elements that
 * nobody else writes at the same time, in whatever process.
 *
 * Errors: SQUALL_EINVAL (selection outside the array), SQUALL_EREFUSED (not opened for writing; not aligned, where that was asked for), SQUALL_EIO,
 * SQUALL_ECORRUPT (a chunk that is to be changed in part cannot be read). After an error each chunk has its old content or its new.
 */
int squall_array_write(squall_array *a, const struct squall_selection *selection, const void *src, const int64_t *strides,
                       struct squall_error *err) SQUALL_CHECK;

/* Does the region hold each chunk (of an array with shards: shard) that it touches whole, as far as the array goes? */
int squall_selection_is_aligned(const squall_array *a, const struct squall_selection *selection);
/* The smallest region that does, and holds this one. The selection lies within the array. */
struct squall_selection squall_selection_aligned(const squall_array *a, const struct squall_selection *selection);

/*
 * Give the array another shape, of the same rank. Chunks that lie wholly outside are deleted; elements of others that are outside stay where they
 * are, and come back when it grows again. What is new reads as the fill value. A rectilinear grid that does not reach so far gets one more chunk along
 * that dimension. Not while another call uses the array.
 *
 * In a NetCDF-3 file, of any version: the first dimension of variables with records grows, of all such variables together; what is new is filled, and on
 * the disk before the header tells of it. Everything else is SQUALL_EUNSUPPORTED. By one process; not while another call uses the dataset.
 */
int squall_array_resize(squall_array *a, const uint64_t *shape, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
