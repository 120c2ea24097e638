/*
 * One unit in memory: its fields decoded, in parallel, straight into the buffers of the chunks that they belong to. Only chunks
 * that a field touches have a buffer. The buffers are used again for every unit; nothing of them is set that a field fills.
 */
#ifndef SQ_CONVERT_UNIT_H
#define SQ_CONVERT_UNIT_H

#include "convert/carry.h"
#include "convert/slabs.h"
#include "engine/context.h"

/* What all units of a run share. */
struct sq_unit_setting {
    const struct squall_context *ctx;
    const struct sq_grib_index *index;
    const struct sq_cube *cube;
    const struct sq_layout *layout;
    enum sq_overflow overflow;
    unsigned coarsen_y, coarsen_x;
};

/* A field that could not be decoded. */
struct sq_unit_bad {
    const struct sq_cube_place *place;
    char *message;
};

struct sq_unit;

/* *ret: sq_unit_free. */
int sq_unit_new(const struct sq_unit_setting *setting, struct sq_unit **ret, struct squall_error *err) SQUALL_CHECK;
void sq_unit_free(struct sq_unit *unit);

/* A part of a unit that is in memory at a time: of all groups of chunks (slabs.h) of all arrays, those from first to before end. {0}: all of them. */
struct sq_band {
    uint64_t first, end;
};

/* The fields of a unit: `places` are all of the unit, and of no other; the rest is carried over. */
struct sq_unit_fields {
    const struct sq_cube_place *places;
    size_t place_count;
    const struct sq_carry *carry; /* NULL: nothing is */
    struct sq_band band;
};

/* Bytes in memory of the chunks that the fields touch, and how many those are. What the unit held is gone. */
uint64_t sq_unit_measure(struct sq_unit *unit, const struct sq_unit_fields *fields, uint64_t *ret_chunk_count);
/* Bytes of the largest group that was measured, and its array: no band is smaller. */
uint64_t sq_unit_largest_group(const struct sq_unit *unit, size_t *ret_array);
/*
 * Move on: fields->band gets the groups behind it, as many as room_bytes are enough for, and at least one that a field touches. Returns whether they are
 * the last. *ret_bytes: of their chunks.
 */
bool sq_unit_next_band(struct sq_unit *unit, struct sq_unit_fields *fields, uint64_t room_bytes, uint64_t *ret_bytes);
/* Make the buffers for the largest unit at once; without it they grow as units are loaded. */
int sq_unit_reserve(struct sq_unit *unit, uint64_t chunk_bytes, struct squall_error *err) SQUALL_CHECK;

/*
 * Decode the unit's fields, or those in a band of it; what the unit held before is gone, but the states of slabs and the bad fields of earlier bands. A field whose bytes are damaged costs only itself (SQ_SLAB_BAD, or what is
 * stored is carried over). Errors end the unit: SQUALL_EIO (a file cannot be read, or is another one than was scanned), SQUALL_ERANGE (a
 * value does not fit its array's type: variable, file, value), SQUALL_ENOTFOUND and SQUALL_ECORRUPT (a chunk that is to be carried over),
 * SQUALL_ECANCELLED.
 */
int sq_unit_load(struct sq_unit *unit, const struct sq_unit_fields *fields, struct squall_error *err) SQUALL_CHECK;

/* The chunk's bytes in memory (chunk: in C order over the grid behind init_time); NULL: no field touches it, it is not stored. */
const void *sq_unit_chunk(const struct sq_unit *unit, size_t array, uint64_t chunk);
/* enum sq_slab_state of each slab, (init within the unit) × slabs_per_init + slab. */
const uint8_t *sq_unit_slabs(const struct sq_unit *unit, size_t array);
uint64_t sq_unit_bytes_read(const struct sq_unit *unit);
size_t sq_unit_bad(const struct sq_unit *unit, const struct sq_unit_bad **ret); /* in the order of places */

/* Tell the system that the messages of these places are wanted soon. */
void sq_unit_prefetch(const struct sq_unit_setting *setting, const struct sq_cube_place *places, size_t place_count);

/* What a unit takes in memory, beside its chunks: buffers of the threads for messages and fields, tables of slabs and chunks. */
uint64_t sq_unit_other_bytes(const struct sq_unit_setting *setting);

#endif
