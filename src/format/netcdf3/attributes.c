/* Attributes of NetCDF-3 files as JSON: text as UTF-8, numbers so that they read back in their type. */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/text.h"
#include "format/netcdf3/netcdf3.h"
#include <string.h>

/* NULL: out of memory. */
static struct sq_json *number(enum sq_netcdf3_type type, struct sq_cursor *c)
{
    float single;
    double wide;
    uint32_t bits;
    uint64_t wide_bits;
    switch (type) {
    case SQ_NETCDF3_BYTE:
        return sq_json_new_int((int8_t)sq_u8(c));
    case SQ_NETCDF3_SHORT:
        return sq_json_new_int((int16_t)sq_u16be(c));
    case SQ_NETCDF3_INT:
        return sq_json_new_int((int32_t)sq_u32be(c));
    case SQ_NETCDF3_INT64:
        return sq_json_new_int((int64_t)sq_u64be(c));
    case SQ_NETCDF3_FLOAT:
        bits = sq_u32be(c);
        memcpy(&single, &bits, sizeof single);
        return sq_json_new_double((double)single);
    case SQ_NETCDF3_DOUBLE:
        wide_bits = sq_u64be(c);
        memcpy(&wide, &wide_bits, sizeof wide);
        return sq_json_new_double(wide);
    case SQ_NETCDF3_UBYTE:
        return sq_json_new_uint(sq_u8(c));
    case SQ_NETCDF3_USHORT:
        return sq_json_new_uint(sq_u16be(c));
    case SQ_NETCDF3_UINT:
        return sq_json_new_uint(sq_u32be(c));
    default:
        return sq_json_new_uint(sq_u64be(c));
    }
}

/* As NetCDF's readers have it: NULs are no part of a text. */
static struct sq_json *text(const struct sq_netcdf3_attribute *a)
{
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    sq_text_add_utf8(&t, a->values, (size_t)a->count);
    return t.failed ? NULL : sq_json_new_string(sq_text_string(&t));
}

static struct sq_json *value(const struct sq_netcdf3_attribute *a)
{
    if (a->type == SQ_NETCDF3_CHAR)
        return text(a);
    const struct sq_netcdf3_type_row *row = sq_netcdf3_type_row(5, a->type);
    struct sq_cursor c = sq_cursor(a->values, (size_t)a->count * row->size_bytes);
    if (a->count == 1)
        return number(a->type, &c);
    struct sq_json *list = sq_json_new_array();
    for (uint64_t i = 0; list && i < a->count; i++)
        if (sq_json_append(list, number(a->type, &c))) {
            sq_json_free(list);
            return NULL;
        }
    return list;
}

int sq_netcdf3_attributes_json(const struct sq_netcdf3_attributes *attributes, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *object = sq_json_new_object();
    if (!object)
        return sq_error_memory(err, 1);
    for (size_t i = 0; i < attributes->count; i++)
        if (sq_json_set(object, attributes->list[i].name, value(&attributes->list[i])))
            return sq_error_memory(err, attributes->list[i].count);
    *ret = object;
    object = NULL;
    return 0;
}

int sq_netcdf3_attributes_types(const struct sq_netcdf3_attributes *attributes, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *object = sq_json_new_object();
    if (!object)
        return sq_error_memory(err, 1);
    for (size_t i = 0; i < attributes->count; i++) {
        const struct sq_netcdf3_attribute *a = &attributes->list[i];
        if (a->type != SQ_NETCDF3_CHAR && sq_json_set_string(object, a->name, sq_netcdf3_type_row(5, a->type)->numpy))
            return sq_error_memory(err, 1);
    }
    *ret = object;
    object = NULL;
    return 0;
}
