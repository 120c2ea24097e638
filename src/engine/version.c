/* Which library is running. */
#include "squall/version.h"

const char *squall_version(void)
{
    return SQUALL_VERSION;
}
