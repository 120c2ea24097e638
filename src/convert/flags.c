/* See flags.h. The chunks are uncompressed, little endian. */
#include "convert/flags.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "io/atomic_file.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <assert.h>
#include <string.h>

enum { COUNT_BYTES = 4 };

/* The bytes are durable; the name is when the folder is synced. */
static int write_chunk(struct sq_store store, const char *array, uint64_t number, const uint8_t *bytes, size_t size,
                       struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &number);
    return path ? sq_atomic_write(path, bytes, size, SQ_DURABILITY_DATA, err) : sq_error_memory(err, strlen(store.folder));
}

/* All chunks of an array lie in one folder. */
static int folder_of(struct sq_store store, const char *array, char **ret, struct squall_error *err)
{
    const uint64_t any = 0;
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &any);
    if (!path || !(*ret = sq_path_folder(path)))
        return sq_error_memory(err, strlen(store.folder));
    return sq_folder_make_durable(*ret, err);
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* The chunk's elements as bytes, 0 beyond `count`; false: there is nothing to write. */
static bool pack(const struct sq_flag *flags, size_t count, bool counts, uint8_t *bytes, size_t size)
{
    bool any = false;
    memset(bytes, 0, size);
    for (size_t i = 0; i < count; i++) {
        any = any || (counts ? flags[i].field_count > 0 : flags[i].exists);
        if (!counts)
            bytes[i] = flags[i].exists;
        for (size_t k = 0; k < COUNT_BYTES && counts; k++)
            bytes[COUNT_BYTES * i + k] = (uint8_t)(flags[i].field_count >> 8 * k);
    }
    return any;
}

static int set_array(struct sq_store store, bool counts, uint64_t chunk, uint64_t first, const struct sq_flag *flags, size_t count,
                     struct squall_error *err)
{
    const char *array = counts ? SQ_FLAG_COUNT : SQ_FLAG_EXISTS;
    const size_t size = (size_t)chunk * (counts ? COUNT_BYTES : 1);
    char *made = NULL;
    assert(chunk > 0);
    SQ_TRY(folder_of(store, array, &made, err));
    SQ_CLEANUP_FREE char *folder = made;
    SQ_CLEANUP_FREE uint8_t *bytes = sq_alloc(size, 1);
    if (!bytes)
        return sq_error_memory(err, size);
    for (size_t i = 0; i < count; i += least(chunk, count - i))
        if (pack(flags + i, least(chunk, count - i), counts, bytes, size))
            SQ_TRY(write_chunk(store, array, (first + i) / chunk, bytes, size, err));
    return sq_folder_sync(folder, err);
}

int sq_flags_set(struct sq_store store, uint64_t chunk, uint64_t first, const struct sq_flag *flags, size_t count, struct squall_error *err)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || flags[i].field_count > 0;
    if (!any)
        return 0;
    SQ_TRY(set_array(store, true, chunk, first, flags, count, err));
    return set_array(store, false, chunk, first, flags, count, err);
}

static int zeros(struct sq_store store, const char *array, uint64_t number, size_t size, struct squall_error *err)
{
    SQ_CLEANUP_FREE uint8_t *bytes = sq_alloc_zero(size, 1);
    return bytes ? write_chunk(store, array, number, bytes, size, err) : sq_error_memory(err, size);
}

static int prepare_array(struct sq_store store, bool counts, uint64_t chunk, uint64_t chunk_count, struct squall_error *err)
{
    const char *array = counts ? SQ_FLAG_COUNT : SQ_FLAG_EXISTS;
    char *made = NULL, **names;
    size_t name_count;
    SQ_TRY(folder_of(store, array, &made, err));
    SQ_CLEANUP_FREE char *folder = made;
    SQ_CLEANUP_FREE bool *is_there = sq_alloc_zero((size_t)chunk_count + 1, sizeof *is_there);
    if (!is_there)
        return sq_error_memory(err, chunk_count);
    SQ_TRY(sq_folder_list(folder, &names, &name_count, err));
    for (size_t i = 0; i < name_count; i++) {
        uint64_t number;
        if (sq_store_is_index(names[i], &number) && number < chunk_count)
            is_there[number] = true;
    }
    sq_names_free(names, name_count);
    bool any = false;
    for (uint64_t i = 0; i < chunk_count; i++) {
        if (!is_there[i])
            SQ_TRY(zeros(store, array, i, (size_t)chunk * (counts ? COUNT_BYTES : 1), err));
        any = any || !is_there[i];
    }
    return any ? sq_folder_sync(folder, err) : 0;
}

int sq_flags_prepare(struct sq_store store, uint64_t chunk, uint64_t count, struct squall_error *err)
{
    const uint64_t chunk_count = (count + chunk - 1) / chunk;
    if (store.zarr_format != 2)
        return 0;
    SQ_TRY(prepare_array(store, true, chunk, chunk_count, err));
    return prepare_array(store, false, chunk, chunk_count, err);
}

/* size: of a chunk. */
static int remove_durably(struct sq_store store, const char *array, uint64_t number, size_t size, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &number);
    SQ_CLEANUP_FREE char *folder = path ? sq_strndup(path, (size_t)(sq_path_name(path) - path)) : NULL;
    enum sq_file_kind kind;
    if (!folder)
        return sq_error_memory(err, strlen(store.folder));
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return 0;
    if (store.zarr_format == 2)
        SQ_TRY(zeros(store, array, number, size, err));
    else
        SQ_TRY(sq_file_remove(path, err));
    return sq_folder_sync(folder, err);
}

int sq_flags_clear(struct sq_store store, uint64_t chunk, uint64_t first, size_t count, struct squall_error *err)
{
    assert(chunk > 0);
    for (size_t i = 0; i < count; i += least(chunk, count - i)) {
        SQ_TRY(remove_durably(store, SQ_FLAG_EXISTS, (first + i) / chunk, (size_t)chunk, err));
        SQ_TRY(remove_durably(store, SQ_FLAG_COUNT, (first + i) / chunk, (size_t)chunk * COUNT_BYTES, err));
    }
    return 0;
}

/* *ret: the file's bytes if they are `size`, else NULL; sq_free. */
static int read_chunk(struct sq_store store, const char *array, uint64_t number, size_t size, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, 1, &number);
    struct squall_error failure = SQUALL_ERROR_INIT;
    size_t there = 0;
    *ret = NULL;
    if (!path)
        return sq_error_memory(err, strlen(store.folder));
    int status = sq_file_read_all(path, size, ret, &there, &failure);
    if (status == SQUALL_ENOTFOUND || status == SQUALL_EUNSUPPORTED || status == SQUALL_ECORRUPT) /* none, no file, or a longer one */
        return 0;
    if (status)
        return sq_error(err, status, "%s", failure.message);
    if (there != size) {
        sq_free(*ret);
        *ret = NULL;
    }
    return 0;
}

int sq_flags_get(struct sq_store store, uint64_t chunk, uint64_t first, struct sq_flag *ret, size_t count, struct squall_error *err)
{
    assert(chunk > 0);
    for (size_t i = 0; i < count; i += least(chunk, count - i)) {
        char *read = NULL;
        SQ_TRY(read_chunk(store, SQ_FLAG_EXISTS, (first + i) / chunk, (size_t)chunk, &read, err));
        SQ_CLEANUP_FREE char *exist = read;
        SQ_TRY(read_chunk(store, SQ_FLAG_COUNT, (first + i) / chunk, (size_t)chunk * COUNT_BYTES, &read, err));
        SQ_CLEANUP_FREE char *counts = read;
        for (size_t k = 0; k < least(chunk, count - i); k++) {
            uint32_t number = 0;
            for (size_t byte = 0; byte < COUNT_BYTES && counts; byte++)
                number |= (uint32_t)(uint8_t)counts[COUNT_BYTES * k + byte] << 8 * byte;
            ret[i + k] = (struct sq_flag){number, exist && exist[k] == 1};
        }
    }
    return 0;
}
