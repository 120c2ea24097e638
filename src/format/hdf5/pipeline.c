/* See pipeline.h. */
#include "format/hdf5/pipeline.h"
#include <string.h>

enum { FIRST_REGISTERED = 256 }; /* filters below are the format's own; version 2 does not name them */
enum { FILTERS_MAX = 32 };       /* a mask has a bit for each */

static int parse_filter(struct sq_hdf5_reader *r, struct sq_cursor *c, unsigned version, struct sq_hdf5_filter *ret,
                        struct squall_error *err)
{
    ret->id = sq_u16le(c);
    const size_t name_bytes = version == 1 || ret->id >= FIRST_REGISTERED ? sq_u16le(c) : 0;
    sq_u16le(c); /* flags: may a chunk do without it? The chunk's mask says whether it did */
    ret->value_count = sq_u16le(c);
    const uint8_t *name = sq_take(c, version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
    if (sq_cursor_failed(c) || sq_cursor_left(c) / sizeof(uint32_t) < ret->value_count)
        return sq_error(err, SQUALL_ECORRUPT, "filters: the message ends within filter %u", ret->id);
    char *text;
    uint32_t *values;
    SQ_TRY(SQ_HDF5_ROOM(r, &text, name_bytes + 1, err));
    SQ_TRY(SQ_HDF5_ROOM(r, &values, ret->value_count, err));
    if (name_bytes > 0)
        memcpy(text, name, name_bytes);
    text[name_bytes] = '\0';
    for (unsigned i = 0; i < ret->value_count; i++)
        values[i] = sq_u32le(c);
    if (version == 1 && ret->value_count % 2 != 0)
        sq_take(c, sizeof(uint32_t));
    ret->name = text[0] ? text : NULL;
    ret->values = values;
    return 0;
}

static int parse(struct sq_hdf5_reader *r, struct sq_cursor *c, struct sq_hdf5_pipeline *ret, struct squall_error *err)
{
    const unsigned version = sq_u8(c), count = sq_u8(c);
    if (version < 1 || version > 2)
        return sq_error(err, SQUALL_EUNSUPPORTED, "filter pipeline message of version %u", version);
    if (count > FILTERS_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "filters: %u of them, more than the %d that there can be", count, FILTERS_MAX);
    if (version == 1)
        sq_take(c, 6); /* reserved */
    if (sq_cursor_failed(c))
        return sq_error(err, SQUALL_ECORRUPT, "filters: the message ends before the first");
    struct sq_hdf5_filter *filters;
    SQ_TRY(SQ_HDF5_ROOM(r, &filters, count, err));
    for (unsigned i = 0; i < count; i++)
        SQ_TRY(parse_filter(r, c, version, &filters[i], err));
    *ret = (struct sq_hdf5_pipeline){filters, count};
    return 0;
}

int sq_hdf5_pipeline_parse(struct sq_hdf5_reader *r, const struct sq_hdf5_bytes *message, struct sq_hdf5_pipeline *ret,
                           struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(message->bytes, message->size_bytes);
    struct sq_hdf5_pipeline pipeline = {0};
    int status = message->bytes ? parse(r, &c, &pipeline, err) : 0;
    if (status)
        return sq_hdf5_error_at(r->file, message->address, status, err);
    *ret = pipeline;
    return 0;
}
