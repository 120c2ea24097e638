/*
 * From a decoded field or chunk to where it belongs: cast, strided copy, block mean, in one pass while the source is hot.
 * Every cast to float16 rounds to nearest even and reports overflow; integers round to nearest even and report what does not fit.
 */
#ifndef SQ_ENGINE_SCATTER_H
#define SQ_ENGINE_SCATTER_H

#include "base/half.h"
#include "squall/array.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sq_overflow {
    SQ_OVERFLOW_ERROR, /* stop, tell the first value */
    SQ_OVERFLOW_INF,   /* ±infinity; integers, which have none: as ERROR */
    SQ_OVERFLOW_CLIP,  /* the nearest value that the type has */
};

/*
 * Cast rows × columns values from src (float32 or float64; row_stride elements apart) to dst (type; dst_row_stride elements apart).
 * NaN stays NaN in floats and becomes *integer_fill in integers (NULL: it does not fit, whatever `overflow` says). Infinities stay
 * in floats. float64 → float16 is the cast of the float32 cast. float32 → float32 and float64 → float64 are plain copies.
 * Returns true, or false where a value does not fit; the first such value in *ret_value (may be NULL), dst then holds anything.
 * src_type is float32 or float64, dst_type any float or integer.
 */
bool sq_scatter_cast(enum squall_type src_type, const void *src, size_t src_row_stride, enum squall_type dst_type, void *dst,
                     size_t dst_row_stride, size_t rows, size_t columns, enum sq_overflow overflow, const int64_t *integer_fill,
                     double *ret_value);

/* The greatest finite value of a float or integer type, as double (float16: 65504). */
double sq_type_greatest(enum squall_type type);

/*
 * Block means: dst[r][c] = mean of the values of src's fy × fx block that are not NaN (NaN where all are); blocks at the end may be
 * smaller. rows, columns are src's; dst is ceil(rows/fy) × ceil(columns/fx), packed. src and dst are `type` (float32 or float64; sums in double).
 */
void sq_scatter_coarsen(enum squall_type type, const void *src, size_t rows, size_t columns, unsigned fy, unsigned fx, void *dst);

/* What happens to the destination next: it is used while it is hot, or it is part of something larger than the caches are. */
enum sq_scatter_target { SQ_SCATTER_INTO_CACHES, SQ_SCATTER_BEYOND_CACHES };

/*
 * Copy a box of `rank` dimensions, element size_bytes (any), source and destination each with byte strides; contiguous inner
 * dimensions are merged, so that a plain box is one memcpy.
 */
void sq_scatter_copy(unsigned rank, const uint64_t *count, size_t size_bytes, const void *src, const int64_t *src_strides, void *dst,
                     const int64_t *dst_strides, enum sq_scatter_target target);

/* The same, with the order of each swap_bytes (2, 4 or 8) bytes turned; size_bytes is a multiple of that. */
void sq_scatter_swap(unsigned rank, const uint64_t *count, size_t size_bytes, const void *src, const int64_t *src_strides, void *dst,
                     const int64_t *dst_strides, unsigned swap_bytes, enum sq_scatter_target target);

/* Fill count elements of size_bytes with the one at value. */
void sq_scatter_fill(void *dst, size_t count, size_t size_bytes, const void *value);

#endif
