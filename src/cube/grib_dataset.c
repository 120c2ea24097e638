/*
 * See grib_dataset.h. A field is a chunk: where it lies in its file is known from the index, where it belongs from the cube. Places that
 * no field fills are missing chunks, which read as NaN. Coordinates are computed when the dataset is opened, and lie in memory.
 */
#include "cube/grib_dataset.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/cube.h"
#include "cube/grib_chunk.h"
#include <math.h>
#include <string.h>

enum { RANK_MAX = 8 }; /* of a variable of the cube */

struct grib {
    struct sq_grib_index index;
    struct sq_cube cube;
    bool has_cube;
    struct sq_source **sources; /* one for each file of the index */
};

/* A variable of the cube, or one of its coordinates. */
struct member {
    struct squall_array base;
    const struct grib *grib;
    uint32_t variable;
    unsigned slab_dim;  /* first dimension of the horizontal slab */
    const void *values; /* of a coordinate */
    char *attributes;   /* JSON text */
    uint64_t chunks[RANK_MAX];
    union {
        float single;
        double number;
    } fill; /* coordinates never need theirs */
};

static const struct member *member_of(const struct squall_array *a)
{
    return (const struct member *)a;
}

/* ---- variables -------------------------------------------------------------------------------------------------------------------- */

/* The place of (init, variable, slab) in the cube's order; NULL: no field is there. */
static const struct sq_cube_place *find_place(const struct sq_cube *cube, uint64_t init, uint32_t variable, uint64_t slab)
{
    size_t low = 0, high = cube->place_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sq_cube_place *p = &cube->places[middle];
        bool before = p->init != init ? p->init < init : p->variable != variable ? p->variable < variable : p->slab < slab;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    const struct sq_cube_place *p = &cube->places[low];
    return low < cube->place_count && p->init == init && p->variable == variable && p->slab == slab ? p : NULL;
}

static int locate_field(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    (void)err;
    const struct member *m = member_of(a);
    uint64_t slab = 0;
    for (unsigned d = 1; d < m->slab_dim; d++)
        slab = slab * a->info.shape[d] + chunk[d];
    const struct sq_cube_place *place = find_place(&m->grib->cube, chunk[0], m->variable, slab);
    if (!place) {
        *ret = (struct sq_location){.state = SQ_CHUNK_MISSING};
        return 0;
    }
    *ret = sq_grib_chunk_location(&m->grib->index, m->grib->sources, place->field, (uint64_t)(place - m->grib->cube.places));
    return 0;
}

static int decode_field(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                        size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    (void)threads;
    const struct grib *g = member_of(a)->grib;
    const struct sq_cube_place *place = &g->cube.places[where->param];
    return sq_grib_chunk_decode(a, &g->index, place->field, place->flip_rows, scratch, bytes, size, dst, dst_size, err);
}

static int stored_bytes_of_fields(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    (void)err;
    const struct grib *g = member_of(a)->grib;
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->cube.place_count; i++)
        if (g->cube.places[i].variable == member_of(a)->variable)
            bytes += g->index.fields[g->cube.places[i].field].size_bytes;
    *ret = bytes;
    return 0;
}

static void member_free(struct squall_array *a)
{
    struct member *m = (struct member *)a;
    sq_free(m->attributes);
    sq_free(m);
}

static const struct sq_array_ops VARIABLE_OPS = {
    .locate = locate_field,
    .scratch_new = sq_grib_chunk_scratch_new,
    .scratch_free = sq_grib_chunk_scratch_free,
    .decode = decode_field,
    .stored_bytes = stored_bytes_of_fields,
    .free = member_free,
};

/* ---- coordinates ------------------------------------------------------------------------------------------------------------------ */

static int locate_values(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    (void)chunk;
    (void)err;
    *ret = (struct sq_location){.state = SQ_CHUNK_INLINE, .elements = member_of(a)->values};
    return 0;
}

static void *no_scratch(const struct squall_array *a)
{
    (void)a;
    return sq_alloc(1, 1);
}

static const struct sq_array_ops COORDINATE_OPS = {
    .locate = locate_values,
    .scratch_new = no_scratch,
    .scratch_free = sq_free,
    .free = member_free,
};

/* ---- the dataset ------------------------------------------------------------------------------------------------------------------ */

static int json_text(const struct sq_json *value, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (value)
        SQ_TRY(sq_json_write(value, false, &text, err));
    else
        sq_text_add(&text, "{}");
    *ret = sq_text_release(&text);
    return *ret ? 0 : sq_error_memory(err, 1);
}

/* How a variable is packed, by the first of its fields. */
static const char *packing_of(const struct grib *g, uint32_t variable)
{
    for (size_t i = 0; i < g->cube.place_count; i++)
        if (g->cube.places[i].variable == variable)
            return g->index.packings[g->index.fields[g->cube.places[i].field].packing].name;
    return "none";
}

/* NULL: out of memory, told in err. */
static struct member *member_new(const struct sq_array_ops *ops, const struct sq_json *attributes, struct squall_error *err)
{
    struct member *m = sq_alloc_zero(1, sizeof *m);
    if (!m || json_text(attributes, &m->attributes, err)) {
        sq_free(m);
        (void)sq_error_memory(err, sizeof *m);
        return NULL;
    }
    m->base.ops = ops;
    m->base.fill = &m->fill;
    return m;
}

static int add_variable(struct squall_dataset *ds, const struct grib *g, uint32_t variable, struct squall_error *err)
{
    const struct sq_cube_variable *v = &g->cube.variables[variable];
    struct member *m = member_new(&VARIABLE_OPS, v->attributes, err);
    if (!m)
        return SQUALL_ENOMEM;
    m->grib = g;
    m->variable = variable;
    m->slab_dim = v->rank - (g->cube.grids[v->grid].rows ? 2 : 1);
    for (unsigned d = 0; d < v->rank; d++)
        m->chunks[d] = d < m->slab_dim ? 1 : v->shape[d];
    if (v->type == SQUALL_FLOAT64)
        m->fill.number = (double)NAN;
    else
        m->fill.single = NAN;
    m->base.info = (struct squall_array_info){
        .name = v->name,
        .type = v->type,
        .type_name = sq_type_name(v->type),
        .numpy_type = sq_type_numpy(v->type),
        .element_bytes = squall_type_size(v->type),
        .rank = v->rank,
        .shape = v->shape,
        .chunks = m->chunks,
        .dims = v->dims,
        .codecs = packing_of(g, variable),
        .attributes = m->attributes,
        .fill_value = "\"NaN\"",
    };
    return sq_dataset_add(ds, &m->base, err);
}

static int add_coordinate(struct squall_dataset *ds, const struct sq_cube_coordinate *c, struct squall_error *err)
{
    struct member *m = member_new(&COORDINATE_OPS, c->attributes, err);
    if (!m)
        return SQUALL_ENOMEM;
    m->values = c->values;
    for (unsigned d = 0; d < c->rank; d++)
        m->chunks[d] = c->shape[d] > 0 ? c->shape[d] : 1;
    m->base.info = (struct squall_array_info){
        .name = c->name,
        .type = c->type,
        .type_name = sq_type_name(c->type),
        .numpy_type = sq_type_numpy(c->type),
        .element_bytes = squall_type_size(c->type),
        .rank = c->rank,
        .shape = c->shape,
        .chunks = m->chunks,
        .dims = (const char *const *)c->dims,
        .codecs = "none",
        .attributes = m->attributes,
        .fill_value = "null",
    };
    return sq_dataset_add(ds, &m->base, err);
}

/* NULL: out of memory; sq_free. */
static char *problem_line(const struct sq_grib_index *index, size_t i)
{
    return sq_format("%s: %s", index->files[index->problems[i].file].path, index->problems[i].message);
}

static int add_index_problems(struct squall_dataset *ds, const struct sq_grib_index *index, struct squall_error *err)
{
    for (size_t i = 0; i < index->problem_count; i++) {
        SQ_CLEANUP_FREE char *line = problem_line(index, i);
        if (!line)
            return sq_error_memory(err, 1);
        SQ_TRY(sq_dataset_add_problem(ds, line, err));
    }
    return 0;
}

static int fill_dataset(struct squall_dataset *ds, struct grib *g, struct squall_error *err)
{
    const struct sq_cube_options options = {.coarsen_y = 1, .coarsen_x = 1};
    struct squall_error reason = SQUALL_ERROR_INIT;
    SQ_TRY(add_index_problems(ds, &g->index, err));
    int status = sq_cube_build(&g->index, &options, &g->cube, &reason);
    if (status == SQUALL_ENOTFOUND) /* fields there are, but none that is read yet */
        return sq_dataset_add_problem(ds, reason.message, err);
    if (status)
        return sq_error(err, (enum squall_status)status, "%s", reason.message);
    g->has_cube = true;
    SQ_TRY(json_text(g->cube.attributes, &ds->attributes, err));
    for (size_t i = 0; i < g->cube.warning_count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, g->cube.warnings[i], err));
    for (size_t i = 0; i < g->cube.variable_count; i++)
        SQ_TRY(add_variable(ds, g, (uint32_t)i, err));
    for (size_t i = 0; i < g->cube.coordinate_count; i++)
        SQ_TRY(add_coordinate(ds, &g->cube.coordinates[i], err));
    return 0;
}

static void grib_free(void *data)
{
    struct grib *g = data;
    sq_grib_sources_close(g->sources, &g->index);
    if (g->has_cube)
        sq_cube_done(&g->cube);
    sq_grib_index_done(&g->index);
    sq_free(g);
}

static int no_field(const char *path, const struct sq_grib_index *index, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *line = index->problem_count > 0 ? problem_line(index, 0) : sq_format("%s: no GRIB message", path);
    return line ? sq_error(err, SQUALL_ENOTFOUND, "%s", line) : sq_error_memory(err, 1);
}

int sq_grib_dataset_open(const struct squall_context *ctx, const char *path, const char *const *files, size_t file_count,
                         struct squall_dataset **ret, struct squall_error *err)
{
    struct grib *g = sq_alloc_zero(1, sizeof *g);
    if (!g)
        return sq_error_memory(err, sizeof *g);
    int status = sq_grib_index_build(files, file_count, ctx->threads, ctx->cancelled, ctx->user, &g->index, err);
    if (status) {
        sq_free(g);
        return status;
    }
    struct squall_dataset *ds = NULL;
    if (g->index.field_count == 0)
        status = no_field(path, &g->index, err);
    else if (!(ds = sq_dataset_new(ctx, path, "grib", err)))
        status = SQUALL_ENOMEM;
    if (!ds) {
        grib_free(g);
        return status;
    }
    ds->format_data = g;
    ds->format_data_free = grib_free;
    ds->file_count = file_count;
    g->sources = sq_grib_sources_open(&g->index);
    status = g->sources ? fill_dataset(ds, g, err) : sq_error_memory(err, file_count * sizeof *g->sources);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}
