#include "cube/file_format.h"
#include "format/hdf5/file.h"
#include "format/netcdf3/netcdf3.h"
#include "io/zip.h"

enum sq_file_format sq_file_format_of(struct sq_source *source)
{
    if (sq_zip_is_zip(source))
        return SQ_FORMAT_ZIP;
    if (sq_hdf5_is_file(source))
        return SQ_FORMAT_HDF5;
    return sq_netcdf3_is_file(source) ? SQ_FORMAT_NETCDF3 : SQ_FORMAT_OTHER;
}

enum sq_file_format sq_file_format_at(const char *path)
{
    struct sq_source *source;
    if (sq_source_open_file(path, &source, NULL))
        return SQ_FORMAT_OTHER;
    const enum sq_file_format found = sq_file_format_of(source);
    sq_source_close(source);
    return found;
}
