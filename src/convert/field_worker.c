/* See field_worker.h. The values go from the packed bytes to the output in one or two passes over buffers that stay in cache. */
#include "convert/field_worker.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "io/source.h"
#include <string.h>

/* Grown by half as much again, so that messages of rising size do not each cost a new buffer. */
static int make_room(void **buffer, size_t *capacity, size_t need, struct squall_error *err)
{
    if (need <= *capacity)
        return 0;
    void *grown = sq_pages_alloc(need + need / 2);
    if (!grown)
        return sq_error_memory(err, need + need / 2);
    sq_pages_free(*buffer, *capacity);
    *buffer = grown;
    *capacity = need + need / 2;
    return 0;
}

static int check_identity(const struct sq_source *source, const struct sq_grib_file *file, struct squall_error *err)
{
    struct sq_file_identity now = sq_source_identity(source), then = file->identity;
    if (now.inode == then.inode && now.device == then.device && now.size_bytes == then.size_bytes && now.mtime_ns == then.mtime_ns)
        return 0;
    return sq_error(err, SQUALL_EIO, "%s changed since it was scanned; run again when it is complete", file->path);
}

static int enter(struct sq_field_worker *w, const struct sq_unit_setting *s, uint32_t file, struct squall_error *err)
{
    if (w->source && w->file == file)
        return 0;
    SQ_TRY(sq_field_worker_leave(w, err));
    SQ_TRY(sq_source_open_file(s->index->files[file].path, &w->source, err));
    w->file = file;
    return check_identity(w->source, &s->index->files[file], err);
}

int sq_field_worker_leave(struct sq_field_worker *w, struct squall_error *err)
{
    int status = w->source ? sq_source_check_unchanged(w->source, err) : 0;
    sq_source_close(w->source);
    w->source = NULL;
    return status;
}

/* The library's statuses for files are told apart elsewhere; whatever keeps a message from being read is an I/O failure here. */
int sq_field_worker_read(struct sq_field_worker *w, const struct sq_unit_setting *s, const struct sq_grib_field *field,
                         struct squall_error *err)
{
    SQ_TRY(make_room((void **)&w->message, &w->message_capacity, field->size_bytes, err));
    int status = enter(w, s, field->file, err);
    if (!status)
        status = sq_source_read(w->source, field->offset, w->message, field->size_bytes, err);
    if (!status || status == SQUALL_ENOMEM)
        return status;
    if (err)
        err->status = SQUALL_EIO;
    return SQUALL_EIO;
}

/* Is a slab, as decoded, already as its one chunk wants it? */
static bool lies_as_decoded(const struct sq_unit_setting *s, const struct sq_layout_array *a)
{
    unsigned last = a->rank - 1;
    bool whole = a->chunks[last] == a->columns && (a->slab_rank == 1 || a->chunks[last - 1] == a->rows);
    return whole && a->type != SQUALL_FLOAT16 && s->coarsen_y == 1 && s->coarsen_x == 1;
}

static int overflow(const struct sq_unit_setting *s, const struct sq_cube_place *place, const struct sq_layout_array *a, double value,
                    struct squall_error *err)
{
    const struct sq_grib_field *field = &s->index->fields[place->field];
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_cube_field_text(s->index, place->field, &text, err));
    return sq_error(err, SQUALL_ERANGE,
                    "%s: %.9g does not fit %s, which ends at %g (%s, byte %llu: %s); use --on-overflow inf or clip, or --dtype %s=float32",
                    a->name, value, sq_type_name(a->type), sq_type_greatest(a->type), s->index->files[field->file].path,
                    (unsigned long long)field->offset, sq_text_string(&text), a->name);
}

/* Cast the slab's values, packed rows, into the chunks that cut it; what a chunk has beyond the array's edge becomes NaN. */
static bool scatter(const struct sq_unit_setting *s, const struct sq_layout_array *a, enum squall_type src_type, const uint8_t *values,
                    uint8_t *plane, double *ret_value)
{
    const float nan32 = __builtin_nanf("");
    const double nan64 = __builtin_nan("");
    const uint16_t nan16 = 0x7e00;
    const void *fill = a->type == SQUALL_FLOAT16 ? (const void *)&nan16 : a->type == SQUALL_FLOAT32 ? (const void *)&nan32 : &nan64;
    size_t src_bytes = sq_type_size(src_type), dst_bytes = a->element_bytes;
    uint64_t wide = a->chunks[a->rank - 1], high = a->slab_rank == 2 ? a->chunks[a->rank - 2] : 1;
    for (uint64_t row = 0; row < a->rows; row += high) {
        for (uint64_t column = 0; column < a->columns; column += wide, plane += a->chunk_bytes) {
            uint64_t rows = a->rows - row < high ? a->rows - row : high;
            uint64_t columns = a->columns - column < wide ? a->columns - column : wide;
            const uint8_t *src = values + (row * a->columns + column) * src_bytes;
            if (!sq_scatter_cast(src_type, src, a->columns, a->type, plane, wide, rows, columns, s->overflow, NULL, ret_value))
                return false;
            for (uint64_t r = 0; r < rows && columns < wide; r++)
                sq_scatter_fill(plane + (r * wide + columns) * dst_bytes, wide - columns, dst_bytes, fill);
            if (rows < high)
                sq_scatter_fill(plane + rows * wide * dst_bytes, (high - rows) * wide, dst_bytes, fill);
        }
    }
    return true;
}

/* Of the grid as the file has it: rows (1: no rectangle) and columns. False where they are not those of the array. */
static bool grid_shape(const struct sq_unit_setting *s, const struct sq_grib_grid *grid, const struct sq_layout_array *a, size_t *ret_rows,
                       size_t *ret_columns)
{
    *ret_rows = a->slab_rank == 2 ? grid->rows : 1;
    *ret_columns = a->slab_rank == 2 ? grid->columns : grid->point_count;
    uint64_t rows = a->slab_rank == 2 ? (*ret_rows + s->coarsen_y - 1) / s->coarsen_y : 1;
    uint64_t columns = a->slab_rank == 2 ? (*ret_columns + s->coarsen_x - 1) / s->coarsen_x : *ret_columns;
    return rows == a->rows && columns == a->columns;
}

/* Decode into dst; damage is no failure. */
static int decode(struct sq_field_worker *w, const struct sq_unit_setting *s, const struct sq_cube_place *place, enum sq_grib_output output,
                  void *dst, bool *ret_damaged, struct squall_error *err)
{
    const struct sq_grib_field *field = &s->index->fields[place->field];
    struct sq_grib_frame frame;
    if (!w->scratch && !(w->scratch = sq_grib_scratch_new()))
        return sq_error_memory(err, sizeof frame);
    int status = sq_grib_frame_of(w->message, field->size_bytes, field->in_message, &frame, err);
    if (!status)
        status = sq_grib_decode(w->message, field->size_bytes, &frame, &s->index->grids[field->grid], place->flip_rows, w->scratch, output,
                                dst, err);
    *ret_damaged = status && status != SQUALL_ENOMEM;
    return status == SQUALL_ENOMEM ? status : 0;
}

int sq_field_worker_place(struct sq_field_worker *w, const struct sq_unit_setting *s, const struct sq_cube_place *place, uint8_t *plane,
                          bool *ret_damaged, struct squall_error *err)
{
    const struct sq_layout_array *a = &s->layout->arrays[place->variable];
    const struct sq_grib_grid *grid = &s->index->grids[s->index->fields[place->field].grid];
    enum squall_type type = a->type == SQUALL_FLOAT64 ? SQUALL_FLOAT64 : SQUALL_FLOAT32;
    enum sq_grib_output output = type == SQUALL_FLOAT64 ? SQ_GRIB_FLOAT64 : SQ_GRIB_FLOAT32;
    size_t rows, columns, bytes;
    double value = 0;
    if (!grid_shape(s, grid, a, &rows, &columns))
        return sq_error(err, SQUALL_ECORRUPT, "%s: a field of %zu × %zu points was placed on another grid", a->name, rows, columns);
    if (lies_as_decoded(s, a))
        return decode(w, s, place, output, plane, ret_damaged, err);
    if (!sq_mul_size(grid->point_count, sq_type_size(type), &bytes))
        return sq_error_memory(err, SIZE_MAX);
    SQ_TRY(make_room(&w->values, &w->values_capacity, bytes, err));
    SQ_TRY(decode(w, s, place, output, w->values, ret_damaged, err));
    if (*ret_damaged)
        return 0;
    const void *values = w->values;
    if (a->slab_rank == 2 && (s->coarsen_y > 1 || s->coarsen_x > 1)) {
        SQ_TRY(make_room(&w->coarse, &w->coarse_capacity, a->rows * a->columns * sq_type_size(type), err));
        sq_scatter_coarsen(type, w->values, rows, columns, s->coarsen_y, s->coarsen_x, w->coarse);
        values = w->coarse;
    }
    return scatter(s, a, type, values, plane, &value) ? 0 : overflow(s, place, a, value, err);
}

void sq_field_worker_done(struct sq_field_worker *w)
{
    sq_source_close(w->source);
    sq_pages_free(w->message, w->message_capacity);
    sq_pages_free(w->values, w->values_capacity);
    sq_pages_free(w->coarse, w->coarse_capacity);
    sq_grib_scratch_free(w->scratch);
    *w = (struct sq_field_worker){0};
}
