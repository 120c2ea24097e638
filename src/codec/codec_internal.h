/*
 * What the codecs share. A chain is a list of stages: from array to array, one from array to bytes, from bytes to bytes. Each is one
 * operations table and a few integers, which a table of options reads from metadata or from the command and writes again; what
 * does not go into integers a stage reads itself when it is bound. A codec's file therefore holds its options and its two
 * directions and nothing else.
 */
#ifndef SQ_CODEC_CODEC_INTERNAL_H
#define SQ_CODEC_CODEC_INTERNAL_H

#include "base/text.h"
#include "codec/codec.h"
#include <libdeflate.h>
#include <stdbool.h>
#include <zstd.h>

enum { SQ_STAGE_OPTIONS_MAX = 6 }; /* what a stage derives from them included */

/* One setting of a codec: a number within a range, or (where `words` is set) one of some words, or a truth (range 0 to 1). */
struct sq_stage_option {
    const char *name;
    const char *const *words; /* NULL-ended; the value is the word's index, which metadata may give too */
    int least, greatest, standard;
    bool truth;    /* true and false in metadata */
    bool hidden;   /* ours or derived: not in the metadata that we write */
    bool told;     /* in the chain's text */
    bool required; /* metadata must say it */
};

/* An array between two stages: what one makes and the next takes. Elements are in the machine's order. */
struct sq_stage_array {
    struct sq_dtype dtype;
    unsigned rank;
    uint64_t shape[SQUALL_RANK_MAX];
    const void *fill; /* one element; NULL: zero, or empty */
    bool big_endian;  /* how the metadata says that elements are stored */
    bool from_numpy;  /* v2: codecs are numcodecs', which know nothing but the buffer that they get */
};

struct sq_stage {
    const struct sq_stage_ops *ops;
    int value[SQ_STAGE_OPTIONS_MAX];
    void *state;                   /* what bind made; ops->done frees it */
    struct sq_json *configuration; /* as the metadata gave it, where options are not all of it; NULL: they are */
    bool decode_copies;            /* what comes out of decode (encode) is what went in: nothing to do */
    bool encode_copies;
    bool resizes; /* elements change their size: decode_in_place does not serve */
};

/* decode: more comes out than there is room for. Not an error of its own: the chain knows what to make of it. */
enum { SQ_STAGE_NO_ROOM = 1 };

enum sq_stage_kind { SQ_STAGE_BYTES, SQ_STAGE_ARRAY, SQ_STAGE_TO_BYTES };

struct sq_stage_ops {
    const char *name;    /* v2's id, and the command's name */
    const char *name_v3; /* in v3's metadata */
    enum sq_stage_kind kind;
    bool only_v3;                          /* v2 has none, or another one of this name */
    bool keeps_configuration;              /* options are not all that there is to say */
    bool only_encodes;                     /* decoding does nothing, so that readers need not be told of it */
    bool shaped;                           /* works on chunks of the shape that it is bound to, no others */
    bool fixed;                            /* bound is the size that comes out, for any data */
    const struct sq_stage_option *options; /* ended by one without name; NULL: none */
    size_t limit_bytes;                    /* the most that it encodes at once; 0: no limit */
    /*
     * After the options have been read: what depends on the array or on more than options. configuration: the metadata's; NULL: from the
     * command. A stage that makes another array says in *array which. May be NULL.
     */
    int (*bind)(struct sq_stage *stage, const struct sq_json *configuration, struct sq_stage_array *array, struct squall_error *err);
    void (*done)(struct sq_stage *stage);
    /* In place of options, for the chain's text; NULL: the options that are `told` */
    void (*tell)(const struct sq_stage *stage, struct sq_text *out);
    /* src → at most capacity bytes at dst; 0, SQ_STAGE_NO_ROOM or SQUALL_ECORRUPT, … */
    int (*decode)(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err);
    /* Instead of decode, where what comes out lies within src. */
    int (*decode_view)(const struct sq_stage *stage, const uint8_t *src, size_t src_size, const uint8_t **ret, size_t *ret_size,
                       struct squall_error *err);
    /* Besides decode, where as many bytes come out as go in and each element stays where it is. May be NULL, and refuse nothing. */
    void (*decode_in_place)(const struct sq_stage *stage, uint8_t *data, size_t size);
    /* What src says of the size that it decodes to; 0: nothing. A claim to start from, not to rely on. */
    size_t (*decoded_size)(const uint8_t *src, size_t src_size);
    /* At most this much comes out of encoding src_size bytes; SIZE_MAX: depends on the data, see measure. */
    size_t (*bound)(const struct sq_stage *stage, size_t src_size);
    size_t (*measure)(const struct sq_stage *stage, const uint8_t *src, size_t src_size); /* bound of these data */
    int (*encode)(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err);
    /* See sq_codec_decode_range; NULL: only the whole, from memory. */
    int (*decode_range)(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads,
                        const struct sq_codec_input *input, const struct sq_codec_range *range, uint8_t *dst,
                        struct sq_shuffle_layout *ret_layout, struct squall_error *err);
};

/* Of a codec whose settings change what values mean: one that is not known is refused. known: ended by NULL. */
int sq_stage_check_settings(const struct sq_stage *stage, const struct sq_json *settings, const char *const *known,
                            struct squall_error *err) SQUALL_CHECK;

/* The bound of a stage that neither adds nor drops bytes. */
size_t sq_stage_same_size(const struct sq_stage *stage, size_t src_size);

extern const struct sq_stage_ops sq_stage_adler32, sq_stage_astype, sq_stage_bitround, sq_stage_blosc, sq_stage_bytes, sq_stage_bz2,
    sq_stage_cast_value, sq_stage_crc32, sq_stage_crc32c, sq_stage_delta, sq_stage_fixedscaleoffset, sq_stage_fletcher32, sq_stage_gzip,
    sq_stage_lz4, sq_stage_packbits, sq_stage_packbits_numcodecs, sq_stage_quantize, sq_stage_scale_offset, sq_stage_sharding,
    sq_stage_shuffle, sq_stage_transpose, sq_stage_vlen_bytes, sq_stage_vlen_utf8, sq_stage_zlib, sq_stage_zstd;

/* A buffer that only grows; what it held is lost when it does. */
struct sq_codec_buffer {
    uint8_t *data;
    size_t capacity;
};

struct sq_codec_scratch {
    ZSTD_CCtx *zstd_encoder;
    ZSTD_DCtx *zstd_decoder;
    struct libdeflate_compressor *deflater;
    int deflater_level;
    struct libdeflate_decompressor *inflater;
    struct sq_codec_buffer between[2]; /* what goes from one stage to the next */
    struct sq_codec_buffer whole;      /* a chunk of which a part is wanted */
    struct sq_codec_buffer block;      /* Blosc: a block, shuffled. Shards: an inner chunk */
    struct sq_codec_buffer slots;      /* Blosc: blocks that wait for their place. Shards: inner chunks that do */
    struct sq_codec_buffer index;      /* where inner chunks, or blocks, lie */
    struct sq_codec_buffer stored;     /* Blosc: a block, as it was fetched */
    struct sq_codec_scratch *inner;    /* for the chain within a stage: shards */
    struct sq_codec_scratch **helpers; /* for the other threads of one call */
    size_t helper_count, helper_capacity;
};

int sq_codec_reserve(struct sq_codec_buffer *buffer, size_t size_bytes, struct squall_error *err) SQUALL_CHECK;
/* scratch itself for worker 0, a helper's of its own for the others, made when first asked for: sq_codec_helpers_ready. */
int sq_codec_helpers_ready(struct sq_codec_scratch *scratch, unsigned threads, struct squall_error *err) SQUALL_CHECK;
struct sq_codec_scratch *sq_codec_worker_scratch(struct sq_codec_scratch *scratch, unsigned worker);

/* The scratch's tools, made when first asked for; NULL: out of memory, told in err. */
ZSTD_CCtx *sq_codec_zstd_encoder(struct sq_codec_scratch *scratch, struct squall_error *err);
ZSTD_DCtx *sq_codec_zstd_decoder(struct sq_codec_scratch *scratch, struct squall_error *err);
struct libdeflate_decompressor *sq_codec_inflater(struct sq_codec_scratch *scratch, struct squall_error *err);
struct libdeflate_compressor *sq_codec_deflater(struct sq_codec_scratch *scratch, int level, struct squall_error *err);
struct sq_codec_scratch *sq_codec_inner_scratch(struct sq_codec_scratch *scratch, struct squall_error *err);

/* v2's order F, which no codec of the metadata says. */
int sq_transpose_bind_reversed(struct sq_stage *stage, struct sq_stage_array *array, struct squall_error *err) SQUALL_CHECK;

/* Numbers in stored form are little-endian. */
static inline uint32_t sq_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void sq_put_u32(uint8_t *p, size_t value)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

#endif
