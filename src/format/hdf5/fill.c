/* See fill.h. */
#include "format/hdf5/fill.h"
#include <inttypes.h>

enum { FLAG_UNDEFINED = 1 << 4, FLAG_VALUE = 1 << 5 };

/* Of the newer message: what comes before the size. false: no size follows. */
static bool parse_settings(struct sq_cursor *c, unsigned version, struct sq_hdf5_fill *fill)
{
    if (version == 3) {
        const unsigned flags = sq_u8(c);
        fill->is_undefined = flags & FLAG_UNDEFINED;
        return flags & FLAG_VALUE;
    }
    sq_take(c, 2); /* when space is allocated, and when the value is written */
    const bool defined = sq_u8(c) != 0;
    return version == 1 || defined;
}

static int parse_value(const struct sq_hdf5_dataset *dataset, struct sq_cursor *c, struct sq_hdf5_fill *fill, struct squall_error *err)
{
    const uint32_t size_bytes = sq_u32le(c);
    const uint8_t *value = sq_take(c, size_bytes == UINT32_MAX ? 0 : size_bytes);
    if (sq_cursor_failed(c))
        return sq_error(err, SQUALL_ECORRUPT, "fill value: %" PRIu32 " bytes, but the message ends before", size_bytes);
    fill->is_undefined = fill->is_undefined || size_bytes == UINT32_MAX; /* -1: as libraries before the flag wrote it */
    if (size_bytes == 0 || size_bytes == UINT32_MAX)
        return 0;
    if (size_bytes != dataset->type->size_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "fill value: %" PRIu32 " bytes for elements of %" PRIu32, size_bytes,
                        dataset->type->size_bytes);
    fill->value = value;
    return 0;
}

int sq_hdf5_fill_parse(const struct sq_hdf5_file *f, const struct sq_hdf5_dataset *dataset, struct sq_hdf5_fill *ret,
                       struct squall_error *err)
{
    const struct sq_hdf5_bytes *message = dataset->fill.bytes ? &dataset->fill : &dataset->fill_old;
    struct sq_cursor c = sq_cursor(message->bytes, message->size_bytes);
    struct sq_hdf5_fill fill = {0};
    bool has_value = message->bytes != NULL;
    if (dataset->fill.bytes) {
        const unsigned version = sq_u8(&c);
        if (version < 1 || version > 3)
            return SQ_HDF5_UNSUPPORTED(f, message->address, err, "fill value message of version %u", version);
        has_value = parse_settings(&c, version, &fill);
    }
    int status = has_value ? parse_value(dataset, &c, &fill, err) : 0;
    if (status)
        return sq_hdf5_error_at(f, message->address, status, err);
    *ret = fill;
    return 0;
}
