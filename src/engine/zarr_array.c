/*
 * Zarr arrays for the engine: a chunk is a file of its own, or a member of a zip file, or absent; its bytes go through the array's codecs.
 */
#include "engine/zarr_array.h"
#include "array/dtype.h"
#include "base/error_internal.h"
#include "base/hash.h"
#include "base/memory.h"
#include "codec/codec.h"
#include "format/zarr/metadata.h"
#include "format/zarr/zarr.h"
#include "sys/file.h"
#include <string.h>

struct zarr_array {
    struct squall_array base;
    struct sq_zarr_array *description; /* in the store that the dataset holds */
    char *attributes, *fill_value;     /* JSON texts */
};

static const struct zarr_array *zarr_array(const struct squall_array *a)
{
    return (const struct zarr_array *)a;
}

/* Chunks of a rectilinear grid in C order: which one, so that decode can tell its shape. */
static uint64_t number_of(const struct squall_array *a, const uint64_t *chunk)
{
    uint64_t number = 0;
    for (unsigned d = 0; d < a->info.rank; d++)
        number = number * sq_axis_count(&a->grid[d]) + chunk[d];
    return number;
}

static int locate(const struct squall_array *a, const uint64_t *chunk, struct sq_location *ret, struct squall_error *err)
{
    const struct sq_zarr_array *z = zarr_array(a)->description;
    const struct sq_zarr_store *store = a->dataset->format_data;
    struct sq_tree_place p;
    SQ_CLEANUP_FREE char *key = sq_zarr_chunk_key(z, chunk);
    if (!key)
        return sq_error_memory(err, strlen(z->folder));
    SQ_TRY(sq_tree_locate(store->tree, z->name, key, &p, err));
    *ret = (struct sq_location){
        .state = p.absent ? SQ_CHUNK_MISSING : SQ_CHUNK_PRESENT, .path = p.name, .source = p.source, .size_bytes = UINT64_MAX};
    if (p.source && !p.absent) {
        ret->offset = p.place.offset;
        ret->size_bytes = p.place.stored_bytes;
        ret->packed = p.place;
    }
    if (z->codec_list)
        ret->param = number_of(a, chunk);
    return 0;
}

/*
 * A chunk that nobody has written has no file, nor perhaps the folders that it would lie in. But a link that leads nowhere in the
 * place of one of them is a chunk that is lost, and so is one whose array is gone, or that a conversion wrote.
 */
static int absent(const struct squall_array *a, const uint64_t *chunk, const struct sq_location *where, struct squall_error *err)
{
    const char *folder = zarr_array(a)->description->folder;
    SQ_CLEANUP_FREE char *path = sq_strdup(where->path);
    enum sq_file_kind kind;
    bool exists;
    if (!path)
        return sq_error_memory(err, strlen(where->path));
    for (;;) {
        SQ_TRY(sq_file_exists(path, &exists, err));
        if (exists)
            break;
        if (strlen(path) <= strlen(folder))
            return sq_error(err, SQUALL_EIO, "%s is gone since the store was opened", folder);
        *strrchr(path, '/') = '\0';
        SQ_TRY(sq_file_stat(path, &kind, NULL, err));
        if (kind != SQ_FILE_NONE)
            return sq_zarr_check_recorded(a->dataset->format_data, zarr_array(a)->description, chunk, err);
    }
    SQ_TRY(sq_file_stat(path, &kind, NULL, err)); /* written since it was looked for? */
    return kind != SQ_FILE_NONE ? 0 : sq_error(err, SQUALL_EIO, "%s: a link that leads nowhere", path);
}

static void scratch_free(void *scratch)
{
    sq_codec_scratch_free(scratch);
}

static void *scratch_new(const struct squall_array *a)
{
    (void)a;
    return sq_codec_scratch_new();
}

static void chain_cleanup(struct sq_codec_chain **chain)
{
    sq_codec_chain_free(*chain);
}

/* The codecs for a chunk of a rectilinear grid, which depend on its shape; NULL where that is the one that they are bound to. */
static int bind_own(const struct squall_array *a, uint64_t number, struct sq_codec_chain **ret, struct squall_error *err)
{
    const struct sq_zarr_array *z = zarr_array(a)->description;
    uint64_t shape[SQUALL_RANK_MAX];
    bool same = true;
    for (unsigned d = a->info.rank; d-- > 0;) {
        const uint64_t count = sq_axis_count(&a->grid[d]);
        if (count == 0)
            return 0; /* an array without elements has no chunks */
        shape[d] = sq_axis_extent(&a->grid[d], number % count);
        same = same && shape[d] == z->chunks[d];
        number /= count;
    }
    return same ? 0 : sq_zarr_bind_chunk(z, shape, ret, err);
}

static int decode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *bytes,
                  size_t size, void *dst, size_t dst_size, struct squall_error *err)
{
    const struct sq_zarr_array *z = zarr_array(a)->description;
    __attribute__((cleanup(chain_cleanup))) struct sq_codec_chain *own = NULL;
    if (z->codec_list)
        SQ_TRY(bind_own(a, where->param, &own, err));
    const struct sq_codec_chain *codecs = own ? own : a->shard ? a->shard->inner : z->codecs;
    return sq_codec_decode(codecs, scratch, threads, bytes, size, dst, dst_size, err);
}

static int decode_range(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_codec_input *input,
                        const struct sq_codec_range *range, void *dst, struct sq_shuffle_layout *ret_layout, struct squall_error *err)
{
    const struct sq_codec_chain *codecs = a->shard ? a->shard->inner : zarr_array(a)->description->codecs;
    return sq_codec_decode_range(codecs, scratch, threads, input, range, dst, ret_layout, err);
}

static int read_index(const struct squall_array *a, void *scratch, const void *stored, uint64_t shard_bytes, uint64_t *ret,
                      struct squall_error *err)
{
    return sq_codec_shard_index(a->shard, scratch, stored, shard_bytes, ret, err);
}

static int encode_bound(const struct squall_array *a, const struct sq_location *where, const void *src, size_t src_size, size_t *ret,
                        struct squall_error *err)
{
    const struct sq_zarr_array *z = zarr_array(a)->description;
    __attribute__((cleanup(chain_cleanup))) struct sq_codec_chain *own = NULL;
    if (z->codec_list)
        SQ_TRY(bind_own(a, where->param, &own, err));
    *ret = sq_codec_encode_bound_of(own ? own : z->codecs, src, src_size);
    return 0;
}

static int encode(const struct squall_array *a, void *scratch, unsigned threads, const struct sq_location *where, const void *src,
                  size_t src_size, void *dst, size_t dst_capacity, size_t *ret_size, struct squall_error *err)
{
    const struct sq_zarr_array *z = zarr_array(a)->description;
    __attribute__((cleanup(chain_cleanup))) struct sq_codec_chain *own = NULL;
    if (z->codec_list)
        SQ_TRY(bind_own(a, where->param, &own, err));
    return sq_codec_encode(own ? own : z->codecs, scratch, threads, src, src_size, dst, dst_capacity, ret_size, err);
}

static int tell_storage(const struct squall_array *a, struct sq_text *out, struct squall_error *err)
{
    return sq_json_write(zarr_array(a)->description->storage, false, out, err);
}

static int stored_bytes(const struct squall_array *a, uint64_t *ret, struct squall_error *err)
{
    const struct sq_zarr_store *store = a->dataset->format_data;
    return sq_tree_stored_bytes(store->tree, zarr_array(a)->description->name, "zarr.json", ret, err);
}

static void array_free(struct squall_array *a)
{
    struct zarr_array *z = (struct zarr_array *)a;
    sq_free(z->attributes);
    sq_free(z->fill_value);
    sq_free(z);
}

static const struct sq_array_ops OPS = {
    .locate = locate,
    .absent = absent,
    .scratch_new = scratch_new,
    .scratch_free = scratch_free,
    .decode = decode,
    .decode_range = decode_range,
    .read_index = read_index,
    .encode_bound = encode_bound,
    .encode = encode,
    .storage = tell_storage,
    .stored_bytes = stored_bytes,
    .free = array_free,
};

const struct sq_zarr_array *sq_zarr_array_description(const struct squall_array *a)
{
    return a->ops == &OPS ? zarr_array(a)->description : NULL;
}

static int json_text(const struct sq_json *value, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    SQ_TRY(sq_json_write(value, false, &text, err));
    *ret = sq_text_release(&text);
    return *ret ? 0 : sq_error_memory(err, 1);
}

/* Two arrays that decode the same bytes to other elements differ in this. */
static uint64_t decoded_id(const struct sq_zarr_array *z)
{
    const char *codecs = sq_codec_chain_identity(z->codecs);
    struct sq_hash id = sq_hash_bytes(codecs, strlen(codecs));
    id = sq_hash_more(id, &z->dtype, sizeof z->dtype);
    id = sq_hash_more(id, z->chunks, z->rank * sizeof *z->chunks);
    return id.low ? id.low : 1;
}

/* What the engine has to know of the description: its grid and codecs. */
static void describe(struct zarr_array *z)
{
    const struct sq_zarr_array *description = z->description;
    const bool variable = sq_type_is_variable(description->dtype.type);
    const struct sq_codec_chain *codecs = description->codecs;
    z->base.shard = codecs && !description->codec_list ? sq_codec_chain_shard(codecs) : NULL; /* shards of one shape */
    if (z->base.shard)
        codecs = z->base.shard->inner;
    const size_t stored_limit = codecs && !description->codec_list && !z->base.shard ? sq_codec_stored_limit(codecs) : SIZE_MAX;
    z->base.stored_limit_bytes = stored_limit != SIZE_MAX ? stored_limit : 0; /* a shard may have gaps */
    z->base.plain = !variable && codecs && sq_codec_chain_is_plain(codecs);
    /* the codecs of a rectilinear grid's chunks are bound as they are met, and a range is not worth that */
    z->base.has_range = !variable && codecs && !description->codec_list && sq_codec_chain_has_range(codecs);
    z->base.decoded_id = codecs && !variable ? decoded_id(description) : 0;
    z->base.fill = description->fill;
    z->base.info.chunks = z->base.shard ? z->base.shard->inner_shape : description->chunks;
    z->base.info.shards = z->base.shard ? description->chunks : NULL;
    z->base.info.codecs = description->codec_names;
    for (unsigned d = 0; d < description->rank; d++)
        z->base.grid[d] = (struct sq_axis){.length = description->shape[d],
                                           .chunk = description->chunks[d],
                                           .edges = description->edges[d],
                                           .edge_count = description->edge_counts[d]};
}

int sq_zarr_array_renew(struct squall_array *a, const struct sq_json *document, struct squall_error *err)
{
    struct zarr_array *z = (struct zarr_array *)a;
    struct sq_zarr_array *old = z->description, found = {0};
    int status = old->version == 3 ? sq_zarr_parse_v3(document, &found, err) : sq_zarr_parse_v2(document, NULL, &found, err);
    if (!status && found.unsupported && !old->unsupported)
        status = sq_error(err, SQUALL_EUNSUPPORTED, "%s", found.unsupported);
    if (!status && found.rank == old->rank) {
        const struct sq_zarr_array before = *old;
        memcpy(old->shape, found.shape, sizeof old->shape);
        memcpy(old->chunks, found.chunks, sizeof old->chunks);
        memcpy(old->edges, found.edges, sizeof old->edges);
        memcpy(old->edge_counts, found.edge_counts, sizeof old->edge_counts);
        old->chunk_elements = found.chunk_elements;
        old->fill = found.fill; /* which the codecs know */
        old->codec_list = found.codec_list;
        old->codecs = found.codecs;
        old->codec_names = found.codec_names;
        memcpy(found.edges, before.edges, sizeof found.edges); /* what was before is done with the rest of what was found */
        found.fill = before.fill;
        found.codec_list = before.codec_list;
        found.codecs = before.codecs;
        found.codec_names = before.codec_names;
        describe(z);
    }
    sq_zarr_array_done(&found);
    return status;
}

static int add_array(struct squall_dataset *ds, struct sq_zarr_array *description, struct squall_error *err)
{
    struct zarr_array *z = sq_alloc_zero(1, sizeof *z);
    if (!z)
        return sq_error_memory(err, sizeof *z);
    z->base.ops = &OPS;
    z->description = description;
    int status = json_text(description->attributes, &z->attributes, err);
    if (!status && description->fill_value)
        status = json_text(description->fill_value, &z->fill_value, err);
    if (status) {
        array_free(&z->base);
        return status;
    }
    z->base.info = (struct squall_array_info){
        .name = description->name[0] ? description->name : sq_path_name(description->folder),
        .type = description->dtype.type,
        .type_name = description->type_name,
        .numpy_type = description->numpy_type,
        .element_bytes = description->dtype.element_bytes,
        .rank = description->rank,
        .shape = description->shape,
        .dims = (const char *const *)description->dims,
        .attributes = z->attributes,
        .fill_value = z->fill_value ? z->fill_value : "null",
        .unsupported = description->unsupported,
    };
    if (!(z->base.grid = sq_alloc(description->rank + 1, sizeof *z->base.grid))) {
        array_free(&z->base);
        return sq_error_memory(err, sizeof *z->base.grid);
    }
    describe(z);
    return sq_dataset_add(ds, &z->base, err);
}

static void store_free(void *data)
{
    struct sq_zarr_store *store = data;
    sq_zarr_store_done(store);
    sq_free(store);
}

/* What the store holds becomes the dataset's. */
static int fill_dataset(struct squall_dataset *ds, const struct sq_zarr_store *store, struct squall_error *err)
{
    ds->format = store->version == 3 ? "zarr v3" : "zarr v2";
    ds->is_array = store->array_count == 1 && store->arrays[0].name[0] == '\0';
    SQ_TRY(json_text(store->attributes, &ds->attributes, err));
    for (size_t i = 0; i < store->group_count; i++) {
        char *group_attributes;
        SQ_TRY(json_text(store->groups[i].attributes, &group_attributes, err));
        SQ_TRY(sq_dataset_add_group(ds, store->groups[i].name, group_attributes, NULL, err));
    }
    for (size_t i = 0; i < store->problem_count; i++)
        SQ_TRY(sq_dataset_add_problem(ds, store->problems[i], err));
    SQ_TRY(SQ_GROW(ds->arrays, ds->array_capacity, store->array_count, err));
    for (size_t i = 0; i < store->array_count; i++)
        SQ_TRY(add_array(ds, &store->arrays[i], err));
    return 0;
}

/* document: NULL, for what lies at the path */
static int open_dataset(const struct squall_context *ctx, const char *path, int version, const char *document, size_t length,
                        struct squall_dataset **ret, struct squall_error *err)
{
    struct squall_dataset *ds = sq_dataset_new(ctx, path, "zarr", err);
    struct sq_zarr_store *store = ds ? sq_alloc_zero(1, sizeof *store) : NULL;
    if (!store) {
        squall_dataset_close(ds);
        return sq_error_memory(err, sizeof *store);
    }
    ds->format_data = store;
    ds->format_data_free = store_free;
    int status = document ? sq_zarr_store_from_document(path, version, document, length, store, err) : sq_zarr_store_open(path, store, err);
    if (!status)
        status = fill_dataset(ds, store, err);
    if (status)
        squall_dataset_close(ds);
    else
        *ret = ds;
    return status;
}

int sq_zarr_dataset_open(const struct squall_context *ctx, const char *path, struct squall_dataset **ret, struct squall_error *err)
{
    return open_dataset(ctx, path, 0, NULL, 0, ret, err);
}

int sq_zarr_dataset_from_document(const struct squall_context *ctx, const char *folder, int version, const char *document, size_t length,
                                  struct squall_dataset **ret, struct squall_error *err)
{
    return open_dataset(ctx, folder, version, document, length, ret, err);
}
