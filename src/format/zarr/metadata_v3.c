/*
 * Array documents of Zarr v3 (core specification 3.1, "Array metadata"). Every extension point is either a name or an
 * object {"name", "configuration"}; one that squall does not know makes the array unsupported, not damaged.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include <string.h>

static const char *const KNOWN_MEMBERS[] = {
    "zarr_format", "node_type", "shape",      "data_type",       "chunk_grid",           "chunk_key_encoding",
    "fill_value",  "codecs",    "attributes", "dimension_names", "storage_transformers", NULL,
};

static const char *const STORAGE_MEMBERS[] = {"codecs", "chunk_key_encoding", NULL};

static int parse_type_and_fill(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *fill = sq_json_get(document, "fill_value");
    struct sq_zarr_type type;
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = sq_zarr_type_parse_v3(sq_json_get(document, "data_type"), sq_json_get(document, "codecs"), &type, &reason);
    status = sq_zarr_set_type(a, status, &type, &reason, err);
    if (!status && !fill)
        status = sq_error(err, SQUALL_ECORRUPT, "it has no fill value");
    if (!status)
        status = sq_zarr_set_fill(a, &type, fill, err);
    sq_zarr_type_done(&type);
    return status;
}

static int parse_key_encoding(const struct sq_json *encoding, struct sq_zarr_array *a, struct squall_error *err)
{
    const char *name = sq_zarr_extension_name(encoding);
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk key encoding has no name");
    a->default_encoding = !strcmp(name, "default");
    if (!a->default_encoding && strcmp(name, "v2") != 0)
        return sq_zarr_unsupported(a, err, "unsupported chunk key encoding %s", name);
    a->separator = a->default_encoding ? '/' : '.';
    const struct sq_json *configuration = sq_json_get(encoding, "configuration"), *separator = sq_json_get(configuration, "separator");
    const char *text = sq_json_string(separator);
    if (configuration && sq_json_type(configuration) != SQ_JSON_OBJECT)
        return sq_error(err, SQUALL_ECORRUPT, "the configuration of its chunk keys is no object");
    if (separator && (!text || (strcmp(text, "/") != 0 && strcmp(text, ".") != 0)))
        return sq_error(err, SQUALL_ECORRUPT, "the separator of its chunk keys is neither / nor .");
    if (text)
        a->separator = text[0];
    return 0;
}

static int name_codecs(const struct sq_json *codecs, struct sq_zarr_array *a, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    size_t count = sq_json_count(codecs);
    if (sq_json_type(codecs) != SQ_JSON_ARRAY || count == 0)
        return sq_error(err, SQUALL_ECORRUPT, "its codecs are no list");
    for (size_t i = 0; i < count; i++) {
        const char *name = sq_zarr_extension_name(sq_json_at(codecs, i));
        if (!name)
            return sq_error(err, SQUALL_ECORRUPT, "its codec %zu has no name", i + 1);
        sq_text_printf(&names, "%s%s", i ? " + " : "", name);
    }
    a->codec_names = sq_text_release(&names);
    if (a->codec_names)
        sq_text_make_visible(a->codec_names);
    return a->codec_names ? 0 : sq_error_memory(err, count);
}

static bool has_edges(const struct sq_zarr_array *a)
{
    for (unsigned d = 0; d < a->rank; d++)
        if (a->edges[d])
            return true;
    return false;
}

static int bind_codecs(const struct sq_json *codecs, struct sq_zarr_array *a, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    if (a->unsupported)
        return 0;
    if (has_edges(a))
        a->codec_list = sq_json_share(codecs);
    const struct sq_codec_chunk chunk = sq_zarr_codec_chunk(a);
    int status = sq_codec_chain_bind_v3(codecs, &chunk, &chain, &reason);
    return sq_zarr_set_codecs(a, status, chain, &reason, err);
}

int sq_zarr_bind_chunk(const struct sq_zarr_array *a, const uint64_t *chunk_shape, struct sq_codec_chain **ret, struct squall_error *err)
{
    struct sq_codec_chunk chunk = sq_zarr_codec_chunk(a);
    chunk.shape = chunk_shape;
    return sq_codec_chain_bind_v3(a->codec_list, &chunk, ret, err);
}

/* The first that must be understood; NULL: none. */
static const struct sq_json *first_transformer(const struct sq_json *transformers)
{
    bool must_understand;
    for (size_t i = 0; i < sq_json_count(transformers); i++) {
        const struct sq_json *t = sq_json_at(transformers, i);
        if (!sq_json_bool(sq_json_get(t, "must_understand"), &must_understand) || must_understand)
            return t;
    }
    return NULL;
}

/* Anything that stands between codecs and store, or that must be understood: the bytes may mean something else. */
static int check_extensions(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *transformers = sq_json_get(document, "storage_transformers"), *transformer = first_transformer(transformers);
    const char *unknown = sq_json_unknown_member(document, KNOWN_MEMBERS);
    if (sq_json_type(transformers) > SQ_JSON_NULL && sq_json_type(transformers) != SQ_JSON_ARRAY)
        return sq_error(err, SQUALL_ECORRUPT, "its storage transformers are no list");
    if (transformer) {
        const char *name = sq_zarr_extension_name(transformer);
        SQ_TRY(sq_zarr_unsupported(a, err, "unsupported storage transformer %s", name ? name : "without a name"));
    }
    return unknown ? sq_zarr_unsupported(a, err, "unsupported extension %s", unknown) : 0;
}

int sq_zarr_parse_v3(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *codecs = sq_json_get(document, "codecs");
    a->version = 3;
    SQ_TRY(sq_zarr_parse_lengths(sq_json_get(document, "shape"), "its shape", &a->rank, a->shape, err));
    SQ_TRY(parse_type_and_fill(document, a, err));
    SQ_TRY(sq_zarr_parse_grid(sq_json_get(document, "chunk_grid"), a, err));
    SQ_TRY(parse_key_encoding(sq_json_get(document, "chunk_key_encoding"), a, err));
    SQ_TRY(sq_zarr_set_storage(a, document, STORAGE_MEMBERS, err));
    SQ_TRY(sq_zarr_set_attributes(a, sq_json_get(document, "attributes"), err));
    SQ_TRY(sq_zarr_set_dims(a, sq_json_get(document, "dimension_names"), err));
    SQ_TRY(check_extensions(document, a, err));
    SQ_TRY(name_codecs(codecs, a, err));
    SQ_TRY(sq_zarr_check_chunks(a, err));
    return bind_codecs(codecs, a, err);
}
