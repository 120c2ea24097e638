/* Numbers at random, the same on every machine: xorshift. */
#ifndef SQ_TESTS_SUPPORT_RANDOM_H
#define SQ_TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

/* state: anything but 0 */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
