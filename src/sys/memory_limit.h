/* How much memory this process may fill: the machine's, or less where one of the cgroups that it is in says so. */
#ifndef SQ_SYS_MEMORY_LIMIT_H
#define SQ_SYS_MEMORY_LIMIT_H

#include <stdint.h>

uint64_t sq_memory_limit_bytes(void); /* > 0 */

#endif
