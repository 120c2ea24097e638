/*
 * How elements as they are stored become the engine's: numbers in the machine's order, compounds packed, dimensions of an array type behind the
 * dataset's, references as paths. Where only the order of bytes differs, or nothing, the codecs do it.
 */
#ifndef SQ_FORMAT_HDF5_ELEMENTS_H
#define SQ_FORMAT_HDF5_ELEMENTS_H

#include "array/dtype.h"
#include "format/hdf5/tree.h"

struct sq_hdf5_move;

struct sq_hdf5_elements {
    struct sq_dtype dtype;  /* in memory: of what an array type is an array of */
    const char *numpy_type; /* of the same */
    const char *type_name;  /* for people */
    const char *enum_names; /* a JSON object, {"clear": 0}; NULL: no enumeration */
    unsigned inner_rank;    /* of an array type */
    const uint64_t *inner_shape;
    uint64_t inner_count;  /* elements in memory for each that is stored */
    uint32_t stored_bytes; /* of one that is stored, all of an array type */
    bool is_same;          /* stored bytes are the elements, but perhaps for their order: */
    bool big_endian;
    const struct sq_hdf5_move *moves; /* else how each is made */
    size_t move_count;
    bool varies;               /* some of it has no fixed size */
    const char *sequence_type; /* struct squall_array_info's */
    const struct sq_hdf5_type *type;
};

/* In r's memory. SQUALL_EUNSUPPORTED names a type that cannot be read. */
int sq_hdf5_elements_make(struct sq_hdf5_reader *r, const struct sq_hdf5_type *type, struct sq_hdf5_elements *ret,
                          struct squall_error *err) SQUALL_CHECK;
/* count stored elements (each of those of an array type counts) → as many in memory; of types with a fixed size. */
void sq_hdf5_elements_convert(const struct sq_hdf5_elements *e, const uint8_t *src, size_t count, void *dst);
/*
 * The same of types whose size varies: what dst points at afterwards is malloc'ed and the caller's; nothing is on failure.
 * r: a reader of its own, whose memory takes what was read of the heaps.
 */
int sq_hdf5_elements_fetch(const struct sq_hdf5_elements *e, struct sq_hdf5_reader *r, const struct sq_hdf5_tree *tree, const uint8_t *src,
                           size_t count, struct squall_bytes *dst, struct squall_error *err) SQUALL_CHECK;

#endif
