/*
 * See handles.h. Open handles form a ring, in which a hand goes round: what was used since it last came by is passed over, else closed
 * (the second-chance form of "least recently used": a use costs a store, not a place in a list). The lock guards the ring, never a read.
 */
#include "io/handles.h"
#include "base/error_internal.h"
#include "squall/handles.h"
#include "sys/mutex.h"
#include "sys/process.h"
#include <errno.h>

enum { LIMIT_MAX = 4096, LEFT_TO_OTHERS = 16 };
enum { OPEN = 1, PIN = 2 };

static struct {
    struct sq_mutex lock;
    struct sq_handle *hand; /* where eviction goes on; NULL: nothing is open */
    size_t open, limit;     /* 0: not set yet */
    atomic_bool crowded;    /* more are open than may be: all others were being read when room was wanted */
    uint64_t hits;          /* of those that are closed */
    uint64_t opened, evicted;
    bool fork_handled;
} cache = {.lock = SQ_MUTEX_INIT};

/* ---- fork ------------------------------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    sq_mutex_lock(&cache.lock);
}

static void after_fork_in_parent(void)
{
    sq_mutex_unlock(&cache.lock);
}

/* Descriptors are the child's too; what the parent's other threads had pinned is pinned by nobody. */
static void after_fork_in_child(void)
{
    struct sq_handle *h = cache.hand;
    for (size_t i = 0; i < cache.open; i++, h = h->next)
        atomic_store(&h->state, OPEN);
    sq_mutex_init(&cache.lock);
}

/* ---- the ring: all with the lock held --------------------------------------------------------------------------------------------- */

static size_t limit_at_most(size_t wanted)
{
    size_t system = sq_process_open_files_limit();
    if (wanted == 0)
        wanted = system / 2 < LIMIT_MAX ? system / 2 : LIMIT_MAX;
    const size_t most = system > LEFT_TO_OTHERS + 1 ? system - LEFT_TO_OTHERS : 1;
    return wanted < most ? wanted : most;
}

static void lock(void)
{
    sq_mutex_lock(&cache.lock);
    if (cache.limit == 0)
        cache.limit = limit_at_most(0);
    if (!cache.fork_handled)
        cache.fork_handled = sq_process_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* In front of the hand, so that it is the last one to come by. */
static void put_in(struct sq_handle *h)
{
    if (cache.hand) {
        h->next = cache.hand;
        h->previous = cache.hand->previous;
        h->previous->next = h->next->previous = h;
    } else {
        cache.hand = h->next = h->previous = h;
    }
    cache.open++;
    cache.opened++;
}

static void take_out(struct sq_handle *h)
{
    h->next->previous = h->previous;
    h->previous->next = h->next;
    if (cache.hand == h)
        cache.hand = h->next == h ? NULL : h->next;
    cache.open--;
    cache.hits += atomic_exchange_explicit(&h->hits, 0, memory_order_relaxed);
}

/* Close it, if nobody has it pinned. */
static bool close_unpinned(struct sq_handle *h)
{
    unsigned unpinned = OPEN;
    if (!atomic_compare_exchange_strong(&h->state, &unpinned, 0))
        return false;
    sq_file_close(h->fd);
    take_out(h);
    cache.evicted++;
    return true;
}

/* Twice round at most: the first time takes the chance of those that were used. */
static void evict_down_to(size_t wanted)
{
    if (cache.open > cache.limit) /* said first: who unpins a handle that is passed over here must see it */
        atomic_store(&cache.crowded, true);
    for (size_t left = 2 * cache.open; left > 0 && cache.hand && cache.open > wanted; left--) {
        struct sq_handle *h = cache.hand;
        cache.hand = h->next;
        if (!atomic_exchange_explicit(&h->used, false, memory_order_relaxed))
            (void)close_unpinned(h);
    }
    atomic_store(&cache.crowded, cache.open > cache.limit);
}

/* ---- handles ---------------------------------------------------------------------------------------------------------------------- */

bool sq_handles_make_room(void)
{
    lock();
    const size_t before = cache.open;
    evict_down_to(before - before / 4 - (before > 0));
    const bool done = cache.open < before;
    sq_mutex_unlock(&cache.lock);
    return done;
}

/* A descriptor and whose it is; without one left, others are closed for it. */
static int open_file(const char *path, int *ret_fd, struct sq_file_identity *ret, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status;
    do
        status = sq_file_open(path, ret_fd, ret, &reason);
    while (status && (reason.os_errno == EMFILE || reason.os_errno == ENFILE) && sq_handles_make_room());
    if (status && err)
        *err = reason;
    return status;
}

/* fd is the handle's from here on, and pinned `pins` times. */
static void take_in(struct sq_handle *h, int fd, unsigned pins)
{
    lock();
    if (atomic_load(&h->state) & OPEN) { /* another thread was faster */
        atomic_fetch_add(&h->state, pins * PIN);
        sq_mutex_unlock(&cache.lock);
        sq_file_close(fd);
        return;
    }
    h->fd = fd;
    put_in(h);
    atomic_fetch_add(&h->state, OPEN + pins * PIN);
    evict_down_to(cache.limit);
    sq_mutex_unlock(&cache.lock);
}

int sq_handle_open(struct sq_handle *h, const char *path, struct squall_error *err)
{
    struct sq_file_identity identity = {0};
    int fd = -1;
    sq_handle_init(h, path, &identity);
    SQ_TRY(open_file(path, &fd, &h->identity, err));
    take_in(h, fd, 0);
    return 0;
}

void sq_handle_init(struct sq_handle *h, const char *path, const struct sq_file_identity *identity)
{
    *h = (struct sq_handle){.path = path, .identity = *identity, .fd = -1};
}

void sq_handle_done(struct sq_handle *h)
{
    lock();
    if (atomic_load(&h->state) & OPEN) {
        sq_file_close(h->fd);
        take_out(h);
        atomic_store(&h->state, 0);
    }
    sq_mutex_unlock(&cache.lock);
}

/* Pinned, as the file that it was. */
static int open_again(struct sq_handle *h, struct squall_error *err)
{
    struct sq_file_identity now = {0};
    int fd = -1;
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = open_file(h->path, &fd, &now, &reason);
    if (status && reason.os_errno == ENOENT)
        return sq_error(err, SQUALL_EIO, "%s is gone since it was opened", h->path);
    if (status && err)
        *err = reason;
    if (status)
        return status;
    if (!sq_file_identity_same(&now, &h->identity)) {
        sq_file_close(fd);
        return sq_error(err, SQUALL_EIO, "%s changed since it was opened; open it again", h->path);
    }
    take_in(h, fd, 1);
    return 0;
}

int sq_handle_pin(struct sq_handle *h, int *ret_fd, struct squall_error *err)
{
    if (atomic_fetch_add(&h->state, PIN) & OPEN) {
        atomic_fetch_add_explicit(&h->hits, 1, memory_order_relaxed);
        if (!atomic_load_explicit(&h->used, memory_order_relaxed))
            atomic_store_explicit(&h->used, true, memory_order_relaxed);
    } else {
        atomic_fetch_sub(&h->state, PIN);
        SQ_TRY(open_again(h, err));
    }
    *ret_fd = h->fd;
    return 0;
}

void sq_handle_unpin(struct sq_handle *h)
{
    atomic_fetch_sub(&h->state, PIN);
    if (!atomic_load(&cache.crowded))
        return;
    lock();
    evict_down_to(cache.limit);
    sq_mutex_unlock(&cache.lock);
}

/* ---- the public interface --------------------------------------------------------------------------------------------------------- */

struct squall_handles squall_handles(void)
{
    lock();
    struct squall_handles ret = {cache.open, cache.limit, cache.hits, cache.opened, cache.evicted};
    const struct sq_handle *h = cache.hand;
    for (size_t i = 0; i < cache.open; i++, h = h->next)
        ret.hits += atomic_load_explicit(&h->hits, memory_order_relaxed);
    sq_mutex_unlock(&cache.lock);
    return ret;
}

size_t squall_handles_set_limit(size_t limit)
{
    lock();
    limit = cache.limit = limit_at_most(limit);
    evict_down_to(limit);
    sq_mutex_unlock(&cache.lock);
    return limit;
}
