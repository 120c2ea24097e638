/* See bytes.h. */
#include "array/bytes.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <string.h>

int sq_bytes_copy(const void *data, size_t size_bytes, struct squall_bytes *ret, struct squall_error *err)
{
    char *copy = size_bytes < SIZE_MAX ? sq_alloc(size_bytes + 1, 1) : NULL;
    if (!copy)
        return sq_error_memory(err, size_bytes);
    if (size_bytes)
        memcpy(copy, data, size_bytes);
    copy[size_bytes] = 0;
    *ret = (struct squall_bytes){copy, size_bytes};
    return 0;
}

bool sq_bytes_equal(const struct squall_bytes *a, const struct squall_bytes *b)
{
    return a->size_bytes == b->size_bytes && (a->size_bytes == 0 || memcmp(a->data, b->data, a->size_bytes) == 0);
}

void sq_bytes_free(struct squall_bytes *elements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sq_free(elements[i].data);
}
