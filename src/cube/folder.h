/* Folders that are no dataset by themselves: what lies in them, and how to open that. */
#ifndef SQ_CUBE_FOLDER_H
#define SQ_CUBE_FOLDER_H

#include "squall/error.h"
#include <stdbool.h>

/*
 * The error of a folder that is no store and has no GRIB message: names the HDF5 and NetCDF files or Zarr stores in it, or in the first folder below
 * that has some, and the pattern that opens them as one. Where there are none it is what was found out already, status and *err.
 */
int sq_folder_refuse(const char *path, int status, struct squall_error *err) SQUALL_CHECK;

/* Is the path an HDF5 or NetCDF file, or a folder, but no Zarr store, that has one in it? */
int sq_holds_array_files(const char *path, bool *ret, struct squall_error *err) SQUALL_CHECK;

#endif
