/* See tree.h. A folder is asked by the system's calls, a zip file's directory is in memory; each question has an answer for both. */
#include "io/tree.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 64 };

struct sq_tree {
    char *path;
    struct sq_source *source; /* of the zip file; NULL: a folder */
    struct sq_zip *zip;
};

static int open_tree(struct sq_tree *t, const char *path, struct squall_error *err)
{
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (!(t->path = sq_strdup(path)))
        return sq_error_memory(err, strlen(path));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: no such file or folder", path);
    if (kind == SQ_FILE_FOLDER)
        return 0;
    if (kind == SQ_FILE_REGULAR)
        SQ_TRY(sq_source_open_file(path, &t->source, err));
    if (!t->source || !sq_zip_is_zip(t->source))
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: neither a folder nor a zip file", path);
    return sq_zip_open(t->source, &t->zip, err);
}

int sq_tree_open(const char *path, struct sq_tree **ret, struct squall_error *err)
{
    struct sq_tree *t = sq_alloc_zero(1, sizeof *t);
    int status = t ? open_tree(t, path, err) : sq_error_memory(err, sizeof *t);
    if (status)
        sq_tree_close(t);
    else
        *ret = t;
    return status;
}

int sq_tree_open_folder(const char *path, struct sq_tree **ret, struct squall_error *err)
{
    struct sq_tree *t = sq_alloc_zero(1, sizeof *t);
    if (!t || !(t->path = sq_strdup(path))) {
        sq_free(t);
        return sq_error_memory(err, strlen(path));
    }
    *ret = t;
    return 0;
}

void sq_tree_close(struct sq_tree *t)
{
    if (!t)
        return;
    sq_zip_close(t->zip);
    sq_source_close(t->source);
    sq_free(t->path);
    sq_free(t);
}

/* a, b and c: between after a, "/" after b, where something is on both sides of it */
static char *join(const char *a, const char *between, const char *b, const char *c)
{
    const char *const parts[] = {a, *b || *c ? between : "", b, *b && *c ? "/" : "", c};
    size_t length = 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        length += strlen(parts[i]);
    char *text = sq_alloc(length, 1), *to = text;
    for (size_t i = 0; to && i < sizeof parts / sizeof *parts; i++)
        to = mempcpy(to, parts[i], strlen(parts[i]));
    if (to)
        *to = 0;
    return text;
}

static char *place_name(const struct sq_tree *t, const char *folder, const char *key)
{
    const size_t length = strlen(t->path);
    const char *slash = length > 0 && t->path[length - 1] == '/' ? "" : "/";
    return join(t->path, t->zip ? ": " : slash, folder, key);
}

char *sq_tree_name(const struct sq_tree *t, const char *key)
{
    return place_name(t, "", key);
}

bool sq_tree_key_stays_inside(const char *key)
{
    for (const char *part = key;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

const char *const *sq_tree_problems(const struct sq_tree *t, size_t *ret_count)
{
    *ret_count = 0;
    return t->zip ? sq_zip_problems(t->zip, ret_count) : NULL;
}

int sq_tree_exists(const struct sq_tree *t, const char *key, bool *ret, struct squall_error *err)
{
    size_t member;
    if (t->zip) {
        *ret = sq_zip_find(t->zip, key, &member);
        return 0;
    }
    SQ_CLEANUP_FREE char *path = sq_tree_name(t, key);
    return path ? sq_file_exists(path, ret, err) : sq_error_memory(err, strlen(key));
}

/* ---- whole objects ------------------------------------------------------------------------------------------------------------------ */

static int unpack(const struct sq_tree *t, const struct sq_zip_place *place, void *dst, struct squall_error *err)
{
    if (!place->deflated) {
        SQ_TRY(sq_source_read(t->source, place->offset, dst, (size_t)place->size_bytes, err));
        return sq_zip_check(place, dst, err);
    }
    SQ_CLEANUP_FREE void *stored = sq_alloc(place->stored_bytes + 1, 1);
    if (!stored)
        return sq_error_memory(err, place->stored_bytes);
    SQ_TRY(sq_source_read(t->source, place->offset, stored, (size_t)place->stored_bytes, err));
    return sq_zip_inflate(place, stored, dst, err);
}

static int read_member(const struct sq_tree *t, size_t member, const char *name, size_t limit_bytes, char **ret, size_t *ret_size,
                       struct squall_error *err)
{
    struct sq_zip_place place;
    SQ_TRY(sq_zip_locate(t->zip, member, &place, err));
    if (place.size_bytes > limit_bytes)
        return sq_error(err, SQUALL_ECORRUPT, "%s: %llu bytes, more than the %zu that can be", name, (unsigned long long)place.size_bytes,
                        limit_bytes);
    const size_t size = (size_t)place.size_bytes;
    char *bytes = sq_alloc(size + 1, 1);
    if (!bytes)
        return sq_error_memory(err, size + 1);
    int status = unpack(t, &place, bytes, err);
    if (status) {
        sq_free(bytes);
        return sq_error_within(err, status, "%s", name);
    }
    bytes[size] = 0;
    *ret = bytes;
    *ret_size = size;
    return 0;
}

int sq_tree_read_all(const struct sq_tree *t, const char *key, size_t limit_bytes, char **ret, size_t *ret_size, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *name = sq_tree_name(t, key);
    bool exists;
    size_t member;
    if (!name)
        return sq_error_memory(err, strlen(key));
    if (t->zip)
        exists = sq_zip_find(t->zip, key, &member);
    else
        SQ_TRY(sq_file_exists(name, &exists, err));
    if (!exists) {
        *ret = NULL;
        return 0;
    }
    return t->zip ? read_member(t, member, name, limit_bytes, ret, ret_size, err) : sq_file_read_all(name, limit_bytes, ret, ret_size, err);
}

/* ---- what is below a key ------------------------------------------------------------------------------------------------------------ */

/* The members below a key: from *ret_first on, as long as their names begin with it and a slash, *ret_length bytes. */
static int members_below(const struct sq_tree *t, const char *key, char **ret_prefix, size_t *ret_length, size_t *ret_first,
                         struct squall_error *err)
{
    char *prefix = sq_format("%s%s", key, *key ? "/" : "");
    if (!prefix)
        return sq_error_memory(err, strlen(key));
    *ret_prefix = prefix;
    *ret_length = strlen(prefix);
    *ret_first = sq_zip_lower_bound(t->zip, prefix, *ret_length);
    return 0;
}

/* The rest of the member's name behind the prefix; NULL where it does not begin with that. */
static const char *name_below(const struct sq_tree *t, size_t member, const char *prefix, size_t length, size_t *ret_rest)
{
    size_t name_length;
    if (member >= sq_zip_count(t->zip))
        return NULL;
    const char *name = sq_zip_name(t->zip, member, &name_length);
    if (name_length <= length || memcmp(name, prefix, length) != 0)
        return NULL;
    *ret_rest = name_length - length;
    return name + length;
}

int sq_tree_is_folder(const struct sq_tree *t, const char *key, bool *ret, struct sq_file_identity *ret_identity, struct squall_error *err)
{
    if (t->zip) {
        SQ_CLEANUP_FREE char *prefix = NULL;
        size_t length = 0, first = 0, rest;
        SQ_TRY(members_below(t, key, &prefix, &length, &first, err));
        *ret = name_below(t, first, prefix, length, &rest) != NULL;
        /* there are no links: as many folders as pairs of a first member and a length */
        *ret_identity = (struct sq_file_identity){.device = length, .inode = first};
        return 0;
    }
    enum sq_file_kind kind;
    SQ_CLEANUP_FREE char *path = sq_tree_name(t, key);
    if (!path)
        return sq_error_memory(err, strlen(key));
    SQ_TRY(sq_file_stat(path, &kind, ret_identity, err));
    *ret = kind == SQ_FILE_FOLDER;
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is twice among sorted names, "t2m" and "t2m/…", once. */
static size_t drop_repeated(char **names, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept > 0 && !strcmp(names[kept - 1], names[i]))
            sq_free(names[i]);
        else
            names[kept++] = names[i];
    return kept;
}

/* The first member behind those that lie in the folder which `member` lies in: "a/b/…" ends where "a/b0" would be, as '0' follows '/'. */
static int behind_folder(const struct sq_tree *t, const char *prefix, const char *child, size_t *member, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *bound = sq_format("%s%s0", prefix, child);
    if (!bound)
        return sq_error_memory(err, strlen(prefix));
    *member = sq_zip_lower_bound(t->zip, bound, strlen(bound));
    return 0;
}

static int list_members(const struct sq_tree *t, const char *key, char ***names, size_t *count, size_t *capacity, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *prefix = NULL;
    const char *rest;
    size_t length = 0, member = 0, rest_length;
    SQ_TRY(members_below(t, key, &prefix, &length, &member, err));
    while ((rest = name_below(t, member, prefix, length, &rest_length))) {
        const char *slash = memchr(rest, '/', rest_length);
        if (!sq_zip_name_is_path(t->zip, member)) {
            member++;
            continue;
        }
        char *child = sq_strndup(rest, slash ? (size_t)(slash - rest) : rest_length);
        int status = child ? SQ_GROW(*names, *capacity, *count + 1, err) : sq_error_memory(err, rest_length);
        if (status) {
            sq_free(child);
            return status;
        }
        (*names)[(*count)++] = child;
        if (slash)
            SQ_TRY(behind_folder(t, prefix, child, &member, err));
        else
            member++;
    }
    return 0;
}

int sq_tree_list(const struct sq_tree *t, const char *key, char ***ret_names, size_t *ret_count, struct squall_error *err)
{
    if (!t->zip) {
        SQ_CLEANUP_FREE char *path = sq_tree_name(t, key);
        return path ? sq_folder_list(path, ret_names, ret_count, err) : sq_error_memory(err, strlen(key));
    }
    char **names = NULL;
    size_t count = 0, capacity = 0;
    int status = list_members(t, key, &names, &count, &capacity, err);
    if (status) {
        sq_names_free(names, count);
        return status;
    }
    if (count > 0)
        qsort(names, count, sizeof *names, by_bytes);
    *ret_names = names;
    *ret_count = drop_repeated(names, count);
    return 0;
}

/* ---- sizes -------------------------------------------------------------------------------------------------------------------------- */

static int add_file_sizes(const char *path, const char *except, unsigned depth, uint64_t *total, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(sq_folder_list(path, &names, &count, err));
    int status = 0;
    for (size_t i = 0; i < count && !status; i++) {
        enum sq_file_kind kind;
        struct sq_file_identity id = {0};
        if (names[i][0] == '.' || (depth == 0 && !strcmp(names[i], except)))
            continue;
        SQ_CLEANUP_FREE char *child = sq_path_join(path, names[i]);
        status = child ? sq_file_stat(child, &kind, &id, err) : sq_error_memory(err, strlen(path));
        if (!status && kind == SQ_FILE_REGULAR)
            *total += id.size_bytes;
        else if (!status && kind == SQ_FILE_FOLDER && depth < DEPTH_LIMIT && (depth == 0 || sq_folder_is_real(child)))
            status = add_file_sizes(child, except, depth + 1, total, err);
    }
    sq_names_free(names, count);
    return status;
}

static bool is_hidden(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] == '.' && (i == 0 || name[i - 1] == '/'))
            return true;
    return false;
}

static int add_member_sizes(const struct sq_tree *t, const char *key, const char *except, uint64_t *total, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *prefix = NULL;
    const char *rest;
    size_t length = 0, member = 0, rest_length;
    SQ_TRY(members_below(t, key, &prefix, &length, &member, err));
    for (; (rest = name_below(t, member, prefix, length, &rest_length)); member++)
        if (!is_hidden(rest, rest_length) && (rest_length != strlen(except) || memcmp(rest, except, rest_length) != 0))
            *total += sq_zip_stored_bytes(t->zip, member);
    return 0;
}

int sq_tree_stored_bytes(const struct sq_tree *t, const char *key, const char *except, uint64_t *ret, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_tree_name(t, key);
    uint64_t total = 0;
    if (!path)
        return sq_error_memory(err, strlen(key));
    SQ_TRY(t->zip ? add_member_sizes(t, key, except, &total, err) : add_file_sizes(path, except, 0, &total, err));
    *ret = total;
    return 0;
}

/* ---- places ------------------------------------------------------------------------------------------------------------------------- */

static int locate_member(const struct sq_tree *t, const char *folder, const char *key, struct sq_tree_place *p, struct squall_error *err)
{
    size_t member;
    SQ_CLEANUP_FREE char *name = join(folder, *folder ? "/" : "", key, "");
    if (!name)
        return sq_error_memory(err, strlen(key));
    p->source = t->source;
    p->absent = !sq_zip_find(t->zip, name, &member);
    return p->absent ? 0 : sq_zip_locate(t->zip, member, &p->place, err);
}

int sq_tree_locate(const struct sq_tree *t, const char *folder, const char *key, struct sq_tree_place *ret, struct squall_error *err)
{
    struct sq_tree_place p = {.name = place_name(t, folder, key)};
    if (!p.name)
        return sq_error_memory(err, strlen(key));
    int status = t->zip ? locate_member(t, folder, key, &p, err) : 0;
    if (status)
        sq_free(p.name);
    else
        *ret = p;
    return status;
}
