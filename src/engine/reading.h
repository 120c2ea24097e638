/*
 * One read and its chunks on their way, for the files that make it: read.c (which chunks, on which threads), chunk_read.c (a chunk), and
 * shard_read.c (the chunks of a shard).
 */
#ifndef SQ_ENGINE_READING_H
#define SQ_ENGINE_READING_H

#include "engine/array.h"
#include "engine/chunk_cache.h"
#include "engine/plan.h"
#include "engine/scatter.h"
#include "engine/worker.h"

/* Decoding less than this is sooner done than another thread is awake. */
enum { SQ_BYTES_WORTH_A_THREAD = 256 << 10 };

struct sq_reading {
    struct squall_array *array;
    struct sq_plan plan; /* over chunks that lie for themselves, or shards */
    uint8_t *dst;
    int64_t strides[SQUALL_RANK_MAX]; /* of dst */
    size_t element_bytes;             /* in memory */
    uint64_t memory_bytes;            /* that one worker's buffers may take */
    struct sq_worker **workers;       /* one for each thread */
    enum sq_scatter_target target;
    unsigned inner_threads; /* that may work on one item */
    bool timed;
    bool *done; /* of each item of elements with variable length: it is in the destination, and the caller's. Else NULL */
};

/* One chunk on its way: where its bytes come from, which box of it is wanted and where that goes. */
struct sq_passage {
    const struct sq_reading *reading;
    struct sq_worker *worker;
    struct sq_plan_item item;
    struct sq_location where;
    struct sq_file_identity file;     /* of where.path or where.source, once it is open */
    bool has_identity;                /* file and where.offset say which bytes these are */
    int fd;                           /* of where.path */
    const void *stored;               /* what is stored, where opening it brought it into memory: the worker's */
    struct sq_source *inflated;       /* the same as a source: where.source */
    struct sq_cache_key member;       /* of what was inflated */
    const void *kept_member;          /* pinned in the cache; NULL: it is in the worker's memory */
    bool keep_member;                 /* from there into the cache when the passage is closed */
    int64_t strides[SQUALL_RANK_MAX]; /* bytes between selected elements of the chunk */
    size_t offset;                    /* of the first selected element in the chunk, bytes */
    size_t chunk_bytes;               /* of the whole chunk in memory */
    size_t box_bytes;                 /* of the selected elements */
    uint8_t *to;                      /* where that goes */
    bool whole;                       /* the box is the chunk */
    bool one_run;                     /* the box is one run of bytes in the destination */
    unsigned threads;                 /* for the decoder */
};

/* For p->item, whose box goes to the destination at `to`. SQUALL_ENOMEM: such a chunk cannot be held in memory. */
int sq_passage_init(struct sq_passage *p, const struct sq_reading *r, uint8_t *to, struct sq_worker *worker,
                    struct squall_error *err) SQUALL_CHECK;
/*
 * Open the chunk's (or shard's) own file, where it has one, and find its size; inflate it, where a zip file holds it deflated. Or find
 * that it is missing: where.state says so. Whatever comes of it: sq_passage_close.
 */
int sq_passage_open(struct sq_passage *p, struct squall_error *err) SQUALL_CHECK;
void sq_passage_close(struct sq_passage *p);
/* size_bytes of what is stored at p->where, from its byte `at` on. */
int sq_passage_fetch(const struct sq_passage *p, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/*
 * What is open, or missing, or inline: read it into the destination. stored: its bytes, where they are in memory; else NULL. On failure there are no
 * elements of variable length in the destination; but it is not cleared: what a hostile array claims to have is never touched.
 */
int sq_passage_read(struct sq_passage *p, const void *stored, struct squall_error *err) SQUALL_CHECK;
const char *sq_passage_source_name(const struct sq_passage *p);

/* The chunks of a shard; shard: the passage of the whole shard, open. */
int sq_shard_read(struct sq_passage *shard, struct squall_error *err) SQUALL_CHECK;

/* Free the elements of variable length of an item that has been read, whose box goes to the destination at `to`. */
void sq_reading_free_item(const struct sq_reading *r, size_t index, uint8_t *to);

/* Before and behind a timed piece of work. */
double sq_reading_clock(const struct sq_reading *r);

#endif
