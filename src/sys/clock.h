/* A clock that only goes forward: for how long something took, not for what time it is. */
#ifndef SQ_SYS_CLOCK_H
#define SQ_SYS_CLOCK_H

double sq_clock_s(void);

#endif
