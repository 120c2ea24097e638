"""A conversion of NetCDF files that dies, or is failed by the system, at every call that changes the file system; and then goes on.

What test_convert_faults.py asks of GRIB, where chunks of the append dimension are longer than one time and the last is cut.
"""

import pytest
import small_files as small
from test_convert_faults import Sweep, at_faults, at_shortages, every

# three times a chunk and four a file: units cross files, and the last unit is not full
OPTIONS = ["--chunks", "time=3,lat=4", "--threads", "2", "--select", "name=t|series"]


@pytest.fixture(params=["new", "more files", "overwrite"])
def sweep(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    paths = small.make(source, 2)
    pattern = source / "*.nc"
    if request.param == "new":
        return Sweep(support, None, pattern, store, OPTIONS)
    squall("convert", pattern, before, *OPTIONS)
    if request.param == "overwrite":
        return Sweep(support, before, pattern, store, [*OPTIONS, "--overwrite", "--dtype", "t=float64"])
    small.write(paths[0], 0, seed=5)  # changed: its units are done again
    small.write(source / "day02.nc", 2)
    return Sweep(support, before, pattern, store, OPTIONS)


@every
def test_killed_at_every_call(sweep, stride):
    sweep.kill_at_every_call(stride)


@every
@at_faults
def test_failed_at_every_call(sweep, stride, fault, words):
    sweep.fail_every_call(stride, fault, words)


sparsely = pytest.mark.parametrize("stride", [89, pytest.param(3, marks=pytest.mark.long)])


@sparsely
@at_shortages
def test_out_of_descriptors_or_memory_at_every_call(sweep, stride, fault, words):
    sweep.fail_every_call(stride, fault, words)


@pytest.fixture(params=["netcdf4", "netcdf3", "zarr"])
def reading(request, squall, support, tmp_path):
    """Of each format a new store: what is read differs."""
    source, store = tmp_path / "in", tmp_path / "s" / "out.zarr"
    paths = small.make(source, 2, format="NETCDF3_CLASSIC" if request.param == "netcdf3" else "NETCDF4")
    if request.param != "zarr":
        return Sweep(support, None, source / "*.nc", store, OPTIONS)
    for path in paths:
        squall("convert", path, path.with_suffix(".zarr"), "--chunks", "time=2,lat=3")
    return Sweep(support, None, source / "*.zarr", store, OPTIONS)


@sparsely
@pytest.mark.parametrize("action", ["EINTR", "short"])
@pytest.mark.parametrize("environment", [{}, {"SQUALL_FAULT_READS": "1"}], ids=["writes", "reads"])
def test_interrupted_and_short_calls_go_on(reading, stride, action, environment):
    reading.is_not_disturbed(stride, action, **environment)


@sparsely
@pytest.mark.parametrize("fault", ["EIO", "EMFILE", "ENOMEM", "EACCES"])
def test_reading_fails_at_every_call(reading, stride, fault):
    reading.fail_every_read(stride, fault)
