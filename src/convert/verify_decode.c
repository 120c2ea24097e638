/* squall verify without records: every chunk is decoded. That finds what does not decode, and what is not there. */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/verify_internal.h"
#include "engine/variable.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <assert.h>
#include <string.h>

/* A store may claim more chunks than a life has time for. */
enum { CHUNK_COUNT_LIMIT = 1 << 26 };

struct decoding {
    struct sq_verify *v;
    squall_array *array;
    bool complete; /* it has every chunk: one that is not there is missing, and not left out as fill */
    struct squall_array_info info;
    struct sq_axis axes[SQUALL_RANK_MAX]; /* of the chunks that are decoded: with shards, the inner ones */
    size_t first_order;
    void **buffers; /* of each worker: one chunk */
};

static void decoding_done(struct decoding *d)
{
    for (unsigned i = 0; d->buffers && i < d->v->ctx->threads; i++)
        sq_free(d->buffers[i]);
    sq_free(d->buffers);
}

static char *chunk_name(const struct decoding *d, const uint64_t *chunk)
{
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    sq_text_printf(&t, "%s: %s: chunk ", d->v->store, d->info.name);
    for (unsigned i = 0; i < d->info.rank; i++)
        sq_text_printf(&t, "%s%llu", i ? "/" : "", (unsigned long long)chunk[i]);
    return sq_text_release(&t);
}

/* What a failed reading says, without what the finding's name says already: which chunk, and the store before a path. */
static const char *reason_of(const struct decoding *d, const char *name, const char *message)
{
    const char *numbers = strrchr(name, ' ') + 1;
    const size_t store = strlen(d->v->store);
    SQ_CLEANUP_FREE char *said = sq_format("array %s, chunk %s: ", d->info.name, numbers);
    if (said && !strncmp(message, said, strlen(said)))
        message += strlen(said);
    if (strncmp(message, d->v->store, store) != 0)
        return message;
    return message[store] == '/' ? message + store + 1 : !strncmp(message + store, ": ", 2) ? message + store + 2 : message;
}

/* Decode it; what fails is a finding. */
static int decode_chunk(struct decoding *d, const uint64_t *chunk, size_t order, void *buffer, struct squall_error *err)
{
    struct squall_selection box = {0};
    struct squall_error failure = SQUALL_ERROR_INIT;
    uint64_t elements = 1;
    for (unsigned i = 0; i < d->info.rank; i++) {
        box.start[i] = sq_axis_begin(&d->axes[i], chunk[i]);
        uint64_t extent = sq_axis_extent(&d->axes[i], chunk[i]),
                 left = box.start[i] < d->info.shape[i] ? d->info.shape[i] - box.start[i] : 0;
        box.count[i] = left < extent ? left : extent;
        box.step[i] = 1;
        elements *= box.count[i];
    }
    int status = squall_array_read(d->array, &box, buffer, NULL, &failure); /* SQUALL_ENOMEM: it may be its file that is too large */
    if (status == SQUALL_ECANCELLED) {
        if (err)
            *err = failure;
        return status;
    }
    if (!status && elements > 0)
        sq_variable_free_packed(d->info.type, elements, buffer);
    if (!status)
        return 0;
    SQ_CLEANUP_FREE char *name = chunk_name(d, chunk);
    char *line = name ? sq_format("%s: %s", name, reason_of(d, name, failure.message)) : NULL;
    return sq_verify_add(d->v, &d->v->bad, order, line, err);
}

/*
 * A chunk in a file of its own may be absent though its place is known; one that cannot be looked at is not absent, nor is one of an array that others make
 * up, which has no chunks of its own. stored: by the array's grid.
 */
static int is_absent(const struct decoding *d, const uint64_t *stored, bool *ret, struct squall_error *err)
{
    struct sq_location where = {0};
    enum sq_file_kind kind = SQ_FILE_REGULAR;
    const struct sq_array_ops *ops = d->array->ops;
    struct squall_error reason = SQUALL_ERROR_INIT;
    if (!ops->locate)
        return 0;
    int status = ops->locate(d->array, stored, &where, &reason);
    if (status == SQUALL_ENOMEM)
        return sq_error(err, status, "%s", reason.message);
    SQ_CLEANUP_FREE char *path = where.path; /* NULL of a chunk that cannot be located: reading it tells why */
    *ret = where.state == SQ_CHUNK_MISSING || (path && !where.source && !sq_file_stat(path, &kind, NULL, NULL) && kind == SQ_FILE_NONE &&
                                               !(ops->absent && ops->absent(d->array, stored, &where, NULL)));
    return 0;
}

static int tell_absent(struct decoding *d, const uint64_t *stored, size_t order, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *name = chunk_name(d, stored);
    const char *what = d->complete ? "missing" : "absent, reads as fill";
    return sq_verify_add(d->v, d->complete ? &d->v->bad : &d->v->absent, order, name ? sq_format("%s: %s", name, what) : NULL, err);
}

static int decode_task(void *user, size_t index, unsigned worker, struct squall_error *err)
{
    struct decoding *d = user;
    uint64_t chunk[SQUALL_RANK_MAX], stored[SQUALL_RANK_MAX];
    size_t rest = index, order = d->first_order + index;
    bool absent = false, first = true; /* of those that are stored with it */
    if (sq_cancelled(d->v->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "stopped");
    for (unsigned i = d->info.rank; i-- > 0;) {
        const struct sq_axis *axis = &d->array->grid[i];
        const uint64_t count = sq_axis_count(&d->axes[i]);
        assert(count > 0); /* else there is no task */
        chunk[i] = rest % count;
        rest /= count;
        stored[i] = d->array->shard ? sq_axis_chunk_of(axis, sq_axis_begin(&d->axes[i], chunk[i])) : chunk[i];
        first = first && sq_axis_begin(axis, stored[i]) == sq_axis_begin(&d->axes[i], chunk[i]);
    }
    SQ_TRY(is_absent(d, stored, &absent, err));
    if (!absent)
        SQ_TRY(decode_chunk(d, chunk, order, d->buffers[worker], err));
    else if (first)
        SQ_TRY(tell_absent(d, stored, order, err));
    sq_verify_chunk_done(d->v, 0);
    return 0;
}

/* How many chunks the array has, and what one takes in memory. Returns why they are not looked at; NULL: they are. */
static const char *measure(struct decoding *d, size_t *ret_chunks, size_t *ret_bytes)
{
    size_t chunks = 1, bytes = d->info.element_bytes;
    bool counted = true, fits = true;
    if (d->info.unsupported)
        return d->info.unsupported;
    for (unsigned i = 0; i < d->info.rank; i++) {
        uint64_t shape = d->info.shape[i], length = d->info.chunks[i] < shape ? d->info.chunks[i] : shape;
        d->axes[i] = d->array->shard ? (struct sq_axis){.length = shape, .chunk = d->info.chunks[i]} : d->array->grid[i];
        counted = counted && sq_mul_size(chunks, sq_axis_count(&d->axes[i]), &chunks);
        fits = fits && sq_mul_size(bytes, length, &bytes);
    }
    if (!counted || chunks > CHUNK_COUNT_LIMIT)
        return "more chunks than verify looks at";
    *ret_chunks = chunks;
    *ret_bytes = bytes;
    return fits && bytes <= d->v->ctx->memory_bytes / 2 ? NULL : "a chunk does not fit into the memory that may be used";
}

int sq_verify_decode_array(struct sq_verify *v, squall_array *a, bool complete, size_t first_order, size_t *ret_chunks,
                           struct squall_error *err)
{
    __attribute__((cleanup(decoding_done))) struct decoding d = {
        .v = v, .array = a, .complete = complete, .info = squall_array_info(a), .first_order = first_order};
    size_t chunks = 0, bytes = 0;
    const char *why_not = measure(&d, &chunks, &bytes);
    *ret_chunks = chunks;
    if (why_not)
        return sq_verify_add(v, complete && !d.info.unsupported ? &v->bad : &v->unchecked, first_order,
                             sq_format("%s: %s: not checked: %s", v->store, d.info.name, why_not), err);
    struct squall_error failure = SQUALL_ERROR_INIT;
    int status = a->ops->prepare ? a->ops->prepare(a, &failure) : 0;
    if (status == SQUALL_ENOMEM || status == SQUALL_ECANCELLED)
        return sq_error(err, status, "%s", failure.message);
    if (status)
        return sq_verify_add(v, &v->bad, first_order, sq_format("%s: %s: %s", v->store, d.info.name, failure.message), err);
    unsigned threads = v->ctx->threads;
    if (bytes && threads > v->ctx->memory_bytes / 2 / bytes)
        threads = (unsigned)(v->ctx->memory_bytes / 2 / bytes);
    d.buffers = sq_alloc_zero(v->ctx->threads, sizeof *d.buffers);
    if (!d.buffers)
        return sq_error_memory(err, v->ctx->threads * sizeof *d.buffers);
    for (unsigned i = 0; i < threads && chunks; i++)
        if (!(d.buffers[i] = sq_alloc(bytes, 1)))
            return sq_error_memory(err, bytes);
    v->chunk_count += chunks;
    return sq_parallel(threads, chunks, decode_task, &d, err);
}

int sq_verify_by_decoding(squall_context *ctx, struct sq_verify *v, struct squall_error *err)
{
    squall_dataset *ds;
    SQ_TRY(squall_dataset_open(ctx, v->store, &ds, err));
    struct squall_dataset_info info = squall_dataset_info(ds);
    size_t order = 0;
    int status = 0;
    for (size_t i = 0; i < info.problem_count && !status; i++)
        status = sq_verify_add(v, &v->bad, 0, sq_strdup(squall_dataset_problem(ds, i)), err);
    for (size_t i = 0; i < info.array_count && !status; i++) {
        size_t chunks = 0;
        status = sq_verify_decode_array(v, squall_dataset_array_at(ds, i), false, order, &chunks, err);
        order += chunks + 1;
    }
    squall_dataset_close(ds);
    return status;
}
