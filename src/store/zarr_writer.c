/*
 * See zarr_writer.h. Metadata as Zarr v3.1 ("Array metadata", "Group metadata") and, for the root, zarr-python's inline
 * consolidated metadata; or as Zarr v2, with its .zmetadata. Folders are made by sq_folder_make_durable only, whose rule makes it cheap to ask for each chunk.
 */
#include "store/zarr_writer.h"
#include "array/dtype.h"
#include "base/checked.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "engine/scatter.h"
#include "format/zarr/fill.h"
#include "format/zarr/metadata.h"
#include "store/store.h"
#include "sys/file.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const DOCUMENTS[] = {"zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"};

const char *sq_store_root_document(int zarr_format)
{
    return zarr_format == 2 ? ".zmetadata" : "zarr.json";
}

bool sq_store_is_document(const char *name)
{
    for (size_t i = 0; i < sizeof DOCUMENTS / sizeof *DOCUMENTS; i++)
        if (!strcmp(name, DOCUMENTS[i]))
            return true;
    return false;
}

static int check_name(const char *name, struct squall_error *err)
{
    if (!name || !sq_zarr_is_node_name(name))
        return sq_error(err, SQUALL_EINVAL, "'%s' cannot be the name of an array in a Zarr store", name ? name : "");
    return 0;
}

static int check_array(const struct sq_store_array *a, struct squall_error *err)
{
    SQ_TRY(check_name(a->name, err));
    if (a->rank > SQUALL_RANK_MAX)
        return sq_error(err, SQUALL_EINVAL, "array %s: %u dimensions; at most %d are possible", a->name, a->rank, SQUALL_RANK_MAX);
    for (unsigned d = 0; d < a->rank; d++)
        if (a->chunks[d] == 0)
            return sq_error(err, SQUALL_EINVAL, "array %s: a chunk of length 0 along dimension %u", a->name, d);
    uint8_t element[SQ_ZARR_FILL_BYTES];
    bool fits =
        a->type == SQUALL_STRING ? !a->fill_value || sq_json_string(a->fill_value) : sq_zarr_fill_parse(a->type, a->fill_value, element);
    return fits ? 0 : sq_error(err, SQUALL_EINVAL, "array %s: its fill value is no %s", a->name, sq_type_name(a->type));
}

static struct sq_json *default_fill(enum squall_type type)
{
    if (type == SQUALL_STRING)
        return sq_json_new_string("");
    if (type == SQUALL_BOOL)
        return sq_json_new_bool(false);
    return sq_type_is_float(type) ? sq_json_new_string("NaN") : sq_json_new_int(0);
}

static int node_v3(const struct sq_store_array *a, struct sq_node *node, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *type = sq_json_new_string(sq_type_name(a->type)), *codecs = sq_codec_chain_json_v3(a->codecs, true);
    SQ_CLEANUP_JSON struct sq_json *fill = a->fill_value ? sq_json_copy(a->fill_value) : default_fill(a->type);
    SQ_CLEANUP_JSON struct sq_json *keys = sq_extension_json("default", "separator", sq_json_new_string("/"));
    SQ_CLEANUP_JSON struct sq_json *attributes = a->attributes ? sq_json_copy(a->attributes) : sq_json_new_object();
    if (!attributes)
        return sq_error_memory(err, sizeof(void *));
    const struct sq_array_parts parts = {
        .rank = a->rank,
        .shape = a->shape,
        .chunks = a->chunks,
        .type = type,
        .key_encoding = keys,
        .fill_value = fill,
        .codecs = codecs,
        .attributes = attributes,
        .dims = a->dims,
    };
    return sq_array_document_v3(&parts, &node->document, err);
}

bool sq_store_tells_fill(const struct sq_store_array *a, int zarr_format)
{
    const char *word = sq_json_string(a->fill_value);
    const bool is_nan = sq_type_is_float(a->type) && (!a->fill_value || (word && !strcmp(word, "NaN")));
    return zarr_format == 3 || is_nan || sq_json_get(a->attributes, "_FillValue");
}

static int node_v2(const struct sq_store_array *a, struct sq_node *node, struct squall_error *err)
{
    const bool is_text = a->type == SQUALL_STRING;
    SQ_CLEANUP_JSON struct sq_json *type = sq_json_new_string(is_text ? "|O" : sq_type_numpy(a->type));
    SQ_CLEANUP_JSON struct sq_json *codecs = sq_codec_chain_json_v3(a->codecs, true), *filters = sq_json_new_array();
    SQ_CLEANUP_JSON struct sq_json *compressor = NULL;
    SQ_CLEANUP_JSON struct sq_json *fill = !sq_store_tells_fill(a, 2) ? sq_json_new_null()
                                           : a->fill_value            ? sq_json_copy(a->fill_value)
                                                                      : default_fill(a->type);
    node->attributes = a->attributes ? sq_json_copy(a->attributes) : sq_json_new_object();
    if ((is_text && sq_filter_v2(filters, "vlen-utf8")) || !type || !codecs || !filters || !fill || !node->attributes ||
        sq_set_dims_v2(node->attributes, a->rank, a->dims))
        return sq_error_memory(err, sizeof(void *));
    sq_json_remove(node->attributes, "_FillValue");
    SQ_TRY(sq_codecs_v2(codecs, filters, &compressor, err));
    const struct sq_array_parts_v2 parts = {
        .rank = a->rank,
        .shape = a->shape,
        .chunks = a->chunks,
        .type = type,
        .fill_value = fill,
        .filters = filters,
        .compressor = compressor,
        .separator = '/', /* folders of few files, as in v3 */
    };
    return sq_array_document_v2(&parts, &node->document, err);
}

int sq_store_array_node(const struct sq_store_array *a, int zarr_format, struct sq_node *ret, struct squall_error *err)
{
    struct sq_node node = {.version = zarr_format, .is_array = true};
    SQ_TRY(check_array(a, err));
    int status = zarr_format == 2 ? node_v2(a, &node, err) : node_v3(a, &node, err);
    if (status)
        sq_node_done(&node);
    else
        *ret = node;
    return status;
}

/* A table of consolidated metadata, by reference. group: of version 2, whose documents are in it, too; NULL: none. *ret: the caller's. */
static int consolidate(const struct sq_node *group, const struct sq_store_array *arrays, const struct sq_node *nodes, size_t count,
                       struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *table = sq_json_new_object();
    if (!table)
        return sq_error_memory(err, sizeof(void *));
    if (group)
        SQ_TRY(sq_node_put(table, "", group, err));
    for (size_t i = 0; i < count; i++)
        SQ_TRY(sq_node_put(table, arrays[i].name, &nodes[i], err));
    *ret = table;
    table = NULL;
    return 0;
}

/* The root group. */
static int root_v3(const struct sq_json *attributes, const struct sq_json *metadata, struct sq_json **ret, struct squall_error *err)
{
    struct sq_json *root = sq_json_new_object(), *consolidated = sq_json_new_object();
    int failed = sq_json_set_string(consolidated, "kind", "inline");
    failed |= sq_json_set(consolidated, "must_understand", sq_json_new_bool(false));
    failed |= sq_json_set(consolidated, "metadata", sq_json_share(metadata));
    failed |= sq_json_set_int(root, "zarr_format", 3);
    failed |= sq_json_set_string(root, "node_type", "group");
    failed |= sq_json_set(root, "attributes", attributes ? sq_json_copy(attributes) : sq_json_new_object());
    failed |= sq_json_set(root, "consolidated_metadata", consolidated);
    if (failed) {
        sq_json_free(root);
        return sq_error_memory(err, sizeof(void *));
    }
    *ret = root;
    return 0;
}

/* Does the file hold exactly these bytes? One that cannot be read holds others: the write that follows tells why. */
static bool file_holds(const char *path, const void *bytes, size_t size_bytes)
{
    SQ_CLEANUP_FREE char *there = NULL;
    size_t there_bytes;
    if (sq_file_read_all(path, size_bytes, &there, &there_bytes, NULL))
        return false;
    return there_bytes == size_bytes && (!bytes || memcmp(there, bytes, size_bytes) == 0);
}

/* A document of the store: its text, and whether the file says that already. */
struct document {
    char *folder, *path;
    struct sq_text text;
    bool same;
};

static void document_done(struct document *d)
{
    sq_free(d->folder);
    sq_free(d->path);
    sq_text_done(&d->text);
}

/* folder is taken; document_done whatever comes of it. */
static int document_init(struct document *d, char *folder, const char *name, const struct sq_json *value, struct squall_error *err)
{
    *d = (struct document){.folder = folder, .path = folder ? sq_path_join(folder, name) : NULL};
    int status = d->path ? sq_json_write(value, true, &d->text, err) : sq_error_memory(err, sizeof *d);
    if (!status) {
        sq_text_add(&d->text, "\n");
        status = d->text.failed ? sq_error_memory(err, d->text.length) : 0;
    }
    if (!status)
        d->same = file_holds(d->path, d->text.data, d->text.length);
    return status;
}

/* known_durable: an equal file that is there has been made durable before. */
static int document_publish(const struct document *d, bool known_durable, struct squall_error *err)
{
    if (!d->same)
        return sq_atomic_write(d->path, d->text.data, d->text.length, SQ_DURABILITY_FULL, err);
    return known_durable ? 0 : sq_folder_sync(d->folder, err);
}

/* All that are to be published, in their order; the last is the one that makes the store visible. */
struct documents {
    struct document *items;
    size_t count;
};

static int add_document(struct documents *list, char *folder, const char *name, const struct sq_json *value, struct squall_error *err)
{
    return document_init(&list->items[list->count++], folder, name, value, err);
}

static int publish_documents(const char *store, const struct documents *list, struct squall_error *err)
{
    const struct document *root = &list->items[list->count - 1];
    SQ_TRY(sq_folder_make_durable(store, err));
    /* the root is published when all else is durable: where it is as it should be, equal documents are durable */
    for (size_t i = 0; i + 1 < list->count; i++) {
        SQ_TRY(sq_folder_make_durable(list->items[i].folder, err));
        SQ_TRY(document_publish(&list->items[i], root->same, err));
    }
    return document_publish(root, false, err);
}

static int check_names_differ(const struct sq_store_array *arrays, size_t count, struct squall_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(arrays[i].name, arrays[k].name))
                return sq_error(err, SQUALL_EINVAL, "two arrays of the store are named %s", arrays[i].name);
    return 0;
}

static int add_array_documents(struct documents *list, const char *store, const struct sq_store_array *a, const struct sq_node *node,
                               struct squall_error *err)
{
    if (node->version == 3)
        return add_document(list, sq_path_join(store, a->name), "zarr.json", node->document, err);
    SQ_TRY(add_document(list, sq_path_join(store, a->name), ".zattrs", node->attributes, err));
    return add_document(list, sq_path_join(store, a->name), ".zarray", node->document, err);
}

static int add_root_v3(struct documents *list, const char *store, const struct sq_json *attributes, const struct sq_store_array *arrays,
                       const struct sq_node *nodes, size_t count, struct squall_error *err)
{
    struct sq_json *made = NULL;
    SQ_TRY(consolidate(NULL, arrays, nodes, count, &made, err));
    SQ_CLEANUP_JSON struct sq_json *metadata = made;
    SQ_TRY(root_v3(attributes, metadata, &made, err));
    SQ_CLEANUP_JSON struct sq_json *root = made;
    return add_document(list, sq_strdup(store), sq_store_root_document(3), root, err);
}

static int add_root_v2(struct documents *list, const char *store, const struct sq_json *attributes, const struct sq_store_array *arrays,
                       const struct sq_node *nodes, size_t count, struct squall_error *err)
{
    struct sq_json *metadata = NULL;
    SQ_CLEANUP_JSON struct sq_json *root = sq_json_new_object();
    SQ_CLEANUP_NODE struct sq_node group = {.version = 2, .document = sq_json_new_object()};
    group.attributes = attributes ? sq_json_copy(attributes) : sq_json_new_object();
    if (!group.attributes || sq_json_set_int(group.document, "zarr_format", 2))
        return sq_error_memory(err, sizeof(void *));
    SQ_TRY(consolidate(&group, arrays, nodes, count, &metadata, err));
    const int first = sq_json_set_int(root, "zarr_consolidated_format", 1), second = sq_json_set(root, "metadata", metadata);
    if (first || second)
        return sq_error_memory(err, sizeof(void *));
    SQ_TRY(add_document(list, sq_strdup(store), ".zattrs", group.attributes, err));
    SQ_TRY(add_document(list, sq_strdup(store), ".zgroup", group.document, err));
    return add_document(list, sq_strdup(store), sq_store_root_document(2), root, err);
}

int sq_store_publish_metadata(struct sq_store store, const struct sq_json *attributes, const struct sq_store_array *arrays,
                              size_t array_count, struct squall_error *err)
{
    enum { ROOT_DOCUMENTS = 3 };
    struct sq_node *nodes = sq_alloc_zero(array_count, sizeof *nodes);
    struct documents list = {.items = sq_alloc_zero(2 * array_count + ROOT_DOCUMENTS, sizeof *list.items)};
    int status = nodes && list.items ? 0 : sq_error_memory(err, array_count * sizeof *list.items);
    for (size_t i = 0; i < array_count && !status; i++) {
        status = sq_store_array_node(&arrays[i], store.zarr_format, &nodes[i], err);
        if (!status)
            status = add_array_documents(&list, store.folder, &arrays[i], &nodes[i], err);
    }
    if (!status)
        status = check_names_differ(arrays, array_count, err);
    if (!status)
        status = (store.zarr_format == 2 ? add_root_v2 : add_root_v3)(&list, store.folder, attributes, arrays, nodes, array_count, err);
    if (!status)
        status = publish_documents(store.folder, &list, err);
    for (size_t i = 0; i < list.count; i++)
        document_done(&list.items[i]);
    for (size_t i = 0; i < array_count && nodes; i++)
        sq_node_done(&nodes[i]);
    sq_free(list.items);
    sq_free(nodes);
    return status;
}

char *sq_store_chunk_folder(struct sq_store store, const char *array)
{
    const size_t length = strlen(store.folder);
    return sq_format("%s%s%s%s", store.folder, length && store.folder[length - 1] == '/' ? "" : "/", array,
                     store.zarr_format == 2 ? "" : "/c");
}

char *sq_store_chunk_path(struct sq_store store, const char *array, unsigned rank, const uint64_t *chunk)
{
    SQ_CLEANUP_TEXT struct sq_text path = SQ_TEXT_INIT;
    SQ_CLEANUP_FREE char *folder = sq_store_chunk_folder(store, array);
    if (!folder)
        return NULL;
    sq_text_add(&path, folder);
    for (unsigned d = 0; d < rank; d++)
        sq_text_printf(&path, "/%" PRIu64, chunk[d]);
    if (rank == 0 && store.zarr_format == 2)
        sq_text_add(&path, "/0");
    return sq_text_release(&path);
}

bool sq_store_is_index(const char *name, uint64_t *ret)
{
    char again[sizeof "18446744073709551615"];
    errno = 0;
    *ret = strtoull(name, NULL, 10);
    snprintf(again, sizeof again, "%" PRIu64, *ret);
    return !errno && !strcmp(name, again);
}

int sq_store_write_chunk(struct sq_store store, const char *array, unsigned rank, const uint64_t *chunk, const void *bytes,
                         size_t size_bytes, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(store, array, rank, chunk);
    SQ_CLEANUP_FREE char *folder = path ? sq_path_folder(path) : NULL;
    if (!folder)
        return sq_error_memory(err, strlen(store.folder));
    SQ_TRY(sq_folder_make_durable(folder, err));
    return sq_atomic_write(path, bytes, size_bytes, SQ_DURABILITY_FULL, err);
}

int sq_store_remove_chunks(struct sq_store store, const char *array, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = sq_store_chunk_folder(store, array);
    char **names;
    size_t count;
    if (!folder)
        return sq_error_memory(err, strlen(array));
    SQ_TRY(sq_folder_list_if_there(folder, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        SQ_CLEANUP_FREE char *path = sq_path_join(folder, names[i]);
        if (sq_store_is_document(names[i]))
            continue;
        status = path ? sq_tree_remove(path, err) : sq_error_memory(err, strlen(folder));
    }
    sq_names_free(names, count);
    return status;
}

/* What writing a small array needs, chunk by chunk. */
struct array_writer {
    struct sq_store store;
    const struct sq_store_array *array;
    size_t element_bytes; /* in memory */
    size_t chunk_elements;
    _Alignas(struct squall_bytes) uint8_t fill[SQ_ZARR_FILL_BYTES]; /* one element */
    void *chunk;                                                    /* chunk_elements elements */
    struct sq_codec_scratch *scratch;
    void *encoded;
    size_t encoded_capacity;
};

static void array_writer_done(struct array_writer *w)
{
    sq_free(w->chunk);
    sq_codec_scratch_free(w->scratch);
    sq_free(w->encoded);
}

static int array_writer_init(struct array_writer *w, struct sq_store store, const struct sq_store_array *a, struct squall_error *err)
{
    SQ_TRY(check_array(a, err));
    *w = (struct array_writer){.store = store, .array = a, .chunk_elements = 1, .element_bytes = squall_type_size(a->type)};
    if (a->type == SQUALL_STRING) {
        const struct squall_bytes text = {(void *)(uintptr_t)sq_json_string(a->fill_value), sq_json_string_bytes(a->fill_value)};
        memcpy(w->fill, &text, sizeof text);
    } else {
        SQ_CLEANUP_JSON struct sq_json *fill = a->fill_value ? sq_json_share(a->fill_value) : default_fill(a->type);
        if (!fill || !sq_zarr_fill_parse(a->type, fill, w->fill))
            return sq_error_memory(err, sizeof(void *));
    }
    for (unsigned d = 0; d < a->rank; d++)
        if (!sq_mul_size(w->chunk_elements, a->chunks[d], &w->chunk_elements))
            return sq_error(err, SQUALL_EINVAL, "array %s: its chunks are too large for memory", a->name);
    w->chunk = sq_alloc(w->chunk_elements, w->element_bytes);
    w->scratch = sq_codec_scratch_new();
    if (w->chunk && w->scratch)
        return 0;
    array_writer_done(w);
    return sq_error_memory(err, w->chunk_elements);
}

/* The part of values that belongs to this chunk, behind it the fill value where the array ends within the chunk. */
static void gather_chunk(struct array_writer *w, const uint64_t *chunk, const void *values)
{
    const struct sq_store_array *a = w->array;
    int64_t src_strides[SQUALL_RANK_MAX], dst_strides[SQUALL_RANK_MAX];
    uint64_t count[SQUALL_RANK_MAX];
    int64_t src_stride = (int64_t)w->element_bytes, dst_stride = src_stride, offset = 0;
    bool whole = true;
    for (unsigned d = a->rank; d-- > 0;) {
        uint64_t start = chunk[d] * a->chunks[d], left = a->shape[d] - start;
        count[d] = left < a->chunks[d] ? left : a->chunks[d];
        whole = whole && count[d] == a->chunks[d];
        src_strides[d] = src_stride;
        dst_strides[d] = dst_stride;
        offset += (int64_t)start * src_stride;
        src_stride *= (int64_t)a->shape[d];
        dst_stride *= (int64_t)a->chunks[d];
    }
    if (!whole)
        sq_scatter_fill(w->chunk, w->chunk_elements, w->element_bytes, w->fill);
    sq_scatter_copy(a->rank, count, w->element_bytes, (const uint8_t *)values + offset, src_strides, w->chunk, dst_strides,
                    SQ_SCATTER_INTO_CACHES);
}

static int encode_chunk(struct array_writer *w, size_t *ret_size, struct squall_error *err)
{
    const struct sq_codec_chain *codecs = w->array->codecs;
    const size_t size = w->chunk_elements * w->element_bytes;
    const size_t bound = sq_codec_encode_bound_of(codecs, w->chunk, size);
    if (bound > w->encoded_capacity) {
        sq_free(w->encoded);
        w->encoded_capacity = 0;
        if (!(w->encoded = sq_alloc(bound, 1)))
            return sq_error_memory(err, bound);
        w->encoded_capacity = bound;
    }
    return sq_codec_encode(codecs, w->scratch, 1, w->chunk, size, w->encoded, w->encoded_capacity, ret_size, err);
}

/* The chunk's bytes are durable then; its folder is synced once for all the chunks in it. */
static int write_array_chunk(struct array_writer *w, const uint64_t *chunk, const void *values, bool last_of_folder,
                             struct squall_error *err)
{
    size_t encoded_bytes;
    gather_chunk(w, chunk, values);
    SQ_TRY(encode_chunk(w, &encoded_bytes, err));
    SQ_CLEANUP_FREE char *path = sq_store_chunk_path(w->store, w->array->name, w->array->rank, chunk);
    SQ_CLEANUP_FREE char *folder = path ? sq_path_folder(path) : NULL;
    if (!folder)
        return sq_error_memory(err, strlen(w->store.folder));
    if (!file_holds(path, w->encoded, encoded_bytes)) {
        SQ_TRY(sq_folder_make_durable(folder, err));
        SQ_TRY(sq_atomic_write(path, w->encoded, encoded_bytes, SQ_DURABILITY_DATA, err));
    }
    return last_of_folder ? sq_folder_sync(folder, err) : 0;
}

/* The next index in C order below counts; false behind the last. */
static bool next_index(unsigned rank, const uint64_t *counts, uint64_t *index)
{
    for (unsigned d = rank; d-- > 0;) {
        if (++index[d] < counts[d])
            return true;
        index[d] = 0;
    }
    return false;
}

int sq_store_write_array(struct sq_store store, const struct sq_store_array *a, const void *values, struct squall_error *err)
{
    struct array_writer w;
    uint64_t chunk_counts[SQUALL_RANK_MAX], chunk[SQUALL_RANK_MAX] = {0};
    bool empty = false;
    SQ_TRY(array_writer_init(&w, store, a, err));
    for (unsigned d = 0; d < a->rank; d++) {
        chunk_counts[d] = a->shape[d] / a->chunks[d] + (a->shape[d] % a->chunks[d] != 0);
        empty = empty || a->shape[d] == 0;
    }
    int status = 0;
    if (!empty)
        do {
            bool last_of_folder = a->rank == 0 || chunk[a->rank - 1] + 1 == chunk_counts[a->rank - 1];
            status = write_array_chunk(&w, chunk, values, last_of_folder, err);
        } while (!status && next_index(a->rank, chunk_counts, chunk));
    array_writer_done(&w);
    return status ? sq_error_within(err, status, "array %s", a->name) : 0;
}
