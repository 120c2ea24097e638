/*
 * The Blosc 1 chunk: a header of 16 bytes, where each block starts, the blocks. A block is shuffled as a whole and then compressed
 * as one stream, or as one stream for each byte of an element ("split"); a stream is its length in four bytes and its
 * bytes, and one that is as long as what it stands for is stored, not compressed. All numbers are little-endian.
 */
#ifndef SQ_CODEC_BLOSC_H
#define SQ_CODEC_BLOSC_H

#include "codec/codec_internal.h"

enum {
    SQ_BLOSC_HEADER_BYTES = 16,
    SQ_BLOSC_VERSION = 2,
    SQ_BLOSC_FORMAT_VERSION = 1, /* of each compressor's own */
    SQ_BLOSC_CHUNK_BYTES_MAX = INT32_MAX - SQ_BLOSC_HEADER_BYTES,
};

enum sq_blosc_flag {
    SQ_BLOSC_SHUFFLED = 0x01,
    SQ_BLOSC_COPIED = 0x02, /* no blocks: the data as they are follow the header */
    SQ_BLOSC_BITSHUFFLED = 0x04,
    SQ_BLOSC_NOT_SPLIT = 0x10,
};

/* In the flags' upper three bits. LZ4 and LZ4HC share a format. */
enum sq_blosc_format { SQ_BLOSC_BLOSCLZ, SQ_BLOSC_LZ4, SQ_BLOSC_SNAPPY, SQ_BLOSC_ZLIB, SQ_BLOSC_ZSTD };

enum sq_blosc_option {
    SQ_BLOSC_OPTION_TYPESIZE,
    SQ_BLOSC_OPTION_CNAME,
    SQ_BLOSC_OPTION_CLEVEL,
    SQ_BLOSC_OPTION_SHUFFLE,
    SQ_BLOSC_OPTION_BLOCKSIZE,
    SQ_BLOSC_OPTION_SEARCH,
};
enum sq_blosc_cname { SQ_CNAME_ZSTD, SQ_CNAME_LZ4, SQ_CNAME_LZ4HC, SQ_CNAME_ZLIB, SQ_CNAME_BLOSCLZ, SQ_CNAME_SNAPPY };
enum { SQ_SHUFFLE_AUTO = -1, SQ_SHUFFLE_NONE, SQ_SHUFFLE_BYTES, SQ_SHUFFLE_BITS };
enum { SQ_SEARCH_FULL, SQ_SEARCH_GREEDY };

int sq_blosc_encode(const struct sq_stage *stage, struct sq_codec_scratch *scratch, unsigned threads, const uint8_t *src, size_t src_size,
                    uint8_t *dst, size_t capacity, size_t *ret_size, struct squall_error *err);
/* One plane (or a whole block) under search=greedy → its size, 0 where it does not compress below capacity. */
size_t sq_blosc_greedy(ZSTD_CCtx *encoder, const uint8_t *src, size_t src_size, uint8_t *dst, size_t capacity);

#endif
