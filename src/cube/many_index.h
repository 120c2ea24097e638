/*
 * What was found in the headers of many files, kept in a folder from one opening of them to the next: of each file that agreed with the first
 * one its identity, its length, the coordinate's values, and how long its chunks are. One file holds it for all of them. It is never trusted: of another
 * version or key, damaged or cut off it is as if it were not there, and what cannot be written is not kept. None of that is an error.
 */
#ifndef SQ_CUBE_MANY_INDEX_H
#define SQ_CUBE_MANY_INDEX_H

#include "base/hash.h"
#include "cube/many_order.h"
#include "sys/file.h"

struct sq_many_entry {
    struct sq_file_identity identity;
    uint64_t length;          /* of the dimension */
    struct sq_many_part part; /* of the coordinate, where there is one */
    uint64_t *chunks;         /* of each array that is joined, its chunk's length along the dimension; sq_free */
};

/* What entries of one index have in common. */
struct sq_many_index_shape {
    struct sq_hash key; /* of all that an entry's truth depends on, but for its file */
    bool counted;       /* there is a coordinate */
    size_t joined;      /* arrays that are */
};

struct sq_many_index;

/* NULL: there is none, or it cannot be used. sq_many_index_free. */
struct sq_many_index *sq_many_index_load(const char *folder, const struct sq_many_index_shape *shape);
void sq_many_index_free(struct sq_many_index *index);
/* The entry of a file, with copies; false: it is not known, or memory is out. */
bool sq_many_index_find(const struct sq_many_index *index, const struct sq_file_identity *identity, struct sq_many_entry *ret);
/* In the place of what there was; entries are put in order. The oldest indexes in the folder are removed where they take too much. */
void sq_many_index_save(const char *folder, const struct sq_many_index_shape *shape, struct sq_many_entry *entries, size_t count);

void sq_many_entry_done(struct sq_many_entry *entry);

#endif
