/*
 * Array documents of Zarr v3 (core specification 3.1, "Array metadata"). Every extension point is either a name or an
 * object {"name", "configuration"}; one that squall does not know makes the array unsupported, not damaged.
 */
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include <string.h>

static const char *const KNOWN_MEMBERS[] = {
    "zarr_format", "node_type", "shape",      "data_type",       "chunk_grid",           "chunk_key_encoding",
    "fill_value",  "codecs",    "attributes", "dimension_names", "storage_transformers", NULL,
};

/* NULL: it has none. */
static const char *extension_name(const struct sq_json *extension)
{
    const char *name = sq_json_string(extension);
    return name ? name : sq_json_string(sq_json_get(extension, "name"));
}

static const struct sq_json *configured(const struct sq_json *extension, const char *key)
{
    return sq_json_get(sq_json_get(extension, "configuration"), key);
}

/* "numpy.datetime64[ms]" where a unit is configured, else the bare name. */
static char *foreign_type_name(const struct sq_json *type, const char *name)
{
    const char *unit = sq_json_string(configured(type, "unit"));
    return unit ? sq_format("%s[%s]", name, unit) : sq_strdup(name);
}

static int parse_type(const struct sq_json *type, struct sq_zarr_array *a, struct squall_error *err)
{
    const char *name = extension_name(type);
    uint64_t bytes;
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its data type has no name");
    if (sq_type_from_name(name, &a->type) && a->type <= SQUALL_STRING) {
        a->type_name = sq_strdup(name);
    } else if (!strcmp(name, "fixed_length_utf32")) {
        if (!sq_json_uint(configured(type, "length_bytes"), &bytes) || bytes % 4 != 0 || bytes == 0 || bytes / 4 > INT32_MAX)
            return sq_error(err, SQUALL_ECORRUPT, "its texts have no length that is a multiple of 4 bytes");
        a->type = SQUALL_STRING;
        a->text_characters = (uint32_t)(bytes / 4);
        a->type_name = sq_format("<U%u", a->text_characters);
    } else {
        a->type_name = foreign_type_name(type, name);
        if (a->type_name)
            sq_text_make_visible(a->type_name);
        if (a->type_name)
            SQ_TRY(sq_zarr_unsupported(a, err, "unsupported data type %s", a->type_name));
    }
    return a->type_name ? 0 : sq_error_memory(err, strlen(name));
}

static int parse_grid(const struct sq_json *grid, struct sq_zarr_array *a, struct squall_error *err)
{
    const char *name = extension_name(grid);
    unsigned rank;
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk grid has no name");
    if (strcmp(name, "regular") != 0) {
        memcpy(a->chunks, a->shape, sizeof a->chunks);
        return sq_zarr_unsupported(a, err, "unsupported chunk grid %s", name);
    }
    SQ_TRY(sq_zarr_parse_lengths(configured(grid, "chunk_shape"), "its chunk shape", &rank, a->chunks, err));
    if (rank != a->rank)
        return sq_error(err, SQUALL_ECORRUPT, "its chunks have %u dimensions, the array has %u", rank, a->rank);
    return 0;
}

static int parse_key_encoding(const struct sq_json *encoding, struct sq_zarr_array *a, struct squall_error *err)
{
    const char *name = extension_name(encoding);
    if (!name)
        return sq_error(err, SQUALL_ECORRUPT, "its chunk key encoding has no name");
    a->default_encoding = !strcmp(name, "default");
    if (!a->default_encoding && strcmp(name, "v2") != 0)
        return sq_zarr_unsupported(a, err, "unsupported chunk key encoding %s", name);
    a->separator = a->default_encoding ? '/' : '.';
    const struct sq_json *separator = configured(encoding, "separator");
    const char *text = sq_json_string(separator);
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
        const char *name = extension_name(sq_json_at(codecs, i));
        if (!name)
            return sq_error(err, SQUALL_ECORRUPT, "its codec %zu has no name", i + 1);
        sq_text_printf(&names, "%s%s", i ? " + " : "", name);
    }
    a->codec_names = sq_text_release(&names);
    if (a->codec_names)
        sq_text_make_visible(a->codec_names);
    return a->codec_names ? 0 : sq_error_memory(err, count);
}

static int bind_codecs(const struct sq_json *codecs, struct sq_zarr_array *a, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    if (a->unsupported)
        return 0;
    const struct sq_codec_chunk chunk = sq_zarr_codec_chunk(a);
    int status = sq_codec_chain_bind_v3(codecs, &chunk, &chain, &reason);
    return sq_zarr_set_codecs(a, status, chain, &reason, err);
}

/* Anything that stands between codecs and store, or that must be understood: the bytes may mean something else. */
static int check_extensions(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *transformers = sq_json_get(document, "storage_transformers");
    const char *unknown = sq_zarr_unknown_member(document, KNOWN_MEMBERS);
    if (sq_json_count(transformers) > 0) {
        const char *name = extension_name(sq_json_at(transformers, 0));
        SQ_TRY(sq_zarr_unsupported(a, err, "unsupported storage transformer %s", name ? name : "without a name"));
    }
    return unknown ? sq_zarr_unsupported(a, err, "unsupported extension %s", unknown) : 0;
}

int sq_zarr_parse_v3(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *codecs = sq_json_get(document, "codecs"), *fill = sq_json_get(document, "fill_value");
    a->version = 3;
    SQ_TRY(sq_zarr_parse_lengths(sq_json_get(document, "shape"), "its shape", &a->rank, a->shape, err));
    SQ_TRY(parse_type(sq_json_get(document, "data_type"), a, err));
    SQ_TRY(parse_grid(sq_json_get(document, "chunk_grid"), a, err));
    SQ_TRY(parse_key_encoding(sq_json_get(document, "chunk_key_encoding"), a, err));
    SQ_TRY(sq_zarr_set_attributes(a, sq_json_get(document, "attributes"), err));
    SQ_TRY(sq_zarr_set_dims(a, sq_json_get(document, "dimension_names"), err));
    SQ_TRY(check_extensions(document, a, err));
    if (!fill)
        return sq_error(err, SQUALL_ECORRUPT, "it has no fill value");
    SQ_TRY(sq_zarr_set_fill(a, fill, err));
    SQ_TRY(name_codecs(codecs, a, err));
    SQ_TRY(sq_zarr_check_chunks(a, err));
    return bind_codecs(codecs, a, err);
}
