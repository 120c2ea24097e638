/* See flags.h. The chunks are uncompressed, little endian. */
#include "convert/flags.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <string.h>

/* The bytes are durable; the name is when the folder is synced. */
static int write_element(const char *store, const char *array, uint64_t init, const uint8_t *bytes, size_t size, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &init);
    return path ? sq_atomic_write(path, bytes, size, SQ_DURABILITY_DATA, err) : sq_error_memory(err, strlen(store));
}

/* The elements of both arrays lie in one folder each. */
static int folder_of(const char *store, const char *array, char **ret, struct squall_error *err)
{
    const uint64_t any = 0;
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &any);
    if (!path || !(*ret = sq_path_folder(path)))
        return sq_error_memory(err, strlen(store));
    return sq_folder_make_durable(*ret, err);
}

int sq_flags_set(const char *store, const struct sq_flag *flags, size_t count, struct squall_error *err)
{
    static const uint8_t YES = 1;
    char *folder = NULL;
    SQ_TRY(folder_of(store, SQ_FLAG_COUNT, &folder, err));
    SQ_CLEANUP_FREE char *counts = folder;
    SQ_TRY(folder_of(store, SQ_FLAG_EXISTS, &folder, err));
    SQ_CLEANUP_FREE char *exist = folder;
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        for (int k = 0; k < 4; k++)
            bytes[k] = (uint8_t)(flags[i].field_count >> 8 * k);
        SQ_TRY(write_element(store, SQ_FLAG_COUNT, flags[i].init, bytes, sizeof bytes, err));
    }
    SQ_TRY(sq_folder_sync(counts, err));
    for (size_t i = 0; i < count; i++)
        if (flags[i].exists)
            SQ_TRY(write_element(store, SQ_FLAG_EXISTS, flags[i].init, &YES, sizeof YES, err));
    return sq_folder_sync(exist, err);
}

static int remove_durably(const char *store, const char *array, uint64_t init, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &init);
    SQ_CLEANUP_FREE char *folder = path ? sq_strndup(path, (size_t)(sq_path_name(path) - path)) : NULL;
    enum sq_file_kind kind;
    if (!folder)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return 0;
    SQ_TRY(sq_file_remove(path, err));
    return sq_folder_sync(folder, err);
}

int sq_flags_clear(const char *store, uint64_t init, struct squall_error *err)
{
    SQ_TRY(remove_durably(store, SQ_FLAG_EXISTS, init, err));
    return remove_durably(store, SQ_FLAG_COUNT, init, err);
}

/* Up to `size` bytes of an element's chunk; *ret_size 0 where it is not there. */
static int read_element(const char *store, const char *array, uint64_t init, uint8_t *dst, size_t size, size_t *ret_size,
                        struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &init);
    SQ_CLEANUP_FREE char *text = NULL;
    enum sq_file_kind kind;
    if (!path)
        return sq_error_memory(err, strlen(store));
    *ret_size = 0;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind != SQ_FILE_REGULAR)
        return 0;
    SQ_TRY(sq_file_read_all(path, 4096, &text, ret_size, err));
    memcpy(dst, text, *ret_size < size ? *ret_size : size);
    return 0;
}

int sq_flags_get(const char *store, uint64_t init, bool *ret_exists, uint32_t *ret_field_count, struct squall_error *err)
{
    uint8_t exists = 0, count[4] = {0};
    size_t exists_bytes, count_bytes;
    SQ_TRY(read_element(store, SQ_FLAG_EXISTS, init, &exists, 1, &exists_bytes, err));
    SQ_TRY(read_element(store, SQ_FLAG_COUNT, init, count, sizeof count, &count_bytes, err));
    *ret_exists = exists_bytes == 1 && exists == 1;
    *ret_field_count =
        count_bytes == 4 ? (uint32_t)count[0] | (uint32_t)count[1] << 8 | (uint32_t)count[2] << 16 | (uint32_t)count[3] << 24 : 0;
    return 0;
}
