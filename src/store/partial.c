/*
 * See partial.h. What no region covers is found on a grid of the places where regions begin and end: as many cells as the regions have made,
 * however many elements that are.
 */
#include "store/partial.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "squall/dataset.h"
#include "sys/file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char SUFFIX[] = ".partial", LIST[] = ".regions-";
/* More cells than this no honest writer makes; a list may be of any size. */
static const size_t CELLS_LIMIT = (size_t)64 << 20, LIST_LIMIT_BYTES = (size_t)1 << 30;

/* ---- finding files ---------------------------------------------------------------------------------------------------------------- */

static bool is_partial(const char *name)
{
    const size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
    return name[0] == '.' && length > suffix + 1 && strcmp(name + length - suffix, SUFFIX) == 0;
}

static int add_path(char *path, char ***paths, size_t *count, size_t *capacity, struct squall_error *err)
{
    int status = path ? SQ_GROW(*paths, *capacity, *count + 1, err) : sq_error_memory(err, 1);
    if (status)
        sq_free(path);
    else
        (*paths)[(*count)++] = path;
    return status;
}

static int find_in_folder(const char *folder, char ***paths, size_t *count, size_t *capacity, struct squall_error *err)
{
    char **names;
    size_t name_count;
    int status = 0;
    SQ_TRY(sq_folder_list(folder, &names, &name_count, err));
    for (size_t i = 0; i < name_count && !status; i++)
        if (is_partial(names[i]))
            status = add_path(sq_path_join(folder, names[i]), paths, count, capacity, err);
    sq_names_free(names, name_count);
    return status;
}

static int find_file(const char *path, char ***paths, size_t *count, size_t *capacity, struct squall_error *err)
{
    const char *name = sq_path_name(path);
    const int folder = (int)(name - path);
    char *partial = is_partial(name) ? sq_strdup(path) : sq_format("%.*s.%s%s", folder, path, name, SUFFIX);
    enum sq_file_kind kind = SQ_FILE_NONE;
    int status = partial ? sq_file_stat(partial, &kind, NULL, err) : sq_error_memory(err, strlen(path));
    if (!status && kind == SQ_FILE_REGULAR)
        return add_path(partial, paths, count, capacity, err);
    sq_free(partial);
    return status;
}

int sq_partial_find(const char *path, char ***ret_paths, size_t *ret_count, struct squall_error *err)
{
    char **paths = NULL;
    size_t count = 0, capacity = 0;
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    int status =
        kind == SQ_FILE_FOLDER ? find_in_folder(path, &paths, &count, &capacity, err) : find_file(path, &paths, &count, &capacity, err);
    if (status) {
        sq_names_free(paths, count);
        return status;
    }
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

/* ---- regions of a variable -------------------------------------------------------------------------------------------------------- */

struct span {
    uint64_t start, count, step;
};

struct regions {
    unsigned rank;
    const uint64_t *shape;
    struct span *spans; /* rank of them for each region */
    size_t count, capacity;
};

static bool parse_span(const struct sq_json *value, uint64_t length, struct span *ret)
{
    uint64_t last;
    return sq_json_count(value) == 3 && sq_json_uint(sq_json_at(value, 0), &ret->start) &&
           sq_json_uint(sq_json_at(value, 1), &ret->count) && sq_json_uint(sq_json_at(value, 2), &ret->step) && ret->count > 0 &&
           ret->step > 0 && sq_mul_u64(ret->count - 1, ret->step, &last) && sq_add_u64(last, ret->start, &last) && last < length;
}

/* Whatever makes no sense was not written by one who wrote data: it counts for nothing. */
static int add_region(struct regions *r, const struct sq_json *region, struct squall_error *err)
{
    if (sq_json_count(region) != r->rank)
        return 0;
    SQ_TRY(SQ_GROW(r->spans, r->capacity, (r->count + 1) * r->rank + 1, err));
    struct span *spans = r->spans + r->count * r->rank;
    for (unsigned d = 0; d < r->rank; d++)
        if (!parse_span(sq_json_at(region, d), r->shape[d], &spans[d]))
            return 0;
    r->count++;
    return 0;
}

/* A line that was cut off is no JSON, and a region that was perhaps not written. */
static int add_line(struct regions *all, const squall_dataset *ds, const char *line, size_t length, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *json = NULL;
    int status = sq_json_parse(line, length, &json, NULL);
    const char *name = status ? NULL : sq_json_string(sq_json_get(json, "variable"));
    if (status == SQUALL_ENOMEM)
        return sq_error_memory(err, length);
    for (size_t i = 0; name && i < squall_dataset_info(ds).array_count; i++)
        if (!strcmp(name, squall_array_info(squall_dataset_array_at(ds, i)).name))
            return add_region(&all[i], sq_json_get(json, "region"), err);
    return 0;
}

static int add_list(struct regions *all, const squall_dataset *ds, const char *path, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *text = NULL;
    size_t size;
    SQ_TRY(sq_file_read_all(path, LIST_LIMIT_BYTES, &text, &size, err));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        if (!end)
            return 0;
        SQ_TRY(add_line(all, ds, text + at, (size_t)(end - text) - at, err));
        at = (size_t)(end - text) + 1;
    }
    return 0;
}

static int add_lists(struct regions *all, const squall_dataset *ds, const char *partial, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = sq_path_folder(partial);
    SQ_CLEANUP_FREE char *beginning = sq_format("%s%s", sq_path_name(partial), LIST);
    char **names;
    size_t count;
    if (!folder || !beginning)
        return sq_error_memory(err, strlen(partial));
    SQ_TRY(sq_folder_list(folder, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        if (strncmp(names[i], beginning, strlen(beginning)) != 0)
            continue;
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, names[i]);
        status = path ? add_list(all, ds, path, err) : sq_error_memory(err, strlen(folder));
    }
    sq_names_free(names, count);
    return status;
}

/* ---- what they leave -------------------------------------------------------------------------------------------------------------- */

/* Along one dimension: cell k goes from edges[k] up to edges[k + 1]. */
struct cells {
    uint64_t *edges;
    size_t edge_count, capacity;
    size_t stride; /* of the map of all cells */
};

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int add_edge(struct cells *c, uint64_t edge, struct squall_error *err)
{
    if (c->edge_count > CELLS_LIMIT)
        return sq_error(err, SQUALL_EUNSUPPORTED, "regions with more ends than can be told");
    SQ_TRY(SQ_GROW(c->edges, c->capacity, c->edge_count + 1, err));
    c->edges[c->edge_count++] = edge;
    return 0;
}

static int find_edges(const struct regions *r, unsigned d, struct cells *c, struct squall_error *err)
{
    SQ_TRY(add_edge(c, 0, err));
    SQ_TRY(add_edge(c, r->shape[d], err));
    for (size_t i = 0; i < r->count; i++) {
        const struct span *s = &r->spans[i * r->rank + d];
        const uint64_t runs = s->step == 1 ? 1 : s->count, length = s->step == 1 ? s->count : 1;
        for (uint64_t k = 0; k < runs; k++) {
            SQ_TRY(add_edge(c, s->start + k * s->step, err));
            SQ_TRY(add_edge(c, s->start + k * s->step + length, err));
        }
    }
    qsort(c->edges, c->edge_count, sizeof *c->edges, by_number);
    size_t distinct = 1;
    for (size_t i = 1; i < c->edge_count; i++)
        if (c->edges[i] != c->edges[distinct - 1])
            c->edges[distinct++] = c->edges[i];
    c->edge_count = distinct;
    return 0;
}

static size_t cell_of(const struct cells *c, uint64_t edge)
{
    const uint64_t *found = bsearch(&edge, c->edges, c->edge_count, sizeof edge, by_number);
    return found ? (size_t)(found - c->edges) : 0;
}

/* The cells of a region from dimension d on. */
static void cover(const struct regions *r, const struct span *spans, const struct cells *cells, unsigned d, uint8_t *at)
{
    if (d == r->rank) {
        *at = 1;
        return;
    }
    const struct span *s = &spans[d];
    const uint64_t runs = s->step == 1 ? 1 : s->count, length = s->step == 1 ? s->count : 1;
    for (uint64_t k = 0; k < runs; k++) {
        const size_t end = cell_of(&cells[d], s->start + k * s->step + length);
        for (size_t i = cell_of(&cells[d], s->start + k * s->step); i < end; i++)
            cover(r, spans, cells, d + 1, at + i * cells[d].stride);
    }
}

/* Is some cell of the box covered? With `mark` all of them are afterwards. */
static bool visit(unsigned rank, const struct cells *cells, const size_t *begin, const size_t *end, unsigned d, uint8_t *at, bool mark)
{
    bool any = false;
    if (d == rank) {
        any = *at;
        *at = *at || mark;
        return any;
    }
    for (size_t i = begin[d]; i < end[d]; i++)
        any = visit(rank, cells, begin, end, d + 1, at + i * cells[d].stride, mark) || any;
    return any;
}

/* From the free cell on as far as all is free, the last dimension first. */
static void grow_box(unsigned rank, const struct cells *cells, size_t cell, uint8_t *map, size_t *begin, size_t *end)
{
    for (unsigned d = 0; d < rank; d++) {
        begin[d] = cell / cells[d].stride;
        cell %= cells[d].stride;
        end[d] = begin[d] + 1;
    }
    for (unsigned d = rank; d-- > 0;) {
        const size_t first = begin[d];
        while (end[d] + 1 < cells[d].edge_count) {
            begin[d] = end[d]++;
            if (visit(rank, cells, begin, end, 0, map, false)) {
                end[d]--;
                break;
            }
        }
        begin[d] = first;
    }
    (void)visit(rank, cells, begin, end, 0, map, true);
}

static struct sq_json *box_json(unsigned rank, const struct cells *cells, const size_t *begin, const size_t *end)
{
    struct sq_json *box = sq_json_new_array();
    for (unsigned d = 0; box && d < rank; d++) {
        struct sq_json *ends = sq_json_new_array();
        int failed = ends ? sq_json_append(ends, sq_json_new_uint(cells[d].edges[begin[d]])) : SQUALL_ENOMEM;
        failed = failed ? failed : sq_json_append(ends, sq_json_new_uint(cells[d].edges[end[d]]));
        if (failed) {
            sq_json_free(ends);
            sq_json_free(box);
            return NULL;
        }
        if (sq_json_append(box, ends)) {
            sq_json_free(box);
            return NULL;
        }
    }
    return box;
}

static int find_boxes(const struct regions *r, struct cells *cells, struct sq_json *boxes, struct squall_error *err)
{
    size_t total = 1, begin[SQUALL_RANK_MAX], end[SQUALL_RANK_MAX];
    for (unsigned d = 0; d < r->rank; d++)
        SQ_TRY(find_edges(r, d, &cells[d], err));
    for (unsigned d = r->rank; d-- > 0;) {
        cells[d].stride = total;
        if (!sq_mul_size(total, cells[d].edge_count - 1, &total) || total > CELLS_LIMIT)
            return sq_error(err, SQUALL_EUNSUPPORTED, "more different regions than can be told");
    }
    SQ_CLEANUP_FREE uint8_t *map = sq_alloc_zero(total, 1);
    if (!map)
        return sq_error_memory(err, total);
    for (size_t i = 0; i < r->count; i++)
        cover(r, r->spans + i * r->rank, cells, 0, map);
    for (size_t i = 0; i < total; i++) {
        if (map[i])
            continue;
        grow_box(r->rank, cells, i, map, begin, end);
        if (sq_json_append(boxes, box_json(r->rank, cells, begin, end)))
            return sq_error_memory(err, 1);
    }
    return 0;
}

static int add_missing(struct sq_json *missing, const char *name, const struct regions *r, struct squall_error *err)
{
    struct cells cells[SQUALL_RANK_MAX] = {0};
    SQ_CLEANUP_JSON struct sq_json *boxes = sq_json_new_array();
    for (unsigned d = 0; d < r->rank; d++)
        if (r->shape[d] == 0)
            return 0; /* no elements */
    if (!boxes)
        return sq_error_memory(err, 1);
    int status = find_boxes(r, cells, boxes, err);
    for (unsigned d = 0; d < r->rank; d++)
        sq_free(cells[d].edges);
    if (status || sq_json_count(boxes) == 0)
        return status;
    return sq_json_set(missing, name, sq_json_share(boxes)) ? sq_error_memory(err, 1) : 0;
}

int sq_partial_missing(squall_context *ctx, const char *partial, struct sq_json **ret, struct squall_error *err)
{
    squall_dataset *ds = NULL;
    SQ_TRY(squall_dataset_open(ctx, partial, &ds, err));
    const size_t count = squall_dataset_info(ds).array_count;
    struct regions *all = sq_alloc_zero(count + 1, sizeof *all);
    struct sq_json *missing = sq_json_new_object();
    int status = all && missing ? 0 : sq_error_memory(err, count * sizeof *all);
    for (size_t i = 0; i < count && all; i++) {
        const struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, i));
        all[i] = (struct regions){.rank = info.rank, .shape = info.shape};
    }
    if (!status)
        status = add_lists(all, ds, partial, err);
    for (size_t i = 0; i < count && !status; i++)
        status = add_missing(missing, squall_array_info(squall_dataset_array_at(ds, i)).name, &all[i], err);
    for (size_t i = 0; i < count && all; i++)
        sq_free(all[i].spans);
    sq_free(all);
    squall_dataset_close(ds);
    if (status)
        sq_json_free(missing);
    else
        *ret = missing;
    return status;
}
