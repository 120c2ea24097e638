/*
 * Included before all else where this copy of Zstandard is compiled or used. What libblosc asks for by name must be the system's, whatever the
 * linker makes of hidden names: so these have others here.
 */
#ifndef SQ_ZSTD_OWN_NAMES_H
#define SQ_ZSTD_OWN_NAMES_H

#ifndef __ASSEMBLER__
__SIZE_TYPE__ ZSTD_compress(void *dst, __SIZE_TYPE__ capacity, const void *src, __SIZE_TYPE__ size, int level) __asm__("sq_ZSTD_compress");
__SIZE_TYPE__ ZSTD_decompress(void *dst, __SIZE_TYPE__ capacity, const void *src, __SIZE_TYPE__ size) __asm__("sq_ZSTD_decompress");
unsigned ZSTD_isError(__SIZE_TYPE__ result) __asm__("sq_ZSTD_isError");
int ZSTD_maxCLevel(void) __asm__("sq_ZSTD_maxCLevel");
#endif

#endif
