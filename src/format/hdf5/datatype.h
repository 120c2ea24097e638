/* Element types (IV.A.2.d, the datatype message) and shapes (IV.A.2.b, the dataspace message). */
#ifndef SQ_FORMAT_HDF5_DATATYPE_H
#define SQ_FORMAT_HDF5_DATATYPE_H

#include "base/text.h"
#include "format/hdf5/object.h"
#include "squall/array.h"

enum sq_hdf5_class {
    SQ_HDF5_INTEGER,
    SQ_HDF5_FLOAT,
    SQ_HDF5_TIME,
    SQ_HDF5_STRING,
    SQ_HDF5_BITFIELD,
    SQ_HDF5_OPAQUE,
    SQ_HDF5_COMPOUND,
    SQ_HDF5_REFERENCE,
    SQ_HDF5_ENUM,
    SQ_HDF5_VLEN,
    SQ_HDF5_ARRAY,
    SQ_HDF5_COMPLEX,
};

enum sq_hdf5_padding { SQ_HDF5_NUL_TERMINATED, SQ_HDF5_NUL_PADDED, SQ_HDF5_SPACE_PADDED };

/* Of references: the kind of the datatype message, and since version 4 of it. */
enum sq_hdf5_reference { SQ_HDF5_TO_OBJECT, SQ_HDF5_TO_REGION, SQ_HDF5_TO_OBJECT_2, SQ_HDF5_TO_REGION_2, SQ_HDF5_TO_ATTRIBUTE };

struct sq_hdf5_member {
    const char *name;
    uint32_t offset_bytes; /* in the compound */
    const struct sq_hdf5_type *type;
};

/* Lives as long as the reader it was parsed with. */
struct sq_hdf5_type {
    enum sq_hdf5_class class;
    uint32_t size_bytes; /* of an element as it is stored; variable length: of what stands for it */
    bool big_endian;
    bool is_signed;               /* integers */
    bool is_vax;                  /* floats in VAX's order of bytes */
    bool is_string;               /* variable length: text, not a sequence */
    bool is_utf8;                 /* strings */
    enum sq_hdf5_padding padding; /* strings */
    enum sq_hdf5_reference reference;
    uint16_t bit_offset, precision; /* numbers and bitfields: which bits of the bytes count */
    struct {
        uint8_t sign_at, exponent_at, exponent_bits, mantissa_at, mantissa_bits;
        uint8_t normalization; /* 0: none, 1: the mantissa's first bit is always set and stored, 2: and not stored (IEEE) */
        uint32_t bias;
    } layout;                        /* floats */
    const struct sq_hdf5_type *base; /* enum, variable length, array, complex: of what */
    struct sq_hdf5_member *members;  /* compound */
    unsigned member_count;           /* compound, enum */
    const char **names;              /* enum */
    const uint8_t *values;           /* enum: member_count of the base type, packed */
    unsigned rank;                   /* array */
    const uint64_t *shape;
    uint64_t element_count; /* array: product of its shape; else 1 */
    const char *tag;        /* opaque; "" without one */
};

/* A message, or a part of one, in a reader's memory. address: where the bytes are, for messages. */
int sq_hdf5_type_parse(struct sq_hdf5_reader *r, const uint8_t *bytes, size_t size_bytes, uint64_t address, const struct sq_hdf5_type **ret,
                       struct squall_error *err) SQUALL_CHECK;

/*
 * What an element, decoded, is to numpy: "<f4", "|S5", "|b1", "[('a', '<i4'), ('b', '<f8', (3,))]"; "O" where its size varies and of
 * references. Always the little-endian form; integers and floats of odd sizes are the next wider ones. Of an array type as an element of a
 * dataset: "('<i4', (3,))". SQUALL_EUNSUPPORTED: numpy has nothing like it.
 */
int sq_hdf5_type_numpy(const struct sq_hdf5_type *type, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;
/* The same where sizes vary: 'text' and {'sequence': '<f4'} in place of "O", "[('a', '<i4'), ('s', 'text')]"; see struct squall_array_info. */
int sq_hdf5_type_parts(const struct sq_hdf5_type *type, struct sq_text *out, struct squall_error *err) SQUALL_CHECK;
/* For people: "float32", "enum(int8)", "string(5)", "compound {a: int32, b: float64[3]}". */
void sq_hdf5_type_describe(const struct sq_hdf5_type *type, struct sq_text *out);
/* h5py's bool: an enum of one byte whose names are FALSE (0) and TRUE (1). */
bool sq_hdf5_type_is_bool(const struct sq_hdf5_type *type);
/* numpy's datetime64 or timedelta64, as h5py stores them: opaque, with a tag that says it. */
bool sq_hdf5_type_is_time(const struct sq_hdf5_type *type);
/* Two floats of IEEE's, 4 or 8 bytes each: a complex number, or as h5py has them, a compound of r and i. base is of the former only. */
bool sq_hdf5_type_is_complex(const struct sq_hdf5_type *type);
/* Is the float one of IEEE's that machines have: 2, 4 or 8 bytes? */
bool sq_hdf5_type_is_ieee(const struct sq_hdf5_type *type);
/* A stored integer, enum or bitfield of at most 8 bytes, sign-extended. */
uint64_t sq_hdf5_type_integer(const struct sq_hdf5_type *type, const uint8_t *stored);
/* A stored float, rounded to a double where it has more bits. */
double sq_hdf5_type_float(const struct sq_hdf5_type *type, const uint8_t *stored);

struct sq_hdf5_space {
    bool is_null; /* no elements, not even a scalar */
    unsigned rank;
    const uint64_t *shape;
    const uint64_t *maximum; /* SQ_HDF5_NOWHERE: unlimited */
    uint64_t element_count;
};

int sq_hdf5_space_parse(struct sq_hdf5_reader *r, const uint8_t *bytes, size_t size_bytes, uint64_t address, struct sq_hdf5_space *ret,
                        struct squall_error *err) SQUALL_CHECK;

#endif
