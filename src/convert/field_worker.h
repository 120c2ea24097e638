/*
 * What a thread needs to bring one GRIB field into the chunks of a unit: a file, a message's bytes, a field's values. Kept from
 * field to field, so that no field costs an allocation.
 */
#ifndef SQ_CONVERT_FIELD_WORKER_H
#define SQ_CONVERT_FIELD_WORKER_H

#include "convert/unit.h"

struct sq_field_worker {
    struct sq_source *source; /* of `file` */
    uint32_t file;
    uint8_t *message;
    size_t message_capacity;
    void *values, *coarse;
    size_t values_capacity, coarse_capacity;
    struct sq_grib_scratch *scratch;
};

/* Read a message. SQUALL_EIO: it cannot be read, or its file is not the one that was scanned. */
int sq_field_worker_read(struct sq_field_worker *w, const struct sq_unit_setting *s, const struct sq_grib_field *field,
                         struct squall_error *err) SQUALL_CHECK;
/*
 * Decode the place's field of the message that was read, and put it where it belongs: `plane` is its part of the first of the
 * chunks that cut the slab; its parts of the others are chunk_bytes apart, in C order. *ret_damaged: the bytes are no field (the
 * status is 0, the message in err). SQUALL_ERANGE: a value that does not fit.
 */
int sq_field_worker_place(struct sq_field_worker *w, const struct sq_unit_setting *s, const struct sq_cube_place *place, uint8_t *plane,
                          bool *ret_damaged, struct squall_error *err) SQUALL_CHECK;
/* Close the file; SQUALL_EIO where it is another one by now. */
int sq_field_worker_leave(struct sq_field_worker *w, struct squall_error *err) SQUALL_CHECK;
void sq_field_worker_done(struct sq_field_worker *w);

#endif
