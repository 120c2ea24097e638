/* See chunk_cache.h. Some dozens of entries, looked through one after the other. */
#include "engine/chunk_cache.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <stdatomic.h>
#include <string.h>

enum { ENTRY_COUNT = 256 };

struct entry {
    struct sq_cache_key key;
    void *data; /* NULL: free */
    size_t size_bytes, capacity;
    uint64_t last_use;
    unsigned pins;
};

struct sq_chunk_cache {
    atomic_flag busy;
    size_t limit_bytes, held_bytes;
    uint64_t clock;
    unsigned used; /* entries from here on never held anything */
    struct entry entries[ENTRY_COUNT];
};

static bool try_enter(struct sq_chunk_cache *c)
{
    return !atomic_flag_test_and_set_explicit(&c->busy, memory_order_acquire);
}

static void leave(struct sq_chunk_cache *c)
{
    atomic_flag_clear_explicit(&c->busy, memory_order_release);
}

struct sq_chunk_cache *sq_chunk_cache_new(size_t limit_bytes)
{
    struct sq_chunk_cache *c = sq_alloc_zero(1, sizeof *c);
    if (c) {
        c->limit_bytes = limit_bytes;
        atomic_flag_clear(&c->busy);
    }
    return c;
}

void sq_chunk_cache_free(struct sq_chunk_cache *c)
{
    for (unsigned i = 0; c && i < c->used; i++)
        sq_pages_free(c->entries[i].data, c->entries[i].capacity);
    sq_free(c);
}

static bool same_key(const struct sq_cache_key *a, const struct sq_cache_key *b)
{
    return a->offset == b->offset && a->decoded_id == b->decoded_id && sq_file_identity_same(&a->file, &b->file);
}

static struct entry *find(struct sq_chunk_cache *c, const struct sq_cache_key *key)
{
    for (unsigned i = 0; i < c->used; i++)
        if (c->entries[i].data && same_key(&c->entries[i].key, key))
            return &c->entries[i];
    return NULL;
}

const void *sq_chunk_cache_pin(struct sq_chunk_cache *c, const struct sq_cache_key *key, size_t size_bytes)
{
    const void *data = NULL;
    if (!c || !try_enter(c))
        return NULL;
    struct entry *e = find(c, key);
    if (e && e->size_bytes == size_bytes) {
        e->pins++;
        e->last_use = ++c->clock;
        data = e->data;
    }
    leave(c);
    return data;
}

void sq_chunk_cache_unpin(struct sq_chunk_cache *c, const void *data)
{
    while (!try_enter(c)) /* held for a look through the entries, and never across a fork: only a pinning thread comes here */
        ;
    for (unsigned i = 0; i < c->used; i++)
        if (c->entries[i].data == data)
            c->entries[i].pins--;
    leave(c);
}

/* The entry that has been unused for longest and that nobody reads; NULL: none. */
static struct entry *oldest(struct sq_chunk_cache *c)
{
    struct entry *found = NULL;
    for (unsigned i = 0; i < c->used; i++) {
        struct entry *e = &c->entries[i];
        if (e->data && e->pins == 0 && (!found || e->last_use < found->last_use))
            found = e;
    }
    return found;
}

static struct entry *free_entry(struct sq_chunk_cache *c)
{
    for (unsigned i = 0; i < c->used; i++)
        if (!c->entries[i].data)
            return &c->entries[i];
    return c->used < ENTRY_COUNT ? &c->entries[c->used++] : NULL;
}

/* Take out what is oldest until there is room; the last buffer taken out is left in *spare. */
static struct entry *make_room(struct sq_chunk_cache *c, size_t capacity, void **spare, size_t *spare_capacity)
{
    struct entry *place = free_entry(c);
    while (!place || c->held_bytes + capacity > c->limit_bytes) {
        struct entry *e = oldest(c);
        if (!e)
            return NULL;
        sq_pages_free(*spare, *spare_capacity);
        *spare = e->data;
        *spare_capacity = e->capacity;
        c->held_bytes -= e->capacity;
        e->data = NULL;
        if (!place)
            place = e;
    }
    return place;
}

/*
 * A file that was written a moment ago may yet be replaced by one with its inode and its size, and within one tick of the file system's clock: nothing
 * would tell the two apart. Its reader has it open, so that the other one gets a later time than now.
 */
static bool is_settled(const struct sq_file_identity *file)
{
    static const int64_t TICKS_NS = 30 * 1000 * 1000; /* Linux: at most 10 ms each */
    return sq_clock_now_ns() - file->mtime_ns > TICKS_NS;
}

void sq_chunk_cache_give(struct sq_chunk_cache *c, const struct sq_cache_key *key, size_t size_bytes, void **buffer, size_t *capacity)
{
    void *spare = NULL;
    size_t spare_capacity = 0;
    if (!c || *capacity > c->limit_bytes || !is_settled(&key->file) || !try_enter(c))
        return;
    struct entry *place = find(c, key) ? NULL : make_room(c, *capacity, &spare, &spare_capacity);
    if (place) {
        *place = (struct entry){.key = *key, .data = *buffer, .size_bytes = size_bytes, .capacity = *capacity, .last_use = ++c->clock};
        c->held_bytes += *capacity;
        *buffer = spare;
        *capacity = spare_capacity;
    } else {
        sq_pages_free(spare, spare_capacity);
    }
    leave(c);
}
