/*
 * What a unit keeps of its old chunks when it is made anew: the fields that its record has stored and the sources no longer give. A chunk is
 * read whole and believed only where length and checksum are those of the record.
 */
#ifndef SQ_CONVERT_CARRY_H
#define SQ_CONVERT_CARRY_H

#include "convert/layout.h"
#include "format/zarr/records.h"
#include "store/zarr_writer.h"

struct sq_carry {
    struct sq_store store;
    const struct sq_layout *layout;
    const struct sq_record_unit *record; /* fits the layout */
};

/* The file's bytes. *ret: sq_free. SQUALL_ENOTFOUND, or SQUALL_ECORRUPT where they are not those of the record; both name the file. */
int sq_carry_read(const char *path, const struct sq_record_chunk *chunk, char **ret, struct squall_error *err) SQUALL_CHECK;
/* The old chunk's elements, chunk_bytes of the array. Errors as above, and SQUALL_ECORRUPT where it cannot be decoded. */
int sq_carry_chunk(const struct sq_carry *c, size_t array, uint64_t chunk, struct sq_codec_scratch *scratch, void *dst,
                   struct squall_error *err) SQUALL_CHECK;
/* Slabs of the array that the record has stored; it need not know the array. */
const struct sq_ranges *sq_carry_stored(const struct sq_carry *c, size_t array);

#endif
