/* See attribute_json.h. */
#include "format/hdf5/attribute_json.h"
#include "base/memory.h"
#include "format/hdf5/heap.h"
#include "format/hdf5/reference.h"
#include <string.h>

enum { VALUE_COST = 64 }; /* of a JSON value in memory */

static int value_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                      struct squall_error *err);

static int made(struct sq_json *value, struct sq_json **ret, struct squall_error *err)
{
    if (!value)
        return sq_error_memory(err, VALUE_COST);
    *ret = value;
    return 0;
}

/* ---- texts ---- */

/* How many bytes the UTF-8 character at `at` has (RFC 3629); 0: it is none. */
static size_t utf8_length(const uint8_t *at, size_t left)
{
    const size_t length = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (at[i] >> 6 != 2)
            return 0;
    const bool is_short = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);  /* fewer bytes would have done */
    const bool is_none = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90); /* surrogates; above U+10FFFF */
    return is_short || is_none ? 0 : length;
}

static bool is_utf8(const uint8_t *text, size_t length)
{
    for (size_t at = 0, step; at < length; at += step)
        if ((step = utf8_length(text + at, length - at)) == 0)
            return false;
    return true;
}

static int text_json(const uint8_t *text, size_t length, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text out = SQ_TEXT_INIT;
    if (is_utf8(text, length))
        sq_text_add_bytes(&out, text, length);
    else
        for (size_t i = 0; i < length; i++) {
            const uint8_t two[] = {(uint8_t)(0xc0 | text[i] >> 6), (uint8_t)(0x80 | (text[i] & 0x3f))};
            sq_text_add_bytes(&out, text[i] < 0x80 ? &text[i] : two, text[i] < 0x80 ? 1 : 2);
        }
    return out.failed ? sq_error_memory(err, length) : made(sq_json_new_string(sq_text_string(&out)), ret, err);
}

/* Without its padding; what begins with NUL is empty. */
static size_t text_length(enum sq_hdf5_padding padding, const uint8_t *text, size_t size_bytes)
{
    size_t length = strnlen((const char *)text, size_bytes);
    while (padding == SQ_HDF5_SPACE_PADDED && length && text[length - 1] == ' ')
        length--;
    return length;
}

/* ---- what lies elsewhere: sequences, references ---- */

static int sequence_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                         struct squall_error *err)
{
    const uint8_t *bytes = NULL;
    size_t count;
    SQ_TRY(sq_hdf5_sequence_get(&tree->reader, stored, type->size_bytes, type->base->size_bytes, &bytes, &count, err));
    if (type->is_string) {
        SQ_TRY(sq_hdf5_spend(&tree->reader, count, err));
        return text_json(bytes, count ? text_length(type->padding, bytes, count) : 0, ret, err);
    }
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    for (size_t i = 0; list && i < count; i++) {
        struct sq_json *value;
        SQ_TRY(value_json(tree, type->base, bytes + i * type->base->size_bytes, &value, err));
        if (sq_json_append(list, value))
            return sq_error_memory(err, VALUE_COST);
    }
    return made(sq_json_share(list), ret, err);
}

static int reference_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                          struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_hdf5_reference_text(&tree->reader, tree, type, stored, &text, err));
    return text.length ? text_json((const uint8_t *)text.data, text.length, ret, err) : made(sq_json_new_null(), ret, err);
}

/* ---- values ---- */

/* A list for each dimension, from `dim` on. *stored: the first element; moved behind the last. */
static int list_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, unsigned rank, const uint64_t *shape,
                     const uint8_t **stored, struct sq_json **ret, struct squall_error *err)
{
    if (rank == 0) {
        const uint8_t *at = *stored;
        *stored += type->size_bytes;
        return value_json(tree, type, at, ret, err);
    }
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    SQ_TRY(sq_hdf5_spend(&tree->reader, VALUE_COST, err));
    for (uint64_t i = 0; list && i < shape[0]; i++) {
        struct sq_json *value;
        SQ_TRY(list_json(tree, type, rank - 1, shape + 1, stored, &value, err));
        if (sq_json_append(list, value))
            return sq_error_memory(err, VALUE_COST);
    }
    return made(sq_json_share(list), ret, err);
}

static int compound_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                         struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *object = sq_json_new_object();
    for (unsigned i = 0; object && i < type->member_count; i++) {
        struct sq_json *value;
        SQ_TRY(value_json(tree, type->members[i].type, stored + type->members[i].offset_bytes, &value, err));
        if (sq_json_set(object, type->members[i].name, value))
            return sq_error_memory(err, VALUE_COST);
    }
    return made(sq_json_share(object), ret, err);
}

/* Two numbers. */
static int complex_json(const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret, struct squall_error *err)
{
    const struct sq_hdf5_type *part = type->base ? type->base : type->members[0].type;
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    if (sq_json_append(list, sq_json_new_double(sq_hdf5_type_float(part, stored))) ||
        sq_json_append(list, sq_json_new_double(sq_hdf5_type_float(part, stored + part->size_bytes))))
        return sq_error_memory(err, VALUE_COST);
    return made(sq_json_share(list), ret, err);
}

static int opaque_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                       struct squall_error *err)
{
    if (sq_hdf5_type_is_time(type)) {
        struct sq_cursor c = sq_cursor(stored, type->size_bytes);
        return made(sq_json_new_int((int64_t)sq_u64le(&c)), ret, err);
    }
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    SQ_TRY(sq_hdf5_spend(&tree->reader, (uint64_t)VALUE_COST * type->size_bytes, err));
    for (uint32_t i = 0; i < type->size_bytes; i++)
        if (sq_json_append(list, sq_json_new_int(stored[i])))
            return sq_error_memory(err, VALUE_COST);
    return made(sq_json_share(list), ret, err);
}

static int value_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_type *type, const uint8_t *stored, struct sq_json **ret,
                      struct squall_error *err)
{
    SQ_TRY(sq_hdf5_spend(&tree->reader, VALUE_COST, err));
    if (sq_hdf5_type_is_complex(type))
        return complex_json(type, stored, ret, err);
    switch (type->class) {
    case SQ_HDF5_INTEGER:
    case SQ_HDF5_BITFIELD:
    case SQ_HDF5_ENUM: {
        const uint64_t value = sq_hdf5_type_integer(type, stored);
        if (sq_hdf5_type_is_bool(type))
            return made(sq_json_new_bool(value), ret, err);
        return made(type->is_signed ? sq_json_new_int((int64_t)value) : sq_json_new_uint(value), ret, err);
    }
    case SQ_HDF5_FLOAT:
        return made(sq_json_new_double(sq_hdf5_type_float(type, stored)), ret, err);
    case SQ_HDF5_STRING:
        SQ_TRY(sq_hdf5_spend(&tree->reader, type->size_bytes, err));
        return text_json(stored, text_length(type->padding, stored, type->size_bytes), ret, err);
    case SQ_HDF5_OPAQUE:
        return opaque_json(tree, type, stored, ret, err);
    case SQ_HDF5_COMPOUND:
        return compound_json(tree, type, stored, ret, err);
    case SQ_HDF5_REFERENCE:
        return reference_json(tree, type, stored, ret, err);
    case SQ_HDF5_VLEN:
        return sequence_json(tree, type, stored, ret, err);
    case SQ_HDF5_ARRAY:
        return list_json(tree, type->base, type->rank, type->shape, &stored, ret, err);
    case SQ_HDF5_TIME:
    case SQ_HDF5_COMPLEX:
        break; /* refused before */
    }
    return sq_error(err, SQUALL_EUNSUPPORTED, "unsupported data type of an attribute");
}

/* ---- attributes ---- */

/* What an element is once array types around it are dimensions. */
static const struct sq_hdf5_type *element_of(const struct sq_hdf5_type *type)
{
    while (type->class == SQ_HDF5_ARRAY)
        type = type->base;
    return type;
}

/* Does JSON tell all there is? */
static bool is_told(const struct sq_hdf5_type *element)
{
    return element->class == SQ_HDF5_STRING || element->class == SQ_HDF5_VLEN || element->class == SQ_HDF5_REFERENCE;
}

int sq_hdf5_attribute_json(struct sq_hdf5_tree *tree, const struct sq_hdf5_attribute *attribute, struct sq_json **ret,
                           struct sq_text *numpy_type, struct squall_error *err)
{
    const struct sq_hdf5_type *type = attribute->type, *element = element_of(type);
    const struct sq_hdf5_space *space = &attribute->space;
    const bool is_text = type->class == SQ_HDF5_STRING || (type->class == SQ_HDF5_VLEN && type->is_string);
    const unsigned rank = space->is_null ? 1 : space->rank == 1 && space->shape[0] == 1 ? 0 : space->rank;
    const uint8_t *stored = attribute->value;
    SQ_CLEANUP_TEXT struct sq_text numpy = SQ_TEXT_INIT;
    int status = sq_hdf5_type_numpy(element, &numpy, err);
    if (status)
        return sq_error_within(err, status, "%s", sq_source_name(tree->reader.file->source));
    if (space->element_count == 0 && is_text)
        return made(sq_json_new_string(""), ret, err);
    SQ_TRY(list_json(tree, type, rank, space->is_null ? &space->element_count : space->shape, &stored, ret, err));
    if (!is_told(element))
        sq_text_add(numpy_type, sq_text_string(&numpy));
    return 0;
}

static int tell_one(struct sq_hdf5_tree *tree, const struct sq_hdf5_attribute *a, struct sq_json *values, struct sq_json *types,
                    struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text type = SQ_TEXT_INIT;
    struct sq_json *value;
    SQ_TRY(sq_hdf5_attribute_json(tree, a, &value, &type, err));
    if (sq_json_set(values, a->name, value) || type.failed || (type.length && sq_json_set_string(types, a->name, sq_text_string(&type))))
        return sq_error_memory(err, VALUE_COST);
    return 0;
}

int sq_hdf5_attributes_json(struct sq_hdf5_tree *tree, const char *name, const struct sq_hdf5_attributes *attributes, char **ret,
                            char **ret_types, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *values = sq_json_new_object();
    SQ_CLEANUP_JSON struct sq_json *types = sq_json_new_object();
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_CLEANUP_TEXT struct sq_text type_text = SQ_TEXT_INIT;
    if (!values || !types)
        return sq_error_memory(err, VALUE_COST);
    for (size_t i = 0; i < attributes->count; i++) {
        const struct sq_hdf5_attribute *a = &attributes->list[i];
        struct squall_error reason = SQUALL_ERROR_INIT;
        int status = tell_one(tree, a, values, types, &reason);
        if (status)
            SQ_TRY(sq_hdf5_tree_leave_out(tree, status, &reason, a->name, name, err));
    }
    SQ_TRY(sq_json_write(values, false, &text, err));
    SQ_TRY(sq_json_write(types, false, &type_text, err));
    char *values_text = sq_text_release(&text), *types_text = sq_text_release(&type_text);
    if (!values_text || !types_text) {
        sq_free(values_text);
        sq_free(types_text);
        return sq_error_memory(err, VALUE_COST);
    }
    *ret = values_text;
    *ret_types = types_text;
    return 0;
}
