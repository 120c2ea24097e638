/* See object.h. A header is a chunk of messages and what those continue in; messages of old headers are padded to 8 bytes, chunks of new ones have a checksum. */
#include "format/hdf5/object.h"
#include "format/hdf5/heap.h"
#include <string.h>

enum { OLD_PREFIX_BYTES = 16, SIGNATURE_BYTES = 4, CHECKSUM_BYTES = 4, KNOWN_TYPES = 0x19 };
enum { FLAG_SHARED = 1 << 1, FLAG_MUST_UNDERSTAND = 1 << 7 };                                   /* of messages */
enum { HEADER_SIZE = 3, HEADER_ORDER = 1 << 2, HEADER_PHASES = 1 << 4, HEADER_TIMES = 1 << 5 }; /* flags of new headers */

struct reading {
    struct sq_hdf5_reader *r;
    struct sq_hdf5_object *object;
    size_t capacity;
    uint64_t chunk_bytes; /* of all chunks so far: they do not overlap, so that the file holds them all */
    bool is_old, has_order;
};

static int add_message(struct reading *h, const struct sq_hdf5_message *m, struct squall_error *err)
{
    struct sq_hdf5_object *o = h->object;
    SQ_TRY(SQ_HDF5_GROW(h->r, o->messages, h->capacity, o->count, err));
    o->messages[o->count++] = *m;
    return 0;
}

/* The messages of a chunk: the bytes between its prefix and its checksum. A rest that is too short for a message is a gap. */
static int read_messages(struct reading *h, const uint8_t *bytes, size_t size_bytes, uint64_t address, struct squall_error *err)
{
    const size_t prefix_bytes = h->is_old ? 8 : h->has_order ? 6 : 4;
    struct sq_cursor c = sq_cursor(bytes, size_bytes);
    while (sq_cursor_left(&c) >= prefix_bytes) {
        struct sq_hdf5_message m = {.type = h->is_old ? sq_u16le(&c) : sq_u8(&c)};
        m.size_bytes = sq_u16le(&c);
        m.flags = sq_u8(&c);
        if (h->is_old)
            sq_take(&c, 3);
        else if (h->has_order)
            m.order = sq_u16le(&c);
        m.address = address + (uint64_t)(c.next - bytes);
        m.bytes = sq_take(&c, m.size_bytes);
        if (sq_cursor_failed(&c))
            return SQ_HDF5_DAMAGED(h->r->file, m.address, err, "a message of %zu bytes reaches beyond its object header", m.size_bytes);
        if (m.type >= KNOWN_TYPES && m.flags & FLAG_MUST_UNDERSTAND)
            return SQ_HDF5_UNSUPPORTED(h->r->file, m.address, err, "a message of type %u, which readers must understand", m.type);
        if (m.type != 0)
            SQ_TRY(add_message(h, &m, err));
    }
    return 0;
}

static int read_chunk(struct reading *h, uint64_t address, uint64_t size, struct squall_error *err)
{
    const struct sq_hdf5_file *f = h->r->file;
    const uint8_t *bytes;
    if (size > f->end || (h->chunk_bytes += size) > f->end)
        return SQ_HDF5_DAMAGED(f, address, err, "the object header's continuations have more bytes than the file");
    SQ_TRY(sq_hdf5_view(h->r, address, (size_t)size, &bytes, err));
    if (h->is_old)
        return read_messages(h, bytes, (size_t)size, address, err);
    if (size < SIGNATURE_BYTES + CHECKSUM_BYTES || memcmp(bytes, "OCHK", SIGNATURE_BYTES) != 0)
        return SQ_HDF5_DAMAGED(f, address, err, "no continuation of an object header");
    if (!sq_hdf5_checksum_holds(bytes, (size_t)size))
        return SQ_HDF5_DAMAGED(f, address, err, "the checksum of an object header's continuation does not hold");
    return read_messages(h, bytes + SIGNATURE_BYTES, (size_t)size - SIGNATURE_BYTES - CHECKSUM_BYTES, address + SIGNATURE_BYTES, err);
}

/* IV.A.1.a */
static int read_old(struct reading *h, uint64_t address, struct squall_error *err)
{
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(h->r, address, OLD_PREFIX_BYTES, &bytes, err));
    struct sq_cursor c = sq_cursor(bytes + 8, 4);
    h->is_old = true;
    return read_chunk(h, address + OLD_PREFIX_BYTES, sq_u32le(&c), err);
}

/* IV.A.1.b */
static int read_new(struct reading *h, uint64_t address, struct squall_error *err)
{
    enum { PREFIX_LIMIT = 4 + 2 + 16 + 4 + 8 };
    const struct sq_hdf5_file *f = h->r->file;
    struct sq_cursor c;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view_up_to(h->r, address, PREFIX_LIMIT, &c, err));
    const uint8_t *begin = c.next;
    sq_take(&c, SIGNATURE_BYTES);
    const unsigned version = sq_u8(&c), flags = sq_u8(&c);
    if (version != 2 && !sq_cursor_failed(&c))
        return SQ_HDF5_UNSUPPORTED(f, address, err, "an object header of version %u; versions 1 and 2 are read", version);
    sq_take(&c, (flags & HEADER_TIMES ? 16 : 0) + (flags & HEADER_PHASES ? 4 : 0));
    const uint64_t size = sq_uint_le(&c, 1u << (flags & HEADER_SIZE));
    if (sq_cursor_failed(&c) || size > f->end)
        return SQ_HDF5_DAMAGED(f, address, err, "the file ends within an object header");
    const size_t prefix_bytes = (size_t)(c.next - begin), total = prefix_bytes + (size_t)size + CHECKSUM_BYTES;
    SQ_TRY(sq_hdf5_view(h->r, address, total, &bytes, err));
    if (!sq_hdf5_checksum_holds(bytes, total))
        return SQ_HDF5_DAMAGED(f, address, err, "the object header's checksum does not hold");
    h->has_order = h->object->tracks_order = flags & HEADER_ORDER;
    h->chunk_bytes = total;
    return read_messages(h, bytes + prefix_bytes, (size_t)size, address + prefix_bytes, err);
}

/* All messages as they are, continuations followed. */
static int read_header(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_object *ret, struct squall_error *err)
{
    struct sq_hdf5_object object = {.address = address};
    struct reading h = {.r = r, .object = &object};
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(r, address, SIGNATURE_BYTES, &bytes, err));
    if (!memcmp(bytes, "OHDR", SIGNATURE_BYTES))
        SQ_TRY(read_new(&h, address, err));
    else if (bytes[0] == 1)
        SQ_TRY(read_old(&h, address, err));
    else
        return SQ_HDF5_DAMAGED(r->file, address, err, "no object header");
    for (size_t i = 0; i < object.count; i++) {
        if (object.messages[i].type != SQ_HDF5_CONTINUATION)
            continue;
        struct sq_cursor c = sq_cursor(object.messages[i].bytes, object.messages[i].size_bytes);
        const uint64_t next = sq_hdf5_take_address(&c, r->file), size = sq_hdf5_take_length(&c, r->file);
        if (sq_cursor_failed(&c))
            return SQ_HDF5_DAMAGED(r->file, object.messages[i].address, err, "a continuation that says not where");
        SQ_TRY(read_chunk(&h, next, size, err));
    }
    *ret = object;
    return 0;
}

const struct sq_hdf5_message *sq_hdf5_object_find(const struct sq_hdf5_object *object, unsigned type)
{
    for (size_t i = 0; i < object->count; i++)
        if (object->messages[i].type == type)
            return &object->messages[i];
    return NULL;
}

int sq_hdf5_shared_get(struct sq_hdf5_reader *r, struct sq_hdf5_message *m, const uint8_t *id, struct squall_error *err)
{
    enum { ID_BYTES = 8 };
    const struct sq_hdf5_file *f = r->file;
    unsigned i = 0;
    while (i < f->shared_count && !(m->type < 16 && f->shared[i].message_types >> m->type & 1))
        i++;
    if (i == f->shared_count)
        return SQ_HDF5_DAMAGED(f, m->address, err, "a shared message, but the file shares none of its type");
    if (!r->shared_heaps)
        SQ_TRY(SQ_HDF5_ROOM(r, &r->shared_heaps, f->shared_count, err));
    if (!r->shared_heaps[i])
        SQ_TRY(sq_hdf5_heap_open(r, f->shared[i].heap, &r->shared_heaps[i], err));
    SQ_TRY(sq_hdf5_heap_get(r, r->shared_heaps[i], id, ID_BYTES, &m->bytes, &m->size_bytes, err));
    m->address = f->shared[i].heap;
    return 0;
}

/* A message of the object at an address: a committed datatype. */
static int get_from_object(struct sq_hdf5_reader *r, struct sq_hdf5_message *m, uint64_t address, struct squall_error *err)
{
    struct sq_hdf5_object object;
    SQ_TRY(read_header(r, address, &object, err));
    const struct sq_hdf5_message *found = sq_hdf5_object_find(&object, m->type);
    if (!found || found->flags & FLAG_SHARED)
        return SQ_HDF5_DAMAGED(r->file, address, err, "a message is said to be here, but it is not");
    m->bytes = found->bytes;
    m->size_bytes = found->size_bytes;
    m->address = found->address;
    return 0;
}

int sq_hdf5_resolve_shared(struct sq_hdf5_reader *r, struct sq_hdf5_message *m, struct squall_error *err)
{
    enum { IN_HEAP = 1 };
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    const unsigned version = sq_u8(&c), kind = sq_u8(&c);
    const uint8_t *id = NULL;
    uint64_t address = SQ_HDF5_NOWHERE;
    if (version == 1)
        sq_take(&c, 6 + (size_t)r->file->length_bytes);
    if (version == 3 && kind == IN_HEAP)
        id = sq_take(&c, 8);
    else
        address = sq_hdf5_take_address(&c, r->file);
    if (sq_cursor_failed(&c) || version == 0 || version > 3)
        return SQ_HDF5_DAMAGED(r->file, m->address, err, "a shared message that says not where it is");
    return id ? sq_hdf5_shared_get(r, m, id, err) : get_from_object(r, m, address, err);
}

int sq_hdf5_object_read(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_object *ret, struct squall_error *err)
{
    struct sq_hdf5_object object;
    SQ_TRY(read_header(r, address, &object, err));
    for (size_t i = 0; i < object.count; i++)
        if (object.messages[i].flags & FLAG_SHARED)
            SQ_TRY(sq_hdf5_resolve_shared(r, &object.messages[i], err));
    *ret = object;
    return 0;
}
