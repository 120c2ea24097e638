/*
 * Allocation: thin names over malloc that check the product, release by cleanup attribute, and let a test fail the n-th
 * allocation. All memory of the library goes through here.
 */
#ifndef SQ_BASE_MEMORY_H
#define SQ_BASE_MEMORY_H

#include "squall/error.h"
#include <stddef.h>
#include <stdint.h>

/* count × size bytes, uninitialised; NULL where the product overflows or memory is out. Free with sq_free. */
void *sq_alloc(size_t count, size_t size_bytes) __attribute__((malloc, warn_unused_result));
void *sq_alloc_zero(size_t count, size_t size_bytes) __attribute__((malloc, warn_unused_result));
void *sq_resize(void *old, size_t count, size_t size_bytes) __attribute__((warn_unused_result));
void sq_free(void *p);
char *sq_strdup(const char *text) __attribute__((malloc, warn_unused_result));
char *sq_strndup(const char *text, size_t length) __attribute__((malloc, warn_unused_result));
/* printf into fresh memory */
__attribute__((format(printf, 1, 2), warn_unused_result)) char *sq_format(const char *format, ...);

/*
 * Make room for `need` elements in a growing array: *data (element size_bytes) has *capacity of them. Doubles, so that
 * appending is linear. On failure nothing changes.
 */
int sq_grow(void **data, size_t *capacity, size_t need, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
#define SQ_GROW(data, capacity, need, err) sq_grow((void **)&(data), &(capacity), (need), sizeof *(data), (err))

/* For large buffers that are written once and reused: page-aligned, huge pages where the system has them, uninitialised. */
void *sq_pages_alloc(size_t size_bytes) __attribute__((malloc, warn_unused_result));
void sq_pages_free(void *p, size_t size_bytes);
size_t sq_pages_rounded(size_t size_bytes); /* what sq_pages_alloc makes of it */
/* Nobody needs what is in them: the system may take the pages, until they are written to again. */
void sq_pages_offer(void *p, size_t size_bytes);

static inline void sq_free_cleanup(void *p)
{
    sq_free(*(void **)p);
}
#define SQ_CLEANUP_FREE __attribute__((cleanup(sq_free_cleanup)))

/* Tests only: the allocation after `after` further ones fails, once; negative: never. */
void sq_fail_allocation(long after);
/* Tests only: how many allocations there were since the process began. */
unsigned long sq_allocation_count(void);

#endif
