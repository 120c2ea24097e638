/*
 * See publish.h. A queue of encoded chunks under one lock; whoever writes the last chunk of a sealed unit also writes its
 * record and flags. The first failure is kept: what comes after it is dropped, and the next call for a buffer returns it.
 */
#include "convert/publish.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "store/zarr_writer.h"
#include <pthread.h>

enum { THREAD_LIMIT = 4 };

struct sq_pending {
    struct sq_pending *next;
    struct sq_record_unit *record;
    size_t open; /* chunks put and not durable yet, and one more until it is sealed */
};

struct sq_publisher {
    struct sq_publisher_setting setting;
    pthread_mutex_t lock;
    pthread_cond_t work; /* a full slot, or the end */
    pthread_cond_t room; /* a free slot */
    struct sq_slot *slots, *free_slots;
    struct sq_slot *first, **last; /* full ones, as they came */
    struct sq_pending *pendings;   /* all of the run */
    bool ending;
    int status;
    struct squall_error failure;
    pthread_t threads[THREAD_LIMIT];
    unsigned thread_count;
};

/* ---- what a thread does ---------------------------------------------------------------------------------------------------------- */

static int write_chunk(struct sq_publisher *p, const struct sq_slot *slot, struct squall_error *err)
{
    const struct sq_layout_array *a = &p->setting.layout->arrays[slot->array];
    struct sq_record_unit *record = slot->pending->record;
    uint64_t index[SQ_LAYOUT_RANK_MAX];
    sq_layout_chunk_index(a, record->unit, slot->chunk, index);
    SQ_TRY(sq_store_write_chunk(p->setting.store, a->name, a->rank, index, slot->bytes, slot->size_bytes, err));
    uint32_t crc = sq_crc32c(0, slot->bytes, slot->size_bytes);
    record->arrays[slot->array].chunks[slot->chunk] = (struct sq_record_chunk){slot->size_bytes, crc};
    return 0;
}

static int complete(struct sq_publisher *p, const struct sq_record_unit *record, struct squall_error *err)
{
    uint64_t first = record->unit * p->setting.layout->init_chunk;
    SQ_TRY(sq_journal_add_unit(p->setting.journal, record, err));
    for (size_t i = 0; i < record->init_count; i++)
        if (record->field_counts[i] > 0)
            SQ_TRY(sq_flags_set(p->setting.store, first + i, record->field_counts[i], err));
    return 0;
}

/* Lock held. */
static void keep_failure(struct sq_publisher *p, int status, const struct squall_error *err)
{
    if (p->status)
        return;
    p->status = status;
    p->failure = *err;
    pthread_cond_broadcast(&p->room);
}

/* One of the unit's open ends is done. Lock held on entry and return, not while the record is written. */
static void close_one(struct sq_publisher *p, struct sq_pending *pending)
{
    if (--pending->open > 0 || p->status)
        return;
    struct squall_error err = SQUALL_ERROR_INIT;
    pthread_mutex_unlock(&p->lock);
    int status = complete(p, pending->record, &err);
    pthread_mutex_lock(&p->lock);
    if (status)
        keep_failure(p, status, &err);
    else
        p->setting.progress(p->setting.user, 0, pending->record);
}

/* Lock held. */
static void set_free(struct sq_publisher *p, struct sq_slot *slot)
{
    slot->next = p->free_slots;
    p->free_slots = slot;
    pthread_cond_signal(&p->room);
}

/* Lock held on entry and return. */
static void publish_slot(struct sq_publisher *p, struct sq_slot *slot)
{
    if (!p->status) {
        struct squall_error err = SQUALL_ERROR_INIT;
        pthread_mutex_unlock(&p->lock);
        int status = write_chunk(p, slot, &err);
        pthread_mutex_lock(&p->lock);
        if (status)
            keep_failure(p, status, &err);
        else
            p->setting.progress(p->setting.user, slot->size_bytes, NULL);
    }
    struct sq_pending *pending = slot->pending;
    set_free(p, slot);
    close_one(p, pending);
}

static void *publish(void *user)
{
    struct sq_publisher *p = user;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct sq_slot *slot = p->first;
        if (slot) {
            p->first = slot->next;
            if (!p->first)
                p->last = &p->first;
            publish_slot(p, slot);
        } else if (p->ending) {
            break;
        } else {
            pthread_cond_wait(&p->work, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- made and ended -------------------------------------------------------------------------------------------------------------- */

static void publisher_free(struct sq_publisher *p)
{
    for (size_t i = 0; p->slots && i < p->setting.slot_count; i++)
        sq_pages_free(p->slots[i].bytes, p->slots[i].capacity);
    sq_free(p->slots);
    while (p->pendings) {
        struct sq_pending *next = p->pendings->next;
        sq_free(p->pendings);
        p->pendings = next;
    }
    pthread_cond_destroy(&p->room);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    sq_free(p);
}

static int make_slots(struct sq_publisher *p, struct squall_error *err)
{
    size_t capacity = p->setting.layout->encoded_limit_bytes;
    p->slots = sq_alloc_zero(p->setting.slot_count, sizeof *p->slots);
    if (!p->slots)
        return sq_error_memory(err, p->setting.slot_count * sizeof *p->slots);
    for (size_t i = 0; i < p->setting.slot_count; i++) {
        struct sq_slot *slot = &p->slots[i];
        if (!(slot->bytes = sq_pages_alloc(capacity)))
            return sq_error_memory(err, capacity);
        slot->capacity = capacity;
        set_free(p, slot);
    }
    return 0;
}

int sq_publisher_start(const struct sq_publisher_setting *setting, struct sq_publisher **ret, struct squall_error *err)
{
    struct sq_publisher *p = sq_alloc_zero(1, sizeof *p);
    if (!p)
        return sq_error_memory(err, sizeof *p);
    p->setting = *setting;
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->room, NULL);
    int status = make_slots(p, err);
    if (status) {
        publisher_free(p);
        return status;
    }
    while (p->thread_count < THREAD_LIMIT && p->thread_count < setting->slot_count) {
        int os_errno = pthread_create(&p->threads[p->thread_count], NULL, publish, p);
        if (os_errno && p->thread_count == 0) {
            publisher_free(p);
            return sq_error_errno(err, os_errno, "starting a thread");
        }
        if (os_errno)
            break;
        p->thread_count++;
    }
    *ret = p;
    return 0;
}

int sq_publisher_finish(struct sq_publisher *p, struct squall_error *err)
{
    if (!p)
        return 0;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    int status = p->status;
    if (status && err)
        *err = p->failure;
    publisher_free(p);
    return status;
}

/* ---- what callers do ------------------------------------------------------------------------------------------------------------- */

int sq_publisher_slot(struct sq_publisher *p, struct sq_slot **ret, struct squall_error *err)
{
    pthread_mutex_lock(&p->lock);
    while (!p->free_slots && !p->status)
        pthread_cond_wait(&p->room, &p->lock);
    int status = p->status;
    if (status && err)
        *err = p->failure;
    if (!status) {
        *ret = p->free_slots;
        p->free_slots = p->free_slots->next;
    }
    pthread_mutex_unlock(&p->lock);
    return status;
}

void sq_publisher_return(struct sq_publisher *p, struct sq_slot *slot)
{
    pthread_mutex_lock(&p->lock);
    set_free(p, slot);
    pthread_mutex_unlock(&p->lock);
}

int sq_publisher_begin(struct sq_publisher *p, struct sq_record_unit *record, struct sq_pending **ret, struct squall_error *err)
{
    struct sq_pending *pending = sq_alloc(1, sizeof *pending);
    if (!pending)
        return sq_error_memory(err, sizeof *pending);
    pthread_mutex_lock(&p->lock);
    *pending = (struct sq_pending){p->pendings, record, 1};
    p->pendings = pending;
    pthread_mutex_unlock(&p->lock);
    *ret = pending;
    return 0;
}

void sq_publisher_put(struct sq_publisher *p, struct sq_pending *pending, size_t array, uint64_t chunk, struct sq_slot *slot,
                      size_t size_bytes)
{
    slot->pending = pending;
    slot->array = array;
    slot->chunk = chunk;
    slot->size_bytes = size_bytes;
    slot->next = NULL;
    pthread_mutex_lock(&p->lock);
    pending->open++;
    *p->last = slot;
    p->last = &slot->next;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

void sq_publisher_seal(struct sq_publisher *p, struct sq_pending *pending)
{
    pthread_mutex_lock(&p->lock);
    close_one(p, pending);
    pthread_mutex_unlock(&p->lock);
}
