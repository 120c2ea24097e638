/* See verify_metadata.h. */
#include "convert/verify_metadata.h"
#include "base/error_internal.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/tree.h"
#include "store/zarr_writer.h"
#include "sys/file.h"
#include <string.h>

struct metadata_check {
    const char *store;
    const struct sq_store_state *state;
    const struct sq_json *metadata; /* consolidated */
    sq_metadata_finding *found;
    void *user;
};

/* *ret NULL: it cannot be read, and failure says why. */
static int read_document(const char *path, struct sq_json **ret, struct squall_error *failure, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *text = NULL;
    size_t length = 0;
    *ret = NULL;
    int status = sq_file_read_all(path, SQ_JSON_LIMIT_BYTES, &text, &length, failure);
    if (!status) {
        struct squall_error reason = SQUALL_ERROR_INIT;
        status = sq_json_parse(text, length, ret, &reason);
        if (status)
            status = sq_error(failure, status, "%s: %s", path, reason.message);
    }
    return status == SQUALL_ENOMEM ? sq_error(err, status, "%s", failure->message) : 0;
}

/* How long layout.json says that a dimension is. */
struct dimension {
    const char *name;
    const struct sq_json *length; /* NULL: no variable has it */
};

static int find_length(void *user, const char *array, const struct sq_json *v, struct squall_error *err)
{
    struct dimension *dim = user;
    const struct sq_json *dims = sq_json_get(v, "dims");
    (void)array, (void)err;
    for (size_t d = 1; d < sq_json_count(dims); d++) /* the first is the append dimension, which all have */
        if (!strcmp(sq_json_string(sq_json_at(dims, d)) ? sq_json_string(sq_json_at(dims, d)) : "", dim->name))
            dim->length = sq_json_at(sq_json_get(v, "shape"), d - 1);
    return 0;
}

static bool is_length(const struct sq_store_state *state, const char *name, const struct sq_json *own)
{
    struct dimension dim = {name, NULL};
    uint64_t length;
    if (!strcmp(name, state->append_dim))
        return sq_json_uint(own, &length) && length == state->init_count;
    return !sq_json_each(sq_json_get(state->layout, "arrays"), find_length, &dim, NULL) && dim.length && sq_json_equal(own, dim.length);
}

struct comparison {
    const struct sq_store_state *state;
    const struct sq_json *own, *dims;
    const char *differs; /* the first member that is not the same */
};

/* The same, or longer along dimensions that layout.json has so. */
static bool is_shape(const struct comparison *c, const struct sq_json *own, const struct sq_json *told)
{
    bool good = sq_json_count(own) == sq_json_count(told);
    for (size_t d = 0; d < sq_json_count(told) && good; d++) {
        const char *name = sq_json_string(sq_json_at(c->dims, d));
        good = sq_json_equal(sq_json_at(own, d), sq_json_at(told, d)) || (name && is_length(c->state, name, sq_json_at(own, d)));
    }
    return good;
}

static int compare_member(void *user, const char *key, const struct sq_json *told, struct squall_error *err)
{
    struct comparison *c = user;
    const struct sq_json *own = sq_json_get(c->own, key);
    (void)err;
    if (!c->differs && !(strcmp(key, "shape") ? sq_json_equal(own, told) : is_shape(c, own, told)))
        c->differs = key;
    return 0;
}

/* Names of the dimensions of an array; in version 2 beside its document. *ret: of the metadata. */
static int dims_of(const struct metadata_check *check, const char *key, const struct sq_json *own, const struct sq_json **ret,
                   struct squall_error *err)
{
    *ret = sq_json_get(own, "dimension_names");
    if (check->state->zarr_format != 2)
        return 0;
    SQ_CLEANUP_FREE char *attributes = sq_format("%.*s.zattrs", (int)(sq_path_name(key) - key), key);
    if (!attributes)
        return sq_error_memory(err, strlen(key));
    *ret = sq_json_get(sq_json_get(check->metadata, attributes), "_ARRAY_DIMENSIONS");
    return 0;
}

/* key: of an array; in version 2 of a document. */
static int check_node(void *user, const char *key, const struct sq_json *told, struct squall_error *err)
{
    const struct metadata_check *check = user;
    struct squall_error failure = SQUALL_ERROR_INIT;
    struct sq_json *read = NULL;
    if (!sq_tree_key_stays_inside(key)) /* opening the store has told of it */
        return 0;
    SQ_CLEANUP_FREE char *path = sq_format("%s/%s%s", check->store, key, check->state->zarr_format == 2 ? "" : "/zarr.json");
    if (!path)
        return sq_error_memory(err, strlen(key));
    SQ_TRY(read_document(path, &read, &failure, err));
    SQ_CLEANUP_JSON struct sq_json *own = read;
    if (!own)
        return check->found(check->user, sq_strdup(failure.message), err);
    struct comparison c = {check->state, own, NULL, NULL};
    SQ_TRY(dims_of(check, key, own, &c.dims, err));
    SQ_TRY(sq_json_each(told, compare_member, &c, err));
    if (!c.differs && sq_json_count(own) == sq_json_count(told))
        return 0;
    return check->found(check->user,
                        sq_format("%s: its %s is not what %s/%s says of it", path, c.differs ? c.differs : "content", check->store,
                                  sq_store_root_document(check->state->zarr_format)),
                        err);
}

int sq_verify_metadata(const char *store, const struct sq_store_state *state, sq_metadata_finding *found, void *user,
                       struct squall_error *err)
{
    struct metadata_check check = {store, state, NULL, found, user};
    struct squall_error failure = SQUALL_ERROR_INIT;
    struct sq_json *read = NULL;
    SQ_CLEANUP_FREE char *path = sq_path_join(store, sq_store_root_document(state->zarr_format));
    if (!path)
        return sq_error_memory(err, strlen(store));
    SQ_TRY(read_document(path, &read, &failure, err));
    SQ_CLEANUP_JSON struct sq_json *root = read;
    check.metadata = sq_json_get(state->zarr_format == 2 ? root : sq_json_get(root, "consolidated_metadata"), "metadata");
    return sq_json_each(check.metadata, check_node, &check, err);
}
