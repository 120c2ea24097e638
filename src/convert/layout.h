/*
 * The layout: which arrays the store has, of which type, cut into which chunks, encoded how. It fixes the stored bytes, so a
 * store keeps it, and a run that would make another one is refused. A *unit* is all chunks of all arrays of one step of the
 * chunk grid along init_time.
 */
#ifndef SQ_CONVERT_LAYOUT_H
#define SQ_CONVERT_LAYOUT_H

#include "base/hash.h"
#include "codec/codec.h"
#include "convert/flags.h"
#include "convert/settings.h"
#include "cube/cube.h"

enum { SQ_LAYOUT_RANK_MAX = 8 };

struct sq_record_unit;

struct sq_layout_array {
    const char *name;
    unsigned rank;
    const char *dims[SQ_LAYOUT_RANK_MAX];
    enum sq_cube_dim kinds[SQ_LAYOUT_RANK_MAX];
    enum squall_type type;
    uint64_t shape[SQ_LAYOUT_RANK_MAX];  /* [0]: init times */
    uint64_t chunks[SQ_LAYOUT_RANK_MAX]; /* elements along each dimension of what is a file: a chunk, or a shard */
    uint64_t inner[SQ_LAYOUT_RANK_MAX];  /* of shards: of the chunks in them */
    bool sharded;
    uint64_t grid[SQ_LAYOUT_RANK_MAX]; /* chunks along each dimension */
    uint64_t made[SQ_LAYOUT_RANK_MAX]; /* the shape that it was made with: no chunk gets another place when a dimension grows at its end */
    unsigned outer_rank;               /* dimensions between init_time and one field that may have grown */
    unsigned slab_rank;                /* trailing dimensions of one field: 2 (y, x), or 1 (values); of arrays: all but the first */
    uint64_t rows, columns;            /* of one field as stored */
    uint64_t slabs_per_init;           /* product of the dimensions between init_time and the slab */
    uint64_t chunks_per_unit;
    size_t element_bytes, chunk_bytes; /* of a chunk in memory */
    struct sq_codec_chain *codecs;
    const struct sq_json *fill_value; /* NULL: the type's own. The cube's */
    uint8_t fill[16];                 /* one element */
    bool leaves_fill;                 /* chunks of nothing but fill are not stored: of arrays */
    bool keeps_fill; /* but of these: in Zarr v2 it is unknown what is not stored of an array whose fill value is not told */
};

/* The option that says how large its files are, for messages. */
static inline const char *sq_layout_file_option(const struct sq_layout_array *a)
{
    return a->sharded ? "--shards" : "--chunks";
}

struct sq_layout {
    bool of_arrays;                 /* as the cube */
    int zarr_format;                /* 3 or 2 */
    struct sq_layout_array *arrays; /* in the order of the cube's variables */
    size_t array_count;
    uint64_t init_chunk;         /* init times of a unit */
    uint64_t flag_chunk;         /* of a chunk of the flags: one, of arrays as many as a unit has */
    size_t unit_bytes;           /* all chunks of a unit in memory */
    size_t chunk_limit_bytes;    /* the largest chunk in memory */
    size_t encoded_limit_bytes;  /* the largest bound on an encoded chunk */
    struct sq_json *description; /* what a store keeps of it */
    char id[SQ_HASH_TEXT_BYTES];
};

/*
 * Apply the settings to the cube. init_chunk: of the store that is there, for init_time=all; 0: a new store.
 * *ret: sq_layout_done; it points into the cube.
 * Errors: SQUALL_EINVAL (an option that names no dimension or variable: which there are; a chunk beyond its codec's limit).
 */
int sq_layout_make(const struct sq_settings *settings, const struct sq_cube *cube, uint64_t init_chunk, struct sq_layout *ret,
                   struct squall_error *err) SQUALL_CHECK;
void sq_layout_done(struct sq_layout *layout);
/*
 * Of a store that is there, from its records alone: of the arrays name, rank, shape and grid (but along the append dimension), chunks, chunks_per_unit,
 * leaves_fill, and slabs_per_init or more. *ret: sq_layout_done; it points into the state. SQUALL_ECORRUPT.
 */
struct sq_store_state;
int sq_layout_recorded(const struct sq_store_state *state, struct sq_layout *ret, struct squall_error *err) SQUALL_CHECK;
/* layout_array.c: one of them, of cube->variables[index]; names in the settings that nothing has. */
int sq_layout_make_array(const struct sq_settings *settings, const struct sq_cube *cube, size_t index, uint64_t init_chunk,
                         struct sq_layout_array *ret, struct squall_error *err) SQUALL_CHECK;
int sq_layout_check_names(const struct sq_settings *settings, const struct sq_cube *cube, struct squall_error *err) SQUALL_CHECK;
/* The index along every dimension of a unit's chunk (in C order over the grid behind init_time). ret: a->rank numbers. */
void sq_layout_chunk_index(const struct sq_layout_array *a, uint64_t unit, uint64_t chunk, uint64_t *ret);
/*
 * Records number slabs and chunks by the dimensions as they were when they were written. Here they are numbered anew, by the layout's; one that
 * does not fit stays as it is.
 */
struct sq_records;
int sq_layout_renumber(const struct sq_layout *layout, struct sq_records *records, struct squall_error *err) SQUALL_CHECK;
/*
 * Can the record be of this layout, and does it agree with itself? Its checksum does not say so: it is right of anything that was
 * written whole. Of the arrays: name, chunks_per_unit, slabs_per_init (or more).
 */
bool sq_layout_fits(const struct sq_layout_array *arrays, size_t array_count, uint64_t init_chunk, const struct sq_record_unit *record);
/*
 * Is all stored that the sources held at an init time of the record, so that its flag may say so? Of arrays not where a part of it could not be read. A GRIB
 * message that cannot be decoded is a missing field, which the count tells.
 */
bool sq_layout_is_whole(bool of_arrays, const struct sq_record_unit *record, size_t within_unit);
/* What the flags are to say of an init time of the record. */
struct sq_flag sq_layout_flag(bool of_arrays, const struct sq_record_unit *record, size_t within_unit);
/* The settings' own part of a description, without the arrays: known before any source is read. *ret: the caller's. */
int sq_layout_describe_settings(const struct sq_settings *settings, struct sq_json **ret, struct squall_error *err) SQUALL_CHECK;
/*
 * SQUALL_EREFUSED naming the first setting in which the store's description differs from the one asked for. A description
 * without "arrays" is compared as far as it goes. grows: it may ask for more arrays than there are.
 */
int sq_layout_compare(const struct sq_json *stored, const struct sq_json *asked, bool grows, struct squall_error *err) SQUALL_CHECK;

#endif
