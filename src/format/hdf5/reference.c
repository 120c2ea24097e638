/*
 * See reference.h. Old references are an object's address, or of regions a place in a global heap; those since HDF5 1.12 say what kind they are
 * and hold a token, which is an address, or a place in a heap. A region is a selection as libhdf5 serialises it: all, points, or blocks.
 */
#include "format/hdf5/reference.h"
#include "format/hdf5/heap.h"

enum { SELECT_NONE, SELECT_POINTS, SELECT_BLOCKS, SELECT_ALL };
enum { FLAG_EXTERNAL = 1, FLAG_REGULAR = 1 };

struct selection {
    struct sq_hdf5_reader *r;
    struct sq_cursor c;
    unsigned width; /* bytes of a number */
    unsigned rank;
    struct sq_text *out;
};

static uint64_t take_number(struct selection *s)
{
    const uint64_t value = sq_uint_le(&s->c, s->width);
    return s->width < sizeof value && value == (UINT64_C(1) << 8 * s->width) - 1 ? UINT64_MAX : value;
}

/* A block or point costs what it is printed as: a few bytes may tell of many. */
static int begin_part(struct selection *s, bool is_first, struct squall_error *err)
{
    sq_text_add(s->out, is_first ? "" : "; ");
    return sq_hdf5_spend(s->r, 1 + s->rank, err);
}

static int add_points(struct selection *s, struct squall_error *err)
{
    const uint64_t count = take_number(s);
    for (uint64_t i = 0; i < count && !sq_cursor_failed(&s->c); i++) {
        SQ_TRY(begin_part(s, i == 0, err));
        for (unsigned d = 0; d < s->rank; d++)
            sq_text_printf(s->out, "%s%llu", d ? ", " : "", (unsigned long long)take_number(s));
    }
    return 0;
}

/* Of each block its first and its last point. */
static int add_blocks(struct selection *s, struct squall_error *err)
{
    uint64_t first[SQUALL_RANK_MAX] = {0};
    const uint64_t count = take_number(s);
    for (uint64_t i = 0; i < count && !sq_cursor_failed(&s->c); i++) {
        SQ_TRY(begin_part(s, i == 0, err));
        for (unsigned d = 0; d < s->rank; d++)
            first[d] = take_number(s);
        for (unsigned d = 0; d < s->rank; d++)
            sq_text_printf(s->out, "%s%llu:%llu", d ? ", " : "", (unsigned long long)first[d], (unsigned long long)take_number(s) + 1);
    }
    return 0;
}

/* Along each dimension `count` blocks of `block` elements, every `stride`; "0:9:4*2" where they are longer than one, but not one. */
static void add_regular(struct selection *s)
{
    for (unsigned d = 0; d < s->rank; d++) {
        const uint64_t start = take_number(s), stride = take_number(s), count = take_number(s), block = take_number(s);
        const uint64_t end = start + (count - 1) * stride + block;
        sq_text_printf(s->out, "%s%llu:", d ? ", " : "", (unsigned long long)start);
        if (count != UINT64_MAX && block != UINT64_MAX && count > 0) /* else without an end */
            sq_text_printf(s->out, "%llu", (unsigned long long)end);
        if (count > 1 && stride > 1 && stride != block)
            sq_text_printf(s->out, ":%llu", (unsigned long long)stride);
        if (count > 1 && block > 1 && stride != block)
            sq_text_printf(s->out, "*%llu", (unsigned long long)block);
    }
}

static int take_rank(struct selection *s, struct squall_error *err)
{
    s->rank = sq_u32le(&s->c);
    if (s->rank == 0 || s->rank > SQUALL_RANK_MAX || s->width == 0 || s->width > sizeof(uint64_t))
        return sq_error(err, SQUALL_ECORRUPT, "%s: a reference to a region of %u dimensions, in numbers of %u bytes",
                        sq_source_name(s->r->file->source), s->rank, s->width);
    return 0;
}

/* The first versions say how long the rest is, and have numbers of 4 bytes; later ones have flags, and say how wide numbers are. */
static int add_selection(struct selection *s, struct squall_error *err)
{
    const unsigned kind = sq_u32le(&s->c), version = sq_u32le(&s->c);
    bool is_regular = false;
    sq_text_add(s->out, "[");
    if (kind == SELECT_POINTS || kind == SELECT_BLOCKS) {
        s->width = sizeof(uint32_t);
        if (version == 1) {
            sq_take(&s->c, 2 * sizeof(uint32_t));
        } else if (kind == SELECT_POINTS) {
            s->width = sq_u8(&s->c);
        } else {
            is_regular = sq_u8(&s->c) & FLAG_REGULAR;
            s->width = version == 2 ? sizeof(uint64_t) : sq_u8(&s->c);
            sq_take(&s->c, version == 2 ? sizeof(uint32_t) : 0);
        }
        SQ_TRY(take_rank(s, err));
    }
    if (is_regular)
        add_regular(s);
    else if (kind == SELECT_POINTS || kind == SELECT_BLOCKS)
        SQ_TRY(kind == SELECT_POINTS ? add_points(s, err) : add_blocks(s, err));
    else if (kind == SELECT_ALL)
        sq_text_add(s->out, "...");
    sq_text_add(s->out, "]");
    if (sq_cursor_failed(&s->c) || kind > SELECT_ALL)
        return sq_error(err, SQUALL_ECORRUPT, "%s: a reference to a region that ends early, or is none",
                        sq_source_name(s->r->file->source));
    return 0;
}

/* The object whose address follows. false: none, or none that is known. */
static bool add_object(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, struct sq_cursor *c, struct sq_text *out)
{
    const char *path = sq_hdf5_tree_path(tree, sq_hdf5_take_address(c, r->file));
    sq_text_add(out, path ? path : "");
    return path != NULL;
}

/* What lies in a global heap at the place that follows. */
static int take_heap_object(struct sq_hdf5_reader *r, struct sq_cursor *c, struct sq_cursor *ret, struct squall_error *err)
{
    const uint64_t collection = sq_hdf5_take_address(c, r->file);
    const uint32_t number = sq_u32le(c);
    const uint8_t *bytes = NULL;
    size_t size_bytes = 0;
    if (collection != 0 && collection != SQ_HDF5_NOWHERE)
        SQ_TRY(sq_hdf5_global_heap_get(r, collection, number, &bytes, &size_bytes, err));
    *ret = sq_cursor(bytes, size_bytes);
    return 0;
}

static int add_region(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, struct sq_cursor *c, struct sq_text *out,
                      struct squall_error *err)
{
    struct selection s = {.r = r, .out = out};
    SQ_TRY(take_heap_object(r, c, &s.c, err));
    return add_object(r, tree, &s.c, out) ? add_selection(&s, err) : 0;
}

/* Since 1.12: in a heap but for those to objects, a token with its length before it, and behind it the region or the attribute's name. */
static int add_new(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, struct sq_cursor *c, struct sq_text *out,
                   struct squall_error *err)
{
    const unsigned kind = sq_u8(c), flags = sq_u8(c);
    struct selection s = {.r = r, .c = *c, .out = out};
    if (flags & FLAG_EXTERNAL || kind < SQ_HDF5_TO_OBJECT_2 || kind > SQ_HDF5_TO_ATTRIBUTE)
        return 0;
    if (kind != SQ_HDF5_TO_OBJECT_2) {
        sq_take(c, sizeof(uint32_t)); /* how long what is in the heap is */
        SQ_TRY(take_heap_object(r, c, &s.c, err));
    }
    const unsigned token_bytes = sq_u8(&s.c);
    if (token_bytes != r->file->offset_bytes || !add_object(r, tree, &s.c, out) || kind == SQ_HDF5_TO_OBJECT_2)
        return 0;
    if (kind == SQ_HDF5_TO_REGION_2) {
        sq_take(&s.c, 2 * sizeof(uint32_t)); /* how long the selection is, and its rank */
        return add_selection(&s, err);
    }
    const size_t length = sq_u16le(&s.c);
    const uint8_t *name = sq_take(&s.c, length);
    sq_text_add(out, ":");
    sq_text_add_bytes(out, name, name ? length : 0);
    return 0;
}

int sq_hdf5_reference_text(struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type,
                           const uint8_t *stored, struct sq_text *out, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(stored, type->size_bytes);
    if (type->reference == SQ_HDF5_TO_OBJECT)
        (void)add_object(r, tree, &c, out);
    else
        SQ_TRY(type->reference == SQ_HDF5_TO_REGION ? add_region(r, tree, &c, out, err) : add_new(r, tree, &c, out, err));
    return out->failed ? sq_error_memory(err, out->length) : 0;
}
