/*
 * Codec chains: what turns a chunk's bytes in memory into its bytes on disk and back. A chain is bound once per array and
 * then immutable, shared by all threads; what a thread needs to work (zstd contexts, buffers) is in its scratch and reused.
 */
#ifndef SQ_CODEC_CODEC_H
#define SQ_CODEC_CODEC_H

#include "array/dtype.h"
#include "base/json.h"
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
    const void *fill;      /* the array's fill value, one element; copied. NULL: zero. Variable length: not needed */
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
 * chained by "+". "bytes" (or "vlen-utf8") is put in front. Errors: SQUALL_EINVAL naming the word and what is possible.
 */
int sq_codec_chain_parse(const char *spec, enum squall_type type, size_t chunk_bytes, struct sq_codec_chain **ret,
                         struct squall_error *err) SQUALL_CHECK;
void sq_codec_chain_free(struct sq_codec_chain *chain);

/* Zarr v3's "codecs" array for the chain (without our search=…); NULL: out of memory. The caller's. */
struct sq_json *sq_codec_chain_json_v3(const struct sq_codec_chain *chain);
/* "bytes + blosc(zstd, 5, shuffle)"; lives as long as the chain. */
const char *sq_codec_chain_text(const struct sq_codec_chain *chain);
/* What fixes the encoded bytes, search=… included: part of a layout id. Lives as long as the chain. */
const char *sq_codec_chain_identity(const struct sq_codec_chain *chain);
/* The largest chunk in memory that the chain can encode (Blosc: 2 GiB − 17), SIZE_MAX where there is no limit. */
size_t sq_codec_chain_limit_bytes(const struct sq_codec_chain *chain);
/* Is stored == in memory, so that a chunk can be read straight into place? */
int sq_codec_chain_is_plain(const struct sq_codec_chain *chain);

struct sq_codec_scratch *sq_codec_scratch_new(void); /* NULL: out of memory; for one thread at a time */
void sq_codec_scratch_free(struct sq_codec_scratch *scratch);

/* src → dst, which gets exactly dst_size bytes; anything else is SQUALL_ECORRUPT. src and dst do not overlap. */
int sq_codec_decode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const void *src, size_t src_size, void *dst,
                    size_t dst_size, struct squall_error *err) SQUALL_CHECK;

/* A chunk of variable-length strings: each of the `count` strings is malloc'ed and the caller's; nothing is on failure. */
int sq_codec_decode_strings(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const void *src, size_t src_size,
                            char **dst, size_t count, struct squall_error *err) SQUALL_CHECK;
int sq_codec_encode_strings(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, const char *const *src, size_t count,
                            void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err) SQUALL_CHECK;

/* At most this many bytes come out of encoding src_size bytes. */
size_t sq_codec_encode_bound(const struct sq_codec_chain *chain, size_t src_size);
/*
 * src → dst (capacity ≥ bound); *ret_size bytes. `threads` > 1 lets a codec that works in blocks (Blosc) spread them over
 * the pool; the bytes are the same for any number. scratch is the caller's; helpers use their own.
 */
int sq_codec_encode(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, const void *src,
                    size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err) SQUALL_CHECK;

#endif
