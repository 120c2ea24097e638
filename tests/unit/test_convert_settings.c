/* What a user asks of a conversion: options and sources, right ones and wrong ones. */
#include "support/folder.h"

#include "convert/settings.h"
#include "cube/sources.h"
#include <unistd.h>

static const char *const SOURCES[] = {"in"};

static struct squall_convert_options options(void)
{
    return (struct squall_convert_options){.sources = SOURCES, .source_count = 1, .destination = "out.zarr"};
}

static struct sq_settings parsed(struct squall_convert_options o)
{
    struct sq_settings s;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_settings_parse(&o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* The options are refused as a usage error whose message holds these words. */
static void refused(struct squall_convert_options o, const char *words)
{
    struct sq_settings s;
    struct squall_error err = SQUALL_ERROR_INIT;
    assert_int_equal(sq_settings_parse(&o, &s, &err), SQUALL_EINVAL);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" is not in: %s", words, err.message);
}

static void nothing_given_means_the_defaults(void **state)
{
    (void)state;
    struct sq_settings s = parsed(options());
    assert_int_equal(s.chunks.count, 0);
    assert_int_equal(s.type_count, 0);
    assert_int_equal(s.overflow, SQ_OVERFLOW_ERROR);
    assert_int_equal(s.codec_count, 1);
    assert_null(s.codecs[0].variable);
    assert_string_equal(s.codecs[0].spec, "blosc:cname=zstd,clevel=5,shuffle=shuffle,search=greedy");
    assert_int_equal(s.coarsen_y, 1);
    assert_int_equal(s.coarsen_x, 1);
    assert_int_equal(s.every_s, 0);
    assert_false(s.stack);
    sq_settings_done(&s);
}

static void chunks_are_numbers_or_all(void **state)
{
    (void)state;
    struct squall_convert_options o = options();
    o.chunks = "init_time=1,step=all,y=352,x=274";
    struct sq_settings s = parsed(o);
    assert_int_equal(s.chunks.count, 4);
    assert_string_equal(s.chunks.items[1].dim, "step");
    assert_int_equal(s.chunks.items[1].length, 0);
    assert_int_equal(s.chunks.items[3].length, 274);
    sq_settings_done(&s);
}

static void wrong_chunks_are_named(void **state)
{
    (void)state;
    const char *const wrong[] = {"y", "y=0", "y=-1", "y=1.5", "y=many", "=4", "", "y=1,", "y=99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct squall_convert_options o = options();
        o.chunks = wrong[i];
        refused(o, "--chunks");
    }
    struct squall_convert_options twice = options();
    twice.chunks = "y=1,x=2,y=3";
    refused(twice, "y is given twice");
}

static void a_bare_type_is_for_the_rest(void **state)
{
    (void)state;
    struct squall_convert_options o = options();
    o.dtype = "t2m=float32,float16";
    struct sq_settings s = parsed(o);
    assert_int_equal(s.type_count, 2);
    assert_string_equal(s.types[0].variable, "t2m");
    assert_int_equal(s.types[0].type, SQUALL_FLOAT32);
    assert_null(s.types[1].variable);
    assert_int_equal(s.types[1].type, SQUALL_FLOAT16);
    sq_settings_done(&s);
}

static void wrong_types_are_named(void **state)
{
    (void)state;
    struct squall_convert_options o = options();
    o.dtype = "float128";
    refused(o, "\"float128\" is no type");
    o.dtype = "t2m=int16";
    refused(o, "int16 is not written yet");
    o.dtype = "float16,float32";
    refused(o, "two types for all other variables");
    o.dtype = "=float16";
    refused(o, "--dtype");
}

static void spans_of_time_have_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } RIGHT[] = {{"6h", 21600}, {"30min", 1800}, {"1d", 86400}, {"90s", 90}};
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        struct squall_convert_options o = options();
        o.every = RIGHT[i].text;
        struct sq_settings s = parsed(o);
        assert_int_equal(s.every_s, RIGHT[i].seconds);
        sq_settings_done(&s);
    }
    const char *const wrong[] = {"", "6", "h", "0h", "-6h", "6 h", "6hours", "99999999999999999d"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct squall_convert_options o = options();
        o.every = wrong[i];
        refused(o, "--every");
    }
}

static void other_wrong_options_are_named(void **state)
{
    (void)state;
    struct squall_convert_options o = options();
    o.on_overflow = "wrap";
    refused(o, "none of error, inf, clip");
    o = options();
    o.coarsen = "step=2";
    refused(o, "step is no horizontal dimension");
    o.coarsen = "y=0";
    refused(o, "--coarsen");
    o = options();
    o.stack = "level";
    refused(o, "--stack");
    o = options();
    o.stack_name = "UKV";
    refused(o, "--stack variable");
    o.stack = "variable";
    o.stack_name = "a/b";
    refused(o, "--stack-name");
    o = options();
    o.destination = "/";
    refused(o, "name of its own");
    o.destination = NULL;
    refused(o, "no destination");
    o = options();
    o.source_count = 0;
    refused(o, "no source");
}

static void the_command_can_be_typed_again(void **state)
{
    (void)state;
    static const char *const sources[] = {"/data/my archive", "/data/it's"};
    static const char *const select[] = {"name=t2m|d2m"};
    struct squall_convert_options o = {
        .sources = sources, .source_count = 2, .destination = "/data/out.zarr/", .dtype = "float16", .select = select, .select_count = 1};
    struct sq_settings s = parsed(o);
    assert_string_equal(s.destination, "/data/out.zarr");
    assert_string_equal(s.command, "squall convert --dtype float16 --select 'name=t2m|d2m' '/data/my archive' '/data/it'\\''s'");
    assert_string_equal(s.text, "--dtype float16 --select 'name=t2m|d2m'");
    sq_settings_done(&s);
}

/* ---- sources --------------------------------------------------------------------------------------------------------------------- */

static struct sq_source_list listed(const char *const *sources, size_t count, const char *destination)
{
    struct sq_source_list list;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (sq_source_list_make(sources, count, destination, &list, &err))
        fail_msg("%s", err.message);
    return list;
}

static void make_folder(const char *path)
{
    assert_int_equal(sq_folder_make_durable(path, NULL), 0);
}

static void folders_give_their_grib_files_only(void **state)
{
    const char *folder = *state;
    const char *const side[] = {"a.grib.idx", "a.index", "b.JSON", "c.txt", "README.md", "t.csv", "u.xml", ".hidden.grib"};
    make_folder(in_folder(folder, "2022/01"));
    make_folder(in_folder(folder, "store.zarr"));
    make_folder(in_folder(folder, ".git"));
    for (size_t i = 0; i < sizeof side / sizeof *side; i++)
        file_put(in_folder(folder, side[i]), "x");
    file_put(in_folder(folder, "store.zarr/zarr.json"), "{}");
    file_put(in_folder(folder, ".git/x.grib"), "x");
    file_put(in_folder(folder, "b.grib"), "x");
    file_put(in_folder(folder, "2022/01/a.grib"), "x");
    struct sq_source_list list = listed((const char *const[]){folder}, 1, "nowhere");
    assert_int_equal(list.count, 2);
    assert_string_equal(list.paths[0], in_folder(folder, "2022/01/a.grib"));
    assert_string_equal(list.paths[1], in_folder(folder, "b.grib"));
    assert_int_equal(list.passed_over, 10);
    sq_source_list_done(&list);
}

static void a_file_named_by_the_user_is_taken_whatever_it_is_called(void **state)
{
    const char *path = in_folder(*state, ".odd.txt");
    file_put(path, "x");
    struct sq_source_list list = listed((const char *const[]){path}, 1, "nowhere");
    assert_int_equal(list.count, 1);
    sq_source_list_done(&list);
}

static void a_file_met_twice_is_read_once(void **state)
{
    const char *folder = *state;
    const char *file = in_folder(folder, "a.grib");
    file_put(file, "x");
    assert_int_equal(symlink(file, in_folder(folder, "b.grib")), 0);
    assert_int_equal(symlink(folder, in_folder(folder, "loop")), 0);
    struct sq_source_list list = listed((const char *const[]){folder, file, folder}, 3, "nowhere");
    assert_int_equal(list.count, 1);
    assert_string_equal(list.paths[0], file);
    sq_source_list_done(&list);
}

static void the_destination_is_no_source(void **state)
{
    const char *folder = *state;
    make_folder(in_folder(folder, "out/chunk_exists"));
    file_put(in_folder(folder, "out/0"), "x");
    file_put(in_folder(folder, "a.grib"), "x");
    struct sq_source_list list = listed((const char *const[]){folder}, 1, in_folder(folder, "out"));
    assert_int_equal(list.count, 1);
    sq_source_list_done(&list);
}

/* Opening such a name says why, as for a file that cannot be opened. */
static void what_cannot_be_looked_at_is_left_to_who_opens_it(void **state)
{
    const char *folder = *state;
    file_put(in_folder(folder, "b.grib"), "x");
    assert_int_equal(symlink("loop", in_folder(folder, "loop")), 0);
    assert_int_equal(symlink("other", in_folder(folder, "other")), 0);
    assert_int_equal(symlink(".hidden", in_folder(folder, ".hidden")), 0);
    struct sq_source_list list = listed((const char *const[]){folder, folder}, 2, "nowhere");
    assert_int_equal(list.count, 3);
    assert_string_equal(list.paths[1], in_folder(folder, "loop"));
    assert_string_equal(list.paths[2], in_folder(folder, "other"));
    sq_source_list_done(&list);
}

static void sources_that_cannot_be_are_named(void **state)
{
    const char *folder = *state;
    struct sq_source_list list;
    struct squall_error err = SQUALL_ERROR_INIT;
    const char *missing = in_folder(folder, "nothing-here"), *empty = in_folder(folder, "empty"), *store = in_folder(folder, "s.zarr");
    make_folder(empty);
    make_folder(store);
    file_put(in_folder(store, "zarr.json"), "{}");
    assert_int_equal(sq_source_list_make(&missing, 1, "x", &list, &err), SQUALL_ENOTFOUND);
    assert_non_null(strstr(err.message, "nothing-here: no such file or folder"));
    assert_int_equal(sq_source_list_make(&empty, 1, "x", &list, &err), SQUALL_ENOTFOUND);
    assert_non_null(strstr(err.message, "no file to convert in this folder"));
    assert_int_equal(sq_source_list_make(&store, 1, store, &list, &err), SQUALL_EINVAL);
    assert_non_null(strstr(err.message, "source and destination are the same store"));
    assert_int_equal(sq_source_list_make(&store, 1, "x", &list, &err), 0);
    assert_int_equal(list.count, 1);
    sq_source_list_done(&list);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_means_the_defaults),
        cmocka_unit_test(chunks_are_numbers_or_all),
        cmocka_unit_test(wrong_chunks_are_named),
        cmocka_unit_test(a_bare_type_is_for_the_rest),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(spans_of_time_have_a_unit),
        cmocka_unit_test(other_wrong_options_are_named),
        cmocka_unit_test(the_command_can_be_typed_again),
        IN_FOLDER(folders_give_their_grib_files_only),
        IN_FOLDER(what_cannot_be_looked_at_is_left_to_who_opens_it),
        IN_FOLDER(a_file_named_by_the_user_is_taken_whatever_it_is_called),
        IN_FOLDER(a_file_met_twice_is_read_once),
        IN_FOLDER(the_destination_is_no_source),
        IN_FOLDER(sources_that_cannot_be_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
