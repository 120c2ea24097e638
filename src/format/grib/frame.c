/*
 * The frame of a GRIB message. In edition 2, sections 2 to 7 may repeat, and each section 7 completes a field that inherits what the
 * fields before it said (FM 92, regulation 92.6.3), so the walk keeps one frame as its state. In edition 1 the PDS says which
 * sections follow. The walk takes heads of sections one at a time, so that a scan can feed it without reading the data.
 */
#include "format/grib/frame.h"
#include "base/cursor.h"
#include "base/error_internal.h"
#include <string.h>

enum {
    SECTION0_BYTES_1 = 8,
    SECTION0_BYTES_2 = 16,
    END_MARK_BYTES = 4,
    PDS_BYTES_LEAST = 28,
    PDS_HAS_GDS = 0x80,
    PDS_HAS_BMS = 0x40,
    BITMAP_AS_BEFORE = 254,
    NO_BITMAP = 255,
    FIELD_COUNT_LIMIT = UINT16_MAX,
};

/* The least bytes that a section can have: what its fixed part takes (edition 2, sections 1 to 7). */
static const uint8_t LEAST_BYTES_2[SQ_GRIB_SECTION_COUNT] = {0, 21, 5, 14, 9, 11, 6, 5};
static const uint8_t LEAST_BYTES_1[SQ_GRIB_SECTION_COUNT] = {0, PDS_BYTES_LEAST, 0, 6, 0, 0, 6, 11};

int sq_grib_walk_begin(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, struct squall_error *err)
{
    if (head_bytes < SECTION0_BYTES_1 || memcmp(head, "GRIB", 4) != 0)
        return sq_error(err, SQUALL_ECORRUPT, "no GRIB message begins here");
    *w = (struct sq_grib_walker){.frame.edition = head[7]};
    struct sq_cursor c = sq_cursor(head, head_bytes);
    c.next += 4;
    if (head[7] == 1) {
        uint32_t length = (uint32_t)sq_uint_be(&c, 3);
        w->long_message = length & 0x800000;
        w->size_bytes = w->long_message ? (uint64_t)(length & 0x7fffff) * 120 + END_MARK_BYTES : length;
        w->at = SECTION0_BYTES_1;
    } else if (head[7] == 2) {
        c.next += 4;
        w->size_bytes = sq_u64be(&c);
        w->frame.discipline = head[6];
        w->at = SECTION0_BYTES_2;
    } else {
        return sq_error(err, SQUALL_ECORRUPT, "GRIB edition %u: only 1 and 2 exist", head[7]);
    }
    if (sq_cursor_failed(&c) || w->size_bytes < w->at + END_MARK_BYTES)
        return sq_error(err, SQUALL_ECORRUPT, "a GRIB %u message cannot have %llu bytes", head[7], (unsigned long long)w->size_bytes);
    w->frame.section[0] = (struct sq_grib_section){0, w->at};
    return 0;
}

static int no_room(const struct sq_grib_walker *w, unsigned number, uint64_t section_bytes, struct squall_error *err)
{
    return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: section %u says %llu bytes, which cannot be in a message of %llu",
                    (unsigned long long)w->at, number, (unsigned long long)section_bytes, (unsigned long long)w->size_bytes);
}

/* Is there room for a section of this size at w->at, with the end mark behind it? */
static bool fits(const struct sq_grib_walker *w, uint64_t section_bytes, unsigned least)
{
    return section_bytes >= least && section_bytes <= w->size_bytes - END_MARK_BYTES - w->at;
}

static int end_mark(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, unsigned *ret_number, struct squall_error *err)
{
    if (w->last != 7)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: the message ends after section %u, without a data section",
                        (unsigned long long)w->at, w->last);
    if (head_bytes < END_MARK_BYTES || memcmp(head, "7777", END_MARK_BYTES) != 0)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: no end mark (7777) where the message ends", (unsigned long long)w->at);
    w->at += END_MARK_BYTES;
    *ret_number = SQ_GRIB_END;
    return 0;
}

static void take(struct sq_grib_walker *w, unsigned number, uint64_t section_bytes)
{
    w->frame.section[number] = (struct sq_grib_section){w->at, section_bytes};
    w->last = number;
    w->at += section_bytes;
    if (number == 7)
        w->frame.in_message = (uint16_t)w->field_count++;
}

/* Edition 1: which section comes next, by the flags of the PDS. */
static unsigned next_of_edition1(const struct sq_grib_walker *w)
{
    if (w->last == 0)
        return 1;
    if (w->last < 3 && w->present & PDS_HAS_GDS)
        return 3;
    if (w->last < 6 && w->present & PDS_HAS_BMS)
        return 6;
    return 7;
}

static int next1(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, unsigned *ret_number, struct squall_error *err)
{
    if (w->at == w->size_bytes - END_MARK_BYTES)
        return end_mark(w, head, head_bytes, ret_number, err);
    if (w->last == 7)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: its sections end, where the message says %llu bytes",
                        (unsigned long long)w->at, (unsigned long long)w->size_bytes);
    unsigned number = next_of_edition1(w);
    struct sq_cursor c = sq_cursor(head, head_bytes);
    uint64_t section_bytes = sq_uint_be(&c, 3);
    if (sq_cursor_failed(&c) || (number == 1 && head_bytes < 8))
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: the file ends", (unsigned long long)w->at);
    if (number == 7 && w->long_message) {
        /*
         * A message beyond 24 bits: its length counts 120 bytes, and the data section's length says how much of the last 120 is not used
         * (with 4 for the end mark counted apart). A data section of 120 bytes and more has its real length, and so has the message.
         */
        uint64_t counted = w->size_bytes - END_MARK_BYTES;
        w->size_bytes = section_bytes < 120 ? counted - section_bytes + END_MARK_BYTES : counted / 120 | 0x800000;
        if (section_bytes < 120 && w->size_bytes > w->at + END_MARK_BYTES)
            section_bytes = w->size_bytes - END_MARK_BYTES - w->at;
        if (w->size_bytes < w->at + END_MARK_BYTES)
            return no_room(w, number, section_bytes, err);
    }
    if (!fits(w, section_bytes, LEAST_BYTES_1[number]))
        return no_room(w, number, section_bytes, err);
    if (number == 1)
        w->present = head[7];
    take(w, number, section_bytes);
    *ret_number = number;
    return 0;
}

/* A section after number `last`: the next one (2 may be left out), or back to 2, 3 or 4 once a field is complete. */
static bool may_follow(unsigned last, unsigned number)
{
    return (last < 7 && number == last + 1) || (last == 1 && number == 3) || (last == 7 && number >= 2 && number <= 4);
}

/* The frame's bitmap section is the one that holds the bits. */
static int take_bitmap(struct sq_grib_walker *w, uint8_t indicator, uint64_t section_bytes, struct squall_error *err)
{
    uint64_t at = w->at;
    take(w, 6, section_bytes);
    if (indicator == BITMAP_AS_BEFORE) {
        if (w->bitmap.size_bytes == 0)
            return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: the bitmap is said to be an earlier one (254), but there is none",
                            (unsigned long long)at);
        w->frame.section[6] = w->bitmap;
    } else if (indicator != NO_BITMAP) {
        w->bitmap = w->frame.section[6];
    }
    return 0;
}

static int next2(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, unsigned *ret_number, struct squall_error *err)
{
    if (w->at == w->size_bytes - END_MARK_BYTES)
        return end_mark(w, head, head_bytes, ret_number, err);
    struct sq_cursor c = sq_cursor(head, head_bytes);
    uint32_t section_bytes = sq_u32be(&c);
    unsigned number = sq_u8(&c);
    uint8_t indicator = number == 6 ? sq_u8(&c) : 0;
    if (sq_cursor_failed(&c))
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: the file ends", (unsigned long long)w->at);
    if (w->last == 7 && memcmp(head, "7777", END_MARK_BYTES) == 0)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: the end mark (7777), where the message says %llu bytes",
                        (unsigned long long)w->at, (unsigned long long)w->size_bytes);
    if (!may_follow(w->last, number))
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: section %u after section %u", (unsigned long long)w->at, number,
                        w->last);
    if (!fits(w, section_bytes, LEAST_BYTES_2[number]))
        return no_room(w, number, section_bytes, err);
    if (w->field_count == FIELD_COUNT_LIMIT)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %llu of it: more than %d fields in one message", (unsigned long long)w->at,
                        FIELD_COUNT_LIMIT);
    if (number == 6)
        SQ_TRY(take_bitmap(w, indicator, section_bytes, err));
    else
        take(w, number, section_bytes);
    *ret_number = number;
    return 0;
}

int sq_grib_walk_next(struct sq_grib_walker *w, const uint8_t *head, size_t head_bytes, unsigned *ret_number, struct squall_error *err)
{
    return w->frame.edition == 1 ? next1(w, head, head_bytes, ret_number, err) : next2(w, head, head_bytes, ret_number, err);
}

/* The next section of a message that lies in memory. */
static int next_in(struct sq_grib_walker *w, const uint8_t *message, size_t size, unsigned *ret_number, struct squall_error *err)
{
    size_t left = size - (size_t)w->at;
    SQ_TRY(sq_grib_walk_next(w, message + w->at, left < SQ_GRIB_HEAD_BYTES ? left : SQ_GRIB_HEAD_BYTES, ret_number, err));
    if (w->at > size)
        return sq_error(err, SQUALL_ECORRUPT, "at byte %zu of it: the message is cut off, it says %llu bytes", size,
                        (unsigned long long)w->size_bytes);
    return 0;
}

static int begin_in(struct sq_grib_walker *w, const uint8_t *message, size_t size, struct squall_error *err)
{
    SQ_TRY(sq_grib_walk_begin(w, message, size < SQ_GRIB_HEAD_BYTES ? size : SQ_GRIB_HEAD_BYTES, err));
    if (!w->long_message && w->size_bytes != size)
        return sq_error(err, SQUALL_ECORRUPT, "the message says %llu bytes, but has %zu", (unsigned long long)w->size_bytes, size);
    return 0;
}

int sq_grib_frame_of(const uint8_t *message, size_t size, unsigned in_message, struct sq_grib_frame *ret, struct squall_error *err)
{
    struct sq_grib_walker w = {0};
    unsigned number = 0;
    SQ_TRY(begin_in(&w, message, size, err));
    while (number != SQ_GRIB_END) {
        SQ_TRY(next_in(&w, message, size, &number, err));
        if (number == 7 && w.frame.in_message == in_message) {
            *ret = w.frame;
            return 0;
        }
    }
    return sq_error(err, SQUALL_ENOTFOUND, "field %u of a message that has %u", in_message + 1, w.field_count);
}
