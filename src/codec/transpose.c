/*
 * transpose: the chunk with its dimensions in another order; v2's order F is the one that reverses them. Dimensions of length 1 are
 * left out and those that stay neighbours are taken together, so that most permutations become one of two dimensions
 * or a copy of long rows. Two dimensions go in square tiles of a cache line each way.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec_internal.h"
#include <string.h>

/* What encode does to the strides; decode is the same with source and destination exchanged. */
struct permutation {
    unsigned rank; /* after dimensions were taken together; of what comes out of encode */
    uint64_t count[SQUALL_RANK_MAX];
    size_t inner_stride[SQUALL_RANK_MAX]; /* bytes, in the decoded array */
    size_t outer_stride[SQUALL_RANK_MAX]; /* bytes, in the encoded one: C order */
    size_t element_bytes;
    unsigned order[SQUALL_RANK_MAX], order_rank; /* as configured */
};

/* ---- binding ---------------------------------------------------------------------------------------------------------------------- */

static int read_order(const struct sq_json *configuration, unsigned rank, unsigned *order, struct squall_error *err)
{
    const struct sq_json *list = sq_json_get(configuration, "order");
    const char *word = sq_json_string(list);
    bool seen[SQUALL_RANK_MAX] = {false};
    if (word && (strcmp(word, "C") == 0 || strcmp(word, "F") == 0)) { /* of earlier drafts */
        for (unsigned d = 0; d < rank; d++)
            order[d] = word[0] == 'C' ? d : rank - 1 - d;
        return 0;
    }
    bool good = sq_json_type(list) == SQ_JSON_ARRAY && sq_json_count(list) == rank;
    for (unsigned d = 0; good && d < rank; d++) {
        uint64_t number = 0;
        good = sq_json_uint(sq_json_at(list, d), &number) && number < rank && !seen[number];
        if (good) {
            order[d] = (unsigned)number;
            seen[number] = true;
        }
    }
    return good ? 0 : sq_error(err, SQUALL_ECORRUPT, "codec transpose: \"order\" is no permutation of the %u dimensions", rank);
}

/* Dimension d of the encoded array, unless it is of length 1; together with the one before where those are neighbours on both sides. */
static void add_dimension(struct permutation *p, uint64_t count, size_t inner_stride)
{
    if (count == 1)
        return;
    if (p->rank > 0 && p->inner_stride[p->rank - 1] == count * inner_stride) {
        p->count[p->rank - 1] *= count;
        p->inner_stride[p->rank - 1] = inner_stride;
        return;
    }
    p->count[p->rank] = count;
    p->inner_stride[p->rank++] = inner_stride;
}

static int bind_order(struct sq_stage *stage, struct sq_stage_array *array, const unsigned *order, struct squall_error *err)
{
    struct permutation *p = sq_alloc_zero(1, sizeof *p);
    size_t strides[SQUALL_RANK_MAX], stride = array->dtype.element_bytes;
    uint64_t shape[SQUALL_RANK_MAX];
    if (!p)
        return sq_error_memory(err, sizeof *p);
    stage->state = p;
    p->element_bytes = array->dtype.element_bytes;
    p->order_rank = array->rank;
    for (unsigned d = array->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= array->shape[d];
    }
    memcpy(shape, array->shape, sizeof shape);
    for (unsigned d = 0; d < array->rank; d++) {
        p->order[d] = order[d];
        array->shape[d] = shape[order[d]];
        add_dimension(p, array->shape[d], strides[order[d]]);
    }
    stride = p->element_bytes;
    for (unsigned d = p->rank; d-- > 0;) {
        p->outer_stride[d] = stride;
        stride *= p->count[d];
    }
    stage->decode_copies = stage->encode_copies = p->rank == 0 || (p->rank == 1 && p->inner_stride[0] == p->element_bytes);
    return 0;
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    unsigned order[SQUALL_RANK_MAX];
    SQ_TRY(read_order(configuration, array->rank, order, err));
    return bind_order(stage, array, order, err);
}

int sq_transpose_bind_reversed(struct sq_stage *stage, struct sq_stage_array *array, struct squall_error *err)
{
    unsigned order[SQUALL_RANK_MAX];
    for (unsigned d = 0; d < array->rank; d++)
        order[d] = array->rank - 1 - d;
    return bind_order(stage, array, order, err);
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

static void tell(const struct sq_stage *stage, struct sq_text *out)
{
    const struct permutation *p = stage->state;
    for (unsigned d = 0; d < p->order_rank; d++)
        sq_text_printf(out, "%s%u", d ? ", " : "", p->order[d]);
}

/* ---- moving ----------------------------------------------------------------------------------------------------------------------- */

enum { LINE_BYTES = 64 };

struct plane {
    size_t rows, columns; /* columns are neighbours in dst */
    size_t src_row, src_column, dst_row, dst_column;
};

/* Any strides, any element. */
static void move_elements(const struct plane *m, size_t width, const uint8_t *src, uint8_t *dst)
{
    for (size_t r = 0; r < m->rows; r++)
        for (size_t c = 0; c < m->columns; c++)
            memcpy(dst + r * m->dst_row + c * m->dst_column, src + r * m->src_row + c * m->src_column, width);
}

/*
 * Where rows are neighbours in src and columns in dst: tiles of a cache line either way go through a buffer, so that each line of memory
 * is touched once.
 */
static inline __attribute__((always_inline)) void move_tiles(const struct plane *m, const size_t width, const uint8_t *src, uint8_t *dst)
{
    const size_t tile = LINE_BYTES / width;
    uint8_t buffer[LINE_BYTES * LINE_BYTES];
    size_t r = 0;
    for (; r + tile <= m->rows; r += tile) {
        size_t c = 0;
        for (; c + tile <= m->columns; c += tile) {
            for (size_t k = 0; k < tile; k++)
                memcpy(buffer + k * LINE_BYTES, src + r * width + (c + k) * m->src_column, LINE_BYTES);
            for (size_t k = 0; k < tile; k++)
                for (size_t n = 0; n < tile; n++)
                    memcpy(dst + (r + k) * m->dst_row + (c + n) * width, buffer + n * LINE_BYTES + k * width, width);
        }
        const struct plane right = {tile, m->columns - c, width, m->src_column, m->dst_row, width};
        move_elements(&right, width, src + r * width + c * m->src_column, dst + r * m->dst_row + c * width);
    }
    const struct plane below = {m->rows - r, m->columns, width, m->src_column, m->dst_row, width};
    move_elements(&below, width, src + r * width, dst + r * m->dst_row);
}

static void move_plane(const struct plane *plane, size_t width, const uint8_t *src, uint8_t *dst)
{
    struct plane m = *plane;
    if (m.src_column == width && m.dst_column == width) {
        for (size_t r = 0; r < m.rows; r++)
            memcpy(dst + r * m.dst_row, src + r * m.src_row, m.columns * width);
        return;
    }
    if (m.dst_row == width) /* columns are to be the neighbours in dst */
        m = (struct plane){m.columns, m.rows, m.src_column, m.src_row, m.dst_column, m.dst_row};
    bool tiles = m.src_row == width && m.dst_column == width;
    if (tiles && width == 1)
        move_tiles(&m, 1, src, dst);
    else if (tiles && width == 2)
        move_tiles(&m, 2, src, dst);
    else if (tiles && width == 4)
        move_tiles(&m, 4, src, dst);
    else if (tiles && width == 8)
        move_tiles(&m, 8, src, dst);
    else if (tiles && width == 16)
        move_tiles(&m, 16, src, dst);
    else
        move_elements(&m, width, src, dst);
}

/* The two dimensions that make a plane: the last of one side, and the last of the other, which is the one before where they agree. */
static unsigned plane_rows(const struct permutation *p)
{
    unsigned last = p->rank - 1, smallest = 0;
    for (unsigned d = 1; d < last; d++)
        if (p->inner_stride[d] <= p->inner_stride[smallest])
            smallest = d;
    return p->inner_stride[last] == p->element_bytes && last > 0 ? last - 1 : smallest;
}

/* Step the dimensions that the planes lie along; false behind the last. */
static bool next_plane(const struct permutation *p, unsigned rows, uint64_t *index)
{
    for (unsigned d = p->rank - 1; d-- > 0;) {
        if (d == rows)
            continue;
        if (++index[d] < p->count[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static void move(const struct permutation *p, const uint8_t *src, const size_t *src_stride, uint8_t *dst, const size_t *dst_stride)
{
    uint64_t index[SQUALL_RANK_MAX] = {0};
    unsigned last = p->rank - 1;
    if (p->rank == 1) {
        const struct plane line = {1, p->count[0], 0, src_stride[0], 0, dst_stride[0]};
        move_plane(&line, p->element_bytes, src, dst);
        return;
    }
    unsigned rows = plane_rows(p);
    const struct plane plane = {p->count[rows], p->count[last], src_stride[rows], src_stride[last], dst_stride[rows], dst_stride[last]};
    do {
        size_t from = 0, to = 0;
        for (unsigned d = 0; d < last; d++) {
            from += index[d] * src_stride[d];
            to += index[d] * dst_stride[d];
        }
        move_plane(&plane, p->element_bytes, src + from, dst + to);
    } while (next_plane(p, rows, index));
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)err;
    const struct permutation *p = stage->state;
    if (src_size > capacity)
        return SQ_STAGE_NO_ROOM;
    move(p, src, p->outer_stride, dst, p->inner_stride);
    *ret_size = src_size;
    return 0;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity, (void)err;
    const struct permutation *p = stage->state;
    move(p, src, p->inner_stride, dst, p->outer_stride);
    *ret_size = src_size;
    return 0;
}

const struct sq_stage_ops sq_stage_transpose = {.name = "transpose",
                                                .name_v3 = "transpose",
                                                .kind = SQ_STAGE_ARRAY,
                                                .only_v3 = true,
                                                .keeps_configuration = true,
                                                .shaped = true,
                                                .fixed = true,
                                                .bind = bind,
                                                .done = done,
                                                .tell = tell,
                                                .decode = decode,
                                                .bound = sq_stage_same_size,
                                                .encode = encode};
