/* See text.h. */
#include "base/text.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for count more bytes and the NUL. */
static bool make_room(struct sq_text *t, size_t count)
{
    if (t->failed || count > SIZE_MAX - t->length - 1 || SQ_GROW(t->data, t->capacity, t->length + count + 1, NULL)) {
        t->failed = true;
        return false;
    }
    return true;
}

void sq_text_add_bytes(struct sq_text *t, const void *bytes, size_t count)
{
    if (!make_room(t, count))
        return;
    if (count)
        memcpy(t->data + t->length, bytes, count);
    t->length += count;
    t->data[t->length] = 0;
}

void sq_text_add(struct sq_text *t, const char *text)
{
    sq_text_add_bytes(t, text, strlen(text));
}

void sq_text_printf(struct sq_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !make_room(t, (size_t)length)) {
        t->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(t->data + t->length, (size_t)length + 1, format, args);
    va_end(args);
    t->length += (size_t)length;
}

size_t sq_text_control(const char *at)
{
    unsigned char first = (unsigned char)at[0], second = (unsigned char)(first == 0xc2 ? at[1] : 0);
    if ((first > 0 && first < 0x20) || first == 0x7f)
        return 1;
    return second >= 0x80 && second < 0xa0 ? 2 : 0;
}

bool sq_text_is_visible(const char *text)
{
    while (*text && !sq_text_control(text))
        text++;
    return !*text;
}

void sq_text_make_visible(char *text)
{
    for (; *text; text++)
        if (sq_text_control(text))
            memset(text, '?', sq_text_control(text));
}

void sq_text_add_visible(struct sq_text *t, const char *text)
{
    size_t before = t->length;
    sq_text_add(t, text);
    if (!t->failed)
        sq_text_make_visible(t->data + before);
}

/*
 * Of the character at p: its bytes, or of what cannot be one the bytes that a single U+FFFD stands for, the longest beginning of one
 * (Unicode, 3.9, U+FFFD substitution of maximal subparts).
 */
static size_t utf8_length(const uint8_t *p, size_t left, bool *ret_valid)
{
    const uint8_t first = p[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80, high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    *ret_valid = length > 0;
    for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
        if (i == left || p[i] < low || p[i] > high) {
            *ret_valid = false;
            return i;
        }
    return length ? length : 1;
}

void sq_text_add_utf8(struct sq_text *t, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;
    bool valid;
    for (size_t at = 0, length; at < count; at += length) {
        length = utf8_length(p + at, count - at, &valid);
        if (!valid)
            sq_text_add(t, "\xef\xbf\xbd");
        else if (p[at])
            sq_text_add_bytes(t, p + at, length);
    }
}

void sq_text_add_uint(struct sq_text *t, uint64_t number)
{
    enum { DIGITS_MOST = 20 };
    char digits[DIGITS_MOST];
    size_t at = DIGITS_MOST;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    sq_text_add_bytes(t, digits + at, DIGITS_MOST - at);
}

void sq_text_add_count(struct sq_text *t, uint64_t count, const char *noun)
{
    sq_text_printf(t, "%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
}

const char *sq_text_string(const struct sq_text *t)
{
    return t->data ? t->data : "";
}

char *sq_text_release(struct sq_text *t)
{
    char *data = t->failed ? NULL : t->data;
    if (!t->failed && !data)
        data = sq_strdup("");
    else if (t->failed)
        sq_free(t->data);
    *t = (struct sq_text)SQ_TEXT_INIT;
    return data;
}

void sq_text_clear(struct sq_text *t)
{
    t->length = 0;
    t->failed = false;
    if (t->data)
        t->data[0] = 0;
}

void sq_text_done(struct sq_text *t)
{
    sq_free(t->data);
    *t = (struct sq_text)SQ_TEXT_INIT;
}
