/* What hdf5_array.c (what a file's arrays are) and hdf5_chunks.c (where their chunks lie, and decoding them) share. */
#ifndef SQ_ENGINE_HDF5_INTERNAL_H
#define SQ_ENGINE_HDF5_INTERNAL_H

#include "base/hash.h"
#include "codec/hdf5_filters.h"
#include "engine/array.h"
#include "format/hdf5/chunk_index.h"
#include "format/hdf5/elements.h"
#include "format/hdf5/netcdf4.h"
#include "format/hdf5/pipeline.h"
#include <stdatomic.h>

/* What the dataset holds: the arrays' names, types and shapes lie in what is kept of the tree. */
struct sq_hdf5_data {
    struct sq_hdf5_file *file;
    struct sq_hdf5_tree tree;
};

struct sq_hdf5_array {
    struct squall_array base;
    const struct sq_hdf5_data *data;
    const struct sq_netcdf4_variable *variable; /* this and dataset: NULL when the array is made */
    const struct sq_hdf5_dataset *dataset;      /* the variable's */
    struct sq_hdf5_space space;                 /* of the dataset */
    struct sq_hdf5_layout layout;
    struct sq_hdf5_elements elements;
    struct sq_codec_chain *filters;   /* NULL: none */
    struct sq_hash filters_id;        /* equal: so are the filters */
    struct sq_hdf5_pipeline pipeline; /* while it is opened */
    const struct sq_hdf5_array *like; /* whose parts it shares; NULL: nobody's */
    _Atomic(struct sq_hdf5_chunk_index *) index;
    struct sq_source *compact;
    unsigned rank; /* without an array type's */
    uint64_t *shape, *chunks;
    const char **dims;
    void *fill;                                                /* an element in memory */
    const uint8_t *fill_pattern;                               /* NULL, or all elements of an array type, where they differ */
    _Atomic(uint8_t *) pattern;                                /* a chunk full of them */
    char *attributes, *attribute_types, *fill_value, *storage; /* JSON texts */
};

static inline struct sq_hdf5_array *sq_hdf5_array_of(const struct squall_array *a)
{
    return (struct sq_hdf5_array *)(uintptr_t)a;
}

extern const struct sq_array_ops sq_hdf5_array_ops;

/* The index of a chunked dataset, read when it is first needed. */
int sq_hdf5_array_index(struct sq_hdf5_array *h, const struct sq_hdf5_chunk_index **ret, struct squall_error *err) SQUALL_CHECK;
/* Elements as they are stored → in memory; fewer than dst has room for where they are the last of what lies together. */
int sq_hdf5_array_elements(const struct sq_hdf5_array *h, const uint8_t *stored, size_t size_bytes, void *dst, size_t dst_size,
                           struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_array_free(struct squall_array *a);

#endif
