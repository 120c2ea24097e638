/* The frame of a message: which sections a field has, and how everything that cannot be a message is refused. */
#include "support/message.h"
#include "support/unit.h"

#include "base/error_internal.h"
#include "base/memory.h"
#include "format/grib/frame.h"
#include <stdlib.h>

struct seen {
    unsigned count;
    struct sq_grib_frame frames[64];
};

/* The whole message, section by section. */
static int walk_bytes(const uint8_t *message, size_t size, struct seen *seen, struct squall_error *err)
{
    struct sq_grib_walker w = {0};
    unsigned number = 0;
    *seen = (struct seen){0};
    SQ_TRY(sq_grib_walk_begin(&w, message, size, err));
    while (number != SQ_GRIB_END) {
        if (w.at > size)
            return SQUALL_ECORRUPT;
        SQ_TRY(sq_grib_walk_next(&w, message + w.at, size - (size_t)w.at, &number, err));
        if (number == 7 && seen->count < 64)
            seen->frames[seen->count] = w.frame;
        seen->count += number == 7;
    }
    return w.at == size ? 0 : SQUALL_ECORRUPT;
}

static int walk(const struct sq_text *t, struct seen *seen, struct squall_error *err)
{
    return walk_bytes((const uint8_t *)t->data, t->length, seen, err);
}

static void one_field_has_its_sections_where_they_lie(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    struct seen seen;
    message_add(&t, 1);
    assert_int_equal(walk(&t, &seen, NULL), 0);
    assert_int_equal(seen.count, 1);
    const uint64_t expected[8][2] = {{0, 16}, {16, 21}, {0, 0}, {37, 72}, {109, 34}, {143, 21}, {164, 6}, {170, 9}};
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(seen.frames[0].section[i].offset, expected[i][0]);
        assert_int_equal(seen.frames[0].section[i].size_bytes, expected[i][1]);
    }
}

static void fields_of_a_message_inherit_what_is_not_repeated(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    struct seen seen;
    message_add(&t, 45);
    assert_int_equal(walk(&t, &seen, NULL), 0);
    assert_int_equal(seen.count, 45);
    for (unsigned i = 0; i < 45; i++) {
        assert_int_equal(seen.frames[i].section[3].offset, 37);
        assert_int_equal(seen.frames[i].section[4].offset, 109 + 70 * i);
        struct sq_grib_frame frame;
        assert_int_equal(sq_grib_frame_of((const uint8_t *)t.data, t.length, i, &frame, NULL), 0);
        assert_memory_equal(&frame, &seen.frames[i], sizeof frame);
    }
    struct sq_grib_frame frame;
    assert_int_equal(sq_grib_frame_of((const uint8_t *)t.data, t.length, 45, &frame, NULL), SQUALL_ENOTFOUND);
}

static void a_bitmap_as_before_is_the_last_that_holds_bits(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    struct seen seen;
    uint8_t body3[67];
    const uint8_t bits[2] = {0, 0xa0}, none[1] = {255}, before[1] = {254};
    const uint8_t *bitmaps[4] = {bits, before, none, before};
    const size_t sizes[4] = {2, 1, 1, 1};
    body3_make(body3, 2, 2);
    size_t start = message_begin(&t, 0), first = 0;
    message_section(&t, 1, BODY1, sizeof BODY1);
    message_section(&t, 3, body3, sizeof body3);
    for (unsigned i = 0; i < 4; i++) {
        message_section(&t, 4, BODY4, sizeof BODY4);
        message_section(&t, 5, BODY5, sizeof BODY5);
        first = i == 0 ? t.length : first;
        message_section(&t, 6, bitmaps[i], sizes[i]);
        message_section(&t, 7, BODY7, sizeof BODY7);
    }
    message_end(&t, start);
    assert_int_equal(walk(&t, &seen, NULL), 0);
    assert_int_equal(seen.frames[0].section[6].offset, first);
    assert_int_equal(seen.frames[1].section[6].offset, first);
    assert_int_equal(seen.frames[1].section[6].size_bytes, 7);
    assert_true(seen.frames[2].section[6].offset > first);
    assert_int_equal(seen.frames[3].section[6].offset, first);
}

static void a_bitmap_as_before_needs_one_before(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    struct seen seen;
    struct squall_error err = SQUALL_ERROR_INIT;
    message_add(&t, 1);
    t.data[164 + 5] = (char)254;
    assert_int_equal(walk(&t, &seen, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "254"));
}

static void edition_1_sections_follow_the_flags(void **state)
{
    (void)state;
    const uint8_t pds[28] = {0}, gds[32] = {0}, data[5] = {0};
    struct seen seen;
    for (unsigned with_gds = 0; with_gds < 2; with_gds++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        message1_add(&t, pds, sizeof pds, gds, with_gds ? sizeof gds : 0, data, sizeof data);
        assert_int_equal(walk(&t, &seen, NULL), 0);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.frames[0].section[1].offset, 8);
        assert_int_equal(seen.frames[0].section[3].size_bytes, with_gds ? 32 : 0);
        assert_int_equal(seen.frames[0].section[6].size_bytes, 0);
        assert_int_equal(seen.frames[0].section[7].offset, with_gds ? 68 : 36);
        assert_int_equal(seen.frames[0].section[7].size_bytes, 16);
    }
}

/* ECMWF's rule for more than 8 MiB: the length counts 120 bytes, the data section's length what the last 120 do not use. */
static void a_long_edition_1_message_has_its_real_lengths(void **state)
{
    (void)state;
    const uint8_t pds[28] = {0}, gds[32] = {0};
    size_t data_bytes = 9000001;
    uint8_t *data = calloc(1, data_bytes);
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message1_add(&t, pds, sizeof pds, gds, sizeof gds, data, data_bytes);
    size_t counted = (t.length - 4 + 119) / 120;
    put_be((uint8_t *)t.data + 4, 0x800000 | counted, 3);
    put_be((uint8_t *)t.data + 68, counted * 120 - (t.length - 4), 3);
    struct seen seen;
    assert_int_equal(walk(&t, &seen, NULL), 0);
    assert_int_equal(seen.frames[0].section[7].size_bytes, data_bytes + 11);
    free(data);
}

static void a_section_out_of_order_is_named_with_its_place(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    struct seen seen;
    struct squall_error err = SQUALL_ERROR_INIT;
    message_add(&t, 1);
    t.data[109 + 4] = 5;
    assert_int_equal(walk(&t, &seen, &err), SQUALL_ECORRUPT);
    assert_string_equal(err.message, "at byte 109 of it: section 5 after section 3");
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    const uint8_t pds[28] = {0}, gds[32] = {0}, data[5] = {0};
    for (unsigned edition = 1; edition <= 2; edition++) {
        SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
        struct seen seen;
        if (edition == 1)
            message1_add(&t, pds, sizeof pds, gds, sizeof gds, data, sizeof data);
        else
            message_add(&t, 3);
        for (size_t cut = 0; cut < t.length; cut++) {
            uint8_t *copy = malloc(cut + 1); /* its own allocation, so that a read past the cut is seen */
            memcpy(copy, t.data, cut);
            assert_int_equal(walk_bytes(copy, cut, &seen, NULL), SQUALL_ECORRUPT);
            /* and where the length agrees with the cut */
            if (cut > 16) {
                put_be(copy + (edition == 1 ? 4 : 8), cut, edition == 1 ? 3 : 8);
                assert_int_equal(walk_bytes(copy, cut, &seen, NULL), SQUALL_ECORRUPT);
            }
            free(copy);
        }
    }
}

static void no_single_changed_byte_leads_outside(void **state)
{
    (void)state;
    SQ_CLEANUP_TEXT struct sq_text t = SQ_TEXT_INIT;
    message_add(&t, 2);
    for (size_t at = 0; at < t.length; at++)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t old = (uint8_t)t.data[at];
            struct seen seen;
            t.data[at] = (char)value;
            if (walk(&t, &seen, NULL) == 0)
                for (unsigned i = 0; i < seen.count; i++)
                    for (unsigned k = 0; k < 8; k++)
                        assert_true(seen.frames[i].section[k].offset + seen.frames[i].section[k].size_bytes <= t.length - 4);
            t.data[at] = (char)old;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_field_has_its_sections_where_they_lie),
        cmocka_unit_test(fields_of_a_message_inherit_what_is_not_repeated),
        cmocka_unit_test(a_bitmap_as_before_is_the_last_that_holds_bits),
        cmocka_unit_test(a_bitmap_as_before_needs_one_before),
        cmocka_unit_test(edition_1_sections_follow_the_flags),
        cmocka_unit_test(a_long_edition_1_message_has_its_real_lengths),
        cmocka_unit_test(a_section_out_of_order_is_named_with_its_place),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_single_changed_byte_leads_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
