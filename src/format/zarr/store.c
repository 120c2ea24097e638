/*
 * Opening a Zarr store: which arrays are in it. Consolidated metadata where the root has some, as every reader of these
 * stores does; else the groups, each once. Damage costs only the array that it is in, and leaves a line. Whether the store lies in a
 * folder or in a zip file makes no difference here: io/tree.h.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/metadata.h"
#include "format/zarr/records.h"
#include "format/zarr/zarr.h"
#include <stdatomic.h>
#include <string.h>

enum { DEPTH_LIMIT = 64 };

static const char *const GROUP_MEMBERS[] = {"zarr_format", "node_type", "attributes", "consolidated_metadata", NULL};

struct opening {
    const char *path;
    struct sq_tree *tree;
    struct sq_zarr_store *store;
    struct sq_file_identity *visited; /* groups that have been read */
    size_t visited_count, visited_capacity;
};

/* The document of the node, "" the root; *ret NULL, and 0, where there is none. */
static int read_document(const struct opening *o, const char *node, const char *document, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *key = node[0] ? sq_path_join(node, document) : sq_strdup(document);
    SQ_CLEANUP_FREE char *text = NULL;
    size_t length;
    if (!key)
        return sq_error_memory(err, strlen(node));
    SQ_TRY(sq_tree_read_all(o->tree, key, SQ_JSON_LIMIT_BYTES, &text, &length, err));
    *ret = NULL;
    if (!text)
        return 0;
    int status = sq_json_parse(text, length, ret, err);
    if (!status)
        return 0;
    SQ_CLEANUP_FREE char *name = sq_tree_name(o->tree, key);
    return sq_error_within(err, status, "%s", name ? name : key);
}

static int add_problem(struct opening *o, const char *what, struct squall_error *err)
{
    struct sq_zarr_store *s = o->store;
    SQ_TRY(SQ_GROW(s->problems, s->problem_capacity, s->problem_count + 1, err));
    if (!(s->problems[s->problem_count] = sq_strdup(what)))
        return sq_error_memory(err, strlen(what));
    s->problem_count++;
    return 0;
}

/* What went wrong with one node: memory ends the opening, anything else is a line. */
static int node_failed(struct opening *o, const char *name, int status, struct squall_error *reason, struct squall_error *err)
{
    if (status == SQUALL_ENOMEM)
        return sq_error(err, status, "%s", reason->message);
    sq_error_within(reason, status, "%s: %s left out", o->path, name[0] ? name : "the array");
    return add_problem(o, reason->message, err);
}

/* document, attributes: as the version's parser takes them. */
static int add_array(struct opening *o, const char *name, int version, const struct sq_json *document, const struct sq_json *attributes,
                     struct squall_error *err)
{
    struct sq_zarr_store *s = o->store;
    struct squall_error reason = SQUALL_ERROR_INIT;
    SQ_TRY(SQ_GROW(s->arrays, s->array_capacity, s->array_count + 1, err));
    struct sq_zarr_array *a = &s->arrays[s->array_count];
    *a = (struct sq_zarr_array){.name = sq_strdup(name), .folder = sq_tree_name(o->tree, name)};
    int status = a->name && a->folder ? 0 : sq_error_memory(&reason, strlen(name));
    if (!status && !sq_text_is_visible(name))
        status = sq_error(&reason, SQUALL_ECORRUPT, "control characters in its name");
    if (!status)
        status = version == 3 ? sq_zarr_parse_v3(document, a, &reason) : sq_zarr_parse_v2(document, attributes, a, &reason);
    if (!status) {
        s->array_count++;
        return 0;
    }
    sq_zarr_array_done(a);
    return node_failed(o, name, status, &reason, err);
}

/* The root's attributes are the store's. */
static int add_group(struct opening *o, const char *name, const struct sq_json *attributes, struct squall_error *err)
{
    struct sq_zarr_store *s = o->store;
    if (!name[0])
        return 0;
    SQ_TRY(SQ_GROW(s->groups, s->group_capacity, s->group_count + 1, err));
    struct sq_zarr_group *g = &s->groups[s->group_count];
    *g = (struct sq_zarr_group){
        .name = sq_strdup(name),
        .attributes = sq_json_type(attributes) == SQ_JSON_OBJECT ? sq_json_share(attributes) : sq_json_new_object(),
    };
    s->group_count++;
    return g->name && g->attributes ? 0 : sq_error_memory(err, strlen(name));
}

/* A v3 document that says what it is, in the version that it must have. */
static int check_node(const struct sq_json *document, bool *ret_is_array, struct squall_error *err)
{
    uint64_t version;
    const char *type = sq_json_string(sq_json_get(document, "node_type"));
    if (!sq_json_uint(sq_json_get(document, "zarr_format"), &version))
        return sq_error(err, SQUALL_ECORRUPT, "no zarr_format in its metadata");
    if (version != 3)
        return sq_error(err, SQUALL_EUNSUPPORTED, "zarr_format %llu in a zarr.json", (unsigned long long)version);
    if (!type || (strcmp(type, "array") != 0 && strcmp(type, "group") != 0))
        return sq_error(err, SQUALL_ECORRUPT, "its node_type is neither array nor group");
    *ret_is_array = type[0] == 'a';
    const char *unknown = *ret_is_array ? NULL : sq_json_unknown_member(document, GROUP_MEMBERS);
    return unknown ? sq_error(err, SQUALL_EUNSUPPORTED, "unsupported extension %s of a group", unknown) : 0;
}

/* Names in consolidated metadata come from a file: they lead to folders that a walk could have found. */
static int check_key(const char *key, struct squall_error *err)
{
    unsigned depth = 0;
    for (const char *slash = key; (slash = strchr(slash, '/')); slash++)
        depth++;
    if (!sq_tree_key_stays_inside(key))
        return sq_error(err, SQUALL_ECORRUPT, "its key leads out of the store");
    return depth <= DEPTH_LIMIT ? 0 : sq_error(err, SQUALL_ECORRUPT, "nested more than %d deep", DEPTH_LIMIT);
}

/* One node of v3's consolidated metadata. */
static int visit_consolidated_v3(void *user, const char *key, const struct sq_json *document, struct squall_error *err)
{
    struct opening *o = user;
    struct squall_error reason = SQUALL_ERROR_INIT;
    bool is_array;
    int status = check_key(key, &reason);
    if (!status)
        status = check_node(document, &is_array, &reason);
    if (status)
        return node_failed(o, key, status, &reason, err);
    return is_array ? add_array(o, key, 3, document, NULL, err) : add_group(o, key, sq_json_get(document, "attributes"), err);
}

/* Is key that document of a node? Its length without it, and without the slash before it, is *ret_length. */
static bool is_document(const char *key, const char *document, size_t *ret_length)
{
    size_t length = strlen(key), suffix = strlen(document);
    if (length < suffix || strcmp(key + length - suffix, document) != 0 || (length > suffix && key[length - suffix - 1] != '/'))
        return false;
    *ret_length = length > suffix ? length - suffix - 1 : 0;
    return true;
}

/* One document of .zmetadata: "a/b/.zarray" or "a/.zgroup", whose attributes are beside it. */
static int visit_consolidated_v2(void *user, const char *key, const struct sq_json *document, struct squall_error *err)
{
    struct opening *o = ((void **)user)[0];
    const struct sq_json *metadata = ((void **)user)[1];
    size_t length;
    bool is_array = is_document(key, ".zarray", &length);
    if (!is_array && !is_document(key, ".zgroup", &length))
        return 0;
    SQ_CLEANUP_FREE char *name = sq_strndup(key, length);
    SQ_CLEANUP_FREE char *attributes_key = sq_format("%.*s%s.zattrs", (int)length, key, length ? "/" : "");
    if (!name || !attributes_key)
        return sq_error_memory(err, length);
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = length > 0 ? check_key(name, &reason) : 0;
    if (status)
        return node_failed(o, name, status, &reason, err);
    const struct sq_json *attributes = sq_json_get(metadata, attributes_key);
    return is_array ? add_array(o, name, 2, document, attributes, err) : add_group(o, name, attributes, err);
}

/* Folders are read once, whatever links lead to them. */
static int visit_once(struct opening *o, const char *name, bool *ret_first, struct squall_error *err)
{
    bool is_folder;
    struct sq_file_identity id = {0};
    SQ_TRY(sq_tree_is_folder(o->tree, name, &is_folder, &id, err));
    *ret_first = false;
    if (!is_folder)
        return 0;
    for (size_t i = 0; i < o->visited_count; i++)
        if (o->visited[i].inode == id.inode && o->visited[i].device == id.device)
            return 0;
    SQ_TRY(SQ_GROW(o->visited, o->visited_capacity, o->visited_count + 1, err));
    o->visited[o->visited_count++] = id;
    *ret_first = true;
    return 0;
}

static int walk_node(struct opening *o, const char *name, unsigned depth, struct squall_error *err);

/* Everything right below the group that may be a node. */
static int walk_group(struct opening *o, const char *name, unsigned depth, struct squall_error *err)
{
    bool first;
    char **children = NULL;
    size_t count = 0;
    SQ_TRY(visit_once(o, name, &first, err));
    if (!first)
        return 0;
    if (depth > DEPTH_LIMIT)
        return sq_error(err, SQUALL_ECORRUPT, "%s: groups nested more than %d deep", name, DEPTH_LIMIT);
    SQ_TRY(sq_tree_list(o->tree, name, &children, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        if (children[i][0] == '.')
            continue;
        SQ_CLEANUP_FREE char *child = name[0] ? sq_path_join(name, children[i]) : sq_strdup(children[i]);
        struct squall_error reason = SQUALL_ERROR_INIT;
        status = child ? walk_node(o, child, depth + 1, &reason) : sq_error_memory(&reason, strlen(name));
        if (status)
            status = node_failed(o, child ? child : children[i], status, &reason, err);
    }
    sq_names_free(children, count);
    return status;
}

/* What cannot even be looked at is no node. */
static int is_folder(const struct opening *o, const char *name, bool *ret, struct squall_error *err)
{
    struct squall_error reason = SQUALL_ERROR_INIT;
    struct sq_file_identity id;
    *ret = false;
    int status = sq_tree_is_folder(o->tree, name, ret, &id, &reason);
    return status == SQUALL_ENOMEM ? sq_error(err, status, "%s", reason.message) : 0;
}

/* Damage to what is said of a group is not damage to what is in it. */
static int add_group_v2(struct opening *o, const char *name, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *group = NULL;
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = read_document(o, name, ".zgroup", &group, &reason);
    if (!status && group)
        status = read_document(o, name, ".zattrs", &attributes, &reason);
    if (status)
        SQ_TRY(node_failed(o, name, status, &reason, err));
    return group ? add_group(o, name, attributes, err) : 0;
}

static int walk_v3(struct opening *o, const char *name, unsigned depth, const struct sq_json *document, struct squall_error *err)
{
    bool is_array;
    SQ_TRY(check_node(document, &is_array, err));
    if (is_array)
        return add_array(o, name, 3, document, NULL, err);
    SQ_TRY(add_group(o, name, sq_json_get(document, "attributes"), err));
    return walk_group(o, name, depth, err);
}

/* A node of either version, whatever its group's is. A folder without metadata is a group too, if something is in it. */
static int walk_node(struct opening *o, const char *name, unsigned depth, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *document = NULL;
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    bool folder;
    SQ_TRY(is_folder(o, name, &folder, err));
    if (!folder)
        return 0;
    SQ_TRY(read_document(o, name, "zarr.json", &document, err));
    if (document)
        return walk_v3(o, name, depth, document, err);
    SQ_TRY(read_document(o, name, ".zarray", &document, err));
    if (!document) {
        SQ_TRY(add_group_v2(o, name, err));
        return walk_group(o, name, depth, err);
    }
    SQ_TRY(read_document(o, name, ".zattrs", &attributes, err));
    return add_array(o, name, 2, document, attributes, err);
}

static int set_root_attributes(struct opening *o, const struct sq_json *attributes, struct squall_error *err)
{
    o->store->attributes = sq_json_type(attributes) == SQ_JSON_OBJECT ? sq_json_share(attributes) : sq_json_new_object();
    return o->store->attributes ? 0 : sq_error_memory(err, sizeof(void *));
}

/* Room for the arrays among these nodes, so that they need not be moved as they become more; for as many as are common. */
static int make_room(struct sq_zarr_store *s, const struct sq_json *nodes, struct squall_error *err)
{
    enum { COMMON_COUNT = 4096 };
    size_t count = sq_json_count(nodes);
    return SQ_GROW(s->arrays, s->array_capacity, count < COMMON_COUNT ? count : COMMON_COUNT, err);
}

/* A store that is one array: damage to it leaves nothing. */
static int add_only_array(struct opening *o, int version, const struct sq_json *document, const struct sq_json *attributes,
                          struct squall_error *err)
{
    SQ_TRY(add_array(o, "", version, document, attributes, err));
    struct sq_zarr_store *s = o->store;
    return s->array_count == 1 ? 0 : sq_error(err, SQUALL_ECORRUPT, "%s", s->problems[s->problem_count - 1]);
}

static int open_v3(struct opening *o, const struct sq_json *root, struct squall_error *err)
{
    const struct sq_json *consolidated = sq_json_get(root, "consolidated_metadata"), *nodes = sq_json_get(consolidated, "metadata");
    const char *kind = sq_json_string(sq_json_get(consolidated, "kind"));
    bool is_array;
    o->store->version = 3;
    int status = check_node(root, &is_array, err);
    if (status)
        return sq_error_within(err, status, "%s", o->path);
    SQ_TRY(set_root_attributes(o, is_array ? NULL : sq_json_get(root, "attributes"), err));
    if (is_array)
        return add_only_array(o, 3, root, NULL, err);
    if (kind && !strcmp(kind, "inline") && sq_json_type(nodes) == SQ_JSON_OBJECT) {
        SQ_TRY(make_room(o->store, nodes, err));
        return sq_json_each(nodes, visit_consolidated_v3, o, err);
    }
    return walk_group(o, "", 0, err);
}

static int open_v2(struct opening *o, const struct sq_json *consolidated, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *attributes = NULL;
    SQ_CLEANUP_JSON struct sq_json *array = NULL;
    const struct sq_json *metadata = sq_json_get(consolidated, "metadata");
    o->store->version = 2;
    if (sq_json_type(metadata) == SQ_JSON_OBJECT) {
        SQ_TRY(set_root_attributes(o, sq_json_get(metadata, ".zattrs"), err));
        SQ_TRY(make_room(o->store, metadata, err));
        void *user[] = {o, (void *)(uintptr_t)metadata};
        return sq_json_each(metadata, visit_consolidated_v2, user, err);
    }
    SQ_TRY(read_document(o, "", ".zarray", &array, err));
    SQ_TRY(read_document(o, "", ".zattrs", &attributes, err));
    SQ_TRY(set_root_attributes(o, array ? NULL : attributes, err));
    return array ? add_only_array(o, 2, array, attributes, err) : walk_group(o, "", 0, err);
}

/* Has the node, "" the root, a document of any version? */
static int find_metadata(const struct sq_tree *tree, const char *node, bool *ret_found, struct squall_error *err)
{
    static const char *const DOCUMENTS[] = {"zarr.json", ".zmetadata", ".zgroup", ".zarray"};
    *ret_found = false;
    for (size_t i = 0; i < sizeof DOCUMENTS / sizeof *DOCUMENTS && !*ret_found; i++) {
        SQ_CLEANUP_FREE char *key = node[0] ? sq_path_join(node, DOCUMENTS[i]) : sq_strdup(DOCUMENTS[i]);
        if (!key)
            return sq_error_memory(err, strlen(node));
        SQ_TRY(sq_tree_exists(tree, key, ret_found, err));
    }
    return 0;
}

/* Often a folder is put into a zip file, where its content should be. */
static int no_store(const struct opening *o, struct squall_error *err)
{
    char **names = NULL;
    size_t count = 0;
    bool found = false;
    int status = sq_tree_list(o->tree, "", &names, &count, err);
    for (size_t i = 0; i < count && !found && !status; i++) {
        status = find_metadata(o->tree, names[i], &found, err);
        if (found)
            status = sq_error(err, SQUALL_ENOTFOUND, "%s: no Zarr store, but one lies in it, in %s; what is in there should be at the root",
                              o->path, names[i]);
    }
    sq_names_free(names, count);
    return status ? status
                  : sq_error(err, SQUALL_ENOTFOUND, "%s: no Zarr store: neither zarr.json nor .zgroup, .zarray or .zmetadata is there",
                             o->path);
}

static int open_store(struct opening *o, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *root = NULL;
    SQ_CLEANUP_JSON struct sq_json *consolidated = NULL;
    bool found;
    size_t problem_count;
    SQ_TRY(sq_tree_open(o->path, &o->store->tree, err));
    o->tree = o->store->tree;
    const char *const *problems = sq_tree_problems(o->tree, &problem_count);
    for (size_t i = 0; i < problem_count; i++)
        SQ_TRY(add_problem(o, problems[i], err));
    SQ_TRY(read_document(o, "", "zarr.json", &root, err));
    if (root)
        return open_v3(o, root, err);
    SQ_TRY(find_metadata(o->tree, "", &found, err));
    if (!found)
        return no_store(o, err);
    struct squall_error reason = SQUALL_ERROR_INIT;
    int status = read_document(o, "", ".zmetadata", &consolidated, &reason);
    if (status == SQUALL_ECORRUPT) { /* the folders say the same */
        SQ_TRY(add_problem(o, reason.message, err));
    } else if (status) {
        return sq_error(err, status, "%s", reason.message);
    }
    return open_v2(o, consolidated, err);
}

int sq_zarr_store_open(const char *path, struct sq_zarr_store *ret, struct squall_error *err)
{
    struct sq_zarr_store store = {0};
    struct opening o = {.path = path, .store = &store};
    int status = open_store(&o, err);
    sq_free(o.visited);
    if (status)
        sq_zarr_store_done(&store);
    else
        *ret = store;
    return status;
}

static int open_document(struct opening *o, int version, const char *text, size_t length, struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *document = NULL;
    SQ_TRY(sq_tree_open_folder(o->path, &o->store->tree, err));
    o->tree = o->store->tree;
    o->store->version = version;
    SQ_TRY(set_root_attributes(o, NULL, err));
    SQ_TRY(sq_json_parse(text, length, &document, err));
    return add_only_array(o, version, document, NULL, err);
}

int sq_zarr_store_from_document(const char *folder, int version, const char *document, size_t length, struct sq_zarr_store *ret,
                                struct squall_error *err)
{
    struct sq_zarr_store store = {0};
    struct opening o = {.path = folder, .store = &store};
    int status = open_document(&o, version, document, length, err);
    if (status)
        sq_zarr_store_done(&store);
    else
        *ret = store;
    return status;
}

void sq_zarr_store_done(struct sq_zarr_store *store)
{
    struct sq_records *records = atomic_load(&store->records);
    if (records)
        sq_records_done(records);
    sq_free(records);
    sq_json_free(store->attributes);
    for (size_t i = 0; i < store->array_count; i++)
        sq_zarr_array_done(&store->arrays[i]);
    sq_free(store->arrays);
    for (size_t i = 0; i < store->group_count; i++) {
        sq_free(store->groups[i].name);
        sq_json_free(store->groups[i].attributes);
    }
    sq_free(store->groups);
    sq_names_free(store->problems, store->problem_count);
    sq_tree_close(store->tree);
    *store = (struct sq_zarr_store){0};
}

bool sq_zarr_is_store(const char *path)
{
    struct sq_tree *tree;
    bool is_store;
    if (sq_tree_open(path, &tree, NULL))
        return false;
    int status = find_metadata(tree, "", &is_store, NULL);
    sq_tree_close(tree);
    return !status && is_store;
}
