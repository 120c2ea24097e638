/* See base64.h. */
#include "base/base64.h"
#include "base/memory.h"
#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sq_base64_encode(const void *bytes, size_t size, char *ret)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i += 3) {
        const size_t count = size - i < 3 ? size - i : 3;
        const uint32_t bits = (uint32_t)at[i] << 16 | (count > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (count > 2 ? at[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            *ret++ = k <= count ? DIGITS[bits >> (18 - 6 * k) & 63] : '=';
    }
    *ret = 0;
}

bool sq_base64_decode(const char *text, size_t length, uint8_t **ret, size_t *ret_size)
{
    size_t digits = strspn(text, DIGITS), at = 0;
    if (length % 4 != 0 || length - digits > 2 || strspn(text + digits, "=") != length - digits)
        return false;
    uint8_t *bytes = sq_alloc_zero(length / 4 * 3 + 1, 1);
    uint32_t bits = 0;
    for (size_t i = 0; bytes && i < digits; i++) {
        bits = bits << 6 | (uint32_t)(strchr(DIGITS, text[i]) - DIGITS);
        if (i % 4 != 0)
            bytes[at++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    if (bytes)
        bytes[at] = 0; /* behind 6 bits that are left over a byte has been put */
    *ret = bytes;
    *ret_size = at;
    return true;
}
