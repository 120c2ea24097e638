/* A bound chain, for the two files that make one and work it. */
#ifndef SQ_CODEC_CHAIN_H
#define SQ_CODEC_CHAIN_H

#include "codec/codec_internal.h"

enum { SQ_CHAIN_STAGES_MAX = 8 };

struct sq_codec_chain {
    enum squall_type type;
    bool strings;        /* vlen-utf8 in front */
    bool big_endian;     /* as stored */
    unsigned swap_width; /* 0: stored elements are in the machine's order, else an element's bytes */
    unsigned stage_count;
    struct sq_stage stages[SQ_CHAIN_STAGES_MAX];
    char *text, *identity;
};

#endif
