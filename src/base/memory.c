/* See memory.h. */
#include "base/memory.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long allocations_until_failure = -1;
static atomic_ulong allocation_count;

void sq_fail_allocation(long after)
{
    atomic_store(&allocations_until_failure, after);
}

unsigned long sq_allocation_count(void)
{
    return atomic_load(&allocation_count);
}

static int must_fail(void)
{
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    if (atomic_load_explicit(&allocations_until_failure, memory_order_relaxed) < 0)
        return 0;
    return atomic_fetch_sub(&allocations_until_failure, 1) == 0;
}

void *sq_alloc(size_t count, size_t size_bytes)
{
    size_t total;
    if (!sq_mul_size(count, size_bytes, &total) || must_fail())
        return NULL;
    return malloc(total ? total : 1);
}

void *sq_alloc_zero(size_t count, size_t size_bytes)
{
    if (must_fail())
        return NULL;
    return calloc(count ? count : 1, size_bytes ? size_bytes : 1);
}

void *sq_resize(void *old, size_t count, size_t size_bytes)
{
    size_t total;
    if (!sq_mul_size(count, size_bytes, &total) || must_fail())
        return NULL;
    return realloc(old, total ? total : 1);
}

void sq_free(void *p)
{
    free(p);
}

char *sq_strndup(const char *text, size_t length)
{
    char *copy = sq_alloc(length + 1, 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

char *sq_strdup(const char *text)
{
    return sq_strndup(text, strlen(text));
}

char *sq_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : sq_alloc((size_t)length + 1, 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

int sq_grow(void **data, size_t *capacity, size_t need, size_t size_bytes, struct squall_error *err)
{
    if (need <= *capacity)
        return 0;
    size_t wanted = *capacity < 8 ? 8 : *capacity * 2;
    if (wanted < need)
        wanted = need;
    void *grown = sq_resize(*data, wanted, size_bytes);
    if (!grown)
        return sq_error_memory(err, (unsigned long long)wanted * size_bytes);
    *data = grown;
    *capacity = wanted;
    return 0;
}

enum { HUGE_PAGE_BYTES = 2 << 20 };

/* Whole huge pages for large buffers, else the alignment that the kernel needs for one is lost. */
size_t sq_pages_rounded(size_t size_bytes)
{
    if (size_bytes == 0)
        size_bytes = 1;
    size_t page = size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 4096;
    return (size_bytes + page - 1) / page * page;
}

void *sq_pages_alloc(size_t size_bytes)
{
    if (must_fail() || size_bytes > SIZE_MAX - 2 * (size_t)HUGE_PAGE_BYTES)
        return NULL;
    size_t rounded = sq_pages_rounded(size_bytes);
    size_t slack = rounded >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    uint8_t *raw = mmap(NULL, rounded + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    if (!slack)
        return raw;
    uintptr_t aligned = ((uintptr_t)raw + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
    size_t before = aligned - (uintptr_t)raw;
    if (before)
        munmap(raw, before);
    if (slack > before)
        munmap((void *)(aligned + rounded), slack - before);
    madvise((void *)aligned, rounded, MADV_HUGEPAGE); /* a hint: no failure matters */
    return (void *)aligned;
}

void sq_pages_free(void *p, size_t size_bytes)
{
    if (p)
        munmap(p, sq_pages_rounded(size_bytes));
}

void sq_pages_offer(void *p, size_t size_bytes)
{
    madvise(p, sq_pages_rounded(size_bytes), MADV_FREE); /* a hint: no failure matters */
}
