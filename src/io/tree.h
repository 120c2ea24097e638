/*
 * A tree of named byte objects, in which a store lies: a folder with its files, or a zip file with its members. A key is a path within it,
 * "t2m/c/0/1", "" for the tree itself; callers see to it that keys do not lead out (sq_tree_key_stays_inside).
 */
#ifndef SQ_IO_TREE_H
#define SQ_IO_TREE_H

#include "io/zip.h"

struct sq_tree;

/* *ret: sq_tree_close. A zip file stays open, and is read as it was when it was opened. Another file is SQUALL_EUNSUPPORTED. */
int sq_tree_open(const char *path, struct sq_tree **ret, struct squall_error *err) SQUALL_CHECK;
/* A folder, whatever is there: nothing is looked at. */
int sq_tree_open_folder(const char *path, struct sq_tree **ret, struct squall_error *err) SQUALL_CHECK;
void sq_tree_close(struct sq_tree *tree); /* NULL is accepted */

/* "FOLDER/KEY", which is the file; "FILE.zip: KEY". NULL: out of memory; sq_free. */
char *sq_tree_name(const struct sq_tree *tree, const char *key) __attribute__((warn_unused_result));
/* Parts between single slashes, none of them "." or ".."? */
bool sq_tree_key_stays_inside(const char *key);
/* What of the tree cannot be read, a line each: of zip files. */
const char *const *sq_tree_problems(const struct sq_tree *tree, size_t *ret_count);

int sq_tree_exists(const struct sq_tree *tree, const char *key, bool *ret, struct squall_error *err) SQUALL_CHECK;
/* An object whole, NUL-terminated (the NUL is not counted); *ret NULL where there is none. More than limit_bytes is SQUALL_ECORRUPT. sq_free. */
int sq_tree_read_all(const struct sq_tree *tree, const char *key, size_t limit_bytes, char **ret, size_t *ret_size,
                     struct squall_error *err) SQUALL_CHECK;

/* Are objects below the key? ret_identity tells folders apart, which several keys may lead to by links. */
int sq_tree_is_folder(const struct sq_tree *tree, const char *key, bool *ret, struct sq_file_identity *ret_identity,
                      struct squall_error *err) SQUALL_CHECK;
/* The names right below the key, sorted by bytes; sq_names_free. */
int sq_tree_list(const struct sq_tree *tree, const char *key, char ***ret_names, size_t *ret_count, struct squall_error *err) SQUALL_CHECK;
/* Bytes of what is stored below the key, but for hidden objects (".zarray") and those right below it that are called `except`. */
int sq_tree_stored_bytes(const struct sq_tree *tree, const char *key, const char *except, uint64_t *ret,
                         struct squall_error *err) SQUALL_CHECK;

struct sq_tree_place {
    char *name;                /* as sq_tree_name makes it; sq_free */
    bool absent;               /* from a zip file; whether a folder has a file of that name, opening it tells */
    struct sq_source *source;  /* the zip file, the tree's; NULL: name is a file */
    struct sq_zip_place place; /* in source */
};

/* Where an object lies: `key` below `folder`, which may be "". */
int sq_tree_locate(const struct sq_tree *tree, const char *folder, const char *key, struct sq_tree_place *ret,
                   struct squall_error *err) SQUALL_CHECK;

#endif
