"""A conversion of NetCDF files that dies, or is failed by the system, at every call that changes the file system; and then goes on.

What test_convert_faults.py asks of GRIB, where chunks of the append dimension are longer than one time and the last is cut.
"""

import pytest
import small_files as small
from test_convert_faults import Sweep, at_faults, every

# three times a chunk and four a file: units cross files, and the last unit is not full
OPTIONS = ["--chunks", "time=3,lat=4", "--threads", "2", "--select", "name=t|series"]


@pytest.fixture(params=["new", "more files", "overwrite"])
def sweep(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    if not (support / "fail_io.so").exists():
        pytest.skip("tests/support/fail_io.so is not built")
    store.parent.mkdir()
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
