/* squall ls: a row per GRIB field or per array of what the paths hold. */
#include "ls_internal.h"
#include "open.h"
#include "output.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A store's chunks are looked at one by one: of very many only where -p or -w asks. */
static bool is_worth_counting(const struct listing *l, const squall_dataset *ds, const struct squall_array_info *info)
{
    enum { CHUNKS_MOST = 50000 };
    uint64_t chunks = 1;
    for (unsigned d = 0; d < info->rank; d++) {
        const uint64_t length = info->shards ? info->shards[d] : info->chunks[d];
        chunks *= length ? (info->shape[d] + length - 1) / length : 1;
        if (chunks > CHUNKS_MOST)
            break;
    }
    return l->arguments->print_keys || l->arguments->where.count || chunks <= CHUNKS_MOST ||
           strncmp(squall_dataset_info(ds).format, "zarr", 4) != 0;
}

static int list_arrays(struct listing *l, squall_dataset *ds, const char *path)
{
    size_t count = squall_dataset_info(ds).array_count;
    const bool with_stored = ls_is_asked(l, "stored") || ls_is_asked(l, "ratio");
    int code = EXIT_DONE;
    for (size_t i = 0; code != EXIT_FAILED && i < count; i++) {
        struct squall_error err = SQUALL_ERROR_INIT;
        const squall_array *array = squall_dataset_array_at(ds, i);
        struct squall_array_info info = squall_array_info(array);
        struct row row = {.array = &info, .path = path, .number = i + 1};
        if (with_stored && !info.unsupported && is_worth_counting(l, ds, &info)) {
            row.stored_is_known = !squall_array_stored_bytes(array, &row.stored_bytes, &err);
            if (!row.stored_is_known)
                warn_line("%s", err.message);
            code = row.stored_is_known ? code : EXIT_INPUTS;
        }
        code = ls_add_row(l, &row) ? code : EXIT_FAILED;
    }
    return code;
}

/* Does the file begin as zip files or NetCDF-3 files do, or HDF5 files (also behind 512, 1024, … bytes of a user's)? */
static bool begins_as_arrays(FILE *file, off_t size_bytes)
{
    static const char BEGINNINGS[][5] = {"PK\3\4", "CDF\1", "CDF\2", "CDF\5"};
    enum { SIGNATURE_BYTES = 8, FIRST_BLOCK_BYTES = 512 };
    char bytes[SIGNATURE_BYTES];
    for (off_t at = 0; at < size_bytes; at = at ? 2 * at : FIRST_BLOCK_BYTES) {
        if (fseeko(file, at, SEEK_SET) || fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
            return false;
        if (!memcmp(bytes, "\x89HDF\r\n\x1a\n", SIGNATURE_BYTES))
            return true;
        for (size_t i = 0; at == 0 && i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++)
            if (!memcmp(bytes, BEGINNINGS[i], 4))
                return true;
    }
    return false;
}

/* What is in it, the library finds out. */
static bool is_file_of_arrays(const char *path)
{
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    const bool known = file && begins_as_arrays(file, s.st_size);
    if (file)
        fclose(file);
    return known;
}

/* Is this path a dataset of arrays, a Zarr store, an HDF5 or a NetCDF file? Then the rows are arrays. */
static bool holds_arrays(const char *path)
{
    char probe[4096];
    static const char *const MARKS[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
        snprintf(probe, sizeof probe, "%s/%s", path, MARKS[i]);
        if (access(probe, F_OK) == 0)
            return true;
    }
    return is_file_of_arrays(path);
}

/* Folders are not walked: which of their files count is convert's business. */
static bool holds_fields(const char *path)
{
    struct stat s;
    const bool arrays = holds_arrays(path);
    if (!arrays && (stat(path, &s) || !S_ISDIR(s.st_mode)))
        return true;
    warn_line(arrays ? "%s: arrays, which are listed apart from GRIB fields" : "%s: a folder; name the files in it, such as %s/*", path,
              path);
    return false;
}

/* Where no path has any field: what there is of this one is no question of GRIB alone. false: nothing more is known. */
static bool tell_why(squall_context *ctx, const char *path)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds = NULL;
    const int status = squall_dataset_open(ctx, path, &ds, &err);
    squall_dataset_close(ds);
    if (status)
        complain("squall: %s", err.message);
    return status != 0;
}

static int list_paths(struct listing *l, squall_context *ctx, const char *const *paths, size_t path_count)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_grib_list *list;
    if (squall_grib_list_open(ctx, paths, path_count, &list, &err))
        return fail_with(&err);
    const char *path = NULL;
    bool whole = true;
    size_t number = 0, count = squall_grib_list_count(list), problems = squall_grib_list_problem_count(list);
    for (size_t i = 0; whole && i < count && !interrupted(); i++) {
        struct squall_grib_field field = squall_grib_list_field(list, i);
        number = field.path == path ? number + 1 : 1;
        path = field.path;
        whole = ls_add_row(l, &(struct row){.field = &field, .path = path, .number = number});
    }
    ls_end_rows(l);
    for (size_t i = 0; i < problems; i++) {
        struct squall_grib_problem p = squall_grib_list_problem(list, i);
        if (count > 0 || !tell_why(ctx, p.path))
            warn_line("%s: %s", p.path, p.message);
    }
    squall_grib_list_close(list);
    if (interrupted())
        return EXIT_SIGNAL + interrupted();
    return !whole ? EXIT_FAILED : !problems ? EXIT_DONE : count ? EXIT_INPUTS : EXIT_FAILED;
}

static int list_fields(struct listing *l, squall_context *ctx)
{
    const char **files = malloc(l->paths.count * sizeof *files);
    size_t count = 0;
    for (size_t i = 0; files && i < l->paths.count; i++)
        if (holds_fields(l->paths.items[i]))
            files[count++] = l->paths.items[i];
    int code = count ? list_paths(l, ctx, files, count) : EXIT_FAILED;
    free(files);
    return code == EXIT_DONE && count < l->paths.count ? EXIT_INPUTS : code;
}

/* What one path leads to, or all of them as one dataset. One of several that cannot be opened costs only itself. */
static int list_dataset(struct listing *l, squall_context *ctx, const char *const *paths, size_t count)
{
    struct squall_error err = SQUALL_ERROR_INIT;
    squall_dataset *ds;
    if (dataset_open(ctx, l->arguments, paths, count, &ds, &err)) {
        if (l->paths.count == count || err.status == SQUALL_ECANCELLED)
            return fail_with(&err);
        warn_line("%s", err.message);
        return EXIT_INPUTS;
    }
    int code = list_arrays(l, ds, paths[0]);
    const size_t problems = squall_dataset_info(ds).problem_count;
    for (size_t i = 0; i < problems; i++)
        warn_line("%s", squall_dataset_problem(ds, i));
    squall_dataset_close(ds);
    return code == EXIT_DONE && problems ? EXIT_INPUTS : code;
}

static int list_datasets(struct listing *l, squall_context *ctx)
{
    int code = EXIT_DONE;
    const size_t at_once = joins_files(l->arguments) ? l->paths.count : 1;
    for (size_t i = 0; i < l->paths.count && (code == EXIT_DONE || code == EXIT_INPUTS) && !interrupted(); i += at_once) {
        const int found = list_dataset(l, ctx, l->paths.items + i, at_once);
        code = found == EXIT_DONE ? code : found;
    }
    ls_end_rows(l);
    return interrupted() ? EXIT_SIGNAL + interrupted() : code;
}

/* GRIB may begin behind a bulletin's header. */
static bool looks_like_grib(const char *path)
{
    enum { LOOKED_AT_BYTES = 4096 };
    char bytes[LOOKED_AT_BYTES];
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    return memmem(bytes, count, "GRIB", 4) != NULL;
}

/* Rows are of one kind: fields where some path has them, else arrays where some path has those. */
static bool rows_are_arrays(const struct text_list *paths)
{
    bool arrays = false;
    for (size_t i = 0; i < paths->count; i++) {
        const bool has_arrays = holds_arrays(paths->items[i]);
        if (!has_arrays && looks_like_grib(paths->items[i]))
            return false;
        arrays = arrays || has_arrays;
    }
    return arrays;
}

static bool add_path(struct text_list *list, const char *path)
{
    const char **grown = realloc(list->items, (list->count + 1) * sizeof *grown);
    if (!grown)
        return complain("squall: out of memory");
    list->items = grown;
    list->items[list->count++] = path;
    return true;
}

/* matches has what patterns are expanded to: globfree. */
static bool expand(const char *pattern, struct text_list *ret, glob_t *matches)
{
    const size_t before = matches->gl_pathc;
    if (glob(pattern, GLOB_NOCHECK | (before ? GLOB_APPEND : 0), NULL, matches))
        return complain("squall ls: %s: cannot be expanded", pattern);
    for (size_t i = before; i < matches->gl_pathc; i++)
        if (!add_path(ret, matches->gl_pathv[i]))
            return false;
    return true;
}

/* A file may be called like a pattern; a pattern that matches nothing stays as it is: that there is no such file is told then. */
static bool find_paths(const struct text_list *given, struct text_list *ret, glob_t *matches)
{
    for (size_t i = 0; i < given->count; i++) {
        const bool is_pattern = strpbrk(given->items[i], "*?[") && access(given->items[i], F_OK) != 0;
        if (!(is_pattern ? expand(given->items[i], ret, matches) : add_path(ret, given->items[i])))
            return false;
    }
    return true;
}

int run_ls(const struct arguments *a)
{
    squall_context *ctx = context_new(a);
    if (!ctx)
        return EXIT_FAILED;
    static char buffer[1 << 16];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    struct listing l = {.arguments = a};
    glob_t matches = {0};
    int code = find_paths(&a->positional, &l.paths, &matches) ? EXIT_USAGE : EXIT_FAILED;
    const bool arrays = code == EXIT_USAGE && rows_are_arrays(&l.paths);
    l.known = arrays ? &ls_array_columns : &ls_field_columns;
    struct squall_error err = SQUALL_ERROR_INIT;
    if (code == EXIT_USAGE && !arrays && l.paths.count > 0 && joins_files(a) && looks_like_grib(l.paths.items[0])) {
        refuse_joining(a, l.paths.items[0], &err);
        code = fail_with(&err);
    } else if (code == EXIT_USAGE && ls_choose_columns(&l))
        code = arrays ? list_datasets(&l, ctx) : list_fields(&l, ctx);
    if (a->json && code != EXIT_USAGE && code != EXIT_FAILED)
        fputs(l.rows ? "\n]\n" : "[]\n", stdout);
    free(l.paths.items);
    globfree(&matches);
    squall_context_free(ctx);
    return code;
}
