/* See joined_array.h. */
#include "engine/joined_array.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/plan.h"
#include "engine/read.h"
#include "engine/scatter.h"
#include "engine/variable.h"
#include "engine/worker.h"
#include "sys/pool.h"
#include <inttypes.h>
#include <string.h>

struct joined {
    struct squall_array base;
    _Atomic(struct squall_array *) *parts; /* NULL: fill values; sq_late_part */
    int (*open)(void *user, size_t part, const char *name, struct squall_array **ret, struct squall_error *err);
    void *user;
    const struct squall_array *pattern;
    uint64_t *edges; /* part i has the elements from edges[i] up to edges[i + 1] along the axis */
    size_t count;
    bool new_dimension; /* else along `axis`, which the parts have */
    unsigned axis;      /* of the joined array */
    char *dim;          /* of the new dimension */
    uint64_t shape[SQUALL_RANK_MAX], chunks[SQUALL_RANK_MAX];
    char *dims[SQUALL_RANK_MAX];
};

/* Only its address means anything. */
static struct squall_array late;
struct squall_array *const sq_late_part = &late;

/* ---- parts that come late --------------------------------------------------------------------------------------------------------- */

/* Is a part what it was said to be? */
static bool is_as_told(const struct joined *j, size_t part, const struct squall_array *a)
{
    const struct squall_array_info *told = &j->base.info, *found = &a->info;
    const unsigned shift = j->new_dimension;
    bool same = found->rank + shift == told->rank && found->type == told->type && found->element_bytes == told->element_bytes &&
                !strcmp(found->numpy_type, told->numpy_type);
    for (unsigned d = 0; same && d < found->rank; d++) {
        const bool along = d + shift == j->axis;
        same = found->shape[d] == (along ? j->edges[part + 1] - j->edges[part] : told->shape[d + shift]);
    }
    return same;
}

/* *ret: the array, or NULL. */
static int get_part(const struct joined *j, size_t part, struct squall_array **ret, struct squall_error *err)
{
    struct squall_array *a = atomic_load_explicit(&j->parts[part], memory_order_acquire);
    if (a == &late) {
        SQ_TRY(j->open(j->user, part, j->base.info.name, &a, err));
        if (!is_as_told(j, part, a))
            return sq_error(err, SQUALL_ECORRUPT, "%s: not what the index of many files says of it; remove the folder of indexes",
                            a->dataset->path);
        atomic_store_explicit(&j->parts[part], a, memory_order_release);
    }
    *ret = a;
    return 0;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------- */

struct joined_read {
    const struct joined *j;
    const struct squall_selection *selection;
    uint8_t *dst;
    int64_t strides[SQUALL_RANK_MAX];
    size_t first_part;
    unsigned inner_threads;
    struct squall_speed *speeds; /* one for each thread; NULL: nobody asks */
};

/* The part that an index along the axis lies in: parts are like the chunks of a rectilinear grid. */
static size_t part_of(const struct joined *j, uint64_t index)
{
    const struct sq_axis parts = {.length = j->edges[j->count], .edges = j->edges, .edge_count = j->count + 1};
    return (size_t)sq_axis_chunk_of(&parts, index);
}

/* What is selected of a part; *ret_first is the place of its first element in the selection. False: nothing. */
static bool within_part(const struct joined_read *r, size_t part, struct squall_selection *ret, uint64_t *ret_first)
{
    const struct joined *j = r->j;
    const struct squall_selection *s = r->selection;
    const uint64_t begin = j->edges[part], end = j->edges[part + 1], start = s->start[j->axis], step = s->step[j->axis];
    const uint64_t first = begin > start ? (begin - start + step - 1) / step : 0;
    if (end <= start || first >= s->count[j->axis] || start + first * step >= end)
        return false;
    uint64_t count = (end - 1 - (start + first * step)) / step + 1;
    if (count > s->count[j->axis] - first)
        count = s->count[j->axis] - first;
    *ret = *s;
    *ret_first = first;
    ret->start[j->axis] = start + first * step - begin;
    ret->count[j->axis] = count;
    return true;
}

static void drop_new_dimension(struct squall_selection *s, unsigned rank)
{
    memmove(s->start, s->start + 1, (rank - 1) * sizeof *s->start);
    memmove(s->count, s->count + 1, (rank - 1) * sizeof *s->count);
    memmove(s->step, s->step + 1, (rank - 1) * sizeof *s->step);
}

static int fill_part(const struct joined_read *r, const struct squall_selection *s, uint8_t *dst, struct squall_error *err)
{
    static const int64_t STAND_STILL[SQUALL_RANK_MAX];
    const struct squall_array *a = &r->j->base;
    if (!a->fill)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s: it is missing in some of the files, and has no one fill value", a->info.name);
    sq_scatter_copy(a->info.rank, s->count, a->info.element_bytes, a->fill, STAND_STILL, dst, r->strides, SQ_SCATTER_INTO_CACHES);
    return sq_variable_own(a->info.type, a->info.rank, s->count, dst, r->strides, err);
}

static int read_part(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    const struct joined_read *r = user;
    const struct joined *j = r->j;
    const size_t number = r->first_part + index;
    struct squall_selection part;
    uint64_t first;
    if (!within_part(r, number, &part, &first))
        return 0;
    uint8_t *dst = r->dst + (int64_t)first * r->strides[j->axis];
    struct squall_array *a = NULL;
    SQ_TRY(get_part(j, number, &a, err));
    if (!a)
        return fill_part(r, &part, dst, err);
    if (j->new_dimension)
        drop_new_dimension(&part, j->base.info.rank);
    int status = sq_array_read(a, &part, dst, r->strides + j->new_dimension, r->inner_threads, r->speeds ? &r->speeds[seat] : NULL, err);
    return status ? sq_error_within(err, status, "%s", a->dataset->path) : 0;
}

static int prepare(struct joined_read *r, const int64_t *strides, struct squall_error *err)
{
    const struct squall_array *a = &r->j->base;
    struct sq_plan plan;
    int status = sq_plan_init(a->info.rank, a->grid, r->selection, &plan, err);
    if (status)
        return sq_error_within(err, status, "array %s", a->info.name);
    int64_t stride = (int64_t)a->info.element_bytes;
    for (unsigned d = a->info.rank; d-- > 0 && plan.item_count > 0;) {
        r->strides[d] = strides ? strides[d] : stride;
        if (!sq_mul_i64(stride, (int64_t)r->selection->count[d], &stride))
            return sq_error(err, SQUALL_EINVAL, "array %s: the selection does not fit into memory", a->info.name);
    }
    return 0;
}

static int read_joined(struct squall_array *a, const struct squall_selection *selection, void *dst, const int64_t *strides,
                       unsigned threads, struct squall_speed *speed, struct squall_error *err)
{
    const struct joined *j = (const struct joined *)a;
    struct joined_read r = {.j = j, .selection = selection, .dst = dst};
    SQ_TRY(prepare(&r, strides, err));
    for (unsigned d = 0; d < a->info.rank; d++)
        if (selection->count[d] == 0)
            return 0;
    if (a->info.rank == 0) /* the first file's; there is no axis to cut it along */
        return sq_array_read(j->parts[0], selection, dst, strides, threads, speed, err);
    const uint64_t last = selection->start[j->axis] + (selection->count[j->axis] - 1) * selection->step[j->axis];
    r.first_part = part_of(j, selection->start[j->axis]);
    const size_t parts = part_of(j, last) + 1 - r.first_part;
    const unsigned outer = parts < threads ? (unsigned)parts : threads;
    r.inner_threads = threads / outer;
    SQ_CLEANUP_FREE struct squall_speed *speeds = speed ? sq_alloc_zero(outer, sizeof *speeds) : NULL;
    if (speed && !speeds)
        return sq_error_memory(err, outer * sizeof *speeds);
    r.speeds = speeds;
    sq_variable_clear(a->info.type, a->info.rank, selection->count, dst, r.strides);
    int status = sq_parallel(outer, parts, read_part, &r, err);
    for (unsigned i = 0; speeds && i < outer; i++)
        sq_speed_add(speed, &speeds[i]);
    if (status)
        sq_variable_free(a->info.type, a->info.rank, selection->count, dst, r.strides);
    return status ? sq_error_within(err, status, "array %s", a->info.name) : 0;
}

static int tell_storage(const struct squall_array *a, struct sq_text *out, struct squall_error *err)
{
    const struct joined *j = (const struct joined *)a;
    SQ_CLEANUP_FREE char *pattern = NULL;
    SQ_TRY(squall_array_storage(j->pattern, &pattern, err));
    if (j->count == 1 && !j->new_dimension) { /* the first file's alone */
        sq_text_add(out, pattern);
        return 0;
    }
    sq_text_printf(out, "{\"axis\": %u, %s", j->axis, j->new_dimension ? "\"new\": true" : "\"lengths\": [");
    for (size_t i = 0, next; i < j->count && !j->new_dimension; i = next) {
        const uint64_t length = j->edges[i + 1] - j->edges[i];
        for (next = i + 1; next < j->count && j->edges[next + 1] - j->edges[next] == length;)
            next++;
        sq_text_printf(out, "%s[%" PRIu64 ", %zu]", i ? ", " : "", length, next - i);
    }
    sq_text_printf(out, "%s, \"of\": %s}", j->new_dimension ? "" : "]", pattern);
    return 0;
}

static int stored_bytes(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    const struct joined *j = (const struct joined *)a;
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->count; i++) {
        struct squall_array *part = NULL;
        uint64_t part_bytes = 0;
        SQ_TRY(get_part(j, i, &part, err));
        if (part)
            SQ_TRY(squall_array_stored_bytes(part, &part_bytes, err));
        bytes += part_bytes;
    }
    *ret = bytes;
    return 0;
}

static void joined_free(struct squall_array *a)
{
    struct joined *j = (struct joined *)a;
    sq_free(j->parts);
    sq_free(j->edges);
    sq_free(j->dim);
    sq_free(j);
}

static const struct sq_array_ops JOINED_OPS = {
    .read = read_joined, .storage = tell_storage, .stored_bytes = stored_bytes, .free = joined_free};

bool sq_joined_array_has(const struct squall_array *a, uint64_t index)
{
    const struct joined *j = (const struct joined *)a;
    return a->ops != &JOINED_OPS || (index < j->edges[j->count] && j->parts[part_of(j, index)]);
}

bool sq_joined_array_is_plain(const struct squall_array *a)
{
    const struct joined *j = (const struct joined *)a;
    for (size_t i = 0; a->ops == &JOINED_OPS && i < j->count; i++)
        if (j->parts[i])
            return sq_joined_array_is_plain(j->parts[i]);
    return a->plain;
}

/* ---- making one ------------------------------------------------------------------------------------------------------------------- */

static int copy_parts(struct joined *j, const struct sq_join *join, struct squall_error *err)
{
    j->parts = sq_alloc(j->count, sizeof *j->parts);
    j->edges = sq_alloc(j->count + 1, sizeof *j->edges);
    if (!j->parts || !j->edges)
        return sq_error_memory(err, j->count * sizeof(struct squall_array *));
    for (size_t i = 0; i < j->count; i++)
        atomic_init(&j->parts[i], join->parts[i]);
    j->edges[0] = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!sq_add_u64(j->edges[i], j->new_dimension ? 1 : join->lengths[i], &j->edges[i + 1]) || j->edges[i + 1] > INT64_MAX)
            return sq_error(err, SQUALL_ECORRUPT, "array %s: together the files are longer than can be counted", j->base.info.name);
    return 0;
}

/* Along the axis the longest chunk of any part. */
static void describe_shape(struct joined *j, const struct sq_join *join, const struct squall_array_info *pattern)
{
    const unsigned shift = j->new_dimension;
    for (unsigned d = shift; d < pattern->rank + shift; d++) {
        j->shape[d] = pattern->shape[d - shift];
        j->chunks[d] = pattern->chunks[d - shift];
        j->dims[d] = (char *)(uintptr_t)pattern->dims[d - shift];
    }
    if (j->new_dimension) {
        j->chunks[0] = 1;
        j->dims[0] = j->dim;
    }
    j->shape[j->axis] = j->edges[j->count];
    for (size_t i = 0; i < j->count && !j->new_dimension; i++) {
        const struct squall_array *part = join->parts[i];
        const uint64_t chunk = !part ? 0 : part == &late ? join->late_chunk : part->info.chunks[j->axis];
        j->chunks[j->axis] = chunk > j->chunks[j->axis] ? chunk : j->chunks[j->axis];
    }
}

int sq_joined_array_add(struct squall_dataset *ds, const struct sq_join *join, struct squall_error *err)
{
    const struct squall_array *first = join->parts[join->pattern];
    struct joined *j = sq_alloc_zero(1, sizeof *j);
    if (!j)
        return sq_error_memory(err, sizeof *j);
    j->new_dimension = join->axis == SQ_JOIN_NEW_DIMENSION;
    j->axis = j->new_dimension ? 0 : (unsigned)join->axis;
    j->count = join->count;
    j->open = join->open;
    j->user = join->user;
    j->base.ops = &JOINED_OPS;
    j->base.fill = first->fill;
    j->pattern = first;
    j->base.info = first->info;
    j->dim = sq_strdup(join->dim);
    int status = j->dim ? copy_parts(j, join, err) : sq_error_memory(err, strlen(join->dim));
    if (!status && first->info.rank + j->new_dimension > SQUALL_RANK_MAX)
        status = sq_error(err, SQUALL_EUNSUPPORTED, "array %s: no room for a further dimension, %u are there", first->info.name,
                          first->info.rank);
    if (status) {
        joined_free(&j->base);
        return status;
    }
    describe_shape(j, join, &first->info);
    j->base.info.rank = first->info.rank + j->new_dimension;
    j->base.info.shape = j->shape;
    j->base.info.chunks = j->chunks;
    j->base.info.shards = NULL;
    j->base.info.dims = (const char *const *)j->dims;
    return sq_dataset_add(ds, &j->base, err);
}

/* ---- in memory -------------------------------------------------------------------------------------------------------------------- */

enum { MEMORY_RANK_MAX = 2 };

struct memory_array {
    struct squall_array base;
    char *attributes;
    void *values;
    uint64_t shape[MEMORY_RANK_MAX], chunks[MEMORY_RANK_MAX];
    const char *dims[MEMORY_RANK_MAX];
    uint64_t fill; /* never needed, but every array has one */
};

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    (void)chunk, (void)err;
    *ret = (struct sq_location){.state = SQ_CHUNK_INLINE, .elements = ((const struct memory_array *)a)->values};
    return 0;
}

static void *no_scratch(const struct squall_array *a)
{
    (void)a;
    return sq_alloc(1, 1);
}

static void memory_free(struct squall_array *a)
{
    struct memory_array *m = (struct memory_array *)a;
    sq_free(m->attributes);
    sq_free(m->values);
    sq_free(m);
}

static const struct sq_array_ops MEMORY_OPS = {.locate = locate, .scratch_new = no_scratch, .scratch_free = sq_free, .free = memory_free};

int sq_memory_array_add(struct squall_dataset *ds, const struct squall_array_info *as, void *values, char *attributes,
                        struct squall_error *err)
{
    struct memory_array *m = sq_alloc_zero(1, sizeof *m);
    if (!m) {
        sq_free(values);
        sq_free(attributes);
        return sq_error_memory(err, sizeof *m);
    }
    m->values = values;
    m->attributes = attributes;
    for (unsigned d = 0; d < as->rank && d < MEMORY_RANK_MAX; d++) {
        m->shape[d] = as->shape[d];
        m->chunks[d] = as->shape[d] > 0 ? as->shape[d] : 1;
        m->dims[d] = as->dims[d];
    }
    m->base.ops = &MEMORY_OPS;
    m->base.fill = &m->fill;
    m->base.info = (struct squall_array_info){
        .name = as->name,
        .type = as->type,
        .type_name = sq_type_name(as->type),
        .numpy_type = sq_type_numpy(as->type),
        .element_bytes = squall_type_size(as->type),
        .rank = as->rank,
        .shape = m->shape,
        .chunks = m->chunks,
        .dims = m->dims,
        .codecs = "none",
        .attributes = m->attributes,
        .attribute_types = as->attribute_types,
        .fill_value = as->fill_value,
    };
    return sq_dataset_add(ds, &m->base, err);
}
