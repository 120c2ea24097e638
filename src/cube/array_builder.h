/* What building a cube of arrays (array_cube.h) has in hand: its entries, found by array_entries.c, become coordinates (array_coordinates.c) and variables. */
#ifndef SQ_CUBE_ARRAY_BUILDER_H
#define SQ_CUBE_ARRAY_BUILDER_H

#include "cube/array_axis.h"
#include "cube/array_cube.h"

/* What becomes of an array. */
enum sq_array_role {
    SQ_ARRAY_VARIABLE, /* has the append dimension: written unit by unit */
    SQ_ARRAY_SMALL,    /* has it, but so little at each index that it is written as a coordinate: bounds of times, texts */
    SQ_ARRAY_STATIC,   /* has it not */
    SQ_ARRAY_AXIS,     /* the append dimension's coordinate */
};

struct sq_array_entry {
    const char *name;                     /* in the store */
    struct squall_array *source, *stored; /* one of them may be NULL */
    enum sq_array_role role;
};

struct sq_array_builder {
    const struct sq_array_cube_options *options;
    struct sq_cube *cube;
    const char *dim;
    uint64_t length; /* of the dimension in the sources */
    struct sq_array_entry *entries;
    size_t entry_count, entry_capacity;
    struct sq_array_axis axis;
    bool by_index;            /* no coordinate of numbers says what the places are */
    struct sq_json *left_out; /* names that are known and not stored */
    size_t note_capacity, warning_capacity, ignored_capacity, damage_capacity, coordinate_capacity, variable_capacity;
};

/* array_entries.c: the arrays of the sources, or of the store that is there, with what becomes of them. What is left out is told. */
int sq_array_entries_list(struct sq_array_builder *b, struct squall_error *err) SQUALL_CHECK;
/* The entry's array, of the sources or else of the store; its elements at one index of the append dimension. */
const struct squall_array *sq_array_entry_array(const struct sq_array_entry *e);
uint64_t sq_array_elements_at_an_index(const struct squall_array *a);
/* A line for the user. */
__attribute__((format(printf, 3, 4))) int sq_array_tell(struct sq_array_builder *b, struct squall_error *err, const char *format,
                                                        ...) SQUALL_CHECK;
/* So many slabs of a file are ignored, and why: a line for the user, the report and the records. */
__attribute__((format(printf, 6, 7))) int sq_array_ignore(struct sq_array_builder *b, uint32_t file, enum sq_cube_reason reason,
                                                          uint64_t count, struct squall_error *err, const char *format, ...) SQUALL_CHECK;

/* array_cube.c: the source file of an index along the sources' append dimension. */
uint32_t sq_array_file_of(const struct sq_array_builder *b, uint64_t index);

/* array_coordinates.c: all entries that are no variables. */
int sq_array_coordinates_add(struct sq_array_builder *b, struct squall_error *err) SQUALL_CHECK;
/* An entry's attributes in the store; of one that is there its own, so that nothing of it changes. SQUALL_EREFUSED: they mean something else. */
int sq_array_entry_attributes(struct sq_array_builder *b, const struct sq_array_entry *e, struct sq_json **ret,
                              struct squall_error *err) SQUALL_CHECK;

#endif
