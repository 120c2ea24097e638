/* Fields that are there twice: identical ones, conflicting ones, and who wins. */
#include "support/unit.h"

#include "support/fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct sq_cube_options PLAIN = {0};

struct folder {
    char path[64], a[80], b[80];
};

static int make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    strcpy(folder->path, "/tmp/squall-cube-XXXXXX");
    if (!folder || !mkdtemp(folder->path))
        return -1;
    snprintf(folder->a, sizeof folder->a, "%s/a.grib", folder->path);
    snprintf(folder->b, sizeof folder->b, "%s/b.grib", folder->path);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    unlink(folder->a);
    unlink(folder->b);
    rmdir(folder->path);
    free(folder);
    return 0;
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

/* Two messages of one 2 × 2 field, the second with `last` as its last value. */
static size_t two_messages(struct sq_text *t, char last)
{
    size_t second;
    message_add(t, 1);
    second = message_add(t, 1);
    t->data[t->length - 5] = last;
    return second;
}

static void the_same_bytes_are_counted_and_one_is_taken(void **state)
{
    const struct folder *folder = *state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    size_t second = two_messages(&text, BODY7[3]);
    write_file(folder->a, text.data, text.length);
    uint32_t a = fields_file(f, folder->a), t = PRODUCT(f, .level = 2);
    FIELD(f, t, .file = a, .offset = 0, .size_bytes = second);
    f->field[0].offset = 0;
    FIELD(f, t, .file = a, .offset = second, .size_bytes = text.length - second);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.place_count, 1);
    assert_int_equal(cube.places[0].field, 1);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_IDENTICAL_DUPLICATE), 1);
    assert_int_equal(cube.warning_count, 0);
    assert_true(fields_line(cube.notes, cube.note_count, "there twice, with the same values: 1 field in 1 file"));
    sq_cube_done(&cube);
    fields_free(f);
}

static void of_conflicting_ones_the_last_in_the_file_wins_and_is_named(void **state)
{
    const struct folder *folder = *state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    char line[400];
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    size_t second = two_messages(&text, 99);
    write_file(folder->a, text.data, text.length);
    uint32_t a = fields_file(f, folder->a), t = PRODUCT(f, .level = 2);
    FIELD(f, t, .file = a, .offset = second, .size_bytes = text.length - second);
    FIELD(f, t, .file = a, .size_bytes = second);
    f->field[1].offset = 0;
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(cube.places[0].field, 0);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_CONFLICTING_DUPLICATE), 1);
    snprintf(line, sizeof line,
             "t2m, 2022-01-01T00:00 + 0 h, 2 m is there twice with other values: %s at byte 0 is ignored, %s at byte %zu is taken",
             folder->a, folder->a, second);
    assert_int_equal(cube.warning_count, 1);
    assert_string_equal(cube.warnings[0], line);
    sq_cube_done(&cube);
    fields_free(f);
}

static void of_two_files_the_last_by_path_wins_whatever_their_order(void **state)
{
    const struct folder *folder = *state;
    for (int order = 0; order < 2; order++) {
        struct fields *f = fields_new();
        struct sq_cube cube;
        SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
        message_add(&text, 1);
        write_file(folder->a, text.data, text.length);
        text.data[text.length - 5] = 99;
        write_file(folder->b, text.data, text.length);
        uint32_t first = fields_file(f, order ? folder->b : folder->a), second = fields_file(f, order ? folder->a : folder->b);
        uint32_t t = PRODUCT(f, .level = 2);
        FIELD(f, t, .file = first, .size_bytes = text.length);
        FIELD(f, t, .file = second, .size_bytes = text.length);
        f->field[0].offset = f->field[1].offset = 0;
        fields_build(f, &PLAIN, &cube);
        assert_int_equal(fields_ignored(&cube, SQ_CUBE_CONFLICTING_DUPLICATE), 1);
        assert_string_equal(f->files[f->field[cube.places[0].field].file].path, folder->b);
        sq_cube_done(&cube);
        fields_free(f);
    }
}

static void the_same_field_in_another_message_is_identical(void **state)
{
    const struct folder *folder = *state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    message_add(&text, 1);
    size_t second = message_add(&text, 2);
    write_file(folder->a, text.data, text.length);
    uint32_t a = fields_file(f, folder->a), t = PRODUCT(f, .level = 2);
    FIELD(f, t, .file = a, .size_bytes = second);
    f->field[0].offset = 0;
    FIELD(f, t, .file = a, .offset = second, .size_bytes = text.length - second, .in_message = 1);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_IDENTICAL_DUPLICATE), 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void another_packing_is_a_conflict_without_reading(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .level = 2);
    FIELD(f, t);
    FIELD(f, t);
    f->field[1].reference_value = 1;
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_CONFLICTING_DUPLICATE), 1);
    assert_int_equal(cube.places[0].field, 1);
    sq_cube_done(&cube);
    fields_free(f);
}

static void files_that_are_gone_are_taken_for_a_conflict(void **state)
{
    (void)state;
    struct fields *f = fields_new();
    struct sq_cube cube;
    uint32_t t = PRODUCT(f, .level = 2);
    for (int i = 0; i < 40; i++)
        FIELD(f, t);
    fields_build(f, &PLAIN, &cube);
    assert_int_equal(fields_ignored(&cube, SQ_CUBE_CONFLICTING_DUPLICATE), 39);
    assert_int_equal(cube.warning_count, 21);
    assert_string_equal(cube.warnings[20], "19 more fields are there twice with other values; the last in file order is taken");
    sq_cube_done(&cube);
    fields_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_bytes_are_counted_and_one_is_taken, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(of_conflicting_ones_the_last_in_the_file_wins_and_is_named, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(of_two_files_the_last_by_path_wins_whatever_their_order, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_same_field_in_another_message_is_identical, make_folder, remove_folder),
        cmocka_unit_test(another_packing_is_a_conflict_without_reading),
        cmocka_unit_test(files_that_are_gone_are_taken_for_a_conflict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
