/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): Zarr's crc32c codec and the checksums of our records. */
#ifndef SQ_BASE_CRC32C_H
#define SQ_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* crc: 0 to begin, else the value for the bytes before. */
uint32_t sq_crc32c(uint32_t crc, const void *bytes, size_t count);

#endif
