/* Base64 as RFC 4648 has it, padded. */
#ifndef SQ_BASE_BASE64_H
#define SQ_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of `size` bytes so many characters, the NUL behind them counted. */
#define SQ_BASE64_TEXT_BYTES(size) (((size) + 2) / 3 * 4 + 1)

void sq_base64_encode(const void *bytes, size_t size, char *ret);
/* false: the text is none. *ret: sq_free, a zero byte stands behind it that does not count; NULL: out of memory. */
bool sq_base64_decode(const char *text, size_t length, uint8_t **ret, size_t *ret_size);

#endif
