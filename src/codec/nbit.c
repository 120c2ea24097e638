/*
 * HDF5's filter 5: of each number only the bits that count, one after another from the highest on, without gaps between numbers. The values
 * describe the element's type as a tree: numbers, arrays of a type, compounds of members, and what is stored with all its bits.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/hdf5_stages.h"
#include <string.h>

enum kind { ATOMIC = 1, ARRAY, COMPOUND, WHOLE };

enum { DEPTH_MAX = 32 };

/* A type within an element. Children of arrays and compounds lie one behind another in the table. */
struct type {
    enum kind kind;
    uint32_t at_bytes, size_bytes; /* in the type that it is part of */
    bool big_endian;
    uint32_t precision, bit_offset;
    uint32_t child, child_count;
};

struct layout {
    size_t element_count;
    uint32_t type_count, type_capacity;
    struct type types[]; /* the element's first */
};

/* The values that are still to be read. */
struct values {
    const uint32_t *next;
    size_t left;
};

static int nonsense(const char *what, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "filter nbit: its values make no sense: %s", what);
}

/* 0 where none is left */
static uint32_t take_value(struct values *v)
{
    if (v->left == 0)
        return 0;
    v->left--;
    return *v->next++;
}

static int read_type(struct layout *l, uint32_t index, struct values *v, unsigned depth, struct squall_error *err);

static int read_atomic(struct type *t, struct values *v, struct squall_error *err)
{
    if (v->left < 3)
        return nonsense("they end within a type", err);
    uint32_t order = take_value(v);
    t->precision = take_value(v);
    t->bit_offset = take_value(v);
    t->big_endian = order == 1;
    uint64_t bits = (uint64_t)t->size_bytes * 8;
    if (order > 1 || t->precision == 0 || t->precision > bits || t->bit_offset > bits - t->precision)
        return nonsense("bits that lie outside their number", err);
    return 0;
}

/* The next `count` types of the table, which has room for as many as there are values: each takes two at least. */
static int take_types(struct layout *l, uint32_t count, uint32_t *ret, struct squall_error *err)
{
    if (count > l->type_capacity - l->type_count)
        return nonsense("more types than values", err);
    *ret = l->type_count;
    l->type_count += count;
    return 0;
}

static int read_compound(struct layout *l, uint32_t index, struct values *v, unsigned depth, struct squall_error *err)
{
    uint32_t count = take_value(v), first = 0;
    SQ_TRY(take_types(l, count, &first, err));
    l->types[index].child = first;
    l->types[index].child_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct type *member = &l->types[first + i];
        member->at_bytes = take_value(v);
        SQ_TRY(read_type(l, first + i, v, depth, err));
        if ((uint64_t)member->at_bytes + member->size_bytes > l->types[index].size_bytes)
            return nonsense("a member that lies outside its compound", err);
    }
    return 0;
}

static int read_array(struct layout *l, uint32_t index, struct values *v, unsigned depth, struct squall_error *err)
{
    struct type *array = &l->types[index];
    SQ_TRY(take_types(l, 1, &array->child, err));
    SQ_TRY(read_type(l, array->child, v, depth, err));
    uint32_t base_bytes = l->types[array->child].size_bytes;
    array->child_count = array->size_bytes / base_bytes;
    return array->size_bytes % base_bytes == 0 ? 0 : nonsense("an array of no whole number of elements", err);
}

static int read_type(struct layout *l, uint32_t index, struct values *v, unsigned depth, struct squall_error *err)
{
    struct type *t = &l->types[index];
    if (v->left < 2 || depth == DEPTH_MAX)
        return nonsense(v->left < 2 ? "they end within a type" : "types within types without end", err);
    t->kind = (enum kind)take_value(v);
    t->size_bytes = take_value(v);
    if (t->size_bytes == 0)
        return nonsense("a type of no bytes", err);
    switch (t->kind) {
    case ATOMIC:
        return read_atomic(t, v, err);
    case ARRAY:
        return read_array(l, index, v, depth + 1, err);
    case COMPOUND:
        return read_compound(l, index, v, depth + 1, err);
    case WHOLE:
        return 0;
    default:
        return nonsense("a kind of type that is not known", err);
    }
}

/* Values: their own number, whether all bits count, elements of a chunk, the type. */
int sq_nbit_bind(struct sq_stage *stage, const struct sq_hdf5_filter *filter, struct squall_error *err)
{
    enum { VALUE_ALL_BITS = 1, VALUE_ELEMENTS, VALUE_TYPE };
    if (filter->value_count > VALUE_ALL_BITS && filter->values[VALUE_ALL_BITS]) { /* the type need not be there */
        stage->decode_copies = true;
        return 0;
    }
    if (filter->value_count <= VALUE_TYPE)
        return nonsense("there are too few", err);
    struct layout *l = stage->state = sq_alloc_zero(1, sizeof *l + filter->value_count * sizeof *l->types);
    if (!l)
        return sq_error_memory(err, filter->value_count * sizeof *l->types);
    l->element_count = filter->values[VALUE_ELEMENTS];
    l->type_count = 1;
    l->type_capacity = filter->value_count;
    struct values v = {filter->values + VALUE_TYPE, filter->value_count - VALUE_TYPE};
    return read_type(l, 0, &v, 0, err);
}

static void done(struct sq_stage *stage)
{
    sq_free(stage->state);
}

/* ---- bits ------------------------------------------------------------------------------------------------------------------------- */

/* A stream of bits; after its end come zeros, and `ended` is set. */
struct bits {
    const uint8_t *next, *end;
    uint64_t held;
    unsigned held_count;
    bool ended;
};

/* count ≤ 8 */
static inline uint8_t take_bits(struct bits *b, unsigned count)
{
    while (b->held_count < count) {
        b->ended |= b->next == b->end;
        b->held = b->held << 8 | (b->ended ? 0 : *b->next++);
        b->held_count += 8;
    }
    b->held_count -= count;
    return (uint8_t)(b->held >> b->held_count & ((1U << count) - 1));
}

/* The other bits of dst are zero already. */
static void decode_atomic(const struct type *t, struct bits *b, uint8_t *dst)
{
    const uint32_t first = t->bit_offset, end = t->bit_offset + t->precision;
    for (uint32_t byte = (end - 1) / 8 + 1; byte-- > first / 8;) {
        unsigned low = byte * 8 < first ? first - byte * 8 : 0, high = end - byte * 8 < 8 ? end - byte * 8 : 8;
        dst[t->big_endian ? t->size_bytes - 1 - byte : byte] = (uint8_t)(take_bits(b, high - low) << low);
    }
}

static void decode_type(const struct layout *l, const struct type *t, struct bits *b, uint8_t *dst)
{
    const struct type *child = &l->types[t->child];
    switch (t->kind) {
    case ATOMIC:
        decode_atomic(t, b, dst);
        break;
    case ARRAY:
        for (uint32_t i = 0; i < t->child_count && !b->ended; i++)
            decode_type(l, child, b, dst + (size_t)i * child->size_bytes);
        break;
    case COMPOUND:
        for (uint32_t i = 0; i < t->child_count && !b->ended; i++)
            decode_type(l, &child[i], b, dst + child[i].at_bytes);
        break;
    case WHOLE:
        for (uint32_t i = 0; i < t->size_bytes; i++)
            dst[i] = take_bits(b, 8);
    }
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    const struct layout *l = stage->state;
    const struct type *element = &l->types[0];
    struct bits bits = {.next = src, .end = src + src_size};
    if (l->element_count > capacity / element->size_bytes)
        return SQ_STAGE_NO_ROOM;
    size_t size = l->element_count * element->size_bytes;
    memset(dst, 0, size);
    for (size_t i = 0; i < l->element_count && !bits.ended; i++)
        decode_type(l, element, &bits, dst + i * element->size_bytes);
    if (bits.ended)
        return sq_error(err, SQUALL_ECORRUPT, "nbit: %zu bytes do not hold the bits of %zu elements; the chunk is truncated", src_size,
                        l->element_count);
    *ret_size = size;
    return 0;
}

const struct sq_stage_ops sq_stage_nbit = {.name = "nbit", .done = done, .decode = decode, .bound = sq_stage_same_size};
