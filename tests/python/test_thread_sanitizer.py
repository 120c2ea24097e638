"""A whole conversion, and reads of HDF5 and NetCDF files on many threads, in the build with the thread sanitizer: it ends a process that
races with exit code 66."""

import os
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
from conftest import BUILD, ROOT

TSAN = ROOT / "build-tsan" / "squall"


@pytest.mark.skipif(not TSAN.exists(), reason="no build with the thread sanitizer (make test makes one)")
def test_converting_listing_and_verifying_do_not_race(tmp_path, support):
    archive, store = tmp_path / "archive", tmp_path / "store.zarr"
    sizes = "--inits 3 --steps 3 --vars 9 --ny 60 --nx 50".split()
    subprocess.run([support / "make_archive", archive, *sizes], check=True)
    files = sorted(archive.iterdir())
    for args in (
        ["convert", archive, store, "--threads", "4", "--dtype", "float16", "--on-overflow", "inf"],
        ["convert", archive, store, "--threads", "4", "--dtype", "float16", "--on-overflow", "inf"],
        ["verify", store, "--threads", "4"],
        ["ls", "--threads", "4", *files],
        ["bench", store, "--threads", "4"],
    ):
        done = subprocess.run([TSAN, *map(str, args)], capture_output=True, text=True, env={"TSAN_OPTIONS": "halt_on_error=1"})
        assert done.returncode == 0, f"{args[0]}: {done.stdout}{done.stderr}"


def make_files(folder):
    """Some of each kind of HDF5's indexes, filters and types, and of NetCDF's formats; more than the program keeps open."""
    values = np.random.default_rng(0).integers(0, 99, (40, 60)).astype("f4")
    indexes = {"earliest": None, "fixed": (40, 60), "extensible": (None, 60), "tree": (None, None)}
    for name, maximum in indexes.items():
        with h5py.File(folder / f"{name}.h5", "w", libver="earliest" if name == "earliest" else "latest") as f:
            for i, filters in enumerate(({}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf", "fletcher32": True})):
                f.create_dataset(f"chunked{i}", data=values, chunks=(3, 7), maxshape=maximum, **filters)
            f["contiguous"], f["big"] = values, values.astype(">i4")
            f["texts"], f["bytes"] = np.array(["a", "bc", "Zürich"] * 9, h5py.string_dtype()), np.array([b"x", b"yz"])
            f.create_dataset("lists", (3,), h5py.vlen_dtype("i4"))[1] = [1, 2, 3]
            f.create_dataset("never", (70, 30), "f8", chunks=(7, 30), fillvalue=2.5)
    for kind in ("NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"):
        with netCDF4.Dataset(folder / f"{kind}.nc", "w", format=kind) as f:
            for dim, length in (("time", None), ("x", 60)):
                f.createDimension(dim, length)
            f.createVariable("t", "f4", ("time", "x"))[:] = values
            f.createVariable("x", "f8", ("x",))[:] = values[0]
    return sorted(folder.iterdir())


@pytest.mark.parametrize("build", [BUILD, TSAN.parent], ids=["release", "tsan"])
def test_threads_that_read_the_same_files_do_not_race(tmp_path, build):
    program = build / "tests" / "support" / "read_threads"
    if not program.exists():
        pytest.skip("no build with the thread sanitizer (make test makes one)")
    files = make_files(tmp_path)
    done = subprocess.run([program, *files], capture_output=True, text=True, env=os.environ | {"TSAN_OPTIONS": "halt_on_error=1"})
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert int(done.stdout) == 6 * 4 * (4 * 9 + 3 * 2)
