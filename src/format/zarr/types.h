/*
 * Data types as both versions spell them. Version 3 has names, with settings where one needs them; version 2 has numpy's type strings, and lists
 * of fields for structures. What is wanted of either is the same: what an element is in memory, what numpy calls it, which way its bytes lie.
 */
#ifndef SQ_FORMAT_ZARR_TYPES_H
#define SQ_FORMAT_ZARR_TYPES_H

#include "array/dtype.h"
#include "base/json.h"
#include <stdbool.h>

struct sq_zarr_field;

struct sq_zarr_type {
    struct sq_dtype dtype;
    bool big_endian;              /* v2: what the type string says; v3: of a structure's fields, what its "bytes" codec says */
    bool zero_ended;              /* of SQUALL_RAW: bytes that end at their length or at the last that is not NUL, as numpy's S */
    char *name;                   /* for people: "float32", "<U5", "datetime64[10ms]", "bytes", numpy's own for structures */
    char *numpy;                  /* struct squall_array_info's numpy_type */
    struct sq_zarr_field *fields; /* of a structure, packed in this order; else NULL */
    size_t field_count;
};

struct sq_zarr_field {
    char *name;
    uint32_t count; /* v2 has fields that are small arrays: of how many elements */
    char *shape;    /* … and their shape, "(2, 3, )"; else NULL */
    struct sq_zarr_type type;
};

/* No element that anyone writes comes near. */
enum { SQ_ZARR_ELEMENT_LIMIT_BYTES = 1 << 20 };

/*
 * SQUALL_EUNSUPPORTED "unsupported data type NAME": then ret has its name, and nothing else. *ret: sq_zarr_type_done whatever comes of it.
 *
 * codecs         the array's, where its structures' byte order is said
 * object_filter  id of the array's first filter, which says what |O is; NULL: none
 */
int sq_zarr_type_parse_v3(const struct sq_json *type, const struct sq_json *codecs, struct sq_zarr_type *ret,
                          struct squall_error *err) SQUALL_CHECK;
int sq_zarr_type_parse_v2(const struct sq_json *type, const char *object_filter, struct sq_zarr_type *ret,
                          struct squall_error *err) SQUALL_CHECK;
void sq_zarr_type_done(struct sq_zarr_type *type);

/* An extension of v3 is a name, or an object with one; NULL: it has none. */
const char *sq_zarr_extension_name(const struct sq_json *extension);
/* A member of its configuration; NULL: not there. */
const struct sq_json *sq_zarr_configured(const struct sq_json *extension, const char *key);

#endif
