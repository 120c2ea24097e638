/*
 * Attributes: the members of a JSON object, as the library gives them (well-formed; compact or not). Their values are not understood further than
 * that a text has quotes.
 */
#ifndef SQ_CLI_ATTRIBUTES_H
#define SQ_CLI_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

struct attribute {
    const char *name; /* JSON text without its quotes */
    size_t name_length;
    const char *value; /* JSON text: "K", 1.0, [0,1] */
    size_t value_length;
};

/* The member at *at, which begins as the object's text and moves behind it; false: there is no more. */
bool attribute_next(const char **at, struct attribute *ret);

bool attribute_find(const char *attributes, const char *name, struct attribute *ret);

/* A text without quotes and escapes, cut to size - 1 bytes; "" where the attribute is not there or is no text. */
const char *attribute_text(const char *attributes, const char *name, char *buffer, size_t size);

/* The same of the name. */
const char *attribute_name(const struct attribute *a, char *buffer, size_t size);

/* "OWNER:NAME = VALUE" on a line each, as ncdump has them, behind `indent` spaces; what does not fit 80 columns is cut, and says how long it is. */
void attributes_print(const char *attributes, const char *owner, int indent);

/* A JSON text as the library gives it, with null for NaN and infinities, which JSON does not have. */
void print_strict_json(const char *text);

#endif
