/*
 * Regions of NetCDF-3 files: each run of bytes that the region has in the file is turned into its byte order and written where it belongs,
 * nothing beside it is touched. So regions that share no element can be written at the same time by anybody, and no lock is needed: but where
 * the file system keeps whole pages and writes those back, other machines' bytes in them included.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/plan.h"
#include "engine/scatter.h"
#include "engine/worker.h"
#include "store/netcdf3.h"
#include "sys/file.h"
#include "sys/pool.h"
#include <inttypes.h>

/* Turned bytes stay in the processor's own cache until the system takes them. */
enum { PIECE_BYTES = 256 << 10 };
/* Writing less than this is sooner done than another thread is awake. */
enum { BYTES_WORTH_A_THREAD = 512 << 10 };

struct writing {
    struct squall_array *array;
    struct sq_plan plan;
    const char *path;
    int fd;
    bool lock_pages;
    int64_t strides[SQUALL_RANK_MAX];       /* of the caller's memory */
    uint64_t file_strides[SQUALL_RANK_MAX]; /* between selected elements in the file */
    const uint8_t *src;
    struct sq_worker **workers; /* one for each thread */
};

/* A part of an item's box: dimensions from d on, with `count` of dimension d. */
struct piece {
    const struct sq_plan_item *item;
    unsigned d;
    uint64_t count;
    uint64_t at; /* of its first element in the file */
    const uint8_t *from;
};

/* Bytes of its elements; and from the first to the end of the last in the file. */
static uint64_t piece_bytes(const struct writing *w, const struct piece *piece, uint64_t *ret_span)
{
    uint64_t bytes = w->array->info.element_bytes, span = bytes;
    for (unsigned d = w->plan.rank; d-- > piece->d;) {
        const uint64_t count = d == piece->d ? piece->count : piece->item->count[d];
        bytes *= count;
        span += (count - 1) * w->file_strides[d];
    }
    *ret_span = span;
    return bytes;
}

static int put(const struct writing *w, uint64_t at, const void *bytes, uint64_t size_bytes, struct squall_error *err)
{
    if (w->lock_pages)
        SQ_TRY(sq_file_hold_pages(w->fd, w->path, at, size_bytes, err));
    int status = sq_file_write_at(w->fd, w->path, at, bytes, (size_t)size_bytes, err);
    return w->lock_pages && !status ? sq_file_release_pages(w->fd, w->path, at, size_bytes, err) : status;
}

/* One run in the file. */
static int write_run(const struct writing *w, struct sq_worker *worker, const struct piece *piece, uint64_t bytes, struct squall_error *err)
{
    const struct squall_array *a = w->array;
    const unsigned rank = w->plan.rank - piece->d;
    uint64_t count[SQUALL_RANK_MAX];
    int64_t packed[SQUALL_RANK_MAX], stride = (int64_t)a->info.element_bytes;
    for (unsigned d = rank; d-- > 0;) {
        count[d] = d == 0 ? piece->count : piece->item->count[piece->d + d];
        packed[d] = stride;
        stride *= (int64_t)count[d];
    }
    void *turned = sq_worker_raw(worker, (size_t)bytes);
    if (!turned)
        return sq_error_memory(err, bytes);
    if (a->swap_bytes)
        sq_scatter_swap(rank, count, a->info.element_bytes, piece->from, w->strides + piece->d, turned, packed, a->swap_bytes,
                        SQ_SCATTER_INTO_CACHES);
    else
        sq_scatter_copy(rank, count, a->info.element_bytes, piece->from, w->strides + piece->d, turned, packed, SQ_SCATTER_INTO_CACHES);
    return put(w, piece->at, turned, bytes, err);
}

/* Cut the piece along its first dimensions until it is one run of some size. */
static int write_pieces(const struct writing *w, struct sq_worker *worker, const struct piece *whole, struct squall_error *err)
{
    const unsigned d = whole->d;
    uint64_t span, one_span;
    const uint64_t bytes = piece_bytes(w, whole, &span);
    if (d == w->plan.rank || (span == bytes && bytes <= PIECE_BYTES))
        return write_run(w, worker, whole, bytes, err);
    struct piece part = *whole;
    part.count = 1;
    const uint64_t one = piece_bytes(w, &part, &one_span);
    const bool packed = one_span == one && (whole->count == 1 || w->file_strides[d] == one);
    const uint64_t together = packed ? PIECE_BYTES / one : 0;
    for (uint64_t i = 0; i < whole->count; i += together ? part.count : 1) {
        const uint64_t left = whole->count - i;
        part.at = whole->at + i * w->file_strides[d];
        part.from = whole->from + (int64_t)i * w->strides[d];
        part.d = together ? d : d + 1;
        part.count = together ? (together < left ? together : left) : part.d < w->plan.rank ? whole->item->count[part.d] : 1;
        SQ_TRY(write_pieces(w, worker, &part, err));
    }
    return 0;
}

static int write_item(void *user, size_t index, unsigned seat, struct squall_error *err)
{
    struct writing *w = user;
    struct squall_array *a = w->array;
    struct sq_plan_item item;
    uint64_t first[SQUALL_RANK_MAX];
    if (sq_cancelled(a->dataset->ctx))
        return sq_error(err, SQUALL_ECANCELLED, "writing array %s was cancelled", a->info.name);
    if (!w->workers[seat] && !(w->workers[seat] = sq_worker_take(a)))
        return sq_error_memory(err, sizeof(struct sq_worker));
    if (!sq_plan_item_at(&w->plan, index, &item))
        return 0;
    struct piece whole = {.item = &item, .count = w->plan.rank ? item.count[0] : 1, .from = w->src};
    for (unsigned d = 0; d < w->plan.rank; d++) {
        first[d] = sq_axis_begin(&w->plan.axes[d], item.chunk[d]) + item.first[d];
        whole.from += (int64_t)item.to[d] * w->strides[d];
    }
    whole.at = sq_netcdf3_element_offset(a, first);
    int status = write_pieces(w, w->workers[seat], &whole, err);
    return status ? sq_error_within(err, status, "array %s", a->info.name) : 0;
}

static int writing_init(struct writing *w, struct squall_array *a, const struct squall_selection *selection, const void *src,
                        const int64_t *strides, struct squall_error *err)
{
    const struct squall_array_info *info = &a->info;
    int64_t stride = (int64_t)info->element_bytes;
    *w = (struct writing){.array = a, .src = src, .path = a->dataset->path, .fd = -1};
    if (!a->dataset->writable)
        return sq_error(err, SQUALL_EREFUSED, "array %s was not opened for writing", info->name);
    if (info->unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s: %s", info->name, info->unsupported);
    int status = sq_plan_init(info->rank, a->grid, selection, &w->plan, err);
    if (status)
        return sq_error_within(err, status, "array %s", info->name);
    for (unsigned d = info->rank; d-- > 0;) {
        w->strides[d] = strides ? strides[d] : stride;
        w->file_strides[d] = sq_netcdf3_stride(a, d) * selection->step[d];
        stride *= (int64_t)selection->count[d];
    }
    return 0;
}

/* The file that the dataset was opened as, open for writing. */
static int open_file(struct writing *w, struct squall_error *err)
{
    const struct sq_file_identity known = sq_source_identity(sq_netcdf3_of_dataset(w->array->dataset)->source);
    struct sq_file_identity now = {0};
    SQ_TRY(sq_file_open_to_write(w->path, &w->fd, &now, err));
    w->lock_pages = sq_file_is_remote(w->fd);
    return sq_file_identity_same(&known, &now)
               ? 0
               : sq_error(err, SQUALL_EIO, "%s is another file since it was opened; open it again", w->path);
}

static int run(struct writing *w, struct squall_error *err)
{
    uint64_t bytes = w->array->info.element_bytes;
    unsigned threads = w->array->dataset->ctx->threads;
    for (unsigned d = 0; d < w->plan.rank; d++)
        bytes *= w->plan.selection.count[d];
    if (threads > bytes / BYTES_WORTH_A_THREAD + 1)
        threads = (unsigned)(bytes / BYTES_WORTH_A_THREAD + 1);
    if (w->lock_pages) /* locks are the descriptor's, and would be shared */
        threads = 1;
    SQ_CLEANUP_FREE struct sq_worker **workers = sq_alloc_zero(threads, sizeof(struct sq_worker *));
    if (!workers)
        return sq_error_memory(err, threads * sizeof *workers);
    w->workers = workers;
    int status = sq_parallel(threads, w->plan.item_count, write_item, w, err);
    for (unsigned i = 0; i < threads; i++)
        sq_worker_give_back(w->array, workers[i]);
    if (!status && w->array->dataset->write_options.durability != SQUALL_DURABILITY_NONE)
        status = sq_file_make_durable(w->fd, w->path, err);
    return status;
}

int sq_netcdf3_region_write(struct squall_array *a, const struct squall_selection *selection, const void *src, const int64_t *strides,
                            struct squall_error *err)
{
    struct writing w;
    SQ_TRY(writing_init(&w, a, selection, src, strides, err));
    if (w.plan.item_count == 0)
        return 0;
    int status = open_file(&w, err);
    if (!status)
        status = run(&w, err);
    if (w.fd >= 0 && !status)
        return sq_file_close_written(w.fd, w.path, err);
    sq_file_close(w.fd);
    return status;
}

int squall_netcdf_create(const char *path, const struct squall_netcdf_spec *spec, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text header = SQ_TEXT_INIT;
    uint64_t file_bytes;
    int status = sq_netcdf3_header_make(spec, &header, &file_bytes, err);
    if (status)
        return sq_error_within(err, status, "%s", path);
    return sq_file_create(path, header.data, header.length, file_bytes, err);
}
