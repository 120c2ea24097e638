/*
 * Building the index. Each worker keeps tables of its own, so that threads share nothing while they scan; afterwards the files are gone through in
 * their order, and a worker's row gets its number in the index when the first field that has it comes along.
 */
#include "format/grib/index.h"
#include "base/distinct.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "sys/pool.h"
#include <string.h>

/* A grid as a worker met it. */
struct met_grid {
    struct sq_grib_grid grid; /* moved into the index by the first field there */
    char *why_not;            /* NULL, or why its description cannot be read */
};

struct worker {
    struct sq_arena *arena;
    struct sq_distinct products, grids, packings;
    struct met_grid *met_grids; /* by row of grids */
    size_t met_grid_capacity;
    struct sq_text key;
    uint32_t *product_map, *grid_map, *packing_map; /* worker's row → the index's; UINT32_MAX: none yet */
};

/* What scanning one file gave. Fields have their worker's rows. */
struct scanned {
    struct worker *worker;
    struct sq_grib_field *fields;
    size_t field_count, field_capacity;
    struct sq_grib_index_problem *problems;
    size_t problem_count, problem_capacity;
    struct sq_file_identity identity;
};

struct build {
    const char *const *paths;
    size_t path_count;
    int (*cancelled)(void *);
    void *user;
    struct worker *workers;
    unsigned worker_count;
    struct scanned *files;
};

/* Of the task that scans one file. */
struct scan_of_file {
    struct worker *worker;
    struct scanned *out;
    uint32_t file;
};

static int add_problem(struct scanned *out, uint32_t file, uint64_t offset, const char *message, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(out->problems, out->problem_capacity, out->problem_count + 1, err));
    char *copy = sq_strdup(message);
    if (!copy)
        return sq_error_memory(err, strlen(message) + 1);
    out->problems[out->problem_count++] = (struct sq_grib_index_problem){file, offset, copy};
    return 0;
}

static int product_row(struct worker *w, const struct sq_grib_found *found, struct sq_grib_field *field, struct squall_error *err)
{
    SQ_TRY(sq_grib_product_part(found, &w->key, &field->times, err));
    return sq_distinct_add(&w->products, w->key.data, w->key.length, &field->product, err);
}

/* The centre is part of a grid: some centres' headers need a reading of their own. */
static uint16_t centre_of(const struct sq_grib_found *found)
{
    const uint8_t *s = found->section[1];
    return found->frame.edition == 1 ? s[4] : (uint16_t)(s[5] << 8 | s[6]);
}

/* Read the grid of a new row. A description that cannot be read is remembered, for every field that has it. */
static int meet_grid(const struct sq_grib_found *found, struct met_grid *met, struct squall_error *err)
{
    struct squall_error why = SQUALL_ERROR_INIT;
    size_t size = (size_t)found->frame.section[3].size_bytes;
    int status = sq_grib_grid_parse(found->frame.edition, centre_of(found), found->section[3], size, &met->grid, &why);
    if (status != SQUALL_ECORRUPT && status != SQUALL_EUNSUPPORTED) {
        if (status && err)
            *err = why;
        return status;
    }
    met->why_not = sq_strdup(why.message);
    return met->why_not ? 0 : sq_error_memory(err, strlen(why.message) + 1);
}

static int grid_row(struct worker *w, const struct sq_grib_found *found, uint32_t *ret, struct squall_error *err)
{
    uint16_t centre = centre_of(found);
    const uint8_t head[4] = {found->frame.edition, 0, (uint8_t)(centre >> 8), (uint8_t)centre};
    size_t known = w->grids.row_count;
    sq_text_clear(&w->key);
    sq_text_add_bytes(&w->key, head, sizeof head);
    sq_text_add_bytes(&w->key, found->section[3], (size_t)found->frame.section[3].size_bytes);
    if (w->key.failed)
        return sq_error_memory(err, (size_t)found->frame.section[3].size_bytes);
    SQ_TRY(SQ_GROW(w->met_grids, w->met_grid_capacity, known + 1, err));
    SQ_TRY(sq_distinct_add(&w->grids, w->key.data, w->key.length, ret, err));
    struct met_grid *met = &w->met_grids[*ret];
    if (*ret == known) {
        *met = (struct met_grid){.why_not = NULL};
        SQ_TRY(meet_grid(found, met, err));
    }
    return met->why_not ? sq_error(err, SQUALL_ECORRUPT, "%s", met->why_not) : 0;
}

static int packing_row(struct worker *w, const struct sq_grib_found *found, struct sq_grib_field *field, struct squall_error *err)
{
    struct sq_grib_packing packing, distinct;
    const struct sq_grib_grid *grid = &w->met_grids[field->grid].grid;
    SQ_TRY(sq_grib_packing_of(found, &packing, err));
    if (!packing.unsupported && !grid->unsupported) /* counts that its sections cannot hold would be trusted from here on */
        SQ_TRY(sq_grib_decode_check(&packing, &found->frame, grid, err));
    field->reference_value = packing.reference_value;
    memset(&distinct, 0, sizeof distinct); /* its bytes are compared, padding too */
    distinct.template_number = packing.template_number;
    distinct.bits_per_value = packing.bits_per_value;
    distinct.has_bitmap = packing.has_bitmap;
    distinct.name = packing.name;
    distinct.unsupported = packing.unsupported;
    distinct.binary_scale = packing.binary_scale;
    distinct.decimal_scale = packing.decimal_scale;
    distinct.is_float64 = packing.is_float64;
    return sq_distinct_add(&w->packings, &distinct, sizeof distinct, &field->packing, err);
}

static int rows_of(struct worker *w, const struct sq_grib_found *found, struct sq_grib_field *field, struct squall_error *err)
{
    SQ_TRY(product_row(w, found, field, err));
    SQ_TRY(grid_row(w, found, &field->grid, err));
    return packing_row(w, found, field, err);
}

/* A field that contradicts itself costs itself only. */
static int on_field(void *user, const struct sq_grib_found *found, struct squall_error *err)
{
    struct scan_of_file *scan = user;
    struct scanned *out = scan->out;
    struct squall_error why = SQUALL_ERROR_INIT;
    struct sq_grib_field field = {
        .offset = found->offset,
        .size_bytes = found->size_bytes,
        .file = scan->file,
        .in_message = found->frame.in_message,
    };
    int status = rows_of(scan->worker, found, &field, &why);
    if (status == SQUALL_ECORRUPT || status == SQUALL_EUNSUPPORTED) {
        struct squall_error line = why;
        sq_error_within(&line, status, "at byte %llu: field %u of a GRIB %u message is damaged", (unsigned long long)found->offset,
                        found->frame.in_message + 1U, found->frame.edition);
        return add_problem(out, scan->file, found->offset, line.message, err);
    }
    if (status) {
        if (err)
            *err = why;
        return status;
    }
    SQ_TRY(SQ_GROW(out->fields, out->field_capacity, out->field_count + 1, err));
    out->fields[out->field_count++] = field;
    return 0;
}

static int on_problem(void *user, uint64_t offset, const char *what, struct squall_error *err)
{
    struct scan_of_file *scan = user;
    return add_problem(scan->out, scan->file, offset, what, err);
}

/* The message without the path before it, which the problem knows already. */
static const char *without_path(const char *message, const char *path)
{
    size_t length = strlen(path);
    return strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0 ? message + length + 2 : message;
}

/* Give back what growing took too much; keeping it is no failure. */
static void trim(struct scanned *out)
{
    struct sq_grib_field *exact = out->field_count ? sq_resize(out->fields, out->field_count, sizeof *exact) : NULL;
    if (exact) {
        out->fields = exact;
        out->field_capacity = out->field_count;
    }
}

static int scan_file(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct build *b = user;
    struct scan_of_file scan = {&b->workers[worker], &b->files[index], (uint32_t)index};
    if (b->cancelled && b->cancelled(b->user))
        return sq_error(err, SQUALL_ECANCELLED, "cancelled");
    struct squall_error why = SQUALL_ERROR_INIT;
    struct sq_source *source = NULL;
    struct sq_grib_scan_events events = {on_field, on_problem, &scan};
    scan.out->worker = scan.worker;
    int status = sq_source_open_file(b->paths[index], &source, &why);
    if (!status) {
        scan.out->identity = sq_source_identity(source);
        status = sq_grib_scan(source, &events, &why);
        sq_source_close(source);
        trim(scan.out);
    }
    if (status == SQUALL_ENOMEM) {
        if (err)
            *err = why;
        return status;
    }
    return status ? add_problem(scan.out, scan.file, 0, without_path(why.message, b->paths[index]), err) : 0;
}

static int open_workers(struct build *b, unsigned threads, struct squall_error *err)
{
    unsigned wanted = threads ? threads : sq_thread_count();
    if (wanted > b->path_count)
        wanted = b->path_count ? (unsigned)b->path_count : 1;
    b->workers = sq_alloc_zero(wanted, sizeof *b->workers);
    b->files = sq_alloc_zero(b->path_count, sizeof *b->files);
    if (!b->workers || !b->files)
        return sq_error_memory(err, wanted * sizeof *b->workers + b->path_count * sizeof *b->files);
    for (b->worker_count = 0; b->worker_count < wanted; b->worker_count++) {
        struct worker *w = &b->workers[b->worker_count];
        w->arena = sq_arena_new();
        if (!w->arena)
            return sq_error_memory(err, 1);
        w->products.arena = w->grids.arena = w->packings.arena = w->arena;
    }
    return 0;
}

static void close_worker(struct worker *w)
{
    for (size_t i = 0; i < w->grids.row_count; i++) {
        sq_grib_grid_done(&w->met_grids[i].grid);
        sq_free(w->met_grids[i].why_not);
    }
    sq_free(w->met_grids);
    sq_free(w->product_map);
    sq_free(w->grid_map);
    sq_free(w->packing_map);
    sq_distinct_done(&w->products);
    sq_distinct_done(&w->grids);
    sq_distinct_done(&w->packings);
    sq_text_done(&w->key);
    sq_arena_free(w->arena);
}

static void close_build(struct build *b)
{
    for (unsigned i = 0; i < b->worker_count; i++)
        close_worker(&b->workers[i]);
    for (size_t i = 0; b->files && i < b->path_count; i++) {
        for (size_t k = 0; k < b->files[i].problem_count; k++)
            sq_free(b->files[i].problems[k].message);
        sq_free(b->files[i].problems);
        sq_free(b->files[i].fields);
    }
    sq_free(b->workers);
    sq_free(b->files);
}

/* The tables of the index while it is put together. */
struct tables {
    struct sq_distinct products, grids, packings;
    size_t grid_capacity;
};

static uint32_t *unmapped(size_t count)
{
    uint32_t *map = sq_alloc(count, sizeof *map);
    if (map)
        memset(map, 0xff, count * sizeof *map);
    return map;
}

static int map_row(struct sq_distinct *table, const struct sq_distinct *of_worker, uint32_t *map, uint32_t row, uint32_t *ret,
                   struct squall_error *err)
{
    if (map[row] == UINT32_MAX)
        SQ_TRY(sq_distinct_add(table, of_worker->rows[row].bytes, of_worker->rows[row].count, &map[row], err));
    *ret = map[row];
    return 0;
}

static int map_grid(struct tables *t, struct worker *w, struct sq_grib_index *index, uint32_t *row, struct squall_error *err)
{
    uint32_t mine = *row;
    SQ_TRY(map_row(&t->grids, &w->grids, w->grid_map, mine, row, err));
    if (*row < index->grid_count)
        return 0;
    SQ_TRY(SQ_GROW(index->grids, t->grid_capacity, index->grid_count + 1, err));
    index->grids[index->grid_count++] = w->met_grids[mine].grid;
    w->met_grids[mine].grid = (struct sq_grib_grid){0};
    return 0;
}

static int map_fields(struct tables *t, struct scanned *in, struct sq_grib_index *index, struct squall_error *err)
{
    struct worker *w = in->worker;
    for (size_t i = 0; i < in->field_count; i++) {
        struct sq_grib_field *f = &in->fields[i];
        SQ_TRY(map_row(&t->products, &w->products, w->product_map, f->product, &f->product, err));
        SQ_TRY(map_row(&t->packings, &w->packings, w->packing_map, f->packing, &f->packing, err));
        SQ_TRY(map_grid(t, w, index, &f->grid, err));
    }
    return 0;
}

/* One file's fields and problems go to the end of the index's. A single file's fields are taken as they are. */
static void take_file(struct build *b, size_t file, struct sq_grib_index *index)
{
    struct scanned *in = &b->files[file];
    if (b->path_count == 1) {
        index->fields = in->fields;
        in->fields = NULL;
    } else if (in->field_count) {
        memcpy(index->fields + index->field_count, in->fields, in->field_count * sizeof *in->fields);
        sq_free(in->fields);
        in->fields = NULL;
    }
    index->field_count += in->field_count;
    if (in->problem_count)
        memcpy(index->problems + index->problem_count, in->problems, in->problem_count * sizeof *in->problems);
    index->problem_count += in->problem_count;
    in->problem_count = 0;
}

static int make_files(const struct build *b, struct sq_grib_index *index, struct squall_error *err)
{
    index->files = sq_alloc_zero(b->path_count, sizeof *index->files);
    if (!index->files)
        return sq_error_memory(err, b->path_count * sizeof *index->files);
    for (size_t i = 0; i < b->path_count; i++) {
        struct sq_grib_file *file = &index->files[index->file_count++];
        *file = (struct sq_grib_file){sq_strdup(b->paths[i]), b->files[i].identity, b->files[i].field_count};
        if (!file->path)
            return sq_error_memory(err, strlen(b->paths[i]) + 1);
    }
    return 0;
}

static int make_rows(const struct tables *t, struct sq_grib_index *index, struct squall_error *err)
{
    size_t products = t->products.row_count, packings = t->packings.row_count;
    index->products = sq_alloc(products, sizeof *index->products);
    index->names = sq_alloc_zero(products, sizeof *index->names);
    index->levels = sq_alloc(products, sizeof *index->levels);
    index->packings = sq_alloc(packings, sizeof *index->packings);
    if (!index->products || !index->names || !index->levels || !index->packings)
        return sq_error_memory(err, products * sizeof *index->products);
    for (size_t i = 0; i < products; i++) {
        sq_grib_product_of(t->products.rows[i].bytes, index->arena, &index->products[i]);
        sq_grib_names_of(&index->products[i], &index->names[i]);
        sq_grib_levels_of(&index->products[i], &index->names[i], &index->levels[i][0], &index->levels[i][1]);
    }
    index->product_count = products;
    for (size_t i = 0; i < packings; i++)
        memcpy(&index->packings[i], t->packings.rows[i].bytes, sizeof index->packings[i]);
    index->packing_count = packings;
    return 0;
}

static int merge(struct build *b, struct tables *t, struct sq_grib_index *index, struct squall_error *err)
{
    size_t fields = 0, problems = 0;
    for (unsigned i = 0; i < b->worker_count; i++) {
        struct worker *w = &b->workers[i];
        w->product_map = unmapped(w->products.row_count);
        w->grid_map = unmapped(w->grids.row_count);
        w->packing_map = unmapped(w->packings.row_count);
        if (!w->product_map || !w->grid_map || !w->packing_map)
            return sq_error_memory(err, w->products.row_count * sizeof *w->product_map);
    }
    for (size_t i = 0; i < b->path_count; i++) {
        SQ_TRY(map_fields(t, &b->files[i], index, err));
        fields += b->files[i].field_count;
        problems += b->files[i].problem_count;
    }
    SQ_TRY(make_files(b, index, err));
    SQ_TRY(make_rows(t, index, err));
    if (b->path_count != 1)
        index->fields = sq_alloc(fields, sizeof *index->fields);
    index->problems = sq_alloc(problems, sizeof *index->problems);
    if ((b->path_count != 1 && !index->fields) || !index->problems)
        return sq_error_memory(err, fields * sizeof *index->fields);
    for (size_t i = 0; i < b->path_count; i++)
        take_file(b, i, index);
    return 0;
}

static int build(struct build *b, unsigned threads, struct sq_grib_index *index, struct squall_error *err)
{
    SQ_TRY(open_workers(b, threads, err));
    SQ_TRY(sq_parallel(b->worker_count, b->path_count, scan_file, b, err));
    index->arena = sq_arena_new();
    if (!index->arena)
        return sq_error_memory(err, 1);
    struct tables t = {SQ_DISTINCT_INIT(index->arena), SQ_DISTINCT_INIT(index->arena), SQ_DISTINCT_INIT(index->arena), 0};
    int status = merge(b, &t, index, err);
    sq_distinct_done(&t.products);
    sq_distinct_done(&t.grids);
    sq_distinct_done(&t.packings);
    return status;
}

int sq_grib_index_build(const char *const *paths, size_t path_count, unsigned threads, int (*cancelled)(void *), void *user,
                        struct sq_grib_index *ret, struct squall_error *err)
{
    if (path_count >= UINT32_MAX)
        return sq_error(err, SQUALL_EINVAL, "%zu files at once: more than can be told apart", path_count);
    struct build b = {.paths = paths, .path_count = path_count, .cancelled = cancelled, .user = user};
    struct sq_grib_index index = {0};
    int status = build(&b, threads, &index, err);
    close_build(&b);
    if (status)
        sq_grib_index_done(&index);
    else
        *ret = index;
    return status;
}

void sq_grib_index_done(struct sq_grib_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->grid_count; i++)
        sq_grib_grid_done(&index->grids[i]);
    for (size_t i = 0; i < index->file_count; i++)
        sq_free(index->files[i].path);
    for (size_t i = 0; i < index->problem_count; i++)
        sq_free(index->problems[i].message);
    sq_free(index->fields);
    sq_free(index->products);
    sq_free(index->names);
    sq_free(index->levels);
    sq_free(index->grids);
    sq_free(index->packings);
    sq_free(index->files);
    sq_free(index->problems);
    sq_arena_free(index->arena);
    *index = (struct sq_grib_index){0};
}
