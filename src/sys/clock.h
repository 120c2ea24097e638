/* Clocks. */
#ifndef SQ_SYS_CLOCK_H
#define SQ_SYS_CLOCK_H

#include <stdint.h>

/* One that only goes forward: for how long something took, not for what time it is. */
double sq_clock_s(void);
/* What time it is, since 1970, as files have it. */
int64_t sq_clock_now_ns(void);

#endif
