/* B-trees of version 2 (III.A.2), and of version 1 with a group's members (III.A.1): each walked once, in order. */
#ifndef SQ_FORMAT_HDF5_BTREE_H
#define SQ_FORMAT_HDF5_BTREE_H

#include "format/hdf5/file.h"

/* A non-zero return ends the walk and is returned. record lives as long as the reader. */
typedef int sq_hdf5_visit_record(void *user, const uint8_t *record, size_t size_bytes, struct squall_error *err);

/* Visit the records of a tree whose type is this one; they have at least `record_bytes`. */
int sq_hdf5_btree_walk(struct sq_hdf5_reader *r, uint64_t address, unsigned type, size_t record_bytes, sq_hdf5_visit_record *visit,
                       void *user, struct squall_error *err) SQUALL_CHECK;

/* A symbol table entry (III.C). */
struct sq_hdf5_symbol {
    uint64_t name_at; /* in the local heap */
    uint64_t address; /* of the object's header; SQ_HDF5_NOWHERE: a soft link */
    uint64_t text_at; /* of a soft link: its path, in the local heap */
};
typedef int sq_hdf5_visit_symbol(void *user, const struct sq_hdf5_symbol *symbol, struct squall_error *err);

int sq_hdf5_symbols_walk(struct sq_hdf5_reader *r, uint64_t address, sq_hdf5_visit_symbol *visit, void *user,
                         struct squall_error *err) SQUALL_CHECK;

#endif
