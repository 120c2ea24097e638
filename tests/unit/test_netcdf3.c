/*
 * NetCDF-3 files made byte by byte: what headers say, and what becomes of those that are damaged. test_netcdf3.py compares files with what
 * netCDF4 reads.
 */
#include "support/unit.h"

#include "base/memory.h"
#include "base/text.h"
#include "format/netcdf3/netcdf3.h"
#include "squall/netcdf.h"
#include "squall/store.h"
#include "store/partial.h"
#include "support/folder.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static squall_context *context;

static int set_up(void **state)
{
    return squall_context_new(NULL, &context, NULL) || folder_make(state);
}

static int tear_down(void **state)
{
    squall_context_free(context);
    return folder_remove(state);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------ */

struct maker {
    struct sq_text t;
    unsigned version;
};

static void put(struct maker *m, uint64_t value, unsigned size_bytes)
{
    for (unsigned i = size_bytes; i-- > 0;)
        sq_text_add_bytes(&m->t, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static void put_count(struct maker *m, uint64_t value)
{
    put(m, value, m->version == 5 ? 8 : 4);
}

static void put_name(struct maker *m, const char *name)
{
    put_count(m, strlen(name));
    sq_text_add(&m->t, name);
    put(m, 0, (unsigned)(-strlen(name) % 4));
}

static void begin_file(struct maker *m, unsigned version, uint64_t records)
{
    *m = (struct maker){.version = version};
    sq_text_add(&m->t, "CDF");
    put(m, version, 1);
    put_count(m, records);
}

static void put_dimension(struct maker *m, const char *name, uint64_t length)
{
    put_name(m, name);
    put_count(m, length);
}

static void put_list(struct maker *m, uint32_t tag, uint64_t count)
{
    put(m, tag, 4);
    put_count(m, count);
}

/* Without attributes. */
static void put_variable(struct maker *m, const char *name, unsigned rank, const uint64_t *dims, uint32_t type, uint64_t begin)
{
    put_name(m, name);
    put_count(m, rank);
    for (unsigned d = 0; d < rank; d++)
        put_count(m, dims[d]);
    put_list(m, 0, 0);
    put(m, type, 4);
    put_count(m, 0xabc); /* a size that is not looked at */
    put(m, begin, m->version == 1 ? 4 : 8);
}

/* time (2 records), x = 3; fixed(x) int, a(time, x) short, b(time) double; an attribute of text and one of two shorts. Values: 1, 2, … */
static void make_small(struct maker *m, unsigned version)
{
    static const uint64_t time_x[] = {0, 1}, x[] = {1};
    size_t header = 0;
    for (int pass = 0; pass < 2; pass++) { /* the places are known when the header is */
        sq_text_done(&m->t);
        begin_file(m, version, 2);
        put_list(m, 10, 2);
        put_dimension(m, "time", 0);
        put_dimension(m, "x", 3);
        put_list(m, 12, 2);
        put_name(m, "title");
        put(m, SQ_NETCDF3_CHAR, 4);
        put_name(m, "small");
        put_name(m, "range");
        put(m, SQ_NETCDF3_SHORT, 4);
        put_count(m, 2);
        put(m, 0xffff0002, 4);
        put_list(m, 11, 3);
        put_variable(m, "fixed", 1, x, SQ_NETCDF3_INT, header);
        put_variable(m, "a", 2, time_x, SQ_NETCDF3_SHORT, header + 12);
        put_variable(m, "b", 1, time_x, SQ_NETCDF3_DOUBLE, header + 20);
        header = m->t.length;
    }
    for (unsigned i = 1; i <= 3; i++)
        put(m, i, 4);
    for (unsigned r = 0; r < 2; r++) {
        for (unsigned i = 1; i <= 3; i++)
            put(m, 3 * r + i, 2);
        put(m, 0xdead, 2);
        put(m, UINT64_C(0x3ff8000000000000) + (uint64_t)r, 8); /* 1.5 and the number after it */
    }
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static int open_bytes(const char *folder, const void *bytes, size_t size, squall_dataset **ret, struct squall_error *err)
{
    const char *path = in_folder(folder, "file.nc");
    write_file(path, bytes, size);
    return squall_dataset_open(context, path, ret, err);
}

static void read_all(squall_dataset *ds, const char *name, void *dst)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_array *a = NULL;
    assert_int_equal(squall_dataset_array(ds, name, &a, &err), 0);
    struct squall_selection s = squall_selection_all(a);
    if (squall_array_read(a, &s, dst, NULL, &err))
        fail_msg("%s", err.message);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------------ */

static void every_version_reads_the_same(void **state)
{
    static const unsigned versions[] = {1, 2, 5};
    for (size_t v = 0; v < 3; v++) {
        struct maker m = {0};
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        int32_t fixed[3];
        int16_t a[6];
        double b[2];
        make_small(&m, versions[v]);
        if (open_bytes(*state, m.t.data, m.t.length, &ds, &err))
            fail_msg("%s", err.message);
        const struct squall_dataset_info info = squall_dataset_info(ds);
        assert_int_equal(info.array_count, 3);
        assert_int_equal(info.problem_count, 0);
        assert_string_equal(info.attributes, "{\"title\":\"small\",\"range\":[-1,2]}");
        read_all(ds, "fixed", fixed);
        read_all(ds, "a", a);
        read_all(ds, "b", b);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fixed[i], i + 1);
        for (int i = 0; i < 6; i++)
            assert_int_equal(a[i], i + 1);
        assert_true(b[0] == 1.5 && b[1] > 1.5 && b[1] < 1.5000001);
        squall_dataset_close(ds);
        sq_text_done(&m.t);
    }
}

static void one_record_variable_alone_is_not_padded(void **state)
{
    static const uint64_t dims[] = {0, 1};
    struct maker m = {0};
    squall_dataset *ds = NULL;
    int8_t values[9];
    begin_file(&m, 1, 3);
    put_list(&m, 10, 2);
    put_dimension(&m, "time", 0);
    put_dimension(&m, "x", 3);
    put_list(&m, 0, 0);
    put_list(&m, 11, 1);
    put_variable(&m, "a", 2, dims, SQ_NETCDF3_BYTE, 100);
    put(&m, 0, (unsigned)(100 - m.t.length));
    for (unsigned i = 1; i <= 9; i++)
        put(&m, i, 1);
    assert_int_equal(open_bytes(*state, m.t.data, m.t.length, &ds, NULL), 0);
    read_all(ds, "a", values);
    for (int i = 0; i < 9; i++)
        assert_int_equal(values[i], i + 1);
    squall_dataset_close(ds);
    sq_text_done(&m.t);
}

static void records_of_a_streamed_file_are_counted(void **state)
{
    static const unsigned versions[] = {1, 5};
    for (size_t v = 0; v < 2; v++) {
        struct maker m = {0};
        squall_dataset *ds = NULL;
        squall_array *a = NULL;
        make_small(&m, versions[v]);
        memset(m.t.data + 4, 0xff, versions[v] == 5 ? 8 : 4);
        assert_int_equal(open_bytes(*state, m.t.data, m.t.length - 3, &ds, NULL), 0); /* the second record is not whole yet */
        assert_int_equal(squall_dataset_info(ds).problem_count, 0);
        assert_int_equal(squall_dataset_array(ds, "a", &a, NULL), 0);
        assert_int_equal(squall_array_info(a).shape[0], 1);
        squall_dataset_close(ds);
        sq_text_done(&m.t);
    }
}

/* Arrays that are small enough are read; what cannot be is an error with words that name the file. */
static void use(squall_dataset *ds)
{
    static uint8_t values[1 << 16];
    for (size_t i = 0; i < squall_dataset_info(ds).array_count; i++) {
        squall_array *a = squall_dataset_array_at(ds, i);
        const struct squall_array_info info = squall_array_info(a);
        struct squall_selection s = squall_selection_all(a);
        struct squall_error err = SQUALL_ERROR_INIT;
        for (unsigned d = 0; d < info.rank; d++)
            s.count[d] = s.count[d] < 4 ? s.count[d] : 4;
        assert_true(info.rank <= 4);
        int status = squall_array_read(a, &s, values, NULL, &err);
        assert_true(!status || err.message[0]);
        if (status == SQUALL_ECORRUPT)
            assert_non_null(strstr(err.message, "file.nc"));
        for (unsigned d = 0; d < info.rank; d++) /* and the last corner */
            s.start[d] = info.shape[d] - s.count[d];
        status = squall_array_read(a, &s, values, NULL, &err);
        assert_true(!status || err.message[0]);
    }
}

static void no_damaged_byte_does_harm(void **state)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x03, 0x7f};
    static const unsigned versions[] = {1, 2, 5};
    for (size_t v = 0; v < 3; v++) {
        struct maker m = {0};
        make_small(&m, versions[v]);
        unsigned refused = 0;
        for (size_t at = 0; at < m.t.length; at++)
            for (size_t c = 0; c < sizeof changes; c++) {
                squall_dataset *ds = NULL;
                struct squall_error err = SQUALL_ERROR_INIT;
                m.t.data[at] = (char)(m.t.data[at] ^ changes[c]);
                int status = open_bytes(*state, m.t.data, m.t.length, &ds, &err);
                m.t.data[at] = (char)(m.t.data[at] ^ changes[c]);
                if (status) {
                    refused++;
                    assert_non_null(strstr(err.message, "file.nc"));
                } else {
                    use(ds);
                }
                squall_dataset_close(ds);
            }
        assert_true(refused > 100);
        sq_text_done(&m.t);
    }
}

static void every_truncation_is_told(void **state)
{
    static const unsigned versions[] = {1, 2, 5};
    for (size_t v = 0; v < 3; v++) {
        struct maker m = {0};
        make_small(&m, versions[v]);
        for (size_t length = 4; length < m.t.length; length++) {
            squall_dataset *ds = NULL;
            struct squall_error err = SQUALL_ERROR_INIT;
            int status = open_bytes(*state, m.t.data, length, &ds, &err);
            if (status) {
                assert_int_equal(status, SQUALL_ECORRUPT);
                assert_non_null(strstr(err.message, "file.nc: byte "));
            } else {
                assert_true(squall_dataset_info(ds).problem_count > 0);
                assert_non_null(strstr(squall_dataset_problem(ds, 0), "truncated"));
                use(ds);
            }
            squall_dataset_close(ds);
        }
        sq_text_done(&m.t);
    }
}

struct placed {
    uint32_t type;
    uint64_t begin;
    const char *reason; /* NULL: it can be read */
};

/* Variables "a", "b", … of x = 4, in a file of 556 bytes; with records, those of an odd name along time = 2 too. */
static void check_places(const char *folder, const struct placed *placed, size_t count, bool records)
{
    static const uint64_t dims[] = {0, 1}, x[] = {1};
    struct maker m = {0};
    squall_dataset *ds = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    begin_file(&m, 2, records ? 2 : 0);
    put_list(&m, 10, 2);
    put_dimension(&m, "time", 0);
    put_dimension(&m, "x", 4);
    put_list(&m, 0, 0);
    put_list(&m, 11, count);
    for (size_t i = 0; i < count; i++)
        put_variable(&m, (const char[]){(char)('a' + i), 0}, records ? 2 : 1, records ? dims : x, placed[i].type, placed[i].begin);
    put(&m, 0, 8);
    while (m.t.length < 556)
        put(&m, 0x55, 1);
    if (open_bytes(folder, m.t.data, m.t.length, &ds, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; i < count; i++) {
        const struct squall_array_info info = squall_array_info(squall_dataset_array_at(ds, i));
        if (!placed[i].reason != !info.unsupported || (info.unsupported && !strstr(info.unsupported, placed[i].reason)))
            fail_msg("variable %zu: %s", i, info.unsupported ? info.unsupported : "accepted");
    }
    use(ds);
    squall_dataset_close(ds);
    sq_text_done(&m.t);
}

static void variables_at_places_that_make_no_sense_are_refused_by_name(void **state)
{
    const struct placed fixed[] = {
        {SQ_NETCDF3_BYTE, 8, "at byte 8, which is within the header"},
        {SQ_NETCDF3_DOUBLE, 510, NULL},
        {SQ_NETCDF3_SHORT, 540, "within variable b"},
        {SQ_NETCDF3_BYTE, 556, "the file ends at 556"},
    };
    const struct placed records[] = {
        {SQ_NETCDF3_INT, 500, NULL},
        {SQ_NETCDF3_SHORT, 510, "within variable a"},
        {SQ_NETCDF3_BYTE, 540, "behind the first record"},
    };
    check_places(*state, fixed, sizeof fixed / sizeof *fixed, false);
    check_places(*state, records, sizeof records / sizeof *records, true);
}

static void sizes_beyond_any_file_are_refused(void **state)
{
    static const uint64_t dims[] = {0, 0, 0, 0};
    struct maker m = {0};
    squall_dataset *ds = NULL;
    begin_file(&m, 5, 0);
    put_list(&m, 10, 1);
    put_dimension(&m, "x", UINT64_C(1) << 40);
    put_list(&m, 0, 0);
    put_list(&m, 11, 2);
    put_variable(&m, "a", 4, dims, SQ_NETCDF3_DOUBLE, 500);
    put_variable(&m, "b", 1, dims, SQ_NETCDF3_DOUBLE, 508);
    put(&m, 0, 8);
    while (m.t.length < 556)
        put(&m, 0, 1);
    assert_int_equal(open_bytes(*state, m.t.data, m.t.length, &ds, NULL), 0);
    assert_non_null(strstr(squall_array_info(squall_dataset_array_at(ds, 0)).unsupported, "larger than any file"));
    assert_null(squall_array_info(squall_dataset_array_at(ds, 1)).unsupported);
    assert_int_equal(squall_dataset_info(ds).problem_count, 2); /* b goes on behind the file's end */
    use(ds);
    squall_dataset_close(ds);
    sq_text_done(&m.t);
}

static void text_that_is_no_utf8_reads_as_pythons_does(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xe9t\xe9", "\xef\xbf\xbdt\xef\xbf\xbd"},
        {"\xf0\x9f\x98", "\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82x", "\xef\xbf\xbdx"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_text t = SQ_TEXT_INIT;
        sq_text_add_utf8(&t, cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(sq_text_string(&t), cases[i].expected);
        sq_text_done(&t);
    }
    struct sq_text t = SQ_TEXT_INIT;
    sq_text_add_utf8(&t, "a\0b", 3);
    assert_string_equal(sq_text_string(&t), "ab");
    sq_text_done(&t);
}

/* time (3 records), x = 4; a(time, x) short, b(x) double */
static int make_for_writing(const char *path, struct squall_error *err)
{
    static const struct squall_netcdf_dimension dimensions[] = {{"time", 3, 1}, {"x", 4, 0}};
    static const char *const dims[] = {"time", "x"};
    static const struct squall_netcdf_variable variables[] = {
        {"a", "int16", 2, dims, "{\"units\":\"K\",\"valid_range\":[0,9]}", "{\"valid_range\":\"<i2\"}"},
        {"b", "<f8", 1, dims + 1, NULL, NULL},
    };
    const struct squall_netcdf_spec spec = {dimensions, 2, variables, 2, "{\"title\":\"made\"}", NULL};
    return squall_netcdf_create(path, &spec, err);
}

static void regions_in_any_strides_land_where_they_belong(void **state)
{
    static const int16_t columns[] = {1, 2, 3, 4, 5, 6}; /* two columns, the last record first */
    static const int64_t strides[] = {-2, 6};
    static const double one = 2.5;
    static const int64_t still[] = {0};
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    squall_array *a = NULL, *b = NULL;
    int16_t got[12];
    double doubles[4];
    const char *path = in_folder(*state, "written.nc");
    if (make_for_writing(path, &err) || squall_store_open(context, path, NULL, &ds, &err))
        fail_msg("%s", err.message);
    assert_int_equal(make_for_writing(path, &err), SQUALL_EREFUSED);
    assert_int_equal(squall_dataset_array(ds, "a", &a, NULL) || squall_dataset_array(ds, "b", &b, NULL), 0);
    const struct squall_selection s = {.start = {0, 1}, .count = {3, 2}, .step = {1, 2}}, all = squall_selection_all(b);
    assert_int_equal(squall_array_write(a, &s, columns + 2, strides, &err), 0);
    assert_int_equal(squall_array_write(b, &all, &one, still, &err), 0);
    read_all(ds, "a", got);
    read_all(ds, "b", doubles);
    static const int16_t expected[] = {0, 3, 0, 6, 0, 2, 0, 5, 0, 1, 0, 4};
    assert_memory_equal(got, expected, sizeof expected);
    for (int i = 0; i < 4; i++)
        assert_true(doubles[i] == one);
    assert_true(squall_selection_is_aligned(a, &s));
    squall_dataset_close(ds);
}

static void records_are_added_filled_and_nothing_else_grows(void **state)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    squall_array *a = NULL, *b = NULL;
    int16_t got[20];
    const char *path = in_folder(*state, "grown.nc");
    if (make_for_writing(path, &err) || squall_store_open(context, path, NULL, &ds, &err))
        fail_msg("%s", err.message);
    assert_int_equal(squall_dataset_array(ds, "a", &a, NULL) || squall_dataset_array(ds, "b", &b, NULL), 0);
    assert_int_equal(squall_array_resize(a, (const uint64_t[]){5, 4}, &err), 0);
    read_all(ds, "a", got);
    for (int i = 0; i < 20; i++)
        assert_int_equal(got[i], i < 12 ? 0 : -32767);
    assert_int_equal(squall_array_info(a).shape[0], 5);
    assert_int_equal(squall_array_resize(a, (const uint64_t[]){5, 5}, &err), SQUALL_EUNSUPPORTED);
    assert_int_equal(squall_array_resize(a, (const uint64_t[]){4, 4}, &err), SQUALL_EUNSUPPORTED);
    assert_int_equal(squall_array_resize(b, (const uint64_t[]){5}, &err), SQUALL_EUNSUPPORTED);
    assert_int_equal(squall_array_resize(a, (const uint64_t[]){UINT64_MAX, 4}, &err), SQUALL_EINVAL);
    squall_dataset_close(ds);
}

static void every_failed_allocation_of_a_header_leaves_no_file(void **state)
{
    const char *path = in_folder(*state, "failed.nc");
    bool failed = true, exists = true;
    for (long after = 0; failed; after++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        sq_fail_allocation(after);
        int status = make_for_writing(path, &err);
        sq_fail_allocation(-1);
        failed = status != 0;
        assert_int_equal(sq_file_exists(path, &exists, NULL), 0);
        assert_true(exists == !failed && (!failed || status == SQUALL_ENOMEM));
    }
}

static void pages_that_somebody_holds_are_held_whole(void **state)
{
    const char *path = in_folder(*state, "pages");
    const off_t page = (off_t)sysconf(_SC_PAGESIZE);
    struct sq_file_identity id;
    int one = -1, other = -1;
    assert_int_equal(sq_file_create(path, "x", 1, (uint64_t)page * 3, NULL), 0);
    assert_int_equal(sq_file_open_to_write(path, &one, &id, NULL) || sq_file_open_to_write(path, &other, &id, NULL), 0);
    assert_false(sq_file_is_remote(one));
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            assert_int_equal(sq_file_hold_pages(one, path, (uint64_t)page + 10, 1, NULL), 0);
        else
            assert_int_equal(sq_file_release_pages(one, path, (uint64_t)page + 10, 1, NULL), 0);
        const off_t places[] = {page - 1, page, 2 * page - 1, 2 * page};
        for (int i = 0; i < 4; i++) {
            struct flock look = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = places[i], .l_len = 1};
            assert_int_equal(fcntl(other, F_OFD_GETLK, &look), 0);
            assert_int_equal(look.l_type, round == 0 && (i == 1 || i == 2) ? F_WRLCK : F_UNLCK);
        }
    }
    assert_int_equal(sq_file_close_written(one, path, NULL) || sq_file_close_written(other, path, NULL), 0);
}

/* Which elements of a (3 × 4) regions have; the boxes that are told must be the others, each once. */
static void check_missing(const char *path, const bool covered[12], struct squall_error *err)
{
    struct sq_json *missing = NULL;
    bool seen[12];
    memcpy(seen, covered, sizeof seen);
    if (sq_partial_missing(context, path, &missing, err))
        fail_msg("%s", err->message);
    const struct sq_json *boxes = sq_json_get(missing, "a");
    for (size_t i = 0; i < sq_json_count(boxes); i++) {
        int64_t ends[2][2];
        for (size_t d = 0; d < 2; d++)
            for (size_t k = 0; k < 2; k++)
                assert_true(sq_json_int(sq_json_at(sq_json_at(sq_json_at(boxes, i), d), k), &ends[d][k]));
        for (int64_t y = ends[0][0]; y < ends[0][1]; y++)
            for (int64_t x = ends[1][0]; x < ends[1][1]; x++) {
                assert_false(seen[y * 4 + x]);
                seen[y * 4 + x] = true;
            }
    }
    for (int i = 0; i < 12; i++)
        assert_true(seen[i]);
    sq_json_free(missing);
}

static void what_no_region_has_is_found(void **state)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    const char *path = in_folder(*state, ".many.nc.partial"), *list = in_folder(*state, ".many.nc.partial.regions-here-1");
    assert_int_equal(make_for_writing(path, &err), 0);
    uint32_t random = 5;
    for (int round = 0; round < 300; round++) {
        bool covered[12] = {false};
        struct sq_text lines = SQ_TEXT_INIT;
        for (int n = round % 4; n > 0; n--) {
            unsigned part[2][3];
            for (unsigned d = 0; d < 2; d++) {
                const unsigned length = d ? 4 : 3;
                random = random * 1664525 + 1013904223;
                part[d][0] = (random >> 8) % length;
                part[d][2] = 1 + (random >> 16) % 3;
                part[d][1] = 1 + (random >> 20) % ((length - part[d][0] - 1) / part[d][2] + 1);
            }
            for (unsigned y = 0; y < part[0][1]; y++)
                for (unsigned x = 0; x < part[1][1]; x++)
                    covered[(part[0][0] + y * part[0][2]) * 4 + part[1][0] + x * part[1][2]] = true;
            sq_text_printf(&lines, "{\"variable\": \"a\", \"region\": [[%u, %u, %u], [%u, %u, %u]]}\n", part[0][0], part[0][1], part[0][2],
                           part[1][0], part[1][1], part[1][2]);
        }
        sq_text_add(&lines, "nonsense\n{\"variable\": \"a\", \"region\": [[0, 9, 1], [0, 4, 1]]}\n{\"variable\": \"a\", \"region\": "
                            "[[0, 18446744073709551615, 18446744073709551615], [-1, 0, 0]]}\n[]\n{\"variable\": \"a\", \"region\": [[0, 3, "
                            "1], [0, 4, 1]]}");
        file_put(list, sq_text_string(&lines));
        sq_text_done(&lines);
        check_missing(path, covered, &err);
    }
}

static void every_failed_allocation_of_an_opening_is_an_error(void **state)
{
    struct maker m = {0};
    make_small(&m, 5);
    const char *path = in_folder(*state, "file.nc");
    write_file(path, m.t.data, m.t.length);
    bool failed = true;
    for (long after = 0; failed; after++) {
        squall_dataset *ds = NULL;
        struct squall_error err = SQUALL_ERROR_INIT;
        sq_fail_allocation(after);
        int status = squall_dataset_open(context, path, &ds, &err);
        sq_fail_allocation(-1);
        failed = status != 0;
        if (failed)
            assert_int_equal(status, SQUALL_ENOMEM);
        squall_dataset_close(ds);
        assert_true(after < 10000);
    }
    sq_text_done(&m.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_reads_the_same),
        cmocka_unit_test(one_record_variable_alone_is_not_padded),
        cmocka_unit_test(records_of_a_streamed_file_are_counted),
        cmocka_unit_test(no_damaged_byte_does_harm),
        cmocka_unit_test(every_truncation_is_told),
        cmocka_unit_test(variables_at_places_that_make_no_sense_are_refused_by_name),
        cmocka_unit_test(sizes_beyond_any_file_are_refused),
        cmocka_unit_test(text_that_is_no_utf8_reads_as_pythons_does),
        cmocka_unit_test(regions_in_any_strides_land_where_they_belong),
        cmocka_unit_test(records_are_added_filled_and_nothing_else_grows),
        cmocka_unit_test(every_failed_allocation_of_a_header_leaves_no_file),
        cmocka_unit_test(pages_that_somebody_holds_are_held_whole),
        cmocka_unit_test(what_no_region_has_is_found),
        cmocka_unit_test(every_failed_allocation_of_an_opening_is_an_error),
    };
    return cmocka_run_group_tests_name("netcdf3", tests, set_up, tear_down);
}
