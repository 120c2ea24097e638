/* What every unit test includes first: cmocka, and the headers that it wants before it. */
#ifndef SQ_TESTS_SUPPORT_UNIT_H
#define SQ_TESTS_SUPPORT_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
