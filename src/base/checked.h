/* Sizes and offsets that come from files: arithmetic on them either fits or says that it does not. */
#ifndef SQ_BASE_CHECKED_H
#define SQ_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* true where the result fits; *ret is only meaningful then */
static inline bool sq_mul_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool sq_add_size(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool sq_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool sq_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool sq_mul_i64(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool sq_add_i64(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

#endif
