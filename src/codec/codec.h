/*
 * Codec chains: what turns a chunk's bytes in memory into its bytes on disk and back. A chain is bound once per array and
 * then immutable, shared by all threads; what a thread needs to work (zstd contexts, buffers) is in its scratch and reused.
 */
#ifndef SQ_CODEC_CODEC_H
#define SQ_CODEC_CODEC_H

#include "array/dtype.h"
#include "base/json.h"
#include "codec/shuffle.h"
#include "squall/array.h"
#include <stddef.h>
#include <stdint.h>

struct sq_codec_chain;
struct sq_codec_scratch;

/* What the converter encodes with where no codec is asked for. */
#define SQ_CODEC_DEFAULT_SPEC "blosc:cname=zstd,clevel=5,shuffle=shuffle,search=greedy"

/* What a chain encodes: whole chunks of an array, in memory. */
struct sq_codec_chunk {
    struct sq_dtype dtype;
    unsigned rank;
    const uint64_t *shape; /* rank lengths, ≥ 1; copied */
    const void *fill;      /* the array's fill value, one element; copied. NULL: zero, or empty. Variable length: of what stands for it */
    bool big_endian;       /* v2's ">" types; v3's "bytes" codec says it itself */
    bool column_major;     /* v2's order F */
};

/*
 * Bind. Errors: SQUALL_EUNSUPPORTED "unsupported codec NAME" and SQUALL_ECORRUPT for a configuration that makes no sense.
 * *ret: sq_codec_chain_free.
 */
int sq_codec_chain_bind_v3(const struct sq_json *codecs, const struct sq_codec_chunk *chunk, struct sq_codec_chain **ret,
                           struct squall_error *err) SQUALL_CHECK;
int sq_codec_chain_bind_v2(const struct sq_json *filters, const struct sq_json *compressor, const struct sq_codec_chunk *chunk,
                           struct sq_codec_chain **ret, struct squall_error *err) SQUALL_CHECK;
/*
 * From the command's --codec: "blosc:cname=zstd,clevel=5,shuffle=shuffle,search=greedy", "zstd:level=3", "gzip:level=5", "none",
 * chained by "+"; "bitround:keepbits=9" before them. "bytes" (or "vlen-utf8") is put in front of what works on bytes.
 * fill: an element that bitround leaves as it is; NULL: none. Errors: SQUALL_EINVAL naming the word and what is possible.
 */
int sq_codec_chain_parse(const char *spec, enum squall_type type, const void *fill, struct sq_codec_chain **ret,
                         struct squall_error *err) SQUALL_CHECK;
void sq_codec_chain_free(struct sq_codec_chain *chain);

/*
 * Chunks of such a chain, as shards are: cut into inner ones, each encoded by `inner`, with an index at the end. inner is taken, and freed
 * on failure, too. *ret: sq_codec_chain_free.
 *
 * shard        what the new chain encodes
 * inner_shape  rank lengths, each of which divides the shard's
 */
int sq_codec_chain_shards(struct sq_codec_chain *inner, const struct sq_codec_chunk *shard, const uint64_t *inner_shape,
                          struct sq_codec_chain **ret, struct squall_error *err) SQUALL_CHECK;
/*
 * What the metadata say of shards, sharding_indexed's configuration. codecs and index_codecs (NULL: the standard's) are taken. NULL: out of
 * memory. The caller's.
 */
struct sq_json *sq_codec_shard_configuration(unsigned rank, const uint64_t *inner_shape, struct sq_json *codecs,
                                             struct sq_json *index_codecs, bool index_at_start);
/*
 * Zarr v3's "codecs" array for the chain (without our search=…); NULL: out of memory. The caller's.
 * for_reading: without codecs whose decoding does nothing (bitround), which not every reader knows and none needs.
 */
struct sq_json *sq_codec_chain_json_v3(const struct sq_codec_chain *chain, bool for_reading);
/* The bits that bitround leaves of a mantissa; -1: the chain does not round. */
int sq_codec_chain_keepbits(const struct sq_codec_chain *chain);
/* "bytes + blosc(zstd, 5, shuffle)"; lives as long as the chain. */
const char *sq_codec_chain_text(const struct sq_codec_chain *chain);
/* What fixes the encoded bytes, search=… included: part of a layout id. Lives as long as the chain. */
const char *sq_codec_chain_identity(const struct sq_codec_chain *chain);
/* The largest chunk in memory that the chain can encode (Blosc: 2 GiB − 17), SIZE_MAX where there is no limit. */
size_t sq_codec_chain_limit_bytes(const struct sq_codec_chain *chain);
/* Is stored == in memory, so that a chunk can be read straight into place? */
int sq_codec_chain_is_plain(const struct sq_codec_chain *chain);

/*
 * A chunk that holds smaller ones, each encoded by `inner` and found by an index: sharding_indexed. Where it is all that a chain
 * does, inner chunks are chunks like others at byte ranges of the stored one; else such a chunk can only be decoded as a whole.
 */
struct sq_codec_shard {
    unsigned rank;
    uint64_t inner_shape[SQUALL_RANK_MAX];
    uint64_t inner_count[SQUALL_RANK_MAX]; /* along each dimension */
    size_t inner_total;
    bool index_at_start; /* of the stored shard; else at its end */
    size_t index_bytes;  /* stored */
    const struct sq_codec_chain *inner;
};

/* NULL: not sharded, or wrapped in other codecs. Lives as long as the chain. */
const struct sq_codec_shard *sq_codec_chain_shard(const struct sq_codec_chain *chain);
/*
 * A shard's stored index → where its inner chunks lie, in C order.
 *
 * stored       index_bytes bytes
 * shard_bytes  the whole shard's; every entry is checked against it
 * ret          [2 * inner_total]: offset in the shard and size; both UINT64_MAX: the inner chunk is all fill value
 */
int sq_codec_shard_index(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const void *stored, uint64_t shard_bytes,
                         uint64_t *ret, struct squall_error *err) SQUALL_CHECK;
/* The way back: entries as above → index_bytes bytes at dst. */
int sq_codec_shard_index_encode(const struct sq_codec_shard *shard, struct sq_codec_scratch *scratch, const uint64_t *entries, void *dst,
                                struct squall_error *err) SQUALL_CHECK;

struct sq_codec_scratch *sq_codec_scratch_new(void); /* NULL: out of memory; for one thread at a time */
void sq_codec_scratch_free(struct sq_codec_scratch *scratch);

/*
 * src → dst, which gets exactly dst_size bytes; anything else is SQUALL_ECORRUPT. src and dst do not overlap. `threads` > 1
 * lets a codec that works in blocks (Blosc, shards) spread them over the pool. Of variable length (struct squall_bytes) what each
 * element points at is malloc'ed and the caller's; nothing is on failure.
 */
int sq_codec_decode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_size, struct squall_error *err) SQUALL_CHECK;

/* What is stored of a chunk: in memory, or fetched part by part while it is decoded. */
struct sq_codec_input {
    size_t size_bytes;
    const uint8_t *bytes; /* where fetch is NULL; else several threads may call that at a time */
    int (*fetch)(void *user, uint64_t at, void *dst, size_t size_bytes, struct squall_error *err);
    void *user;
};

/* Which bytes of a decoded chunk are wanted. */
struct sq_codec_range {
    size_t chunk_bytes, from_bytes, count_bytes;
};

/* Can a part of a chunk be decoded for less than the whole, and from parts of what is stored? */
bool sq_codec_chain_has_range(const struct sq_codec_chain *chain);
/*
 * A range of a chunk. Of any chain, where the input is in memory; errors and threads as above.
 *
 * ret_layout  NULL, or (where the range is the whole chunk) that elements may stay shuffled at dst: *ret_layout says how they lie, and
 *             sq_unshuffle_part takes out what is wanted of them
 */
int sq_codec_decode_range(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads,
                          const struct sq_codec_input *input, const struct sq_codec_range *range, void *dst,
                          struct sq_shuffle_layout *ret_layout, struct squall_error *err) SQUALL_CHECK;

/* More is stored of no chunk, by whatever encoder, unless it is damaged; SIZE_MAX: not known. */
size_t sq_codec_stored_limit(const struct sq_codec_chain *chain);

/*
 * At most this many bytes come out of encoding src_size bytes. Variable length: src_size counts what vlen-utf8 and vlen-bytes make of
 * the elements, 4 bytes and for each element 4 and its own; shards of such elements: use the other one.
 */
size_t sq_codec_encode_bound(const struct sq_codec_chain *chain, size_t src_size);
/* The same for given elements of any type, src_size bytes in memory. */
size_t sq_codec_encode_bound_of(const struct sq_codec_chain *chain, const void *src, size_t src_size);
/*
 * src → dst (capacity ≥ bound); *ret_size bytes. `threads` > 1 lets a codec that works in blocks (Blosc) spread them over
 * the pool; the bytes are the same for any number. scratch is the caller's; helpers use their own.
 */
int sq_codec_encode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err) SQUALL_CHECK;

#endif
