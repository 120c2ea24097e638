/* See json.h. A struct sq_json is a json-c object under another name, except that JSON null has a node of its own. */
#include "base/json.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 64, VALUES_LIMIT = 4 << 20 };

/* json-c has NULL for null. To tell "null" from "absent" our pointers to null go to this node, which is never inside a tree. */
static char null_node;

static struct json_object *inner(const struct sq_json *v)
{
    return (const void *)v == &null_node ? NULL : (struct json_object *)(uintptr_t)v;
}

static struct sq_json *outer(struct json_object *o)
{
    return o ? (struct sq_json *)o : (struct sq_json *)&null_node;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_structure(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
}

struct compact {
    char *text; /* without the blanks that part nothing: json-c looks at each one long, and half of an indented document is blanks */
    size_t length;
    size_t value_count; /* at least as many as there are */
    size_t zero_at;     /* of a zero character in a key, which json-c would end there; 0: there is none */
    bool whole; /* no comments or single quotes, which json-c takes though they are no JSON: what is a blank is not as clear there */
};

/* A sign and digits that no integer of 64 bits holds: json-c would take the nearest one that there is. */
static bool is_beyond_integers(const char *number, size_t length)
{
    const bool negative = *number == '-';
    const char *const most = negative ? "9223372036854775808" : "18446744073709551615";
    const size_t digits = length - negative, most_digits = strlen(most);
    return digits > most_digits || (digits == most_digits && memcmp(number + negative, most, digits) > 0);
}

/* The number at `text`; what is too large for an integer gets an exponent, which makes it a double. Returns its length. */
static size_t copy_number(const char *text, size_t length, struct compact *c)
{
    size_t sign = *text == '-', end = sign;
    while (end < length && text[end] >= '0' && text[end] <= '9')
        end++;
    const bool is_integer = end > sign && (end == length || !strchr(".eE", text[end]) || !text[end]);
    memcpy(c->text + c->length, text, end);
    c->length += end;
    if (is_integer && is_beyond_integers(text, end)) {
        memcpy(c->text + c->length, "e0", 2);
        c->length += 2;
    }
    return end;
}

static bool is_zero_escape(const char *text, size_t length)
{
    static const char ZERO[] = "\\u0000";
    return length >= sizeof ZERO - 1 && !memcmp(text, ZERO, sizeof ZERO - 1);
}

/* *c: one that is zero, with room for an eighth more characters. */
static void compact(const char *text, size_t length, struct compact *c)
{
    bool in_string = false;
    size_t zero_at = 0; /* in the last string */
    c->whole = true;
    c->value_count = 1;
    for (size_t i = 0; i < length; i++) {
        const char ch = text[i];
        if (in_string) {
            c->text[c->length++] = ch;
            if (ch == '\\' && i + 1 < length) {
                zero_at = is_zero_escape(text + i, length - i) ? i : zero_at;
                c->text[c->length++] = text[++i];
            }
            in_string = ch != '"';
            continue;
        }
        if (is_blank(ch)) {
            while (i + 1 < length && is_blank(text[i + 1]))
                i++;
            if (c->length > 0 && !is_structure(c->text[c->length - 1]) && i + 1 < length && !is_structure(text[i + 1]))
                c->text[c->length++] = ' ';
            continue;
        }
        if (ch == '-' || (ch >= '0' && ch <= '9' && (c->length == 0 || is_structure(c->text[c->length - 1])))) {
            i += copy_number(text + i, length - i, c) - 1;
            continue;
        }
        if (ch == ':' && zero_at)
            c->zero_at = zero_at;
        zero_at = 0;
        in_string = ch == '"';
        c->whole = c->whole && ch != '/' && ch != '\'';
        c->value_count += ch == ',' || ch == '[' || ch == '{';
        c->text[c->length++] = ch;
    }
}

static void tokener_cleanup(struct json_tokener **tokener)
{
    if (*tokener)
        json_tokener_free(*tokener);
}

/* *ret_end: how many characters were read. */
static enum json_tokener_error tokenize(struct json_tokener *tokener, const char *text, size_t length, struct json_object **ret,
                                        size_t *ret_end)
{
    json_tokener_reset(tokener);
    *ret = json_tokener_parse_ex(tokener, text, (int)length);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    *ret_end = json_tokener_get_parse_end(tokener);
    if (error == json_tokener_continue) { /* a bare number at the end of the text: a blank ends it */
        *ret = json_tokener_parse_ex(tokener, " ", 1);
        error = json_tokener_get_error(tokener);
    }
    return error;
}

/* The text as it is, for its own sake or for the place of an error. */
static int parse_as_it_is(struct json_tokener *tokener, const char *text, size_t length, struct sq_json **ret, struct squall_error *err)
{
    struct json_object *root = NULL;
    size_t end;
    enum json_tokener_error error = tokenize(tokener, text, length, &root, &end);
    if (error == json_tokener_continue)
        return sq_error(err, SQUALL_ECORRUPT, "JSON ends in the middle of a value, after %zu bytes", length);
    if (error != json_tokener_success)
        return sq_error(err, SQUALL_ECORRUPT, "no JSON at byte %zu: %s", end, json_tokener_error_desc(error));
    while (end < length && is_blank(text[end]))
        end++;
    if (end < length) {
        json_object_put(root);
        return sq_error(err, SQUALL_ECORRUPT, "at byte %zu: more after the end of the JSON value", end);
    }
    *ret = outer(root);
    return 0;
}

/* Commas and brackets anywhere: never fewer than there are values. */
static size_t count_values(const char *text, size_t length)
{
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count;
}

/* In a key or elsewhere; 0: nowhere. */
static size_t find_zero(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (is_zero_escape(text + i, length - i))
            return i;
    return 0;
}

int sq_json_parse(const char *text, size_t length, struct sq_json **ret, struct squall_error *err)
{
    if (length > SQ_JSON_LIMIT_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "%zu bytes of JSON: more than the limit of 128 MiB", length);
    SQ_CLEANUP_FREE char *room = sq_alloc(length + length / 8 + 1, 1);
    struct compact c = {.text = room};
    struct json_object *root = NULL;
    size_t end;
    if (!room)
        return sq_error_memory(err, length);
    compact(text, length, &c);
    if (!c.whole) {
        c.value_count = count_values(text, length);
        c.zero_at = find_zero(text, length);
    }
    if (c.zero_at)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %zu: a zero character (\\u0000) in the name of a JSON member", c.zero_at);
    if (c.value_count > VALUES_LIMIT)
        return sq_error(err, SQUALL_ECORRUPT, "JSON with more than %d values", VALUES_LIMIT);
    __attribute__((cleanup(tokener_cleanup))) struct json_tokener *tokener = json_tokener_new_ex(DEPTH_LIMIT);
    if (!tokener)
        return sq_error_memory(err, sizeof(void *));
    if (!c.whole || tokenize(tokener, c.text, c.length, &root, &end) != json_tokener_success)
        return parse_as_it_is(tokener, text, length, ret, err);
    if (end < c.length) {
        json_object_put(root);
        return parse_as_it_is(tokener, text, length, ret, err);
    }
    *ret = outer(root);
    return 0;
}

void sq_json_free(struct sq_json *root)
{
    if (root && inner(root))
        json_object_put(inner(root));
}

struct sq_json *sq_json_share(const struct sq_json *value)
{
    return value && inner(value) ? outer(json_object_get(inner(value))) : (struct sq_json *)(uintptr_t)value;
}

enum sq_json_type sq_json_type(const struct sq_json *v)
{
    if (!v)
        return SQ_JSON_ABSENT;
    switch (json_object_get_type(inner(v))) {
    case json_type_boolean:
        return SQ_JSON_BOOL;
    case json_type_int:
        return SQ_JSON_INT;
    case json_type_double:
        return SQ_JSON_DOUBLE;
    case json_type_string:
        return SQ_JSON_STRING;
    case json_type_array:
        return SQ_JSON_ARRAY;
    case json_type_object:
        return SQ_JSON_OBJECT;
    case json_type_null:
        break;
    }
    return SQ_JSON_NULL;
}

const struct sq_json *sq_json_get(const struct sq_json *object, const char *key)
{
    struct json_object *member;
    if (sq_json_type(object) != SQ_JSON_OBJECT || !json_object_object_get_ex(inner(object), key, &member))
        return NULL;
    return outer(member);
}

const struct sq_json *sq_json_at(const struct sq_json *array, size_t index)
{
    if (index >= sq_json_count(array) || sq_json_type(array) != SQ_JSON_ARRAY)
        return NULL;
    return outer(json_object_array_get_idx(inner(array), index));
}

size_t sq_json_count(const struct sq_json *v)
{
    if (sq_json_type(v) == SQ_JSON_ARRAY)
        return json_object_array_length(inner(v));
    return sq_json_type(v) == SQ_JSON_OBJECT ? (size_t)json_object_object_length(inner(v)) : 0;
}

const char *sq_json_string(const struct sq_json *v)
{
    return sq_json_type(v) == SQ_JSON_STRING ? json_object_get_string(inner(v)) : NULL;
}

size_t sq_json_string_bytes(const struct sq_json *v)
{
    return sq_json_type(v) == SQ_JSON_STRING ? (size_t)json_object_get_string_len(inner(v)) : 0;
}

/* json-c clamps what does not fit: a clamped value is told by reading it as the other kind. */
bool sq_json_int(const struct sq_json *v, int64_t *ret)
{
    if (sq_json_type(v) != SQ_JSON_INT)
        return false;
    int64_t value = json_object_get_int64(inner(v));
    if (value == INT64_MAX && json_object_get_uint64(inner(v)) != (uint64_t)INT64_MAX)
        return false;
    *ret = value;
    return true;
}

bool sq_json_uint(const struct sq_json *v, uint64_t *ret)
{
    if (sq_json_type(v) != SQ_JSON_INT || json_object_get_int64(inner(v)) < 0)
        return false;
    *ret = json_object_get_uint64(inner(v));
    return true;
}

bool sq_json_double(const struct sq_json *v, double *ret)
{
    enum sq_json_type type = sq_json_type(v);
    uint64_t large;
    if (type == SQ_JSON_INT && sq_json_uint(v, &large)) {
        *ret = (double)large;
        return true;
    }
    if (type != SQ_JSON_INT && type != SQ_JSON_DOUBLE)
        return false;
    *ret = json_object_get_double(inner(v));
    return true;
}

bool sq_json_bool(const struct sq_json *v, bool *ret)
{
    if (sq_json_type(v) != SQ_JSON_BOOL)
        return false;
    *ret = json_object_get_boolean(inner(v));
    return true;
}

bool sq_json_equal(const struct sq_json *a, const struct sq_json *b)
{
    if (!a || !b)
        return a == b;
    if (json_object_equal(inner(a), inner(b)))
        return true;
    /* a NaN is another number than itself, but says the same */
    SQ_CLEANUP_TEXT struct sq_text first = SQ_TEXT_INIT, second = SQ_TEXT_INIT;
    return !sq_json_write(a, false, &first, NULL) && !sq_json_write(b, false, &second, NULL) &&
           !strcmp(sq_text_string(&first), sq_text_string(&second));
}

int sq_json_each(const struct sq_json *object, sq_json_visit *visit, void *user, struct squall_error *err)
{
    if (sq_json_type(object) != SQ_JSON_OBJECT)
        return 0;
    struct json_object_iterator at = json_object_iter_begin(inner(object)), end = json_object_iter_end(inner(object));
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        int status = visit(user, json_object_iter_peek_name(&at), outer(json_object_iter_peek_value(&at)), err);
        if (status)
            return status;
    }
    return 0;
}

struct unknown_search {
    const char *const *known;
    const char *found;
};

static int check_member(void *user, const char *key, const struct sq_json *value, struct squall_error *err)
{
    (void)err;
    struct unknown_search *search = user;
    bool must_understand = true;
    for (const char *const *known = search->known; *known; known++)
        if (!strcmp(key, *known))
            return 0;
    if (sq_json_bool(sq_json_get(value, "must_understand"), &must_understand) && !must_understand)
        return 0;
    search->found = key;
    return 1;
}

const char *sq_json_unknown_member(const struct sq_json *document, const char *const *known)
{
    struct unknown_search search = {.known = known};
    return sq_json_each(document, check_member, &search, NULL) ? search.found : NULL;
}

struct sq_json *sq_json_new_object(void)
{
    return (struct sq_json *)json_object_new_object();
}

struct sq_json *sq_json_new_array(void)
{
    return (struct sq_json *)json_object_new_array();
}

struct sq_json *sq_json_new_string(const char *text)
{
    return (struct sq_json *)json_object_new_string(text);
}

struct sq_json *sq_json_new_int(int64_t value)
{
    return (struct sq_json *)json_object_new_int64(value);
}

struct sq_json *sq_json_new_uint(uint64_t value)
{
    return (struct sq_json *)json_object_new_uint64(value);
}

struct sq_json *sq_json_new_bool(bool value)
{
    return (struct sq_json *)json_object_new_boolean(value);
}

struct sq_json *sq_json_new_null(void)
{
    return (struct sq_json *)&null_node;
}

/* The shortest of the decimal texts that read back as the same double; always with a mark that it is no integer. */
struct sq_json *sq_json_new_double(double value)
{
    char text[40];
    if (isnan(value))
        return (struct sq_json *)json_object_new_double_s(value, "NaN");
    if (isinf(value))
        return (struct sq_json *)json_object_new_double_s(value, value < 0 ? "-Infinity" : "Infinity");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    if (!strpbrk(text, ".en"))
        snprintf(text + strlen(text), sizeof text - strlen(text), ".0");
    return (struct sq_json *)json_object_new_double_s(value, text);
}

int sq_json_set(struct sq_json *object, const char *key, struct sq_json *value)
{
    if (!object || !value || json_object_object_add(inner(object), key, inner(value)) != 0) {
        sq_json_free(value);
        return SQUALL_ENOMEM;
    }
    return 0;
}

int sq_json_append(struct sq_json *array, struct sq_json *value)
{
    if (!array || !value || json_object_array_add(inner(array), inner(value)) != 0) {
        sq_json_free(value);
        return SQUALL_ENOMEM;
    }
    return 0;
}

struct sq_json *sq_json_new_texts(const char *const *texts, size_t count)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < count; i++) {
        if (sq_json_append(v, sq_json_new_string(texts[i]))) {
            sq_json_free(v);
            return NULL;
        }
    }
    return v;
}

struct sq_json *sq_json_new_uints(const uint64_t *numbers, size_t count)
{
    struct sq_json *v = sq_json_new_array();
    for (size_t i = 0; v && i < count; i++) {
        if (sq_json_append(v, sq_json_new_uint(numbers[i]))) {
            sq_json_free(v);
            return NULL;
        }
    }
    return v;
}

int sq_json_set_string(struct sq_json *object, const char *key, const char *text)
{
    return sq_json_set(object, key, sq_json_new_string(text));
}

int sq_json_set_int(struct sq_json *object, const char *key, int64_t value)
{
    return sq_json_set(object, key, sq_json_new_int(value));
}

int sq_json_set_double(struct sq_json *object, const char *key, double value)
{
    return sq_json_set(object, key, sq_json_new_double(value));
}

void sq_json_remove(struct sq_json *object, const char *key)
{
    if (sq_json_type(object) == SQ_JSON_OBJECT)
        json_object_object_del(inner(object), key);
}

struct sq_json *sq_json_copy(const struct sq_json *v)
{
    struct json_object *copy = NULL;
    if (!v || !inner(v))
        return (struct sq_json *)(uintptr_t)v;
    return json_object_deep_copy(inner(v), &copy, NULL) == 0 ? (struct sq_json *)copy : NULL;
}

int sq_json_write(const struct sq_json *v, bool pretty, struct sq_text *out, struct squall_error *err)
{
    int flags = JSON_C_TO_STRING_NOSLASHESCAPE | (pretty ? JSON_C_TO_STRING_PRETTY : JSON_C_TO_STRING_PLAIN);
    size_t length = 4;
    const char *text = v && inner(v) ? json_object_to_json_string_length(inner(v), flags, &length) : "null";
    if (!v || !text)
        return sq_error_memory(err, 0);
    for (const char *at = text, *end = text + length; at < end; at++) {
        const char *plain = at;
        while (at < end && !((unsigned char)*at >= 0x7f && sq_text_control(at)))
            at++;
        sq_text_add_bytes(out, plain, (size_t)(at - plain));
        if (at == end)
            break;
        /* json-c escapes only what is below a blank */
        sq_text_printf(out, "\\u%04x", *at == 0x7f ? 0x7f : (unsigned char)at[1]);
        at += sq_text_control(at) - 1;
    }
    return out->failed ? sq_error_memory(err, length) : 0;
}
