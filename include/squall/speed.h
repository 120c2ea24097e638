/* What a timed read measured. */
#ifndef SQUALL_SPEED_H
#define SQUALL_SPEED_H

#include <stdint.h>

struct squall_speed {
    uint64_t bytes;                                       /* read from the source */
    uint64_t points;                                      /* values that came out */
    double seconds;                                       /* of the clock on the wall */
    double read_seconds, decode_seconds, scatter_seconds; /* where the threads' time went, summed over them */
};

#endif
