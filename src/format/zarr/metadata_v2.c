/*
 * Array documents of Zarr v2: .zarray in numpy's words (type strings as the array protocol spells them, order, filters and
 * compressor by numcodecs' ids), and xarray's dimension names among the attributes.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include <string.h>

static const char DIMENSIONS[] = "_ARRAY_DIMENSIONS";

static int parse_separator(const struct sq_json *document, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *separator = sq_json_get(document, "dimension_separator");
    const char *text = sq_json_string(separator);
    a->separator = text ? text[0] : '.';
    if (separator && sq_json_type(separator) != SQ_JSON_NULL && (!text || (strcmp(text, ".") != 0 && strcmp(text, "/") != 0)))
        return sq_error(err, SQUALL_ECORRUPT, "its dimension separator is neither . nor /");
    return 0;
}

static int parse_order(const struct sq_json *document, bool *ret_column_major, struct squall_error *err)
{
    const char *order = sq_json_string(sq_json_get(document, "order"));
    if (!order || (strcmp(order, "C") != 0 && strcmp(order, "F") != 0))
        return sq_error(err, SQUALL_ECORRUPT, "its order is neither C nor F");
    *ret_column_major = order[0] == 'F';
    return 0;
}

static int add_codec_name(struct sq_text *names, const struct sq_json *codec, struct squall_error *err)
{
    const char *id = sq_json_string(sq_json_get(codec, "id"));
    if (!id)
        return sq_error(err, SQUALL_ECORRUPT, "one of its filters, or its compressor, has no id");
    sq_text_printf(names, "%s%s", names->length ? " + " : "", id);
    return 0;
}

static int name_codecs(const struct sq_json *filters, const struct sq_json *compressor, struct sq_zarr_array *a, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text names = SQ_TEXT_INIT;
    if (filters && sq_json_type(filters) != SQ_JSON_NULL && sq_json_type(filters) != SQ_JSON_ARRAY)
        return sq_error(err, SQUALL_ECORRUPT, "its filters are no list");
    for (size_t i = 0; i < sq_json_count(filters); i++)
        SQ_TRY(add_codec_name(&names, sq_json_at(filters, i), err));
    if (compressor && sq_json_type(compressor) != SQ_JSON_NULL)
        SQ_TRY(add_codec_name(&names, compressor, err));
    if (names.length == 0)
        sq_text_add(&names, "none");
    a->codec_names = sq_text_release(&names);
    if (a->codec_names)
        sq_text_make_visible(a->codec_names);
    return a->codec_names ? 0 : sq_error_memory(err, 1);
}

/* xarray keeps the names of v2's dimensions among the attributes; what is no list of names is an attribute like others. */
static int set_names_and_attributes(const struct sq_json *attributes, struct sq_zarr_array *a, struct squall_error *err)
{
    SQ_TRY(sq_zarr_set_attributes(a, attributes, err));
    const struct sq_json *names = sq_json_get(a->attributes, DIMENSIONS);
    bool usable = sq_json_type(names) == SQ_JSON_ARRAY && sq_json_count(names) == a->rank;
    for (unsigned d = 0; usable && d < a->rank; d++)
        usable = sq_json_string(sq_json_at(names, d)) != NULL;
    SQ_TRY(sq_zarr_set_dims(a, usable ? names : NULL, err));
    if (!usable)
        return 0;
    struct sq_json *others = sq_json_copy(a->attributes); /* the document stays as it is */
    if (!others)
        return sq_error_memory(err, sizeof(void *));
    sq_json_remove(others, DIMENSIONS);
    sq_json_free(a->attributes);
    a->attributes = others;
    return 0;
}

static int parse_type_and_fill(const struct sq_json *document, struct sq_zarr_array *a, bool *ret_big_endian, struct squall_error *err)
{
    struct sq_zarr_type type;
    struct squall_error reason = SQUALL_ERROR_INIT;
    const char *first_filter = sq_json_string(sq_json_get(sq_json_at(sq_json_get(document, "filters"), 0), "id"));
    int status = sq_zarr_type_parse_v2(sq_json_get(document, "dtype"), first_filter, &type, &reason);
    status = sq_zarr_set_type(a, status, &type, &reason, err);
    if (!status)
        status = sq_zarr_set_fill(a, &type, sq_json_get(document, "fill_value"), err);
    *ret_big_endian = type.big_endian;
    sq_zarr_type_done(&type);
    return status;
}

static int bind_codecs(const struct sq_json *filters, const struct sq_json *compressor, bool big_endian, bool column_major,
                       struct sq_zarr_array *a, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_codec_chain *chain = NULL;
    if (a->unsupported)
        return 0;
    struct sq_codec_chunk chunk = sq_zarr_codec_chunk(a);
    chunk.big_endian = big_endian;
    chunk.column_major = column_major;
    int status = sq_codec_chain_bind_v2(filters, compressor, &chunk, &chain, &reason);
    return sq_zarr_set_codecs(a, status, chain, &reason, err);
}

static const char *const STORAGE_MEMBERS[] = {"compressor", "filters", "order", NULL};

int sq_zarr_parse_v2(const struct sq_json *document, const struct sq_json *attributes, struct sq_zarr_array *a, struct squall_error *err)
{
    const struct sq_json *filters = sq_json_get(document, "filters"), *compressor = sq_json_get(document, "compressor");
    unsigned chunk_rank;
    bool big_endian = false, column_major = false;
    uint64_t version;
    a->version = 2;
    if (sq_json_uint(sq_json_get(document, "zarr_format"), &version) && version != 2)
        SQ_TRY(sq_zarr_unsupported(a, err, "unsupported zarr_format %llu in a .zarray", (unsigned long long)version));
    SQ_TRY(sq_zarr_parse_lengths(sq_json_get(document, "shape"), "its shape", &a->rank, a->shape, err));
    SQ_TRY(sq_zarr_parse_lengths(sq_json_get(document, "chunks"), "its chunk shape", &chunk_rank, a->chunks, err));
    if (chunk_rank != a->rank)
        return sq_error(err, SQUALL_ECORRUPT, "its chunks have %u dimensions, the array has %u", chunk_rank, a->rank);
    SQ_TRY(parse_type_and_fill(document, a, &big_endian, err));
    SQ_TRY(parse_separator(document, a, err));
    SQ_TRY(parse_order(document, &column_major, err));
    SQ_TRY(sq_zarr_set_storage(a, document, STORAGE_MEMBERS, err));
    SQ_TRY(set_names_and_attributes(attributes, a, err));
    SQ_TRY(name_codecs(filters, compressor, a, err));
    SQ_TRY(sq_zarr_check_chunks(a, err));
    return bind_codecs(filters, compressor, big_endian, column_major, a, err);
}
