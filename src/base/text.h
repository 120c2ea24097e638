/* A growing text or byte buffer. An allocation failure is remembered, so that callers check once, at the end. */
#ifndef SQ_BASE_TEXT_H
#define SQ_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_text {
    char *data; /* NUL-terminated where length > 0 or anything was added; owned; free with sq_text_done */
    size_t length;
    size_t capacity;
    bool failed; /* an allocation failed: the content is incomplete */
};

/* clang-format off */
#define SQ_TEXT_INIT {NULL, 0, 0, false}
/* clang-format on */

void sq_text_add(struct sq_text *t, const char *text);
void sq_text_add_bytes(struct sq_text *t, const void *bytes, size_t count);
__attribute__((format(printf, 2, 3))) void sq_text_printf(struct sq_text *t, const char *format, ...);
/* In decimal digits. What every header is described with, and several times as fast as printf (which numpy slows down for its whole process). */
void sq_text_add_uint(struct sq_text *t, uint64_t number);
/* Without control characters, which a terminal would obey (or which would begin a line): a ? in their place. */
void sq_text_add_visible(struct sq_text *t, const char *text);
/* Bytes that should be UTF-8 and may be anything: without NULs, and U+FFFD for what is none, as Python's errors="replace" has it. */
void sq_text_add_utf8(struct sq_text *t, const void *bytes, size_t count);
void sq_text_add_count(struct sq_text *t, uint64_t count, const char *noun); /* "1 field", "2 fields" */
/* The content as a C string, "" where nothing was added. */
const char *sq_text_string(const struct sq_text *t);
/* Hand the buffer to the caller (sq_free); NULL where an allocation failed. t is empty afterwards. */
char *sq_text_release(struct sq_text *t);
void sq_text_clear(struct sq_text *t); /* keeps the buffer */
void sq_text_done(struct sq_text *t);
/* How many bytes the control character at `at` has (C0, DELETE, and C1 as UTF-8); 0: it is none. */
size_t sq_text_control(const char *at);
bool sq_text_is_visible(const char *text); /* no control character is in it */
void sq_text_make_visible(char *text);     /* in place, as sq_text_add_visible */
#define SQ_CLEANUP_TEXT __attribute__((cleanup(sq_text_done)))

#endif
