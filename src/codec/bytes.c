/* Byte order: the one thing that Zarr's "bytes" codec says. */
#include "codec/codec_internal.h"
#include <string.h>

#define SWAP_ALL(T, swap)                                                                                                                  \
    for (size_t i = 0; i + sizeof(T) <= size_bytes; i += sizeof(T)) {                                                                      \
        T element;                                                                                                                         \
        memcpy(&element, src + i, sizeof element);                                                                                         \
        element = swap(element);                                                                                                           \
        memcpy(dst + i, &element, sizeof element);                                                                                         \
    }

void sq_bytes_swap(const uint8_t *src, uint8_t *dst, size_t size_bytes, unsigned width)
{
    if (width == 2)
        SWAP_ALL(uint16_t, __builtin_bswap16)
    else if (width == 4)
        SWAP_ALL(uint32_t, __builtin_bswap32)
    else
        SWAP_ALL(uint64_t, __builtin_bswap64)
}
