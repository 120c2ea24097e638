/* A folder of its own for a test, and small files in it. */
#ifndef SQ_TESTS_SUPPORT_FOLDER_H
#define SQ_TESTS_SUPPORT_FOLDER_H

#include "support/unit.h"
#include "sys/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka set-up and tear-down: *state is the folder's path. */
static int folder_make(void **state)
{
    char *path = strdup("/tmp/squall-test-XXXXXX");
    *state = path && mkdtemp(path) ? path : NULL;
    return *state ? 0 : -1;
}

static int folder_remove(void **state)
{
    int status = sq_tree_remove(*state, NULL);
    free(*state);
    return status;
}

/* "folder/name" in a buffer that the next call but three uses again. */
static const char *in_folder(const char *folder, const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void file_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

#endif
