/* Filling a squall_error: the origin writes the message, callers prepend where they were. Names come from files, so control
 * characters do not get into a message. */
#define SQ_BASE_ERROR_C
#include "base/error_internal.h"
#include "base/text.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sq_error(struct squall_error *err, enum squall_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        sq_text_make_visible(err->message);
        err->status = status;
        err->os_errno = 0;
    }
    return status;
}

static enum squall_status status_of(int os_errno)
{
    if (os_errno == ENOENT || os_errno == ENOTDIR)
        return SQUALL_ENOTFOUND;
    return os_errno == ENOMEM ? SQUALL_ENOMEM : SQUALL_EIO;
}

int sq_error_errno(struct squall_error *err, int os_errno, const char *format, ...)
{
    enum squall_status status = status_of(os_errno);
    if (err) {
        va_list args;
        va_start(args, format);
        int length = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        size_t at = length < 0 ? 0 : (size_t)length;
        if (at < sizeof err->message) {
            char text[128] = "";
            /* the GNU strerror_r returns the text, not always in the buffer */
            snprintf(err->message + at, sizeof err->message - at, ": %s", strerror_r(os_errno, text, sizeof text));
        }
        sq_text_make_visible(err->message);
        err->status = status;
        err->os_errno = os_errno;
    }
    return status;
}

int sq_error_within(struct squall_error *err, int status, const char *format, ...)
{
    if (!err)
        return status;
    char context[sizeof err->message];
    char inner[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    memcpy(inner, err->message, sizeof inner);
    inner[sizeof inner - 1] = 0;
    int length = snprintf(err->message, sizeof err->message, "%s: ", context);
    if (length > 0 && (size_t)length < sizeof err->message)
        snprintf(err->message + length, sizeof err->message - (size_t)length, "%s", inner);
    sq_text_make_visible(err->message);
    return err->status;
}

int sq_error_memory(struct squall_error *err, unsigned long long size_bytes)
{
    return sq_error(err, SQUALL_ENOMEM, "out of memory: %llu bytes were not to be had", size_bytes);
}
