/* What the files many*.c share while many files become one dataset; from outside: squall/many.h, cube/many.h. */
#ifndef SQ_CUBE_MANY_INTERNAL_H
#define SQ_CUBE_MANY_INTERNAL_H

#include "cube/many_compare.h"
#include "cube/many_index.h"
#include "cube/many_order.h"
#include "engine/array.h"
#include "squall/many.h"
#include <stdatomic.h>

struct sq_many_file {
    _Atomic(struct squall_dataset *) ds; /* NULL: not open yet */
    struct sq_drift drift;
    struct sq_many_entry entry;
    bool is_regular; /* entry.identity is that of a file */
    char *path;      /* from the root on, of one that comes late; NULL: it was opened */
};

struct sq_many {
    const struct squall_context *ctx;
    const char *const *paths; /* the caller's: while files are opened */
    size_t count;
    struct squall_many_options options;
    bool to_store;              /* sq_open_many_to_store */
    struct sq_many_file *files; /* as given */
    size_t *order;
    char *dim;
    bool new_dimension;
    const struct squall_array *coordinate; /* of the first file; NULL: none of numbers */
    struct sq_many_coordinate joined;
    struct squall_array *bounds;             /* of the coordinate, where they are counted as it is; NULL: they are read as they are */
    struct sq_many_coordinate joined_bounds; /* values NULL: they cannot be told */
    _Atomic uint64_t coordinate_bytes;       /* of the files that were looked at */
    const char *index_folder;                /* NULL: no index is kept */
    struct sq_many_index_shape shape;
    struct sq_many_index *index; /* while files are opened; NULL: there is none */
};

/* ---- many_files.c ---- */

/* Is it read of every file, to be put behind the others'? What is not is the first file's, or in memory. */
bool sq_many_is_joined(const struct sq_many *m, const struct squall_array *first);
int sq_many_open_file(struct sq_many *m, size_t index, struct squall_error *err) SQUALL_CHECK;
/*
 * A group's dimensions may be others of the same names, and stores have no arrays in groups: of a file that becomes a store they leave it, and go
 * into ds, to be named; NULL: nowhere.
 */
int sq_many_set_aside_groups(const struct sq_many *m, struct squall_dataset *file, struct squall_dataset *ds,
                             struct squall_error *err) SQUALL_CHECK;
/* Each file is looked at, or known from the index. */
int sq_many_take_files(struct sq_many *m, struct squall_error *err) SQUALL_CHECK;
/* For struct sq_join: the array of a file that comes late; user: the struct sq_many. */
int sq_many_open_late(void *user, size_t part, const char *name, struct squall_array **ret, struct squall_error *err) SQUALL_CHECK;
/* Count so many values of the index-th file among what is in memory at once: SQUALL_ENOMEM where that is too much. */
int sq_many_reserve(struct sq_many *m, size_t index, uint64_t length, struct squall_error *err) SQUALL_CHECK;

/* ---- many_bounds.c ---- */

/* Where times are counted otherwise than in their files, so are their bounds, which have no units of their own (CF conventions, 7.1). */
int sq_many_join_bounds(struct sq_many *m, struct sq_drift *drift, struct squall_error *err) SQUALL_CHECK;

#endif
