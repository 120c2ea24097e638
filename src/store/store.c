/* Making, changing and deleting the nodes of a store, and opening one for writing: what squall/store.h offers besides regions. */
#include "store/store.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/file_format.h"
#include "engine/zarr_array.h"
#include "store/netcdf3.h"
#include "sys/file.h"
#include <stdlib.h>
#include <string.h>

/* ---- places ----------------------------------------------------------------------------------------------------------------------- */

/* Where a node lies: the store's folder, and the node's in it. */
struct place {
    char *store, *folder;
};

static void place_done(struct place *p)
{
    sq_free(p->store);
    sq_free(p->folder);
}
#define CLEANUP_PLACE __attribute__((cleanup(place_done)))

/* What v3 allows as a part of a name, less hidden files, among which other programs keep their metadata. */
static bool is_name(const char *part, size_t length)
{
    return length > 0 && part[0] != '.' && strncmp(part, "__", 2) != 0 && !(length == 9 && !strncmp(part, "zarr.json", 9));
}

static int place_init(struct place *p, const char *store, const char *name, struct squall_error *err)
{
    size_t length = strlen(store);
    while (length > 1 && store[length - 1] == '/')
        length--;
    if (length == 0)
        return sq_error(err, SQUALL_EINVAL, "the path of the store is empty");
    for (const char *part = name ? name : ""; *part;) {
        size_t part_length = strcspn(part, "/");
        if (!is_name(part, part_length) || (part[part_length] && !part[part_length + 1]))
            return sq_error(err, SQUALL_EINVAL, "'%s' cannot be the name of an array or group in a Zarr store", name);
        part += part_length + (part[part_length] == '/');
    }
    *p = (struct place){.store = sq_strndup(store, length)};
    if (p->store)
        p->folder = name && name[0] ? sq_path_join(p->store, name) : sq_strdup(p->store);
    return p->folder ? 0 : sq_error_memory(err, length);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------------ */

static int make_folder(const char *path, enum sq_durability durability, struct squall_error *err)
{
    return durability == SQ_DURABILITY_FULL ? sq_folder_make_durable(path, err) : sq_folder_make(path, err);
}

/* The store's own folder, whose parents may be missing too. */
static int make_folders(const char *path, enum sq_durability durability, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = make_folder(path, durability, &reason);
    if (status == SQUALL_ENOTFOUND) {
        SQ_CLEANUP_FREE char *parent = sq_path_folder(path);
        if (!parent)
            return sq_error_memory(err, strlen(path));
        if (strcmp(parent, path) != 0) {
            SQ_TRY(make_folders(parent, durability, err));
            status = make_folder(path, durability, &reason);
        }
    }
    if (status && err)
        *err = reason;
    return status;
}

/* A group on the way to a node: it is there, or it is made. *version: of the store; 0: not known yet, and then `wanted` where that is made. */
static int pass_group(const char *folder, int wanted, int *version, const struct squall_store_options *options, struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node node = {0};
    SQ_TRY(sq_node_read(folder, &node, err));
    if (node.is_array)
        return sq_error(err, SQUALL_EREFUSED, "%s is an array, which holds no other nodes", folder);
    if (!node.version) {
        SQ_TRY(make_folders(folder, sq_store_durability(options), err));
        SQ_TRY(sq_node_empty_group(*version ? *version : wanted, &node, err));
        SQ_TRY(sq_node_write(folder, &node, options, err));
    }
    if (*version && *version != node.version)
        return sq_error(err, SQUALL_EREFUSED, "%s is Zarr v%d in a store of v%d", folder, node.version, *version);
    *version = node.version;
    return 0;
}

/* All groups on the way, from the store's folder on; *ret_version: what they are. */
static int pass_groups(const struct place *p, int wanted, int *ret_version, const struct squall_store_options *options,
                       struct squall_error *err)
{
    SQ_CLEANUP_FREE char *folder = sq_strdup(p->folder);
    *ret_version = 0;
    if (!folder)
        return sq_error_memory(err, strlen(p->folder));
    for (char *slash = folder + strlen(p->store); *slash == '/'; slash += strcspn(slash, "/")) {
        *slash = 0;
        SQ_TRY(pass_group(folder, wanted, ret_version, options, err));
        *slash++ = '/';
    }
    return 0;
}

/* What is at the place is in nobody's way, or may be deleted. */
static int clear_place(const struct place *p, bool overwrite, const struct squall_store_options *options, struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node node = {0};
    enum sq_file_kind kind;
    bool holds = false;
    SQ_TRY(sq_file_stat(p->folder, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return 0;
    if (kind == SQ_FILE_FOLDER)
        SQ_TRY(sq_folder_holds(p->folder, &holds, err));
    else
        return sq_error(err, SQUALL_EREFUSED, "%s is a file, no Zarr store", p->folder);
    if (!holds)
        return 0;
    SQ_TRY(sq_node_read(p->folder, &node, err));
    if (!node.version)
        return sq_error(err, SQUALL_EREFUSED, "%s holds something that is no Zarr store", p->folder);
    if (!overwrite)
        return sq_error(err, SQUALL_EREFUSED, "%s: %s is there already", p->folder, node.is_array ? "an array" : "a group");
    SQ_TRY(sq_node_forget(p->folder, options, err));
    return sq_tree_remove(p->folder, err);
}

/* The version of the nodes above, or of what is asked for. */
static int choose_version(int wanted, int above, int *ret, struct squall_error *err)
{
    if (wanted != 0 && wanted != 2 && wanted != 3)
        return sq_error(err, SQUALL_EINVAL, "Zarr v%d; squall writes 2 and 3", wanted);
    if (wanted && above && wanted != above)
        return sq_error(err, SQUALL_EINVAL, "Zarr v%d in a store of v%d", wanted, above);
    *ret = wanted ? wanted : above ? above : 3;
    return 0;
}

/* Without making or changing anything: the version of the store that is there, 0 where there is none. */
static int version_of_store(const struct place *p, int *ret, struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node node = {0};
    *ret = 0;
    if (!strcmp(p->store, p->folder))
        return 0;
    SQ_TRY(sq_node_read(p->store, &node, err));
    *ret = node.version;
    return 0;
}

static int put_node(const struct place *p, const struct sq_node *node, bool overwrite, const struct squall_store_options *options,
                    struct squall_error *err)
{
    int above;
    SQ_TRY(clear_place(p, overwrite, options, err));
    SQ_TRY(pass_groups(p, node->version, &above, options, err));
    SQ_TRY(make_folders(p->folder, sq_store_durability(options), err));
    SQ_TRY(sq_node_write(p->folder, node, options, err));
    return 0;
}

int squall_array_create(squall_context *ctx, const char *store, const char *name, const struct squall_array_spec *spec,
                        const struct squall_store_options *options, struct squall_error *err)
{
    CLEANUP_PLACE struct place p = {0};
    SQ_CLEANUP_NODE struct sq_node node = {0};
    int version;
    (void)ctx;
    SQ_TRY(place_init(&p, store, name, err));
    SQ_TRY(version_of_store(&p, &version, err));
    SQ_TRY(choose_version(spec->zarr_format, version, &version, err));
    int status = sq_node_of_spec(spec, version, &node, err);
    return status ? sq_error_within(err, status, "array %s", p.folder) : put_node(&p, &node, spec->overwrite, options, err);
}

static int set_attributes(struct sq_node *node, const void *user, struct squall_error *err)
{
    const char *text = user;
    struct squall_error reason = SQUALL_ERROR_INIT;
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    int status = sq_json_parse(text, strlen(text), &attributes, &reason);
    if (status || sq_json_type(attributes) != SQ_JSON_OBJECT)
        return sq_error(err, status == SQUALL_ENOMEM ? status : SQUALL_EINVAL, "the attributes are no JSON object%s%s", status ? ": " : "",
                        reason.message);
    if (node->version == 3)
        return sq_json_set(node->document, "attributes", sq_json_share(attributes)) ? sq_error_memory(err, 1) : 0;
    const struct sq_json *dims = node->is_array ? sq_json_get(node->attributes, "_ARRAY_DIMENSIONS") : NULL;
    if (dims && !sq_json_get(attributes, "_ARRAY_DIMENSIONS") && sq_json_set(attributes, "_ARRAY_DIMENSIONS", sq_json_copy(dims)))
        return sq_error_memory(err, 1);
    sq_json_free(node->attributes);
    node->attributes = sq_json_share(attributes);
    return 0;
}

static int group_of_spec(const struct squall_group_spec *spec, int version, struct sq_node *ret, struct squall_error *err)
{
    SQ_TRY(sq_node_empty_group(version, ret, err));
    int status = spec->attributes ? set_attributes(ret, spec->attributes, err) : 0;
    if (status)
        sq_node_done(ret);
    return status;
}

int squall_group_create(squall_context *ctx, const char *store, const char *name, const struct squall_group_spec *spec,
                        const struct squall_store_options *options, struct squall_error *err)
{
    static const struct squall_group_spec DEFAULTS;
    CLEANUP_PLACE struct place p = {0};
    SQ_CLEANUP_NODE struct sq_node node = {0};
    int version;
    (void)ctx;
    if (!spec)
        spec = &DEFAULTS;
    SQ_TRY(place_init(&p, store, name, err));
    SQ_TRY(version_of_store(&p, &version, err));
    SQ_TRY(choose_version(spec->zarr_format, version, &version, err));
    int status = group_of_spec(spec, version, &node, err);
    if (status)
        return sq_error_within(err, status, "group %s", p.folder);
    SQ_TRY(put_node(&p, &node, spec->overwrite, options, err));
    return spec->consolidated ? sq_node_consolidate(p.folder, options, err) : 0;
}

int squall_group_consolidate(squall_context *ctx, const char *store, const char *name, const struct squall_store_options *options,
                             struct squall_error *err)
{
    CLEANUP_PLACE struct place p = {0};
    (void)ctx;
    SQ_TRY(place_init(&p, store, name, err));
    return sq_node_consolidate(p.folder, options, err);
}

int squall_node_delete(squall_context *ctx, const char *store, const char *name, const struct squall_store_options *options,
                       struct squall_error *err)
{
    CLEANUP_PLACE struct place p = {0};
    SQ_CLEANUP_NODE struct sq_node node = {0};
    (void)ctx;
    SQ_TRY(place_init(&p, store, name, err));
    SQ_TRY(sq_node_read(p.folder, &node, err));
    if (!node.version)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: neither a Zarr array nor a group", p.folder);
    SQ_TRY(sq_node_forget(p.folder, options, err));
    return sq_tree_remove(p.folder, err);
}

int squall_node_set_attributes(squall_context *ctx, const char *store, const char *name, const char *attributes,
                               const struct squall_store_options *options, struct squall_error *err)
{
    CLEANUP_PLACE struct place p = {0};
    (void)ctx;
    SQ_TRY(place_init(&p, store, name, err));
    return sq_node_update(p.folder, set_attributes, attributes, options, err);
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------- */

int squall_store_open(squall_context *ctx, const char *path, const struct squall_store_options *options, squall_dataset **ret,
                      struct squall_error *err)
{
    CLEANUP_PLACE struct place p = {0};
    enum sq_file_kind kind;
    squall_dataset *ds = NULL;
    SQ_TRY(place_init(&p, path, NULL, err));
    SQ_TRY(sq_file_stat(p.store, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: no such file or folder", p.store);
    if (kind == SQ_FILE_REGULAR && sq_file_format_at(p.store) == SQ_FORMAT_NETCDF3) {
        struct sq_source *source;
        SQ_TRY(sq_source_open_file(p.store, &source, err));
        SQ_TRY(sq_netcdf3_dataset_open(ctx, source, &ds, err));
        sq_source_expect_changes(sq_netcdf3_of_dataset(ds)->source);
    } else if (kind == SQ_FILE_FOLDER && sq_zarr_is_store(p.store)) {
        SQ_TRY(sq_zarr_dataset_open(ctx, p.store, &ds, err));
    } else {
        return sq_error(err, SQUALL_EUNSUPPORTED,
                        "%s: neither a Zarr store in a folder nor a NetCDF-3 file; nothing else can be written to", p.store);
    }
    ds->writable = true;
    if (options)
        ds->write_options = *options;
    *ret = ds;
    return 0;
}

/* ---- another shape ---------------------------------------------------------------------------------------------------------------- */

struct new_shape {
    unsigned rank;
    const uint64_t *shape;
    struct sq_json **ret_document; /* with it: shared */
};

/* Where the lists of a rectilinear grid are too short, a chunk with the rest comes behind, as zarr-python does it. */
static int extend_grid(const struct sq_json *grid, const struct new_shape *s, struct squall_error *err)
{
    const struct sq_json *configuration = sq_json_get(grid, "configuration"), *chunks = sq_json_get(configuration, "chunk_shapes");
    for (unsigned d = 0; d < s->rank; d++) {
        const struct sq_json *lengths = sq_json_at(chunks, d);
        const uint64_t room = sq_json_type(lengths) == SQ_JSON_ARRAY ? sq_chunk_list_length(lengths) : UINT64_MAX;
        if (room < s->shape[d] && sq_json_append((struct sq_json *)(uintptr_t)lengths, sq_json_new_uint(s->shape[d] - room)))
            return sq_error_memory(err, 1);
    }
    return 0;
}

static int set_shape(struct sq_node *node, const void *user, struct squall_error *err)
{
    const struct new_shape *s = user;
    if (!node->is_array || sq_json_count(sq_json_get(node->document, "shape")) != s->rank)
        return sq_error(err, SQUALL_EIO, "its metadata is another array's since it was opened");
    struct sq_json *list = sq_json_new_array();
    int failed = 0;
    for (unsigned d = 0; d < s->rank; d++)
        failed |= sq_json_append(list, sq_json_new_uint(s->shape[d]));
    failed |= sq_json_set(node->document, "shape", list);
    if (failed)
        return sq_error_memory(err, 1);
    SQ_TRY(extend_grid(sq_json_get(node->document, "chunk_grid"), s, err));
    *s->ret_document = sq_json_share(node->document);
    return 0;
}

/* What files of chunks there are, found by looking: an array may have more chunks than anyone has written. */
struct sweep {
    const struct sq_zarr_array *array;
    uint64_t counts[SQUALL_RANK_MAX]; /* chunks of the new shape */
};

/* Is key that of a chunk, and of which? */
static bool parse_key(const struct sq_zarr_array *a, const char *key, uint64_t chunk[SQUALL_RANK_MAX])
{
    if (a->default_encoding && *key++ != 'c')
        return false;
    for (unsigned d = 0; d < a->rank; d++) {
        char *end;
        if ((d > 0 || a->default_encoding) && *key++ != a->separator)
            return false;
        if (*key < '0' || *key > '9')
            return false;
        chunk[d] = strtoull(key, &end, 10);
        key = end;
    }
    return *key == 0;
}

static int sweep_file(const struct sweep *s, const char *key, const char *path, struct squall_error *err)
{
    uint64_t chunk[SQUALL_RANK_MAX];
    bool outside = false;
    if (!parse_key(s->array, key, chunk))
        return 0;
    for (unsigned d = 0; d < s->array->rank; d++)
        outside = outside || chunk[d] >= s->counts[d];
    return outside ? sq_file_remove(path, err) : 0;
}

/* key: of the folder below the array's; "" for that itself. */
static int sweep_folder(const struct sweep *s, const char *key, const char *path, unsigned depth, struct squall_error *err)
{
    char **names;
    size_t count;
    int status = 0;
    SQ_TRY(sq_folder_list(path, &names, &count, err));
    for (size_t i = 0; i < count && !status; i++) {
        enum sq_file_kind kind;
        if (names[i][0] == '.' || !strcmp(names[i], "zarr.json"))
            continue;
        SQ_CLEANUP_FREE char *child_key = key[0] ? sq_path_join(key, names[i]) : sq_strdup(names[i]);
        SQ_CLEANUP_FREE char *child = sq_path_join(path, names[i]);
        status = child_key && child ? sq_file_stat(child, &kind, NULL, err) : sq_error_memory(err, strlen(path));
        if (!status && kind == SQ_FILE_REGULAR)
            status = sweep_file(s, child_key, child, err);
        else if (!status && kind == SQ_FILE_FOLDER && depth <= SQUALL_RANK_MAX)
            status = sweep_folder(s, child_key, child, depth + 1, err);
    }
    sq_names_free(names, count);
    return status;
}

static int delete_chunks_outside(const struct squall_array *a, struct squall_error *err)
{
    struct sweep s = {.array = sq_zarr_array_description(a)};
    for (unsigned d = 0; d < a->info.rank; d++)
        s.counts[d] = sq_axis_count(&a->grid[d]);
    return sweep_folder(&s, "", s.array->folder, 0, err);
}

int squall_array_resize(squall_array *a, const uint64_t *shape, struct squall_error *err)
{
    const struct sq_zarr_array *description = sq_zarr_array_description(a);
    SQ_CLEANUP_JSON struct sq_json *document = NULL;
    const struct new_shape s = {a->info.rank, shape, &document};
    bool shrinks = false;
    if (sq_netcdf3_of_array(a))
        return sq_netcdf3_grow(a, shape, err);
    if (!a->dataset->writable || !description)
        return sq_error(err, SQUALL_EREFUSED, "array %s was not opened for writing", a->info.name);
    for (unsigned d = 0; d < a->info.rank; d++) {
        if (shape[d] > INT64_MAX)
            return sq_error(err, SQUALL_EINVAL, "array %s: dimension %u would be longer than 2^63 - 1", a->info.name, d);
        shrinks = shrinks || shape[d] < a->grid[d].length;
    }
    int status = sq_node_update(description->folder, set_shape, &s, &a->dataset->write_options, err);
    if (!status)
        status = sq_zarr_array_renew(a, document, err);
    if (!status) {
        status = shrinks ? delete_chunks_outside(a, err) : 0;
    }
    return status ? sq_error_within(err, status, "array %s", a->info.name) : 0;
}
