/* The bounds of times that are counted otherwise in one dataset than in its files. */
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "cube/many_internal.h"
#include "sys/pool.h"
#include <string.h>

static int find_bounds(struct sq_many *m, bool *ret_plain, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL, *own = NULL;
    const char *text = m->coordinate->info.attributes;
    SQ_TRY(sq_json_parse(text, strlen(text), &attributes, err));
    const char *name = sq_json_string(sq_json_get(attributes, "bounds"));
    if (!name)
        name = sq_json_string(sq_json_get(attributes, "climatology"));
    struct squall_array *a = name ? sq_find_array(m->files[0].ds, name, 0) : NULL;
    if (!a || a == m->coordinate)
        return 0;
    SQ_TRY(sq_json_parse(a->info.attributes, strlen(a->info.attributes), &own, err));
    if (sq_json_get(own, "units"))
        return 0;
    m->bounds = a;
    *ret_plain = sq_many_is_joined(m, a) && sq_many_is_countable(a) && a->info.rank + m->new_dimension == 2 &&
                 (m->new_dimension || sq_dimension_of(a, m->dim) == 0) && !sq_json_get(own, "scale_factor") &&
                 !sq_json_get(own, "add_offset");
    return 0;
}

struct bounds_parts {
    struct sq_many *m;
    struct sq_many_part *parts; /* in the order of the result */
};

static int take_bounds(void *user, size_t part, unsigned seat, struct squall_error *err)
{
    const struct bounds_parts *b = user;
    struct sq_many *m = b->m;
    struct sq_many_file *f = &m->files[m->order[part]];
    struct squall_array *a = f->path ? NULL : sq_find_array(f->ds, m->bounds->info.name, 0);
    (void)seat;
    if (f->path)
        SQ_TRY(sq_many_open_late(m, part, m->bounds->info.name, &a, err));
    if (!a) /* the drift tells */
        return 0;
    SQ_TRY(sq_many_reserve(m, m->order[part], f->entry.length * a->info.shape[a->info.rank - 1], err));
    int status = sq_many_part_read(a, &b->parts[part], err);
    return status ? sq_error_within(err, status, "%s", m->paths[m->order[part]]) : 0;
}

static int join_bounds(struct sq_many *m, struct sq_many_part *parts, struct sq_drift *drift, struct squall_error *err)
{
    SQ_CLEANUP_FREE struct sq_many_part *times = sq_alloc(m->count, sizeof *times);
    SQ_CLEANUP_FREE const char **paths = sq_alloc(m->count, sizeof *paths);
    struct bounds_parts b = {.m = m, .parts = parts};
    if (!times || !paths)
        return sq_error_memory(err, m->count * sizeof *times);
    SQ_TRY(sq_parallel(m->ctx->threads, m->count, take_bounds, &b, err));
    for (size_t i = 0; i < m->count; i++) {
        times[i] = m->files[m->order[i]].entry.part;
        paths[i] = m->paths[m->order[i]];
        if (!parts[i].values)
            return 0;
    }
    return sq_many_count_bounds(parts, times, paths, m->count, m->bounds->info.name, m->joined.units, drift, &m->joined_bounds, err);
}

int sq_many_join_bounds(struct sq_many *m, struct sq_drift *drift, struct squall_error *err)
{
    bool plain = false;
    SQ_TRY(find_bounds(m, &plain, err));
    if (!m->bounds)
        return 0;
    if (!plain)
        return sq_drift_add(drift, err, "%s: %s, the bounds of %s, cannot be counted as other files count, and is left out", m->paths[0],
                            m->bounds->info.name, m->dim);
    struct sq_many_part *parts = sq_alloc_zero(m->count, sizeof *parts);
    if (!parts)
        return sq_error_memory(err, m->count * sizeof *parts);
    int status = join_bounds(m, parts, drift, err);
    for (size_t i = 0; i < m->count; i++)
        sq_many_part_done(&parts[i]);
    sq_free(parts);
    return status;
}
