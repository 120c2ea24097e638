/* See worker.h. */
#include "engine/worker.h"
#include "base/memory.h"

static void worker_free(struct sq_worker *w)
{
    w->ops->scratch_free(w->scratch);
    sq_pages_free(w->raw, w->raw_bytes);
    sq_pages_free(w->chunk, w->chunk_bytes);
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

struct sq_worker *sq_worker_take(const struct squall_array *a)
{
    struct squall_dataset *ds = a->dataset;
    pthread_mutex_lock(&ds->lock);
    struct sq_worker **at = &ds->idle_workers, *w;
    while (*at && (*at)->ops != a->ops)
        at = &(*at)->next;
    w = *at;
    if (w)
        *at = w->next;
    pthread_mutex_unlock(&ds->lock);
    return w ? w : worker_new(a);
}

void sq_worker_give_back(const struct squall_array *a, struct sq_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&a->dataset->lock);
    w->next = a->dataset->idle_workers;
    a->dataset->idle_workers = w;
    pthread_mutex_unlock(&a->dataset->lock);
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
    return grown(&w->raw, &w->raw_bytes, size_bytes);
}

void *sq_worker_chunk(struct sq_worker *w, size_t size_bytes)
{
    return grown(&w->chunk, &w->chunk_bytes, size_bytes);
}
