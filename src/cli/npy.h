/* NumPy's .npy format, written: a header in text and the values behind it. */
#ifndef SQ_CLI_NPY_H
#define SQ_CLI_NPY_H

#include "squall/array.h"
#include <stdbool.h>
#include <stdint.h>

/* info: of the array; shape: of what was read of it. values: C order, machine byte order; of variable length: struct squall_bytes[].
 * Says on stderr what is wrong and returns false. */
bool npy_write(const char *path, const struct squall_array_info *info, unsigned rank, const uint64_t *shape, const void *values);

#endif
