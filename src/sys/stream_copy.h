/* Copies past the processor's caches: for results larger than these, where fetching each line before it is overwritten costs half of the time. */
#ifndef SQ_SYS_STREAM_COPY_H
#define SQ_SYS_STREAM_COPY_H

#include <stddef.h>

/* As memcpy. Other threads see it after sq_stream_copy_done. */
void sq_stream_copy(void *dst, const void *src, size_t size_bytes);
void sq_stream_copy_done(void);

#endif
