/* Memory for many small things that are freed together: metadata, names, table rows. */
#ifndef SQ_BASE_ARENA_H
#define SQ_BASE_ARENA_H

#include <stddef.h>

struct sq_arena;

struct sq_arena *sq_arena_new(void); /* NULL: out of memory */
void sq_arena_free(struct sq_arena *arena);
void *sq_arena_alloc(struct sq_arena *arena, size_t size_bytes)
    __attribute__((warn_unused_result)); /* 16-byte aligned, zeroed; NULL: out of memory */
char *sq_arena_strdup(struct sq_arena *arena, const char *text) __attribute__((warn_unused_result));
void *sq_arena_copy(struct sq_arena *arena, const void *bytes, size_t size_bytes) __attribute__((warn_unused_result));

#endif
