/* See btree.h. How many records a node has is said by what points at it; how wide that number is follows from what a node can hold. */
#include "format/hdf5/btree.h"
#include "base/checked.h"
#include <string.h>

/* ---- version 2 ---- */

enum { SIGNATURE_BYTES = 4, PREFIX_BYTES = 6, CHECKSUM_BYTES = 4, DEPTH_LIMIT = 64 };

/* A level of the tree, 0: the leaves. */
struct level {
    uint64_t record_limit; /* of a node */
    uint64_t total_limit;  /* of a node and all below it */
    unsigned total_bytes;  /* that such a number is written in; of leaves: 0, it is not */
    size_t pointer_bytes;
};

struct walk {
    struct sq_hdf5_reader *r;
    uint64_t header; /* address */
    unsigned type;
    size_t node_bytes, record_bytes;
    unsigned depth, count_bytes; /* count_bytes: of a node's number of records */
    uint64_t left;               /* records that are still to come: what points at nodes twice has too many */
    struct level levels[DEPTH_LIMIT];
    sq_hdf5_visit_record *visit;
    void *user;
};

static unsigned bytes_for(uint64_t limit)
{
    return limit ? (63 - (unsigned)__builtin_clzll(limit)) / 8 + 1 : 1;
}

/* false: no tree that is so deep can have been written. */
static bool lay_out(struct walk *w)
{
    const size_t room = w->node_bytes - PREFIX_BYTES - CHECKSUM_BYTES;
    w->levels[0] = (struct level){.record_limit = room / w->record_bytes, .total_limit = room / w->record_bytes};
    w->count_bytes = bytes_for(w->levels[0].record_limit);
    for (unsigned i = 1; i <= w->depth; i++) {
        const struct level *below = &w->levels[i - 1];
        struct level *l = &w->levels[i];
        l->pointer_bytes = w->r->file->offset_bytes + w->count_bytes + below->total_bytes;
        if (room < l->pointer_bytes)
            return false;
        l->record_limit = (room - l->pointer_bytes) / (w->record_bytes + l->pointer_bytes);
        if (!sq_mul_u64(l->record_limit + 1, below->total_limit, &l->total_limit) ||
            !sq_add_u64(l->total_limit, l->record_limit, &l->total_limit))
            return false;
        l->total_bytes = bytes_for(l->total_limit);
    }
    return true;
}

static int visit_record(struct walk *w, const uint8_t *record, struct squall_error *err)
{
    if (w->left-- == 0)
        return SQ_HDF5_DAMAGED(w->r->file, w->header, err, "a B-tree with more records than it says");
    return w->visit(w->user, record, w->record_bytes, err);
}

static int walk_node(struct walk *w, uint64_t address, uint64_t count, unsigned depth, struct squall_error *err)
{
    const struct level *level = &w->levels[depth];
    const struct sq_hdf5_file *f = w->r->file;
    const uint8_t *bytes;
    if (count > level->record_limit)
        return SQ_HDF5_DAMAGED(f, address, err, "a B-tree's node with %llu records, for which it has no room", (unsigned long long)count);
    const size_t records_bytes = (size_t)count * w->record_bytes;
    const size_t used = PREFIX_BYTES + records_bytes + (depth ? ((size_t)count + 1) * level->pointer_bytes : 0) + CHECKSUM_BYTES;
    SQ_TRY(sq_hdf5_view(w->r, address, used, &bytes, err));
    if (memcmp(bytes, depth ? "BTIN" : "BTLF", SIGNATURE_BYTES) != 0 || bytes[4] != 0 || bytes[5] != w->type)
        return SQ_HDF5_DAMAGED(f, address, err, "no node of the B-tree at byte %llu", (unsigned long long)(f->base + w->header));
    if (!sq_hdf5_checksum_holds(bytes, used))
        return SQ_HDF5_DAMAGED(f, address, err, "the checksum of a B-tree's node does not hold");
    struct sq_cursor pointers = sq_cursor(bytes + PREFIX_BYTES + records_bytes, used - PREFIX_BYTES - records_bytes);
    for (uint64_t i = 0; i <= count; i++) {
        if (depth) {
            const uint64_t child = sq_hdf5_take_address(&pointers, f), child_count = sq_uint_le(&pointers, w->count_bytes);
            sq_take(&pointers, w->levels[depth - 1].total_bytes);
            SQ_TRY(walk_node(w, child, child_count, depth - 1, err));
        }
        if (i < count)
            SQ_TRY(visit_record(w, bytes + PREFIX_BYTES + (size_t)i * w->record_bytes, err));
    }
    return 0;
}

int sq_hdf5_btree_walk(struct sq_hdf5_reader *r, uint64_t address, unsigned type, size_t record_bytes, sq_hdf5_visit_record *visit,
                       void *user, struct squall_error *err)
{
    const struct sq_hdf5_file *f = r->file;
    const size_t header_bytes = 22u + f->offset_bytes + f->length_bytes;
    struct walk w = {.r = r, .header = address, .type = type, .visit = visit, .user = user};
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(r, address, header_bytes, &bytes, err));
    if (memcmp(bytes, "BTHD", SIGNATURE_BYTES) != 0 || bytes[4] != 0 || bytes[5] != type)
        return SQ_HDF5_DAMAGED(f, address, err, "no B-tree of version 2 and type %u", type);
    if (!sq_hdf5_checksum_holds(bytes, header_bytes))
        return SQ_HDF5_DAMAGED(f, address, err, "the checksum of a B-tree's header does not hold");
    struct sq_cursor c = sq_cursor(bytes + PREFIX_BYTES, header_bytes - PREFIX_BYTES);
    w.node_bytes = sq_u32le(&c);
    w.record_bytes = sq_u16le(&c);
    w.depth = sq_u16le(&c);
    sq_take(&c, 2);
    const uint64_t root = sq_hdf5_take_address(&c, f), count = sq_u16le(&c);
    w.left = sq_hdf5_take_length(&c, f);
    if (w.record_bytes < record_bytes || w.node_bytes < PREFIX_BYTES + CHECKSUM_BYTES + w.record_bytes || w.depth >= DEPTH_LIMIT ||
        w.left > f->end / w.record_bytes || !lay_out(&w))
        return SQ_HDF5_DAMAGED(f, address, err, "a B-tree whose header contradicts itself");
    if (root == SQ_HDF5_NOWHERE && w.left == 0)
        return 0;
    SQ_TRY(walk_node(&w, root, count, w.depth, err));
    return w.left == 0 ? 0 : SQ_HDF5_DAMAGED(f, address, err, "a B-tree with %llu records fewer than it says", (unsigned long long)w.left);
}

/* ---- version 1, with a group's members ---- */

enum { LEVEL_ANY = 256 };

struct symbols {
    struct sq_hdf5_reader *r;
    sq_hdf5_visit_symbol *visit;
    void *user;
};

/* III.B */
static int walk_symbols(struct symbols *s, uint64_t address, struct squall_error *err)
{
    enum { PREFIX = 8, SCRATCH_BYTES = 16, SOFT_LINK = 2 };
    const struct sq_hdf5_file *f = s->r->file;
    const size_t entry_bytes = 2u * f->offset_bytes + 8 + SCRATCH_BYTES;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(s->r, address, PREFIX, &bytes, err));
    if (memcmp(bytes, "SNOD", SIGNATURE_BYTES) != 0 || bytes[4] != 1)
        return SQ_HDF5_DAMAGED(f, address, err, "no node of a group's symbol table");
    struct sq_cursor c = sq_cursor(bytes + 6, 2);
    const size_t count = sq_u16le(&c);
    SQ_TRY(sq_hdf5_view(s->r, address + PREFIX, count * entry_bytes, &bytes, err));
    for (size_t i = 0; i < count; i++) {
        struct sq_hdf5_symbol symbol;
        c = sq_cursor(bytes + i * entry_bytes, entry_bytes);
        symbol.name_at = sq_hdf5_take_address(&c, f);
        symbol.address = sq_hdf5_take_address(&c, f);
        const bool is_soft = sq_u32le(&c) == SOFT_LINK;
        sq_take(&c, 4);
        symbol.text_at = sq_u32le(&c);
        if (is_soft)
            symbol.address = SQ_HDF5_NOWHERE;
        SQ_TRY(s->visit(s->user, &symbol, err));
    }
    return 0;
}

/* III.A.1. level: which one it must be of, for the tree to end. */
static int walk_group_node(struct symbols *s, uint64_t address, unsigned level, struct squall_error *err)
{
    const struct sq_hdf5_file *f = s->r->file;
    const size_t prefix_bytes = 8 + 2u * f->offset_bytes;
    const uint8_t *bytes;
    SQ_TRY(sq_hdf5_view(s->r, address, prefix_bytes, &bytes, err));
    if (memcmp(bytes, "TREE", SIGNATURE_BYTES) != 0 || bytes[4] != 0)
        return SQ_HDF5_DAMAGED(f, address, err, "no node of a group's B-tree");
    struct sq_cursor c = sq_cursor(bytes + 5, 3);
    const unsigned found = sq_u8(&c);
    const size_t count = sq_u16le(&c);
    if (level != LEVEL_ANY && found != level)
        return SQ_HDF5_DAMAGED(f, address, err, "a node of level %u where one of level %u belongs", found, level);
    SQ_TRY(sq_hdf5_view(s->r, address + prefix_bytes, count * ((size_t)f->length_bytes + f->offset_bytes), &bytes, err));
    c = sq_cursor(bytes, count * ((size_t)f->length_bytes + f->offset_bytes));
    for (size_t i = 0; i < count; i++) {
        sq_hdf5_take_length(&c, f); /* a key; the children are enough */
        const uint64_t child = sq_hdf5_take_address(&c, f);
        SQ_TRY(found ? walk_group_node(s, child, found - 1, err) : walk_symbols(s, child, err));
    }
    return 0;
}

int sq_hdf5_symbols_walk(struct sq_hdf5_reader *r, uint64_t address, sq_hdf5_visit_symbol *visit, void *user, struct squall_error *err)
{
    struct symbols s = {r, visit, user};
    return walk_group_node(&s, address, LEVEL_ANY, err);
}
