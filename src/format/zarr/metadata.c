/* See metadata.h: what the documents of both versions have in common. */
#include "format/zarr/metadata.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/zarr/fill.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* No chunk that anyone writes comes near; one that claims more is damage or an attack. */
static const uint64_t CHUNK_LIMIT_BYTES = UINT64_C(1) << 40;

void sq_zarr_array_done(struct sq_zarr_array *a)
{
    sq_free(a->name);
    sq_free(a->folder);
    sq_free(a->type_name);
    sq_free(a->numpy_type);
    for (unsigned d = 0; d < SQUALL_RANK_MAX; d++) {
        sq_free(a->dims[d]);
        sq_free(a->edges[d]);
    }
    sq_json_free(a->codec_list);
    sq_json_free(a->storage);
    sq_json_free(a->attributes);
    sq_json_free(a->fill_value);
    sq_zarr_fill_done(a->dtype.type, a->fill);
    sq_free(a->fill);
    sq_codec_chain_free(a->codecs);
    sq_free(a->codec_names);
    sq_free(a->unsupported);
}

/* The first reason holds. */
int sq_zarr_unsupported(struct sq_zarr_array *a, struct squall_error *err, const char *format, ...)
{
    if (a->unsupported)
        return 0;
    struct squall_error reason = SQUALL_ERROR_INIT;
    va_list args;
    va_start(args, format);
    vsnprintf(reason.message, sizeof reason.message, format, args);
    va_end(args);
    sq_text_make_visible(reason.message);
    a->unsupported = sq_strdup(reason.message);
    return a->unsupported ? 0 : sq_error_memory(err, sizeof reason.message);
}

int sq_zarr_parse_lengths(const struct sq_json *list, const char *what, unsigned *ret_rank, uint64_t ret[SQUALL_RANK_MAX],
                          struct squall_error *err)
{
    size_t count = sq_json_count(list);
    if (sq_json_type(list) != SQ_JSON_ARRAY)
        return sq_error(err, SQUALL_ECORRUPT, "%s is no list of lengths", what);
    if (count > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_ECORRUPT, "%s has %zu dimensions; at most %d are possible", what, count, SQUALL_RANK_MAX);
    for (size_t d = 0; d < count; d++)
        if (!sq_json_uint(sq_json_at(list, d), &ret[d]) || ret[d] > INT64_MAX)
            return sq_error(err, SQUALL_ECORRUPT, "%s: its length %zu is no whole number from 0 to 2^63 - 1", what, d + 1);
    *ret_rank = (unsigned)count;
    return 0;
}

int sq_zarr_set_attributes(struct sq_zarr_array *a, const struct sq_json *attributes, struct squall_error *err)
{
    enum sq_json_type type = sq_json_type(attributes);
    if (type != SQ_JSON_OBJECT && type != SQ_JSON_ABSENT && type != SQ_JSON_NULL)
        return sq_error(err, SQUALL_ECORRUPT, "its attributes are no object");
    a->attributes = type == SQ_JSON_OBJECT ? sq_json_share(attributes) : sq_json_new_object();
    return a->attributes ? 0 : sq_error_memory(err, sizeof(void *));
}

int sq_zarr_set_storage(struct sq_zarr_array *a, const struct sq_json *document, const char *const *names, struct squall_error *err)
{
    if (!(a->storage = sq_json_new_object()))
        return sq_error_memory(err, sizeof(void *));
    for (; *names; names++) {
        const struct sq_json *value = sq_json_get(document, *names);
        if (value && sq_json_set(a->storage, *names, sq_json_share(value)))
            return sq_error_memory(err, sizeof(void *));
    }
    return 0;
}

int sq_zarr_set_dims(struct sq_zarr_array *a, const struct sq_json *names, struct squall_error *err)
{
    bool named = names && sq_json_type(names) != SQ_JSON_NULL;
    if (named && (sq_json_type(names) != SQ_JSON_ARRAY || sq_json_count(names) != a->rank))
        return sq_error(err, SQUALL_ECORRUPT, "its dimension names are not a name for each of %u dimensions", a->rank);
    for (unsigned d = 0; d < a->rank; d++) {
        const struct sq_json *member = sq_json_at(names, d);
        const char *name = sq_json_string(member);
        if (named && !name && sq_json_type(member) != SQ_JSON_NULL)
            return sq_error(err, SQUALL_ECORRUPT, "the name of its dimension %u is no text", d + 1);
        if (name && !sq_text_is_visible(name))
            return sq_error(err, SQUALL_ECORRUPT, "the name of its dimension %u has control characters: %s", d + 1, name);
        a->dims[d] = sq_strdup(name ? name : "");
        if (!a->dims[d])
            return sq_error_memory(err, 1);
    }
    return 0;
}

int sq_zarr_set_type(struct sq_zarr_array *a, int status, const struct sq_zarr_type *type, const struct squall_error *reason,
                     struct squall_error *err)
{
    if (status && status != SQUALL_EUNSUPPORTED)
        return sq_error(err, status, "%s", reason->message);
    a->dtype = type->dtype;
    a->type_name = sq_strdup(type->name);
    a->numpy_type = sq_strdup(status ? "|V0" : type->numpy);
    if (!a->type_name || !a->numpy_type)
        return sq_error_memory(err, strlen(type->name));
    sq_text_make_visible(a->type_name);
    return status ? sq_zarr_unsupported(a, err, "%s", reason->message) : 0;
}

int sq_zarr_set_fill(struct sq_zarr_array *a, const struct sq_zarr_type *type, const struct sq_json *value, struct squall_error *err)
{
    if (value && sq_json_type(value) != SQ_JSON_NULL)
        a->fill_value = sq_json_share(value);
    if (a->unsupported)
        return 0;
    if (!(a->fill = sq_alloc_zero(1, type->dtype.element_bytes)))
        return sq_error_memory(err, type->dtype.element_bytes);
    return sq_zarr_fill_element(type, value, a->fill, err);
}

int sq_zarr_check_chunks(struct sq_zarr_array *a, struct squall_error *err)
{
    uint64_t elements = 1, bytes;
    bool fits = true;
    for (unsigned d = 0; d < a->rank; d++) {
        if (a->chunks[d] == 0 && a->shape[d] > 0)
            return sq_error(err, SQUALL_ECORRUPT, "its chunks have length 0 along dimension %u", d + 1);
        if (a->chunks[d] == 0) /* some writers say so of an empty dimension, which has no chunks at all */
            a->chunks[d] = 1;
        fits = fits && sq_mul_u64(elements, a->chunks[d], &elements);
    }
    fits = fits && sq_mul_u64(elements, a->dtype.element_bytes, &bytes) && bytes <= CHUNK_LIMIT_BYTES;
    a->chunk_elements = elements;
    return fits ? 0 : sq_zarr_unsupported(a, err, "unsupported chunk size: more than 1 TiB");
}

struct sq_codec_chunk sq_zarr_codec_chunk(const struct sq_zarr_array *a)
{
    return (struct sq_codec_chunk){
        .dtype = a->dtype,
        .rank = a->rank,
        .shape = a->chunks,
        .fill = a->fill,
    };
}

int sq_zarr_set_codecs(struct sq_zarr_array *a, int status, struct sq_codec_chain *chain, const struct squall_error *reason,
                       struct squall_error *err)
{
    if (status == SQUALL_EUNSUPPORTED)
        return sq_zarr_unsupported(a, err, "%s", reason->message);
    if (status)
        return sq_error(err, status, "%s", reason->message);
    a->codecs = chain;
    sq_free(a->codec_names);
    a->codec_names = sq_strdup(sq_codec_chain_text(chain));
    return a->codec_names ? 0 : sq_error_memory(err, 1);
}

char *sq_zarr_chunk_key(const struct sq_zarr_array *a, const uint64_t *chunk)
{
    SQ_CLEANUP_TEXT struct sq_text key = SQ_TEXT_INIT;
    sq_text_add(&key, a->default_encoding ? "c" : "");
    for (unsigned d = 0; d < a->rank; d++) {
        if (d > 0 || a->default_encoding)
            sq_text_add_bytes(&key, &a->separator, 1);
        sq_text_printf(&key, "%" PRIu64, chunk[d]);
    }
    if (a->rank == 0 && !a->default_encoding)
        sq_text_add(&key, "0");
    return sq_text_release(&key);
}

bool sq_zarr_is_node_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && strncmp(name, "__", 2) != 0 && strcmp(name, "zarr.json") != 0 &&
           sq_text_is_visible(name);
}
