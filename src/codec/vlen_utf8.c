/*
 * vlen-utf8, as numcodecs and zarr-python write it: the number of strings, then each string's length in bytes and its bytes; all
 * numbers are four little-endian bytes.
 */
#include "base/cursor.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec_internal.h"
#include <string.h>

enum { LENGTH_BYTES = 4 };

static uint32_t u32le(struct sq_cursor *c)
{
    const uint8_t *p = sq_take(c, LENGTH_BYTES);
    return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;
}

static uint8_t *put_u32le(uint8_t *to, size_t value)
{
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

/* Walk the whole chunk once, so that nothing has been allocated when it turns out to be damaged. */
static int check(const uint8_t *src, size_t src_size, size_t count, struct squall_error *err)
{
    struct sq_cursor c = sq_cursor(src, src_size);
    uint32_t stored = u32le(&c);
    if (sq_cursor_failed(&c) || stored != count)
        return sq_error(err, SQUALL_ECORRUPT, "vlen-utf8: the chunk says %u strings in %zu bytes, the array %zu", stored, src_size, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = u32le(&c);
        const uint8_t *text = sq_take(&c, length);
        if (sq_cursor_failed(&c))
            return sq_error(err, SQUALL_ECORRUPT, "vlen-utf8: string %zu of %zu ends beyond the chunk's %zu bytes", i, count, src_size);
        if (length && memchr(text, 0, length))
            return sq_error(err, SQUALL_EUNSUPPORTED, "vlen-utf8: string %zu of %zu has a zero byte in it", i, count);
    }
    if (sq_cursor_left(&c) != 0)
        return sq_error(err, SQUALL_ECORRUPT, "vlen-utf8: %zu bytes follow the last string", sq_cursor_left(&c));
    return 0;
}

int sq_vlen_utf8_decode(const uint8_t *src, size_t src_size, char **dst, size_t count, struct squall_error *err)
{
    SQ_TRY(check(src, src_size, count, err));
    struct sq_cursor c = sq_cursor(src + LENGTH_BYTES, src_size - LENGTH_BYTES);
    for (size_t i = 0; i < count; i++) {
        uint32_t length = u32le(&c);
        dst[i] = sq_strndup((const char *)sq_take(&c, length), length);
        if (!dst[i]) {
            while (i-- > 0)
                sq_free(dst[i]);
            return sq_error_memory(err, length);
        }
    }
    return 0;
}

size_t sq_vlen_utf8_encoded_size(const char *const *src, size_t count)
{
    size_t size = LENGTH_BYTES;
    if (count > UINT32_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t length = src[i] ? strlen(src[i]) : 0;
        if (length > UINT32_MAX)
            return SIZE_MAX;
        size += LENGTH_BYTES + length;
    }
    return size;
}

void sq_vlen_utf8_encode(const char *const *src, size_t count, uint8_t *dst)
{
    dst = put_u32le(dst, count);
    for (size_t i = 0; i < count; i++) {
        size_t length = src[i] ? strlen(src[i]) : 0;
        dst = put_u32le(dst, length);
        if (length)
            memcpy(dst, src[i], length);
        dst += length;
    }
}
