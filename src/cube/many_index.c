/*
 * See many_index.h. A file: magic, version, key, count, the entries in order of their identities, and a hash of all of it. Numbers have their least
 * byte first; values are as in memory, so that the machine's order of bytes is part of the version.
 */
#include "cube/many_index.h"
#include "array/dtype.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "sys/clock.h"
#include <stdlib.h>
#include <string.h>

static const char MAGIC[8] = "squallix";
static const uint32_t VERSION = 1, SAME_ORDER = 0x01020304;
static const uint32_t NO_TEXT = UINT32_MAX;
enum { HASH_BYTES = 16, HEAD_BYTES = 8 + 4 + 4 + HASH_BYTES + 8, LEAST_ENTRY_BYTES = 48 };
/* Of one index, and of all in a folder. */
enum { LIMIT_BYTES = 64 << 20, FOLDER_LIMIT_BYTES = 256 << 20 };
static const char SUFFIX[] = ".index";

/* An entry as it lies in the file. */
struct raw {
    struct sq_file_identity identity;
    uint64_t length;
    enum squall_type type;
    const uint8_t *units, *calendar, *values, *chunks;
    uint32_t unit_bytes, calendar_bytes; /* NO_TEXT: there is none */
};

struct sq_many_index {
    char *bytes;
    struct raw *entries;
    size_t count, joined;
    bool counted;
};

void sq_many_entry_done(struct sq_many_entry *entry)
{
    sq_many_part_done(&entry->part);
    sq_free(entry->chunks);
    entry->chunks = NULL;
}

static int compare_identities(const struct sq_file_identity *a, const struct sq_file_identity *b)
{
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* NULL: out of memory. sq_free. */
static char *path_of(const char *folder, const struct sq_many_index_shape *shape)
{
    char name[SQ_HASH_TEXT_BYTES];
    sq_hash_text(shape->key, name);
    return sq_format("%s/%s%s", folder, name, SUFFIX);
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

static struct sq_hash take_hash(struct sq_cursor *c)
{
    const uint64_t high = sq_u64le(c);
    return (struct sq_hash){high, sq_u64le(c)};
}

static bool same_hash(struct sq_hash a, struct sq_hash b)
{
    return a.high == b.high && a.low == b.low;
}

static const uint8_t *take_text(struct sq_cursor *c, uint32_t *ret_bytes)
{
    *ret_bytes = sq_u32le(c);
    return sq_take(c, *ret_bytes == NO_TEXT ? 0 : *ret_bytes);
}

static void take_coordinate(struct sq_cursor *c, struct raw *ret)
{
    const unsigned type = sq_u8(c);
    if (type > SQUALL_FLOAT64 || !sq_many_is_countable_type((enum squall_type)type)) {
        c->end = NULL;
        return;
    }
    ret->type = (enum squall_type)type;
    ret->units = take_text(c, &ret->unit_bytes);
    ret->calendar = take_text(c, &ret->calendar_bytes);
    const size_t one = sq_type_size(ret->type);
    ret->values = sq_take(c, ret->length <= sq_cursor_left(c) / one ? (size_t)ret->length * one : SIZE_MAX);
}

/* Behind the last thing that is there the cursor fails. */
static void take_entry(struct sq_cursor *c, const struct sq_many_index *index, struct raw *ret)
{
    *ret = (struct raw){0};
    ret->identity.device = sq_u64le(c);
    ret->identity.inode = sq_u64le(c);
    ret->identity.size_bytes = sq_u64le(c);
    ret->identity.mtime_ns = (int64_t)sq_u64le(c);
    ret->identity.ctime_ns = (int64_t)sq_u64le(c);
    ret->length = sq_u64le(c);
    if (index->counted)
        take_coordinate(c, ret);
    ret->chunks = sq_take(c, index->joined * sizeof(uint64_t));
}

static bool take_all(struct sq_many_index *index, struct sq_cursor *c, const struct sq_many_index_shape *shape)
{
    const uint8_t *magic = sq_take(c, sizeof MAGIC);
    const uint32_t version = sq_u32le(c), order = sq_u32le(c);
    const struct sq_hash key = take_hash(c);
    const uint64_t count = sq_u64le(c);
    if (sq_cursor_failed(c) || memcmp(magic, MAGIC, sizeof MAGIC) != 0 || version != VERSION || order != SAME_ORDER ||
        !same_hash(key, shape->key) || count == 0 || count > sq_cursor_left(c) / LEAST_ENTRY_BYTES)
        return false;
    if (!(index->entries = sq_alloc((size_t)count, sizeof *index->entries)))
        return false;
    for (; index->count < count; index->count++) {
        struct raw *e = &index->entries[index->count];
        take_entry(c, index, e);
        if (sq_cursor_failed(c) || e->length > INT64_MAX || (index->count > 0 && compare_identities(&e[-1].identity, &e->identity) >= 0))
            return false;
    }
    return sq_cursor_left(c) == 0;
}

/* Does it end with the hash of what comes before? */
static bool is_whole(const uint8_t *bytes, size_t size_bytes)
{
    struct sq_cursor end = sq_cursor(bytes + size_bytes - HASH_BYTES, HASH_BYTES);
    return same_hash(take_hash(&end), sq_hash_bytes(bytes, size_bytes - HASH_BYTES));
}

struct sq_many_index *sq_many_index_load(const char *folder, const struct sq_many_index_shape *shape)
{
    struct sq_many_index *index = sq_alloc_zero(1, sizeof *index);
    SQ_CLEANUP_FREE char *path = path_of(folder, shape);
    size_t size_bytes = 0;
    if (!index || !path || sq_file_read_all(path, LIMIT_BYTES, &index->bytes, &size_bytes, NULL)) {
        sq_free(index);
        return NULL;
    }
    index->joined = shape->joined;
    index->counted = shape->counted;
    struct sq_cursor c = sq_cursor(index->bytes, size_bytes < HASH_BYTES ? 0 : size_bytes - HASH_BYTES);
    if (size_bytes >= HEAD_BYTES + HASH_BYTES && is_whole((const uint8_t *)index->bytes, size_bytes) && take_all(index, &c, shape))
        return index;
    sq_many_index_free(index);
    return NULL;
}

void sq_many_index_free(struct sq_many_index *index)
{
    if (!index)
        return;
    sq_free(index->entries);
    sq_free(index->bytes);
    sq_free(index);
}

static bool copy_text(const uint8_t *text, uint32_t size_bytes, char **ret)
{
    if (size_bytes == NO_TEXT)
        return true;
    *ret = sq_strndup((const char *)text, size_bytes);
    return *ret != NULL;
}

static bool copy_coordinate(const struct raw *e, struct sq_many_part *ret)
{
    const size_t bytes = (size_t)e->length * sq_type_size(e->type);
    ret->type = e->type;
    ret->length = e->length;
    if (!(ret->values = sq_alloc(bytes + 1, 1)))
        return false;
    memcpy(ret->values, e->values, bytes);
    return copy_text(e->units, e->unit_bytes, &ret->units) && copy_text(e->calendar, e->calendar_bytes, &ret->calendar);
}

static int compare_to_entry(const void *identity, const void *entry)
{
    return compare_identities(identity, &((const struct raw *)entry)->identity);
}

bool sq_many_index_find(const struct sq_many_index *index, const struct sq_file_identity *identity, struct sq_many_entry *ret)
{
    const struct raw *e = bsearch(identity, index->entries, index->count, sizeof *e, compare_to_entry);
    if (!e || !sq_file_identity_same(&e->identity, identity) || e->identity.ctime_ns != identity->ctime_ns)
        return false;
    struct sq_many_entry found = {.identity = e->identity, .length = e->length};
    found.chunks = sq_alloc(index->joined, sizeof *found.chunks);
    if (!found.chunks || (index->counted && !copy_coordinate(e, &found.part))) {
        sq_many_entry_done(&found);
        return false;
    }
    struct sq_cursor c = sq_cursor(e->chunks, index->joined * sizeof *found.chunks);
    for (size_t i = 0; i < index->joined; i++)
        found.chunks[i] = sq_u64le(&c);
    *ret = found;
    return true;
}

/* ---- writing ---------------------------------------------------------------------------------------------------------------------- */

static void put(struct sq_text *out, uint64_t value, unsigned size_bytes)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size_bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    sq_text_add_bytes(out, bytes, size_bytes);
}

static void put_hash(struct sq_text *out, struct sq_hash hash)
{
    put(out, hash.high, 8);
    put(out, hash.low, 8);
}

static void put_text(struct sq_text *out, const char *text)
{
    put(out, text ? (uint32_t)strlen(text) : NO_TEXT, 4);
    sq_text_add(out, text ? text : "");
}

static void put_entry(struct sq_text *out, const struct sq_many_entry *e, const struct sq_many_index_shape *shape)
{
    const struct sq_file_identity *id = &e->identity;
    put(out, id->device, 8);
    put(out, id->inode, 8);
    put(out, id->size_bytes, 8);
    put(out, (uint64_t)id->mtime_ns, 8);
    put(out, (uint64_t)id->ctime_ns, 8);
    put(out, e->length, 8);
    if (shape->counted) {
        put(out, e->part.type, 1);
        put_text(out, e->part.units);
        put_text(out, e->part.calendar);
        sq_text_add_bytes(out, e->part.values, (size_t)e->length * sq_type_size(e->part.type));
    }
    for (size_t i = 0; i < shape->joined; i++)
        put(out, e->chunks[i], 8);
}

static int compare_entries(const void *a, const void *b)
{
    return compare_identities(&((const struct sq_many_entry *)a)->identity, &((const struct sq_many_entry *)b)->identity);
}

struct kept_file {
    char *path;
    struct sq_file_identity identity;
};

static int compare_ages(const void *a, const void *b)
{
    const int64_t x = ((const struct kept_file *)a)->identity.mtime_ns, y = ((const struct kept_file *)b)->identity.mtime_ns;
    return x < y ? -1 : x > y;
}

static bool is_index(const char *name)
{
    const size_t length = SQ_HASH_TEXT_BYTES - 1;
    return strspn(name, "0123456789abcdef") == length && !strcmp(name + length, SUFFIX);
}

/* The indexes among the names in a folder; what others left there half written is removed. ret: room for all; paths: sq_free. */
static void list_indexes(const char *folder, char *const *names, size_t name_count, struct kept_file *ret, size_t *ret_count)
{
    static const int64_t ABANDONED_NS = INT64_C(86400) * 1000000000;
    for (size_t i = 0; i < name_count; i++) {
        struct kept_file f = {.path = sq_path_join(folder, names[i])};
        enum sq_file_kind kind = SQ_FILE_NONE;
        if (f.path && sq_file_stat(f.path, &kind, &f.identity, NULL))
            kind = SQ_FILE_NONE;
        const bool abandoned = sq_atomic_is_temporary(names[i]) && sq_clock_now_ns() - f.identity.mtime_ns > ABANDONED_NS;
        if (kind == SQ_FILE_REGULAR && abandoned && !sq_file_remove(f.path, NULL))
            kind = SQ_FILE_NONE;
        if (kind == SQ_FILE_REGULAR && is_index(names[i]))
            ret[(*ret_count)++] = f;
        else
            sq_free(f.path);
    }
}

/* Remove the oldest until the others fit. */
static void make_room(const char *folder)
{
    char **names = NULL;
    size_t name_count = 0, count = 0;
    uint64_t total_bytes = 0;
    if (sq_folder_list(folder, &names, &name_count, NULL))
        return;
    SQ_CLEANUP_FREE struct kept_file *files = sq_alloc(name_count, sizeof *files);
    if (files) {
        list_indexes(folder, names, name_count, files, &count);
        qsort(files, count, sizeof *files, compare_ages);
    }
    for (size_t i = 0; i < count; i++)
        total_bytes += files[i].identity.size_bytes;
    for (size_t i = 0; i < count; i++) {
        if (total_bytes > FOLDER_LIMIT_BYTES && !sq_file_remove(files[i].path, NULL))
            total_bytes -= files[i].identity.size_bytes;
        sq_free(files[i].path);
    }
    sq_names_free(names, name_count);
}

/* The folder, and the one that it is in. */
static bool make_folder(const char *folder)
{
    SQ_CLEANUP_FREE char *above = sq_path_folder(folder);
    return above && (!sq_folder_make(folder, NULL) || (!sq_folder_make(above, NULL) && !sq_folder_make(folder, NULL)));
}

void sq_many_index_save(const char *folder, const struct sq_many_index_shape *shape, struct sq_many_entry *entries, size_t count)
{
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    SQ_CLEANUP_FREE char *path = path_of(folder, shape);
    qsort(entries, count, sizeof *entries, compare_entries);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || compare_entries(&entries[i - 1], &entries[i]) != 0;
    sq_text_add_bytes(&out, MAGIC, sizeof MAGIC);
    put(&out, VERSION, 4);
    sq_text_add_bytes(&out, &SAME_ORDER, 4);
    put_hash(&out, shape->key);
    put(&out, distinct, 8);
    for (size_t i = 0; i < count && out.length <= LIMIT_BYTES; i++)
        if (i == 0 || compare_entries(&entries[i - 1], &entries[i]) != 0)
            put_entry(&out, &entries[i], shape);
    put_hash(&out, sq_hash_bytes(out.data, out.length));
    if (out.failed || out.length > LIMIT_BYTES || !path || !make_folder(folder))
        return;
    if (!sq_atomic_write(path, out.data, out.length, SQ_DURABILITY_NONE, NULL))
        make_room(folder);
}
