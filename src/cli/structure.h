/*
 * Elements that are made of others: structures, "[('a', '<i4'), ('b', '<f8', (3,))]" to numpy, and sequences of a type. The type's text is read
 * along with the bytes; the library has checked it. Where parts have no fixed size, it is squall_array_info's sequence_type.
 */
#ifndef SQ_CLI_STRUCTURE_H
#define SQ_CLI_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool is_structure(const char *numpy_type);

/* An object whose members are the fields; a field that is an array, lists in lists. */
void structure_print_json(FILE *out, const char *numpy_type, const void *element);
/* A cell a field, those of a structure within it among them; a field that is an array is JSON in one cell. */
void structure_print_csv(FILE *out, const char *numpy_type, const void *element);
/* The names of these cells: "wind.speed,wind.direction". */
void structure_print_names(FILE *out, const char *numpy_type, const char *name);

/* size_bytes of elements of a type: a JSON list. */
void sequence_print_json(FILE *out, const char *numpy_type, const void *elements, size_t size_bytes);
void sequence_print_csv(FILE *out, const char *numpy_type, const void *elements, size_t size_bytes); /* the same in one cell */

#endif
