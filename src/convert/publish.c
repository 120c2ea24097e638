/*
 * See publish.h. Full slots go through a queue to the threads that write them, and come back empty through another; whoever writes the
 * last chunk of a sealed unit also writes its record and flags. The first failure is kept: what comes after it is dropped, and the next
 * call for a buffer returns it.
 */
#include "convert/publish.h"
#include "base/crc32c.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "convert/flags.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include "sys/mutex.h"
#include "sys/queue.h"

enum { WRITER_LIMIT = 4 };

struct sq_pending {
    struct sq_pending *next;
    struct sq_record_unit *record;
    char *staged;    /* the folder that its chunks are written into; NULL: the store */
    bool is_placing; /* a line may tell of what is staged, so that it stays */
    size_t open;     /* chunks put and not durable yet, and one more until it is sealed */
};

struct sq_publisher {
    struct sq_publisher_setting setting;
    struct sq_slot *slots;
    struct sq_queue *free_slots; /* the one used last first: its pages are in the cache */
    struct sq_queue *full_slots; /* as they came; its threads publish */
    struct sq_mutex lock;        /* of all below, and of what is pending */
    struct sq_pending *pendings; /* all of the run */
    int status;
    struct squall_error failure;
};

/* ---- what a thread does ---------------------------------------------------------------------------------------------------------- */

static int write_chunk(struct sq_publisher *p, const struct sq_slot *slot, struct squall_error *err)
{
    const struct sq_layout_array *a = &p->setting.store.layout->arrays[slot->array];
    struct sq_store into = p->setting.store.store;
    struct sq_record_unit *record = slot->pending->record;
    uint64_t index[SQ_LAYOUT_RANK_MAX];
    if (slot->pending->staged)
        into.folder = slot->pending->staged;
    sq_layout_chunk_index(a, record->unit, slot->chunk, index);
    SQ_TRY(sq_store_write_chunk(into, a->name, a->rank, index, slot->bytes, slot->size_bytes, err));
    uint32_t crc = sq_crc32c(0, slot->bytes, slot->size_bytes);
    record->arrays[slot->array].chunks[slot->chunk] = (struct sq_record_chunk){slot->size_bytes, crc};
    return 0;
}

static int complete(struct sq_publisher *p, struct sq_pending *pending, struct squall_error *err)
{
    const struct sq_record_unit *record = pending->record;
    const struct sq_layout *layout = p->setting.store.layout;
    uint64_t first = record->unit * layout->init_chunk;
    pending->is_placing = pending->staged != NULL;
    SQ_TRY(pending->staged ? sq_staged_replace(&p->setting.store, record, err)
                           : sq_journal_add_unit(p->setting.store.journal, record, err));
    SQ_CLEANUP_FREE struct sq_flag *flags = sq_alloc(record->init_count + 1, sizeof *flags);
    if (!flags)
        return sq_error_memory(err, record->init_count * sizeof *flags);
    for (size_t i = 0; i < record->init_count; i++)
        flags[i] = sq_layout_flag(layout->of_arrays, record, i);
    return sq_flags_set(p->setting.store.store, layout->flag_chunk, first, flags, record->init_count, err);
}

/* Lock held. */
static void keep_failure(struct sq_publisher *p, int status, const struct squall_error *err)
{
    if (p->status)
        return;
    p->status = status;
    p->failure = *err;
}

/* One of the unit's open ends is done. Lock held on entry and return, not while the record is written. */
static void close_one(struct sq_publisher *p, struct sq_pending *pending)
{
    if (--pending->open > 0 || p->status)
        return;
    struct squall_error err = SQUALL_ERROR_INIT;
    sq_mutex_unlock(&p->lock);
    int status = complete(p, pending, &err);
    sq_mutex_lock(&p->lock);
    if (status)
        keep_failure(p, status, &err);
    else
        p->setting.progress(p->setting.user, 0, pending->record);
}

static void publish(void *user, struct sq_queue_item *item)
{
    struct sq_publisher *p = user;
    struct sq_slot *slot = (struct sq_slot *)item;
    struct sq_pending *pending = slot->pending;
    sq_mutex_lock(&p->lock);
    if (!p->status) {
        struct squall_error err = SQUALL_ERROR_INIT;
        sq_mutex_unlock(&p->lock);
        int status = write_chunk(p, slot, &err);
        sq_mutex_lock(&p->lock);
        if (status)
            keep_failure(p, status, &err);
        else
            p->setting.progress(p->setting.user, slot->size_bytes, NULL);
    }
    sq_queue_put_first(p->free_slots, item);
    close_one(p, pending);
    sq_mutex_unlock(&p->lock);
}

/* ---- made and ended -------------------------------------------------------------------------------------------------------------- */

static void publisher_free(struct sq_publisher *p)
{
    sq_queue_free(p->full_slots); /* what was put is written first */
    sq_queue_free(p->free_slots);
    for (size_t i = 0; p->slots && i < p->setting.slot_count; i++)
        sq_pages_free(p->slots[i].bytes, p->slots[i].capacity);
    sq_free(p->slots);
    while (p->pendings) {
        struct sq_pending *next = p->pendings->next;
        if (p->pendings->staged && !p->pendings->is_placing) {
            int stays = sq_tree_remove(p->pendings->staged, NULL); /* then the next run removes it */
            (void)stays;
        }
        sq_free(p->pendings->staged);
        sq_free(p->pendings);
        p->pendings = next;
    }
    sq_mutex_done(&p->lock);
    sq_free(p);
}

static int make_slots(struct sq_publisher *p, struct squall_error *err)
{
    size_t capacity = p->setting.store.layout->encoded_limit_bytes;
    p->slots = sq_alloc_zero(p->setting.slot_count, sizeof *p->slots);
    if (!p->slots)
        return sq_error_memory(err, p->setting.slot_count * sizeof *p->slots);
    for (size_t i = 0; i < p->setting.slot_count; i++) {
        struct sq_slot *slot = &p->slots[i];
        if (!(slot->bytes = sq_pages_alloc(capacity)))
            return sq_error_memory(err, capacity);
        slot->capacity = capacity;
        sq_queue_put(p->free_slots, &slot->item);
    }
    return 0;
}

int sq_publisher_start(const struct sq_publisher_setting *setting, struct sq_publisher **ret, struct squall_error *err)
{
    struct sq_publisher *p = sq_alloc_zero(1, sizeof *p);
    if (!p)
        return sq_error_memory(err, sizeof *p);
    p->setting = *setting;
    sq_mutex_init(&p->lock);
    unsigned threads = setting->slot_count < WRITER_LIMIT ? (unsigned)setting->slot_count : WRITER_LIMIT;
    int status = sq_queue_new(&p->free_slots, err);
    if (!status)
        status = sq_queue_new(&p->full_slots, err);
    if (!status)
        status = make_slots(p, err);
    if (!status)
        status = sq_queue_start(p->full_slots, threads, publish, p, err);
    if (status) {
        publisher_free(p);
        return status;
    }
    *ret = p;
    return 0;
}

int sq_publisher_finish(struct sq_publisher *p, struct squall_error *err)
{
    if (!p)
        return 0;
    sq_queue_free(p->full_slots);
    p->full_slots = NULL;
    int status = p->status;
    if (status && err)
        *err = p->failure;
    publisher_free(p);
    return status;
}

/* ---- what callers do ------------------------------------------------------------------------------------------------------------- */

int sq_publisher_slot(struct sq_publisher *p, struct sq_slot **ret, struct squall_error *err)
{
    struct sq_queue_item *item = sq_queue_take(p->free_slots); /* one comes after a failure too */
    sq_mutex_lock(&p->lock);
    int status = p->status;
    if (status && err)
        *err = p->failure;
    sq_mutex_unlock(&p->lock);
    if (status)
        sq_queue_put_first(p->free_slots, item);
    else
        *ret = (struct sq_slot *)item;
    return status;
}

void sq_publisher_return(struct sq_publisher *p, struct sq_slot *slot)
{
    sq_queue_put_first(p->free_slots, &slot->item);
}

int sq_publisher_begin(struct sq_publisher *p, struct sq_record_unit *record, bool replaces, struct sq_pending **ret,
                       struct squall_error *err)
{
    struct sq_pending *pending = sq_alloc_zero(1, sizeof *pending);
    if (!pending)
        return sq_error_memory(err, sizeof *pending);
    if (replaces && !(pending->staged = sq_staged_folder(p->setting.store.records_folder, record->unit))) {
        sq_free(pending);
        return sq_error_memory(err, sizeof *pending);
    }
    pending->record = record;
    pending->open = 1;
    sq_mutex_lock(&p->lock);
    pending->next = p->pendings;
    p->pendings = pending;
    sq_mutex_unlock(&p->lock);
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
    sq_mutex_lock(&p->lock);
    pending->open++;
    sq_mutex_unlock(&p->lock);
    sq_queue_put(p->full_slots, &slot->item);
}

void sq_publisher_seal(struct sq_publisher *p, struct sq_pending *pending)
{
    sq_mutex_lock(&p->lock);
    close_one(p, pending);
    sq_mutex_unlock(&p->lock);
}
