/*
 * What makes squall verify: verify.c (by the records), verify_decode.c (by decoding), verify_findings.c (what was found, and the report), beside
 * verify_metadata.h and verify_note.h.
 */
#ifndef SQ_CONVERT_VERIFY_INTERNAL_H
#define SQ_CONVERT_VERIFY_INTERNAL_H

#include "engine/array.h"
#include "squall/convert.h"
#include "sys/mutex.h"

struct sq_finding {
    size_t order; /* of the chunk that it is about */
    char *line;
};

struct sq_findings {
    struct sq_finding *items;
    size_t count, capacity; /* those that are listed */
    uint64_t total;
};

struct sq_verify {
    const struct squall_context *ctx;
    struct squall_convert_events events;
    const char *store;
    struct sq_mutex lock; /* around all below, and the events */
    struct sq_findings bad, absent, unchecked;
    uint64_t chunks_done, chunk_count, bytes;
    uint64_t noted;   /* units */
    char *not_noted;  /* why not all damage is noted; NULL: it is */
    bool is_deferred; /* what is found may be the work of a run: it is told when that is out of the question */
    uint64_t *units;  /* of a further look: those in question, ascending; NULL: all */
    size_t unit_count;
    bool at_the_rest; /* behind the chunks that the records tell of: a few small ones, of which progress is not told */
};

/* ---- verify_findings.c */

/* line is taken; NULL: out of memory. */
int sq_verify_add(struct sq_verify *v, struct sq_findings *list, size_t order, char *line, struct squall_error *err) SQUALL_CHECK;
/* Of a look at the store that was deferred: what was found is dropped, or told. */
void sq_verify_forget(struct sq_verify *v);
void sq_verify_tell(const struct sq_verify *v);
void sq_verify_chunk_done(struct sq_verify *v, uint64_t bytes);
/* recorded: the chunks were compared with records. *ret_text, *ret_json: for the caller to free. */
int sq_verify_write_report(struct sq_verify *v, bool recorded, char **ret_text, char **ret_json, struct squall_error *err) SQUALL_CHECK;
void sq_verify_done(struct sq_verify *v);

/* ---- verify_decode.c */

/* Of one array. complete: it has every chunk; one that is not there is missing then, and not left out as fill. *ret_chunks: how many it has. */
int sq_verify_decode_array(struct sq_verify *v, squall_array *a, bool complete, size_t first_order, size_t *ret_chunks,
                           struct squall_error *err) SQUALL_CHECK;
/* A path without records, every array of it. */
int sq_verify_by_decoding(squall_context *ctx, struct sq_verify *v, struct squall_error *err) SQUALL_CHECK;

#endif
