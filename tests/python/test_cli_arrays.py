"""The command on HDF5 and NetCDF files, patterns and Zarr stores: netCDF4, h5py and cftime write and say what is to be shown."""

import json

import netCDF4
import numpy as np
import pytest


def write_day(path, day, *, units="K", name="t2m", kind="NETCDF4"):
    """Four maps of a day, compressed where the format can, with CF coordinates."""
    values = np.random.default_rng(day).normal(280, 9, (4, 3, 5)).astype("f4")
    with netCDF4.Dataset(path, "w", format=kind) as f:
        f.createDimension("time", None)
        f.createDimension("latitude", 3)
        f.createDimension("longitude", 5)
        f.createVariable("time", "f8", ("time",))[:] = day * 24 + np.arange(4) * 6
        f["time"].units, f["time"].calendar = "hours since 2020-01-01", "standard"
        f.createVariable("latitude", "f4", ("latitude",))[:] = [60, 57.5, 55]
        f["latitude"].units = "degrees_north"
        f.createVariable("longitude", "f4", ("longitude",))[:] = np.arange(5) * 2.5 - 5
        f["longitude"].units = "degrees_east"
        f.createVariable(name, "f4", ("time", "latitude", "longitude"), zlib=kind == "NETCDF4", chunksizes=(2, 3, 5))[:] = values
        f[name].units = units
    return values


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    return folder, np.concatenate([write_day(folder / f"day{day}.nc", day) for day in range(3)])


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_several_files_are_joined_along_a_dimension_that_is_named(squall, tmp_path, kind):
    values = np.stack([write_day(tmp_path / f"{i}.nc", 0, kind=kind) for i in range(3)])
    pattern = tmp_path / "*.nc"
    done = squall("info", pattern, check=False)
    assert done.code == 4 and "differ along no dimension" in done.err and "--concat-dim" in done.err
    for command in ("info", "ls", "bench"):
        assert squall(command, pattern, "--concat-dim", "member").err == ""
    rows = {row["name"]: row for row in json.loads(squall("ls", "--json", pattern, "--concat-dim=member").out)}
    assert rows["t2m"]["shape"] == [3, 4, 3, 5] and rows["t2m"]["dims"][0] == "member" and rows["time"]["shape"] == [4]
    assert json.loads(squall("bench", "--json", pattern, "--concat-dim", "member", "--array", "t2m").out)["points"] == values.size
    squall("get", pattern, "t2m", "--concat-dim", "member", "-o", tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), values)


def test_files_that_drift_are_refused_told_or_taken_as_the_first(squall, tmp_path):
    values = [write_day(tmp_path / f"day{day}.nc", day, units="K" if day < 2 else "degC") for day in range(3)]
    pattern = tmp_path / "day*.nc"
    refused = squall("ls", pattern, "--drift", "error", check=False)
    assert refused.code == 4 and 'day2.nc: units of t2m is "degC"' in refused.err and "--drift warn" in refused.err
    told = squall("info", pattern, "--drift", "warn", check=False)
    assert told.code == 3 and 'day2.nc: units of t2m is "degC"' in told.err and "12 " in told.out
    assert squall("info", pattern, "--drift", "first").err == ""
    squall("get", pattern, "t2m", "--drift=first", "-o", tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), np.concatenate(values))
    wrong = squall("info", pattern, "--drift", "ignore", check=False)
    assert wrong.code == 2 and "it takes error|warn|first" in wrong.err


def test_ls_of_a_pattern_lists_each_file_unless_they_are_joined(squall, days):
    folder, values = days
    assert len(squall("ls", folder / "*.nc").out.splitlines()) == 12
    rows = squall("ls", folder / "*.nc", "--concat-dim", "time").out.splitlines()
    assert len(rows) == 4 and any("time=12" in row for row in rows)
