#ifndef SQUALL_VERSION_H
#define SQUALL_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

#define SQUALL_VERSION "0.1.0"

const char *squall_version(void); /* of the library that runs */

#ifdef __cplusplus
}
#endif
#endif
