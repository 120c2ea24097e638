/* Arrays: what they are made of, and how to read a box of one. */
#ifndef SQUALL_ARRAY_H
#define SQUALL_ARRAY_H

#include "squall/error.h"
#include "squall/speed.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SQUALL_RANK_MAX = 32 };

enum squall_type {
    SQUALL_BOOL,
    SQUALL_INT8,
    SQUALL_INT16,
    SQUALL_INT32,
    SQUALL_INT64,
    SQUALL_UINT8,
    SQUALL_UINT16,
    SQUALL_UINT32,
    SQUALL_UINT64,
    SQUALL_FLOAT16,
    SQUALL_FLOAT32,
    SQUALL_FLOAT64,
    SQUALL_STRING, /* variable length, UTF-8; in memory: struct squall_bytes */
    SQUALL_BFLOAT16,
    SQUALL_COMPLEX64,
    SQUALL_COMPLEX128,
    SQUALL_INT2, /* 2 and 4 bits: a byte an element in memory, sign-extended */
    SQUALL_INT4,
    SQUALL_UINT2,
    SQUALL_UINT4,
    SQUALL_DATETIME64, /* int64 in the unit that numpy_type says; the least number is "not a time" */
    SQUALL_TIMEDELTA64,
    SQUALL_RAW,   /* element_bytes bytes as they are stored: raw bits, fixed-length bytes, structures */
    SQUALL_TEXT,  /* fixed length: element_bytes / 4 UTF-32 characters, NULs at the end */
    SQUALL_BYTES, /* variable length; in memory: struct squall_bytes */
};

/*
 * A text or bytes of variable length. What squall_array_read gives is malloc'ed and never NULL, and a zero byte stands behind it that does not
 * count: a text is a C string, unless it has zero bytes of its own.
 */
struct squall_bytes {
    void *data;
    size_t size_bytes;
};

/* Of one element in memory, bytes; of variable length: of struct squall_bytes; SQUALL_RAW, SQUALL_TEXT: 0, the array's info says it. */
size_t squall_type_size(enum squall_type type);
const char *squall_type_name(enum squall_type type); /* Zarr v3's and numpy's name: "float32"; "string" */

typedef struct squall_array squall_array; /* belongs to its dataset; NULL-safe */

/* What an array is. All pointers belong to the array and live as long as its dataset. */
struct squall_array_info {
    const char *name; /* path within the dataset, "t2m" or "group/t2m" */
    enum squall_type type;
    const char *type_name;  /* the source's own where it says more: "<U5"; of data that cannot be read "numpy.datetime64[ms]" */
    const char *numpy_type; /* what an element in memory is to numpy: "<f4", "<M8[10ms]", "|S5", "[('a', '<i4'), ('b', '|V3')]"; "O" */
    /*
     * Of SQUALL_BYTES, where they are more than that: what they hold. Where numpy_type is "O", a sequence of any number of such elements, "<f4"; else one,
     * a structure, "[('a', '<i4'), ('s', 'text'), ('v', {'sequence': '<f4'})]". Parts lie one behind the other, as numpy has them, but 'text' (UTF-8)
     * and {'sequence': …} of no fixed size: 8 bytes count those that follow. NULL: just bytes.
     */
    const char *sequence_type;
    const char
        *enum_names; /* of an enumeration, whose elements are integers: what they are called, a JSON object {"clear": 0}; NULL: none is */
    size_t element_bytes; /* of one element in memory */
    unsigned rank;
    const uint64_t *shape;
    const uint64_t *chunks;  /* of a rectilinear grid: the longest along each dimension */
    const uint64_t *shards;  /* shape of the objects that chunks are stored in; NULL: each chunk is its own */
    const char *const *dims; /* rank names; "" for an unnamed dimension */
    const char *codecs;      /* in words, "bytes + blosc(zstd, 5, shuffle)" */
    const char *attributes;  /* a JSON object */
    /*
     * What attributes are to numpy where JSON does not tell: a JSON object, {"_FillValue": "<f4"}; NULL: nothing. Of "<c8" a value is a pair of
     * numbers, of "|V3" a list of bytes, of "<M8[s]" an integer, of a structure an object; of arrays, lists of such.
     */
    const char *attribute_types;
    const char *fill_value;  /* JSON text; "null" where there is none */
    const char *unsupported; /* NULL, or why its data cannot be read */
    /* What a missing chunk reads as: one element as it is in memory; NULL where the data cannot be read, or not all elements of it are the same. */
    const void *fill;
};

struct squall_array_info squall_array_info(const squall_array *a);

/* What the array's chunks take where they are stored, found by looking at each; 0 where the format does not tell. */
int squall_array_stored_bytes(const squall_array *a, uint64_t *ret, struct squall_error *err) SQUALL_CHECK;

/*
 * How the format stores the array, for a writer that makes the same one again, as a JSON object; *ret: free().
 *   Zarr      {"codecs": […], "chunk_key_encoding": {…}} of v3, {"compressor": …, "filters": …, "order": …} of v2, as the metadata say it
 *   HDF5      {"layout": "chunked", "unlimited": [0], "filters": [[number, [value, …]], …]}; also "contiguous", "compact", "virtual"; unlimited:
 *             dimensions, by number; filters in the order in which they encode
 *   NetCDF-3  {"unlimited": [0]}
 *   files     that are joined: {"axis": 0, "lengths": [[length, times], …], "of": the first one's}; lengths along the axis, in the files' order;
 *             in the place of lengths "new": true where each file is one index of it
 *   others    {}
 */
int squall_array_storage(const squall_array *a, char **ret, struct squall_error *err) SQUALL_CHECK;

/* A box: along dimension d, count[d] elements from start[d], every step[d]-th (step ≥ 1). */
struct squall_selection {
    uint64_t start[SQUALL_RANK_MAX];
    uint64_t count[SQUALL_RANK_MAX];
    uint64_t step[SQUALL_RANK_MAX];
};

/* Everything. */
struct squall_selection squall_selection_all(const squall_array *a);

/*
 * Read the selected elements into dst, in the array's type and the machine's byte order.
 *
 * strides  bytes between neighbours along each dimension of dst; NULL: C order, packed
 * Variable length: dst is struct squall_bytes[n]; what each points at is the caller's, free()
 *
 * Errors: SQUALL_EINVAL (selection outside the array), SQUALL_EIO, SQUALL_ECORRUPT, SQUALL_EUNSUPPORTED. What dst holds after
 * an error is unspecified; elements of variable length there are none to free. A chunk that is not there reads as the fill value; one that cannot be
 * read is an error, and so is one that a conversion of squall's recorded and that is gone.
 */
int squall_array_read(squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides,
                      struct squall_error *err) SQUALL_CHECK;

/*
 * Read the whole array once, on `threads` threads (0: as many as the context allows), into memory that is thrown away: how fast this machine reads it.
 * Errors as squall_array_read.
 */
int squall_array_time(squall_array *a, unsigned threads, struct squall_speed *ret, struct squall_error *err) SQUALL_CHECK;

#ifdef __cplusplus
}
#endif
#endif
