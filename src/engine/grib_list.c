/*
 * GRIB files field by field (squall/grib.h), on top of the field index. Reading a field needs a reader: an open file, a buffer for the
 * message, the decoder's scratch. Readers are kept and used again, so that no field costs an allocation or a page fault.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/context.h"
#include "format/grib/index.h"
#include "io/source.h"
#include "squall/grib.h"
#include "sys/clock.h"
#include "sys/mutex.h"
#include "sys/pool.h"
#include <math.h>

struct reader {
    struct reader *next;
    struct sq_grib_scratch *scratch;
    struct sq_source *source; /* of `file`; NULL: none open */
    uint32_t file;
    void *message; /* sq_pages_alloc; holds the message at message_offset of the file while message_held */
    size_t message_capacity;
    uint64_t message_offset;
    bool message_held;
    void *values; /* for timing */
    size_t values_capacity;
};

struct squall_grib_list {
    const struct squall_context *ctx;
    struct sq_grib_index index;
    struct sq_mutex lock; /* of idle */
    struct reader *idle;
};

static void reader_free(struct reader *r)
{
    sq_grib_scratch_free(r->scratch);
    sq_source_close(r->source);
    sq_pages_free(r->message, r->message_capacity);
    sq_pages_free(r->values, r->values_capacity);
    sq_free(r);
}

/* NULL: out of memory. */
static struct reader *reader_take(struct squall_grib_list *list)
{
    sq_mutex_lock(&list->lock);
    struct reader *r = list->idle;
    if (r)
        list->idle = r->next;
    sq_mutex_unlock(&list->lock);
    if (r)
        return r;
    r = sq_alloc_zero(1, sizeof *r);
    if (r && !(r->scratch = sq_grib_scratch_new())) {
        sq_free(r);
        r = NULL;
    }
    return r;
}

static void reader_give_back(struct squall_grib_list *list, struct reader *r)
{
    sq_mutex_lock(&list->lock);
    r->next = list->idle;
    list->idle = r;
    sq_mutex_unlock(&list->lock);
}

/* At least size_bytes, content undefined. */
static int grow(void **buffer, size_t *capacity, uint64_t size_bytes, struct squall_error *err)
{
    if (size_bytes <= *capacity)
        return 0;
    void *wider = size_bytes <= SIZE_MAX ? sq_pages_alloc((size_t)size_bytes) : NULL;
    if (!wider)
        return sq_error_memory(err, size_bytes);
    sq_pages_free(*buffer, *capacity);
    *buffer = wider;
    *capacity = (size_t)size_bytes;
    return 0;
}

static int open_file(struct reader *r, const struct sq_grib_index *index, uint32_t file, struct squall_error *err)
{
    if (r->source && r->file == file)
        return 0;
    struct sq_source *source;
    SQ_TRY(sq_source_open_file(index->files[file].path, &source, err));
    sq_source_close(r->source);
    r->source = source;
    r->file = file;
    r->message_held = false;
    struct sq_file_identity now = sq_source_identity(source), then = index->files[file].identity;
    if (now.device == then.device && now.inode == then.inode && now.size_bytes == then.size_bytes && now.mtime_ns == then.mtime_ns)
        return 0;
    sq_source_close(source);
    r->source = NULL;
    return sq_error(err, SQUALL_EIO, "%s changed since it was listed; list it again", index->files[file].path);
}

/* The field's message, read unless the reader holds it already. *ret_read: how many bytes that took. */
static int read_message(struct reader *r, const struct sq_grib_index *index, const struct sq_grib_field *f, uint64_t *ret_read,
                        struct squall_error *err)
{
    SQ_TRY(open_file(r, index, f->file, err));
    if (r->message_held && r->message_offset == f->offset)
        return 0;
    r->message_held = false;
    SQ_TRY(grow(&r->message, &r->message_capacity, f->size_bytes, err));
    SQ_TRY(sq_source_read(r->source, f->offset, r->message, (size_t)f->size_bytes, err));
    r->message_held = true;
    r->message_offset = f->offset;
    *ret_read += f->size_bytes;
    return 0;
}

/* The field's frame in its message, once packing, grid and lengths agree: only then memory for its points may be taken. */
static int frame_of(const struct reader *r, const struct sq_grib_index *index, const struct sq_grib_field *f, struct sq_grib_frame *ret,
                    struct squall_error *err)
{
    struct sq_grib_found found = {.size_bytes = f->size_bytes};
    struct sq_grib_packing packing;
    SQ_TRY(sq_grib_frame_of(r->message, (size_t)f->size_bytes, f->in_message, &found.frame, err));
    for (unsigned i = 1; i < SQ_GRIB_SECTION_COUNT; i++)
        if (found.frame.section[i].size_bytes)
            found.section[i] = (const uint8_t *)r->message + found.frame.section[i].offset;
    SQ_TRY(sq_grib_packing_of(&found, &packing, err));
    SQ_TRY(sq_grib_decode_check(&packing, &found.frame, &index->grids[f->grid], err));
    *ret = found.frame;
    return 0;
}

static int decode(const struct reader *r, const struct sq_grib_index *index, const struct sq_grib_field *f,
                  const struct sq_grib_frame *frame, void *dst, struct squall_error *err)
{
    return sq_grib_decode(r->message, (size_t)f->size_bytes, frame, &index->grids[f->grid], false, r->scratch, SQ_GRIB_FLOAT32, dst, err);
}

/* Whatever went wrong with a field is told with its place. */
static int in_field(const struct sq_grib_index *index, const struct sq_grib_field *f, int status, struct squall_error *err)
{
    if (!status || status == SQUALL_EIO)
        return status;
    return sq_error_within(err, status, "%s: message at byte %llu, field %u", index->files[f->file].path, (unsigned long long)f->offset,
                           f->in_message + 1U);
}

int squall_grib_list_open(squall_context *ctx, const char *const *paths, size_t path_count, squall_grib_list **ret,
                          struct squall_error *err)
{
    struct squall_grib_list *list = sq_alloc_zero(1, sizeof *list);
    if (!list)
        return sq_error_memory(err, sizeof *list);
    int status = sq_grib_index_build(paths, path_count, ctx->threads, ctx->cancelled, ctx->user, &list->index, err);
    if (status) {
        sq_free(list);
        return status;
    }
    list->ctx = ctx;
    sq_mutex_init(&list->lock);
    *ret = list;
    return 0;
}

void squall_grib_list_close(squall_grib_list *list)
{
    if (!list)
        return;
    while (list->idle) {
        struct reader *next = list->idle->next;
        reader_free(list->idle);
        list->idle = next;
    }
    sq_mutex_done(&list->lock);
    sq_grib_index_done(&list->index);
    sq_free(list);
}

size_t squall_grib_list_count(const squall_grib_list *list)
{
    return list->index.field_count;
}

size_t squall_grib_list_problem_count(const squall_grib_list *list)
{
    return list->index.problem_count;
}

struct squall_grib_field squall_grib_list_field(const squall_grib_list *list, size_t index)
{
    const struct sq_grib_index *ix = &list->index;
    const struct sq_grib_field *f = &ix->fields[index];
    const struct sq_grib_product *product = &ix->products[f->product];
    const struct sq_grib_names *names = &ix->names[f->product];
    const struct sq_grib_grid *grid = &ix->grids[f->grid];
    const struct sq_grib_packing *packing = &ix->packings[f->packing];
    return (struct squall_grib_field){
        .path = ix->files[f->file].path,
        .offset = f->offset,
        .size_bytes = f->size_bytes,
        .in_message = f->in_message,
        .edition = product->raw.edition,
        .short_name = names->short_name,
        .name = names->name,
        .units = names->units,
        .cf_name = names->cf_name,
        .param_id = names->param_id,
        .level_type = names->level_type,
        .level = ix->levels[f->product][0],
        .level_bottom = ix->levels[f->product][1],
        .step_type = sq_grib_step_type_name(product->step_type),
        .reference_time_s = f->times.reference_time_s,
        .step_begin_s = f->times.step_begin_s,
        .step_end_s = f->times.step_end_s,
        .number = f->times.number,
        .centre = product->centre,
        .packing = packing->name,
        .bits_per_value = packing->bits_per_value,
        .grid = grid->type_name,
        .point_count = grid->point_count,
        .rows = grid->rows,
        .columns = grid->columns,
        .unsupported = packing->unsupported ? packing->unsupported : grid->unsupported,
    };
}

struct squall_grib_problem squall_grib_list_problem(const squall_grib_list *list, size_t index)
{
    const struct sq_grib_index_problem *p = &list->index.problems[index];
    return (struct squall_grib_problem){list->index.files[p->file].path, p->offset, p->message};
}

int squall_grib_list_read(squall_grib_list *list, size_t index, float *dst, struct squall_error *err)
{
    const struct sq_grib_index *ix = &list->index;
    if (index >= ix->field_count)
        return sq_error(err, SQUALL_EINVAL, "field %zu of %zu", index + 1, ix->field_count);
    const struct sq_grib_field *f = &ix->fields[index];
    struct sq_grib_frame frame;
    struct reader *r = reader_take(list);
    uint64_t bytes = 0;
    if (!r)
        return sq_error_memory(err, sizeof *r);
    int status = read_message(r, ix, f, &bytes, err);
    if (!status)
        status = sq_source_check_unchanged(r->source, err);
    if (!status) {
        status = frame_of(r, ix, f, &frame, err);
        if (!status)
            status = decode(r, ix, f, &frame, dst, err);
        status = in_field(ix, f, status, err);
    } else {
        r->message_held = false;
    }
    reader_give_back(list, r);
    return status;
}

/* What a worker times with. */
struct seat {
    struct reader *reader;
    struct squall_speed speed;
};

struct timing {
    const struct sq_grib_index *index;
    struct seat *seats; /* by worker */
};

static int time_field(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    const struct timing *t = user;
    const struct sq_grib_index *ix = t->index;
    const struct sq_grib_field *f = &ix->fields[index];
    struct reader *r = t->seats[worker].reader;
    struct squall_speed *speed = &t->seats[worker].speed;
    struct sq_grib_frame frame;
    if (ix->packings[f->packing].unsupported || ix->grids[f->grid].unsupported)
        return 0;
    double begin = sq_clock_s();
    SQ_TRY(read_message(r, ix, f, &speed->bytes, err));
    double read = sq_clock_s();
    int status = frame_of(r, ix, f, &frame, err);
    if (!status)
        status = grow(&r->values, &r->values_capacity, ix->grids[f->grid].point_count * sizeof(float), err);
    if (!status)
        status = decode(r, ix, f, &frame, r->values, err);
    SQ_TRY(in_field(ix, f, status, err));
    speed->points += ix->grids[f->grid].point_count;
    speed->read_seconds += read - begin;
    speed->decode_seconds += sq_clock_s() - read;
    return 0;
}

/* Readers are taken before the clock starts. */
static int time_fields(struct squall_grib_list *list, struct seat *seats, unsigned threads, struct squall_speed *ret,
                       struct squall_error *err)
{
    struct timing t = {&list->index, seats};
    for (unsigned i = 0; i < threads; i++) {
        seats[i].reader = reader_take(list);
        if (!seats[i].reader)
            return sq_error_memory(err, sizeof *seats[i].reader);
        seats[i].reader->message_held = false; /* what an earlier call read is read again */
    }
    double begin = sq_clock_s();
    SQ_TRY(sq_parallel(threads, list->index.field_count, time_field, &t, err));
    struct squall_speed sum = {.seconds = sq_clock_s() - begin};
    for (unsigned i = 0; i < threads; i++) {
        sum.bytes += seats[i].speed.bytes;
        sum.points += seats[i].speed.points;
        sum.read_seconds += seats[i].speed.read_seconds;
        sum.decode_seconds += seats[i].speed.decode_seconds;
    }
    *ret = sum;
    return 0;
}

int squall_grib_list_time(squall_grib_list *list, unsigned threads, struct squall_speed *ret, struct squall_error *err)
{
    if (threads == 0)
        threads = list->ctx->threads;
    struct seat *seats = sq_alloc_zero(threads, sizeof *seats);
    if (!seats)
        return sq_error_memory(err, threads * sizeof *seats);
    int status = time_fields(list, seats, threads, ret, err);
    for (unsigned i = 0; i < threads; i++)
        if (seats[i].reader)
            reader_give_back(list, seats[i].reader);
    sq_free(seats);
    return status;
}
