/*
 * vlen-utf8 and vlen-bytes, as numcodecs and zarr-python write them: the number of elements, then each one's length in bytes and its
 * bytes; all numbers are four little-endian bytes. In memory the elements are struct squall_bytes, each malloc'ed; src is walked
 * once before, so that nothing has been allocated when it turns out to be damaged.
 */
#include "array/bytes.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec_internal.h"
#include <string.h>

enum { LENGTH_BYTES = 4, ELEMENT_BYTES = sizeof(struct squall_bytes) };

static uint32_t take_u32(struct sq_cursor *c)
{
    const uint8_t *p = sq_take(c, LENGTH_BYTES);
    return p ? sq_get_u32(p) : 0;
}

static int bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err)
{
    (void)configuration;
    enum squall_type wanted = stage->ops == &sq_stage_vlen_utf8 ? SQUALL_STRING : SQUALL_BYTES;
    if (array->dtype.type != wanted)
        return sq_error(err, SQUALL_ECORRUPT, "codec %s on an array of %s", stage->ops->name, sq_type_name(array->dtype.type));
    array->dtype = sq_dtype_of(SQUALL_UINT8); /* what compressors see */
    return 0;
}

/* ---- decode ----------------------------------------------------------------------------------------------------------------------- */

static int check(const struct sq_stage *stage, const uint8_t *src, size_t src_size, size_t room, size_t *ret_count,
                 struct squall_error *err)
{
    const char *name = stage->ops->name;
    struct sq_cursor c = sq_cursor(src, src_size);
    size_t count = take_u32(&c);
    if (sq_cursor_failed(&c) || count > room)
        return sq_error(err, SQUALL_ECORRUPT,
                        "%s: the chunk says %zu elements in %zu bytes, the array %zu; it is damaged or from another array", name, count,
                        src_size, room);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = take_u32(&c);
        (void)sq_take(&c, length);
        if (sq_cursor_failed(&c))
            return sq_error(err, SQUALL_ECORRUPT, "%s: element %zu of %zu ends beyond the chunk's %zu bytes", name, i, count, src_size);
    }
    if (sq_cursor_left(&c) != 0)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes follow the last element", name, sq_cursor_left(&c));
    *ret_count = count;
    return 0;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    struct squall_bytes *elements = (void *)dst;
    size_t count = 0;
    SQ_TRY(check(stage, src, src_size, capacity / ELEMENT_BYTES, &count, err));
    if (count != capacity / ELEMENT_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk says %zu elements, the array %zu; it is damaged or from another array",
                        stage->ops->name, count, capacity / ELEMENT_BYTES);
    struct sq_cursor c = sq_cursor(src + LENGTH_BYTES, src_size - LENGTH_BYTES);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = take_u32(&c);
        int status = sq_bytes_copy(sq_take(&c, length), length, &elements[i], err);
        if (status) {
            sq_bytes_free(elements, i);
            return status;
        }
    }
    *ret_size = count * ELEMENT_BYTES;
    return 0;
}

/* ---- encode ----------------------------------------------------------------------------------------------------------------------- */

static size_t measure(const struct sq_stage *stage, const uint8_t *src, size_t src_size)
{
    const struct squall_bytes *elements = (const void *)src;
    size_t size = LENGTH_BYTES;
    (void)stage;
    for (size_t i = 0; i < src_size / ELEMENT_BYTES; i++)
        size += LENGTH_BYTES + elements[i].size_bytes;
    return size;
}

static size_t bound(const struct sq_stage *stage, size_t src_size)
{
    (void)stage, (void)src_size;
    return SIZE_MAX;
}

static int encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads, (void)capacity;
    const struct squall_bytes *elements = (const void *)src;
    size_t count = src_size / ELEMENT_BYTES;
    uint8_t *to = dst + LENGTH_BYTES;
    if (count > UINT32_MAX)
        return sq_error(err, SQUALL_EINVAL, "%s: %zu elements, more than the 2^32 - 1 that a chunk can hold", stage->ops->name, count);
    sq_put_u32(dst, count);
    for (size_t i = 0; i < count; i++) {
        const struct squall_bytes bytes = elements[i];
        if (bytes.size_bytes > UINT32_MAX)
            return sq_error(err, SQUALL_EINVAL, "%s: element %zu has %zu bytes, more than the 2^32 - 1 that one can have", stage->ops->name,
                            i, bytes.size_bytes);
        sq_put_u32(to, bytes.size_bytes);
        if (bytes.size_bytes)
            memcpy(to + LENGTH_BYTES, bytes.data, bytes.size_bytes);
        to += LENGTH_BYTES + bytes.size_bytes;
    }
    *ret_size = (size_t)(to - dst);
    return 0;
}

#define VLEN(id)                                                                                                                           \
    {                                                                                                                                      \
        .name = (id), .name_v3 = (id), .kind = SQ_STAGE_TO_BYTES, .bind = bind, .decode = decode, .bound = bound, .measure = measure,      \
        .encode = encode                                                                                                                   \
    }

const struct sq_stage_ops sq_stage_vlen_utf8 = VLEN("vlen-utf8");
const struct sq_stage_ops sq_stage_vlen_bytes = VLEN("vlen-bytes");
