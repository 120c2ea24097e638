/*
 * What the codecs share. A chain is bytes (or strings) in front and then stages, each from bytes to bytes: one operations
 * table and a few integers, which a table of options reads from metadata or from the command and writes again. A codec's file
 * therefore holds its options and its two directions and nothing else.
 */
#ifndef SQ_CODEC_CODEC_INTERNAL_H
#define SQ_CODEC_CODEC_INTERNAL_H

#include "base/text.h"
#include "codec/codec.h"
#include <libdeflate.h>
#include <stdbool.h>
#include <zstd.h>

enum { SQ_STAGE_OPTIONS_MAX = 6 };

/* One setting of a codec: a number within a range, or (where `words` is set) one of some words, or a truth (range 0 to 1). */
struct sq_stage_option {
    const char *name;
    const char *const *words; /* NULL-ended; the value is the word's index, which metadata may give too */
    int least, greatest, standard;
    bool truth;  /* true and false in metadata */
    bool hidden; /* ours or derived: not in the metadata that we write */
    bool told;   /* in the chain's text */
};

struct sq_stage {
    const struct sq_stage_ops *ops;
    int value[SQ_STAGE_OPTIONS_MAX];
};

/* decode: more comes out than there is room for. Not an error of its own: the chain knows what to make of it. */
enum { SQ_STAGE_NO_ROOM = 1 };

struct sq_stage_ops {
    const char *name;                      /* v2's id, and the command's name */
    const char *name_v3;                   /* in v3's metadata */
    const struct sq_stage_option *options; /* ended by one without name */
    size_t limit_bytes;                    /* the most that it encodes at once; 0: no limit */
    /* After the options have been read: what depends on the element (0: unknown) or on several of them. May be NULL. */
    void (*settle)(struct sq_stage *stage, unsigned type_bytes);
    /* src → at most capacity bytes at dst; 0, SQ_STAGE_NO_ROOM or SQUALL_ECORRUPT, … */
    int (*decode)(const struct sq_stage *stage, struct sq_codec_scratch *scratch, const uint8_t *src, size_t src_size, uint8_t *dst,
                  size_t capacity, size_t *ret_size, struct squall_error *err);
    /* Instead of decode, where what comes out lies within src. */
    int (*decode_view)(const struct sq_stage *stage, const uint8_t *src, size_t src_size, const uint8_t **ret, size_t *ret_size,
                       struct squall_error *err);
    /* What src says of the size that it decodes to; 0: nothing. A claim to start from, not to rely on. */
    size_t (*decoded_size)(const uint8_t *src, size_t src_size);
    size_t (*bound)(const struct sq_stage *stage, size_t src_size);
    int (*encode)(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                  uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err);
};

extern const struct sq_stage_ops sq_stage_blosc, sq_stage_crc32c, sq_stage_gzip, sq_stage_lz4, sq_stage_zlib, sq_stage_zstd;

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
    struct sq_codec_buffer strings;
    struct sq_codec_buffer whole;      /* a chunk of which a part is wanted */
    struct sq_codec_buffer block;      /* Blosc: a block, shuffled */
    struct sq_codec_buffer slots;      /* Blosc: blocks that wait for their place */
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

/* Copy with the bytes of each element of width 2, 4 or 8 in reverse order; src may be dst. */
void sq_bytes_swap(const uint8_t *src, uint8_t *dst, size_t size_bytes, unsigned width);

/* vlen-utf8's framing. decode: sizes are checked against the bytes before anything is allocated. */
int sq_vlen_utf8_decode(const uint8_t *src, size_t src_size, char **dst, size_t count, struct squall_error *err) SQUALL_CHECK;
size_t sq_vlen_utf8_encoded_size(const char *const *src, size_t count); /* SIZE_MAX: too long to be encoded */
void sq_vlen_utf8_encode(const char *const *src, size_t count, uint8_t *dst);

#endif
