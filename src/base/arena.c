/* See arena.h. Blocks double up to a limit; whole blocks are freed at the end. */
#include "base/arena.h"
#include "base/memory.h"
#include <stdint.h>
#include <string.h>

enum { FIRST_BLOCK_BYTES = 1024, LARGEST_BLOCK_BYTES = 1 << 20, ALIGNMENT = 16 };

struct block {
    struct block *next;
    size_t capacity, used;
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

struct sq_arena {
    struct block *blocks; /* newest first */
};

struct sq_arena *sq_arena_new(void)
{
    return sq_alloc_zero(1, sizeof(struct sq_arena));
}

void sq_arena_free(struct sq_arena *arena)
{
    if (!arena)
        return;
    for (struct block *b = arena->blocks; b;) {
        struct block *next = b->next;
        sq_free(b);
        b = next;
    }
    sq_free(arena);
}

static struct block *add_block(struct sq_arena *arena, size_t need)
{
    size_t capacity = arena->blocks ? arena->blocks->capacity * 2 : FIRST_BLOCK_BYTES;
    if (capacity > LARGEST_BLOCK_BYTES)
        capacity = LARGEST_BLOCK_BYTES;
    if (capacity < need)
        capacity = need;
    struct block *b = capacity > SIZE_MAX - sizeof *b ? NULL : sq_alloc(1, sizeof *b + capacity);
    if (!b)
        return NULL;
    b->next = arena->blocks;
    b->capacity = capacity;
    b->used = 0;
    arena->blocks = b;
    return b;
}

void *sq_arena_alloc(struct sq_arena *arena, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    size_t need = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block *b = arena->blocks;
    if (!b || b->capacity - b->used < need)
        b = add_block(arena, need);
    if (!b)
        return NULL;
    void *p = b->bytes + b->used;
    b->used += need;
    memset(p, 0, need);
    return p;
}

void *sq_arena_copy(struct sq_arena *arena, const void *bytes, size_t size_bytes)
{
    void *copy = sq_arena_alloc(arena, size_bytes);
    if (copy && size_bytes)
        memcpy(copy, bytes, size_bytes);
    return copy;
}

char *sq_arena_strdup(struct sq_arena *arena, const char *text)
{
    return sq_arena_copy(arena, text, strlen(text) + 1);
}
