/* NumPy's .npy format, version 1.0, written: a header in text and the values behind it. */
#ifndef SQ_CLI_NPY_H
#define SQ_CLI_NPY_H

#include "squall/array.h"
#include <stdbool.h>
#include <stdint.h>

/* values: C order, machine byte order; strings: char *[]. Says on stderr what is wrong and returns false. */
bool npy_write(const char *path, enum squall_type type, unsigned rank, const uint64_t *shape, const void *values);

#endif
