/*
 * See toml.h. A recursive descent over the text; what it finds is copied, unescaped, into one block. The block is large enough from the start:
 * each copy with its zero byte is no longer than what it was read from with the sign behind it.
 */
#include "toml.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    char *room;         /* for the next copy */
    const char **items; /* of the entry that is being read */
    unsigned line;
    const char *what; /* what is wrong; NULL: nothing yet */
};

static bool wrong(struct reader *r, const char *what)
{
    r->what = what;
    return false;
}

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->line += c == '\n';
    r->at++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (take(r, ' ') || take(r, '\t'))
        continue;
}

static void skip_comment(struct reader *r)
{
    if (peek(r) == '#')
        while (r->at < r->end && *r->at != '\n' && *r->at != '\r')
            r->at++;
}

/* "\\n" or "\\r\\n". */
static bool take_line_end(struct reader *r)
{
    if (r->end - r->at >= 2 && r->at[0] == '\r' && r->at[1] == '\n')
        r->at++;
    return take(r, '\n');
}

/* Blanks, comments and ends of lines. */
static void skip_lines(struct reader *r)
{
    do {
        skip_blanks(r);
        skip_comment(r);
    } while (take_line_end(r));
}

static bool end_line(struct reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    return r->at == r->end || take_line_end(r) || wrong(r, "something stands behind the value; texts want quotes");
}

static bool is_bare(int c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A Unicode scalar value as UTF-8. */
static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

/* Behind the backslash. */
static bool read_escape(struct reader *r)
{
    static const char LETTERS[] = "btnfre\"\\", MEANINGS[] = "\b\t\n\f\r\033\"\\";
    const int letter = peek(r);
    const char *found = letter > 0 ? strchr(LETTERS, letter) : NULL;
    if (found) {
        r->at++;
        *r->room++ = MEANINGS[found - LETTERS];
        return true;
    }
    if (letter != 'u' && letter != 'U')
        return wrong(r, "no such escape; a text in '...' takes a backslash as it is");
    uint32_t value = 0;
    r->at++;
    for (int digits = letter == 'u' ? 4 : 8; digits > 0; digits--, r->at++) {
        int digit = hex_digit(peek(r));
        if (digit < 0)
            return wrong(r, "\\u wants four hexadecimal digits, \\U eight");
        value = value << 4 | (uint32_t)digit;
    }
    if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return wrong(r, "\\u and \\U want a character other than 0");
    r->room = put_utf8(r->room, value);
    return true;
}

/* "..." with escapes, or '...' without. */
static bool read_quoted(struct reader *r, const char **ret)
{
    const char quote = *r->at++;
    char *begin = r->room;
    if (r->end - r->at >= 2 && r->at[0] == quote && r->at[1] == quote)
        return wrong(r, "texts of several lines are not taken; write it in one");
    for (;;) {
        const int c = peek(r);
        if (c < 0 || c == '\n')
            return wrong(r, "a text has no closing quote in its line");
        r->at++;
        if (c == quote)
            break;
        if (c == '\\' && quote == '"') {
            if (!read_escape(r))
                return false;
        } else if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return wrong(r, "a text holds a control character; write it as an escape, such as \\n");
        } else {
            *r->room++ = (char)c;
        }
    }
    *r->room++ = 0;
    *ret = begin;
    return true;
}

static const char *copy(struct reader *r, const char *from, size_t length)
{
    char *begin = r->room;
    memcpy(begin, from, length);
    begin[length] = 0;
    r->room += length + 1;
    return begin;
}

static bool read_key(struct reader *r, const char **ret)
{
    if (peek(r) == '"' || peek(r) == '\'')
        return read_quoted(r, ret);
    const char *begin = r->at;
    while (is_bare(peek(r)))
        r->at++;
    if (r->at == begin)
        return wrong(r, "a key is wanted, of letters, digits, _ and -, or in quotes");
    *ret = copy(r, begin, (size_t)(r->at - begin));
    return true;
}

static bool is_whole(const char *text, size_t length)
{
    if (length > 0 && (*text == '+' || *text == '-')) {
        text++;
        length--;
    }
    if (length == 0 || length > 18 || (length > 1 && *text == '0'))
        return false;
    for (; length > 0; text++, length--)
        if (*text < '0' || *text > '9')
            return false;
    return true;
}

/* A number or a truth: all up to a blank, a comma, a bracket, a comment or the line's end. */
static bool read_bare(struct reader *r, enum toml_kind *ret_kind, const char **ret)
{
    const char *begin = r->at;
    while (r->at < r->end && !strchr(" \t\r\n,]}#=", *r->at))
        r->at++;
    const size_t length = (size_t)(r->at - begin);
    const bool truth = (length == 4 && !memcmp(begin, "true", 4)) || (length == 5 && !memcmp(begin, "false", 5));
    if (length == 0)
        return wrong(r, "a value is wanted");
    if (!truth && !is_whole(begin, length))
        return wrong(r, "a value is a text in quotes, a whole number, true, false, or an array of such in [ ]");
    *ret_kind = truth ? TOML_TRUTH : TOML_NUMBER;
    const size_t sign = *begin == '+';
    *ret = copy(r, begin + sign, length - sign);
    return true;
}

static bool read_scalar(struct reader *r, enum toml_kind *ret_kind, const char **ret)
{
    if (peek(r) == '{')
        return wrong(r, "tables in { } are not taken; write [name] in a line of its own, and below it a line for each key");
    if (peek(r) != '"' && peek(r) != '\'')
        return read_bare(r, ret_kind, ret);
    *ret_kind = TOML_TEXT;
    return read_quoted(r, ret);
}

/* Behind the opening bracket; commas stand between the elements, and one may stand behind the last. */
static bool read_array(struct reader *r, struct toml_entry *entry)
{
    for (;;) {
        enum toml_kind kind;
        skip_lines(r);
        if (take(r, ']'))
            return true;
        if (peek(r) == '[')
            return wrong(r, "an array within an array is not taken");
        if (!read_scalar(r, &kind, &r->items[entry->item_count]))
            return false;
        if (kind == TOML_TRUTH)
            return wrong(r, "an array holds texts and numbers");
        entry->item_count++;
        skip_lines(r);
        if (!take(r, ',') && peek(r) != ']')
            return wrong(r, "an array wants a comma or ] behind an element");
    }
}

static bool read_entry(struct reader *r, struct toml_entry *entry)
{
    entry->line = r->line;
    entry->item_count = 0;
    entry->items = r->items;
    if (!read_key(r, &entry->key))
        return false;
    skip_blanks(r);
    if (peek(r) == '.')
        return wrong(r, "keys with dots are not taken; write [name] in a line of its own, and the key below it");
    if (!take(r, '='))
        return wrong(r, "= is wanted behind a key");
    skip_blanks(r);
    if (take(r, '[')) {
        entry->kind = TOML_ARRAY;
        return read_array(r, entry) && end_line(r);
    }
    entry->item_count = 1;
    return read_scalar(r, &entry->kind, &r->items[0]) && end_line(r);
}

/* Behind the opening bracket. */
static bool read_table(struct reader *r, const char **ret)
{
    if (peek(r) == '[')
        return wrong(r, "arrays of tables, [[name]], are not taken");
    skip_blanks(r);
    if (!read_key(r, ret))
        return false;
    skip_blanks(r);
    return take(r, ']') ? end_line(r) : wrong(r, "] is wanted behind a table's name; tables within tables are not taken");
}

bool toml_read(const char *text, size_t length, bool (*visit)(void *user, const struct toml_entry *entry), void *user, void **ret_memory,
               struct toml_error *ret_error)
{
    const size_t item_bytes = (length + 1) * sizeof(char *); /* an element takes a sign at least */
    char *memory = malloc(item_bytes + length + 2);
    struct reader r = {.at = text, .end = text + length, .line = 1};
    struct toml_entry entry = {0};
    *ret_memory = memory;
    *ret_error = (struct toml_error){.line = 1, .what = "out of memory"};
    if (!memory)
        return false;
    r.items = (const char **)(void *)memory;
    r.room = memory + item_bytes;
    bool ok = memchr(text, 0, length) ? wrong(&r, "is no text: it holds a zero byte") : true;
    while (ok) {
        skip_lines(&r);
        if (r.at == r.end)
            break;
        if (take(&r, '[')) {
            ok = read_table(&r, &entry.table);
            continue;
        }
        ok = read_entry(&r, &entry) && visit(user, &entry);
        r.items += entry.item_count;
    }
    *ret_error = (struct toml_error){.line = r.line, .what = r.what};
    return ok;
}
