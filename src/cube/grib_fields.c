/* See grib_fields.h. A place is a chunk, a field is what fills it; one table for each array says which. */
#include "cube/grib_fields.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "cube/grib_chunk.h"
#include <math.h>
#include <string.h>

/* What all arrays of a dataset share. */
struct files {
    struct sq_grib_index index;
    struct sq_source **sources; /* one for each file of the index */
    struct sq_arena *arena;     /* names, and the arrays' tables */
};

struct member {
    struct squall_array base;
    const struct files *files;
    const int32_t *fields; /* as in sq_grib_arrangement */
    size_t place_count;
    unsigned outer_rank;
    uint64_t shape[SQUALL_RANK_MAX], chunks[SQUALL_RANK_MAX];
    const char *dims[SQUALL_RANK_MAX];
    union {
        float single;
        double number;
    } fill;
};

static const struct member *member_of(const struct squall_array *a)
{
    return (const struct member *)a;
}

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    (void)err;
    const struct member *m = member_of(a);
    uint64_t place = 0;
    for (unsigned d = 0; d < m->outer_rank; d++)
        place = place * a->info.shape[d] + chunk[d];
    const int32_t row = m->fields[place];
    if (row < 0) {
        *ret = (struct sq_location){.state = SQ_CHUNK_MISSING};
        return 0;
    }
    *ret = sq_grib_chunk_location(&m->files->index, m->files->sources, (size_t)row, (uint64_t)row);
    return 0;
}

static int decode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    (void)threads;
    return sq_grib_chunk_decode(a, &member_of(a)->files->index, (size_t)where->param, false, scratch, bytes, size, dst, dst_size, err);
}

static int stored_bytes(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    (void)err;
    const struct member *m = member_of(a);
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->place_count; i++)
        if (m->fields[i] >= 0)
            bytes += m->files->index.fields[m->fields[i]].size_bytes;
    *ret = bytes;
    return 0;
}

static void member_free(struct squall_array *a)
{
    sq_free(a);
}

static const struct sq_array_ops OPS = {
    .locate = locate,
    .scratch_new = sq_grib_chunk_scratch_new,
    .scratch_free = sq_grib_chunk_scratch_free,
    .decode = decode,
    .stored_bytes = stored_bytes,
    .free = member_free,
};

/* ---- the dataset -------------------------------------------------------------------------------------------------------------------- */

static int check(const struct sq_grib_index *index, const struct sq_grib_arrangement *array, struct squall_error *err)
{
    uint64_t places = 1;
    if (array->grid >= index->grid_count || array->rank + 2 > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EINVAL, "array %s: grid %u of %zu, %u dimensions", array->name, array->grid, index->grid_count,
                        array->rank);
    for (unsigned d = 0; d < array->rank; d++)
        if (__builtin_mul_overflow(places, array->shape[d], &places))
            return sq_error(err, SQUALL_EINVAL, "array %s has too many places", array->name);
    if (places != array->place_count)
        return sq_error(err, SQUALL_EINVAL, "array %s: fields for %zu of %llu places", array->name, array->place_count,
                        (unsigned long long)places);
    for (size_t i = 0; i < array->place_count; i++)
        if (array->fields[i] >= 0 &&
            ((size_t)array->fields[i] >= index->field_count || index->fields[array->fields[i]].grid != array->grid))
            return sq_error(err, SQUALL_EINVAL, "array %s: no field %d on grid %u", array->name, array->fields[i], array->grid);
    return 0;
}

/* Copies of the arrangement's texts and table into the arena. */
static int copy(struct files *files, struct member *m, const struct sq_grib_arrangement *array, unsigned rank, struct squall_error *err)
{
    m->fields = sq_arena_copy(files->arena, array->fields, array->place_count * sizeof *array->fields);
    m->base.info.name = sq_arena_strdup(files->arena, array->name);
    bool failed = !m->fields || !m->base.info.name;
    for (unsigned d = 0; d < rank; d++)
        failed |= !(m->dims[d] = sq_arena_strdup(files->arena, array->dims[d]));
    return failed ? sq_error_memory(err, array->place_count * sizeof *array->fields) : 0;
}

static const char *packing_of(const struct sq_grib_index *index, const struct member *m)
{
    for (size_t i = 0; i < m->place_count; i++)
        if (m->fields[i] >= 0)
            return index->packings[index->fields[m->fields[i]].packing].name;
    return "none";
}

static void describe(const struct files *files, struct member *m, enum squall_type type, unsigned rank)
{
    if (type == SQUALL_FLOAT64)
        m->fill.number = (double)NAN;
    else
        m->fill.single = NAN;
    m->base.ops = &OPS;
    m->base.fill = &m->fill;
    m->base.info.type = type;
    m->base.info.type_name = sq_type_name(type);
    m->base.info.numpy_type = sq_type_numpy(type);
    m->base.info.element_bytes = squall_type_size(type);
    m->base.info.rank = rank;
    m->base.info.shape = m->shape;
    m->base.info.chunks = m->chunks;
    m->base.info.dims = m->dims;
    m->base.info.codecs = packing_of(&files->index, m);
    m->base.info.attributes = "{}";
    m->base.info.fill_value = "\"NaN\"";
}

static int add(struct squall_dataset *ds, struct files *files, const struct sq_grib_arrangement *array, struct squall_error *err)
{
    SQ_TRY(check(&files->index, array, err));
    const struct sq_grib_grid *grid = &files->index.grids[array->grid];
    const unsigned rank = array->rank + (grid->rectangular ? 2 : 1);
    struct member *m = sq_alloc_zero(1, sizeof *m);
    if (!m)
        return sq_error_memory(err, sizeof *m);
    m->files = files;
    m->outer_rank = array->rank;
    m->place_count = array->place_count;
    for (unsigned d = 0; d < array->rank; d++) {
        m->shape[d] = array->shape[d];
        m->chunks[d] = 1;
    }
    m->shape[rank - 1] = m->chunks[rank - 1] = grid->rectangular ? grid->columns : grid->point_count;
    if (grid->rectangular)
        m->shape[rank - 2] = m->chunks[rank - 2] = grid->rows;
    int status = copy(files, m, array, rank, err);
    if (status) {
        sq_free(m);
        return status;
    }
    describe(files, m, array->type, rank);
    return sq_dataset_add(ds, &m->base, err);
}

static void files_free(void *data)
{
    struct files *files = data;
    sq_grib_sources_close(files->sources, &files->index);
    sq_arena_free(files->arena);
    sq_grib_index_done(&files->index);
    sq_free(files);
}

/* NULL: out of memory. The index is taken over in any case. */
static struct files *files_new(struct sq_grib_index *index)
{
    struct files *files = sq_alloc_zero(1, sizeof *files);
    if (!files) {
        sq_grib_index_done(index);
        memset(index, 0, sizeof *index);
        return NULL;
    }
    files->index = *index;
    memset(index, 0, sizeof *index);
    files->arena = sq_arena_new();
    files->sources = sq_grib_sources_open(&files->index);
    if (!files->arena || !files->sources) {
        files_free(files);
        return NULL;
    }
    return files;
}

int sq_grib_fields_dataset(const struct squall_context *ctx, const char *path, struct sq_grib_index *index,
                           const struct sq_grib_arrangement *arrays, size_t array_count, struct squall_dataset **ret,
                           struct squall_error *err)
{
    struct files *files = files_new(index);
    if (!files)
        return sq_error_memory(err, sizeof *files);
    struct squall_dataset *ds = sq_dataset_new(ctx, path, "grib", err);
    if (!ds) {
        files_free(files);
        return SQUALL_ENOMEM;
    }
    ds->format_data = files;
    ds->format_data_free = files_free;
    for (size_t i = 0; i < array_count; i++) {
        int status = add(ds, files, &arrays[i], err);
        if (status) {
            squall_dataset_close(ds);
            return status;
        }
    }
    *ret = ds;
    return 0;
}
