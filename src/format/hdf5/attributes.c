/* See attributes.h. */
#include "format/hdf5/attributes.h"
#include "base/checked.h"
#include "format/hdf5/btree.h"
#include "format/hdf5/heap.h"
#include <stdlib.h>
#include <string.h>

enum { NAME_INDEX = 8, ID_BYTES = 8, RECORD_BYTES = 17 }; /* III.A.2, records of type 8 */
enum { FLAG_SHARED = 1 << 1 };                            /* of messages */

struct reading {
    struct sq_hdf5_reader *r;
    struct sq_hdf5_attributes *attributes;
    const struct sq_hdf5_refusal *refusal;
    struct sq_hdf5_heap *heap; /* of dense attributes */
    uint64_t heap_address;
    bool tracks_order;
};

/* ---- the attribute message (IV.A.2.m) ---- */

/* A part of the message: the next size_bytes; where it is shared, what those say. */
static int take_part(struct reading *g, struct sq_cursor *c, size_t size_bytes, bool is_padded, bool is_shared,
                     struct sq_hdf5_message *part, struct squall_error *err)
{
    part->size_bytes = size_bytes;
    part->bytes = sq_take(c, is_padded ? (size_bytes + 7) / 8 * 8 : size_bytes);
    if (!part->bytes)
        return SQ_HDF5_DAMAGED(g->r->file, part->address, err, "an attribute that ends early");
    return is_shared ? sq_hdf5_resolve_shared(g->r, part, err) : 0;
}

static int take_name(struct reading *g, const struct sq_hdf5_message *part, const char **ret, struct squall_error *err)
{
    char *copy;
    SQ_TRY(SQ_HDF5_ROOM(g->r, &copy, part->size_bytes + 1, err));
    memcpy(copy, part->bytes, part->size_bytes);
    *ret = copy;
    return copy[0] ? 0 : SQ_HDF5_DAMAGED(g->r->file, part->address, err, "an attribute without a name");
}

static int parse_attribute(struct reading *g, const struct sq_hdf5_message *m, struct sq_hdf5_attribute *a, struct squall_error *err)
{
    enum { TYPE_SHARED = 1, SPACE_SHARED = 2 };
    const struct sq_hdf5_file *f = g->r->file;
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    const unsigned version = sq_u8(&c), flags = sq_u8(&c);
    const size_t name_bytes = sq_u16le(&c), type_bytes = sq_u16le(&c), space_bytes = sq_u16le(&c);
    struct sq_hdf5_message name = {.address = m->address}, type = {.type = SQ_HDF5_DATATYPE, .address = m->address},
                           space = {.type = SQ_HDF5_SPACE, .address = m->address};
    size_t value_bytes;
    if (version == 3)
        sq_u8(&c); /* the name's character set: ASCII is UTF-8 too */
    if (!sq_cursor_failed(&c) && (version < 1 || version > 3))
        return SQ_HDF5_UNSUPPORTED(f, m->address, err, "an attribute of version %u", version);
    SQ_TRY(take_part(g, &c, name_bytes, version == 1, false, &name, err));
    SQ_TRY(take_name(g, &name, &a->name, err));
    SQ_TRY(take_part(g, &c, type_bytes, version == 1, version > 1 && flags & TYPE_SHARED, &type, err));
    SQ_TRY(take_part(g, &c, space_bytes, version == 1, version > 1 && flags & SPACE_SHARED, &space, err));
    SQ_TRY(sq_hdf5_type_parse(g->r, type.bytes, type.size_bytes, type.address, &a->type, err));
    SQ_TRY(sq_hdf5_space_parse(g->r, space.bytes, space.size_bytes, space.address, &a->space, err));
    if (!sq_mul_size((size_t)a->space.element_count, a->type->size_bytes, &value_bytes) || value_bytes > sq_cursor_left(&c))
        return SQ_HDF5_DAMAGED(f, m->address, err, "an attribute with more elements than bytes");
    a->value = c.next;
    a->size_bytes = value_bytes;
    return 0;
}

static int add_parsed(struct reading *g, const struct sq_hdf5_message *m, uint32_t order, struct squall_error *err)
{
    struct sq_hdf5_attributes *list = g->attributes;
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_attribute a = {.order = order};
    int status = parse_attribute(g, m, &a, &reason);
    if (status)
        return g->refusal->refuse(g->refusal->user, status, &reason, err);
    SQ_TRY(SQ_HDF5_GROW(g->r, list->list, list->capacity, list->count, err));
    list->list[list->count++] = a;
    return 0;
}

/* ---- attributes in a fractal heap ---- */

static int visit_dense(void *user, const uint8_t *record, size_t size_bytes, struct squall_error *err)
{
    struct reading *g = user;
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_cursor c = sq_cursor(record, size_bytes);
    const uint8_t *id = sq_take(&c, ID_BYTES);
    const unsigned flags = sq_u8(&c);
    const uint32_t order = sq_u32le(&c);
    struct sq_hdf5_message m = {.type = SQ_HDF5_ATTRIBUTE, .address = g->heap_address};
    int status = flags & FLAG_SHARED ? sq_hdf5_shared_get(g->r, &m, id, &reason)
                                     : sq_hdf5_heap_get(g->r, g->heap, id, ID_BYTES, &m.bytes, &m.size_bytes, &reason);
    return status ? g->refusal->refuse(g->refusal->user, status, &reason, err) : add_parsed(g, &m, order, err);
}

static int compare_orders(const void *a, const void *b)
{
    const struct sq_hdf5_attribute *x = a, *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : strcmp(x->name, y->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct sq_hdf5_attribute *)a)->name, ((const struct sq_hdf5_attribute *)b)->name);
}

/* IV.A.2.v */
static int read_dense(struct reading *g, const struct sq_hdf5_message *m, struct squall_error *err)
{
    enum { TRACKS_ORDER = 1 };
    const struct sq_hdf5_file *f = g->r->file;
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    sq_u8(&c);
    g->tracks_order = sq_u8(&c) & TRACKS_ORDER;
    if (g->tracks_order)
        sq_take(&c, 2);
    const uint64_t heap = sq_hdf5_take_address(&c, f), index = sq_hdf5_take_address(&c, f);
    if (sq_cursor_failed(&c))
        return SQ_HDF5_DAMAGED(f, m->address, err, "a message about attributes that ends early");
    if (heap == SQ_HDF5_NOWHERE)
        return 0;
    g->heap_address = heap;
    SQ_TRY(sq_hdf5_heap_open(g->r, heap, &g->heap, err));
    SQ_TRY(sq_hdf5_btree_walk(g->r, index, NAME_INDEX, RECORD_BYTES, visit_dense, g, err));
    if (!g->tracks_order && g->attributes->count) /* else they come in the order of their names' hashes */
        qsort(g->attributes->list, g->attributes->count, sizeof *g->attributes->list, compare_names);
    return 0;
}

int sq_hdf5_attributes_read(struct sq_hdf5_reader *r, const struct sq_hdf5_object *object, const struct sq_hdf5_refusal *refusal,
                            struct sq_hdf5_attributes *ret, struct squall_error *err)
{
    struct sq_hdf5_attributes attributes = {0};
    struct reading g = {.r = r, .attributes = &attributes, .refusal = refusal, .tracks_order = object->tracks_order};
    for (size_t i = 0; i < object->count; i++) {
        const struct sq_hdf5_message *m = &object->messages[i];
        if (m->type == SQ_HDF5_ATTRIBUTE)
            SQ_TRY(add_parsed(&g, m, m->order, err));
        else if (m->type == SQ_HDF5_ATTRIBUTE_INFO)
            SQ_TRY(read_dense(&g, m, err));
    }
    if (g.tracks_order && attributes.count)
        qsort(attributes.list, attributes.count, sizeof *attributes.list, compare_orders);
    *ret = attributes;
    return 0;
}
