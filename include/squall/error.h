/*
 * What went wrong, told once by the function that saw it; callers on the way up only add where they were.
 *
 * Every function that can fail takes a nullable `struct squall_error *` as its last parameter and returns 0 or a negative
 * status. On failure its out-parameters are untouched.
 */
#ifndef SQUALL_ERROR_H
#define SQUALL_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum squall_status {
    SQUALL_OK = 0,
    SQUALL_EIO = -1,          /* the system refused: see os_errno */
    SQUALL_ENOMEM = -2,       /* allocation failed, or the memory budget is spent */
    SQUALL_ECORRUPT = -3,     /* the bytes contradict their format */
    SQUALL_EUNSUPPORTED = -4, /* valid, but squall does not read it; the message names the feature */
    SQUALL_ENOTFOUND = -5,
    SQUALL_EINVAL = -6, /* the caller's arguments make no sense */
    SQUALL_ECANCELLED = -7,
    SQUALL_EREFUSED = -8, /* possible, but it would harm what is there: in use, or planned differently */
    SQUALL_ERANGE = -9,   /* a value does not fit the type that it is to be stored as */
};

struct squall_error {
    enum squall_status status;
    int os_errno;      /* 0 where the system was not involved */
    char message[500]; /* one line, UTF-8: what, where (file, byte, array, chunk), what to do */
};

/* clang-format off */
#define SQUALL_ERROR_INIT {SQUALL_OK, 0, {0}}
/* clang-format on */

#if defined(__GNUC__)
#define SQUALL_CHECK __attribute__((warn_unused_result))
#else
#define SQUALL_CHECK
#endif

#ifdef __cplusplus
}
#endif
#endif
