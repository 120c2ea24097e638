/* Memory for large results. The system hands out fresh pages slowly, so that what was freed is kept a while for the next result. */
#ifndef SQUALL_MEMORY_H
#define SQUALL_MEMORY_H

#include "squall/context.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * size_bytes, uninitialised, aligned to a page, in huge pages where the system has them. NULL: out of memory. squall_memory_free, before the
 * context's end.
 */
void *squall_memory_alloc(squall_context *ctx, size_t size_bytes);
/*
 * size_bytes as given to squall_memory_alloc; NULL p is accepted. Up to a quarter of the context's memory limit stays with the context for some
 * seconds, of more than four blocks 256 MiB; the system may take it at any time it needs memory.
 */
void squall_memory_free(squall_context *ctx, void *p, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
