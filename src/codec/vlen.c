/*
 * vlen-utf8 and vlen-bytes, as numcodecs and zarr-python write them: the number of elements, then each one's length in bytes and its
 * bytes; all numbers are four little-endian bytes. In memory the elements are pointers (char *, struct squall_bytes), each
 * malloc'ed; src is walked once before, so that nothing has been allocated when it turns out to be damaged.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec_internal.h"
#include <string.h>

enum { LENGTH_BYTES = 4 };

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

static bool is_utf8(const struct sq_stage *stage)
{
    return stage->ops == &sq_stage_vlen_utf8;
}

static size_t element_bytes(const struct sq_stage *stage)
{
    return is_utf8(stage) ? sizeof(char *) : sizeof(struct squall_bytes);
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
        const uint8_t *bytes = sq_take(&c, length);
        if (sq_cursor_failed(&c))
            return sq_error(err, SQUALL_ECORRUPT, "%s: element %zu of %zu ends beyond the chunk's %zu bytes", name, i, count, src_size);
        if (is_utf8(stage) && length && memchr(bytes, 0, length))
            return sq_error(err, SQUALL_EUNSUPPORTED, "%s: string %zu of %zu has a zero byte in it", name, i, count);
    }
    if (sq_cursor_left(&c) != 0)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %zu bytes follow the last element", name, sq_cursor_left(&c));
    *ret_count = count;
    return 0;
}

static bool make_element(const struct sq_stage *stage, const uint8_t *bytes, uint32_t length, uint8_t *dst)
{
    void *copy = NULL;
    if (is_utf8(stage)) {
        copy = sq_strndup((const char *)bytes, length);
        memcpy(dst, &copy, sizeof copy);
        return copy != NULL;
    }
    if (length && !(copy = sq_alloc(length, 1)))
        return false;
    if (length)
        memcpy(copy, bytes, length);
    memcpy(dst, &(struct squall_bytes){copy, length}, sizeof(struct squall_bytes));
    return true;
}

static int decode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err)
{
    (void)scratch, (void)threads;
    size_t count = 0, width = element_bytes(stage);
    SQ_TRY(check(stage, src, src_size, capacity / width, &count, err));
    if (count != capacity / width)
        return sq_error(err, SQUALL_ECORRUPT, "%s: the chunk says %zu elements, the array %zu; it is damaged or from another array",
                        stage->ops->name, count, capacity / width);
    struct sq_cursor c = sq_cursor(src + LENGTH_BYTES, src_size - LENGTH_BYTES);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = take_u32(&c);
        if (!make_element(stage, sq_take(&c, length), length, dst + i * width)) {
            sq_elements_free(is_utf8(stage) ? SQUALL_STRING : SQUALL_BYTES, dst, i);
            return sq_error_memory(err, length);
        }
    }
    *ret_size = count * width;
    return 0;
}

void sq_elements_free(enum squall_type type, void *elements, size_t count)
{
    char **strings = elements;
    struct squall_bytes *bytes = elements;
    for (size_t i = 0; i < count && type == SQUALL_STRING; i++)
        sq_free(strings[i]);
    for (size_t i = 0; i < count && type == SQUALL_BYTES; i++)
        sq_free(bytes[i].data);
}

/* ---- encode ----------------------------------------------------------------------------------------------------------------------- */

static struct squall_bytes element(const struct sq_stage *stage, const uint8_t *src, size_t i)
{
    struct squall_bytes bytes = {NULL, 0};
    if (is_utf8(stage)) {
        memcpy(&bytes.data, src + i * sizeof bytes.data, sizeof bytes.data);
        bytes.size_bytes = bytes.data ? strlen(bytes.data) : 0;
    } else {
        memcpy(&bytes, src + i * sizeof bytes, sizeof bytes);
    }
    return bytes;
}

static size_t measure(const struct sq_stage *stage, const uint8_t *src, size_t src_size)
{
    size_t size = LENGTH_BYTES;
    for (size_t i = 0; i < src_size / element_bytes(stage); i++)
        size += LENGTH_BYTES + element(stage, src, i).size_bytes;
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
    size_t count = src_size / element_bytes(stage);
    uint8_t *to = dst + LENGTH_BYTES;
    if (count > UINT32_MAX)
        return sq_error(err, SQUALL_EINVAL, "%s: %zu elements, more than the 2^32 - 1 that a chunk can hold", stage->ops->name, count);
    sq_put_u32(dst, count);
    for (size_t i = 0; i < count; i++) {
        struct squall_bytes bytes = element(stage, src, i);
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
