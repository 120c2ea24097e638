/* Opening a path, whatever is there: find out which format it is and hand over to the floor that knows it. */
#include "base/error_internal.h"
#include "base/memory.h"
#include "base/text.h"
#include "cube/file_format.h"
#include "cube/folder.h"
#include "cube/grib_dataset.h"
#include "cube/many.h"
#include "cube/path_list.h"
#include "cube/sources.h"
#include "engine/hdf5_array.h"
#include "engine/netcdf3_array.h"
#include "engine/zarr_array.h"
#include "format/zarr/zarr.h"
#include "squall/many.h"
#include "sys/file.h"
#include <string.h>

/* The first bytes of a file as a person can read them: "<!DOCTYP", "\x89HDF". */
static void describe_beginning(const uint8_t *bytes, size_t count, struct sq_text *out)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] >= ' ' && bytes[i] < 0x7f)
            sq_text_printf(out, "%c", bytes[i]);
        else
            sq_text_printf(out, "\\x%02x", bytes[i]);
}

/* No field was found in the file, for the reason in err. Where nothing in it looks like GRIB, that it is something else says more. */
static int no_field(const char *path, struct squall_error *err)
{
    enum { LOOKED_AT_BYTES = 4096, SHOWN_BYTES = 8 };
    uint8_t bytes[LOOKED_AT_BYTES];
    struct sq_file_identity id = {0};
    int fd = -1;
    SQ_TRY(sq_file_open(path, &fd, &id, err));
    size_t count = id.size_bytes < LOOKED_AT_BYTES ? (size_t)id.size_bytes : LOOKED_AT_BYTES;
    int status = sq_file_read_at(fd, path, 0, bytes, count, err);
    sq_file_close(fd);
    if (status)
        return status;
    if (count == 0 || memmem(bytes, count, "GRIB", 4))
        return SQUALL_ENOTFOUND;
    SQ_CLEANUP_TEXT struct sq_text beginning = SQ_TEXT_INIT;
    describe_beginning(bytes, count < SHOWN_BYTES ? count : SHOWN_BYTES, &beginning);
    return sq_error(err, SQUALL_EUNSUPPORTED, "%s: neither a Zarr store nor an HDF5, NetCDF-3 or GRIB file; it begins with \"%s\"", path,
                    sq_text_string(&beginning));
}

static int open_folder(const struct squall_context *ctx, const char *path, squall_dataset **ret, struct squall_error *err)
{
    struct sq_source_list list;
    int status = sq_source_list_make(&path, 1, NULL, &list, err);
    if (!status) {
        status = sq_grib_dataset_open(ctx, path, (const char *const *)list.paths, list.count, ret, err);
        sq_source_list_done(&list);
    }
    return status == SQUALL_ENOTFOUND ? sq_folder_refuse(path, status, err) : status;
}

/* Arrays within a file are no paths. */
static int no_such_path(const char *path, struct squall_error *err)
{
    for (const char *slash = strrchr(path, '/'); slash && slash > path; slash = memrchr(path, '/', (size_t)(slash - path))) {
        enum sq_file_kind kind = SQ_FILE_NONE;
        SQ_CLEANUP_FREE char *head = sq_strndup(path, (size_t)(slash - path));
        if (!head)
            return sq_error_memory(err, strlen(path));
        if (!sq_file_stat(head, &kind, NULL, NULL) && kind == SQ_FILE_REGULAR)
            return sq_error(err, SQUALL_ENOTFOUND, "%s: %s is a file, not a folder; an array in it is named apart from it: %s %s", path,
                            head, head, slash + 1);
    }
    return sq_error(err, SQUALL_ENOTFOUND, "%s: no such file or folder", path);
}

bool sq_holds_arrays(const char *path)
{
    enum sq_file_kind kind;
    if (sq_file_stat(path, &kind, NULL, NULL))
        return false;
    return kind == SQ_FILE_FOLDER ? sq_zarr_is_store(path) : sq_file_format_at(path) != SQ_FORMAT_OTHER;
}

/* One opening of the file tells its format and serves it. */
static int open_file(const struct squall_context *ctx, const char *path, squall_dataset **ret, struct squall_error *err)
{
    struct sq_source *source;
    SQ_TRY(sq_source_open_file(path, &source, err));
    const enum sq_file_format format = sq_file_format_of(source);
    if (format == SQ_FORMAT_HDF5)
        return sq_hdf5_dataset_open(ctx, source, ret, err);
    if (format == SQ_FORMAT_NETCDF3)
        return sq_netcdf3_dataset_open(ctx, source, ret, err);
    sq_source_close(source);
    if (format == SQ_FORMAT_ZIP)
        return sq_zarr_dataset_open(ctx, path, ret, err);
    int status = sq_grib_dataset_open(ctx, path, &path, 1, ret, err);
    return status == SQUALL_ENOTFOUND ? no_field(path, err) : status;
}

int sq_open_path(const struct squall_context *ctx, const char *path, squall_dataset **ret, struct squall_error *err)
{
    enum sq_file_kind kind;
    SQ_TRY(sq_file_stat(path, &kind, NULL, err));
    if (kind == SQ_FILE_NONE)
        return no_such_path(path, err);
    if (kind == SQ_FILE_FOLDER)
        return sq_zarr_is_store(path) ? sq_zarr_dataset_open(ctx, path, ret, err) : open_folder(ctx, path, ret, err);
    return open_file(ctx, path, ret, err);
}

int squall_dataset_open(squall_context *ctx, const char *path, squall_dataset **ret, struct squall_error *err)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    SQ_CLEANUP_FREE char *trimmed = sq_strndup(path, length);
    const char *only = trimmed;
    bool is_pattern;
    if (!trimmed)
        return sq_error_memory(err, length);
    SQ_TRY(sq_is_pattern(trimmed, &is_pattern, err));
    return is_pattern ? squall_dataset_open_many(ctx, &only, 1, NULL, ret, err) : sq_open_path(ctx, trimmed, ret, err);
}
