/* See links.h. */
#include "format/hdf5/links.h"
#include "base/text.h"
#include "format/hdf5/btree.h"
#include "format/hdf5/heap.h"
#include <stdlib.h>
#include <string.h>

enum { NAME_INDEX = 5, HASH_BYTES = 4, ID_BYTES = 7 }; /* III.A.2, records of type 5 */

struct reading {
    struct sq_hdf5_reader *r;
    struct sq_hdf5_links *links;
    const struct sq_hdf5_refusal *refusal;
    struct sq_hdf5_local_heap names; /* of a symbol table */
    struct sq_hdf5_heap *heap;       /* of dense links */
    uint64_t address;                /* of what is read, for messages */
};

bool sq_hdf5_object_is_group(const struct sq_hdf5_object *object)
{
    return sq_hdf5_object_find(object, SQ_HDF5_SYMBOL_TABLE) || sq_hdf5_object_find(object, SQ_HDF5_LINK_INFO);
}

/* Names are parts of paths. */
static int add_link(struct reading *g, const struct sq_hdf5_link *link, struct squall_error *err)
{
    struct sq_hdf5_links *l = g->links;
    if (!link->name[0] || strchr(link->name, '/') || !strcmp(link->name, ".") || !sq_text_is_visible(link->name))
        return SQ_HDF5_DAMAGED(g->r->file, g->address, err, "a link whose name is none");
    SQ_TRY(SQ_HDF5_GROW(g->r, l->list, l->capacity, l->count, err));
    l->list[l->count++] = *link;
    return 0;
}

static int add_or_refuse(struct reading *g, int status, const struct sq_hdf5_link *link, struct squall_error *reason,
                         struct squall_error *err)
{
    if (!status)
        status = add_link(g, link, reason);
    return status ? g->refusal->refuse(g->refusal->user, status, reason, err) : 0;
}

/* ---- link messages (IV.A.2.g) ---- */

enum { LINK_HARD = 0, LINK_SOFT = 1, LINK_EXTERNAL = 64 };

static int take_text(struct reading *g, struct sq_cursor *c, uint64_t length, const char **ret, struct squall_error *err)
{
    const uint8_t *bytes = length <= sq_cursor_left(c) ? sq_take(c, (size_t)length) : NULL;
    char *copy;
    if (!bytes)
        return SQ_HDF5_DAMAGED(g->r->file, g->address, err, "a link that ends early");
    SQ_TRY(SQ_HDF5_ROOM(g->r, &copy, (size_t)length + 1, err));
    memcpy(copy, bytes, (size_t)length);
    *ret = copy;
    return 0;
}

/* A file's name and a path in it, each with its NUL, behind a byte of flags. */
static int parse_external(struct reading *g, const char *text, size_t length, struct sq_hdf5_link *link, struct squall_error *err)
{
    const char *const file = length ? text + 1 : text;
    const size_t file_length = strlen(file);
    SQ_CLEANUP_TEXT struct sq_text words = SQ_TEXT_INIT;
    sq_text_add(&words, "an external link to ");
    sq_text_add_visible(&words, file);
    sq_text_add(&words, ":");
    sq_text_add_visible(&words, file_length + 2 < length ? file + file_length + 1 : "");
    sq_text_add(&words, " is not followed");
    char *copy;
    if (words.failed)
        return sq_error_memory(err, words.length);
    SQ_TRY(SQ_HDF5_ROOM(g->r, &copy, words.length + 1, err));
    memcpy(copy, sq_text_string(&words), words.length);
    link->elsewhere = copy;
    return 0;
}

static int parse_link(struct reading *g, const uint8_t *bytes, size_t size_bytes, struct sq_hdf5_link *link, struct squall_error *err)
{
    enum { NAME_SIZE = 3, HAS_ORDER = 1 << 2, HAS_TYPE = 1 << 3, HAS_CHARSET = 1 << 4 };
    struct sq_cursor c = sq_cursor(bytes, size_bytes);
    const unsigned version = sq_u8(&c), flags = sq_u8(&c), type = flags & HAS_TYPE ? sq_u8(&c) : LINK_HARD;
    *link = (struct sq_hdf5_link){.address = SQ_HDF5_NOWHERE, .order = flags & HAS_ORDER ? sq_u64le(&c) : 0};
    if (flags & HAS_CHARSET)
        sq_u8(&c);
    if (version != 1 && !sq_cursor_failed(&c))
        return SQ_HDF5_UNSUPPORTED(g->r->file, g->address, err, "a link of version %u", version);
    const uint64_t length = sq_uint_le(&c, 1u << (flags & NAME_SIZE));
    SQ_TRY(take_text(g, &c, length, &link->name, err));
    if (strlen(link->name) != length)
        return SQ_HDF5_DAMAGED(g->r->file, g->address, err, "a link with a NUL in its name");
    if (type == LINK_HARD) {
        link->address = sq_hdf5_take_address(&c, g->r->file);
        return link->address != SQ_HDF5_NOWHERE && !sq_cursor_failed(&c)
                   ? 0
                   : SQ_HDF5_DAMAGED(g->r->file, g->address, err, "a hard link that leads nowhere");
    }
    const size_t value_bytes = sq_u16le(&c);
    const char *value;
    SQ_TRY(take_text(g, &c, value_bytes, &value, err));
    if (type == LINK_SOFT)
        link->path = value;
    else if (type == LINK_EXTERNAL)
        return parse_external(g, value, value_bytes, link, err);
    else
        link->elsewhere = "a link of a kind that its writer's program made up";
    return 0;
}

static int add_parsed(struct reading *g, const uint8_t *bytes, size_t size_bytes, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_link link;
    int status = parse_link(g, bytes, size_bytes, &link, &reason);
    return add_or_refuse(g, status, &link, &reason, err);
}

/* ---- links in a fractal heap ---- */

static int visit_dense(void *user, const uint8_t *record, size_t size_bytes, struct squall_error *err)
{
    struct reading *g = user;
    struct squall_error reason = SQUALL_ERROR_INIT;
    const uint8_t *bytes;
    size_t found_bytes;
    (void)size_bytes;
    int status = sq_hdf5_heap_get(g->r, g->heap, record + HASH_BYTES, ID_BYTES, &bytes, &found_bytes, &reason);
    return status ? g->refusal->refuse(g->refusal->user, status, &reason, err) : add_parsed(g, bytes, found_bytes, err);
}

/* IV.A.2.c */
static int read_link_info(struct reading *g, const struct sq_hdf5_message *m, struct squall_error *err)
{
    enum { TRACKS_ORDER = 1 };
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    sq_u8(&c);
    g->links->tracks_order = sq_u8(&c) & TRACKS_ORDER;
    if (g->links->tracks_order)
        sq_take(&c, 8);
    const uint64_t heap = sq_hdf5_take_address(&c, g->r->file), index = sq_hdf5_take_address(&c, g->r->file);
    if (sq_cursor_failed(&c))
        return SQ_HDF5_DAMAGED(g->r->file, m->address, err, "a message about links that ends early");
    if (heap == SQ_HDF5_NOWHERE)
        return 0;
    g->address = heap;
    SQ_TRY(sq_hdf5_heap_open(g->r, heap, &g->heap, err));
    return sq_hdf5_btree_walk(g->r, index, NAME_INDEX, HASH_BYTES + ID_BYTES, visit_dense, g, err);
}

/* ---- symbol tables ---- */

static int visit_symbol(void *user, const struct sq_hdf5_symbol *symbol, struct squall_error *err)
{
    struct reading *g = user;
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_hdf5_link link = {.address = symbol->address};
    int status = sq_hdf5_local_heap_text(g->r, &g->names, symbol->name_at, &link.name, &reason);
    if (!status && symbol->address == SQ_HDF5_NOWHERE)
        status = sq_hdf5_local_heap_text(g->r, &g->names, symbol->text_at, &link.path, &reason);
    return add_or_refuse(g, status, &link, &reason, err);
}

/* IV.A.2.r */
static int read_symbol_table(struct reading *g, const struct sq_hdf5_message *m, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(m->bytes, m->size_bytes);
    const uint64_t tree = sq_hdf5_take_address(&c, g->r->file), heap = sq_hdf5_take_address(&c, g->r->file);
    if (sq_cursor_failed(&c))
        return SQ_HDF5_DAMAGED(g->r->file, m->address, err, "a symbol table message that ends early");
    g->address = heap;
    SQ_TRY(sq_hdf5_local_heap_read(g->r, heap, &g->names, err));
    return sq_hdf5_symbols_walk(g->r, tree, visit_symbol, g, err);
}

/* ---- all of them ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct sq_hdf5_link *)a)->name, ((const struct sq_hdf5_link *)b)->name);
}

static int compare_orders(const void *a, const void *b)
{
    const struct sq_hdf5_link *x = a, *y = b;
    return x->order != y->order ? (x->order < y->order ? -1 : 1) : compare_names(a, b);
}

int sq_hdf5_links_read(struct sq_hdf5_reader *r, const struct sq_hdf5_object *group, const struct sq_hdf5_refusal *refusal,
                       struct sq_hdf5_links *ret, struct squall_error *err)
{
    struct sq_hdf5_links links = {0};
    struct reading g = {.r = r, .links = &links, .refusal = refusal};
    for (size_t i = 0; i < group->count; i++) {
        const struct sq_hdf5_message *m = &group->messages[i];
        g.address = m->address;
        if (m->type == SQ_HDF5_LINK)
            SQ_TRY(add_parsed(&g, m->bytes, m->size_bytes, err));
        else if (m->type == SQ_HDF5_LINK_INFO)
            SQ_TRY(read_link_info(&g, m, err));
        else if (m->type == SQ_HDF5_SYMBOL_TABLE)
            SQ_TRY(read_symbol_table(&g, m, err));
    }
    if (links.count)
        qsort(links.list, links.count, sizeof *links.list, links.tracks_order ? compare_orders : compare_names);
    *ret = links;
    return 0;
}

static int compare_pointers(const void *a, const void *b)
{
    return compare_names(*(const struct sq_hdf5_link *const *)a, *(const struct sq_hdf5_link *const *)b);
}

int sq_hdf5_links_find(struct sq_hdf5_reader *r, struct sq_hdf5_links *links, const char *name, size_t length,
                       const struct sq_hdf5_link **ret, struct squall_error *err)
{
    size_t low = 0, high = links->count;
    if (!links->by_name && links->count) {
        SQ_TRY(SQ_HDF5_ROOM(r, &links->by_name, links->count, err));
        for (size_t i = 0; i < links->count; i++)
            links->by_name[i] = &links->list[i];
        qsort(links->by_name, links->count, sizeof *links->by_name, compare_pointers);
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strncmp(links->by_name[middle]->name, name, length);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low < links->count && !strncmp(links->by_name[low]->name, name, length) && !links->by_name[low]->name[length]
               ? links->by_name[low]
               : NULL;
    return 0;
}
