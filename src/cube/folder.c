/*
 * See folder.h. Folders are looked through from the top: files and stores beside each other are what a pattern can name. A file is told by its first
 * bytes, whatever it is called.
 */
#include "cube/folder.h"
#include "base/error_internal.h"
#include "base/memory.h"
#include "cube/file_format.h"
#include "format/zarr/zarr.h"
#include "sys/file.h"
#include <assert.h>
#include <string.h>

enum { DEPTH_MOST = 8, FOLDERS_MOST = 1000 };

/* What can be opened in one folder; names: of the first of each kind. */
struct found {
    size_t files, stores, others;
    char *file, *store; /* paths */
};

static void found_done(struct found *f)
{
    sq_free(f->file);
    sq_free(f->store);
}

/* One of a kind more; the first one's path is kept. */
static int count_one(size_t *count, char **first, const char *path, struct squall_error *err)
{
    if (++*count == 1 && !(*first = sq_strdup(path)))
        return sq_error_memory(err, strlen(path));
    return 0;
}

static int look_at(const char *path, enum sq_file_kind kind, struct found *f, struct squall_error *err)
{
    const enum sq_file_format format = kind == SQ_FILE_REGULAR ? sq_file_format_at(path) : SQ_FORMAT_OTHER;
    if (format == SQ_FORMAT_HDF5 || format == SQ_FORMAT_NETCDF3)
        return count_one(&f->files, &f->file, path, err);
    if (format == SQ_FORMAT_ZIP || (kind == SQ_FILE_FOLDER && sq_zarr_is_store(path)))
        return count_one(&f->stores, &f->store, path, err);
    f->others += kind == SQ_FILE_REGULAR;
    return 0;
}

/* Folders below that cannot be listed, and names that lead nowhere, have nothing to open. left: so many folders may still be looked at. */
static int look_in(const char *folder, unsigned depth, unsigned *left, struct found *f, struct squall_error *err)
{
    char **names = NULL;
    size_t count = 0;
    int status = 0;
    if (*left == 0 || depth > DEPTH_MOST)
        return 0;
    if (sq_folder_list(folder, &names, &count, depth == 0 ? err : NULL))
        return depth == 0 ? SQUALL_EIO : 0;
    --*left;
    for (int below = 0; below < 2 && f->files + f->stores == 0; below++)
        for (size_t i = 0; i < count && !status && (!below || f->files + f->stores == 0); i++) {
            enum sq_file_kind kind = SQ_FILE_NONE;
            SQ_CLEANUP_FREE char *path = sq_format("%s/%s", folder, names[i]);
            if (!path)
                status = sq_error_memory(err, strlen(folder));
            else if (names[i][0] != '.' && !sq_file_stat(path, &kind, NULL, NULL))
                status = !below ? look_at(path, kind, f, err) : kind == SQ_FILE_FOLDER ? look_in(path, depth + 1, left, f, err) : 0;
        }
    sq_names_free(names, count);
    return status;
}

/* What is beside the path and ends as it does: "*.nc" of "day1.nc". */
static char *pattern_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    /* path ?: in the build with sanitizers gcc takes it for one that may be NULL */
    return sq_format("%.*s*%s", (int)(name - path), path ? path : "", dot && dot > name ? dot : "");
}

static int name_them(const char *path, const struct found *f, struct squall_error *err)
{
    const bool stores = f->files == 0;
    const size_t count = stores ? f->stores : f->files;
    const char *first = stores ? f->store : f->file, *what = stores ? "Zarr store" : "HDF5 or NetCDF file";
    assert(first); /* one of the two has been found */
    SQ_CLEANUP_FREE char *pattern = pattern_of(first), *folder = sq_strndup(first, (size_t)(strrchr(first, '/') - first));
    if (!pattern || !folder)
        return sq_error_memory(err, strlen(first));
    if (count == 1)
        return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a folder, and no Zarr store itself; what can be opened is %s", path, first);
    return sq_error(err, SQUALL_EUNSUPPORTED, "%s: a folder, and no Zarr store itself; %s holds %zu %ss; a pattern opens many as one: '%s'",
                    path, strcmp(folder, path) ? folder : "it", count, what, pattern);
}

int sq_folder_refuse(const char *path, int status, struct squall_error *err)
{
    __attribute__((cleanup(found_done))) struct found f = {0};
    unsigned left = FOLDERS_MOST;
    SQ_TRY(look_in(path, 0, &left, &f, err));
    if (f.files + f.stores > 0)
        return name_them(path, &f, err);
    return f.others ? sq_error_within(err, status, "%s: a folder, and no Zarr store; no file in it can be read", path)
                    : sq_error(err, SQUALL_ENOTFOUND, "%s: a folder, and no Zarr store; there is no file in it", path);
}

int sq_holds_array_files(const char *path, bool *ret, struct squall_error *err)
{
    __attribute__((cleanup(found_done))) struct found f = {0};
    enum sq_file_kind kind;
    unsigned left = 1;
    int fd = -1;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_REGULAR) { /* one that may not be read is not one of another format */
        SQ_TRY(sq_file_open(path, &fd, NULL, err));
        sq_file_close(fd);
    }
    if (kind == SQ_FILE_FOLDER && !sq_zarr_is_store(path))
        SQ_TRY(look_in(path, 0, &left, &f, err));
    else
        SQ_TRY(look_at(path, kind, &f, err));
    *ret = f.files > 0;
    return 0;
}
