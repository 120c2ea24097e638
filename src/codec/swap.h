/* Bytes from one order into the other: what big-endian files need on the machines of today, for each byte that is read. */
#ifndef SQ_CODEC_SWAP_H
#define SQ_CODEC_SWAP_H

#include <stddef.h>

/* Turn each swap_bytes (2, 4 or 8) of the whole ones in size_bytes. dst may be src, else they do not overlap; neither need be aligned. */
void sq_swap(void *dst, const void *src, size_t size_bytes, unsigned swap_bytes);

/* The same past the processor's caches, for results larger than these; never in place. Other threads see it after sq_stream_copy_done. */
void sq_swap_stream(void *dst, const void *src, size_t size_bytes, unsigned swap_bytes);

#endif
