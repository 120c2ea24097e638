/*
 * An array's metadata from a spec. What a spec leaves open is filled in here: the codec that makes bytes of the type, a fill value, sizes that
 * codecs take from the type. Whether it all makes sense is found out by reading the document as any reader would.
 */
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "codec/codec.h"
#include "format/zarr/metadata.h"
#include "store/store.h"
#include <stdlib.h>
#include <string.h>

/* Of v2 and v3 alike: what numcodecs and zarr-python compress with where nothing is said. */
static const char DEFAULT_CODECS[] = "zstd:level=0";

struct array_making {
    const struct squall_array_spec *spec;
    int version;
    struct sq_json *type_json; /* of the version */
    struct sq_zarr_type type;
    uint64_t chunks[SQUALL_RANK_MAX]; /* inner ones; of a rectilinear grid the longest */
    size_t chunk_bytes;
    bool sharded;
    struct sq_json *chunk_shapes; /* NULL: the grid is regular */
};

static int parse_json(const char *text, const char *what, struct sq_json **ret, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = sq_json_parse(text, strlen(text), ret, &reason);
    return status ? sq_error(err, status == SQUALL_ENOMEM ? status : SQUALL_EINVAL, "its %s: %s", what, reason.message) : 0;
}

static bool is_json(const char *text)
{
    return text[0] == '[' || text[0] == '{' || text[0] == '"';
}

/* {"name": name, "configuration": {…}}; takes the configuration, which may be NULL. */
static struct sq_json *extension(const char *name, struct sq_json *configuration)
{
    struct sq_json *v = sq_json_new_object();
    int failed = sq_json_set_string(v, "name", name);
    if (configuration)
        failed |= sq_json_set(v, "configuration", configuration);
    if (!failed)
        return v;
    sq_json_free(v);
    return NULL;
}

struct sq_json *sq_extension_json(const char *name, const char *key, struct sq_json *value)
{
    struct sq_json *configuration = sq_json_new_object();
    if (sq_json_set(configuration, key, value)) {
        sq_json_free(configuration);
        return NULL;
    }
    return extension(name, configuration);
}

/* ---- the type --------------------------------------------------------------------------------------------------------------------- */

/* numpy's letter and length: "<f4" of a type with a name of its own. */
static const char *name_of_numpy(const char *numpy)
{
    for (int type = SQUALL_BOOL; type <= SQUALL_BYTES; type++) {
        const char *known = sq_type_numpy((enum squall_type)type);
        bool has_name = type != SQUALL_DATETIME64 && type != SQUALL_TIMEDELTA64 && type != SQUALL_RAW && type != SQUALL_TEXT;
        if (has_name && known[0] && known[1] && strchr("<>|=", numpy[0]) && !strcmp(known + 1, numpy + 1))
            return sq_type_name((enum squall_type)type);
    }
    return NULL;
}

/* "<M8[10ms]", "|S5", "<U12", "|V3" as v3 has them; NULL without an error: it is none of these. */
static int parametric_v3(const char *numpy, struct sq_json **ret, struct squall_error *err)
{
    struct sq_zarr_type t;
    SQ_CLEANUP_JSON struct sq_json *text = sq_json_new_string(numpy);
    if (!text)
        return sq_error_memory(err, strlen(numpy));
    int status = sq_zarr_type_parse_v2(text, NULL, &t, err);
    const uint64_t bytes = t.dtype.element_bytes;
    const char *code = numpy + 1, *unit = strchr(numpy, '[');
    struct sq_json *made = NULL;
    if (!status && (t.dtype.type == SQUALL_RAW || t.dtype.type == SQUALL_TEXT)) {
        const char *name = *code == 'S' ? "null_terminated_bytes" : *code == 'U' ? "fixed_length_utf32" : "raw_bytes";
        made = sq_extension_json(name, "length_bytes", sq_json_new_uint(bytes));
    } else if (!status) {
        char *letters = NULL;
        uint64_t scale = unit && unit[1] >= '0' && unit[1] <= '9' ? strtoull(unit + 1, &letters, 10) : 1;
        SQ_CLEANUP_FREE char *name = unit ? sq_strdup(letters ? letters : unit + 1) : sq_strdup("generic]");
        struct sq_json *configuration = sq_json_new_object();
        if (name)
            name[strlen(name) - 1] = 0;
        int failed = !name || sq_json_set_string(configuration, "unit", name);
        failed |= sq_json_set(configuration, "scale_factor", sq_json_new_uint(scale));
        if (failed)
            sq_json_free(configuration);
        else
            made = extension(*code == 'M' ? "numpy.datetime64" : "numpy.timedelta64", configuration);
    }
    sq_zarr_type_done(&t);
    if (status)
        return status;
    *ret = made;
    return made ? 0 : sq_error_memory(err, 1);
}

static int type_json_v3(const char *text, struct sq_json **ret, struct squall_error *err);

/* [["x", "<f4"], …], as numpy and v2 list fields. */
static int structure_v3(const struct sq_json *fields, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *list = sq_json_new_array();
    int failed = list ? 0 : SQUALL_ENOMEM;
    for (size_t i = 0; i < sq_json_count(fields) && !failed; i++) {
        const struct sq_json *field = sq_json_at(fields, i);
        const char *name = sq_json_string(sq_json_at(field, 0)), *type = sq_json_string(sq_json_at(field, 1));
        struct sq_json *field_type = NULL, *pair = sq_json_new_array();
        if (!name || !type || sq_json_count(field) != 2) {
            sq_json_free(pair);
            return sq_error(err, SQUALL_EUNSUPPORTED, "its type: a field that is no [name, type]");
        }
        int status = type_json_v3(type, &field_type, err);
        failed = sq_json_append(pair, sq_json_new_string(name)) | (status ? 0 : sq_json_append(pair, field_type));
        failed |= sq_json_append(list, pair);
        SQ_TRY(status);
    }
    if (failed)
        return sq_error_memory(err, 1);
    *ret = sq_extension_json("structured", "fields", list);
    list = NULL;
    return *ret ? 0 : sq_error_memory(err, 1);
}

static int type_json_v3(const char *text, struct sq_json **ret, struct squall_error *err)
{
    enum squall_type known;
    if (is_json(text)) {
        SQ_CLEANUP_JSON struct sq_json *parsed = NULL;
        SQ_TRY(parse_json(text, "type", &parsed, err));
        if (sq_json_type(parsed) == SQ_JSON_ARRAY)
            return structure_v3(parsed, ret, err);
        *ret = sq_json_share(parsed);
        return 0;
    }
    const char *name = !strcmp(text, "O") || !strcmp(text, "|O") ? "string" : !strcmp(text, "bytes") ? "variable_length_bytes" : NULL;
    if (!name && !sq_type_from_name(text, &known))
        name = name_of_numpy(text);
    if (!name && strchr("<>|=", text[0]))
        return parametric_v3(text, ret, err);
    *ret = sq_json_new_string(name ? name : text);
    return *ret ? 0 : sq_error_memory(err, strlen(text));
}

/* *ret_filter: what |O needs. */
static int type_json_v2(const char *text, struct sq_json **ret, const char **ret_filter, struct squall_error *err)
{
    enum squall_type known;
    *ret_filter = NULL;
    if (is_json(text))
        return parse_json(text, "type", ret, err);
    if (!strcmp(text, "bytes") || !strcmp(text, "variable_length_bytes"))
        *ret_filter = "vlen-bytes";
    else if (!strcmp(text, "string") || !strcmp(text, "O") || !strcmp(text, "|O"))
        *ret_filter = "vlen-utf8";
    else if (sq_type_from_name(text, &known))
        text = sq_type_numpy(known);
    text = *ret_filter ? "|O" : text;
    *ret = sq_json_new_string(text);
    return *ret ? 0 : sq_error_memory(err, strlen(text));
}

/* ---- the fill value --------------------------------------------------------------------------------------------------------------- */

/* Base64 of zeros. */
static struct sq_json *zero_bytes(size_t bytes)
{
    const size_t groups = (bytes + 2) / 3, ending = groups * 3 - bytes;
    char *text = sq_alloc(groups * 4 + 1, 1);
    if (!text)
        return NULL;
    memset(text, 'A', groups * 4);
    memset(text + groups * 4 - ending, '=', ending);
    text[groups * 4] = 0;
    struct sq_json *v = sq_json_new_string(text);
    sq_free(text);
    return v;
}

static struct sq_json *zero_complex(void)
{
    struct sq_json *pair = sq_json_new_array();
    int failed = 0;
    for (int part = 0; part < 2; part++)
        failed |= sq_json_append(pair, sq_json_new_double(0));
    if (!failed)
        return pair;
    sq_json_free(pair);
    return NULL;
}

static struct sq_json *default_fill(const struct sq_zarr_type *t)
{
    switch (t->dtype.type) {
    case SQUALL_BOOL:
        return sq_json_new_bool(false);
    case SQUALL_STRING:
    case SQUALL_BYTES:
    case SQUALL_TEXT:
        return sq_json_new_string("");
    case SQUALL_RAW:
        return zero_bytes(t->dtype.element_bytes);
    case SQUALL_COMPLEX64:
    case SQUALL_COMPLEX128:
        return zero_complex();
    case SQUALL_DATETIME64:
    case SQUALL_TIMEDELTA64:
        return sq_json_new_int(INT64_MIN);
    default:
        return sq_type_is_float(t->dtype.type) || t->dtype.type == SQUALL_BFLOAT16 ? sq_json_new_double(0) : sq_json_new_int(0);
    }
}

static int fill_json(const struct array_making *m, struct sq_json **ret, struct squall_error *err)
{
    if (m->spec->fill_value)
        return parse_json(m->spec->fill_value, "fill value", ret, err);
    *ret = default_fill(&m->type);
    return *ret ? 0 : sq_error_memory(err, 1);
}

/* ---- codecs ----------------------------------------------------------------------------------------------------------------------- */

static const char *serializer_name(const struct sq_zarr_type *t)
{
    return t->dtype.type == SQUALL_STRING ? "vlen-utf8" : t->dtype.type == SQUALL_BYTES ? "vlen-bytes" : "bytes";
}

static bool needs_order(const struct sq_zarr_type *t)
{
    return t->dtype.order_bytes > 1 || t->field_count > 0;
}

static struct sq_json *serializer(const struct sq_zarr_type *t)
{
    return needs_order(t) && !sq_type_is_variable(t->dtype.type) ? sq_extension_json("bytes", "endian", sq_json_new_string("little"))
                                                                 : extension(serializer_name(t), NULL);
}

/* In the words of the command, which know neither all types nor how long their elements are: */
static int codecs_of_words(const struct array_making *m, const char *words, struct sq_json **ret, struct squall_error *err)
{
    struct sq_codec_chain *chain = NULL;
    const enum squall_type type = m->type.dtype.type <= SQUALL_FLOAT64 ? m->type.dtype.type : SQUALL_UINT8;
    SQ_TRY(sq_codec_chain_parse(words, type, NULL, &chain, err));
    SQ_CLEANUP_JSON struct sq_json *list = sq_codec_chain_json_v3(chain, false), *made = sq_json_new_array();
    sq_codec_chain_free(chain);
    int failed = !list || !made;
    for (size_t i = 0; i < sq_json_count(list) && !failed; i++) {
        const struct sq_json *codec = sq_json_at(list, i);
        const char *name = sq_json_string(sq_json_get(codec, "name"));
        failed = sq_json_append(made, name && !strcmp(name, "bytes") ? serializer(&m->type) : sq_json_copy(codec));
    }
    if (failed)
        return sq_error_memory(err, 1);
    *ret = made;
    made = NULL;
    return 0;
}

/* Blosc has to be told how long an element is. */
static int set_typesize(struct sq_json *codecs, const struct sq_zarr_type *t, bool replace, struct squall_error *err)
{
    for (size_t i = 0; i < sq_json_count(codecs); i++) {
        const struct sq_json *codec = sq_json_at(codecs, i), *configuration = sq_json_get(codec, "configuration");
        const char *name = sq_json_string(sq_json_get(codec, "name"));
        if (!name || strcmp(name, "blosc") != 0 || (!replace && sq_json_get(configuration, "typesize")))
            continue;
        int64_t size = sq_type_is_variable(t->dtype.type) || t->dtype.element_bytes > 255 ? 1 : t->dtype.element_bytes;
        if (sq_json_type(configuration) == SQ_JSON_OBJECT && sq_json_set_int((struct sq_json *)(uintptr_t)configuration, "typesize", size))
            return sq_error_memory(err, 1);
    }
    return 0;
}

/* Of each chunk; those of shards come around them. */
static int inner_codecs(const struct array_making *m, struct sq_json **ret, struct squall_error *err)
{
    const char *text = m->spec->codecs ? m->spec->codecs : DEFAULT_CODECS;
    SQ_CLEANUP_JSON struct sq_json *codecs = NULL;
    bool words = text[0] != '[';
    if (words)
        SQ_TRY(codecs_of_words(m, text, &codecs, err));
    else
        SQ_TRY(parse_json(text, "codecs", &codecs, err));
    SQ_TRY(set_typesize(codecs, &m->type, words, err));
    *ret = codecs;
    codecs = NULL;
    return 0;
}

static int codecs_v3(const struct array_making *m, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *inner = NULL;
    SQ_CLEANUP_JSON struct sq_json *index = NULL;
    SQ_TRY(inner_codecs(m, &inner, err));
    if (!m->sharded) {
        *ret = inner;
        inner = NULL;
        return 0;
    }
    if (m->spec->index_codecs)
        SQ_TRY(parse_json(m->spec->index_codecs, "index codecs", &index, err));
    struct sq_json *list = sq_json_new_array();
    struct sq_json *configuration = sq_codec_shard_configuration(m->spec->rank, m->chunks, sq_json_share(inner),
                                                                 index ? sq_json_share(index) : NULL, m->spec->index_at_start);
    if (!configuration || sq_json_append(list, extension("sharding_indexed", configuration))) {
        sq_json_free(list);
        return sq_error_memory(err, 1);
    }
    *ret = list;
    return 0;
}

static int copy_setting(void *user, const char *key, const struct sq_json *value, struct squall_error *err)
{
    static const char *const SHUFFLES[] = {"noshuffle", "shuffle", "bitshuffle"};
    const char *word = sq_json_string(value);
    bool truth;
    if (!strcmp(key, "typesize") || (sq_json_bool(value, &truth) && !truth))
        return 0;
    for (int i = 0; i < 3; i++)
        if (!strcmp(key, "shuffle") && word && !strcmp(word, SHUFFLES[i]))
            return sq_json_set_int(user, key, i) ? sq_error_memory(err, 1) : 0;
    return sq_json_set(user, key, sq_json_copy(value)) ? sq_error_memory(err, 1) : 0;
}

/* v3's codec as numcodecs' settings. */
static int codec_v2(const struct sq_json *codec, struct sq_json **ret, struct squall_error *err)
{
    static const char PREFIX[] = "numcodecs.";
    const char *name = sq_json_string(sq_json_get(codec, "name"));
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    if (!name)
        return sq_error(err, SQUALL_EINVAL, "its codecs: one has no name");
    if (!strncmp(name, PREFIX, sizeof PREFIX - 1))
        name += sizeof PREFIX - 1;
    if (sq_json_set_string(v, "id", name))
        return sq_error_memory(err, 1);
    const struct sq_json *configuration = sq_json_get(codec, "configuration");
    if (configuration)
        SQ_TRY(sq_json_each(configuration, copy_setting, v, err));
    *ret = v;
    v = NULL;
    return 0;
}

int sq_codecs_v2(const struct sq_json *codecs, struct sq_json *filters, struct sq_json **ret_compressor, struct squall_error *err)
{
    size_t count = sq_json_count(codecs);
    for (size_t i = 0; i < count; i++) {
        const char *name = sq_json_string(sq_json_get(sq_json_at(codecs, i), "name"));
        const bool is_text = name && (!strcmp(name, "vlen-utf8") || !strcmp(name, "vlen-bytes"));
        struct sq_json *codec = NULL;
        if (name && (is_text || !strcmp(name, "bytes"))) /* of texts the type's own filter */
            continue;
        SQ_TRY(codec_v2(sq_json_at(codecs, i), &codec, err));
        if (i + 1 == count)
            *ret_compressor = codec;
        else if (sq_json_append(filters, codec))
            return sq_error_memory(err, 1);
    }
    return 0;
}

/* Words give filters and a compressor: the last codec. */
static int words_v2(const struct array_making *m, struct sq_json *filters, struct sq_json **ret_compressor, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *codecs = NULL;
    SQ_TRY(inner_codecs(m, &codecs, err));
    return sq_codecs_v2(codecs, filters, ret_compressor, err);
}

int sq_filter_v2(struct sq_json *filters, const char *id)
{
    struct sq_json *codec = sq_json_new_object();
    int failed = sq_json_set_string(codec, "id", id);
    return failed | sq_json_append(filters, codec);
}

static int filters_v2(const struct array_making *m, const char *object_filter, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *given = NULL;
    SQ_CLEANUP_JSON struct sq_json *filters = sq_json_new_array();
    if (m->spec->filters)
        SQ_TRY(parse_json(m->spec->filters, "filters", &given, err));
    int failed = !filters;
    if (object_filter && sq_json_count(given) == 0)
        failed |= sq_filter_v2(filters, object_filter);
    for (size_t i = 0; i < sq_json_count(given) && !failed; i++)
        failed = sq_json_append(filters, sq_json_copy(sq_json_at(given, i)));
    if (failed)
        return sq_error_memory(err, 1);
    *ret = filters;
    filters = NULL;
    return 0;
}

/* ---- documents -------------------------------------------------------------------------------------------------------------------- */

static int attributes_json(const char *text, struct sq_json **ret, struct squall_error *err)
{
    if (text)
        SQ_TRY(parse_json(text, "attributes", ret, err));
    else if (!(*ret = sq_json_new_object()))
        return sq_error_memory(err, 1);
    if (sq_json_type(*ret) == SQ_JSON_OBJECT)
        return 0;
    sq_json_free(*ret);
    *ret = NULL;
    return sq_error(err, SQUALL_EINVAL, "its attributes are no JSON object");
}

static struct sq_json *json_of_dims(unsigned rank, const char *const *dims, bool nulls)
{
    struct sq_json *list = sq_json_new_array();
    for (unsigned d = 0; list && d < rank; d++)
        if (sq_json_append(list, dims[d][0] || !nulls ? sq_json_new_string(dims[d]) : sq_json_new_null())) {
            sq_json_free(list);
            return NULL;
        }
    return list;
}

static struct sq_json *key_encoding(const struct squall_array_spec *spec)
{
    const char separator[] = {spec->separator ? spec->separator : spec->v2_keys ? '.' : '/', 0};
    return sq_extension_json(spec->v2_keys ? "v2" : "default", "separator", sq_json_new_string(separator));
}

static struct sq_json *rectilinear_grid(const struct sq_json *chunk_shapes)
{
    struct sq_json *configuration = sq_json_new_object();
    int failed = sq_json_set_string(configuration, "kind", "inline");
    failed |= sq_json_set(configuration, "chunk_shapes", sq_json_share(chunk_shapes));
    if (!failed)
        return extension("rectilinear", configuration);
    sq_json_free(configuration);
    return NULL;
}

int sq_array_document_v3(const struct sq_array_parts *p, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *v = sq_json_new_object();
    int failed = sq_json_set_int(v, "zarr_format", 3);
    failed |= sq_json_set_string(v, "node_type", "array");
    failed |= sq_json_set(v, "shape", sq_json_new_uints(p->shape, p->rank));
    failed |= sq_json_set(v, "data_type", sq_json_share(p->type));
    failed |= sq_json_set(v, "chunk_grid",
                          p->chunk_shapes ? rectilinear_grid(p->chunk_shapes)
                                          : sq_extension_json("regular", "chunk_shape", sq_json_new_uints(p->chunks, p->rank)));
    failed |= sq_json_set(v, "chunk_key_encoding", sq_json_share(p->key_encoding));
    failed |= sq_json_set(v, "fill_value", sq_json_share(p->fill_value));
    failed |= sq_json_set(v, "codecs", sq_json_share(p->codecs));
    failed |= sq_json_set(v, "attributes", p->attributes ? sq_json_share(p->attributes) : sq_json_new_object());
    if (p->dims)
        failed |= sq_json_set(v, "dimension_names", json_of_dims(p->rank, p->dims, true));
    if (failed) {
        sq_json_free(v);
        return sq_error_memory(err, 1);
    }
    *ret = v;
    return 0;
}

static int make_v3(const struct array_making *m, struct sq_node *node, struct squall_error *err)
{
    const struct squall_array_spec *spec = m->spec;
    SQ_CLEANUP_JSON struct sq_json *fill = NULL;
    SQ_CLEANUP_JSON struct sq_json *codecs = NULL;
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    SQ_TRY(fill_json(m, &fill, err));
    SQ_TRY(codecs_v3(m, &codecs, err));
    SQ_TRY(attributes_json(spec->attributes, &attributes, err));
    SQ_CLEANUP_JSON struct sq_json *keys = key_encoding(spec);
    const struct sq_array_parts parts = {
        .rank = spec->rank,
        .shape = spec->shape,
        .chunks = spec->shards ? spec->shards : m->chunks,
        .chunk_shapes = m->chunk_shapes,
        .type = m->type_json,
        .key_encoding = keys,
        .fill_value = fill,
        .codecs = codecs,
        .attributes = attributes,
        .dims = spec->dims,
    };
    return sq_array_document_v3(&parts, &node->document, err);
}

int sq_array_document_v2(const struct sq_array_parts_v2 *p, struct sq_json **ret, struct squall_error *err)
{
    const char separator[] = {p->separator, 0};
    struct sq_json *v = sq_json_new_object();
    int failed = sq_json_set_int(v, "zarr_format", 2);
    failed |= sq_json_set(v, "shape", sq_json_new_uints(p->shape, p->rank));
    failed |= sq_json_set(v, "chunks", sq_json_new_uints(p->chunks, p->rank));
    failed |= sq_json_set(v, "dtype", sq_json_share(p->type));
    failed |= sq_json_set(v, "fill_value", sq_json_share(p->fill_value));
    failed |= sq_json_set_string(v, "order", p->column_major ? "F" : "C");
    failed |= sq_json_set(v, "filters", sq_json_count(p->filters) ? sq_json_share(p->filters) : sq_json_new_null());
    failed |= sq_json_set(v, "compressor", p->compressor ? sq_json_share(p->compressor) : sq_json_new_null());
    failed |= sq_json_set_string(v, "dimension_separator", separator);
    if (failed) {
        sq_json_free(v);
        return sq_error_memory(err, 1);
    }
    *ret = v;
    return 0;
}

int sq_set_dims_v2(struct sq_json *attributes, unsigned rank, const char *const *dims)
{
    return sq_json_set(attributes, "_ARRAY_DIMENSIONS", json_of_dims(rank, dims, false));
}

static int make_v2(const struct array_making *m, const char *object_filter, struct sq_node *node, struct squall_error *err)
{
    const struct squall_array_spec *spec = m->spec;
    SQ_CLEANUP_JSON struct sq_json *fill = NULL;
    SQ_CLEANUP_JSON struct sq_json *filters = NULL;
    SQ_CLEANUP_JSON struct sq_json *compressor = NULL;
    SQ_TRY(fill_json(m, &fill, err));
    SQ_TRY(filters_v2(m, object_filter, &filters, err));
    if (spec->codecs && (is_json(spec->codecs) || !strcmp(spec->codecs, "null")))
        SQ_TRY(parse_json(spec->codecs, "compressor", &compressor, err));
    else
        SQ_TRY(words_v2(m, filters, &compressor, err));
    SQ_TRY(attributes_json(spec->attributes, &node->attributes, err));
    const struct sq_array_parts_v2 parts = {
        .rank = spec->rank,
        .shape = spec->shape,
        .chunks = m->chunks,
        .type = m->type_json,
        .fill_value = fill,
        .filters = filters,
        .compressor = compressor,
        .separator = spec->separator ? spec->separator : '.',
        .column_major = spec->column_major,
    };
    SQ_TRY(sq_array_document_v2(&parts, &node->document, err));
    return spec->dims && sq_set_dims_v2(node->attributes, spec->rank, spec->dims) ? sq_error_memory(err, 1) : 0;
}

uint64_t sq_chunk_list_length(const struct sq_json *lengths)
{
    uint64_t sum = 0, length = 0, count = 1, product;
    for (size_t i = 0; i < sq_json_count(lengths); i++) {
        const struct sq_json *entry = sq_json_at(lengths, i), *repeated = sq_json_at(entry, 1);
        (void)sq_json_uint(repeated ? sq_json_at(entry, 0) : entry, &length); /* whatever is none has been refused */
        count = 1;
        (void)sq_json_uint(repeated, &count);
        if (!sq_mul_u64(length, count, &product) || !sq_add_u64(sum, product, &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* Do chunks of this length divide all of the grid's along the dimension? */
static bool divides(uint64_t chunk, const struct sq_zarr_array *grid, unsigned d)
{
    bool all = chunk > 0 && grid->chunks[d] % chunk == 0;
    for (uint64_t k = 1; k < grid->edge_counts[d] && all; k++)
        all = (grid->edges[d][k] - grid->edges[d][k - 1]) % chunk == 0;
    return all;
}

/* The lists of a rectilinear grid: their longest chunks, of shards the inner ones, are what codecs are told of. */
static int set_chunk_shapes(struct array_making *m, struct squall_error *err)
{
    const struct squall_array_spec *spec = m->spec;
    struct sq_zarr_array a = {.rank = spec->rank};
    struct squall_error reason = SQUALL_ERROR_INIT;
    SQ_TRY(parse_json(spec->chunk_shapes, "chunk shapes", &m->chunk_shapes, err));
    SQ_CLEANUP_JSON struct sq_json *grid = rectilinear_grid(m->chunk_shapes);
    if (!grid)
        return sq_error_memory(err, 1);
    memcpy(a.shape, spec->shape, spec->rank * sizeof *a.shape);
    int status = sq_zarr_parse_grid(grid, &a, &reason);
    if (status)
        status = sq_error(err, status == SQUALL_ECORRUPT ? SQUALL_EINVAL : status, "%s", reason.message);
    memcpy(m->chunks, spec->chunks ? spec->chunks : a.chunks, spec->rank * sizeof *m->chunks);
    for (unsigned d = 0; d < spec->rank && !status; d++)
        if (!divides(m->chunks[d], &a, d) && spec->chunks)
            status = sq_error(err, SQUALL_EINVAL, "its chunks have length %llu along dimension %u, which does not divide its shards",
                              (unsigned long long)m->chunks[d], d);
    sq_zarr_array_done(&a);
    for (unsigned d = 0; d < spec->rank && !status; d++) {
        const struct sq_json *lengths = sq_json_at(m->chunk_shapes, d);
        const uint64_t room = sq_json_type(lengths) == SQ_JSON_ARRAY ? sq_chunk_list_length(lengths) : spec->shape[d];
        if (room != spec->shape[d])
            status = sq_error(err, SQUALL_EINVAL, "its chunks along dimension %u have %llu elements, the array %llu", d,
                              (unsigned long long)room, (unsigned long long)spec->shape[d]);
    }
    return status;
}

static int measure_chunk(struct array_making *m, struct squall_error *err)
{
    m->chunk_bytes = m->type.dtype.element_bytes;
    for (unsigned d = 0; d < m->spec->rank; d++)
        if (!sq_mul_size(m->chunk_bytes, m->chunks[d], &m->chunk_bytes))
            return sq_error(err, SQUALL_EINVAL, "its chunks are too large for memory");
    return 0;
}

/* Chunks: where the spec says nothing, one. */
static int set_chunks(struct array_making *m, struct squall_error *err)
{
    const struct squall_array_spec *spec = m->spec;
    m->sharded = spec->shards || (spec->chunk_shapes && spec->chunks);
    if (spec->chunk_shapes) {
        SQ_TRY(set_chunk_shapes(m, err));
        return measure_chunk(m, err);
    }
    for (unsigned d = 0; d < spec->rank; d++) {
        m->chunks[d] = spec->chunks ? spec->chunks[d] : spec->shards ? spec->shards[d] : spec->shape[d] ? spec->shape[d] : 1;
        if (m->chunks[d] == 0 || (spec->shards && spec->shards[d] % m->chunks[d] != 0))
            return sq_error(err, SQUALL_EINVAL, "its chunks have length %llu along dimension %u%s", (unsigned long long)m->chunks[d], d,
                            m->chunks[d] ? ", which does not divide its shards" : "");
    }
    return measure_chunk(m, err);
}

/* As everybody will read it. */
static int check(const struct sq_node *node, struct squall_error *err)
{
    struct sq_zarr_array a = {0};
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = node->version == 3 ? sq_zarr_parse_v3(node->document, &a, &reason)
                                    : sq_zarr_parse_v2(node->document, node->attributes, &a, &reason);
    if (!status && a.unsupported)
        status = sq_error(&reason, SQUALL_EUNSUPPORTED, "%s", a.unsupported);
    sq_zarr_array_done(&a);
    return status ? sq_error(err, status == SQUALL_ECORRUPT ? SQUALL_EINVAL : status, "%s", reason.message) : 0;
}

static int make(struct array_making *m, struct sq_node *node, struct squall_error *err)
{
    const struct squall_array_spec *spec = m->spec;
    const char *object_filter = NULL;
    if (spec->rank > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EINVAL, "%u dimensions; at most %d are possible", spec->rank, SQUALL_RANK_MAX);
    if (spec->separator && spec->separator != '/' && spec->separator != '.')
        return sq_error(err, SQUALL_EINVAL, "the separator of its chunk keys is neither / nor .");
    if (spec->shards && m->version == 2)
        return sq_error(err, SQUALL_EINVAL, "Zarr v2 has no shards");
    if (spec->chunk_shapes && (m->version == 2 || spec->shards))
        return sq_error(err, SQUALL_EINVAL,
                        m->version == 2 ? "Zarr v2 has no rectilinear grids" : "shards of one shape in a rectilinear grid");
    if (m->version == 3) {
        SQ_TRY(type_json_v3(spec->type, &m->type_json, err));
        SQ_TRY(sq_zarr_type_parse_v3(m->type_json, NULL, &m->type, err));
    } else {
        SQ_TRY(type_json_v2(spec->type, &m->type_json, &object_filter, err));
        SQ_TRY(sq_zarr_type_parse_v2(m->type_json, object_filter, &m->type, err));
    }
    SQ_TRY(set_chunks(m, err));
    node->version = m->version;
    node->is_array = true;
    SQ_TRY(m->version == 3 ? make_v3(m, node, err) : make_v2(m, object_filter, node, err));
    return check(node, err);
}

int sq_node_of_spec(const struct squall_array_spec *spec, int version, struct sq_node *ret, struct squall_error *err)
{
    struct array_making m = {.spec = spec, .version = version};
    struct sq_node node = {0};
    int status = make(&m, &node, err);
    sq_zarr_type_done(&m.type);
    sq_json_free(m.type_json);
    sq_json_free(m.chunk_shapes);
    if (status)
        sq_node_done(&node);
    else
        *ret = node;
    return status;
}
