/*
 * GRIB messages made by hand, byte by byte, for tests of framing and of what descriptions mean. Sections hold what the test says; the
 * builder adds lengths, numbers and the end mark only.
 */
#ifndef SQ_TESTS_SUPPORT_MESSAGE_H
#define SQ_TESTS_SUPPORT_MESSAGE_H

#include "base/text.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void put_be(uint8_t *at, uint64_t value, unsigned size_bytes)
{
    for (unsigned i = 0; i < size_bytes; i++)
        at[i] = (uint8_t)(value >> 8 * (size_bytes - 1 - i));
}

/* Edition 2: section 0; the length is set by message_end. Returns where the message begins in t. */
static inline size_t message_begin(struct sq_text *t, uint8_t discipline)
{
    size_t start = t->length;
    const uint8_t section0[16] = {'G', 'R', 'I', 'B', 0, 0, discipline, 2};
    sq_text_add_bytes(t, section0, sizeof section0);
    return start;
}

/* body: what follows length and number. */
static inline void message_section(struct sq_text *t, uint8_t number, const void *body, size_t body_bytes)
{
    uint8_t head[5];
    put_be(head, body_bytes + sizeof head, 4);
    head[4] = number;
    sq_text_add_bytes(t, head, sizeof head);
    sq_text_add_bytes(t, body, body_bytes);
}

static inline void message_end(struct sq_text *t, size_t start)
{
    sq_text_add_bytes(t, "7777", 4);
    put_be((uint8_t *)t->data + start + 8, t->length - start, 8);
}

/* Bodies of sections 1, 3, 4, 5 and 6 of a small sound field: 2 × 2 points, 2 m temperature, 2024-03-01 06:00:00. */
static const uint8_t BODY1[16] = {0, 98, 0, 0, 30, 0, 1, 0x07, 0xe8, 3, 1, 6, 0, 0, 0, 1};
static const uint8_t BODY4[29] = {0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 103, 0, 0, 0, 0, 2, 255, 255, 255, 255, 255, 255};
static const uint8_t BODY5[16] = {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0};
static const uint8_t BODY6[1] = {255};
static const uint8_t BODY7[4] = {1, 2, 3, 4};

/* Section 3, template 3.0 (latitude/longitude), of ni × nj points one degree apart. */
static inline void body3_make(uint8_t ret[67], uint32_t ni, uint32_t nj)
{
    memset(ret, 0, 67);
    put_be(ret + 1, (uint64_t)ni * nj, 4);
    ret[9] = 6;
    put_be(ret + 25, ni, 4);
    put_be(ret + 29, nj, 4);
    put_be(ret + 41, UINT64_C(50000000), 4);
    put_be(ret + 45, UINT64_C(10000000), 4);
    ret[49] = 48;
    put_be(ret + 50, UINT64_C(50000000) - (nj - 1) * UINT64_C(1000000), 4);
    put_be(ret + 54, UINT64_C(10000000) + (ni - 1) * UINT64_C(1000000), 4);
    put_be(ret + 58, 1000000, 4);
    put_be(ret + 62, 1000000, 4);
}

/* Sections 4 to 7 of one more field. */
static inline void message_field(struct sq_text *t, const void *body4, size_t body4_bytes)
{
    message_section(t, 4, body4, body4_bytes);
    message_section(t, 5, BODY5, sizeof BODY5);
    message_section(t, 6, BODY6, sizeof BODY6);
    message_section(t, 7, BODY7, sizeof BODY7);
}

/* A whole message of field_count equal fields. */
static inline size_t message_add(struct sq_text *t, unsigned field_count)
{
    uint8_t body3[67];
    size_t start = message_begin(t, 0);
    body3_make(body3, 2, 2);
    message_section(t, 1, BODY1, sizeof BODY1);
    message_section(t, 3, body3, sizeof body3);
    for (unsigned i = 0; i < field_count; i++)
        message_field(t, BODY4, sizeof BODY4);
    message_end(t, start);
    return start;
}

/* Edition 1: PDS as given (its length and flags set here), a GDS where there is one, BDS with data_bytes of data. */
static inline size_t message1_add(struct sq_text *t, const uint8_t *pds, size_t pds_bytes, const uint8_t *gds, size_t gds_bytes,
                                  const uint8_t *data, size_t data_bytes)
{
    size_t start = t->length;
    const uint8_t section0[8] = {'G', 'R', 'I', 'B', 0, 0, 0, 1};
    sq_text_add_bytes(t, section0, sizeof section0);
    sq_text_add_bytes(t, pds, pds_bytes);
    put_be((uint8_t *)t->data + start + 8, pds_bytes, 3);
    t->data[start + 8 + 7] = (char)(gds_bytes ? 0x80 : 0);
    if (gds_bytes) {
        size_t at = t->length;
        sq_text_add_bytes(t, gds, gds_bytes);
        put_be((uint8_t *)t->data + at, gds_bytes, 3);
    }
    uint8_t bds[11] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8};
    put_be(bds, sizeof bds + data_bytes, 3);
    sq_text_add_bytes(t, bds, sizeof bds);
    sq_text_add_bytes(t, data, data_bytes);
    sq_text_add_bytes(t, "7777", 4);
    put_be((uint8_t *)t->data + start + 4, t->length - start, 3);
    return start;
}

#endif
