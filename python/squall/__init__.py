"""squall: gridded weather and climate data, moved between files and memory at the speed of the machine.

    ds = squall.open("forecasts.zarr")      # a Zarr store, an HDF5, NetCDF or GRIB file, a folder of GRIB files: a tree of arrays, groups
    t2m = ds["t2m"]                         # an array: nothing is read yet
    t2m[0, ::2, 100:200]                    # numpy, read by all threads
    a = squall.open_array("cube.zarr")      # a store that is one array
    a = squall.open_array("cube.zarr", mode="r+"); a[0] = 1         # a chunk is published whole, or not at all
    squall.convert("archive", "forecasts.zarr")                     # GRIB, HDF5, NetCDF → Zarr, with threads, resumable
    squall.create_array("new.zarr", "t2m", data=values, dims=("y", "x"), chunks=(100, 100))

Whatever goes wrong with a file is a squall.Error, an OSError with .status and .path; keys that make no sense are IndexError and
TypeError, names that are not there KeyError and FileNotFoundError.
"""

from squall._array import Array
from squall._attributes import Attributes
from squall._convert import convert, status, verify
from squall._create import consolidate_metadata, create_array, create_group
from squall._create_many import ManyFiles, ManyVariable, create_many
from squall._errors import Error, Status
from squall._group import Group, open, open_array
from squall._many import open_many
from squall._progress import Progress
from squall._report import Report
from squall._settings import handles, set_options, show_versions
from squall._squall import version as _version
from squall._store import store

__version__ = _version()
__all__ = [
    "Array",
    "Attributes",
    "Error",
    "Group",
    "ManyFiles",
    "ManyVariable",
    "Progress",
    "Report",
    "Status",
    "consolidate_metadata",
    "convert",
    "create_array",
    "create_group",
    "create_many",
    "handles",
    "open",
    "open_array",
    "open_many",
    "set_options",
    "show_versions",
    "status",
    "store",
    "verify",
]
