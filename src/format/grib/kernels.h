/*
 * The inner loops of decoding, each in a plain form and in wider ones, chosen once a field. Whatever the variant, the results
 * are the same to the bit: value = (X·binary + reference)·decimal in double, in this order, then cast. Fusing the multiplication and
 * the addition changes nothing, as X·2^E is exact; doing all of it in float changes nothing where the sum is exact in double.
 */
#ifndef SQ_FORMAT_GRIB_KERNELS_H
#define SQ_FORMAT_GRIB_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sq_grib_scale {
    double reference; /* R */
    double binary;    /* 2^E */
    double decimal;   /* 10^-D */
    bool float_exact; /* see sq_grib_scale_of */
};

/*
 * binary_scale, decimal_scale: E, D. bits: no X has more; 0: not known. float_exact is set where D is 0 and X·2^E + R is exact in double for
 * all X, so that one rounding, by a fused multiply-add in float, gives what the rounding of the double would.
 */
struct sq_grib_scale sq_grib_scale_of(double reference, int binary_scale, int decimal_scale, unsigned bits);

/* What the integers X come as. The last two are IEEE numbers of the file, which are not scaled. */
enum sq_grib_source {
    SQ_GRIB_U8,
    SQ_GRIB_U16,
    SQ_GRIB_U32,
    SQ_GRIB_I32,
    SQ_GRIB_I32_MISSING, /* INT32_MIN: a missing value */
    SQ_GRIB_I64_MISSING, /* INT64_MAX: a missing value */
    SQ_GRIB_BIG_FLOAT32,
    SQ_GRIB_BIG_FLOAT64,
    SQ_GRIB_SOURCE_COUNT,
};

/* Consecutive values of one width: base + the width's bits. */
struct sq_grib_piece {
    uint32_t base;
    uint32_t count;
    uint32_t width; /* 0 to 32 */
};

/* In unpacked pieces: a missing value (templates 5.2 and 5.3, missing value management). */
#define SQ_GRIB_MISSING_U32 UINT32_MAX

/* Sums along a field of first or second differences (template 5.3), modulo 2^64. */
struct sq_grib_sums {
    unsigned order;
    uint64_t bias; /* the least difference, which was taken off all of them */
    uint64_t last, difference;
};

/* A CCSDS 121.0-B stream and how far it is read. */
enum { SQ_GRIB_CCSDS_BLOCK = 64 /* the longest block */ };
struct sq_grib_ccsds {
    const uint8_t *bytes;
    size_t size_bytes;
    unsigned bits, block, interval; /* of a sample; samples in a block: 8, 16, 32 or 64; blocks in a segment */
    unsigned option_bits;           /* of a block's first number, which says how it is coded */
    bool preprocessed;              /* differences, not samples */
    uint64_t bit;                   /* where the next block begins */
    unsigned at;                    /* blocks of the segment read */
    uint32_t zero_blocks;           /* blocks of a run left */
    uint32_t last;                  /* sample */
};

/* Readers and writers may touch this much behind what they were asked for; buffers have room for it. */
enum { SQ_GRIB_SLACK = 16 };

struct sq_grib_kernels {
    /*
     * Unpack pieces that follow each other in the bytes from bit first_bit on; all of their bits lie inside. missing: 0, or how many of a
     * width's highest codes mean "missing" (a piece of width 0 is missing where its base says so). out: SQ_GRIB_SLACK more than the counts.
     */
    void (*unpack)(const uint8_t *bytes, size_t size_bytes, uint64_t first_bit, const struct sq_grib_piece *pieces, size_t piece_count,
                   unsigned missing, uint32_t *out);
    /*
     * Sum up count differences, keep the sums in 32 bits; missing ones pass through, as INT32_MIN. False: some sum may need more; out and
     * sums are then worth nothing.
     */
    bool (*sum_up)(const uint32_t *x, size_t count, bool has_missing, struct sq_grib_sums *sums, int32_t *out);
    void (*to_float32[SQ_GRIB_SOURCE_COUNT])(const void *src, size_t count, const struct sq_grib_scale *scale, float *dst);
    /* The same where scale->float_exact; NULL: no faster way here. */
    void (*to_float32_exact[SQ_GRIB_SOURCE_COUNT])(const void *src, size_t count, const struct sq_grib_scale *scale, float *dst);
    void (*to_float64[SQ_GRIB_SOURCE_COUNT])(const void *src, size_t count, const struct sq_grib_scale *scale, double *dst);
    uint64_t (*count_ones)(const uint8_t *bytes, size_t size_bytes);
    /*
     * Put dense values where a bitmap has ones, NaN elsewhere, eight points a byte, while whole bytes and eight dense values are left.
     * Returns the bytes done; *used counts the dense values taken.
     */
    size_t (*expand_float32)(const uint8_t *bitmap, size_t bitmap_bytes, const float *dense, size_t dense_count, float *dst, size_t *used);
    size_t (*expand_float64)(const uint8_t *bitmap, size_t bitmap_bytes, const double *dense, size_t dense_count, double *dst,
                             size_t *used);
    /*
     * Undo a PNG row's filter (PNG specification, 9.2) in place. above: the row above, zeros above the first. step: bytes to a byte's left
     * neighbour, 1 to 4. False: there is no such filter.
     */
    bool (*unfilter)(unsigned filter, uint8_t *row, const uint8_t *above, size_t count, unsigned step);
    /* The next block's samples; out: SQ_GRIB_SLACK more. False: the stream is damaged, or at its end. */
    bool (*ccsds_block)(struct sq_grib_ccsds *stream, uint32_t *out);
};

/* The widest that sq_cpu_features allows; static. */
const struct sq_grib_kernels *sq_grib_kernels(void);

/* The variants by themselves, for tests. NULL: not built for this processor family. */
extern const struct sq_grib_kernels sq_grib_kernels_plain;
const struct sq_grib_kernels *sq_grib_kernels_avx2(void);

#endif
