/*
 * See worker.h. The idle ones are a list that is taken whole and put back: no lock, so a fork at any moment leaves none locked, and no
 * worker can be taken twice. Who finds the list empty for that moment makes a worker of its own.
 */
#include "engine/worker.h"
#include "base/error_internal.h"
#include "base/memory.h"

static void worker_free(struct sq_worker *w)
{
    w->ops->scratch_free(w->scratch);
    sq_free(w->sources);
    sq_pages_free(w->raw, w->raw_capacity);
    sq_pages_free(w->chunk, w->chunk_capacity);
    sq_pages_free(w->member, w->member_capacity);
    sq_free(w);
}

void sq_workers_free(struct sq_worker *list)
{
    while (list) {
        struct sq_worker *next = list->next;
        worker_free(list);
        list = next;
    }
}

static struct sq_worker *worker_new(const struct squall_array *a)
{
    struct sq_worker *w = sq_alloc_zero(1, sizeof *w);
    if (!w)
        return NULL;
    w->ops = a->ops;
    w->scratch = a->ops->scratch_new(a);
    if (w->scratch)
        return w;
    sq_free(w);
    return NULL;
}

enum { KEPT_A_THREAD = 2 };

/* Put a chain of workers before those that are there. */
static void push(struct squall_dataset *ds, struct sq_worker *first, struct sq_worker *last)
{
    struct sq_worker *old = atomic_load(&ds->idle_workers);
    do
        last->next = old;
    while (!atomic_compare_exchange_weak(&ds->idle_workers, &old, first));
}

struct sq_worker *sq_worker_take(const struct squall_array *a)
{
    struct sq_worker *all = atomic_exchange(&a->dataset->workers_of->idle_workers, NULL), **at = &all;
    while (*at && (*at)->ops != a->ops)
        at = &(*at)->next;
    struct sq_worker *w = *at;
    if (w)
        *at = w->next;
    if (all) {
        struct sq_worker *last = all;
        for (unsigned kept = 1; last->next && kept < KEPT_A_THREAD * a->dataset->ctx->threads; kept++)
            last = last->next;
        sq_workers_free(last->next); /* those made while the list was away add up */
        push(a->dataset->workers_of, all, last);
    }
    return w ? w : worker_new(a);
}

void sq_worker_give_back(const struct squall_array *a, struct sq_worker *w)
{
    if (!w)
        return;
    w->speed = (struct squall_speed){0};
    w->source_count = 0;
    push(a->dataset->workers_of, w, w);
}

int sq_worker_note_source(struct sq_worker *w, struct sq_source *source, struct squall_error *err)
{
    if (w->source_count > 0 && w->sources[w->source_count - 1] == source) /* neighbours mostly lie in one file */
        return 0;
    SQ_TRY(SQ_GROW(w->sources, w->source_capacity, w->source_count + 1, err));
    w->sources[w->source_count++] = source;
    return 0;
}

void sq_speed_add(struct squall_speed *to, const struct squall_speed *from)
{
    to->bytes += from->bytes;
    to->read_seconds += from->read_seconds;
    to->decode_seconds += from->decode_seconds;
    to->scatter_seconds += from->scatter_seconds;
}

static void *grown(void **buffer, size_t *buffer_bytes, size_t size_bytes)
{
    if (size_bytes == 0)
        size_bytes = 1;
    if (*buffer_bytes >= size_bytes)
        return *buffer;
    size_t half_more = *buffer_bytes + *buffer_bytes / 2; /* stored chunks differ in size: do not grow for each that is a little larger */
    if (size_bytes < half_more)
        size_bytes = half_more;
    sq_pages_free(*buffer, *buffer_bytes);
    *buffer_bytes = 0;
    *buffer = sq_pages_alloc(size_bytes);
    if (*buffer)
        *buffer_bytes = size_bytes;
    return *buffer;
}

void *sq_worker_raw(struct sq_worker *w, size_t size_bytes)
{
    return grown(&w->raw, &w->raw_capacity, size_bytes);
}

void *sq_worker_chunk(struct sq_worker *w, size_t size_bytes)
{
    return grown(&w->chunk, &w->chunk_capacity, size_bytes);
}

void *sq_worker_member(struct sq_worker *w, size_t size_bytes)
{
    return grown(&w->member, &w->member_capacity, size_bytes);
}
