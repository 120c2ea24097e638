/* Object headers (IV.A.1): the messages that say what a group, dataset or type is. */
#ifndef SQ_FORMAT_HDF5_OBJECT_H
#define SQ_FORMAT_HDF5_OBJECT_H

#include "format/hdf5/file.h"

/* IV.A.2 */
enum sq_hdf5_message_type {
    SQ_HDF5_SPACE = 0x0001,
    SQ_HDF5_LINK_INFO = 0x0002,
    SQ_HDF5_DATATYPE = 0x0003,
    SQ_HDF5_FILL_OLD = 0x0004,
    SQ_HDF5_FILL = 0x0005,
    SQ_HDF5_LINK = 0x0006,
    SQ_HDF5_EXTERNAL = 0x0007,
    SQ_HDF5_LAYOUT = 0x0008,
    SQ_HDF5_FILTERS = 0x000b,
    SQ_HDF5_ATTRIBUTE = 0x000c,
    SQ_HDF5_SHARED_TABLE = 0x000f,
    SQ_HDF5_CONTINUATION = 0x0010,
    SQ_HDF5_SYMBOL_TABLE = 0x0011,
    SQ_HDF5_DRIVER = 0x0014,
    SQ_HDF5_ATTRIBUTE_INFO = 0x0015,
    SQ_HDF5_CACHE_IMAGE = 0x0018,
};

struct sq_hdf5_message {
    uint16_t type;
    uint8_t flags;
    uint16_t order; /* of an attribute: which one it was when it was made, where the header tracks that */
    const uint8_t *bytes;
    size_t size_bytes;
    uint64_t address; /* of the bytes, for messages; of one in a heap, the heap's */
};

struct sq_hdf5_object {
    uint64_t address;
    bool tracks_order; /* of attributes */
    struct sq_hdf5_message *messages;
    size_t count;
};

/* Shared messages are in their places. The object lives as long as the reader. */
int sq_hdf5_object_read(struct sq_hdf5_reader *r, uint64_t address, struct sq_hdf5_object *ret, struct squall_error *err) SQUALL_CHECK;
/* The first one of a type; NULL: there is none. */
const struct sq_hdf5_message *sq_hdf5_object_find(const struct sq_hdf5_object *object, unsigned type);

/* A shared message's body says where the message is (IV.A.2, "Shared Message"): m's bytes become that one's. m->type: what it must be. */
int sq_hdf5_resolve_shared(struct sq_hdf5_reader *r, struct sq_hdf5_message *m, struct squall_error *err) SQUALL_CHECK;
/* The same for a message of m->type in the file's heap of those, by its id of 8 bytes. */
int sq_hdf5_shared_get(struct sq_hdf5_reader *r, struct sq_hdf5_message *m, const uint8_t *id, struct squall_error *err) SQUALL_CHECK;

#endif
