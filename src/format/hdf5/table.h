/* A table from addresses to what is known of them. */
#ifndef SQ_FORMAT_HDF5_TABLE_H
#define SQ_FORMAT_HDF5_TABLE_H

#include "squall/error.h"
#include <stddef.h>
#include <stdint.h>

struct sq_hdf5_table {
    struct sq_hdf5_table_row *rows; /* capacity of them, a power of two, at most half in use */
    size_t count, capacity;
};

struct sq_hdf5_table_row {
    uint64_t key;
    void *value; /* NULL: the row is free */
};

void *sq_hdf5_table_get(const struct sq_hdf5_table *t, uint64_t key); /* NULL: not there */
/* Add, or put in the place of what is there; value: not NULL, and not the table's. */
int sq_hdf5_table_put(struct sq_hdf5_table *t, uint64_t key, void *value, struct squall_error *err) SQUALL_CHECK;
void sq_hdf5_table_done(struct sq_hdf5_table *t);

#endif
