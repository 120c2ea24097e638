/*
 * How fast an array reads: all of it, box by box into one buffer that is used again, so that what is measured is the reading
 * and not the system's handing out of memory.
 */
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/read.h"
#include "engine/variable.h"
#include "sys/clock.h"
#include <string.h>

static const uint64_t BUFFER_LIMIT_BYTES = UINT64_C(1) << 30;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Elements of a box; UINT64_MAX where they cannot be counted. */
static uint64_t elements_of(unsigned rank, const uint64_t *count)
{
    uint64_t elements = 1;
    bool fits = true;
    for (unsigned d = 0; d < rank; d++) {
        if (count[d] == 0)
            return 0;
        fits = fits && sq_mul_u64(elements, count[d], &elements);
    }
    return fits ? elements : UINT64_MAX;
}

/* The whole shape, cut along the first dimensions, at chunk boundaries, until it is within the limit or a single chunk. */
static void choose_box(const struct squall_array_info *info, uint64_t element_limit, uint64_t box[SQUALL_RANK_MAX])
{
    for (unsigned d = 0; d < info->rank; d++)
        box[d] = info->shape[d];
    for (unsigned d = 0; d < info->rank && elements_of(info->rank, box) > element_limit; d++) {
        uint64_t whole = box[d];
        box[d] = 1;
        uint64_t rest = elements_of(info->rank, box), chunks = element_limit / rest / info->chunks[d];
        box[d] = smaller(whole, (chunks > 0 ? chunks : 1) * info->chunks[d]);
    }
}

/* The next box of the array in C order; false behind the last. */
static bool next_box(const struct squall_array_info *info, const uint64_t *box, struct squall_selection *s)
{
    for (unsigned d = info->rank; d-- > 0;) {
        s->start[d] += box[d];
        bool more = s->start[d] < info->shape[d];
        if (!more)
            s->start[d] = 0;
        s->count[d] = smaller(box[d], info->shape[d] - s->start[d]);
        if (more)
            return true;
    }
    return false;
}

static void drop_elements(const struct squall_array_info *info, const struct squall_selection *s, void *buffer)
{
    sq_variable_free_packed(info->type, elements_of(info->rank, s->count), buffer);
}

int squall_array_time(squall_array *a, unsigned threads, struct squall_speed *ret, struct squall_error *err)
{
    const struct squall_array_info info = a->info;
    const size_t element_bytes = info.element_bytes;
    struct squall_selection s = squall_selection_all(a);
    struct squall_speed speed = {0};
    uint64_t box[SQUALL_RANK_MAX], bytes;
    if (info.unsupported)
        return sq_error(err, SQUALL_EUNSUPPORTED, "array %s cannot be read: %s", info.name, info.unsupported);
    choose_box(&info, smaller(a->dataset->ctx->memory_bytes / 2, BUFFER_LIMIT_BYTES) / element_bytes, box);
    if (!sq_mul_u64(elements_of(info.rank, box), element_bytes, &bytes) || bytes > a->dataset->ctx->memory_bytes)
        return sq_error(err, SQUALL_ENOMEM, "array %s: a chunk does not fit into the memory that may be used", info.name);
    void *buffer = sq_pages_alloc((size_t)bytes);
    if (!buffer)
        return sq_error_memory(err, bytes);
    memcpy(s.count, box, sizeof *box * info.rank);
    int status = 0;
    if (bytes > 0)
        memset(buffer, 0, (size_t)bytes);
    threads = threads ? threads : a->dataset->ctx->threads;
    double begin = sq_clock_s();
    do {
        uint64_t elements = elements_of(info.rank, s.count);
        status = sq_array_read(a, &s, buffer, NULL, threads, &speed, err);
        if (!status && elements > 0)
            drop_elements(&info, &s, buffer);
        speed.points += elements;
    } while (!status && bytes > 0 && next_box(&info, box, &s));
    speed.seconds = sq_clock_s() - begin;
    sq_pages_free(buffer, (size_t)bytes);
    if (!status)
        *ret = speed;
    return status;
}
