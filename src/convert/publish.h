/*
 * Encoded chunks → files, records, flags, on threads of their own: they wait for the disk, so that the threads that decode
 * and encode never do. A unit's record is written when all of its chunks are durable, its flags after the record.
 */
#ifndef SQ_CONVERT_PUBLISH_H
#define SQ_CONVERT_PUBLISH_H

#include "convert/journal.h"
#include "convert/layout.h"
#include "convert/staged.h"
#include "sys/queue.h"

struct sq_publisher;
struct sq_pending; /* a unit on its way */

/* A buffer for one encoded chunk. */
struct sq_slot {
    struct sq_queue_item item; /* first */
    uint8_t *bytes;
    size_t capacity;
    /* the publisher's own: */
    struct sq_pending *pending;
    size_t array, size_bytes;
    uint64_t chunk;
};

struct sq_publisher_setting {
    struct sq_staging store;
    size_t slot_count;
    /* From a publishing thread, one at a time: more bytes are durable; a unit is complete (its record; NULL: not yet). */
    void (*progress)(void *user, uint64_t bytes, const struct sq_record_unit *complete);
    void *user;
};

/* *ret: sq_publisher_finish. */
int sq_publisher_start(const struct sq_publisher_setting *setting, struct sq_publisher **ret, struct squall_error *err) SQUALL_CHECK;
/* Wait for a free buffer. The error is that of an earlier chunk or record that could not be written. */
int sq_publisher_slot(struct sq_publisher *p, struct sq_slot **ret, struct squall_error *err) SQUALL_CHECK;
void sq_publisher_return(struct sq_publisher *p, struct sq_slot *slot); /* unused */
/*
 * Begin a unit. The record is filled but for its chunks, each array with room for all of them; it and what it points at must
 * live until the publisher is finished. replaces: a unit that is stored (staged.h).
 */
int sq_publisher_begin(struct sq_publisher *p, struct sq_record_unit *record, bool replaces, struct sq_pending **ret,
                       struct squall_error *err) SQUALL_CHECK;
/* Take an encoded chunk; the slot is the publisher's again. From any thread. */
void sq_publisher_put(struct sq_publisher *p, struct sq_pending *pending, size_t array, uint64_t chunk, struct sq_slot *slot,
                      size_t size_bytes);
/* All chunks of the unit have been put; once they are durable, so become record and flags. */
void sq_publisher_seal(struct sq_publisher *p, struct sq_pending *pending);
/* Write out what was put, end the threads, free all. Units that were not sealed stay without a record. p may be NULL. */
int sq_publisher_finish(struct sq_publisher *p, struct squall_error *err) SQUALL_CHECK;

#endif
