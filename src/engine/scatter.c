/*
 * Strided copies, block means and fills: see scatter.h; casts are in scatter_cast.c. A copy first drops and merges dimensions, so
 * that what is left is a loop over the outer ones around one of a few inner loops.
 */
#include "engine/scatter.h"
#include <math.h>
#include <string.h>

/* ---- copy ------------------------------------------------------------------------------------------------------------------------- */

struct box {
    unsigned rank;
    size_t size_bytes; /* what is copied at a time */
    uint64_t count[SQUALL_RANK_MAX];
    int64_t src_stride[SQUALL_RANK_MAX], dst_stride[SQUALL_RANK_MAX];
};

/* Without dimensions of length 1; neighbours that are one run in both are one; a packed innermost dimension becomes part of the element. */
static struct box merged(unsigned rank, const uint64_t *count, size_t size_bytes, const int64_t *src_strides, const int64_t *dst_strides)
{
    struct box b = {.size_bytes = size_bytes};
    for (unsigned d = 0; d < rank; d++) {
        if (count[d] == 1)
            continue;
        unsigned last = b.rank - 1;
        int64_t n = (int64_t)count[d];
        if (b.rank > 0 && b.src_stride[last] == n * src_strides[d] && b.dst_stride[last] == n * dst_strides[d]) {
            b.count[last] *= count[d];
        } else {
            last = b.rank++;
            b.count[last] = count[d];
        }
        b.src_stride[last] = src_strides[d];
        b.dst_stride[last] = dst_strides[d];
    }
    if (b.rank > 0 && b.src_stride[b.rank - 1] == (int64_t)size_bytes && b.dst_stride[b.rank - 1] == (int64_t)size_bytes)
        b.size_bytes *= b.count[--b.rank];
    return b;
}

#define COPY_LOOP(bytes)                                                                                                                   \
    for (uint64_t i = 0; i < count; i++, src += src_stride, dst += dst_stride)                                                             \
    memcpy(dst, src, (bytes))

/* The sizes that a processor moves in one go get loops of their own. */
static void copy_line(uint64_t count, size_t size_bytes, const uint8_t *src, int64_t src_stride, uint8_t *dst, int64_t dst_stride)
{
    switch (size_bytes) {
    case 1:
        COPY_LOOP(1);
        return;
    case 2:
        COPY_LOOP(2);
        return;
    case 4:
        COPY_LOOP(4);
        return;
    case 8:
        COPY_LOOP(8);
        return;
    case 16:
        COPY_LOOP(16);
        return;
    default:
        COPY_LOOP(size_bytes);
    }
}

void sq_scatter_copy(unsigned rank, const uint64_t *count, size_t size_bytes, const void *src, const int64_t *src_strides, void *dst,
                     const int64_t *dst_strides)
{
    for (unsigned d = 0; d < rank; d++)
        if (count[d] == 0)
            return;
    const struct box b = merged(rank, count, size_bytes, src_strides, dst_strides);
    if (b.rank == 0) {
        memcpy(dst, src, b.size_bytes);
        return;
    }
    const unsigned inner = b.rank - 1;
    const uint8_t *from = src;
    uint8_t *to = dst;
    uint64_t at[SQUALL_RANK_MAX] = {0};
    for (;;) {
        copy_line(b.count[inner], b.size_bytes, from, b.src_stride[inner], to, b.dst_stride[inner]);
        unsigned d = inner;
        for (;;) { /* the next index of the outer dimensions, the last of them fastest */
            if (d == 0)
                return;
            d--;
            from += b.src_stride[d];
            to += b.dst_stride[d];
            if (++at[d] < b.count[d])
                break;
            from -= (int64_t)b.count[d] * b.src_stride[d];
            to -= (int64_t)b.count[d] * b.dst_stride[d];
            at[d] = 0;
        }
    }
}

/* ---- fill ------------------------------------------------------------------------------------------------------------------------- */

void sq_scatter_fill(void *dst, size_t count, size_t size_bytes, const void *value)
{
    enum { BLOCK_BYTES = 4096 }; /* stays in cache while it is copied from */
    const uint8_t *v = value;
    size_t total = count * size_bytes;
    size_t equal = 1;
    while (equal < size_bytes && v[equal] == v[0])
        equal++;
    if (total == 0)
        return;
    if (equal == size_bytes) {
        memset(dst, v[0], total);
        return;
    }
    uint8_t *to = dst;
    memcpy(to, value, size_bytes);
    size_t done = size_bytes;
    while (done < total) {
        size_t step = done < BLOCK_BYTES ? done : BLOCK_BYTES - BLOCK_BYTES % size_bytes;
        if (step == 0)
            step = size_bytes;
        if (step > total - done)
            step = total - done;
        memcpy(to + done, to, step);
        done += step;
    }
}

/* ---- block means ------------------------------------------------------------------------------------------------------------------ */

enum { TILE = 128 }; /* output columns whose sums are held at a time */

/* One output row: sums run over a block's rows, then its columns, so the result does not depend on the tile. */
#define COARSEN_ROW(name, T)                                                                                                               \
    static void name(const T *src, size_t row_stride, size_t rows, size_t columns, unsigned fx, T *dst)                                    \
    {                                                                                                                                      \
        double sum[TILE];                                                                                                                  \
        double used[TILE];                                                                                                                 \
        for (size_t left = 0; left < columns; left += (size_t)TILE * fx) {                                                                 \
            size_t width = columns - left < (size_t)TILE * fx ? columns - left : (size_t)TILE * fx;                                        \
            size_t cells = (width + fx - 1) / fx;                                                                                          \
            memset(sum, 0, sizeof sum);                                                                                                    \
            memset(used, 0, sizeof used);                                                                                                  \
            for (size_t r = 0; r < rows; r++) {                                                                                            \
                const T *from = src + r * row_stride + left;                                                                               \
                for (size_t c = 0; c < cells; c++) {                                                                                       \
                    size_t end = (c + 1) * fx < width ? (c + 1) * fx : width;                                                              \
                    for (size_t i = c * fx; i < end; i++) {                                                                                \
                        bool there = from[i] == from[i];                                                                                   \
                        sum[c] += there ? (double)from[i] : 0.0;                                                                           \
                        used[c] += there;                                                                                                  \
                    }                                                                                                                      \
                }                                                                                                                          \
            }                                                                                                                              \
            for (size_t c = 0; c < cells; c++)                                                                                             \
                dst[left / fx + c] = used[c] > 0 ? (T)(sum[c] / used[c]) : (T)NAN;                                                         \
        }                                                                                                                                  \
    }

COARSEN_ROW(coarsen_row_float, float)
COARSEN_ROW(coarsen_row_double, double)

void sq_scatter_coarsen(enum squall_type type, const void *src, size_t rows, size_t columns, unsigned fy, unsigned fx, void *dst)
{
    size_t width = (columns + fx - 1) / fx;
    for (size_t r = 0; r * fy < rows; r++) {
        size_t height = rows - r * fy < fy ? rows - r * fy : fy;
        if (type == SQUALL_FLOAT32)
            coarsen_row_float((const float *)src + r * fy * columns, columns, height, columns, fx, (float *)dst + r * width);
        else
            coarsen_row_double((const double *)src + r * fy * columns, columns, height, columns, fx, (double *)dst + r * width);
    }
}
