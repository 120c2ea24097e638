/* See store.h: a file of a store, published whole, and the folders that it needs. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "store/store.h"
#include "sys/file.h"
#include <string.h>

enum sq_durability sq_store_durability(const struct squall_store_options *options)
{
    switch (options ? options->durability : SQUALL_DURABILITY_NONE) {
    case SQUALL_DURABILITY_FULL:
        return SQ_DURABILITY_FULL;
    case SQUALL_DURABILITY_DATA:
        return SQ_DURABILITY_DATA;
    default:
        return SQ_DURABILITY_NONE;
    }
}

typedef int visit_folder(const char *path, struct squall_error *err);

/* Each folder on the way from base to path, neither of them included, outermost first. */
static int each_folder_between(const char *base, const char *path, visit_folder *visit, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = sq_strdup(path);
    if (!folder)
        return sq_error_memory(err, strlen(path));
    for (char *slash = folder + strlen(base) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        SQ_TRY(visit(folder, err));
    }
    return 0;
}

int sq_store_publish(const char *base, const char *path, const void *bytes, size_t size_bytes, enum sq_durability durability,
                     struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = sq_atomic_write(path, bytes, size_bytes, durability, &reason);
    if (status == SQUALL_ENOTFOUND) { /* the first chunk of its folder */
        SQ_TRY(each_folder_between(base, path, sq_folder_make, err));
        status = sq_atomic_write(path, bytes, size_bytes, durability, &reason);
    }
    if (status && err)
        *err = reason;
    if (status || durability != SQ_DURABILITY_FULL)
        return status;
    SQ_TRY(sq_folder_sync(base, err));
    return each_folder_between(base, path, sq_folder_sync, err);
}
