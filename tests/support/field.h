/*
 * One packed field for tests of decoding: sections 5, 6 and 7 (edition 1: PDS, BMS, BDS) made by hand, and a grid to put it on.
 * The bytes lie in a block of exactly their size, so that a sanitizer sees every read behind them.
 */
#ifndef SQ_TESTS_SUPPORT_FIELD_H
#define SQ_TESTS_SUPPORT_FIELD_H

#include "format/grib/decode.h"
#include "support/message.h"
#include <stdlib.h>

/* A deterministic stream of numbers. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The lowest `width` bits of value, highest first, at bit *at of bytes that are zero there. */
static inline void put_bits(uint8_t *bytes, uint64_t *at, uint64_t value, unsigned width)
{
    for (unsigned i = width; i-- > 0; (*at)++)
        bytes[*at / 8] = (uint8_t)(bytes[*at / 8] | (value >> i & 1) << (7 - *at % 8));
}

struct field {
    uint8_t *bytes;
    size_t size_bytes;
    struct sq_grib_frame frame;
    struct sq_grib_grid grid;
};

static inline struct field field_make(uint8_t edition, uint32_t rows, uint32_t columns)
{
    struct field f = {.frame.edition = edition};
    f.grid = (struct sq_grib_grid){.kind = SQ_GRID_REGULAR_LL,
                                   .type_name = "regular_ll",
                                   .rectangular = true,
                                   .columns = columns,
                                   .rows = rows,
                                   .point_count = (uint64_t)rows * columns,
                                   .edition = edition};
    return f;
}

static inline void field_done(struct field *f)
{
    free(f->bytes);
    *f = (struct field){0};
}

/* Add a section as it is, with its head. */
static inline void field_add(struct field *f, unsigned number, const void *section, size_t size_bytes)
{
    uint8_t *bytes = malloc(f->size_bytes + size_bytes + !size_bytes);
    if (f->size_bytes)
        memcpy(bytes, f->bytes, f->size_bytes);
    if (size_bytes)
        memcpy(bytes + f->size_bytes, section, size_bytes);
    f->frame.section[number] = (struct sq_grib_section){f->size_bytes, size_bytes};
    free(f->bytes);
    f->bytes = bytes;
    f->size_bytes += size_bytes;
}

/* Section 5 of edition 2: octets 6 to 20, then what the template adds. */
static inline void field_add5(struct field *f, uint32_t value_count, uint16_t template_number, float reference, int binary_scale,
                              int decimal_scale, uint8_t bits, const void *more, size_t more_bytes)
{
    uint8_t section[96] = {0};
    uint32_t raw;
    memcpy(&raw, &reference, sizeof raw);
    put_be(section, 20 + more_bytes, 4);
    section[4] = 5;
    put_be(section + 5, value_count, 4);
    put_be(section + 9, template_number, 2);
    put_be(section + 11, raw, 4);
    put_be(section + 15, binary_scale < 0 ? 0x8000u | (unsigned)-binary_scale : (unsigned)binary_scale, 2);
    put_be(section + 17, decimal_scale < 0 ? 0x8000u | (unsigned)-decimal_scale : (unsigned)decimal_scale, 2);
    section[19] = bits;
    memcpy(section + 20, more, more_bytes);
    field_add(f, 5, section, 20 + more_bytes);
}

/* Section 6: mask has a byte a point, 0 or 1; NULL: no bitmap. */
static inline void field_add6(struct field *f, const uint8_t *mask, size_t point_count)
{
    size_t size = 6 + (mask ? (point_count + 7) / 8 : 0);
    uint8_t *section = calloc(1, size);
    uint64_t bit = 0;
    put_be(section, size, 4);
    section[4] = 6;
    section[5] = mask ? 0 : 255;
    for (size_t i = 0; mask && i < point_count; i++)
        put_bits(section + 6, &bit, mask[i], 1);
    field_add(f, 6, section, size);
    free(section);
}

static inline void field_add7(struct field *f, const void *data, size_t data_bytes)
{
    uint8_t *section = calloc(1, 5 + data_bytes);
    put_be(section, 5 + data_bytes, 4);
    section[4] = 7;
    if (data_bytes)
        memcpy(section + 5, data, data_bytes);
    field_add(f, 7, section, 5 + data_bytes);
    free(section);
}

/* Values of one width, packed one behind the other. Returns the bytes; free them. */
static inline uint8_t *pack(const uint32_t *x, size_t count, unsigned width, size_t *ret_bytes)
{
    *ret_bytes = (size_t)(((uint64_t)count * width + 7) / 8);
    uint8_t *bytes = calloc(1, *ret_bytes + 1);
    uint64_t bit = 0;
    for (size_t i = 0; i < count; i++)
        put_bits(bytes, &bit, x[i], width);
    return bytes;
}

static inline int field_decode(const struct field *f, bool flip_rows, struct sq_grib_scratch *scratch, enum sq_grib_output output,
                               void *dst, struct squall_error *err)
{
    return sq_grib_decode(f->bytes, f->size_bytes, &f->frame, &f->grid, flip_rows, scratch, output, dst, err);
}

#endif
