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

/* A struct squall_bytes of a literal, which may have zero bytes in it. */
#define TEXT(literal)                                                                                                                      \
    {                                                                                                                                      \
        (literal), sizeof(literal) - 1                                                                                                     \
    }

#endif
