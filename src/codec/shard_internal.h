/* What the files shard*.c share: one binds the stage and makes chains of it, one knows the index, one (shard.c) whole shards. */
#ifndef SQ_CODEC_SHARD_INTERNAL_H
#define SQ_CODEC_SHARD_INTERNAL_H

#include "codec/chain.h"

struct sq_sharding {
    struct sq_codec_shard shard; /* first, so that what the engine holds is this */
    struct sq_codec_chain *inner, *index;
    struct sq_stage_array array; /* the shard's */
    void *fill;                  /* one element; NULL: zero, or empty */
    size_t inner_bytes;          /* an inner chunk in memory */
    /* An inner chunk in the shard is `runs` pieces of run_bytes; dimensions below run_rank lead from one to the next. */
    unsigned run_rank;
    size_t runs, run_bytes;
    size_t stride[SQUALL_RANK_MAX]; /* bytes between neighbours in the shard */
};

static inline bool sq_sharding_is_variable(const struct sq_sharding *s)
{
    return sq_type_is_variable(s->array.dtype.type);
}

/* shard_bind.c, for the stage's table */
extern const struct sq_stage_option sq_sharding_options[];
int sq_sharding_bind(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err);
void sq_sharding_done(struct sq_stage *stage);
void sq_sharding_tell(const struct sq_stage *stage, struct sq_text *out);

#endif
