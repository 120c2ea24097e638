/*
 * Byte and bit shuffle as Blosc defines them. Byte shuffle: the first bytes of all elements, then all second bytes, … Bit
 * shuffle: the lowest bit of the first byte of all elements, eight to a byte, then the next bit, … What does not fill an element
 * (bits: a group of eight elements) is copied as it is.
 */
#ifndef SQ_CODEC_SHUFFLE_H
#define SQ_CODEC_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

/* width: bytes of an element, ≥ 1; src and dst do not overlap */
void sq_shuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst);
void sq_unshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst);
void sq_bitshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst);
void sq_bitunshuffle(size_t width, size_t size_bytes, const uint8_t *src, uint8_t *dst);

/* Bytes in blocks (the last one may be shorter), the elements of each shuffled by itself; width 1: all bytes are where they belong. */
struct sq_shuffle_layout {
    size_t block_bytes, width;
};

/* The count_bytes from byte `from` on of what src holds shuffled, size_bytes in all. For few bytes: each costs as much as many do in sq_unshuffle. */
void sq_unshuffle_part(const struct sq_shuffle_layout *layout, size_t size_bytes, const uint8_t *src, size_t from, size_t count_bytes,
                       uint8_t *dst);

/*
 * Variants for AVX2, for the functions above: they do as many of the `elements` as they can, return how many, and leave the
 * rest. Plane b of dst (or src) begins at b × elements, a row of bits at its number × elements / 8. Byte shuffle is for the widths 2, 4, 8
 * and 16, bit shuffle for those to 16.
 */
size_t sq_shuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst);
size_t sq_unshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst);
size_t sq_bitshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst);
size_t sq_bitunshuffle_avx2(size_t width, size_t elements, const uint8_t *src, uint8_t *dst);

#endif
