/* In which of the formats that hold arrays a file is, by its first bytes. GRIB, which may begin anywhere in a file, is none of them. */
#ifndef SQ_CUBE_FILE_FORMAT_H
#define SQ_CUBE_FILE_FORMAT_H

#include "io/source.h"

enum sq_file_format { SQ_FORMAT_OTHER, SQ_FORMAT_ZIP, SQ_FORMAT_HDF5, SQ_FORMAT_NETCDF3 };

enum sq_file_format sq_file_format_of(struct sq_source *source);
/* SQ_FORMAT_OTHER also where the file cannot be read. */
enum sq_file_format sq_file_format_at(const char *path);

#endif
