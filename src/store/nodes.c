/*
 * Documents of groups and arrays, of both versions: read, written, and told again in consolidated metadata. That lies in groups above: in v3 within
 * their zarr.json, in v2 in a file of its own. A node's own documents are written first, then the groups', the root's last.
 *
 * Who reads a document to write it again holds its folder: threads and processes do so one after the other. Nobody holds two folders: what a group
 * says of a node is read from the node while the group is held, so that the last one to do so says what is there.
 */
#include "base/error_internal.h"
#include "base/memory.h"
#include "store/store.h"
#include "sys/file.h"
#include "sys/locks.h"
#include <string.h>

/* Any number does: documents are changed by one thread at a time. */
enum { DOCUMENTS_LOCK = 3 };

void sq_node_done(struct sq_node *node)
{
    sq_json_free(node->document);
    sq_json_free(node->attributes);
    *node = (struct sq_node){0};
}

/* *ret NULL, and 0, where there is no such file. */
static int read_document(const char *folder, const char *name, struct sq_json **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(folder, name);
    SQ_CLEANUP_FREE char *text = NULL;
    enum sq_file_kind kind;
    size_t length;
    if (!path)
        return sq_error_memory(err, strlen(folder));
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    *ret = NULL;
    if (kind == SQ_FILE_NONE)
        return 0;
    SQ_TRY(sq_file_read_all(path, SQ_JSON_LIMIT_BYTES, &text, &length, err));
    int status = sq_json_parse(text, length, ret, err);
    return status ? sq_error_within(err, status, "%s", path) : 0;
}

static int write_document(const char *folder, const char *name, const struct sq_json *value, enum sq_durability durability,
                          struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(folder, name);
    SQ_CLEANUP_TEXT struct sq_text text = SQ_TEXT_INIT;
    if (!path)
        return sq_error_memory(err, strlen(folder));
    SQ_TRY(sq_json_write(value, true, &text, err));
    sq_text_add(&text, "\n");
    return text.failed ? sq_error_memory(err, text.length) : sq_atomic_write(path, text.data, text.length, durability, err);
}

static int read_v2(const char *folder, const char *name, bool is_array, struct sq_node *node, struct squall_error *err)
{
    SQ_TRY(read_document(folder, name, &node->document, err));
    if (!node->document)
        return 0;
    node->version = 2;
    node->is_array = is_array;
    return read_document(folder, ".zattrs", &node->attributes, err);
}

static int read_node(const char *folder, struct sq_node *node, struct squall_error *err)
{
    SQ_TRY(read_document(folder, "zarr.json", &node->document, err));
    if (!node->document)
        SQ_TRY(read_v2(folder, ".zarray", true, node, err));
    if (!node->document)
        SQ_TRY(read_v2(folder, ".zgroup", false, node, err));
    if (!node->document || node->version == 2)
        return 0;
    const char *type = sq_json_string(sq_json_get(node->document, "node_type"));
    if (!type || (strcmp(type, "array") != 0 && strcmp(type, "group") != 0))
        return sq_error(err, SQUALL_ECORRUPT, "%s/zarr.json: its node_type is neither array nor group", folder);
    node->version = 3;
    node->is_array = type[0] == 'a';
    return 0;
}

int sq_node_empty_group(int version, struct sq_node *ret, struct squall_error *err)
{
    struct sq_json *v = sq_json_new_object();
    int failed = sq_json_set_int(v, "zarr_format", version);
    if (version == 3) {
        failed |= sq_json_set_string(v, "node_type", "group");
        failed |= sq_json_set(v, "attributes", sq_json_new_object());
    }
    *ret = (struct sq_node){.version = version, .document = v};
    if (!failed)
        return 0;
    sq_node_done(ret);
    return sq_error_memory(err, 1);
}

int sq_node_read(const char *folder, struct sq_node *ret, struct squall_error *err)
{
    struct sq_node node = {0};
    int status = read_node(folder, &node, err);
    if (status)
        sq_node_done(&node);
    else
        *ret = node;
    return status;
}

/* ---- one after the other ------------------------------------------------------------------------------------------------------------ */

static int hold(const char *folder, int *ret_held, struct squall_error *err)
{
    sq_locks_hold(DOCUMENTS_LOCK);
    int status = sq_folder_hold(folder, ret_held, err);
    if (status)
        sq_locks_release(DOCUMENTS_LOCK);
    return status;
}

static void release(int held)
{
    sq_folder_release(held);
    sq_locks_release(DOCUMENTS_LOCK);
}

/* ---- consolidated metadata -------------------------------------------------------------------------------------------------------- */

/* What becomes of one node in a table of consolidated metadata, whose keys are paths below the group. */
typedef int change_table(struct sq_json *table, const char *name, const struct sq_node *node, struct squall_error *err);

/* "name/.zattrs"; of the group itself ".zattrs". */
static int set_entry(struct sq_json *table, const char *name, const char *document, const struct sq_json *value, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *key = !document[0] ? sq_strdup(name) : name[0] ? sq_path_join(name, document) : sq_strdup(document);
    if (!key)
        return sq_error_memory(err, strlen(name));
    if (!value) {
        sq_json_remove(table, key);
        return 0;
    }
    return sq_json_set(table, key, sq_json_share(value)) ? sq_error_memory(err, strlen(key)) : 0;
}

int sq_node_put(struct sq_json *table, const char *name, const struct sq_node *node, struct squall_error *err)
{
    if (node->version == 2) {
        SQ_TRY(set_entry(table, name, node->is_array ? ".zarray" : ".zgroup", node->document, err));
        return set_entry(table, name, ".zattrs", node->attributes, err);
    }
    if (!name[0]) /* the group's own document is the one that holds the table */
        return 0;
    if (!sq_json_get(node->document, "consolidated_metadata"))
        return set_entry(table, name, "", node->document, err);
    SQ_CLEANUP_JSON struct sq_json *document = sq_json_copy(node->document);
    if (!document)
        return sq_error_memory(err, 1);
    sq_json_remove(document, "consolidated_metadata"); /* its nodes are in this table too */
    return set_entry(table, name, "", document, err);
}

struct below {
    const char *name;
    char **keys;
    size_t count, capacity;
};

static int collect_below(void *user, const char *key, const struct sq_json *value, struct squall_error *err)
{
    struct below *b = user;
    const size_t length = strlen(b->name);
    (void)value;
    if (strncmp(key, b->name, length) != 0 || (key[length] && key[length] != '/'))
        return 0;
    SQ_TRY(SQ_GROW(b->keys, b->capacity, b->count + 1, err));
    if (!(b->keys[b->count] = sq_strdup(key)))
        return sq_error_memory(err, strlen(key));
    b->count++;
    return 0;
}

static int remove_entries(struct sq_json *table, const char *name, const struct sq_node *node, struct squall_error *err)
{
    struct below b = {.name = name};
    (void)node;
    int status = sq_json_each(table, collect_below, &b, err);
    for (size_t i = 0; i < b.count; i++)
        if (!status)
            sq_json_remove(table, b.keys[i]);
    sq_names_free(b.keys, b.count);
    return status;
}

/* The table within a document; NULL: it has none. The document is ours to change. */
static struct sq_json *table_of(const struct sq_json *document, bool is_v3)
{
    const struct sq_json *holder = is_v3 ? sq_json_get(document, "consolidated_metadata") : document;
    const struct sq_json *table = sq_json_get(holder, "metadata");
    return sq_json_type(table) == SQ_JSON_OBJECT ? (struct sq_json *)(uintptr_t)table : NULL;
}

/* What a group says of the nodes below it; a folder may hold both versions. */
struct tables {
    struct sq_node group;
    struct sq_json *v2_document, *v3, *v2; /* the tables belong to the documents; NULL: there is none */
};

static void tables_done(struct tables *t)
{
    sq_node_done(&t->group);
    sq_json_free(t->v2_document);
}

static int tables_read(const char *group, struct tables *t, struct squall_error *err)
{
    SQ_TRY(sq_node_read(group, &t->group, err));
    SQ_TRY(read_document(group, ".zmetadata", &t->v2_document, err));
    t->v3 = t->group.version == 3 && !t->group.is_array ? table_of(t->group.document, true) : NULL;
    t->v2 = table_of(t->v2_document, false);
    return 0;
}

/* A node, or one that is about to be deleted, as the tables of the groups above are to have it. */
struct news {
    const char *folder;
    bool gone;
    enum sq_durability durability;
};

static int change_tables(const char *group, const char *name, const struct news *news, struct squall_error *err)
{
    __attribute__((cleanup(tables_done))) struct tables t = {0};
    SQ_CLEANUP_NODE struct sq_node node = {0};
    SQ_TRY(tables_read(group, &t, err));
    if (!news->gone)
        SQ_TRY(sq_node_read(news->folder, &node, err));
    change_table *change = node.version ? sq_node_put : remove_entries;
    if (t.v3) {
        SQ_TRY(change(t.v3, name, &node, err));
        SQ_TRY(write_document(group, "zarr.json", t.group.document, news->durability, err));
    }
    if (!t.v2)
        return 0;
    SQ_TRY(change(t.v2, name, &node, err));
    return write_document(group, ".zmetadata", t.v2_document, news->durability, err);
}

/* In the tables of one group. *ret_is_group: false where there is no group, and so none above that knows of it. */
static int change_group(const char *group, const char *name, const struct news *news, bool *ret_is_group, struct squall_error *err)
{
    __attribute__((cleanup(tables_done))) struct tables t = {0};
    int held;
    SQ_TRY(tables_read(group, &t, err));
    *ret_is_group = (t.group.version > 0 && !t.group.is_array) || t.v2_document;
    if (!t.v3 && !t.v2)
        return 0;
    SQ_TRY(hold(group, &held, err));
    int status = change_tables(group, name, news, err);
    release(held);
    return status;
}

/* From the root on, without links that lead back: what it is called below each folder on the way. */
static int clean_path(const char *path, char **ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *absolute = sq_path_absolute(path);
    SQ_CLEANUP_TEXT struct sq_text clean = SQ_TEXT_INIT;
    if (!absolute)
        return sq_error_memory(err, strlen(path));
    for (const char *part = absolute; *part;) {
        part += strspn(part, "/");
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return sq_path_resolve(path, ret, err);
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            sq_text_add(&clean, "/");
            sq_text_add_bytes(&clean, part, length);
        }
        part += length;
    }
    *ret = sq_text_release(&clean);
    return *ret ? 0 : sq_error_memory(err, strlen(path));
}

/* In those of the group above the folder, the one above that, and so on. */
static int change_groups_above(const struct news *news, struct squall_error *err)
{
    char *clean;
    SQ_TRY(clean_path(news->folder, &clean, err));
    SQ_CLEANUP_FREE char *absolute = clean;
    SQ_CLEANUP_FREE char *above = sq_path_folder(absolute);
    bool is_group = true;
    if (!above)
        return sq_error_memory(err, strlen(absolute));
    while (is_group && strlen(above) > 1) {
        SQ_TRY(change_group(above, absolute + strlen(above) + 1, news, &is_group, err));
        char *next = sq_path_folder(above);
        if (!next)
            return sq_error_memory(err, strlen(above));
        sq_free(above);
        above = next;
    }
    return 0;
}

/* ---- making consolidated metadata --------------------------------------------------------------------------------------------------- */

enum { DEPTH_LIMIT = 64 }; /* of groups within groups; links may lead back */

static int collect_group(struct sq_json *table, const char *folder, const char *name, int version, unsigned depth,
                         struct squall_error *err);

/* A group that says nothing of itself is in the table where something is below it: readers look for each part of a path. */
static int collect_implicit(struct sq_json *table, const char *folder, const char *name, int version, unsigned depth,
                            struct squall_error *err)
{
    const size_t before = sq_json_count(table);
    SQ_CLEANUP_NODE struct sq_node group = {0};
    SQ_TRY(collect_group(table, folder, name, version, depth, err));
    if (sq_json_count(table) == before)
        return 0;
    SQ_TRY(sq_node_empty_group(version, &group, err));
    return sq_node_put(table, name, &group, err);
}

static int collect_node(struct sq_json *table, const char *folder, const char *name, int version, unsigned depth, struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node node = {0};
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(folder, &kind, NULL, err));
    if (kind != SQ_FILE_FOLDER)
        return 0;
    SQ_TRY(sq_node_read(folder, &node, err));
    if (!node.version)
        return collect_implicit(table, folder, name, version, depth, err);
    if (node.version != version)
        return sq_error(err, SQUALL_EREFUSED, "%s is Zarr v%d below a group of v%d, whose consolidated metadata cannot hold it", folder,
                        node.version, version);
    SQ_TRY(sq_node_put(table, name, &node, err));
    return node.is_array ? 0 : collect_group(table, folder, name, version, depth, err);
}

/* All nodes below the group, whose own name is `name`, in the order of their names. */
static int collect_group(struct sq_json *table, const char *folder, const char *name, int version, unsigned depth, struct squall_error *err)
{
    char **names;
    size_t count;
    int status = 0;
    if (depth > DEPTH_LIMIT)
        return sq_error(err, SQUALL_ECORRUPT, "%s: groups nested more than %d deep", folder, DEPTH_LIMIT);
    SQ_TRY(sq_folder_list(folder, &names, &count, err));
    for (size_t i = 0; i < count && !status; i++) {
        if (names[i][0] == '.')
            continue;
        SQ_CLEANUP_FREE char *child_folder = sq_path_join(folder, names[i]);
        SQ_CLEANUP_FREE char *child = name[0] ? sq_path_join(name, names[i]) : sq_strdup(names[i]);
        status = child_folder && child ? collect_node(table, child_folder, child, version, depth + 1, err)
                                       : sq_error_memory(err, strlen(folder));
    }
    sq_names_free(names, count);
    return status;
}

/* The group's document with the table, which is shared. */
static int put_table(const char *folder, struct sq_node *group, const struct sq_json *table, enum sq_durability durability,
                     struct squall_error *err)
{
    SQ_CLEANUP_JSON struct sq_json *v = sq_json_new_object();
    int failed = 0;
    if (group->version == 2) {
        failed |= sq_json_set_int(v, "zarr_consolidated_format", 1);
        failed |= sq_json_set(v, "metadata", sq_json_share(table));
        return failed ? sq_error_memory(err, 1) : write_document(folder, ".zmetadata", v, durability, err);
    }
    failed |= sq_json_set_string(v, "kind", "inline");
    failed |= sq_json_set(v, "must_understand", sq_json_new_bool(false));
    failed |= sq_json_set(v, "metadata", sq_json_share(table));
    failed |= sq_json_set(group->document, "consolidated_metadata", sq_json_share(v));
    return failed ? sq_error_memory(err, 1) : write_document(folder, "zarr.json", group->document, durability, err);
}

static int consolidate(const char *folder, enum sq_durability durability, struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node group = {0};
    SQ_CLEANUP_JSON struct sq_json *table = sq_json_new_object();
    if (!table)
        return sq_error_memory(err, 1);
    SQ_TRY(sq_node_read(folder, &group, err));
    if (!group.version || group.is_array)
        return sq_error(err, group.version ? SQUALL_EINVAL : SQUALL_ENOTFOUND, "%s is no Zarr group", folder);
    SQ_TRY(sq_node_put(table, "", &group, err));
    SQ_TRY(collect_group(table, folder, "", group.version, 0, err));
    return put_table(folder, &group, table, durability, err);
}

int sq_node_consolidate(const char *folder, const struct squall_store_options *options, struct squall_error *err)
{
    int held;
    SQ_TRY(hold(folder, &held, err));
    int status = consolidate(folder, sq_store_durability(options), err);
    release(held);
    return status;
}

/* ---- changes of a node ------------------------------------------------------------------------------------------------------------ */

static int write_v2(const char *folder, const struct sq_node *node, enum sq_durability durability, struct squall_error *err)
{
    if (node->attributes)
        SQ_TRY(write_document(folder, ".zattrs", node->attributes, durability, err));
    return write_document(folder, node->is_array ? ".zarray" : ".zgroup", node->document, durability, err);
}

static int write_node(const char *folder, const struct sq_node *node, enum sq_durability durability, struct squall_error *err)
{
    return node->version == 2 ? write_v2(folder, node, durability, err)
                              : write_document(folder, "zarr.json", node->document, durability, err);
}

/* That the node has changed, or is about to be deleted. A group of v2 has its own documents in its table, too. */
static int tell_groups(const char *folder, bool gone, const struct squall_store_options *options, struct squall_error *err)
{
    const struct news news = {folder, gone, sq_store_durability(options)};
    bool is_group;
    if (options && options->leave_consolidated)
        return 0;
    if (!gone)
        SQ_TRY(change_group(folder, "", &news, &is_group, err));
    return change_groups_above(&news, err);
}

int sq_node_write(const char *folder, const struct sq_node *node, const struct squall_store_options *options, struct squall_error *err)
{
    int held;
    SQ_TRY(hold(folder, &held, err));
    int status = write_node(folder, node, sq_store_durability(options), err);
    release(held);
    return status ? status : tell_groups(folder, false, options, err);
}

static int update_node(const char *folder, sq_node_change *change, const void *user, enum sq_durability durability,
                       struct squall_error *err)
{
    SQ_CLEANUP_NODE struct sq_node node = {0};
    SQ_TRY(sq_node_read(folder, &node, err));
    if (!node.version)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: neither a Zarr array nor a group", folder);
    SQ_TRY(change(&node, user, err));
    return write_node(folder, &node, durability, err);
}

int sq_node_update(const char *folder, sq_node_change *change, const void *user, const struct squall_store_options *options,
                   struct squall_error *err)
{
    int held;
    SQ_TRY(hold(folder, &held, err));
    int status = update_node(folder, change, user, sq_store_durability(options), err);
    release(held);
    return status ? status : tell_groups(folder, false, options, err);
}

int sq_node_forget(const char *folder, const struct squall_store_options *options, struct squall_error *err)
{
    return tell_groups(folder, true, options, err);
}
