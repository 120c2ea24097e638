/*
 * An array as the engine sees it, whatever its format: a description, and two answers: where does chunk k lie, and how are its bytes decoded.
 * A format makes the struct; the engine plans, fetches, decodes and scatters. Belongs to its dataset.
 */
#ifndef SQ_ENGINE_ARRAY_H
#define SQ_ENGINE_ARRAY_H

#include "array/grid.h"
#include "base/text.h"
#include "codec/codec.h"
#include "engine/context.h"
#include "io/zip.h"
#include "squall/array.h"
#include "squall/dataset.h"
#include "squall/store.h"
#include <stdatomic.h>

enum sq_chunk_state {
    SQ_CHUNK_PRESENT,
    SQ_CHUNK_MISSING, /* reads as the fill value */
    SQ_CHUNK_INLINE,  /* decoded and in memory: coordinates that a format computes */
};

/*
 * Where one chunk lies: in source, a file that was known when the dataset was opened, must still be the same after the read, and belongs to
 * the format; or where that is NULL in a file of its own at path, opened for the read.
 */
struct sq_location {
    enum sq_chunk_state state;
    const void *elements; /* INLINE: the whole chunk, C order; the format's */
    struct sq_source *source;
    char *path; /* sq_free by the engine. Where source is set: what messages call the chunk, or NULL */
    uint64_t offset;
    uint64_t size_bytes;        /* UINT64_MAX: the whole file at path */
    uint64_t param;             /* the format's own: a GRIB field's row, … */
    struct sq_zip_place packed; /* source is a zip file, and this the member; deflated ones are inflated first. Else all 0 */
};

struct sq_array_ops {
    /* Before each read, by one thread: what all chunks need to be located. NULL: nothing. */
    int (*prepare)(const struct squall_array *a, struct squall_error *err);
    /* The whole read, as sq_array_read, by an array that other arrays make up; it needs nothing else of this but free. NULL: by chunks */
    int (*read)(struct squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides, unsigned threads,
                struct squall_speed *speed, struct squall_error *err);
    /* chunk: the chunk's index along each dimension, within the grid */
    int (*locate)(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err);
    /* There is no file at where->path: 0 where that makes it a missing chunk, else what is wrong. NULL: it always is wrong. */
    int (*absent)(const struct squall_array *a, const uint64_t *chunk, const struct sq_location *where, struct squall_error *err);
    void *(*scratch_new)(const struct squall_array *a); /* NULL: out of memory */
    void (*scratch_free)(void *scratch);
    /*
     * bytes of the location → the whole chunk (of an array with shards: inner chunk), on at most `threads` threads, C order, the array's type, machine byte order; exactly dst_size bytes.
     * Variable length: dst is struct squall_bytes[n]; what each points at is malloc'ed and the caller's; nothing is on failure.
     */
    int (*decode)(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err);
    /* decode, but for the unshuffling: *ret_layout says how elements lie. Where keeps_shuffled is set. */
    int (*decode_shuffled)(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where,
                           const void *bytes, size_t size, void *dst, size_t dst_size, struct sq_shuffle_layout *ret_layout,
                           struct squall_error *err);
    /* A range of a chunk, from a file's parts as they are needed, as sq_codec_decode_range; only where has_range is set. */
    int (*decode_range)(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_codec_input *input,
                        const struct sq_codec_range *range, void *dst, struct sq_shuffle_layout *ret_layout, struct squall_error *err);
    /* Of arrays with shards: a stored index → offset and size of each inner chunk, as sq_codec_shard_index. */
    int (*read_index)(const struct squall_array *a, void *scratch, const void *stored, uint64_t shard_bytes, uint64_t *ret,
                      struct squall_error *err);
    /*
     * The whole chunk (of an array with shards: shard), as it is in memory → what is stored of it; at most as many bytes as encode_bound says come
     * out, the same for any number of threads. NULL: the format is only read.
     */
    int (*encode_bound)(const struct squall_array *a, const struct sq_location *where, const void *src, size_t src_size, size_t *ret,
                        struct squall_error *err);
    int (*encode)(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *src,
                  size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err);
    int (*storage)(const struct squall_array *a, struct sq_text *out, struct squall_error *err); /* squall_array_storage; NULL: {} */
    int (*stored_bytes)(const struct squall_array *a, uint64_t *ret, struct squall_error *err);  /* NULL: not known */
    /* What it has equal to `like`, an array of the same format that outlives it, becomes that one's. NULL: nothing is worth it. */
    void (*share)(struct squall_array *a, const struct squall_array *like);
    void (*free)(struct squall_array *a); /* the array and all it owns */
};

struct squall_array {
    struct squall_array_info info; /* what its pointers point at is the format's */
    const void *fill;              /* at one element, machine byte order; NULL: no chunk is ever SQ_CHUNK_MISSING */
    const struct sq_array_ops *ops;
    struct sq_axis *grid;               /* of chunks that lie for themselves, or shards; NULL: sq_dataset_add makes it of info. sq_free'd */
    const struct sq_codec_shard *shard; /* NULL: chunks lie for themselves. The format's */
    uint64_t stored_limit_bytes;        /* more is stored of no chunk (with shards: 0) unless it is damaged; 0: not known */
    uint64_t decoded_id;                /* what turns stored bytes into elements, as a hash; 0: chunks are never kept decoded */
    bool grows;                         /* along its first dimension, as its file says: that is an unlimited one */
    bool plain;                         /* stored bytes are the chunk's bytes: they can be read straight into the destination */
    unsigned swap_bytes;                /* plain: 2, 4, 8: so many at a time lie in the other byte order; 0: none do */
    uint64_t row_bytes;             /* plain: from an index of the first dimension to the next, where other things lie between; 0: packed */
    bool has_range;                 /* decode_range of a part costs less than decode */
    bool keeps_shuffled;            /* decode_shuffled costs less than decode */
    struct squall_dataset *dataset; /* set by sq_dataset_add */
};

struct sq_worker;

struct squall_dataset {
    const struct squall_context *ctx;
    char *path;
    const char *format;
    char *attributes;      /* JSON text */
    char *attribute_types; /* JSON text, or NULL */
    bool is_array;         /* the path is one array */
    size_t file_count;     /* that it is made of; 1 of a store */
    bool writable;         /* src/store opened it, with these options */
    struct squall_store_options write_options;
    struct squall_array **arrays;
    size_t array_count, array_capacity;
    struct squall_group_info *groups; /* whose texts are the dataset's */
    size_t group_count, group_capacity;
    char **problems;
    size_t problem_count, problem_capacity;
    void *format_data;                        /* shared by the arrays: a GRIB cube, … */
    void (*format_data_free)(void *data);     /* after the arrays are gone */
    _Atomic(struct sq_worker *) idle_workers; /* what earlier reads decoded with, kept for the next: worker.h */
    struct squall_dataset *workers_of;        /* whose idle workers are used: its own, or those of the many that it is one of */
};

/* Help for formats: an empty dataset (squall_dataset_close); append an array (owned from then on, also where this fails); append a problem line (copied). */
struct squall_dataset *sq_dataset_new(const struct squall_context *ctx, const char *path, const char *format, struct squall_error *err);
int sq_dataset_add(struct squall_dataset *ds, struct squall_array *a, struct squall_error *err) SQUALL_CHECK;
void sq_dataset_drop(struct squall_dataset *ds, size_t index); /* free one of the arrays */
/* It belongs to the other from then on, and is read as long as both are open. */
int sq_dataset_move(struct squall_dataset *from, size_t index, struct squall_dataset *to, struct squall_error *err) SQUALL_CHECK;
/* name: copied. attributes, attribute_types (or NULL): owned (sq_free) */
int sq_dataset_add_group(struct squall_dataset *ds, const char *name, char *attributes, char *attribute_types,
                         struct squall_error *err) SQUALL_CHECK;
int sq_dataset_add_problem(struct squall_dataset *ds, const char *line, struct squall_error *err) SQUALL_CHECK;

#endif
