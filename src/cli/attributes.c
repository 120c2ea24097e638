/* See attributes.h. */
#include "attributes.h"

#include <stdio.h>
#include <string.h>

enum { LINE_COLUMNS = 80, VALUE_COLUMNS_LEAST = 20 };

/* Behind the text whose opening quote is at `at`. */
static const char *behind_text(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1])
            at++;
    return *at ? at + 1 : at;
}

static const char *behind_value(const char *at)
{
    unsigned depth = 0;
    for (; *at; at++) {
        if (*at == '"') {
            at = behind_text(at) - 1;
            continue;
        }
        if (depth == 0 && (*at == ',' || *at == '}'))
            break;
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
    }
    return at;
}

static const char *behind_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

bool attribute_next(const char **at, struct attribute *ret)
{
    const char *p = *at + strspn(*at, " \t\r\n{,");
    if (*p != '"')
        return false;
    const char *name = p + 1;
    p = behind_text(p);
    ret->name = name;
    ret->name_length = (size_t)(p - name) - 1;
    p = behind_space(p);
    ret->value = p = behind_space(p + (*p == ':'));
    p = behind_value(p);
    *at = p;
    ret->value_length = (size_t)(p - ret->value);
    while (ret->value_length > 0 && strchr(" \t\r\n", ret->value[ret->value_length - 1]))
        ret->value_length--;
    return true;
}

bool attribute_find(const char *attributes, const char *name, struct attribute *ret)
{
    struct attribute a;
    while (attribute_next(&attributes, &a))
        if (a.name_length == strlen(name) && !memcmp(a.name, name, a.name_length)) {
            *ret = a;
            return true;
        }
    return false;
}

static const char *without_escapes(const char *text, size_t length, char *buffer, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < length && count + 1 < size; i++) {
        i += text[i] == '\\' && i + 1 < length;
        buffer[count++] = text[i];
    }
    buffer[count] = 0;
    return buffer;
}

const char *attribute_text(const char *attributes, const char *name, char *buffer, size_t size)
{
    struct attribute a;
    const bool is_text = attribute_find(attributes, name, &a) && a.value[0] == '"';
    return without_escapes(is_text ? a.value + 1 : "", is_text ? a.value_length - 2 : 0, buffer, size);
}

const char *attribute_name(const struct attribute *a, char *buffer, size_t size)
{
    return without_escapes(a->name, a->name_length, buffer, size);
}

/* Of the first `columns` characters of the text; a character of several bytes is not parted. */
static size_t bytes_of(const char *text, size_t length, size_t columns)
{
    size_t at = 0;
    while (at < length) {
        size_t next = at + 1;
        while (next < length && ((unsigned char)text[next] & 0xc0) == 0x80)
            next++;
        if (columns-- == 0)
            break;
        at = next;
    }
    return at;
}

static void print_attribute(const struct attribute *a, const char *owner, int indent)
{
    char tail[48];
    int head = printf("%*s%s:%.*s = ", indent, "", owner, (int)a->name_length, a->name);
    size_t left = head >= 0 && head + VALUE_COLUMNS_LEAST < LINE_COLUMNS ? (size_t)(LINE_COLUMNS - head) : VALUE_COLUMNS_LEAST;
    if (bytes_of(a->value, a->value_length, left) == a->value_length) {
        printf("%.*s\n", (int)a->value_length, a->value);
        return;
    }
    int tail_columns = snprintf(tail, sizeof tail, "... (%zu bytes)", a->value_length);
    size_t shown = left > (size_t)tail_columns ? left - (size_t)tail_columns : 1;
    printf("%.*s%s\n", (int)bytes_of(a->value, a->value_length, shown), a->value, tail);
}

void attributes_print(const char *attributes, const char *owner, int indent)
{
    struct attribute a;
    while (attribute_next(&attributes, &a))
        print_attribute(&a, owner, indent);
}

/* NaN, Infinity, -Infinity: what no true, false, null or number begins like. */
static bool is_not_finite(const char *word)
{
    word += *word == '-';
    return *word == 'N' || *word == 'I' || !strncmp(word, "nan", 3) || !strncmp(word, "inf", 3);
}

void print_strict_json(const char *text)
{
    while (*text) {
        size_t length = strspn(text, "-+.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        const bool is_word = length > 0;
        if (!is_word)
            length = *text == '"' ? (size_t)(behind_text(text) - text) : 1;
        if (is_word && is_not_finite(text))
            fputs("null", stdout);
        else
            fwrite(text, 1, length, stdout);
        text += length;
    }
}
