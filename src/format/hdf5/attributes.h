/* Attributes of an object, wherever they are kept (messages, a fractal heap), in one list. */
#ifndef SQ_FORMAT_HDF5_ATTRIBUTES_H
#define SQ_FORMAT_HDF5_ATTRIBUTES_H

#include "format/hdf5/datatype.h"
#include "format/hdf5/links.h"

struct sq_hdf5_attribute {
    const char *name;
    const struct sq_hdf5_type *type;
    struct sq_hdf5_space space;
    const uint8_t *value; /* as it is stored */
    size_t size_bytes;
    uint32_t order; /* of creation */
};

struct sq_hdf5_attributes {
    struct sq_hdf5_attribute *list; /* by creation where that is tracked, else as the file has them */
    size_t count, capacity;
};

int sq_hdf5_attributes_read(struct sq_hdf5_reader *r, const struct sq_hdf5_object *object, const struct sq_hdf5_refusal *refusal,
                            struct sq_hdf5_attributes *ret, struct squall_error *err) SQUALL_CHECK;

#endif
