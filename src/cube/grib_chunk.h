/* A GRIB field as a chunk of an array: where it lies, and its values. The files of an index, as sources. */
#ifndef SQ_CUBE_GRIB_CHUNK_H
#define SQ_CUBE_GRIB_CHUNK_H

#include "engine/array.h"
#include "format/grib/index.h"

/* One for each file of the index; NULL: out of memory. */
struct sq_source **sq_grib_sources_open(const struct sq_grib_index *index);
void sq_grib_sources_close(struct sq_source **sources, const struct sq_grib_index *index);

/* param: comes back when the chunk is decoded */
struct sq_location sq_grib_chunk_location(const struct sq_grib_index *index, struct sq_source *const *sources, size_t field,
                                          uint64_t param);
/* bytes: the field's message. dst: dst_size bytes of float32 or float64, as the array has them; errors name message and field. */
int sq_grib_chunk_decode(const struct squall_array *a, const struct sq_grib_index *index, size_t field, bool flip_rows,
                         struct sq_grib_scratch *scratch, const void *bytes, size_t size, void *dst, size_t dst_size,
                         struct squall_error *err) SQUALL_CHECK;

/* Of arrays whose chunks are fields. */
void *sq_grib_chunk_scratch_new(const struct squall_array *a);
void sq_grib_chunk_scratch_free(void *scratch);

#endif
