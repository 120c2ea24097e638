/* How the library fills a squall_error. See squall/error.h for the rules. */
#ifndef SQ_BASE_ERROR_INTERNAL_H
#define SQ_BASE_ERROR_INTERNAL_H

#include "squall/error.h"

/* Record the failure (err may be NULL) and return status, so that it can be the operand of `return`. */
__attribute__((format(printf, 3, 4))) int sq_error(struct squall_error *err, enum squall_status status, const char *format, ...);

/*
 * The system refused: SQUALL_EIO (ENOENT and ENOTDIR: SQUALL_ENOTFOUND, ENOMEM: SQUALL_ENOMEM), os_errno, and
 * "what: strerror" as the message. Returns the status.
 */
__attribute__((format(printf, 3, 4))) int sq_error_errno(struct squall_error *err, int os_errno, const char *format, ...);

/* Put "context: " before the message that is there; returns err's status, or `status` where err is NULL. */
__attribute__((format(printf, 3, 4))) int sq_error_within(struct squall_error *err, int status, const char *format, ...);

/* Allocation of size_bytes failed. Returns SQUALL_ENOMEM. */
int sq_error_memory(struct squall_error *err, unsigned long long size_bytes);

/* Static analysis sees only this header: it must know that a recorded failure is never 0. */
#if defined(__clang_analyzer__) && !defined(SQ_BASE_ERROR_C)
void sq_error_words(const char *format, ...); /* so that what goes into a message counts as used */
#define sq_error(err, status, ...)                                                                                                         \
    ((void)(err), sq_error_words(__VA_ARGS__), (enum squall_status)(status) == SQUALL_OK ? SQUALL_EINVAL : (status))
#define sq_error_errno(err, os_errno, ...) ((void)(err), sq_error_words(__VA_ARGS__), (void)(os_errno), SQUALL_EIO)
#define sq_error_within(err, status, ...)  ((void)(err), sq_error_words(__VA_ARGS__), (status) == 0 ? SQUALL_EINVAL : (status))
#define sq_error_memory(err, size_bytes)   ((void)(err), (void)(size_bytes), SQUALL_ENOMEM)
#endif

/* Return early with a failing status; only where cleanup attributes release everything. */
#define SQ_TRY(call)                                                                                                                       \
    do {                                                                                                                                   \
        int sq_try_status = (call);                                                                                                        \
        if (sq_try_status)                                                                                                                 \
            return sq_try_status;                                                                                                          \
    } while (0)

#endif
