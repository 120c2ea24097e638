/* What is in an HDF5 file: its groups, datasets and attributes, found in one walk. No data are read. One odd object costs only itself: it becomes a problem line. */
#ifndef SQ_FORMAT_HDF5_TREE_H
#define SQ_FORMAT_HDF5_TREE_H

#include "format/hdf5/attributes.h"

struct sq_hdf5_bytes {
    const uint8_t *bytes; /* NULL: there is no such message */
    size_t size_bytes;
    uint64_t address;
};

/* name, type and space live as long as the tree, the rest until the walk is done. */
struct sq_hdf5_dataset {
    const char *name; /* path within the file, "group/t2m" */
    size_t group;     /* that it is in */
    uint64_t address;
    const struct sq_hdf5_type *type; /* NULL where it could not be read: unsupported says why */
    struct sq_hdf5_space space;
    struct sq_hdf5_bytes layout, fill, fill_old, filters, external; /* messages as they are */
    struct sq_hdf5_attributes attributes;
    const char *unsupported; /* NULL, or why its data cannot be read. Lives as long as the tree, too */
};

struct sq_hdf5_group {
    const char *name; /* "" for the root */
    size_t parent;    /* the root's: itself */
    uint64_t address;
    struct sq_hdf5_attributes attributes;
};

struct sq_hdf5_tree {
    struct sq_hdf5_reader reader;     /* of the walk */
    struct sq_hdf5_reader kept;       /* what lives as long as the tree; both spend one budget */
    struct sq_hdf5_dataset *datasets; /* in their group's order: that of creation where it is tracked, else by name */
    size_t dataset_count, dataset_capacity;
    struct sq_hdf5_group *groups; /* each behind the one that it is in, the root first */
    size_t group_count, group_capacity;
    const char **problems; /* a line each */
    size_t problem_count, problem_capacity;
    struct sq_hdf5_table paths; /* of objects, by address */
};

/* *ret: sq_hdf5_tree_done, before the file's end. */
int sq_hdf5_tree_read(const struct sq_hdf5_file *file, struct sq_hdf5_tree *ret, struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_tree_done(struct sq_hdf5_tree *tree);
/* Nothing more is to be found out: what the walk read, and its lists of groups, datasets and problems, are freed. Paths stay. */
void sq_hdf5_tree_walk_done(struct sq_hdf5_tree *tree);

/*
 * `what` of the object `name` (NULL: the object itself) is not there for users, for this reason: a problem line, or, where the walk is over (no memory,
 * no budget), the reason itself as an error.
 */
int sq_hdf5_tree_leave_out(struct sq_hdf5_tree *tree, int status, const struct squall_error *reason, const char *what, const char *name,
                           struct squall_error *err) SQUALL_CHECK;

/* The path of the object whose header is at an address, "/group/t2m"; NULL: no link that was followed leads to it. */
const char *sq_hdf5_tree_path(const struct sq_hdf5_tree *tree, uint64_t address);

#endif
