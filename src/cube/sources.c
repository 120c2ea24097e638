/*
 * See sources.h. A file is known by device and inode, so that a file named twice, or reached over two links, is read once,
 * and a link to a folder above cannot make the walk endless.
 */
#include "cube/sources.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "format/zarr/zarr.h"
#include "sys/file.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct found {
    char *path;
    struct sq_file_identity identity;
};

struct walk {
    struct found *files;
    size_t file_count, file_capacity;
    struct sq_file_identity *folders; /* that the walk is inside of */
    size_t depth, folder_capacity;
    size_t passed_over;
    struct sq_file_identity destination; /* inode 0: not there yet */
    const char *destination_path;        /* NULL: none */
};

static bool same_file(const struct sq_file_identity *a, const struct sq_file_identity *b)
{
    return a->inode != 0 && a->device == b->device && a->inode == b->inode;
}

/* Side files that archives keep beside GRIB. */
static bool is_side_file(const char *name)
{
    static const char *const ENDINGS[] = {".idx", ".index", ".json", ".txt", ".md", ".csv", ".xml"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        size_t ending = strlen(ENDINGS[i]);
        if (length > ending && strcasecmp(name + length - ending, ENDINGS[i]) == 0)
            return true;
    }
    return false;
}

static int take_file(struct walk *w, const char *path, const struct sq_file_identity *identity, struct squall_error *err)
{
    SQ_TRY(SQ_GROW(w->files, w->file_capacity, w->file_count + 1, err));
    char *copy = sq_strdup(path);
    if (!copy)
        return sq_error_memory(err, strlen(path));
    w->files[w->file_count++] = (struct found){copy, *identity};
    return 0;
}

static bool inside_already(const struct walk *w, const struct sq_file_identity *folder)
{
    for (size_t i = 0; i < w->depth; i++)
        if (same_file(&w->folders[i], folder))
            return true;
    return false;
}

static int take_folder(struct walk *w, const char *path, const struct sq_file_identity *identity, struct squall_error *err);

/* A folder that cannot be listed is taken in place of its files: who reads the list will name it, as a file that cannot be opened. */
static int take_folder_or_its_name(struct walk *w, const char *path, const struct sq_file_identity *identity, struct squall_error *err)
{
    struct squall_error why = SQUALL_ERROR_INIT;
    int status = take_folder(w, path, identity, &why);
    if (status == SQUALL_EIO)
        return take_file(w, path, identity, err);
    return status ? sq_error(err, (enum squall_status)status, "%s", why.message) : 0;
}

static int pass_over(struct walk *w)
{
    w->passed_over++;
    return 0;
}

static int take_member(struct walk *w, const char *folder, const char *name, struct squall_error *err)
{
    SQ_CLEANUP_FREE char *path = sq_path_join(folder, name);
    enum sq_file_kind kind;
    struct sq_file_identity identity = {0};
    if (!path)
        return sq_error_memory(err, strlen(folder));
    int status = sq_file_stat(path, &kind, &identity, NULL);
    if (status) /* a link to itself, a folder whose names are told but not what they are */
        return name[0] == '.' || is_side_file(name) ? pass_over(w) : take_file(w, path, &identity, err);
    bool folder_to_walk = kind == SQ_FILE_FOLDER && !same_file(&identity, &w->destination) && !inside_already(w, &identity);
    if (name[0] != '.' && folder_to_walk && !sq_zarr_is_store(path))
        return take_folder_or_its_name(w, path, &identity, err);
    if (name[0] != '.' && kind == SQ_FILE_REGULAR && !is_side_file(name))
        return take_file(w, path, &identity, err);
    return pass_over(w);
}

static int take_folder(struct walk *w, const char *path, const struct sq_file_identity *identity, struct squall_error *err)
{
    char **names;
    size_t count;
    SQ_TRY(SQ_GROW(w->folders, w->folder_capacity, w->depth + 1, err));
    SQ_TRY(sq_folder_list(path, &names, &count, err));
    w->folders[w->depth++] = *identity;
    int status = 0;
    for (size_t i = 0; i < count && !status; i++)
        status = take_member(w, path, names[i], err);
    w->depth--;
    sq_names_free(names, count);
    return status;
}

static bool lies_in(const char *path, const char *folder)
{
    SQ_CLEANUP_FREE char *inner = sq_path_absolute(path);
    SQ_CLEANUP_FREE char *outer = sq_path_absolute(folder);
    const size_t length = outer ? strlen(outer) : 0;
    return inner && outer && !strncmp(inner, outer, length) && inner[length] == '/';
}

static int take_source(struct walk *w, const char *path, struct squall_error *err)
{
    enum sq_file_kind kind;
    struct sq_file_identity identity = {0};
    SQ_TRY(sq_file_stat(path, &kind, &identity, err));
    if (kind == SQ_FILE_NONE)
        return sq_error(err, SQUALL_ENOTFOUND, "%s: no such file or folder", path);
    if (kind == SQ_FILE_OTHER)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a device or pipe, neither a file nor a folder", path);
    if (kind == SQ_FILE_REGULAR)
        return take_file(w, path, &identity, err);
    if (sq_zarr_is_store(path) && w->destination_path && lies_in(w->destination_path, path))
        return sq_error(err, SQUALL_EINVAL, "%s: the destination lies in this source", path);
    if (sq_zarr_is_store(path) && same_file(&identity, &w->destination))
        return sq_error(err, SQUALL_EINVAL, "%s: source and destination are the same store", path);
    if (sq_zarr_is_store(path))
        return take_file(w, path, &identity, err);
    size_t before = w->file_count;
    SQ_TRY(take_folder_or_its_name(w, path, &identity, err));
    return w->file_count > before ? 0 : sq_error(err, SQUALL_ENOTFOUND, "%s: there is no file to convert in this folder", path);
}

/* The same file under two names stays under the lesser one. */
static int by_identity(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->identity.device != y->identity.device)
        return x->identity.device < y->identity.device ? -1 : 1;
    if (x->identity.inode != y->identity.inode)
        return x->identity.inode < y->identity.inode ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->path, ((const struct found *)b)->path);
}

static bool is_repeated(const struct found *a, const struct found *b)
{
    return same_file(&a->identity, &b->identity) || strcmp(a->path, b->path) == 0;
}

static void drop_repeated(struct walk *w)
{
    size_t kept = 0;
    if (w->file_count == 0)
        return;
    qsort(w->files, w->file_count, sizeof *w->files, by_identity);
    for (size_t i = 0; i < w->file_count; i++) {
        if (kept > 0 && is_repeated(&w->files[kept - 1], &w->files[i]))
            sq_free(w->files[i].path);
        else
            w->files[kept++] = w->files[i];
    }
    w->file_count = kept;
    qsort(w->files, w->file_count, sizeof *w->files, by_path);
}

static void walk_done(struct walk *w)
{
    for (size_t i = 0; i < w->file_count; i++)
        sq_free(w->files[i].path);
    sq_free(w->files);
    sq_free(w->folders);
}

int sq_source_list_make(const char *const *sources, size_t source_count, const char *destination, struct sq_source_list *ret,
                        struct squall_error *err)
{
    __attribute__((cleanup(walk_done))) struct walk w = {.destination_path = destination};
    enum sq_file_kind kind;
    if (destination)
        SQ_TRY(sq_file_stat(destination, &kind, &w.destination, err));
    for (size_t i = 0; i < source_count; i++)
        SQ_TRY(take_source(&w, sources[i], err));
    drop_repeated(&w);
    char **paths = sq_alloc(w.file_count + 1, sizeof *paths);
    if (!paths)
        return sq_error_memory(err, w.file_count * sizeof *paths);
    for (size_t i = 0; i < w.file_count; i++)
        paths[i] = w.files[i].path;
    *ret = (struct sq_source_list){.paths = paths, .count = w.file_count, .passed_over = w.passed_over};
    w.file_count = 0; /* the paths are the list's now */
    return 0;
}

void sq_source_list_done(struct sq_source_list *list)
{
    sq_names_free(list->paths, list->count);
    *list = (struct sq_source_list){0};
}
