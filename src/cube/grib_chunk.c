/* See grib_chunk.h. */
#include "cube/grib_chunk.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"

void sq_grib_sources_close(struct sq_source **sources, const struct sq_grib_index *index)
{
    for (size_t i = 0; sources && i < index->file_count; i++)
        sq_source_close(sources[i]);
    sq_free(sources);
}

struct sq_source **sq_grib_sources_open(const struct sq_grib_index *index)
{
    struct sq_source **sources = sq_alloc_zero(index->file_count + 1, sizeof *sources);
    for (size_t i = 0; sources && i < index->file_count; i++)
        if (!(sources[i] = sq_source_of_file(index->files[i].path, &index->files[i].identity))) {
            sq_grib_sources_close(sources, index);
            return NULL;
        }
    return sources;
}

struct sq_location sq_grib_chunk_location(const struct sq_grib_index *index, struct sq_source *const *sources, size_t field, uint64_t param)
{
    const struct sq_grib_field *f = &index->fields[field];
    return (struct sq_location){
        .state = SQ_CHUNK_PRESENT, .source = sources[f->file], .offset = f->offset, .size_bytes = f->size_bytes, .param = param};
}

static int decode_message(const struct squall_array *a, const struct sq_grib_index *index, const struct sq_grib_field *field,
                          bool flip_rows, struct sq_grib_scratch *scratch, const void *bytes, size_t size, void *dst, size_t dst_size,
                          struct squall_error *err)
{
    const struct sq_grib_grid *grid = &index->grids[field->grid];
    const size_t points = dst_size / sq_type_size(a->info.type);
    struct sq_grib_frame frame;
    if (grid->point_count != points)
        return sq_error(err, SQUALL_ECORRUPT, "%llu points on a grid of %zu", (unsigned long long)grid->point_count, points);
    SQ_TRY(sq_grib_frame_of(bytes, size, field->in_message, &frame, err));
    return sq_grib_decode(bytes, size, &frame, grid, flip_rows, scratch, a->info.type == SQUALL_FLOAT64 ? SQ_GRIB_FLOAT64 : SQ_GRIB_FLOAT32,
                          dst, err);
}

int sq_grib_chunk_decode(const struct squall_array *a, const struct sq_grib_index *index, size_t field, bool flip_rows,
                         struct sq_grib_scratch *scratch, const void *bytes, size_t size, void *dst, size_t dst_size,
                         struct squall_error *err)
{
    const struct sq_grib_field *f = &index->fields[field];
    int status = decode_message(a, index, f, flip_rows, scratch, bytes, size, dst, dst_size, err);
    return status ? sq_error_within(err, status, "message at byte %llu, field %u", (unsigned long long)f->offset, f->in_message + 1U) : 0;
}

void *sq_grib_chunk_scratch_new(const struct squall_array *a)
{
    (void)a;
    return sq_grib_scratch_new();
}

void sq_grib_chunk_scratch_free(void *scratch)
{
    sq_grib_scratch_free(scratch);
}
