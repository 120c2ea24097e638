/* One element of an array, of any type, as people and programs read it. */
#ifndef SQ_CLI_ELEMENT_H
#define SQ_CLI_ELEMENT_H

#include "squall/squall.h"
#include <stdbool.h>
#include <stdio.h>

enum element_form {
    ELEMENT_CSV,  /* texts in quotes where they need them */
    ELEMENT_JSON, /* a JSON value; what JSON cannot say (NaN, infinities, "not a time") is null */
};

/*
 * Numbers in the fewest digits that read back, those of an enumeration by name; dates as numpy prints them ("2022-01-01T06:00:00", to the type's unit), spans as a number of units;
 * complex numbers "1+2j"; texts as they are; bytes as ASCII where they are; raw bits in hexadecimal; structures and sequences: structure.h. values: of the array that info tells of, as read.
 */
void element_print(FILE *out, const struct squall_array_info *info, const void *values, size_t index, enum element_form form);
/* Of integers, floats, and the counts of SQUALL_DATETIME64 and SQUALL_TIMEDELTA64, as near as a double is. false: the type is none of these. */
bool element_number(const struct squall_array_info *info, const void *values, size_t index, double *ret);
/* Of SQUALL_TEXT, and of SQUALL_RAW that numpy calls S: the text. Malloc'ed; NULL: out of memory. */
char *element_text(const struct squall_array_info *info, const void *values, size_t index);
/* Of SQUALL_DATETIME64 and SQUALL_TIMEDELTA64: seconds in one step of the count; 0: its unit has no fixed length. */
double element_unit_s(const struct squall_array_info *info);
void print_csv_text(FILE *out, const char *text, size_t length); /* with quotes where CSV needs them */
/* What values of variable length point at. */
void elements_free(enum squall_type type, void *values, size_t count);

#endif
