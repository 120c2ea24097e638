/*
 * Strided copies, block means and fills: see scatter.h; casts are in scatter_cast.c. A copy first drops and merges dimensions, so
 * that what is left is a loop over the outer ones around one of a few inner loops.
 */
#include "engine/scatter.h"
#include "codec/swap.h"
#include "sys/cpu.h"
#include "sys/stream_copy.h"
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

typedef void copy_function(uint64_t count, size_t size_bytes, const uint8_t *src, int64_t src_stride, uint8_t *dst, int64_t dst_stride);

/* Lines shorter than this have too few whole cache lines to gain. */
enum { STREAM_BYTES = 128 };

static void stream_line(uint64_t count, size_t size_bytes, const uint8_t *src, int64_t src_stride, uint8_t *dst, int64_t dst_stride)
{
    for (uint64_t i = 0; i < count; i++, src += src_stride, dst += dst_stride)
        sq_stream_copy(dst, src, size_bytes);
}

/* Call copy for every line: the innermost dimension, or the whole box where that is one run. */
static void copy_lines(const struct box *b, const uint8_t *from, uint8_t *to, copy_function *copy)
{
    if (b->rank == 0) {
        copy(1, b->size_bytes, from, 0, to, 0);
        return;
    }
    const unsigned inner = b->rank - 1;
    uint64_t at[SQUALL_RANK_MAX] = {0};
    for (;;) {
        copy(b->count[inner], b->size_bytes, from, b->src_stride[inner], to, b->dst_stride[inner]);
        unsigned d = inner;
        for (;;) { /* the next index of the outer dimensions, the last of them fastest */
            if (d == 0)
                return;
            d--;
            from += b->src_stride[d];
            to += b->dst_stride[d];
            if (++at[d] < b->count[d])
                break;
            from -= (int64_t)b->count[d] * b->src_stride[d];
            to -= (int64_t)b->count[d] * b->dst_stride[d];
            at[d] = 0;
        }
    }
}

void sq_scatter_copy(unsigned rank, const uint64_t *count, size_t size_bytes, const void *src, const int64_t *src_strides, void *dst,
                     const int64_t *dst_strides, enum sq_scatter_target target)
{
    for (unsigned d = 0; d < rank; d++)
        if (count[d] == 0)
            return;
    const struct box b = merged(rank, count, size_bytes, src_strides, dst_strides);
    bool stream = target == SQ_SCATTER_BEYOND_CACHES && b.size_bytes >= STREAM_BYTES;
    copy_lines(&b, src, dst, stream ? stream_line : copy_line);
    if (stream)
        sq_stream_copy_done();
}

/* Single elements, or runs of them. */
#define SWAP_LINE(name, T, swap)                                                                                                           \
    static void name(uint64_t count, size_t size_bytes, const uint8_t *src, int64_t src_stride, uint8_t *dst, int64_t dst_stride)          \
    {                                                                                                                                      \
        for (uint64_t i = 0; i < count; i++, src += src_stride, dst += dst_stride) {                                                       \
            if (size_bytes == sizeof(T)) {                                                                                                 \
                T element;                                                                                                                 \
                memcpy(&element, src, sizeof element);                                                                                     \
                element = swap(element);                                                                                                   \
                memcpy(dst, &element, sizeof element);                                                                                     \
            } else {                                                                                                                       \
                sq_swap(dst, src, size_bytes, sizeof(T));                                                                                  \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

SWAP_LINE(swap_line_2, uint16_t, __builtin_bswap16)
SWAP_LINE(swap_line_4, uint32_t, __builtin_bswap32)
SWAP_LINE(swap_line_8, uint64_t, __builtin_bswap64)

#define SWAP_STREAM_LINE(name, T)                                                                                                          \
    static void name(uint64_t count, size_t size_bytes, const uint8_t *src, int64_t src_stride, uint8_t *dst, int64_t dst_stride)          \
    {                                                                                                                                      \
        for (uint64_t i = 0; i < count; i++, src += src_stride, dst += dst_stride)                                                         \
            sq_swap_stream(dst, src, size_bytes, sizeof(T));                                                                               \
    }

SWAP_STREAM_LINE(swap_stream_line_2, uint16_t)
SWAP_STREAM_LINE(swap_stream_line_4, uint32_t)
SWAP_STREAM_LINE(swap_stream_line_8, uint64_t)

void sq_scatter_swap(unsigned rank, const uint64_t *count, size_t size_bytes, const void *src, const int64_t *src_strides, void *dst,
                     const int64_t *dst_strides, unsigned swap_bytes, enum sq_scatter_target target)
{
    for (unsigned d = 0; d < rank; d++)
        if (count[d] == 0)
            return;
    const struct box b = merged(rank, count, size_bytes, src_strides, dst_strides);
    if (target == SQ_SCATTER_BEYOND_CACHES && b.size_bytes >= STREAM_BYTES) {
        copy_lines(&b, src, dst, swap_bytes == 2 ? swap_stream_line_2 : swap_bytes == 4 ? swap_stream_line_4 : swap_stream_line_8);
        sq_stream_copy_done();
    } else {
        copy_lines(&b, src, dst, swap_bytes == 2 ? swap_line_2 : swap_bytes == 4 ? swap_line_4 : swap_line_8);
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

enum { STRIP = 512 }; /* source columns at a time */

static inline double block_mean(double sum, uint64_t used)
{
    return used > 0 ? sum / (double)used : (double)NAN;
}

/*
 * One output row. Down the columns of a strip first, which the compiler vectorises, then across: so a block's sum is that of its
 * columns' sums, wherever strips begin.
 */
#define COARSEN_ROW(INSTRUCTIONS, name, T)                                                                                                 \
    INSTRUCTIONS static void name(const T *src, size_t row_stride, size_t rows, size_t columns, unsigned fx, T *dst)                       \
    {                                                                                                                                      \
        double sum[STRIP];                                                                                                                 \
        uint64_t used[STRIP], cell_used = 0;                                                                                               \
        double cell_sum = 0;                                                                                                               \
        unsigned in_cell = 0;                                                                                                              \
        for (size_t left = 0; left < columns; left += STRIP) {                                                                             \
            size_t width = columns - left < STRIP ? columns - left : STRIP;                                                                \
            memset(sum, 0, width * sizeof *sum);                                                                                           \
            memset(used, 0, width * sizeof *used);                                                                                         \
            for (size_t r = 0; r < rows; r++) {                                                                                            \
                const T *from = src + r * row_stride + left;                                                                               \
                for (size_t i = 0; i < width; i++) {                                                                                       \
                    double value = (double)from[i];                                                                                        \
                    uint64_t there = value == value ? UINT64_MAX : 0; /* a mask: a branch would cost more than the sum */                  \
                    uint64_t bits;                                                                                                         \
                    memcpy(&bits, &value, sizeof bits);                                                                                    \
                    bits &= there;                                                                                                         \
                    memcpy(&value, &bits, sizeof bits);                                                                                    \
                    sum[i] += value;                                                                                                       \
                    used[i] += there & 1;                                                                                                  \
                }                                                                                                                          \
            }                                                                                                                              \
            size_t i = 0;                                                                                                                  \
            for (; fx == 2 && i + 2 <= width; i += 2) /* the usual case, without the count */                                              \
                *dst++ = (T)block_mean(sum[i] + sum[i + 1], used[i] + used[i + 1]);                                                        \
            for (; i < width; i++) {                                                                                                       \
                cell_sum += sum[i];                                                                                                        \
                cell_used += used[i];                                                                                                      \
                if (++in_cell < fx && left + i + 1 < columns)                                                                              \
                    continue;                                                                                                              \
                *dst++ = (T)block_mean(cell_sum, cell_used);                                                                               \
                cell_sum = 0;                                                                                                              \
                cell_used = 0;                                                                                                             \
                in_cell = 0;                                                                                                               \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

COARSEN_ROW(, coarsen_floats, float)
COARSEN_ROW(, coarsen_doubles, double)
#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))
COARSEN_ROW(WITH_AVX2, coarsen_floats_avx2, float)
COARSEN_ROW(WITH_AVX2, coarsen_doubles_avx2, double)
#else
#define coarsen_floats_avx2  coarsen_floats
#define coarsen_doubles_avx2 coarsen_doubles
#endif

void sq_scatter_coarsen(enum squall_type type, const void *src, size_t rows, size_t columns, unsigned fy, unsigned fx, void *dst)
{
    size_t width = (columns + fx - 1) / fx;
    bool wide = sq_cpu_features() & SQ_CPU_AVX2;
    void (*floats)(const float *, size_t, size_t, size_t, unsigned, float *) = wide ? coarsen_floats_avx2 : coarsen_floats;
    void (*doubles)(const double *, size_t, size_t, size_t, unsigned, double *) = wide ? coarsen_doubles_avx2 : coarsen_doubles;
    for (size_t r = 0; r * fy < rows; r++) {
        size_t height = rows - r * fy < fy ? rows - r * fy : fy;
        if (type == SQUALL_FLOAT32)
            floats((const float *)src + r * fy * columns, columns, height, columns, fx, (float *)dst + r * width);
        else
            doubles((const double *)src + r * fy * columns, columns, height, columns, fx, (double *)dst + r * width);
    }
}
