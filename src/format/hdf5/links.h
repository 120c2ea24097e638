/* What a group holds: its links, wherever they are kept (messages, a symbol table, a fractal heap), in one list. */
#ifndef SQ_FORMAT_HDF5_LINKS_H
#define SQ_FORMAT_HDF5_LINKS_H

#include "format/hdf5/object.h"

struct sq_hdf5_link {
    const char *name;
    uint64_t address;      /* of the object's header; SQ_HDF5_NOWHERE: one of the next two */
    const char *path;      /* soft: where it leads, from the group or, with a slash in front, from the root */
    const char *elsewhere; /* why it leads nowhere in this file: "an external link to b.h5:/x" */
    uint64_t order;        /* of creation */
};

struct sq_hdf5_links {
    struct sq_hdf5_link *list; /* by creation where the group tracks that, else by name */
    size_t count, capacity;
    bool tracks_order;
    const struct sq_hdf5_link **by_name; /* NULL: not sorted yet */
};

/* Told of a part that cannot be read, and why; returns 0: go on without it. */
struct sq_hdf5_refusal {
    int (*refuse)(void *user, int status, const struct squall_error *reason, struct squall_error *err);
    void *user;
};

bool sq_hdf5_object_is_group(const struct sq_hdf5_object *object);
int sq_hdf5_links_read(struct sq_hdf5_reader *r, const struct sq_hdf5_object *group, const struct sq_hdf5_refusal *refusal,
                       struct sq_hdf5_links *ret, struct squall_error *err) SQUALL_CHECK;
/* *ret: NULL where the group has no such member. */
int sq_hdf5_links_find(struct sq_hdf5_reader *r, struct sq_hdf5_links *links, const char *name, size_t length,
                       const struct sq_hdf5_link **ret, struct squall_error *err) SQUALL_CHECK;

#endif
