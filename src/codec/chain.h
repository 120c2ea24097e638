/* A bound chain, for the files that make one and work it. */
#ifndef SQ_CODEC_CHAIN_H
#define SQ_CODEC_CHAIN_H

#include "codec/codec_internal.h"

enum { SQ_CHAIN_STAGES_MAX = 16 };

struct sq_codec_chain {
    struct sq_dtype dtype;       /* of the array's elements */
    size_t chunk_bytes;          /* in memory; 0: bound to no shape */
    bool big_endian;             /* as stored */
    unsigned stored_order_bytes; /* of what is stored: 1 where it has no byte order */
    bool shaped;                 /* a stage works on this shape only, so that chunk_bytes is what must go in */
    unsigned stage_count;
    struct sq_stage stages[SQ_CHAIN_STAGES_MAX];
    char *text, *identity;
};

/* Every codec that there is; ended by NULL. */
extern const struct sq_stage_ops *const sq_all_stages[];

/* Making a chain, step by step. *ret: sq_codec_chain_free. */
struct sq_codec_chain *sq_chain_new(const struct sq_dtype *dtype, struct squall_error *err);
int sq_chain_add(struct sq_codec_chain *chain, const struct sq_stage_ops *ops, struct sq_stage **ret,
                 struct squall_error *err) SQUALL_CHECK;
/* The stage's own part in it, after its options have been read; *array becomes what goes into the next. */
int sq_chain_bind(struct sq_codec_chain *chain, struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array,
                  struct squall_error *err) SQUALL_CHECK;
/* Give the chain its names; with it the chain is complete. */
int sq_chain_finish(struct sq_codec_chain *chain, struct squall_error *err) SQUALL_CHECK;

/* The index of a word, or false. */
bool sq_option_word(const struct sq_stage_option *option, const char *word, int *ret);

/*
 * The size that comes out of encoding size_bytes by the first `count` stages: at most, or (*ret_fixed) just that. SIZE_MAX where it
 * depends on the data.
 */
size_t sq_chain_bound(const struct sq_codec_chain *chain, unsigned count, size_t size_bytes, bool *ret_fixed);

static inline void sq_chain_cleanup(struct sq_codec_chain **chain)
{
    sq_codec_chain_free(*chain);
}
#define SQ_CLEANUP_CHAIN __attribute__((cleanup(sq_chain_cleanup)))

#endif
