/*
 * HDF5's filters as codecs (HDF5 File Format Specification, IV.A.2.l; the list of registered filters). A filter is a number and a few
 * 32-bit values from the file. Only decoding is there. Where the stored bytes are those of a codec of Zarr's, it is that codec.
 */
#ifndef SQ_CODEC_HDF5_FILTERS_H
#define SQ_CODEC_HDF5_FILTERS_H

#include "codec/codec.h"

struct sq_hdf5_filter {
    uint16_t id;
    const char *name; /* what the file calls it, or NULL: for messages */
    unsigned value_count;
    const uint32_t *values; /* copied */
};

/*
 * filters  in the order in which they encoded
 * chunk    big_endian: as the file's type has it; column_major is not looked at. An element as it is stored: types that hold more than a
 *          number or raw bytes are SQUALL_RAW of the file's size
 *
 * A filter that is not known, or whose values make no sense, does not fail here, since chunks may be without it: decoding one that is not
 * fails, with SQUALL_EUNSUPPORTED or SQUALL_ECORRUPT and the filter's name.
 */
int sq_codec_chain_bind_hdf5(const struct sq_hdf5_filter *filters, size_t count, const struct sq_codec_chunk *chunk,
                             struct sq_codec_chain **ret, struct squall_error *err) SQUALL_CHECK;
/* The first filter that is not known, "filter 32013 (zfp)", among those not in skip_mask; NULL: all are. Lives as long as the chain. */
const char *sq_codec_chain_unknown_filter(const struct sq_codec_chain *chain, uint32_t skip_mask);

/* What the first filter shuffles: elements of so many bytes, in the machine's order; 0: it is another, or elements are turned. */
size_t sq_codec_chain_shuffle_width(const struct sq_codec_chain *chain);

/* sq_codec_decode of a chunk to which the filters in skip_mask (bit 0: the first one) were not applied. Of chains bound as above. */
int sq_codec_decode_masked(const struct sq_codec_chain *chain, struct sq_codec_scratch *scratch, unsigned threads, uint32_t skip_mask,
                           const void *src, size_t src_size, void *dst, size_t dst_size, struct squall_error *err) SQUALL_CHECK;

#endif
