/* For tests of Zarr stores: a folder of one's own, and files in it; what must succeed. */
#ifndef SQ_TESTS_SUPPORT_ZARR_FILES_H
#define SQ_TESTS_SUPPORT_ZARR_FILES_H

#include "base/json.h"
#include "base/memory.h"
#include "io/atomic_file.h"
#include "sys/file.h"
#include <stdlib.h>
#include <string.h>

static inline void must(int status, const struct squall_error *err)
{
    if (status)
        fail_msg("%d: %s", status, err->message);
}

static char test_folder[] = "/tmp/squall-test-zarr-XXXXXX";

static int make_test_folder(void **state)
{
    (void)state;
    return mkdtemp(test_folder) ? 0 : -1;
}

static int remove_test_folder(void **state)
{
    (void)state;
    return sq_tree_remove(test_folder, NULL);
}

/* The path of something in the test's folder; sq_free. */
static char *in_test_folder(const char *name)
{
    return sq_path_join(test_folder, name);
}

static void put_bytes(const char *name, const void *bytes, size_t size_bytes)
{
    SQ_CLEANUP_FREE char *path = in_test_folder(name);
    SQ_CLEANUP_FREE char *folder = sq_strndup(path, (size_t)(sq_path_name(path) - path) - 1);
    struct squall_error err = SQUALL_ERROR_INIT;
    must(sq_folder_make_durable(folder, &err), &err);
    must(sq_atomic_write(path, bytes, size_bytes, SQ_DURABILITY_NONE, &err), &err);
}

static void put_file(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static inline bool is_there(const char *name)
{
    SQ_CLEANUP_FREE char *path = in_test_folder(name);
    struct squall_error err = SQUALL_ERROR_INIT;
    bool exists;
    must(sq_file_exists(path, &exists, &err), &err);
    return exists;
}

/* sq_free */
static inline char *read_file(const char *name, size_t *ret_size)
{
    SQ_CLEANUP_FREE char *path = in_test_folder(name);
    struct squall_error err = SQUALL_ERROR_INIT;
    char *bytes = NULL;
    must(sq_file_read_all(path, 1 << 24, &bytes, ret_size, &err), &err);
    return bytes;
}

/* A document of a store, wherever that is; NULL: it is not there. sq_json_free. */
static inline struct sq_json *read_json(const char *store, const char *name)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(store, name);
    SQ_CLEANUP_FREE char *text = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    struct sq_json *v = NULL;
    size_t length;
    bool exists;
    must(sq_file_exists(path, &exists, &err), &err);
    if (!exists)
        return NULL;
    must(sq_file_read_all(path, 1 << 20, &text, &length, &err), &err);
    must(sq_json_parse(text, length, &v, &err), &err);
    return v;
}

#endif
