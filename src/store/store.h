/* What the files of the write side share. */
#ifndef SQ_STORE_STORE_H
#define SQ_STORE_STORE_H

#include "base/json.h"
#include "io/atomic_file.h"
#include "squall/store.h"
#include <stdbool.h>

enum sq_durability sq_store_durability(const struct squall_store_options *options);

/*
 * Publish bytes at a path whose folders below `base` may be missing; base itself is there. SQUALL_DURABILITY_FULL: all names from base on are
 * durable then.
 */
int sq_store_publish(const char *base, const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability,
                     struct squall_error *err) SQUALL_CHECK;

/* ---- documents of nodes ----------------------------------------------------------------------------------------------------------- */

/* A group or an array, as its metadata has it. */
struct sq_node {
    int version; /* 0: there is no node */
    bool is_array;
    struct sq_json *document;   /* zarr.json, .zarray or .zgroup */
    struct sq_json *attributes; /* v2's .zattrs; NULL: it has none */
};

int sq_node_read(const char *folder, struct sq_node *ret, struct squall_error *err) SQUALL_CHECK; /* *ret: sq_node_done */
/*
 * Write the documents, and then say the same in consolidated metadata of the groups above (and of this one). The folder is there. Threads and
 * processes that do so at the same time do it one after the other.
 */
int sq_node_write(const char *folder, const struct sq_node *node, const struct squall_store_options *options,
                  struct squall_error *err) SQUALL_CHECK;
/* Read, change and write a node's documents, one thread or process at a time. SQUALL_ENOTFOUND: there is none. */
typedef int sq_node_change(struct sq_node *node, const void *user, struct squall_error *err);
int sq_node_update(const char *folder, sq_node_change *change, const void *user, const struct squall_store_options *options,
                   struct squall_error *err) SQUALL_CHECK;
/* Its documents into a table of consolidated metadata, under its name below the group, as shared values; of the group itself "". */
int sq_node_put(struct sq_json *table, const char *name, const struct sq_node *node, struct squall_error *err) SQUALL_CHECK;
/* Consolidated metadata of a group, from all nodes below it as they are. */
int sq_node_consolidate(const char *folder, const struct squall_store_options *options, struct squall_error *err) SQUALL_CHECK;
/* {"zarr_format": version, …} of a group without attributes. *ret: sq_node_done. */
int sq_node_empty_group(int version, struct sq_node *ret, struct squall_error *err) SQUALL_CHECK;
/* Take the node and all below it out of the consolidated metadata above. */
int sq_node_forget(const char *folder, const struct squall_store_options *options, struct squall_error *err) SQUALL_CHECK;
void sq_node_done(struct sq_node *node);
#define SQ_CLEANUP_NODE __attribute__((cleanup(sq_node_done)))

/* What a v3 array's document is made of; values are shared, not taken. */
struct sq_array_parts {
    unsigned rank;
    const uint64_t *shape, *chunks;     /* chunks: the outer ones */
    const struct sq_json *chunk_shapes; /* of a rectilinear grid, in their place; NULL: a regular one */
    const struct sq_json *type, *key_encoding, *fill_value, *codecs;
    const struct sq_json *attributes; /* NULL: none */
    const char *const *dims;          /* NULL: no dimension has a name */
};
/* A part that is NULL was out of memory. */
int sq_array_document_v3(const struct sq_array_parts *parts, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/* The same of v2. */
struct sq_array_parts_v2 {
    unsigned rank;
    const uint64_t *shape, *chunks;
    const struct sq_json *type, *fill_value; /* fill_value: null where there is none */
    const struct sq_json *filters;           /* a list; empty: none */
    const struct sq_json *compressor;        /* NULL: none */
    char separator;
    bool column_major;
};
int sq_array_document_v2(const struct sq_array_parts_v2 *parts, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/* v3's codecs in numcodecs' words: the last is the compressor (*ret_compressor: the caller's; none: untouched), the others are appended to filters. */
int sq_codecs_v2(const struct sq_json *codecs, struct sq_json *filters, struct sq_json **ret_compressor,
                 struct squall_error *err) SQUALL_CHECK;
int sq_filter_v2(struct sq_json *filters, const char *id); /* one without settings is appended; 0, or out of memory */
int sq_set_dims_v2(struct sq_json *attributes, unsigned rank, const char *const *dims); /* as xarray finds them; 0, or out of memory */
/* {"name": name, "configuration": {key: value}}, as v3 writes every extension. Takes the value; NULL: out of memory. */
struct sq_json *sq_extension_json(const char *name, const char *key, struct sq_json *value);

/* The elements that a dimension's list in chunk_shapes, of lengths and [length, count], has room for. */
uint64_t sq_chunk_list_length(const struct sq_json *lengths);

/* An array's documents from what is wanted, checked by reading them; version is 2 or 3. *ret: sq_node_done. */
int sq_node_of_spec(const struct squall_array_spec *spec, int version, struct sq_node *ret, struct squall_error *err) SQUALL_CHECK;

#endif
