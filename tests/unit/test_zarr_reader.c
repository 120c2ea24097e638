/* Zarr metadata of both versions: what is read, what is refused by name, what damage costs, and keys that try to leave the store. */
#include "support/unit.h"

#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/zarr_array.h"
#include "format/zarr/fill.h"
#include "format/zarr/metadata.h"
#include "support/json.h"
#include "support/zarr_files.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define BYTES         "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
#define GRID(lengths) "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" lengths "}}"
#define KEYS          "{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}}"

#define SIZED(name, bytes)      "{\"name\":\"" name "\",\"configuration\":{\"length_bytes\":" bytes "}}"
#define TIME(name, unit, scale) "{\"name\":\"numpy." name "\",\"configuration\":{\"unit\":\"" unit "\",\"scale_factor\":" scale "}}"
#define RECTILINEAR(axes)       "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\",\"chunk_shapes\":" axes "}}"
#define STRUCT(fields)          "{\"name\":\"struct\",\"configuration\":{\"fields\":[" fields "]}}"

static struct squall_context context = {.threads = 1, .memory_bytes = 1 << 30};

/* ---- documents -------------------------------------------------------------------------------------------------------------------- */

static int parse_array(int version, const char *text, const char *attributes, struct sq_zarr_array *a, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *document = parsed(text);
    SQ_CLEANUP_JSON struct sq_json *more = attributes ? parsed(attributes) : NULL;
    *a = (struct sq_zarr_array){0};
    return version == 3 ? sq_zarr_parse_v3(document, a, err) : sq_zarr_parse_v2(document, more, a, err);
}

static struct squall_dataset *opened(const char *name)
{
    SQ_CLEANUP_FREE char *path = in_test_folder(name);
    struct squall_dataset *ds = NULL;
    struct squall_error err = SQUALL_ERROR_INIT;
    must(sq_zarr_dataset_open(&context, path, &ds, &err), &err);
    return ds;
}

/* A v3 document with one member replaced: {"shape":[4,6],…}. value NULL: left out. */
static char *v3_document(const char *member, const char *value)
{
    static const char *const MEMBERS[][2] = {
        {"zarr_format", "3"},          {"node_type", "\"array\""}, {"shape", "[4,6]"},           {"data_type", "\"float32\""},
        {"chunk_grid", GRID("[2,4]")}, {"fill_value", "0"},        {"chunk_key_encoding", KEYS}, {"codecs", BYTES},
    };
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    bool replaced = false;
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        bool here = !strcmp(MEMBERS[i][0], member);
        replaced = replaced || here;
        if (!here || value)
            sq_text_printf(&text, "%s\"%s\":%s", text.length ? "," : "{", MEMBERS[i][0], here ? value : MEMBERS[i][1]);
    }
    if (!replaced && value)
        sq_text_printf(&text, ",\"%s\":%s", member, value);
    sq_text_add(&text, "}");
    return sq_text_release(&text);
}

static char *v2_document(const char *member, const char *value)
{
    static const char *const MEMBERS[][2] = {
        {"zarr_format", "2"}, {"shape", "[4,6]"}, {"chunks", "[2,4]"},    {"dtype", "\"<f4\""},
        {"fill_value", "0"},  {"order", "\"C\""}, {"compressor", "null"}, {"filters", "null"},
    };
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    bool replaced = false;
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++) {
        bool here = !strcmp(MEMBERS[i][0], member);
        replaced = replaced || here;
        if (!here || value)
            sq_text_printf(&text, "%s\"%s\":%s", text.length ? "," : "{", MEMBERS[i][0], here ? value : MEMBERS[i][1]);
    }
    if (!replaced && value)
        sq_text_printf(&text, ",\"%s\":%s", member, value);
    sq_text_add(&text, "}");
    return sq_text_release(&text);
}

static char *document_of(int version, const char *member, const char *value)
{
    return version == 3 ? v3_document(member, value) : v2_document(member, value);
}

/* The document with another fill value, which was 0. */
static char *with_fill(const char *document, const char *fill)
{
    static const char ZERO[] = "\"fill_value\":0";
    const char *at = strstr(document, ZERO);
    return sq_format("%.*s\"fill_value\":%s%s", (int)(at - document), document, fill, at + sizeof ZERO - 1);
}

static void a_v3_array_is_described(void **state)
{
    (void)state;
    struct sq_zarr_array a;
    struct squall_error err = SQUALL_ERROR_INIT;
    SQ_CLEANUP_FREE char *text = v3_document("dimension_names", "[\"y\",null]");
    if (parse_array(3, text, NULL, &a, &err))
        fail_msg("%s", err.message);
    assert_int_equal(a.dtype.type, SQUALL_FLOAT32);
    assert_string_equal(a.type_name, "float32");
    assert_int_equal(a.rank, 2);
    assert_true(a.shape[0] == 4 && a.shape[1] == 6 && a.chunks[0] == 2 && a.chunks[1] == 4 && a.chunk_elements == 8);
    assert_string_equal(a.dims[0], "y");
    assert_string_equal(a.dims[1], "");
    assert_null(a.unsupported);
    assert_non_null(a.codecs);
    SQ_CLEANUP_FREE char *key = sq_zarr_chunk_key(&a, (uint64_t[]){1, 0});
    assert_string_equal(key, "c/1/0");
    sq_zarr_array_done(&a);
}

static void a_v2_array_is_described_with_xarrays_names(void **state)
{
    (void)state;
    struct sq_zarr_array a;
    struct squall_error err = SQUALL_ERROR_INIT;
    SQ_CLEANUP_FREE char *text = v2_document("dtype", "\">i2\"");
    if (parse_array(2, text, "{\"units\":\"K\",\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"]}", &a, &err))
        fail_msg("%s", err.message);
    assert_int_equal(a.dtype.type, SQUALL_INT16);
    assert_string_equal(a.type_name, "int16");
    assert_string_equal(a.dims[0], "y");
    assert_string_equal(a.dims[1], "x");
    assert_null(sq_json_get(a.attributes, "_ARRAY_DIMENSIONS"));
    assert_string_equal(sq_json_string(sq_json_get(a.attributes, "units")), "K");
    SQ_CLEANUP_FREE char *key = sq_zarr_chunk_key(&a, (uint64_t[]){1, 0});
    assert_string_equal(key, "1.0");
    sq_zarr_array_done(&a);
}

static void chunk_keys_follow_their_encoding(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *member, *value, *shape, *chunks, *expected;
    } cases[] = {
        {3, "chunk_key_encoding", "\"default\"", NULL, NULL, "c/1/0"},
        {3, "chunk_key_encoding", "{\"name\":\"default\"}", NULL, NULL, "c/1/0"},
        {3, "chunk_key_encoding", "{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}}", NULL, NULL, "c.1.0"},
        {3, "chunk_key_encoding", "\"v2\"", NULL, NULL, "1.0"},
        {3, "chunk_key_encoding", "{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}}", NULL, NULL, "1/0"},
        {2, "dimension_separator", "\"/\"", NULL, NULL, "1/0"},
        {2, "dimension_separator", "\".\"", NULL, NULL, "1.0"},
        {2, "dimension_separator", "null", NULL, NULL, "1.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        SQ_CLEANUP_FREE char *text = document_of(cases[i].version, cases[i].member, cases[i].value);
        assert_int_equal(parse_array(cases[i].version, text, NULL, &a, NULL), 0);
        SQ_CLEANUP_FREE char *key = sq_zarr_chunk_key(&a, (uint64_t[]){1, 0});
        assert_string_equal(key, cases[i].expected);
        a.rank = 0;
        SQ_CLEANUP_FREE char *scalar = sq_zarr_chunk_key(&a, NULL);
        assert_string_equal(scalar, a.default_encoding ? "c" : "0");
        sq_zarr_array_done(&a);
    }
}

/* type, size in memory, and what numpy calls it */
static void every_type_is_described(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *value, *fill;
        enum squall_type type;
        unsigned bytes, order;
        const char *name, *numpy;
    } cases[] = {
        {3, "\"bool\"", "true", SQUALL_BOOL, 1, 1, "bool", "|b1"},
        {3, "{\"name\":\"uint64\"}", "0", SQUALL_UINT64, 8, 8, "uint64", "<u8"},
        {3, "{\"name\":\"int8\",\"configuration\":{}}", "0", SQUALL_INT8, 1, 1, "int8", "|i1"},
        {3, "\"bfloat16\"", "0", SQUALL_BFLOAT16, 2, 2, "bfloat16", "bfloat16"},
        {3, "\"complex64\"", "[0,0]", SQUALL_COMPLEX64, 8, 4, "complex64", "<c8"},
        {3, "\"complex_float64\"", "[0,0]", SQUALL_COMPLEX128, 16, 8, "complex128", "<c16"},
        {3, "\"int4\"", "-8", SQUALL_INT4, 1, 1, "int4", "|i1"},
        {3, "\"uint2\"", "3", SQUALL_UINT2, 1, 1, "uint2", "|u1"},
        {3, "\"r24\"", "[1,2,3]", SQUALL_RAW, 3, 1, "|V3", "|V3"},
        {3, SIZED("raw_bytes", "5"), "\"AQIDBAU=\"", SQUALL_RAW, 5, 1, "|V5", "|V5"},
        {3, SIZED("null_terminated_bytes", "5"), "\"YWI=\"", SQUALL_RAW, 5, 1, "|S5", "|S5"},
        {3, SIZED("fixed_length_utf32", "12"), "\"ab\"", SQUALL_TEXT, 12, 4, "<U3", "<U3"},
        {3, TIME("datetime64", "ms", "1"), "\"NaT\"", SQUALL_DATETIME64, 8, 8, "datetime64[ms]", "<M8[ms]"},
        {3, TIME("datetime64", "\xce\xbcs", "25"), "0", SQUALL_DATETIME64, 8, 8, "datetime64[25us]", "<M8[25us]"},
        {3, TIME("timedelta64", "generic", "1"), "0", SQUALL_TIMEDELTA64, 8, 8, "timedelta64", "<m8"},
        {3, STRUCT("{\"name\":\"x\",\"data_type\":\"int32\"},{\"name\":\"it's\",\"data_type\":\"bool\"}"), "{\"x\":1,\"it's\":true}",
         SQUALL_RAW, 5, 1, "[('x', '<i4'), ('it\\'s', '|b1')]", "[('x', '<i4'), ('it\\'s', '|b1')]"},
        {3,
         "{\"name\":\"structured\",\"configuration\":{\"fields\":[[\"t\"," TIME("datetime64", "D", "1") "],[\"n\"," STRUCT(
             "[\"u\"," SIZED("fixed_length_utf32", "8") "]") "]]}}",
         "\"\"", SQUALL_RAW, 16, 1, "[('t', '<M8[D]'), ('n', [('u', '<U2')])]", "[('t', '<M8[D]'), ('n', [('u', '<U2')])]"},
        {2, "\"|b1\"", "false", SQUALL_BOOL, 1, 1, "bool", "|b1"},
        {2, "\">f8\"", "1e300", SQUALL_FLOAT64, 8, 8, "float64", "<f8"},
        {2, "\">c16\"", "[\"NaN\",0.0]", SQUALL_COMPLEX128, 16, 8, "complex128", "<c16"},
        {2, "\"|S7\"", "\"\"", SQUALL_RAW, 7, 1, "|S7", "|S7"},
        {2, "\"|V2\"", "\"AAE=\"", SQUALL_RAW, 2, 1, "|V2", "|V2"},
        {2, "\">U4\"", "\"\"", SQUALL_TEXT, 16, 4, "<U4", "<U4"},
        {2, "\"<M8[ns]\"", "null", SQUALL_DATETIME64, 8, 8, "datetime64[ns]", "<M8[ns]"},
        {2, "\">m8[10D]\"", "-1", SQUALL_TIMEDELTA64, 8, 8, "timedelta64[10D]", "<m8[10D]"},
        {2, "\"<M8\"", "0", SQUALL_DATETIME64, 8, 8, "datetime64", "<M8"},
        {2, "[[\"a\",\">i4\"],[\"\",\"|V4\"],[\"b\",[[\"x\",\"<f8\"]]],[\"c\",\"|u1\",[2,3]]]", "null", SQUALL_RAW, 22, 1,
         "[('a', '>i4'), ('', '|V4'), ('b', [('x', '<f8')]), ('c', '|u1', (2, 3, ))]",
         "[('a', '>i4'), ('', '|V4'), ('b', [('x', '<f8')]), ('c', '|u1', (2, 3, ))]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *document = document_of(cases[i].version, cases[i].version == 3 ? "data_type" : "dtype", cases[i].value);
        SQ_CLEANUP_FREE char *text = with_fill(document, cases[i].fill);
        if (parse_array(cases[i].version, text, NULL, &a, &err))
            fail_msg("%s: %s", text, err.message);
        if (a.unsupported && strncmp(a.unsupported, "unsupported codec", 17) != 0)
            fail_msg("%s: %s", text, a.unsupported);
        assert_int_equal(a.dtype.type, cases[i].type);
        assert_int_equal(a.dtype.element_bytes, cases[i].bytes);
        assert_int_equal(a.dtype.order_bytes, cases[i].order);
        assert_string_equal(a.type_name, cases[i].name);
        assert_string_equal(a.numpy_type, cases[i].numpy);
        assert_non_null(a.fill);
        sq_zarr_array_done(&a);
    }
}

/* v2's objects are what their first filter makes of them, and nothing that runs code. */
static void objects_are_texts_or_bytes_by_their_filter(void **state)
{
    (void)state;
    const struct {
        const char *filter;
        int type; /* −1: refused */
    } cases[] = {
        {"vlen-utf8", SQUALL_STRING}, {"vlen-bytes", SQUALL_BYTES}, {"pickle", -1}, {"json2", -1}, {"msgpack2", -1}, {"vlen-array", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        SQ_CLEANUP_FREE char *text =
            sq_format("{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|O\",\"fill_value\":0,\"order\":"
                      "\"C\",\"compressor\":null,\"filters\":[{\"id\":\"%s\"}]}",
                      cases[i].filter);
        SQ_CLEANUP_FREE char *reason = sq_format("unsupported data type |O of %s", cases[i].filter);
        assert_int_equal(parse_array(2, text, NULL, &a, NULL), 0);
        if (cases[i].type < 0)
            assert_string_equal(a.unsupported, reason);
        else
            assert_int_equal(a.dtype.type, cases[i].type);
        sq_zarr_array_done(&a);
    }
}

static void what_is_not_read_is_named(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *member, *value, *reason;
    } cases[] = {
        {3, "data_type", "\"float8_e4m3\"", "unsupported data type float8_e4m3"},
        {3, "data_type", "{\"name\":\"optional\",\"configuration\":{\"name\":\"uint8\"}}", "unsupported data type optional"},
        {3, "data_type", "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":1048577}}", "unsupported data type |V1048577"},
        {3, "data_type", STRUCT("{\"name\":\"a\",\"data_type\":\"string\"}"), "unsupported data type: a structure with string"},
        {3, "data_type", STRUCT("{\"name\":\"a\",\"data_type\":\"int4\"}"), "unsupported data type: a structure with int4"},
        {3, "data_type", STRUCT("{\"name\":\"a\",\"data_type\":\"new\"}"), "unsupported data type new"},
        {3, "chunk_grid", "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"file\"}}",
         "unsupported chunk grid rectilinear of kind file"},
        {3, "chunk_grid", "{\"name\":\"hexagonal\"}", "unsupported chunk grid hexagonal"},
        {3, "chunk_key_encoding", "{\"name\":\"fancy\"}", "unsupported chunk key encoding fancy"},
        {3, "codecs", "[{\"name\":\"zfp\",\"configuration\":{}}]", "unsupported codec zfp"},
        {3, "codecs", "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":\"numcodecs.pcodec\"}]",
         "unsupported codec numcodecs.pcodec"},
        {3, "storage_transformers", "[{\"name\":\"cache\"}]", "unsupported storage transformer cache"},
        {3, "novelty", "{\"must_understand\":true}", "unsupported extension novelty"},
        {3, "novelty", "7", "unsupported extension novelty"},
        {3, "chunk_grid", GRID("[1099511627776,4]"), "unsupported chunk size: more than 1 TiB"},
        {3, "chunk_grid", GRID("[9223372036854775807,9223372036854775807]"), "unsupported chunk size: more than 1 TiB"},
        {2, "dtype", "\"<M8[month]\"", "unsupported data type <M8[month]"},
        {2, "dtype", "\"<M8[0s]\"", "unsupported data type <M8[0s]"},
        {2, "dtype", "\"<M8[ns\"", "unsupported data type <M8[ns"},
        {2, "dtype", "\"<c32\"", "unsupported data type <c32"},
        {2, "dtype", "\"<f16\"", "unsupported data type <f16"},
        {2, "dtype", "\"=i4\"", "unsupported data type =i4"},
        {2, "dtype", "\"|S0\"", "unsupported data type |S0"},
        {2, "dtype", "\"<U9999999999\"", "unsupported data type <U9999999999"},
        {2, "dtype", "\"|O\"", "unsupported data type |O"},
        {2, "dtype", "\"<U0\"", "unsupported data type <U0"},
        {2, "dtype", "\"\"", "unsupported data type "},
        {2, "dtype", "[[\"a\",\"|O\"]]", "unsupported data type |O"},
        {2, "dtype", "[[\"a\",\"<i4\",[1048577]]]", "unsupported data type: a field with no elements, or more than 1048576"},
        {2, "dtype", "[[\"a\",\"<i4\",[262144]],[\"b\",\"|u1\"]]", "unsupported data type: elements of more than 1048576 bytes"},
        {2, "compressor", "{\"id\":\"zfpy\"}", "unsupported codec zfpy"},
        {2, "zarr_format", "1", "unsupported zarr_format 1 in a .zarray"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *text = document_of(cases[i].version, cases[i].member, cases[i].value);
        if (parse_array(cases[i].version, text, NULL, &a, &err))
            fail_msg("%s: %s", text, err.message);
        assert_non_null(a.unsupported);
        assert_string_equal(a.unsupported, cases[i].reason);
        assert_null(a.codecs);
        assert_non_null(a.codec_names);
        assert_non_null(a.type_name);
        sq_zarr_array_done(&a);
    }
}

static void what_may_be_ignored_is(void **state)
{
    (void)state;
    const char *cases[][2] = {
        {"novelty", "{\"must_understand\":false,\"x\":[1,2]}"},
        {"storage_transformers", "[]"},
        {"storage_transformers", "[{\"name\":\"cache\",\"must_understand\":false}]"},
        {"consolidated_metadata", "{\"must_understand\":false}"},
        {"attributes", "{}"},
        {"dimension_names", "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        SQ_CLEANUP_FREE char *text = v3_document(cases[i][0], cases[i][1]);
        assert_int_equal(parse_array(3, text, NULL, &a, NULL), 0);
        assert_null(a.unsupported);
        sq_zarr_array_done(&a);
    }
}

static void rectilinear_grids_are_expanded(void **state)
{
    (void)state;
    const struct {
        const char *axes;
        uint64_t chunks[2], edges[2][8]; /* edges all 0: regular */
    } cases[] = {
        {RECTILINEAR("[4,[1,2,3]]"), {4, 3}, {{0}, {0, 1, 3, 6}}},
        {RECTILINEAR("[[4],[[1,3],3]]"), {4, 3}, {{0}, {0, 1, 2, 3, 6}}},
        {RECTILINEAR("[[[2,2]],[[3,1000000000000],7]]"), {2, 3}, {{0}, {0}}},
        {RECTILINEAR("[[1,9,9],[4,4,4]]"), {9, 4}, {{0, 1, 10}, {0}}}, /* chunks behind the array hold nothing */
        {GRID("[[3,1],4]"), {3, 4}, {{0, 3, 4}, {0}}},                 /* zarr-python 3.2 */
        {RECTILINEAR("[[9223372036854775807],[1,9223372036854775807]]"), {INT64_MAX, INT64_MAX}, {{0}, {0, 1, UINT64_C(1) << 63}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *text = v3_document("chunk_grid", cases[i].axes);
        if (parse_array(3, text, NULL, &a, &err))
            fail_msg("%s: %s", text, err.message);
        for (unsigned d = 0; d < 2; d++) {
            assert_true(a.chunks[d] == cases[i].chunks[d]);
            assert_int_equal(a.edges[d] != NULL, cases[i].edges[d][1] != 0);
            for (uint64_t k = 0; k < a.edge_counts[d]; k++)
                assert_true(a.edges[d][k] == cases[i].edges[d][k]);
            assert_true(!a.edges[d] || a.edges[d][a.edge_counts[d] - 1] >= a.shape[d]);
        }
        sq_zarr_array_done(&a);
    }
}

/* A few bytes of JSON must not become gigabytes of edges. */
static void runs_of_very_many_chunks_are_refused(void **state)
{
    (void)state;
    struct sq_zarr_array a;
    const char *text = "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[9000000000000000000],\"data_type\":\"int8\",\"fill_value\":0,"
                       "\"chunk_key_encoding\":\"default\",\"codecs\":[\"bytes\"],"
                       "\"chunk_grid\":" RECTILINEAR("[[2,[1,9000000000000000000]]]") "}";
    assert_int_equal(parse_array(3, text, NULL, &a, NULL), 0);
    assert_string_equal(a.unsupported, "unsupported chunk grid: more than 1048576 chunks along a dimension");
    sq_zarr_array_done(&a);
}

static void damaged_documents_are_refused(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *member, *value, *reason;
    } cases[] = {
        {3, "shape", NULL, "its shape is no list"},
        {3, "shape", "[4,-6]", "its shape: its length 2"},
        {3, "shape", "[4,6.5]", "its shape: its length 2"},
        {3, "shape", "[4,9223372036854775808]", "its shape: its length 2"},
        {3, "shape", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "33 dimensions"},
        {3, "shape", "[4]", "its chunks have 2 dimensions, the array has 1"},
        {3, "data_type", NULL, "its data type has no name"},
        {3, "data_type", "7", "its data type has no name"},
        {3, "data_type", "{\"name\":\"fixed_length_utf32\"}", "no length"},
        {3, "data_type", "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":6}}", "no length"},
        {3, "data_type", "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":0}}", "no length"},
        {3, "data_type", "\"r12\"", "its data type r12 is no whole number of bytes"},
        {3, "data_type", "\"r0\"", "its data type r0 is no whole number of bytes"},
        {3, "data_type", "{\"name\":\"numpy.datetime64\",\"configuration\":{\"scale_factor\":1}}", "no unit of time"},
        {3, "data_type", "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":0}}", "no scale"},
        {3, "data_type", "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":2147483648}}", "no scale"},
        {3, "data_type", STRUCT(""), "a structure without fields"},
        {3, "data_type", STRUCT("{\"data_type\":\"int8\"}"), "a field of its data type has no name"},
        {3, "data_type", STRUCT("{\"name\":\"a\"}"), "its data type has no name"},
        {3, "data_type", STRUCT("[\"a\",\"int8\"],[\"a\",\"int8\"]"), "two fields of its data type are called a"},
        {2, "dtype", "[]", "a structure without fields"},
        {2, "dtype", "[[\"a\",\"<i4\",[\"x\"]]]", "is no list of lengths"},
        {2, "dtype", "[[[\"title\",\"a\"],\"<i4\"]]", "a field of its data type has no name"},
        {3, "chunk_grid", NULL, "its chunk grid has no name"},
        {3, "chunk_grid", GRID("[0,4]"), "its chunks have length 0 along dimension 1"},
        {3, "chunk_grid", "{\"name\":\"regular\"}", "its chunk shape is no list"},
        {3, "chunk_grid", RECTILINEAR("[4]"), "its chunk grid does not list chunks for each of 2 dimensions"},
        {3, "chunk_grid", RECTILINEAR("[4,0]"), "dimension 2 is neither a length above 0 nor a list"},
        {3, "chunk_grid", RECTILINEAR("[4,[3,2]]"), "dimension 2: its chunks have 5 elements, the array 6"},
        {3, "chunk_grid", RECTILINEAR("[4,[3,0,3]]"), "dimension 2: entry 2 is neither"},
        {3, "chunk_grid", RECTILINEAR("[4,[[3,-2]]]"), "dimension 2: entry 1 is neither"},
        {3, "chunk_grid", RECTILINEAR("[4,[[3,2,1]]]"), "dimension 2: entry 1 is neither"},
        {3, "chunk_grid", RECTILINEAR("[4,[[[3,2],1]]]"), "dimension 2: entry 1 is neither"},
        {3, "chunk_grid", RECTILINEAR("[4,[1.5,6]]"), "dimension 2: entry 1 is neither"},
        {3, "chunk_key_encoding", NULL, "its chunk key encoding has no name"},
        {3, "chunk_key_encoding", "{\"name\":\"default\",\"configuration\":{\"separator\":\"..\"}}", "neither / nor ."},
        {3, "chunk_key_encoding", "{\"name\":\"default\",\"configuration\":{\"separator\":7}}", "neither / nor ."},
        {3, "fill_value", NULL, "it has no fill value"},
        {3, "fill_value", "\"hot\"", "its fill value is no float32"},
        {3, "codecs", NULL, "its codecs are no list"},
        {3, "codecs", "[]", "its codecs are no list"},
        {3, "codecs", "[{}]", "its codec 1 has no name"},
        {3, "attributes", "[]", "its attributes are no object"},
        {3, "dimension_names", "[\"y\"]", "its dimension names"},
        {3, "dimension_names", "[\"y\",7]", "the name of its dimension 2"},
        {2, "chunks", "[2]", "its chunks have 1 dimensions"},
        {2, "dtype", NULL, "its dtype"},
        {2, "order", NULL, "its order is neither C nor F"},
        {2, "dimension_separator", "\"\"", "its dimension separator"},
        {2, "fill_value", "\"hot\"", "its fill value is no float32"},
        {2, "compressor", "{}", "has no id"},
        {2, "filters", "7", "its filters are no list"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *text = document_of(cases[i].version, cases[i].member, cases[i].value);
        if (parse_array(cases[i].version, text, NULL, &a, &err) != SQUALL_ECORRUPT)
            fail_msg("%s was taken", text);
        if (!strstr(err.message, cases[i].reason))
            fail_msg("%s: %s, expected %s", text, err.message, cases[i].reason);
        sq_zarr_array_done(&a);
    }
}

static void an_empty_dimension_may_have_chunks_of_length_zero(void **state)
{
    (void)state;
    struct sq_zarr_array a;
    SQ_CLEANUP_FREE char *text = v2_document("shape", "[0,6]");
    char *chunks = strstr(text, "\"chunks\":[2,4]");
    chunks[strlen("\"chunks\":[")] = '0';
    assert_int_equal(parse_array(2, text, NULL, &a, NULL), 0);
    assert_int_equal(a.chunks[0], 1);
    sq_zarr_array_done(&a);
}

static void chunks_of_order_f_are_columns(void **state)
{
    (void)state;
    const uint8_t chunk[6] = {1, 4, 2, 5, 3, 6}, expected[6] = {1, 2, 3, 4, 5, 6};
    put_file("columns/.zarray", "{\"zarr_format\":2,\"shape\":[2,3],\"chunks\":[2,3],\"dtype\":\"|u1\",\"fill_value\":null,"
                                "\"order\":\"F\",\"compressor\":null,\"filters\":null}");
    put_bytes("columns/0.0", chunk, sizeof chunk);
    struct squall_dataset *ds = opened("columns");
    squall_array *a = squall_dataset_array_at(ds, 0);
    struct squall_selection s = squall_selection_all(a);
    uint8_t values[6];
    assert_int_equal(squall_array_read(a, &s, values, NULL, NULL), 0);
    assert_memory_equal(values, expected, sizeof expected);
    squall_dataset_close(ds);
}

/* ---- fill values ------------------------------------------------------------------------------------------------------------------ */

static void fill_values_are_read_in_every_spelling(void **state)
{
    (void)state;
    const struct {
        enum squall_type type;
        const char *text;
        uint64_t bits;
    } cases[] = {
        {SQUALL_BOOL, "true", 1},
        {SQUALL_BOOL, "0", 0},
        {SQUALL_BOOL, "1", 1},
        {SQUALL_INT8, "-128", 0x80},
        {SQUALL_INT16, "-1", 0xffff},
        {SQUALL_INT32, "-9.0", 0xfffffff7},
        {SQUALL_INT64, "-9223372036854775808", UINT64_C(1) << 63},
        {SQUALL_INT64, "9223372036854775807", INT64_MAX},
        {SQUALL_UINT8, "255", 255},
        {SQUALL_UINT64, "18446744073709551615", UINT64_MAX},
        {SQUALL_UINT32, "null", 0},
        {SQUALL_FLOAT32, "\"NaN\"", 0x7fc00000},
        {SQUALL_FLOAT32, "NaN", 0x7fc00000},
        {SQUALL_FLOAT32, "\"Infinity\"", 0x7f800000},
        {SQUALL_FLOAT32, "\"-Infinity\"", 0xff800000},
        {SQUALL_FLOAT32, "\"0x7fc00001\"", 0x7fc00001},
        {SQUALL_FLOAT32, "0.1", 0x3dcccccd},
        {SQUALL_FLOAT32, "7", 0x40e00000},
        {SQUALL_FLOAT64, "0.1", UINT64_C(0x3fb999999999999a)},
        {SQUALL_FLOAT64, "\"0x7FF8000000000001\"", UINT64_C(0x7ff8000000000001)},
        {SQUALL_FLOAT16, "1.5", 0x3e00},
        {SQUALL_FLOAT16, "\"NaN\"", 0x7e00},
        {SQUALL_FLOAT16, "\"0x3c01\"", 0x3c01},
        {SQUALL_BFLOAT16, "1.5", 0x3fc0},
        {SQUALL_BFLOAT16, "\"NaN\"", 0x7fc0},
        {SQUALL_BFLOAT16, "\"-Infinity\"", 0xff80},
        {SQUALL_BFLOAT16, "\"0x3f81\"", 0x3f81},
        {SQUALL_INT2, "-2", 0xfe},
        {SQUALL_INT4, "7", 7},
        {SQUALL_UINT2, "3", 3},
        {SQUALL_UINT4, "15", 15},
        {SQUALL_INT32, "\"-42\"", 0xffffffd6},
        {SQUALL_UINT64, "\"18446744073709551615\"", UINT64_MAX},
        {SQUALL_FLOAT32, "\"1.5\"", 0x3fc00000},
        {SQUALL_COMPLEX64, "[1.5,\"-Infinity\"]", UINT64_C(0xff8000003fc00000)},
        {SQUALL_COMPLEX64, "[\"NaN\",\"0x7fc00001\"]", UINT64_C(0x7fc000017fc00000)},
        {SQUALL_COMPLEX64, "1.5", 0x3fc00000},
        {SQUALL_DATETIME64, "\"NaT\"", UINT64_C(1) << 63},
        {SQUALL_DATETIME64, "-9223372036854775808", UINT64_C(1) << 63},
        {SQUALL_DATETIME64, "null", UINT64_C(1) << 63},
        {SQUALL_TIMEDELTA64, "-1", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array(); /* bare NaN and null need something around them */
        SQ_CLEANUP_FREE char *text = sq_format("[%s]", cases[i].text);
        sq_json_free(list);
        list = parsed(text);
        uint8_t bytes[SQ_ZARR_FILL_BYTES];
        uint64_t bits = 0;
        if (!sq_zarr_fill_parse(cases[i].type, sq_json_at(list, 0), bytes))
            fail_msg("%s was refused", cases[i].text);
        memcpy(&bits, bytes, sizeof bits);
        if (bits != cases[i].bits)
            fail_msg("%s gives %#llx", cases[i].text, (unsigned long long)bits);
    }
}

static void fill_values_of_another_type_are_refused(void **state)
{
    (void)state;
    const struct {
        enum squall_type type;
        const char *text;
    } cases[] = {
        {SQUALL_BOOL, "2"},
        {SQUALL_BOOL, "\"true\""},
        {SQUALL_INT8, "128"},
        {SQUALL_INT8, "-129"},
        {SQUALL_UINT8, "-1"},
        {SQUALL_UINT8, "256"},
        {SQUALL_INT64, "1e300"},
        {SQUALL_INT64, "9223372036854775808"},
        {SQUALL_UINT64, "18446744073709551616"},
        {SQUALL_INT64, "-9223372036854775809"},
        {SQUALL_INT32, "1.5"},
        {SQUALL_INT32, "\"NaN\""},
        {SQUALL_INT32, "NaN"},
        {SQUALL_UINT64, "-0.5"},
        {SQUALL_FLOAT32, "\"nan\""},
        {SQUALL_FLOAT32, "\"0x7fc0\""},
        {SQUALL_FLOAT32, "true"},
        {SQUALL_FLOAT32, "\"0x7fc0000g\""},
        {SQUALL_FLOAT64, "[]"},
        {SQUALL_FLOAT64, "\"0x\""},
        {SQUALL_FLOAT64, "\"1.5x\""},
        {SQUALL_FLOAT64, "\"\""},
        {SQUALL_INT2, "2"},
        {SQUALL_INT2, "-3"},
        {SQUALL_INT4, "8"},
        {SQUALL_INT4, "-9"},
        {SQUALL_UINT2, "4"},
        {SQUALL_UINT4, "16"},
        {SQUALL_UINT4, "-1"},
        {SQUALL_INT8, "\"1 \""},
        {SQUALL_INT8, "\"\""},
        {SQUALL_UINT8, "\"-1\""},
        {SQUALL_COMPLEX64, "[1]"},
        {SQUALL_COMPLEX64, "[1,2,3]"},
        {SQUALL_COMPLEX64, "[1,\"x\"]"},
        {SQUALL_DATETIME64, "\"2020-01-01\""},
        {SQUALL_DATETIME64, "1.5"},
        {SQUALL_UINT64, "\"18446744073709551616\""},
        {SQUALL_FLOAT32, "\"inf\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SQ_CLEANUP_FREE char *text = sq_format("[%s]", cases[i].text);
        SQ_CLEANUP_JSON struct sq_json *list = parsed(text);
        uint8_t bytes[SQ_ZARR_FILL_BYTES];
        if (sq_zarr_fill_parse(cases[i].type, sq_json_at(list, 0), bytes))
            fail_msg("%s was taken", cases[i].text);
    }
}

/* Fill values of types whose elements have a length of their own, as the bytes of an element. */
static void fill_values_of_texts_bytes_and_structures_are_read(void **state)
{
    (void)state;
#define POINT STRUCT("[\"x\",\"int16\"],[\"n\"," STRUCT("[\"y\",\"complex64\"]") "]")
    const struct {
        int version;
        const char *type, *fill;
        uint8_t bytes[12];
    } cases[] = {
        {3, "\"r24\"", "[1,255,0]", {1, 255, 0}},
        {3, "\"r24\"", "\"Af8A\"", {1, 255, 0}},
        {3, SIZED("null_terminated_bytes", "3"), "\"YQ==\"", {'a'}},
        {2, "\"|S3\"", "\"YWI=\"", {'a', 'b'}},
        {2, "\"|S3\"", "\"N/A\"", {'N', '/', 'A'}}, /* no base64: early stores */
        {2, "\"|S3\"", "0", {'0'}},
        {2, "\"|S3\"", "null", {0}},
        {2, "\"|V3\"", "0", {0}},
        {2, "\"|V3\"", "\"AQID\"", {1, 2, 3}},
        {2, "\"<U3\"", "\"\xc3\xa9z\"", {0xe9, 0, 0, 0, 'z'}},
        {2, "\"<U2\"", "\"\xf0\x9f\x8e\x89zz\"", {0x89, 0xf3, 1, 0, 'z'}}, /* cut, as numpy does */
        {2, "\"<U2\"", "0", {'0'}},
        {2, "[[\"a\",\">i2\"],[\"b\",\"|u1\",[2]]]", "\"AQIDBA==\"", {1, 2, 3, 4}},
        {2, "[[\"a\",\">i2\"],[\"b\",\"|u1\",[2]]]", "{\"a\":258,\"b\":7}", {1, 2, 7, 7}},
        {3, POINT, "{\"x\":258,\"n\":{\"y\":[1,-2]}}", {2, 1, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
        {3, POINT, "{\"n\":{\"y\":[1,0]}}", {0, 0, 0, 0, 0x80, 0x3f}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *document = document_of(cases[i].version, cases[i].version == 3 ? "data_type" : "dtype", cases[i].type);
        SQ_CLEANUP_FREE char *text = with_fill(document, cases[i].fill);
        if (parse_array(cases[i].version, text, NULL, &a, &err))
            fail_msg("%s: %s", text, err.message);
        assert_true(a.dtype.element_bytes <= sizeof cases[i].bytes);
        if (memcmp(a.fill, cases[i].bytes, a.dtype.element_bytes) != 0)
            fail_msg("%s gives other bytes", text);
        sq_zarr_array_done(&a);
    }
}

/* v3's structures lie in the order that their codec says; base64 is little-endian whatever it says. */
static void fill_values_of_big_endian_structures_are_turned(void **state)
{
    (void)state;
    static const char *const FILLS[] = {"{\"x\":258,\"y\":[1,2]}", "\"AgEBAg==\""};
    for (size_t i = 0; i < 2; i++) {
        struct sq_zarr_array a;
        SQ_CLEANUP_FREE char *text =
            sq_format("{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":%s,\"chunk_grid\":%s,"
                      "\"fill_value\":%s,\"chunk_key_encoding\":\"default\",\"codecs\":[{\"name\":\"bytes\","
                      "\"configuration\":{\"endian\":\"big\"}}]}",
                      STRUCT("[\"x\",\"int16\"],[\"y\",\"r16\"]"), GRID("[2]"), FILLS[i]);
        assert_int_equal(parse_array(3, text, NULL, &a, NULL), 0);
        assert_string_equal(a.numpy_type, "[('x', '>i2'), ('y', '|V2')]");
        assert_memory_equal(a.fill, ((uint8_t[]){1, 2, 1, 2}), 4);
        sq_zarr_array_done(&a);
    }
}

static void fill_values_of_another_length_or_kind_are_refused(void **state)
{
    (void)state;
    const struct {
        int version;
        const char *type, *fill;
    } cases[] = {
        {3, "\"r24\"", "[1,2]"},        {3, "\"r24\"", "[1,2,256]"},
        {3, "\"r24\"", "[1,2,-1]"},     {3, "\"r24\"", "\"AQI=\""},
        {3, "\"r24\"", "true"},         {3, "\"string\"", "[]"},
        {3, "\"string\"", "true"},      {2, "\"<U3\"", "{}"},
        {2, "\"|V3\"", "\"AQIDBA==\""}, {2, "[[\"a\",\"<i4\"]]", "{\"a\":\"x\"}"},
        {2, "[[\"a\",\"<i4\"]]", "7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sq_zarr_array a;
        struct squall_error err = SQUALL_ERROR_INIT;
        SQ_CLEANUP_FREE char *document = document_of(cases[i].version, cases[i].version == 3 ? "data_type" : "dtype", cases[i].type);
        SQ_CLEANUP_FREE char *text = with_fill(document, cases[i].fill);
        if (parse_array(cases[i].version, text, NULL, &a, &err) != SQUALL_ECORRUPT)
            fail_msg("%s was taken", text);
        assert_non_null(strstr(err.message, "fill value"));
        sq_zarr_array_done(&a);
    }
}

/* The nearest half of every double half way between two halves, just below and just above it. */
static void half_fill_values_round_to_nearest_even(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x7c00; bits++) {
        double low = bits >> 10 ? ldexp(1024 + (bits & 1023), (int)(bits >> 10) - 25) : ldexp(bits & 1023, -24);
        unsigned next = bits + 1;
        double high = next >> 10 ? ldexp(1024 + (next & 1023), (int)(next >> 10) - 25) : ldexp(next & 1023, -24);
        double middle = (low + high) / 2;
        const struct {
            double value;
            unsigned expected;
        } cases[] = {{low, bits}, {nextafter(middle, 0), bits}, {middle, bits & 1 ? next : bits}, {nextafter(middle, 1e9), next}};
        for (size_t i = 0; i < 4; i++) {
            SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_double(-cases[i].value);
            uint8_t bytes[SQ_ZARR_FILL_BYTES];
            uint16_t got;
            assert_true(sq_zarr_fill_parse(SQUALL_FLOAT16, v, bytes));
            memcpy(&got, bytes, sizeof got);
            assert_int_equal(got, 0x8000 | cases[i].expected);
        }
    }
}

/* ---- stores ----------------------------------------------------------------------------------------------------------------------- */

static void names_of(const struct sq_zarr_store *s, char *text, size_t size)
{
    text[0] = 0;
    for (size_t i = 0; i < s->array_count; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? " " : "", s->arrays[i].name);
}

static void check_names(const char *store_name, int version, const char *expected, size_t problems)
{
    SQ_CLEANUP_FREE char *path = in_test_folder(store_name);
    struct sq_zarr_store s;
    struct squall_error err = SQUALL_ERROR_INIT;
    char names[500];
    assert_true(sq_zarr_is_store(path));
    if (sq_zarr_store_open(path, &s, &err))
        fail_msg("%s", err.message);
    names_of(&s, names, sizeof names);
    assert_int_equal(s.version, version);
    assert_string_equal(names, expected);
    if (s.problem_count != problems)
        fail_msg("%zu problems, the first %s", s.problem_count, s.problem_count ? s.problems[0] : "");
    sq_zarr_store_done(&s);
}

static void a_v3_hierarchy_is_walked(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v3_document("", NULL);
    SQ_CLEANUP_FREE char *array2 = v2_document("", NULL);
    put_file("walk3/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":null}");
    put_file("walk3/b/zarr.json", array);
    put_file("walk3/a/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}");
    put_file("walk3/a/y/zarr.json", array);
    put_file("walk3/b/c/zarr.json", array);       /* inside an array: no node */
    put_file("walk3/b/.squall/zarr.json", array); /* hidden */
    put_file("walk3/.hidden/zarr.json", array);   /* hidden */
    put_file("walk3/plain/y/zarr.json", array);   /* a group without metadata */
    put_file("walk3/older/.zgroup", "{\"zarr_format\":2}");
    put_file("walk3/older/x/.zarray", array2); /* of the other version */
    put_file("walk3/file", "not a folder");
    check_names("walk3", 3, "a/y b older/x plain/y", 0);
}

static void a_v2_hierarchy_is_walked_through_implicit_groups(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v2_document("", NULL);
    put_file("walk2/.zgroup", "{\"zarr_format\":2}");
    put_file("walk2/.zattrs", "{\"title\":\"x\"}");
    put_file("walk2/b/.zarray", array);
    put_file("walk2/b/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"]}");
    put_file("walk2/implicit/deep/c/.zarray", array);
    check_names("walk2", 2, "b implicit/deep/c", 0);
}

static void consolidated_metadata_is_believed(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array3 = v3_document("", NULL);
    SQ_CLEANUP_FREE char *root3 =
        sq_format("{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":1},\"consolidated_metadata\":{\"kind\":\"inline\","
                  "\"must_understand\":false,\"metadata\":{\"z\":%s,\"g\":{\"zarr_format\":3,\"node_type\":\"group\"},\"g/a\":%s}}}",
                  array3, array3);
    put_file("cons3/zarr.json", root3);
    put_file("cons3/unlisted/zarr.json", array3);
    check_names("cons3", 3, "z g/a", 0);

    SQ_CLEANUP_FREE char *array2 = v2_document("", NULL);
    SQ_CLEANUP_FREE char *root2 = sq_format("{\"zarr_consolidated_format\":1,\"metadata\":{\".zgroup\":{\"zarr_format\":2},"
                                            "\"z/.zarray\":%s,\"z/.zattrs\":{\"_ARRAY_DIMENSIONS\":[\"p\",\"q\"]},\"g/a/.zarray\":%s}}",
                                            array2, array2);
    put_file("cons2/.zmetadata", root2);
    check_names("cons2", 2, "z g/a", 0);
}

static void damaged_consolidated_metadata_of_v2_is_passed_over(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v2_document("", NULL);
    put_file("broken2/.zgroup", "{\"zarr_format\":2}");
    put_file("broken2/.zmetadata", "{\"metadata\":{");
    put_file("broken2/a/.zarray", array);
    check_names("broken2", 2, "a", 1);
}

static void a_store_may_be_one_array(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array3 = v3_document("", NULL);
    SQ_CLEANUP_FREE char *array2 = v2_document("", NULL);
    put_file("single3/zarr.json", array3);
    put_file("single2/.zarray", array2);
    check_names("single3", 3, "", 0);
    check_names("single2", 2, "", 0);
}

static void damage_of_one_array_costs_that_array(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v3_document("", NULL);
    SQ_CLEANUP_FREE char *wrong = v3_document("shape", "[-1,2]");
    put_file("damage/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    put_file("damage/a/zarr.json", "{\"zarr_format\":3,");
    put_file("damage/b/zarr.json", wrong);
    put_file("damage/c/zarr.json", "{\"zarr_format\":7,\"node_type\":\"array\"}");
    put_file("damage/d/zarr.json", "[]");
    put_file("damage/e/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"novelty\":1}");
    put_file("damage/f/zarr.json", array);
    check_names("damage", 3, "f", 5);
}

static void a_damaged_root_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct sq_zarr_store s;
    struct squall_error err = SQUALL_ERROR_INIT;
    SQ_CLEANUP_FREE char *path = in_test_folder("root");
    put_file("root/zarr.json", "{\"zarr_format\":3,");
    assert_int_equal(sq_zarr_store_open(path, &s, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "root/zarr.json"));
    put_file("root/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"novelty\":{}}");
    assert_int_equal(sq_zarr_store_open(path, &s, &err), SQUALL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "unsupported extension novelty"));
    for (int version = 2; version <= 3; version++) { /* the root is the one array that there is */
        SQ_CLEANUP_FREE char *array = document_of(version, "fill_value", "\"hot\"");
        SQ_CLEANUP_FREE char *damaged = in_test_folder(version == 3 ? "damaged3" : "damaged2");
        put_file(version == 3 ? "damaged3/zarr.json" : "damaged2/.zarray", array);
        assert_int_equal(sq_zarr_store_open(damaged, &s, &err), SQUALL_ECORRUPT);
        assert_non_null(strstr(err.message, "its fill value is no float32"));
    }
}

static void keys_cannot_leave_the_store(void **state)
{
    (void)state;
    const char *keys[] = {"..", "../a", "a/../../b", "/etc", "a//b", "", ".", "a/", "a/.", "./a"};
    SQ_CLEANUP_FREE char *array3 = v3_document("", NULL);
    SQ_CLEANUP_FREE char *array2 = v2_document("", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        SQ_CLEANUP_FREE char *root3 = sq_format("{\"zarr_format\":3,\"node_type\":\"group\",\"consolidated_metadata\":{\"kind\":\"inline\","
                                                "\"metadata\":{\"%s\":%s}}}",
                                                keys[i], array3);
        put_file("keys3/zarr.json", root3);
        check_names("keys3", 3, "", 1);
        if (!keys[i][0])
            continue; /* ".zarray" alone is v2's store of one array */
        SQ_CLEANUP_FREE char *root2 = sq_format("{\"metadata\":{\"%s/.zarray\":%s}}", keys[i], array2);
        put_file("keys2/.zmetadata", root2);
        check_names("keys2", 2, "", 1);
    }
}

static void links_in_circles_end(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v2_document("", NULL);
    put_file("circle/.zgroup", "{\"zarr_format\":2}");
    put_file("circle/a/b/x/.zarray", array);
    SQ_CLEANUP_FREE char *link = in_test_folder("circle/a/b/up");
    SQ_CLEANUP_FREE char *link2 = in_test_folder("circle/a/b/up2");
    assert_int_equal(symlink("..", link), 0);
    assert_int_equal(symlink("../..", link2), 0);
    check_names("circle", 2, "a/b/x", 0);
}

/* ---- values ----------------------------------------------------------------------------------------------------------------------- */

static void edge_chunks_and_missing_chunks_are_read(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v3_document("fill_value", "\"NaN\"");
    float chunk[8] = {0, 1, 2, 3, 4, 5, 6, 7}, values[24];
    put_file("values/zarr.json", array); /* 4 × 6 in chunks of 2 × 4 */
    put_bytes("values/c/0/1", chunk, sizeof chunk);
    put_bytes("values/c/1/0", chunk, sizeof chunk);
    struct squall_dataset *ds = opened("values");
    squall_array *a = squall_dataset_array_at(ds, 0);
    struct squall_selection s = squall_selection_all(a);
    assert_int_equal(squall_array_read(a, &s, values, NULL, NULL), 0);
    const float expected[24] = {NAN, NAN, NAN, NAN, 0, 1, NAN, NAN, NAN, NAN, 4, 5, 0, 1, 2, 3, NAN, NAN, 4, 5, 6, 7, NAN, NAN};
    for (size_t i = 0; i < 24; i++)
        assert_true(values[i] == expected[i] || (isnan(values[i]) && isnan(expected[i])));
    uint64_t bytes;
    assert_int_equal(squall_array_stored_bytes(a, &bytes, NULL), 0);
    assert_int_equal(bytes, 64);
    assert_string_equal(squall_array_info(a).name, "values");
    assert_string_equal(squall_array_info(a).fill_value, "\"NaN\"");
    squall_dataset_close(ds);
}

/* 3 × 5 in rows of 1 and 2, columns of 2 and 3, the second of them transposed on disk. */
static void chunks_of_a_rectilinear_grid_have_their_own_shapes(void **state)
{
    (void)state;
    static const char *const CODECS[] = {
        "[\"bytes\"]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},\"bytes\"]",
    };
    static const struct {
        const char *path;
        uint8_t plain[6], transposed[6];
        size_t size;
    } chunks[] = {
        {"edges/c/0/0", {1, 2}, {1, 2}, 2},
        {"edges/c/0/1", {3, 4, 5}, {3, 4, 5}, 3},
        {"edges/c/1/0", {11, 12, 21, 22}, {11, 21, 12, 22}, 4},
        {"edges/c/1/1", {13, 14, 15, 23, 24, 25}, {13, 23, 14, 24, 15, 25}, 6},
    };
    const uint8_t expected[15] = {1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 21, 22, 23, 24, 25};
    for (size_t transposed = 0; transposed < 2; transposed++) {
        SQ_CLEANUP_FREE char *text = sq_format("{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3,5],\"data_type\":\"uint8\","
                                               "\"fill_value\":0,\"chunk_key_encoding\":\"default\",\"codecs\":%s,\"chunk_grid\":%s}",
                                               CODECS[transposed], RECTILINEAR("[[1,2],[2,3]]"));
        put_file("edges/zarr.json", text);
        for (size_t i = 0; i < 4; i++)
            put_bytes(chunks[i].path, transposed ? chunks[i].transposed : chunks[i].plain, chunks[i].size);
        struct squall_dataset *ds = opened("edges");
        squall_array *a = squall_dataset_array_at(ds, 0);
        struct squall_error err = SQUALL_ERROR_INIT;
        uint8_t values[15];
        struct squall_selection s = squall_selection_all(a);
        if (squall_array_read(a, &s, values, NULL, &err))
            fail_msg("%s", err.message);
        assert_memory_equal(values, expected, sizeof expected);
        s = (struct squall_selection){{1, 1}, {2, 2}, {1, 3}};
        assert_int_equal(squall_array_read(a, &s, values, NULL, NULL), 0);
        assert_memory_equal(values, ((uint8_t[]){12, 15, 22, 25}), 4);
        squall_dataset_close(ds);
    }
}

static void a_chunk_that_cannot_be_read_is_no_missing_one(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array = v3_document("", NULL);
    SQ_CLEANUP_FREE char *chunk = in_test_folder("unread/c/0/0");
    struct squall_error err = SQUALL_ERROR_INIT;
    float values[24];
    put_file("unread/zarr.json", array);
    struct squall_dataset *ds = opened("unread");
    squall_array *a = squall_dataset_array_at(ds, 0);
    struct squall_selection s = squall_selection_all(a);

    put_file("unread/c/0/0", "too short");
    assert_int_equal(squall_array_read(a, &s, values, NULL, &err), SQUALL_ECORRUPT);
    assert_non_null(strstr(err.message, "array unread, chunk 0/0: /tmp/"));
    assert_non_null(strstr(err.message, "unread/c/0/0: 9 bytes, but a chunk has 32"));

    assert_int_equal(unlink(chunk), 0);
    assert_int_equal(symlink("nowhere", chunk), 0); /* a link that leads nowhere */
    assert_int_equal(squall_array_read(a, &s, values, NULL, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, "array unread, chunk 0/0"));
    assert_non_null(strstr(err.message, "a link that leads nowhere"));

    assert_int_equal(unlink(chunk), 0);
    assert_int_equal(sq_folder_make(chunk, NULL), 0); /* a folder */
    assert_int_equal(squall_array_read(a, &s, values, NULL, &err), SQUALL_EUNSUPPORTED);

    SQ_CLEANUP_FREE char *folder = in_test_folder("unread");
    assert_int_equal(sq_tree_remove(folder, NULL), 0); /* the whole array */
    assert_int_equal(squall_array_read(a, &s, values, NULL, &err), SQUALL_EIO);
    assert_non_null(strstr(err.message, "is gone since the store was opened"));
    squall_dataset_close(ds);
}

static void put_text_array(const char *name, const char *fill)
{
    SQ_CLEANUP_FREE char *path = sq_format("%s/.zarray", name);
    SQ_CLEANUP_FREE char *array = sq_format("{\"zarr_format\":2,\"shape\":[3],\"chunks\":[2],\"dtype\":\"<U3\",\"fill_value\":%s,"
                                            "\"order\":\"C\",\"compressor\":null,\"filters\":null}",
                                            fill);
    put_file(path, array);
}

static void texts_of_fixed_length_stay_as_they_are(void **state)
{
    (void)state;
    const uint32_t chunk[6] = {'a', 0xe9, 0, 0x1f389, 0x20ac, 'z'}; /* "aé", "🎉€z" */
    const uint32_t expected[9] = {'a', 0xe9, 0, 0x1f389, 0x20ac, 'z', 0xe9, 0x1f389, 0};
    put_text_array("texts", "\"é🎉\"");
    put_bytes("texts/0", chunk, sizeof chunk);
    struct squall_dataset *ds = opened("texts");
    squall_array *a = squall_dataset_array_at(ds, 0);
    struct squall_selection s = squall_selection_all(a);
    uint32_t texts[9];
    assert_string_equal(squall_array_info(a).type_name, "<U3");
    assert_string_equal(squall_array_info(a).numpy_type, "<U3");
    assert_int_equal(squall_array_info(a).type, SQUALL_TEXT);
    assert_int_equal(squall_array_info(a).element_bytes, 12);
    assert_int_equal(squall_array_read(a, &s, texts, NULL, NULL), 0);
    assert_memory_equal(texts, expected, sizeof expected);
    squall_dataset_close(ds);
}

static void every_failed_allocation_of_an_opening_is_an_error(void **state)
{
    (void)state;
    SQ_CLEANUP_FREE char *array3 = v3_document("dimension_names", "[\"y\",\"x\"]");
    SQ_CLEANUP_FREE char *foreign = v3_document("data_type", "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"ms\"}}");
    SQ_CLEANUP_FREE char *array2 = v2_document("dtype", "[[\"a\",\">i4\"],[\"b\",[[\"c\",\"|S3\"]],[2]]]");
    SQ_CLEANUP_FREE char *structure = v3_document("data_type", STRUCT("[\"x\",\"int16\"],[\"n\"," STRUCT("[\"y\",\"complex64\"]") "]"));
    SQ_CLEANUP_FREE char *filled = with_fill(structure, "{\"x\":1,\"n\":{\"y\":[1,2]}}");
    SQ_CLEANUP_FREE char *edges = v3_document("chunk_grid", RECTILINEAR("[[1,3],[2,4]]"));
    put_file("memory3/d/zarr.json", filled);
    put_file("memory3/e/zarr.json", edges);
    put_file("memory3/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    put_file("memory3/g/zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    put_file("memory3/g/a/zarr.json", array3);
    put_file("memory3/b/zarr.json", foreign);
    put_file("memory3/c/zarr.json", "{");
    SQ_CLEANUP_FREE char *root2 = sq_format("{\"metadata\":{\"a/.zarray\":%s,\"a/.zattrs\":{},\"../b/.zarray\":{}}}", array2);
    put_file("memory2/.zmetadata", root2);
    for (int version = 2; version <= 3; version++) {
        SQ_CLEANUP_FREE char *path = in_test_folder(version == 3 ? "memory3" : "memory2");
        long n = 0;
        for (;; n++) {
            struct squall_dataset *ds = NULL;
            struct squall_error err = SQUALL_ERROR_INIT;
            sq_fail_allocation(n);
            int status = sq_zarr_dataset_open(&context, path, &ds, &err);
            sq_fail_allocation(-1);
            if (!status) {
                assert_int_equal(squall_dataset_info(ds).array_count, version == 3 ? 4 : 1);
                assert_int_equal(squall_dataset_info(ds).problem_count, 1);
                squall_dataset_close(ds);
                break;
            }
            assert_null(ds);
            assert_int_equal(status, SQUALL_ENOMEM);
        }
        assert_true(n > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_v3_array_is_described),
        cmocka_unit_test(a_v2_array_is_described_with_xarrays_names),
        cmocka_unit_test(chunk_keys_follow_their_encoding),
        cmocka_unit_test(every_type_is_described),
        cmocka_unit_test(objects_are_texts_or_bytes_by_their_filter),
        cmocka_unit_test(what_is_not_read_is_named),
        cmocka_unit_test(what_may_be_ignored_is),
        cmocka_unit_test(rectilinear_grids_are_expanded),
        cmocka_unit_test(runs_of_very_many_chunks_are_refused),
        cmocka_unit_test(damaged_documents_are_refused),
        cmocka_unit_test(an_empty_dimension_may_have_chunks_of_length_zero),
        cmocka_unit_test(chunks_of_order_f_are_columns),
        cmocka_unit_test(fill_values_are_read_in_every_spelling),
        cmocka_unit_test(fill_values_of_another_type_are_refused),
        cmocka_unit_test(fill_values_of_texts_bytes_and_structures_are_read),
        cmocka_unit_test(fill_values_of_big_endian_structures_are_turned),
        cmocka_unit_test(fill_values_of_another_length_or_kind_are_refused),
        cmocka_unit_test(half_fill_values_round_to_nearest_even),
        cmocka_unit_test(a_v3_hierarchy_is_walked),
        cmocka_unit_test(a_v2_hierarchy_is_walked_through_implicit_groups),
        cmocka_unit_test(consolidated_metadata_is_believed),
        cmocka_unit_test(damaged_consolidated_metadata_of_v2_is_passed_over),
        cmocka_unit_test(a_store_may_be_one_array),
        cmocka_unit_test(damage_of_one_array_costs_that_array),
        cmocka_unit_test(a_damaged_root_is_an_error_that_names_it),
        cmocka_unit_test(keys_cannot_leave_the_store),
        cmocka_unit_test(links_in_circles_end),
        cmocka_unit_test(edge_chunks_and_missing_chunks_are_read),
        cmocka_unit_test(chunks_of_a_rectilinear_grid_have_their_own_shapes),
        cmocka_unit_test(a_chunk_that_cannot_be_read_is_no_missing_one),
        cmocka_unit_test(texts_of_fixed_length_stay_as_they_are),
        cmocka_unit_test(every_failed_allocation_of_an_opening_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
