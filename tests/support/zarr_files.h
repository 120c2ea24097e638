/* For tests of Zarr stores: a folder of one's own, and files in it. */
#ifndef SQ_TESTS_SUPPORT_ZARR_FILES_H
#define SQ_TESTS_SUPPORT_ZARR_FILES_H

#include "base/memory.h"
#include "io/atomic_file.h"
#include "sys/file.h"
#include <stdlib.h>
#include <string.h>

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
    if (sq_folder_make_durable(folder, &err) || sq_atomic_write(path, bytes, size_bytes, SQ_DURABILITY_NONE, &err))
        fail_msg("%s", err.message);
}

static void put_file(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

#endif
